//go:build linux

package terminal

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/sched"
)

// await waits until so many questions are in the line.
func (a *Approver) await(n int) {
	for {
		a.mu.Lock()
		there := len(a.line)
		a.mu.Unlock()
		if there == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// numbers are the calls on the screen, in the order of their numbers.
func (s *screen) numbers() (shown []string) {
	for _, m := range regexp.MustCompile(`(?m)^  n: ([0-9]+)`).FindAllStringSubmatch(s.shown, -1) {
		shown = append(shown, m[1])
	}
	return shown
}

// group starts a question and n more behind it, answers the first, and returns
// when the others are on the screen together.
func group(t *testing.T, ctx context.Context, s *screen, a *Approver, n int) (asked map[string]<-chan outcome, shown []string) {
	t.Helper()
	first := ask(ctx, a, writeFile(t, `{"x":1}`))
	s.expect("Approval needed ---\r\n")
	s.expect("> ")
	asked = map[string]<-chan outcome{}
	for i := range n {
		asked[fmt.Sprint(i)] = ask(ctx, a, writeFile(t, fmt.Sprintf(`{"n":%d}`, i)))
	}
	a.await(n + 1)
	s.shown = ""
	s.send("y\n")
	if got := <-first; !got.answer.Allow {
		t.Fatal(got)
	}
	s.expect(fmt.Sprintf("--- Approval needed: %d calls ---\r\n[1] Tool: write_file", min(n, maxTogether)))
	s.expect("e = each by itself\r\n> ")
	shown = s.numbers()
	if len(shown) != min(n, maxTogether) {
		t.Fatalf("shown: %v", shown)
	}
	return asked, shown
}

// TestTogether: the calls that wait are shown together, and one line answers all
// of them, or some, or leads back to one after the other.
//
// S0-180 S0-251
func TestTogether(t *testing.T) {
	both(t, func(t *testing.T, portable bool) {
		for typed, want := range map[string]sched.Answer{
			"y\n":             {Allow: true, By: person},
			"n too many\n":    {Reason: "too many", By: person},
			"y but\n|0\n|y\n": {Allow: true, By: person}, // the first two are no answers
			"\x04":            {Reason: inputEnded},
		} {
			s := newScreen(t)
			asked, _ := group(t, t.Context(), s, s.approver(portable), 3)
			for i, part := range strings.Split(typed, "|") {
				if i > 0 {
					s.expect("> ")
				}
				s.send(part)
			}
			for n, c := range asked {
				if got := <-c; got.err != nil || !cmp.Equal(want, got.answer) {
					t.Errorf("%q: call %s: %+v", typed, n, got)
				}
			}
			_ = s.master.Close()
			_ = s.slave.Close()
		}
	})
}

// Some are answered, and the rest are asked about again.
func TestSomeOfThem(t *testing.T) {
	s := newScreen(t)
	a := s.approver(false)
	asked, shown := group(t, t.Context(), s, a, 12) // nine at once
	s.send("1, 3\n")
	for _, n := range []string{shown[0], shown[2]} {
		if got := <-asked[n]; !got.answer.Allow || got.err != nil {
			t.Errorf("call %s: %+v", n, got)
		}
		delete(asked, n)
	}
	s.expect("--- Approval needed: 9 calls ---")
	s.expect("> ")
	s.send("e\n") // each by itself: this one, and then the others together again
	s.expect("--- Approval needed ---\r\n")
	s.shown = ""
	s.expect("> ")
	n := s.numbers()[0]
	s.send("n that one\n")
	if got := <-asked[n]; got.answer.Allow || got.answer.Reason != "that one" {
		t.Errorf("call %s: %+v", n, got)
	}
	delete(asked, n)
	s.expect("--- Approval needed: 9 calls ---")
	s.expect("> ")
	s.send("y\n")
	for n, c := range asked {
		if got := <-c; !got.answer.Allow {
			t.Errorf("call %s: %+v", n, got)
		}
	}
}

// One whose turn it is may be cancelled while others are shown with it: they are
// asked about again, and no answer is lost or given twice.
func TestGroupIsCancelled(t *testing.T) {
	s := newScreen(t)
	a := s.approver(false)
	ctx, cancel := context.WithCancel(t.Context())
	asked, _ := group(t, ctx, s, a, 3)
	other := ask(t.Context(), a, writeFile(t, `{"other":true}`))
	a.await(4)
	cancel()
	for n, c := range asked {
		if got := <-c; !errors.Is(got.err, context.Canceled) || got.answer.Allow {
			t.Errorf("call %s: %+v", n, got)
		}
	}
	s.expect("--- Approval needed ---\r\n")
	s.expect("other: true")
	s.expect("> ")
	s.send("y\n")
	if got := <-other; !got.answer.Allow {
		t.Errorf("%+v", got)
	}
}

// What a rule would allow is shown before anybody says yes to it, and it comes
// back with the answer, for the layer that was chosen.
func TestOffers(t *testing.T) {
	offers := []sched.Offer{
		{Layer: "session", Rules: []string{"Bash(make)", "Bash(make \n> y\x1b[2J)"}},
		{Layer: "local", File: ".capstan/settings.local.json", Rules: []string{"Bash(make)"}},
		{Layer: "user", File: "~/.capstan/settings.json", Rules: []string{"Bash(make)"}},
	}
	grant := func(layer string, rules ...string) (out []sched.Grant) {
		for _, r := range rules {
			out = append(out, sched.Grant{Layer: layer, List: "allow", Rule: r})
		}
		return out
	}
	both(t, func(t *testing.T, portable bool) {
		for typed, want := range map[string][]sched.Grant{
			"s\n":       grant("session", offers[0].Rules...),
			"Project\n": grant("local", "Bash(make)"),
			"u\n":       grant("user", "Bash(make)"),
			"y\n":       nil,
		} {
			s := newScreen(t)
			q := writeFile(t, `{}`)
			q.Offers = offers
			done := ask(t.Context(), s.approver(portable), q)
			s.expect("\"Always\" would add to permissions.allow:\r\n  | Bash(make)\r\n  | Bash(make \r\n  | > y\\e[2J)\r\nAllow?")
			s.expect("s = yes, always in this session; p = yes, always in this project")
			s.expect("(~/.capstan/settings.json)\r\n> ")
			s.send(typed)
			if got := <-done; got.err != nil || !cmp.Equal(sched.Answer{Allow: true, By: person, Grants: want}, got.answer) {
				t.Errorf("%q: %+v", typed, got)
			}
			_ = s.master.Close()
			_ = s.slave.Close()
		}
	})
}
