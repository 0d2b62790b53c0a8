package sched

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"time"

	"capstan/internal/tool"
)

// ask puts the call to the hooks that may answer, and to the person. An approval
// that nobody can give is a denial at once (BUG-AH-01).
func (rt *Runtime) ask(ctx context.Context, j *job, v Verdict, d *Judgement) {
	was := j.call.Args
	said := rt.hooksAnswer(ctx, j, v, d)
	d.Changed = d.Changed || !bytes.Equal(was, j.call.Args)
	if j.result != nil || said.Decision == Allow || said.Decision >= Deny {
		d.Stage, d.Hook = StageHook, said
	}
	switch {
	case j.result == nil && d.Rules.Decision >= Deny: // the arguments that a hook gave it
		d.Stage = StageRules
		j.deny("%s was denied%s%s", because(d.Rules.Reason), suggest(d.Rules))
		return
	case j.result != nil || said.Decision == Allow:
		return
	case said.Decision >= Deny:
		j.deny("%s was denied%s%s", because(said.Reason), suggest(said))
		return
	}
	if d.Rules.Decision == Ask { // of the arguments as they are by now
		v = d.Rules
	}
	if rt.opt.Approver == nil {
		d.Stage = StageNobody
		j.unasked(v)
		return
	}
	q := &Question{Request: *j.request(), Verdict: v, Hooked: d.Hook.Decision == Ask}
	q.Judge = func(ctx context.Context) Verdict { return rt.decide(ctx, &q.Request) }
	d.Stage, d.Asked = StagePerson, q
	rt.observe(j, Event{Kind: Waiting})
	began := time.Now()
	answer, err := rt.answer(ctx, d.Asked)
	d.Answer, d.Waited = &answer, time.Since(began)
	if answer.Ruled {
		d.Stage = StageRules
	}
	switch {
	case ctx.Err() != nil:
		j.aborted()
	case err != nil:
		answer.Allow, answer.Grants = false, nil // none of them is in force
		j.deny("%s was denied: asking for approval failed: %v", err)
	case answer.Unasked:
		answer.Allow, d.Stage = false, StageNobody
		j.unasked(v)
	case !answer.Allow && answer.Ruled:
		j.deny("%s was denied%s", because(answer.Reason))
	case !answer.Allow:
		said := ""
		if answer.Reason != "" {
			said = ", who says: " + answer.Reason
		}
		j.deny("%s was denied by the user%s", said)
	case answer.Args != nil && !sameJSON(answer.Args, j.call.Args):
		rt.reworded(ctx, j, answer.Args, d)
	}
}

// unasked denies a call that nobody can be asked about.
func (j *job) unasked(v Verdict) {
	j.deny("%s needs approval and nobody can be asked%s%s", because(v.Reason), suggest(v))
	j.result.Unasked = true
}

// reworded takes the arguments that the person wrote in place of those that they
// were shown. They need no second yes, but the rules' no is as good as before.
func (rt *Runtime) reworded(ctx context.Context, j *job, args json.RawMessage, d *Judgement) {
	d.Changed = true
	if rt.rewrite(j, args, "the user"); j.result != nil {
		return
	}
	d.Rules = rt.decide(ctx, j.request())
	switch {
	case ctx.Err() != nil:
		j.aborted()
	case d.Rules.Decision >= Deny:
		d.Stage = StageRules
		j.deny("%s was denied, with the arguments that the user gave it%s%s", because(d.Rules.Reason), suggest(d.Rules))
	}
}

// sameJSON reports whether two texts hold the same value, whatever the order of
// names. Numbers are compared by their digits.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var values [2]any
	for i, raw := range []json.RawMessage{a, b} {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if d.Decode(&values[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

// decided tells observers how it was decided whether the call may run. A call
// that was cancelled before was not judged to the end.
func (rt *Runtime) decided(j *job, d *Judgement) {
	d.Allowed = j.result == nil
	if !d.Allowed {
		if j.result.Code == tool.CodeAbortedBefore {
			return
		}
		d.Reason = j.result.Text()
	}
	rt.observe(j, Event{Kind: Decided, Decided: d})
}
