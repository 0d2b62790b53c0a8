//go:build linux

package terminal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

const childMark = "CAPSTAN_TEST_TERMINAL_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childMark) != "" {
		os.Exit(child())
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if left, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid())); err == nil && len(bytes.TrimSpace(left)) > 0 {
			fmt.Fprintf(os.Stderr, "child processes are left: %s\n", left)
			code = 1
		}
		os.Exit(code)
	}))
}

// child asks one question on its controlling terminal, as the product does.
func child() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	a, err := Open(Options{})
	if err != nil {
		fmt.Println("open:", err)
		return 1
	}
	defer a.Close()
	var r tool.Registry
	if err := r.Add(&fake{spec: tool.Spec{Name: "write_file", Description: "d"}}); err != nil {
		return 1
	}
	q := &sched.Question{Request: sched.Request{Call: &tool.Call{Name: "write_file", Args: json.RawMessage(`{}`)}, Entry: r.Tools()[0]}}
	answer, err := a.Approve(ctx, q)
	fmt.Printf("answer %t %q %v\n", answer.Allow, answer.Reason, err)
	if errors.Is(err, context.Canceled) {
		return 130
	}
	return 0
}

// A screen is the other side of a terminal.
type screen struct {
	t      testing.TB
	master *os.File
	slave  *os.File
	seen   string
	shown  string // all that expect has passed
}

