package sched_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

// TestJudgements is what observers are told of how each call was decided: who had
// the last word, what every stage said, what was shown, who answered and how long
// that took.
//
// S0-250 S0-251 S0-256
func TestJudgements(t *testing.T) {
	allow := sched.Verdict{Decision: sched.Allow, By: "permissions.allow \"work\""}
	ask := sched.Verdict{Decision: sched.Ask, Reason: "it writes", By: "approval mode default"}
	no := sched.Verdict{Decision: sched.Deny, Reason: "never", By: "permissions.deny \"work\""}
	question := func(hooked bool, v sched.Verdict) *sched.Question {
		return &sched.Question{Request: sched.Request{Call: &tool.Call{ID: "call_1", Name: "work", Source: tool.FromModel, Args: json.RawMessage(`{"n":1}`)}}, Verdict: v, Hooked: hooked}
	}
	yes := sched.Answer{Allow: true, By: "the user at the terminal", Grants: []sched.Grant{{Layer: "session", List: "allow", Rule: "work"}}}
	for _, tc := range []struct {
		name    string
		prepare func(*rig)
		want    sched.Judgement
	}{
		{"a rule allows", func(r *rig) { r.rule = allow },
			sched.Judgement{Allowed: true, Stage: sched.StageRules, Rules: allow}},
		{"a rule denies, whatever a hook allows", func(r *rig) { r.rule, r.hook.Decision = no, sched.Allow },
			sched.Judgement{Stage: sched.StageRules, Hook: sched.Verdict{Decision: sched.Allow}, Rules: no, Reason: "work was denied: never"}},
		{"a hook denies, and no rule is asked", func(r *rig) { r.hook.Verdict = no },
			sched.Judgement{Stage: sched.StageHook, Hook: no, Reason: "work was denied: never"}},
		{"a hook allows", func(r *rig) { r.rule, r.hook.Decision = ask, sched.Allow },
			sched.Judgement{Allowed: true, Stage: sched.StageHook, Hook: sched.Verdict{Decision: sched.Allow}, Rules: ask}},
		{"the person says yes", func(r *rig) {
			r.rule, r.answer = ask, func(context.Context, *sched.Question) (sched.Answer, error) {
				time.Sleep(time.Minute) // in the bubble
				return yes, nil
			}
		}, sched.Judgement{Allowed: true, Stage: sched.StagePerson, Rules: ask, Asked: question(false, ask), Answer: &yes, Waited: time.Minute}},
		{"a hook wants it asked", func(r *rig) {
			r.rule, r.hook.Decision = allow, sched.Ask
			r.answer = func(context.Context, *sched.Question) (sched.Answer, error) { return sched.Answer{Reason: "no"}, nil }
		}, sched.Judgement{Stage: sched.StagePerson, Hook: sched.Verdict{Decision: sched.Ask}, Rules: allow,
			Asked: question(true, sched.Verdict{Decision: sched.Ask}), Answer: &sched.Answer{Reason: "no"}, Reason: "work was denied by the user, who says: no"}},
		{"nobody is there", func(r *rig) { r.rule, r.opt.Approver = ask, nil },
			sched.Judgement{Stage: sched.StageNobody, Rules: ask, Reason: "work needs approval and nobody can be asked: it writes"}},
		{"who was there has gone", func(r *rig) {
			r.rule, r.answer = ask, func(context.Context, *sched.Question) (sched.Answer, error) {
				return sched.Answer{Allow: true, Unasked: true}, nil
			}
		}, sched.Judgement{Stage: sched.StageNobody, Rules: ask, Asked: question(false, ask), Answer: &sched.Answer{Unasked: true}, Reason: "work needs approval and nobody can be asked: it writes"}},
		{"a rule that is new answers", func(r *rig) {
			r.rule, r.answer = ask, func(context.Context, *sched.Question) (sched.Answer, error) {
				return sched.Answer{Ruled: true, Reason: "never", By: no.By}, nil
			}
		}, sched.Judgement{Stage: sched.StageRules, Rules: ask, Asked: question(false, ask), Answer: &sched.Answer{Ruled: true, Reason: "never", By: no.By}, Reason: "work was denied: never"}},
		{"a guard has the last word", func(r *rig) { r.rule, r.guard = allow, "the freeze is on" },
			sched.Judgement{Stage: sched.StageGuard, Rules: allow, Reason: "work was denied: the freeze is on"}},
		{"a hook rewrites", func(r *rig) { r.rule, r.hook.Args = allow, json.RawMessage(`{"n":2}`) },
			sched.Judgement{Allowed: true, Stage: sched.StageRules, Rules: allow, Changed: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, tool.Direct)
				r.opt.Approver = approver{r}
				r.add(r.worker())
				tc.prepare(r)
				res := r.run(t.Context(), tool.Call{Name: "work", Args: json.RawMessage(`{"n":1}`)})[0]
				var got []sched.Judgement
				for _, e := range r.events {
					if e.Kind == sched.Decided {
						got = append(got, *e.Decided)
					}
				}
				if diff := cmp.Diff([]sched.Judgement{tc.want}, got, cmpopts.IgnoreFields(sched.Request{}, "Entry", "Access"), cmpopts.IgnoreFields(sched.Question{}, "Judge")); diff != "" {
					t.Errorf("want -, got +:\n%s", diff)
				}
				if unasked := tc.want.Stage == sched.StageNobody; res.Unasked != unasked || (res.Status == tool.Success) != tc.want.Allowed {
					t.Errorf("%+v", res)
				}
			})
		})
	}
}

