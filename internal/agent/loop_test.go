package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/agent"
	"capstan/internal/llm"
	"capstan/internal/tool"
)

// When a model repeats itself: how many turns it gets, and how often it is told.
// The transcripts loop-* show what it is told.
func TestLoops(t *testing.T) {
	path := func(format string, a ...any) llm.Call {
		return calls("c", "read_file", fmt.Sprintf(`{"path":%q}`, fmt.Sprintf(format, a...)))
	}
	for _, tc := range []struct {
		name        string
		turn        func(n int) []llm.Event
		turns, told int
		end         agent.Reason
	}{
		{"the same call", func(int) []llm.Event { return []llm.Event{path("a")} }, 5, 1, agent.Loop},
		{"the same calls in another order", func(n int) []llm.Event {
			es := []llm.Event{path("a"), path("b")}
			return []llm.Event{es[n%2], es[1-n%2]}
		}, 5, 1, agent.Loop},
		{"the same call with the arguments in another order", func(n int) []llm.Event {
			return []llm.Event{calls("c", "pair", []string{`{"a":1,"b":2}`, `{ "b": 2, "a": 1 }`}[n%2])}
		}, 5, 1, agent.Loop},
		{"two in turn", func(n int) []llm.Event { return []llm.Event{path("%d", n%2)} }, 10, 1, agent.Loop},
		{"three in turn", func(n int) []llm.Event { return []llm.Event{path("%d", n%3)} }, 15, 1, agent.Loop},
		// BUG-DL-06: other arguments, always the same error
		{"the same error", func(n int) []llm.Event { return []llm.Event{path("missing d%d", n+5)} }, 10, 1, agent.Loop},
		{"the same denial", func(n int) []llm.Event {
			return []llm.Event{calls("c", "write_file", fmt.Sprintf(`{"path":"d%d"}`, n))}
		}, 10, 1, agent.Loop},
		// BUG-AR-10 BUG-AR-08: a server that loses the arguments
		{"the same missing argument", func(int) []llm.Event { return []llm.Event{calls("c", "read_file", `{}`)} }, 5, 1, agent.Loop},
		{"the same cut", func(n int) []llm.Event {
			c := calls("c", "read_file", `{"path":"`)
			c.Call.Fault = fmt.Sprintf("cut off after %d bytes", n)
			return []llm.Event{c, llm.Done{Finish: llm.FinishLength}}
		}, 10, 1, agent.Loop},
		{"errors with a success now and then", func(n int) []llm.Event {
			return []llm.Event{path("%s%d", []string{"missing", "missing", "missing", "a"}[n%4], n)}
		}, 20, 0, agent.MaxTurns},
		// BUG-DL-08
		{"another call each time", func(n int) []llm.Event { return []llm.Event{path("a%d", n)} }, 20, 0, agent.MaxTurns},
		{"the same beside another", func(n int) []llm.Event { return []llm.Event{path("a"), path("b%d", n)} }, 20, 0, agent.MaxTurns},
		{"what changes", func(int) []llm.Event { return []llm.Event{calls("c", "poll", `{"path":"a"}`)} }, 20, 0, agent.MaxTurns},
		{"a loop left in time, again and again", func(n int) []llm.Event {
			return []llm.Event{path("%d", n/3)}
		}, 12, 3, agent.Loop},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, tool.Direct)
			r.add(&fake{tool.Spec{Name: "pair", Input: []byte(`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}}}`)}, true,
				func(context.Context, *tool.Invocation) (tool.Result, error) { return tool.Text("paired"), nil }})
			r.opt.Sched.Policy = &notAllowed{deny: []string{"write_file"}}
			r.opt.Limits.Turns = 20
			for n := range 20 {
				r.model.turns = append(r.model.turns, events(tc.turn(n)...))
			}
			out := r.run("Work.")
			if out.Reason != tc.end || out.Turns != tc.turns || r.told() != tc.told {
				t.Errorf("%s after %d turns, told %d times: %v", out.Reason, out.Turns, r.told(), out.Err)
			}
		})
	}
}

// told counts the nudges about loops.
func (r *rig) told() (n int) {
	for _, m := range r.agent.History() {
		if strings.Contains(m.Text(), "You repeat yourself") {
			n++
		}
	}
	return n
}

// A user who adds something wants an answer to it: what was done before does
// not count towards a loop.
func TestLoopAndUser(t *testing.T) {
	r := newRig(t, tool.Direct)
	r.opt.Limits.Turns = 8
	for n := range 8 {
		r.model.turns = append(r.model.turns, func(ctx context.Context, q *llm.Request, yield func(llm.Event, error) bool) {
			if n%2 == 1 {
				r.agent.Queue(prompt("Once more, please."))
			}
			events(calls("c", "read_file", `{"path":"a"}`))(ctx, q, yield)
		})
	}
	if out := r.run("Work."); out.Reason != agent.MaxTurns || r.told() != 0 {
		t.Errorf("%s after %d turns, told %d times", out.Reason, out.Turns, r.told())
	}
}

