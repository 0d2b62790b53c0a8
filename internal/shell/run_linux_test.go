package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"
)

// untimed compares results but for how long they took and who was killed.
var untimed = cmpopts.IgnoreFields(Result{}, "Duration", "Leftovers")

func out(s string, code int) Result { return Result{Output: s, Total: int64(len(s)), ExitCode: code} }

func TestRun(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		c    Command
		want Result
	}{
		{"output and exit code", Command{Line: "echo one; exit 3"}, out("one\n", 3)},
		{"stdout and stderr in order", Command{Line: "echo 1; echo 2 >&2; echo 3; echo 4 >&2"}, out("1\n2\n3\n4\n", 0)},
		{"directory", Command{Line: "pwd", Dir: dir}, out(dir+"\n", 0)},
		{"environment", Command{Line: "echo $A", Env: []string{"PATH=" + os.Getenv("PATH"), "A=1", "A=2"}}, out("2\n", 0)},
		{"no provider keys", Command{Line: "echo \"[$OPENAI_API_KEY$ANTHROPIC_API_KEY]\"", Env: []string{"OPENAI_API_KEY=k", "ANTHROPIC_API_KEY=k"}}, out("[]\n", 0)},
		{"session of its own", Command{Line: "cut -d' ' -f5-7 /proc/$$/stat | sed s/$$/own/g"}, out("own own 0\n", 0)},
		{"no shell", Command{Argv: []string{"echo", "$A  b"}}, out("$A  b\n", 0)},
		{"own signal", Command{Line: "kill -SEGV $$"}, Result{ExitCode: -1, Signal: "SIGSEGV"}},
		// BUG-CX-11: a command that reads gets end of file at once.
		{"stdin is empty", Command{Line: "read x; echo got $x."}, out("got .\n", 0)},
		{"no terminal", Command{Line: "echo x 2>/dev/null >/dev/tty || echo none"}, out("none\n", 0)},
		// BUG-CX-05, BUG-CX-06: a child that is quick to end is waited for.
		{"child that ends", Command{Line: "(sleep 0.05; echo late) & echo early"}, out("early\nlate\n", 0)},
		{"time-out", Command{Line: "echo a; sleep 300", Timeout: 200 * time.Millisecond},
			Result{Output: "a\n", Total: 2, ExitCode: -1, Signal: "SIGTERM", TimedOut: true}},
		{"time-out deaf to SIGTERM", Command{Line: "trap '' TERM; echo a; while :; do read -t 300 <> <(:); done", Timeout: 300 * time.Millisecond},
			Result{Output: "a\n", Total: 2, ExitCode: -1, Signal: "SIGKILL", TimedOut: true}},
		{"SIGTERM is a chance to clean up", Command{Line: "trap 'echo bye; exit 5' TERM; echo a; while :; do read -t 300 <> <(:); done", Timeout: 300 * time.Millisecond},
			Result{Output: "a\nbye\n", Total: 6, ExitCode: 5, TimedOut: true}},
		{"also one that is stopped", Command{Line: "trap 'echo bye; exit 5' TERM; echo a; kill -STOP $$; sleep 300", Timeout: 300 * time.Millisecond},
			Result{Output: "a\nbye\n", Total: 6, ExitCode: 5, TimedOut: true}},
	}
	supervisors(t, func(t *testing.T, o Options) {
		o.Term = 500 * time.Millisecond
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				var streamed bytes.Buffer
				c := tt.c
				c.Output = func(b []byte) { streamed.Write(b) }
				got, err := New(o).Run(testContext(t), c)
				if err != nil {
					t.Fatal(err)
				}
				got.LeftoverCount = 0 // readers of the process substitution
				if diff := cmp.Diff(tt.want, got, untimed); diff != "" {
					t.Errorf("result (-want +got):\n%s", diff)
				}
				if streamed.String() != got.Output {
					t.Errorf("streamed %q, want the output %q", streamed.String(), got.Output)
				}
			})
		}
	})
}

func TestRunSeparateStderr(t *testing.T) {
	var errs bytes.Buffer
	got, err := New(Options{}).Run(testContext(t), Command{Line: "echo o; echo e >&2", Stderr: func(b []byte) { errs.Write(b) }})
	if err != nil {
		t.Fatal(err)
	}
	if got.Output != "o\n" || errs.String() != "e\n" {
		t.Errorf("output %q, stderr %q", got.Output, errs.String())
	}
}

