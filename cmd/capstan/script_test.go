package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"capstan/internal/llm/llmtest"
)

// binary is the real capstan, as it is shipped. The test binary cannot stand in
// for it: under the race detector it is a cgo build.
var binary string

func TestMain(m *testing.M) {
	if mode := os.Getenv(serverMode); mode != "" {
		os.Exit(serveMCP(mode))
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	leaveTerminal() // so that no script can ask the person who runs the tests
	dir, err := os.MkdirTemp("", "capstan-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "capstan")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	build := exec.Command("go", "build", "-o", binary, "capstan/cmd/capstan")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building capstan: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

func TestScripts(t *testing.T) { runScripts(t, "testdata/script", nil) }

// runScripts runs the scripts of a directory over the real binary. What a script
// starts must have ended with it.
func runScripts(t *testing.T, dir string, env map[string]string) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cmds := map[string]func(*testscript.TestScript, bool, []string){
		"exits":      cmdExits,
		"pty":        cmdPty,
		"client":     cmdClient,
		"repeat":     cmdRepeat,
		"masked":     cmdMasked,
		"transcript": cmdTranscript,
		"declared":   cmdDeclared,
		"sametools":  cmdSameTools,
		"audit":      cmdAudit,
	}
	maps.Copy(cmds, llmtest.Commands())
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(e *testscript.Env) error {
			mark := fmt.Sprintf("capstan-mark-%d-%s", os.Getpid(), filepath.Base(e.WorkDir))
			e.Setenv("PATH", filepath.Dir(binary)+string(os.PathListSeparator)+os.Getenv("PATH"))
			e.Setenv("REPO", root)
			e.Setenv("SERVER", os.Args[0])
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("XDG_STATE_HOME", "")
			e.Setenv("MARK", mark)
			for k, v := range env {
				e.Setenv(k, v)
			}
			e.Defer(func() { noneLeft(t, mark, e.WorkDir) })
			return os.MkdirAll(filepath.Join(e.WorkDir, "home"), 0o755)
		},
		// [mode:code] holds in the scripts that run in that mode, [family:x] where
		// the model is of that family.
		Condition: func(cond string) (bool, error) {
			name, value, _ := strings.Cut(cond, ":")
			if have, ok := env[strings.ToUpper(name)]; ok {
				return have == value, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: cmds,
	})
}

// noneLeft fails the test when a process of a script is still alive: one that
// inherited its environment, or a sandbox child, which has none, in its
// directory. A process that is just ending is given a moment.
func noneLeft(t *testing.T, mark, dir string) {
	var left []string
	for range 50 {
		if left = processes(mark, dir); len(left) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("left running: %s", strings.Join(left, "; "))
}

func processes(mark, dir string) []string {
	var found []string
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range all {
		environ, _ := os.ReadFile(p + "/environ")
		cwd, _ := os.Readlink(p + "/cwd")
		exe, _ := os.Readlink(p + "/exe")
		ours := strings.HasPrefix(exe, binary) && (cwd == dir || strings.HasPrefix(cwd, dir+"/"))
		if !ours && !bytes.Contains(environ, []byte(mark)) {
			continue
		}
		line, _ := os.ReadFile(p + "/cmdline")
		found = append(found, filepath.Base(p)+" "+strings.ReplaceAll(string(line), "\x00", " "))
	}
	return found
}

// cmdExits runs a command and checks its exit code: exits CODE COMMAND [ARG...].
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if err != nil {
		exit, ok := err.(*exec.ExitError)
		if !ok {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// cmdRepeat writes a file of one text many times: repeat FILE COUNT TEXT.
func cmdRepeat(ts *testscript.TestScript, neg bool, args []string) {
	var n int
	if _, err := fmt.Sscan(args[1], &n); neg || len(args) != 3 || err != nil {
		ts.Fatalf("usage: repeat FILE COUNT TEXT")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Repeat(args[2], n)), 0o644))
}

var measured = regexp.MustCompile(`"(startMs|durationMs|cpuMs|peakBytes)":[0-9.e+]+`)

// cmdMasked compares stdout with a file, measured numbers left out: masked FILE.
func cmdMasked(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: masked FILE")
	}
	got := measured.ReplaceAllString(ts.ReadFile("stdout"), `"$1":0`)
	want := ts.ReadFile(args[0])
	if os.Getenv("UPDATE_SCRIPTS") != "" {
		ts.Logf("masked %s:\n%s", args[0], got)
	}
	if got != want {
		ts.Fatalf("%s is not what was printed:\n%s", args[0], got)
	}
}
