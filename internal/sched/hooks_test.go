package sched_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

// answering is a hook that may answer in place of a person.
type answering struct {
	hookStage
	says func(*sched.Question) (sched.HookVerdict, error)
}

func (a answering) Answer(_ context.Context, q *sched.Question) (sched.HookVerdict, error) {
	a.saw("answerer", q.Call)
	return a.says(q)
}

// TestAnswerer: a hook may answer what a person would be asked, and no more than
// that. Ruling 11, S0-012 S0-165
func TestAnswerer(t *testing.T) {
	yes := func(context.Context, *sched.Question) (sched.Answer, error) { return sched.Answer{Allow: true}, nil }
	for _, tc := range []struct {
		name string
		rule sched.Verdict
		// judge, when not nil, is the rules' word on arguments that a hook rewrote.
		judge func(args string) sched.Verdict
		says  func(*sched.Question) (sched.HookVerdict, error)
		guard string
		want  outcome
	}{
		{name: "is not asked about what is allowed", rule: sched.Verdict{Decision: sched.Allow},
			want: outcome{tool.Success, "", `ran with {"n":1}`, []string{"started", "before", "policy", "guard", "running", "body", "after", "finalizer", "result"}}},
		{name: "is not asked about what is denied", rule: sched.Verdict{Decision: sched.Deny, Reason: "no"},
			want: outcome{tool.Denied, "DENIED", "work was denied: no", []string{"started", "before", "policy", "finalizer", "result"}}},
		{name: "allows, so no person is asked",
			says: func(*sched.Question) (sched.HookVerdict, error) {
				return sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Allow}}, nil
			},
			want: outcome{tool.Success, "", `ran with {"n":1}`, []string{"started", "before", "policy", "answerer", "guard", "running", "body", "after", "finalizer", "result"}}},
		{name: "allows, and a guard still denies", guard: "frozen",
			says: func(*sched.Question) (sched.HookVerdict, error) {
				return sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Allow}}, nil
			},
			want: outcome{tool.Denied, "DENIED", "work was denied: frozen", []string{"started", "before", "policy", "answerer", "guard", "finalizer", "result"}}},
		{name: "denies",
			says: func(*sched.Question) (sched.HookVerdict, error) {
				return sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Deny, Reason: "not today"}}, nil
			},
			want: outcome{tool.Denied, "DENIED", "work was denied: not today", []string{"started", "before", "policy", "answerer", "finalizer", "result"}}},
		{name: "fails, which is a no",
			says: func(*sched.Question) (sched.HookVerdict, error) {
				return sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Allow}}, errors.New("lost")
			},
			want: outcome{tool.Denied, "DENIED", "work was denied: a hook failed: lost", []string{"started", "before", "policy", "answerer", "finalizer", "result"}}},
		{name: "panics, which is a no",
			says: func(*sched.Question) (sched.HookVerdict, error) { panic("lost") },
			want: outcome{tool.Denied, "DENIED", "work was denied: a hook failed: lost", []string{"started", "before", "policy", "answerer", "finalizer", "result"}}},
		{name: "has no opinion, so the person is asked, and its words reach the model",
			says: func(*sched.Question) (sched.HookVerdict, error) {
				return sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Ask}, Said: []string{"mind the gap"}}, nil
			},
			want: outcome{tool.Success, "", "ran with {\"n\":1}\n[mind the gap]", []string{"started", "before", "policy", "answerer", "approver", "guard", "running", "body", "after", "finalizer", "result"}}},
		{name: "rewrites what it allows",
			says: func(*sched.Question) (sched.HookVerdict, error) {
				return sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Allow}, Args: json.RawMessage(`{"n": 2}`)}, nil
			},
			want: outcome{tool.Success, "", `ran with {"n":2}`, []string{"started", "before", "policy", "answerer", "policy", "guard", "running", "body", "after", "finalizer", "result"}}},
		{name: "rewrites it to what the rules deny",
			judge: func(args string) sched.Verdict {
				if args == `{"n":2}` {
					return sched.Verdict{Decision: sched.Deny, Reason: "two is too many"}
				}
				return sched.Verdict{Decision: sched.Ask}
			},
			says: func(*sched.Question) (sched.HookVerdict, error) {
				return sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Allow}, Args: json.RawMessage(`{"n": 2}`)}, nil
			},
			want: outcome{tool.Denied, "DENIED", "work was denied: two is too many", []string{"started", "before", "policy", "answerer", "policy", "finalizer", "result"}}},
		{name: "allows what a deny rule could hold for, so the person is asked", rule: sched.Verdict{Decision: sched.Ask, Firm: true},
			says: func(*sched.Question) (sched.HookVerdict, error) {
				return sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Allow}}, nil
			},
			want: outcome{tool.Success, "", `ran with {"n":1}`, []string{"started", "before", "policy", "answerer", "approver", "guard", "running", "body", "after", "finalizer", "result"}}},
		{name: "rewrites it to such a thing",
			judge: func(args string) sched.Verdict {
				return sched.Verdict{Decision: sched.Ask, Firm: args == `{"n":2}`}
			},
			says: func(*sched.Question) (sched.HookVerdict, error) {
				return sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Allow}, Args: json.RawMessage(`{"n": 2}`)}, nil
			},
			want: outcome{tool.Success, "", `ran with {"n":2}`, []string{"started", "before", "policy", "answerer", "policy", "approver", "guard", "running", "body", "after", "finalizer", "result"}}},
		{name: "rewrites such a thing to what is none",
			judge: func(args string) sched.Verdict {
				return sched.Verdict{Decision: sched.Ask, Firm: args != `{"n":2}`}
			},
			says: func(*sched.Question) (sched.HookVerdict, error) {
				return sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Allow}, Args: json.RawMessage(`{"n": 2}`)}, nil
			},
			want: outcome{tool.Success, "", `ran with {"n":2}`, []string{"started", "before", "policy", "answerer", "policy", "guard", "running", "body", "after", "finalizer", "result"}}},
		{name: "rewrites it to what is not valid",
			says: func(*sched.Question) (sched.HookVerdict, error) {
				return sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Allow}, Args: json.RawMessage(`{"n": "x"}`)}, nil
			},
			want: outcome{tool.Failed, "INVALID_ARGS", "work was not run, since a hook rewrote its arguments to what is not valid", []string{"started", "before", "policy", "answerer", "finalizer", "result"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, tool.Direct)
			if r.rule = tc.rule; tc.rule.Decision == sched.Abstain {
				r.rule = sched.Verdict{Decision: sched.Ask}
			}
			r.guard, r.answer = tc.guard, yes
			r.add(r.worker())
			r.opt.Approver = approver{r}
			r.opt.Hooks = []sched.Hook{answering{hookStage{r}, tc.says}}
			r.opt.Policy = policyFunc(func(q *sched.Request) sched.Verdict {
				r.saw("policy", q.Call)
				if tc.judge != nil {
					return tc.judge(string(q.Call.Args))
				}
				return r.rule
			})
			got := r.run(t.Context(), tool.Call{Name: "work", Args: json.RawMessage(`{"n":1}`)})[0]
			text := got.Text()
			if tc.want.Code == "INVALID_ARGS" {
				text, _, _ = strings.Cut(text, ":")
			}
			if d := cmp.Diff(tc.want, outcome{got.Status, got.Code, text, r.stages("work")}); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			r.settledOnce()
		})
	}
}