func TestRunStdin(t *testing.T) {
	supervisors(t, func(t *testing.T, o Options) {
		got, err := New(o).Run(testContext(t), Command{Line: "sleep 0.1; wc -c", Stdin: strings.NewReader(strings.Repeat("x", 1<<20))})
		if diff := cmp.Diff(out("1048576\n", 0), got, untimed); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	})
}

// A reader that never ends must not keep the command.
func TestRunStdinThatNeverEnds(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	got, err := New(Options{}).Run(testContext(t), Command{Line: "true", Stdin: r})
	if diff := cmp.Diff(out("", 0), got, untimed); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

func TestRunRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tool"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(here, dir)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		c    Command
		want string
	}{
		{"nothing", Command{Line: " \n"}, "the command is empty"},
		{"NUL", Command{Line: "echo a\x00b"}, "the command contains a NUL byte, which no argument can hold"},
		{"too long", Command{Line: ": " + strings.Repeat("x", 1<<17)}, "the command has 131074 bytes and the system takes at most 131071: write it to a script file and run that"},
		{"no directory", Command{Line: "true", Dir: dir + "/no"}, "the directory " + dir + "/no does not exist"},
		{"directory is a file", Command{Line: "true", Dir: file}, file + " is not a directory"},
		{"no program", Command{Argv: []string{"no-such-program-anywhere"}}, `the program "no-such-program-anywhere" was not found in PATH`},
		{"in a relative entry of PATH", Command{Argv: []string{"tool"}, Dir: dir, Env: []string{"PATH=" + relative}}, `the program "tool" was not found in PATH`},
		{"not executable", Command{Argv: []string{file}, Dir: dir}, "starting " + file + " in " + dir + ": permission denied"},
	}
	supervisors(t, func(t *testing.T, o Options) {
		before := openFiles(t)
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				_, err := New(o).Run(testContext(t), tt.c)
				var refused *CommandError
				if !errors.As(err, &refused) || refused.Error() != tt.want {
					t.Errorf("error %v, want %q", err, tt.want)
				}
			})
		}
		if after := openFiles(t); after != before {
			t.Errorf("%d descriptors are open, were %d", after, before)
		}
	})
}

// A keeper binary that is none is an error, not a hang.
func TestRunWithoutKeeper(t *testing.T) {
	for _, binary := range []string{"/bin/true", "/no/such/file"} {
		_, err := New(Options{Binary: binary}).Run(testContext(t), Command{Line: "true"})
		if err == nil {
			t.Errorf("%s as keeper: no error", binary)
		}
	}
}

func TestRunCancelledBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	file := filepath.Join(t.TempDir(), "ran")
	got, err := New(Options{}).Run(ctx, Command{Line: "touch " + file})
	if diff := cmp.Diff(Result{ExitCode: -1, Cancelled: true}, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the command ran")
	}
}

// BUG-OT-03: of long output both ends are kept, and the whole goes to the spill.
func TestRunLongOutput(t *testing.T) {
	const lines = 200_000 // of 50 bytes: 10 MB
	line := fmt.Sprintf("seq -f '%%049.0f' %d; echo 'error: build failed' >&2; exit 1", lines)
	var spill bytes.Buffer
	opened := 0
	got, err := New(Options{}).Run(testContext(t), Command{Line: line, Keep: 1 << 20,
		Spill: func() (io.Writer, error) { opened++; return &spill, nil }})
	if err != nil {
		t.Fatal(err)
	}
	whole := int64(lines*50 + len("error: build failed\n"))
	if got.ExitCode != 1 || got.Total != whole || int64(spill.Len()) != whole || !got.Spilled || opened != 1 {
		t.Errorf("exit code %d, total %d, spilled %d (%v, opened %d times), want 1, %d twice", got.ExitCode, got.Total, spill.Len(), got.Spilled, opened, whole)
	}
	head, tail, ok := strings.Cut(got.Output, fmt.Sprintf("\n[… %d bytes of output left out here …]\n", got.Omitted))
	if !ok || int64(len(head)+len(tail))+got.Omitted != whole {
		t.Errorf("%d + %d bytes around %d left out, want %d in all", len(head), len(tail), got.Omitted, whole)
	}
	if !strings.HasPrefix(spill.String(), head) || !strings.HasSuffix(spill.String(), tail) || !strings.HasSuffix(tail, "error: build failed\n") {
		t.Error("head and tail are not the ends of the whole")
	}
}

