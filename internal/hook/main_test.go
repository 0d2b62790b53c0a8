package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/dlclark/regexp2"
	"go.uber.org/goleak"

	"capstan/internal/sched"
	"capstan/internal/shell"
	"capstan/internal/tool"
)

// TestMain checks that no test leaves a goroutine or a process behind.
func TestMain(m *testing.M) {
	code := m.Run()
	regexp2.StopTimeoutClock()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if left := children(); len(left) > 0 {
		fmt.Fprintln(os.Stderr, "processes are left:", left)
		code = 1
	}
	os.Exit(code)
}

// children are the processes that this one has, where there is a /proc.
func children() (list []string) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, s := range stats {
		b, _ := os.ReadFile(s)
		i := bytes.LastIndexByte(b, ')')
		if i < 0 {
			continue
		}
		if f := strings.Fields(string(b[i+1:])); len(f) > 1 && f[1] == strconv.Itoa(os.Getpid()) {
			list = append(list, string(b[:i+1]))
		}
	}
	return list
}

// rig is a dispatcher in a directory of its own, and what it said.
type rig struct {
	*Dispatcher
	t    *testing.T
	dir  string
	env  map[string]string
	mu   sync.Mutex
	told []string
}

// newRig makes a dispatcher of settings.
func newRig(t *testing.T, settings string, change ...func(*Options)) *rig {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, dir: dir, env: map[string]string{}}
	o := Options{Dir: dir, Project: dir, Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "OPENAI_API_KEY=sk-secret"},
		Env: func(name string) string { return r.env[name] }, Shell: shell.New(shell.Options{}), Mode: func() string { return "auto-edit" },
		Notice: func(text string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.told = append(r.told, text)
		}}
	for _, c := range change {
		c(&o)
	}
	h, warnings, err := Parse([]Source{{Value: json.RawMessage(settings), Where: where}})
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	r.Dispatcher = New(h, o)
	r.Begin(Session{ID: "s1", Transcript: "/t.jsonl"})
	t.Cleanup(r.Close)
	return r
}

func where(path ...string) string { return "settings:" + strconv.Itoa(len(path)) }

// notices are what the user was told, sorted, since hooks run side by side.
func (r *rig) notices() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.told)
	return strings.Join(r.told, "\n")
}

// file returns what a hook wrote to a file.
func (r *rig) file(name string) string {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

// fakeTool has a name and a class.
type fakeTool struct {
	tool.Tool
	spec tool.Spec
}

func (f *fakeTool) Spec() *tool.Spec { return &f.spec }

// request is a call of a tool.
func request(t testing.TB, name, args string) *sched.Request {
	t.Helper()
	reg := &tool.Registry{}
	class := tool.Ordinary
	if name == tool.ExecName {
		class = tool.Gateway
	}
	if err := reg.Add(&fakeTool{spec: tool.Spec{Name: name, Class: class}}); err != nil {
		t.Fatal(err)
	}
	return &sched.Request{Call: &tool.Call{ID: "c1", Name: name, Args: json.RawMessage(args), Source: tool.FromModel}, Entry: reg.Tools()[0]}
}

// one is the setting of one command hook for an event.
func one(ev Event, matcher, command, more string) string {
	return fmt.Sprintf(`{%q: [{"matcher": %q, "hooks": [{"type": "command", "command": %q%s}]}]}`, ev, matcher, command, more)
}