// TestSaid: what hooks say of a call reaches the model that caused it, once: with
// the call's own result, or with that of its exec, whatever the program prints. A
// program's result is as its tool gave it. S0-165 S0-252 S0-253
func TestSaid(t *testing.T) {
	r := newRig(t, tool.Code)
	r.add(r.worker())
	r.hookFn = func(q *sched.Request) (sched.HookVerdict, error) {
		return sched.HookVerdict{Said: []string{"before " + q.Call.Name}}, nil
	}
	r.after = func(_ context.Context, q *sched.Request, res *tool.Result) error {
		res.Said = append(res.Said, "after "+q.Call.Name)
		return nil
	}
	many := false
	var nested []tool.Result
	exec := r.program(t.Context(), func(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
		calls := []tool.Call{{Name: "work", Args: json.RawMessage(`{"n":1}`)}}
		if many {
			calls = slices.Repeat(calls, 2000)
		}
		nested = collect(inv.Dispatch(ctx, calls), len(calls))
		return tool.Text("printed"), nil
	})
	id := exec.CallID
	want := "printed\n[before exec]\n[of work (" + id + "/1): before work]\n[of work (" + id + "/1): after work]\n[after exec]"
	if got := exec.Text(); got != want {
		t.Errorf("exec: %q, want %q", got, want)
	}
	if got := nested[0].Text(); got != `ran with {"n":1}` || nested[0].Said != nil {
		t.Errorf("nested: %q %q", got, nested[0].Said)
	}
	many = true
	last := r.run(t.Context(), call(tool.ExecName))[0]
	if !strings.Contains(last.Text(), "more remarks of hooks were left out") || len(last.Text()) > 64<<10 {
		t.Errorf("%d bytes: …%q", len(last.Text()), last.Text()[max(0, len(last.Text())-200):])
	}
}