func TestRunBinaryOutput(t *testing.T) {
	got, err := New(Options{}).Run(testContext(t), Command{Line: `printf 'ok \377\376 \0 \303\244 \303'; head -c 300000 /dev/urandom`})
	if err != nil {
		t.Fatal(err)
	}
	if want := "ok � \x00 ä "; !strings.HasPrefix(got.Output, want) || strings.ToValidUTF8(got.Output, "") != got.Output {
		t.Errorf("output begins %q, want %q", got.Output[:20], want)
	}
}

// Fifty commands side by side leave no descriptor, process or goroutine, and
// each gets its own output. (S0-148)
func TestRunParallel(t *testing.T) {
	supervisors(t, func(t *testing.T, o Options) {
		r := New(o)
		if _, err := r.Run(testContext(t), Command{Line: "true"}); err != nil { // what opens descriptors for good does so now
			t.Fatal(err)
		}
		before := openFiles(t)
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				got, err := r.Run(testContext(t), Command{Line: fmt.Sprintf("echo %d; exit %d", i, i)})
				if diff := cmp.Diff(out(fmt.Sprintln(i), i), got, untimed); err != nil || diff != "" {
					t.Errorf("command %d: %v %s", i, err, diff)
				}
			})
		}
		all.Wait()
		if after := openFiles(t); after != before {
			t.Errorf("%d descriptors are open, were %d", after, before)
		}
		if left := childrenOf(os.Getpid()); len(left) > 0 {
			t.Errorf("children are left: %q", left)
		}
	})
}

// A command gets stdin, stdout and stderr, and the signals as its user has them.
func TestRunInheritsNothing(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	leak, err := unix.Dup(int(null.Fd())) // as this process could have got one: not closed on exec
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leak)
	got, err := New(Options{}).Run(testContext(t), Command{Argv: []string{"sh", "-c", "ls /proc/self/fd; grep -E 'SigIgn|SigBlk' /proc/self/status"}})
	if err != nil {
		t.Fatal(err)
	}
	want := "0\n1\n2\n3\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n" // 3 is the directory
	if got.Output != want {
		t.Errorf("got %q, want %q", got.Output, want)
	}
}

// The output is complete when Run returns, however slow its reader is.
func TestRunSlowReader(t *testing.T) {
	var got bytes.Buffer
	gate := make(chan struct{})
	var once sync.Once
	res, err := New(Options{}).Run(testContext(t), Command{Line: "seq 1 30000", Output: func(b []byte) {
		once.Do(func() { time.AfterFunc(drainLimit/4, func() { close(gate) }) })
		<-gate
		got.Write(b)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(got.String(), "\n30000\n") || res.Output != got.String() || res.HeldOpen {
		t.Errorf("%d bytes streamed, %d in the result, held open %v", got.Len(), len(res.Output), res.HeldOpen)
	}
}

// Without the keeper a process can leave the group. That it goes on writing
// does not keep its command.
func TestRunEscapedWriter(t *testing.T) {
	mark := newMark()
	line := fmt.Sprintf("setsid sh -c 'for i in $(seq 600); do echo x %s || exit; sleep 0.05; done' & exit 0", mark)
	got, err := New(Options{Portable: true}).Run(testContext(t), Command{Line: line, Timeout: deadline})
	if err != nil || got.ExitCode != 0 || !got.HeldOpen || got.TimedOut {
		t.Errorf("%v %+v", err, got)
	}
	eventuallyGone(t, mark) // it ends when it writes the next line
}

func BenchmarkTrue(b *testing.B) {
	for _, o := range []struct {
		name string
		Options
	}{{"keeper", Options{}}, {"keeper-sh", Options{Shell: []string{"/bin/sh", "-c"}}}, {"group", Options{Portable: true}}} {
		b.Run(o.name, func(b *testing.B) {
			r := New(o.Options)
			for b.Loop() {
				if _, err := r.Run(context.Background(), Command{Line: "true"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
