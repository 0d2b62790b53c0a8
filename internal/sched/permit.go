package sched

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"capstan/internal/msg"
	"capstan/internal/schema"
	"capstan/internal/tool"
)

// permit asks hooks, rules, the person and the guards, in this order. Whoever
// of them fails has denied the call. Observers are told how it was decided.
func (rt *Runtime) permit(ctx context.Context, j *job) {
	d := &Judgement{Stage: StageHook}
	defer rt.decided(j, d)
	was := j.call.Args
	d.Hook = rt.hooksBefore(ctx, j)
	d.Changed = !bytes.Equal(was, j.call.Args)
	if j.result != nil {
		return
	}
	verdict := d.Hook
	if d.Hook.Decision < Deny {
		d.Rules = rt.decide(ctx, j.request())
		verdict, d.Stage = combine(d.Rules, d.Hook)
	}
	switch {
	case ctx.Err() != nil:
		j.aborted()
	case verdict.Decision >= Deny && verdict.Code != "":
		j.fail(tool.Fail(verdict.Code, "%s was not run%s%s", j.call.Name, because(verdict.Reason), suggest(verdict)))
	case verdict.Decision >= Deny:
		j.deny("%s was denied%s%s", because(verdict.Reason), suggest(verdict))
	case verdict.Decision == Ask:
		rt.ask(ctx, j, verdict, d)
	}
	for _, g := range rt.opt.Guards {
		if j.result != nil {
			return
		}
		if why := guard(ctx, g, j); why != "" {
			d.Stage = StageGuard
			j.deny("%s was denied: %s", why)
		}
	}
}

func (j *job) deny(format string, a ...any) {
	j.fail(tool.Fail(tool.CodeDenied, format, append([]any{j.call.Name}, a...)...))
}

// decide asks the policy. One that has no opinion has not allowed anything.
func (rt *Runtime) decide(ctx context.Context, r *Request) (v Verdict) {
	if rt.opt.Policy == nil {
		return Verdict{Decision: Allow}
	}
	defer func() {
		if p := recover(); p != nil {
			v = Verdict{Decision: Deny, Reason: fmt.Sprintf("the rules failed: %v", p)}
		}
	}()
	if v = rt.opt.Policy.Decide(ctx, r); v.Decision <= Abstain {
		v.Decision = Ask
	}
	return v
}

// combine lets a hook's allow skip the question, never a deny or what could be
// one; a hook's ask or deny is stricter than an allow (ruling 11). It returns
// whose the verdict is too.
func combine(rule, hook Verdict) (Verdict, string) {
	switch {
	case rule.Decision >= Deny || hook.Decision <= Abstain:
		return rule, StageRules
	case hook.Decision >= Deny:
		return hook, StageHook
	case rule.Decision == Ask && (rule.Firm || hook.Decision == Ask):
		return rule, StageRules
	}
	return hook, StageHook
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

func suggest(v Verdict) string {
	if v.Suggestion == "" {
		return ""
	}
	return ". " + v.Suggestion
}

func (rt *Runtime) answer(ctx context.Context, q *Question) (a Answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return rt.opt.Approver.Approve(ctx, q)
}

func guard(ctx context.Context, g Guard, j *job) (why string) {
	defer func() {
		if p := recover(); p != nil {
			why = fmt.Sprintf("a guard failed: %v", p)
		}
	}()
	return g(ctx, j.request())
}

// hooksBefore runs the hooks up to the first that denies. The strictest verdict
// wins; rewritten arguments are validated again and shown to the hooks that
// follow.
func (rt *Runtime) hooksBefore(ctx context.Context, j *job) Verdict {
	var strictest Verdict
	for _, h := range rt.opt.Hooks {
		v, err := guarded(func() (HookVerdict, error) { return h.Before(ctx, j.request()) })
		if ctx.Err() != nil {
			j.aborted()
			return strictest
		}
		if err != nil {
			v = HookVerdict{Verdict: Verdict{Decision: Deny, Reason: fmt.Sprintf("a hook failed: %v", err)}}
		}
		j.said = append(j.said, v.Said...)
		if v.Decision > strictest.Decision {
			strictest = v.Verdict
		}
		if strictest.Decision >= Deny {
			return strictest
		}
		if v.Args != nil {
			if rt.rewrite(j, v.Args, "a hook"); j.result != nil {
				strictest.By = v.By
				return strictest
			}
		}
	}
	return strictest
}

// guarded turns the panic of a hook into an error.
func guarded(ask func() (HookVerdict, error)) (v HookVerdict, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return ask()
}

// hooksAnswer asks the hooks that may answer in place of the person, up to the
// first that denies. Arguments that one of them rewrote are judged by the rules
// again: what these deny stays denied, and it is they who said so.
func (rt *Runtime) hooksAnswer(ctx context.Context, j *job, v Verdict, d *Judgement) (said Verdict) {
	for _, h := range rt.opt.Hooks {
		a, ok := h.(Answerer)
		if !ok {
			continue
		}
		got, err := guarded(func() (HookVerdict, error) { return a.Answer(ctx, &Question{Request: *j.request(), Verdict: v}) })
		if ctx.Err() != nil {
			j.aborted()
			return said
		}
		if err != nil {
			got.Verdict = Verdict{Decision: Deny, Reason: fmt.Sprintf("a hook failed: %v", err)}
		}
		j.said = append(j.said, got.Said...)
		if got.Decision != Ask && got.Decision > said.Decision && (got.Decision != Allow || !v.Firm || got.Args != nil) {
			said = got.Verdict
		}
		if said.Decision >= Deny {
			return said
		}
		if got.Args == nil {
			continue
		}
		if rt.rewrite(j, got.Args, "a hook"); j.result != nil {
			said.By = got.By
			return said
		}
		if d.Rules = rt.decide(ctx, j.request()); d.Rules.Decision >= Deny {
			return said
		}
		if v.Firm = d.Rules.Firm; v.Firm {
			said = Verdict{}
		}
	}
	return said
}

// rewrite takes the arguments that somebody else wrote in place of the caller's.
func (rt *Runtime) rewrite(j *job, args json.RawMessage, who string) {
	parsed, err := schema.Parse(args)
	if err != nil {
		j.fail(tool.Fail(tool.CodeInvalidArgs, "%s was not run: %s rewrote its arguments to what is not usable JSON: %v", j.call.Name, who, err))
		return
	}
	was := j.call.Args
	j.call.Args = parsed
	if j.result = j.validate("%s was not run, since " + who + " rewrote its arguments to what is not valid: %v"); j.result != nil {
		j.call.Args = was // the caller's own go into the record
		return
	}
	rt.gate.move(&j.ticket, access(j.entry.Tool(), j.traced()))
}

func (rt *Runtime) hooksAfter(ctx context.Context, j *job, r *tool.Result) {
	for _, h := range rt.opt.Hooks {
		if err := after(ctx, h, j, r); err != nil {
			r.Parts = append(slices.Clip(r.Parts), msg.TextPart(fmt.Sprintf("[a hook after %s failed: %v]", j.call.Name, err)))
		}
	}
}

func after(ctx context.Context, h Hook, j *job, r *tool.Result) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return h.After(ctx, j.request(), r)
}
