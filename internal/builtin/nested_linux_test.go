package builtin

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/codemode"
	"capstan/internal/sandbox/quickjs"
	"capstan/internal/sandbox/sandboxtest"
	"capstan/internal/sched"
	"capstan/internal/shell"
	"capstan/internal/tool"
)

// What a command prints reaches a program whatever its size: whole, or head and
// tail with the file that has the whole; of a failure (a time-out, a command
// that kills its keeper) with its own code, its end
// and the file too. S0-255 S0-107 BUG-OT-03
func TestNestedOutputOfEverySize(t *testing.T) {
	dir := t.TempDir()
	runner := quickjs.New(quickjs.Options{Binary: sandboxtest.Binary(t)})
	t.Cleanup(runner.Close)
	sh := shell.New(shell.Options{})
	jobs := shell.NewJobs(sh)
	t.Cleanup(func() { jobs.Close() })
	spills := 0
	newSpill := func() string { spills++; return filepath.Join(dir, fmt.Sprintf("spill-%d", spills)) }
	stream := func(string) (io.WriteCloser, string, error) {
		path := newSpill()
		f, err := os.Create(path)
		return f, path, err
	}
	var reg tool.Registry
	if err := reg.Add(append(Shell(ShellOptions{Dir: dir, Runner: sh, Jobs: jobs, Spill: stream}), codemode.NewExec(codemode.Options{Runner: runner}))...); err != nil {
		t.Fatal(err)
	}
	rt := sched.New(sched.Options{ModelChars: 1 << 20, Spill: func(_, text string) (string, error) {
		path := newSpill()
		return path, os.WriteFile(path, []byte(text), 0o600)
	}})
	const source = `const shape = (s) => s.slice(0, 4) + ' ' + (s.length > 14e6 ? 'much' : s.length > 9e5 && s.length <= 1 << 20 ? 'cut' : s.length) + ' ' + s.slice(-4);
const files = (s) => (s.match(/[^ ]*spill-\d/g) ?? []).join();
for (const [n, then, timeout] of [[16e6, 'exit 0'], [20e6, 'exit 0'], [20e6, 'exit 3'], [2e6, 'sleep 300', 5000], [20e6, 'kill -KILL $PPID; sleep 300']]) {
  try {
    const r = await tools.run_shell_command({command: "yes 'a b' | head -c " + n + '; ' + then, timeout: timeout ?? 60000});
    text(n, then, shape(r.output), r.truncated ?? false, r.file ?? '', r.structuredContent.exitCode);
  } catch (e) { text(n, then, e.code, e.tool, e.callId, shape(e.message), files(e.message)) }
}`
	args, err := json.Marshal(obj{"source": source})
	if err != nil {
		t.Fatal(err)
	}
	got := rt.Run(t.Context(), func() *tool.View { return reg.View(tool.Code, tool.Scope{}) }, []tool.Call{{ID: "x", Name: tool.ExecName, Args: args}})[0]
	want := strings.Join([]string{
		"16000000 exit 0 a b\n much a b\n false  0",
		"20000000 exit 0 a b\n much a b\n true $DIR/spill-1 0",
		"20000000 exit 3 a b\n much e 3] true $DIR/spill-2 3",
		"2000000 sleep 300 TOOL_TIMEOUT run_shell_command x/4 a b\n cut ERM] $DIR/spill-3",
		"20000000 kill -KILL $PPID; sleep 300 TOOL_FAILED run_shell_command x/5 a b\n cut ILL] $DIR/spill-4",
	}, "\n")
	if diff := cmp.Diff(want, strings.ReplaceAll(got.Text(), dir, "$DIR")); diff != "" {
		t.Errorf("%s; want -, got +:\n%s", got.Status, diff)
	}
	for i, least := range []int64{20e6, 20e6, 2e6, 20e6} {
		if fi, err := os.Stat(filepath.Join(dir, fmt.Sprintf("spill-%d", i+1))); err != nil || fi.Size() < least {
			t.Errorf("file %d: %v, %v", i+1, fi, err)
		}
	}
}
