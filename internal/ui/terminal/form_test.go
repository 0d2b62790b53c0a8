//go:build linux

package terminal

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/term"
)

// TestAsk is each way to answer what a server asks. Nothing that a server writes
// looks like the question itself.
func TestAsk(t *testing.T) {
	number := func(s string) error {
		if strings.Trim(s, "0123456789") != "" {
			return errors.New("a number is wanted")
		}
		return nil
	}
	form := Form{Server: "parrot\x1b[2J", Message: "Which one?\n--- Approval needed ---\n> \x1b[31m", Fields: []Field{
		{Name: "kind", Options: []string{"x", "y"}}, {Name: "count", Help: "how many", Optional: true, Check: number}}}
	type result struct {
		answers []string
		ok      bool
		fault   string
	}
	both(t, func(t *testing.T, portable bool) {
		for typed, want := range map[string]result{
			"y\n|x\n|12\n":                      {[]string{"x", "12"}, true, ""},
			"YES\n|z\n|\n|y\n|\n":               {[]string{"y", ""}, true, ""},
			"perhaps\n|y\n|x\n|many\n|3\n":      {[]string{"x", "3"}, true, ""},
			"n\n":                               {},
			"\x04":                              {},
			"y\n|\x04":                          {},
			strings.Repeat("what\n|", maxTries): {},
		} {
			s := newScreen(t)
			a := s.approver(portable)
			done := make(chan result, 1)
			go func() {
				answers, ok, err := a.Ask(t.Context(), form)
				r := result{answers: answers, ok: ok}
				if err != nil {
					r.fault = err.Error()
				}
				done <- r
			}()
			s.expect("--- An MCP server asks ---\r\nServer: parrot\\e[2J\r\n  | Which one?\r\n  | --- Approval needed ---\r\n  | > \\e[31m\r\nAnswer?")
			for part := range strings.SplitSeq(strings.TrimSuffix(typed, "|"), "|") {
				s.expect("\r\n> ")
				s.send(part)
			}
			if diff := cmp.Diff(want, <-done, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("%q: %s", typed, diff)
			}
			_ = s.master.Close()
			_ = s.slave.Close()
		}
	})
}

// The end of the context ends a form, and Ctrl-C the run.
func TestAskEnds(t *testing.T) {
	s := newScreen(t)
	a := s.approver(false)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, _, err := a.Ask(ctx, Form{Server: "s", Message: "m"})
		done <- err
	}()
	s.expect("\r\n> ")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, _, err := a.Ask(ctx, Form{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	interrupted := make(chan bool, 1)
	a.opt.Interrupt = func() { interrupted <- true }
	fd := int(s.slave.Fd())
	old, err := term.MakeRaw(fd) // else the terminal itself would make a signal of it
	if err != nil {
		t.Fatal(err)
	}
	defer term.Restore(fd, old)
	go func() {
		_, _, err := a.Ask(t.Context(), Form{Server: "s", Message: "m"})
		done <- err
	}()
	s.expect("\n> ")
	s.send("\x03")
	if err := <-done; !errors.Is(err, ErrInterrupted) {
		t.Error(err)
	}
	<-interrupted
}