// Waiting for a job that prints nothing is no loop, as long as it is waiting. A
// slow command may be a wait: it gets more rounds, but not any number of them.
func TestLoopWaiting(t *testing.T) {
	quick := func(int) time.Duration { return time.Millisecond }
	long := func(int) time.Duration { return 2 * time.Second }
	for name, tc := range map[string]struct {
		takes       func(n int) time.Duration
		spec        tool.Spec
		fails       bool
		end         agent.Reason
		turns, told int
	}{
		"waits":                 {long, tool.Spec{Name: "wait", Waits: true}, false, agent.MaxTurns, 50, 0},
		"does not wait":         {quick, tool.Spec{Name: "wait", Waits: true}, false, agent.Loop, 5, 1},
		"is slow":               {long, tool.Spec{Name: "sh"}, false, agent.Loop, 20, 1},
		"is slow now and then":  {func(n int) time.Duration { return time.Duration(n%2) * time.Second }, tool.Spec{Name: "sh"}, false, agent.Loop, 8, 1},
		"slows down":            {func(n int) time.Duration { return time.Duration(n/4) * time.Second }, tool.Spec{Name: "sh"}, false, agent.Loop, 8, 1},
		"is slow and fails":     {long, tool.Spec{Name: "sh"}, true, agent.Loop, 40, 1},
		"fails at once":         {quick, tool.Spec{Name: "sh"}, true, agent.Loop, 10, 1},
		"waits for people":      {long, tool.Spec{Name: "ask_user_question", Waits: true}, false, agent.Loop, 5, 1},
		"is slow for one round": {func(n int) time.Duration { return time.Duration(1-min(n, 1)) * time.Second }, tool.Spec{Name: "sh"}, false, agent.Loop, 6, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, n := newRig(t, tool.Direct), -1
				r.add(&fake{tc.spec, false, func(context.Context, *tool.Invocation) (tool.Result, error) {
					n++
					time.Sleep(tc.takes(n))
					if tc.fails {
						return tool.Fail(tool.CodeFailed, "not there after %d looks", n), nil
					}
					return tool.Text("still running"), nil
				}})
				r.opt.Limits.Turns = 50
				r.model.turns, r.model.repeats = []turn{events(calls("c", tc.spec.Name, `{}`))}, true
				if out := r.run("Wait."); out.Reason != tc.end || out.Turns != tc.turns || r.told() != tc.told {
					t.Errorf("%s after %d turns, told %d times: %v", out.Reason, out.Turns, r.told(), out.Err)
				}
			})
		})
	}
}

// A long text that is cut lies in another file each time; it is the same text.
func TestLoopSpilled(t *testing.T) {
	r := newRig(t, tool.Direct)
	r.add(&fake{tool.Spec{Name: "long"}, true, func(context.Context, *tool.Invocation) (tool.Result, error) {
		return tool.Text(strings.Repeat("x", 100)), nil
	}})
	spilled := 0
	r.opt.Sched.ModelChars = 50
	r.opt.Sched.Spill = func(string, string) (string, error) {
		spilled++
		return fmt.Sprintf("/spill/%d", spilled), nil
	}
	r.model.turns, r.model.repeats = []turn{events(calls("c", "long", `{}`))}, true
	if out := r.run("Work."); out.Reason != agent.Loop || spilled != 5 {
		t.Errorf("%s after %d turns, %d files", out.Reason, out.Turns, spilled)
	}
}

// A tool that changes after its declaration was sent is not called by the old
// one; the model is sent the new one and may call it then.
func TestToolChangesAfterItWasDeclared(t *testing.T) {
	r := newRig(t, tool.Direct)
	say := func(description string) *fake {
		return &fake{tool.Spec{Name: "say", Description: description, Input: []byte(`{"type":"object"}`)}, true,
			func(context.Context, *tool.Invocation) (tool.Result, error) { return tool.Text("said"), nil }}
	}
	r.add(say("old"))
	emit := r.opt.Emit
	r.opt.Emit = func(e agent.Event) {
		if asked, ok := e.(agent.Asked); ok && asked.Turn == 1 { // the request is made
			if err := r.reg.Replace(func(sp *tool.Spec) bool { return sp.Name == "say" }, say("new")); err != nil {
				t.Error(err)
			}
		}
		emit(e)
	}
	r.model.turns = append(r.model.turns, events(calls("a", "say", `{}`)), events(calls("b", "say", `{}`)), events(llm.Text{Text: "Done."}))
	if out := r.run("Speak."); out.Reason != agent.Finished {
		t.Fatal(out.Reason, out.Err)
	}
	var got []string
	for _, m := range r.agent.History() {
		for _, res := range m.Results {
			got = append(got, strings.TrimSpace(res.Code+" "+res.Parts[0].Text))
		}
	}
	want := []string{"STALE_TOOL the definition of say changed after it was declared to you, so nothing was run; the new one is declared now: read it and repeat the call", "said"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