func newScreen(t testing.TB) *screen {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Skip("no pseudo-terminal:", err)
	}
	t.Cleanup(func() { _ = master.Close(); _ = slave.Close() })
	if err := pty.Setsize(master, &pty.Winsize{Rows: 40, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	// Package pty leaves it blocking, and then no deadline ends a Read.
	if err := unix.SetNonblock(int(master.Fd()), true); err != nil {
		t.Fatal(err)
	}
	return &screen{t: t, master: master, slave: slave}
}

// expect reads until the text is on the screen, and forgets all up to it.
func (s *screen) expect(text string) {
	s.t.Helper()
	_ = s.master.SetReadDeadline(time.Now().Add(30 * time.Second))
	buf := make([]byte, 4096)
	for !strings.Contains(s.seen, text) {
		n, err := s.master.Read(buf)
		s.seen += string(buf[:n])
		if err != nil {
			s.t.Fatalf("waiting for %q: %v, seen %q", text, err, s.seen)
		}
	}
	passed, rest, _ := strings.Cut(s.seen, text)
	s.shown, s.seen = s.shown+passed+text, rest
}

func (s *screen) send(text string) {
	s.t.Helper()
	if _, err := s.master.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// mode is how the terminal is set.
func (s *screen) mode() *unix.Termios {
	s.t.Helper()
	m, err := unix.IoctlGetTermios(int(s.slave.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

type outcome struct {
	answer sched.Answer
	err    error
}

// ask asks in the background.
func ask(ctx context.Context, a *Approver, q *sched.Question) <-chan outcome {
	c := make(chan outcome, 1)
	go func() {
		answer, err := a.Approve(ctx, q)
		c <- outcome{answer, err}
	}()
	return c
}

func (s *screen) approver(portable bool) *Approver {
	s.t.Helper()
	a, err := Open(Options{In: s.slave, Out: s.slave})
	if err != nil {
		s.t.Fatal(err)
	}
	a.portable = portable
	a.gather = func(context.Context) {} // what is shown together must not depend on time
	return a
}

func writeFile(t testing.TB, args string) *sched.Question {
	return question(t, &fake{spec: tool.Spec{Name: "write_file", Title: "WriteFile", Description: "d"}}, tool.Call{Args: json.RawMessage(args)}, "because")
}

// both runs a test with what Linux has and with the portable reader.
func both(t *testing.T, f func(t *testing.T, portable bool)) {
	for _, portable := range []bool{false, true} {
		t.Run(fmt.Sprintf("portable=%t", portable), func(t *testing.T) { f(t, portable) })
	}
}

const ready4answer = "\n> "

// yes is the plain yes of the person.
var yes = sched.Answer{Allow: true, By: person}

// TestAnswers is each answer a person can give.
//
// S0-011.
func TestAnswers(t *testing.T) {
	both(t, func(t *testing.T, portable bool) {
		for typed, want := range map[string]sched.Answer{
			"y\n":                            yes,
			" YES \n":                        yes,
			"a\n":                            yes,
			"n\n":                            {By: person},
			"no not that file\n":             {Reason: "not that file", By: person},
			"n \u202eé\x00 x\n":              {Reason: "é x", By: person},
			"\x04":                           {Reason: "nobody answered: the terminal's input ended"},
			"maybe\n|y please\n|\n|y\n":      yes,
			"s\n|p\n|u\n|y\n":                yes,          // nothing of that was offered
			"\n|y please\n|n\n":              {By: person}, // neither is a yes
			strings.Repeat("x\n|", maxTries): {Reason: "nobody gave an answer that could be understood"},
		} {
			s := newScreen(t)
			a := s.approver(portable)
			before := s.mode()
			done := ask(t.Context(), a, writeFile(t, `{"file_path":"a.txt"}`))
			s.expect("Tool: write_file (WriteFile)\r\nWhy: because\r\n  file_path: a.txt\r\n")
			for part := range strings.SplitSeq(strings.TrimSuffix(typed, "|"), "|") {
				s.expect(strings.ReplaceAll(ready4answer, "\n", "\r\n"))
				s.send(part)
			}
			got := <-done
			if diff := cmp.Diff(want, got.answer); diff != "" || got.err != nil {
				t.Errorf("%q: %s %v", typed, diff, got.err)
			}
			if diff := cmp.Diff(before, s.mode()); diff != "" {
				t.Errorf("%q: the terminal's mode changed: %s", typed, diff)
			}
			_ = s.master.Close()
			_ = s.slave.Close()
		}
	})
}

// TestDiffAndView shows a cut question, then all of it.
func TestDiffAndView(t *testing.T) {
	s := newScreen(t)
	a := s.approver(false)
	f := &previewed{fake{spec: tool.Spec{Name: "edit", Description: "d"}, preview: func() (string, error) { return numbered(60), nil }}}
	done := ask(t.Context(), a, question(t, f, tool.Call{Args: json.RawMessage(`{}`), Source: tool.FromProgram, ParentID: "call_1"}, ""))
	s.expect("Tool: edit, called by a program (call_1)")
	s.expect("  | line 1\r\n")
	s.expect("... 21 more lines ...")
	s.expect("v = view all of it\r\n> ")
	s.send("v\n")
	s.expect("  | line 1\r\n")
	s.expect("  | line 40\r\n")
	s.expect("n REASON tells why\r\n> ")
	s.send("y\n")
	if got := <-done; !got.answer.Allow || got.err != nil {
		t.Error(got)
	}
}

// TestPreviewThatFails: the question is asked all the same.
func TestPreviewThatFails(t *testing.T) {
	for want, f := range map[string]func() (string, error){
		"cannot be shown: no": func() (string, error) { return "", errors.New("no") },
		"cannot be shown: ha": func() (string, error) { panic("ha") },
	} {
		s := newScreen(t)
		done := ask(t.Context(), s.approver(false), question(t, &previewed{fake{spec: tool.Spec{Name: "edit", Description: "d"}, preview: f}}, tool.Call{}, ""))
		s.expect(want)
		s.expect("> ")
		s.send("n\n")
		if got := <-done; got.answer.Allow || got.err != nil {
			t.Error(got)
		}
	}
}

// TestTypeahead: what was typed before the question approves nothing.
func TestTypeahead(t *testing.T) {
	both(t, func(t *testing.T, portable bool) {
		s := newScreen(t)
		a := s.approver(portable)
		if portable { // it has to have read before, to have something to drop
			done := ask(t.Context(), a, writeFile(t, `{}`))
			s.expect("> ")
			s.send("n\n")
			<-done
		}
		s.send("y\ny\ny\n")
		s.expect("y\r\ny\r\ny\r\n") // the terminal's echo: it has them all
		if portable {
			for len(a.input) < 3 { // each line is one read
				time.Sleep(time.Millisecond)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := ask(ctx, a, writeFile(t, `{}`))
		s.expect("\r\n> ")
		s.send("n really\n")
		if got := <-done; got.answer.Allow || got.answer.Reason != "really" {
			t.Errorf("%+v", got)
		}
		cancel()
	})
}

// TestCancelled: a waiting question ends with its context, and so does one
// that waits for its turn, and one whose text the terminal does not take.
func TestCancelled(t *testing.T) {
	both(t, func(t *testing.T, portable bool) {
		s := newScreen(t)
		a := s.approver(portable)
		ctx, cancel := context.WithCancel(t.Context())
		first := ask(ctx, a, writeFile(t, `{}`))
		s.expect("> ")
		second := ask(ctx, a, writeFile(t, `{"x":1}`))
		cancel()
		for _, c := range []<-chan outcome{first, second} {
			if got := <-c; got.answer.Allow || !errors.Is(got.err, context.Canceled) {
				t.Error(got)
			}
		}
		// The terminal is as good as before.
		third := ask(t.Context(), a, writeFile(t, `{}`))
		s.expect("> ")
		s.send("y\n")
		if got := <-third; !got.answer.Allow {
			t.Error(got)
		}
		_ = s.master.Close()
		_ = s.slave.Close()
	})
}

func TestCancelledWhileTheTerminalIsStopped(t *testing.T) {
	s := newScreen(t)
	a := s.approver(false)
	ctx, cancel := context.WithCancel(t.Context())
	q := writeFile(t, string(arguments(t, map[string]string{"content": strings.Repeat(strings.Repeat("x", 1900)+"\n", 38)})))
	done := ask(ctx, a, q) // nobody reads: the terminal's buffer is smaller
	s.expect("content")
	cancel()
	if got := <-done; !errors.Is(got.err, context.Canceled) {
		t.Error(got)
	}
}

// TestAlways: "a" answers for the very same call only.
func TestAlways(t *testing.T) {
	s := newScreen(t)
	a := s.approver(false)
	q := writeFile(t, `{"n":1}`)
	done := ask(t.Context(), a, q)
	s.expect("> ")
	s.send("a\n")
	<-done
	if got := <-ask(t.Context(), a, q); !got.answer.Allow {
		t.Error("the same call is asked about again")
	}
	moved := *q
	moved.Access.Writes = []string{"/elsewhere"}
	changed := question(t, &fake{spec: tool.Spec{Name: "write_file", Description: "another"}}, tool.Call{Args: json.RawMessage(`{"n":1}`)}, "")
	for name, other := range map[string]*sched.Question{"arguments": writeFile(t, `{"n":2}`), "paths": &moved, "definition": changed} {
		done := ask(t.Context(), a, other)
		s.expect("> ")
		s.send("n\n")
		if got := <-done; got.answer.Allow {
			t.Errorf("other %s are allowed too", name)
		}
	}
}

// TestKeysOfARawTerminal: something left the terminal in another mode.
func TestKeysOfARawTerminal(t *testing.T) {
	both(t, func(t *testing.T, portable bool) {
		for typed, want := range map[string]outcome{
			"y\r":         {answer: yes},
			"n\x7fyx\b\r": {answer: yes},
			"y\x03":       {err: ErrInterrupted},
			"\x04":        {answer: sched.Answer{Reason: "nobody answered: the terminal's input ended"}},
		} {
			s := newScreen(t)
			if _, err := term.MakeRaw(int(s.slave.Fd())); err != nil {
				t.Fatal(err)
			}
			a := s.approver(portable)
			var interrupted atomic.Bool
			a.opt.Interrupt = func() { interrupted.Store(true) }
			done := ask(t.Context(), a, writeFile(t, `{}`))
			s.expect("> ")
			s.send(typed)
			got := <-done
			if !cmp.Equal(got.answer, want.answer) || !errors.Is(got.err, want.err) || interrupted.Load() != (want.err != nil) {
				t.Errorf("%q: %+v, interrupted %t", typed, got, interrupted.Load())
			}
			_ = s.master.Close()
			_ = s.slave.Close()
		}
	})
}

// TestHangUp: a terminal that goes away is a no.
func TestHangUp(t *testing.T) {
	s := newScreen(t)
	done := ask(t.Context(), s.approver(false), writeFile(t, `{}`))
	s.expect("> ")
	_ = s.master.Close()
	want := outcome{answer: sched.Answer{Reason: "nobody answered: the terminal's input ended"}}
	if got := <-done; !cmp.Equal(want, got, cmp.AllowUnexported(outcome{})) {
		t.Errorf("%+v", got)
	}
}

func TestNoTerminal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, o := range []Options{{In: f, Out: f}, {In: f}} {
		if _, err := Open(o); err == nil {
			t.Errorf("%+v is a terminal", o)
		}
	}
}

// start runs this test as a child on its own controlling terminal.
func start(t *testing.T, s *screen, setup func(*exec.Cmd)) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childMark+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.slave, s.slave, s.slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if setup != nil {
		setup(cmd)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// TestTranscript drives a process on its own terminal: an answer, and Ctrl-C,
// which ends the run with 130 and leaves the terminal as it was.
func TestTranscript(t *testing.T) {
	for typed, want := range map[string]struct {
		text string
		code int
	}{
		"n because\n": {`answer false "because" <nil>`, 0},
		"y\n":         {`answer true "" <nil>`, 0},
		"\x03":        {`answer false "" context canceled`, 130},
	} {
		s := newScreen(t)
		before := s.mode()
		cmd := start(t, s, nil)
		s.expect("--- Approval needed ---")
		s.expect("> ")
		s.send(typed)
		s.expect(want.text)
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != want.code {
			t.Errorf("%q: exit code %d, want %d", typed, code, want.code)
		}
		if diff := cmp.Diff(before, s.mode()); diff != "" {
			t.Errorf("%q: the terminal's mode changed: %s", typed, diff)
		}
	}
}

// TestInBackground: a process that does not own its terminal does not stop at
// a question.
func TestInBackground(t *testing.T) {
	s := newScreen(t)
	sh := start(t, s, func(c *exec.Cmd) {
		c.Path, c.Args = "/bin/sh", []string{"sh", "-c", `set -m; "$0" & wait $!; echo done`, os.Args[0]}
	})
	s.expect("background of its terminal")
	s.expect("done")
	_ = sh.Wait()
}