// The last word is that of who said no in the end, whoever was asked before and said
// yes; that they did stays on the record.
//
// S0-250 S0-256
func TestLastWord(t *testing.T) {
	const person, rule, other = "the user at the terminal", "permissions.deny \"work\"", "PermissionRequest hook"
	ask := sched.Verdict{Decision: sched.Ask, Reason: "it writes", By: "approval mode default"}
	says := func(a sched.Answer) func(context.Context, *sched.Question) (sched.Answer, error) {
		return func(context.Context, *sched.Question) (sched.Answer, error) { return a, nil }
	}
	unlucky := func(q *sched.Request) sched.Verdict {
		if string(q.Call.Args) == `{"n":13}` {
			return sched.Verdict{Decision: sched.Deny, Reason: "unlucky", By: rule}
		}
		return ask
	}
	hookSays := func(v sched.Verdict, args string) func(*sched.Question) sched.HookVerdict {
		return func(*sched.Question) sched.HookVerdict {
			return sched.HookVerdict{Verdict: v, Args: json.RawMessage(args)}
		}
	}
	allowed := sched.Verdict{Decision: sched.Allow, By: other}
	type last struct{ Stage, By, AnsweredBy, Reason string }
	for name, tc := range map[string]struct {
		prepare func(*rig)
		answer  func(*sched.Question) sched.HookVerdict
		want    last
	}{
		"the person says yes": {func(r *rig) { r.answer = says(sched.Answer{Allow: true, By: person}) }, nil,
			last{"person", person, person, ""}},
		"the person says no": {func(r *rig) { r.answer = says(sched.Answer{By: person}) }, nil,
			last{"person", person, person, "work was denied by the user"}},
		"a guard denies what the person allowed": {func(r *rig) { r.guard, r.answer = "frozen", says(sched.Answer{Allow: true, By: person}) }, nil,
			last{"guard", "", person, "work was denied: frozen"}},
		"a rule denies what the person wrote": {func(r *rig) {
			r.answer = says(sched.Answer{Allow: true, By: person, Args: json.RawMessage(`{"n":13}`)})
		}, nil, last{"rules", rule, person, "work was denied, with the arguments that the user gave it: unlucky"}},
		"a new rule answers": {func(r *rig) { r.answer = says(sched.Answer{Ruled: true, By: "a new rule", Reason: "never"}) }, nil,
			last{"rules", "a new rule", "", "work was denied: never"}},
		"nobody is there": {func(r *rig) { r.opt.Approver = nil }, nil,
			last{"nobody", ask.By, "", "work needs approval and nobody can be asked: it writes"}},
		"who was there has gone": {func(r *rig) { r.answer = says(sched.Answer{Unasked: true, By: person}) }, nil,
			last{"nobody", ask.By, "", "work needs approval and nobody can be asked: it writes"}},
		"a hook answers": {func(*rig) {}, hookSays(allowed, ""), last{"hook", other, "", ""}},
		"a rule denies what a hook wrote and allowed": {func(*rig) {}, hookSays(allowed, `{"n":13}`),
			last{"rules", rule, "", "work was denied: unlucky"}},
		"a rule denies what a hook wrote": {func(*rig) {}, hookSays(sched.Verdict{}, `{"n":13}`),
			last{"rules", rule, "", "work was denied: unlucky"}},
		"a hook writes what the person allows": {func(r *rig) { r.answer = says(sched.Answer{Allow: true, By: person}) }, hookSays(sched.Verdict{}, `{"n":2}`),
			last{"person", person, person, ""}},
		"a hook writes what is not valid": {func(*rig) {}, hookSays(allowed, `{"n":[]}`),
			last{"hook", other, "", "invalid"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, tool.Direct)
			r.opt.Approver, r.opt.Policy = approver{r}, policyFunc(unlucky)
			r.add(r.worker())
			tc.prepare(r)
			if tc.answer != nil {
				r.opt.Hooks = append(r.opt.Hooks, standIn{tc.answer})
			}
			r.run(t.Context(), tool.Call{Name: "work", Args: json.RawMessage(`{"n":1}`)})
			var got []last
			for _, e := range r.events {
				if j := e.Decided; j != nil {
					if tc.want.Reason == "invalid" && j.Reason != "" {
						j.Reason = "invalid"
					}
					got = append(got, last{j.Stage, j.By(), j.AnsweredBy(), j.Reason})
				}
			}
			if diff := cmp.Diff([]last{tc.want}, got); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

// standIn is a hook that answers in place of the person.
type standIn struct {
	say func(*sched.Question) sched.HookVerdict
}

func (standIn) Before(context.Context, *sched.Request) (sched.HookVerdict, error) {
	return sched.HookVerdict{}, nil
}

func (standIn) After(context.Context, *sched.Request, *tool.Result) error { return nil }

func (a standIn) Answer(_ context.Context, q *sched.Question) (sched.HookVerdict, error) {
	v := a.say(q)
	if len(v.Args) == 0 {
		v.Args = nil
	}
	return v, nil
}

// TestReworded is a yes with other arguments than were shown: they are validated
// and judged again, and an echo of what was shown changes no byte of it.
//
// S0-251
func TestReworded(t *testing.T) {
	for name, tc := range map[string]struct {
		args, status, text string
	}{
		"an echo":            {` { "n" : 1 } `, "success", `ran with {"n":1}`},
		"another number":     {`{"n":2}`, "success", `ran with {"n":2}`},
		"what is not valid":  {`{"n":[]}`, "error", ""},
		"what is no JSON":    {`{"n":1,"n":2}`, "error", ""},
		"what a rule denies": {`{"n":13}`, "denied", "work was denied, with the arguments that the user gave it: unlucky"},
		"what a rule asks":   {`{"n":7}`, "success", `ran with {"n":7}`}, // the person wrote it: that is the yes
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, tool.Direct)
			r.opt.Approver = approver{r}
			r.opt.Policy = policyFunc(func(q *sched.Request) sched.Verdict {
				if string(q.Call.Args) == `{"n":13}` {
					return sched.Verdict{Decision: sched.Deny, Reason: "unlucky"}
				}
				return sched.Verdict{Decision: sched.Ask}
			})
			r.add(r.worker())
			r.answer = func(context.Context, *sched.Question) (sched.Answer, error) {
				return sched.Answer{Allow: true, Args: json.RawMessage(tc.args)}, nil
			}
			got := r.run(t.Context(), tool.Call{Name: "work", Args: json.RawMessage(`{"n":1}`)})[0]
			if string(got.Status) != tc.status || tc.text != "" && got.Text() != tc.text {
				t.Errorf("%s %q, want %s %q", got.Status, got.Text(), tc.status, tc.text)
			}
		})
	}
}
