package sched

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"capstan/internal/msg"
	"capstan/internal/schema"
	"capstan/internal/tool"
)

// A job is one call on its path.
type job struct {
	ticket           // its place in the gate
	call   tool.Call // without its token; what every stage sees
	nested bool
	view   func() *tool.View
	entry  *tool.Entry
	notes  []string // coercions
	result *tool.Result
	ran    bool // the body was entered
	// owed says that the finalizer has to see the result (ruling 4).
	owed bool
}

func (j *job) fail(r tool.Result) { j.result = &r }

func (j *job) request() *Request {
	return &Request{Call: &j.call, Entry: j.entry, Access: j.access}
}

// submit resolves and validates one call and gives it its place in the gate,
// or leaves the refusal in the job. Its order of refusals is that of ruling 4.
// No hook, rule, person or guard has seen the call when it is refused here.
func (rt *Runtime) submit(ctx context.Context, view func() *tool.View, turn *group, c tool.Call) *job {
	p, refusal := rt.origin(&c)
	c.Parent = nil // authority ends here: nothing downstream gets to see it
	j := &job{call: c, view: view, result: refusal}
	if refusal != nil {
		return j
	}
	j.group = turn
	if p != nil {
		j.nested, j.view, j.group = true, p.view, p.group
	}
	v := j.view()
	visible, aborted := v.Visible(c.Name), ctx.Err() != nil
	collapsed := v.Collapsed(c.Name, j.nested)
	j.entry, j.owed = visible, visible != nil && (!collapsed || aborted)
	args, err := schema.Parse(c.Args)
	switch {
	case err != nil:
		j.fail(tool.Fail(tool.CodeInvalidArgs, "the arguments of %s are not usable JSON, so nothing was run: %v", c.Name, err))
		return j
	case aborted:
		j.fail(tool.Fail(tool.CodeAbortedBefore, "%s was cancelled before it was started", c.Name))
		return j
	}
	j.call.Args = args
	if j.entry, j.result = v.Resolve(&j.call, j.nested); j.result != nil {
		j.owed = false
		return j
	}
	if j.validate(); j.result != nil {
		return j
	}
	j.access = access(j.entry.Tool(), &j.call)
	j.waits = j.entry.Spec().Waits || j.entry.Spec().Class == tool.Gateway
	rt.observe(Event{Kind: Started, Call: j.traced(), Notes: j.notes})
	rt.gate.join(&j.ticket)
	return j
}

// traced is the call as observers may keep it.
func (j *job) traced() *tool.Call {
	c := j.call
	return &c
}

func (j *job) validate() {
	args, notes, err := j.entry.Validate(j.call.Args)
	if err != nil {
		j.fail(tool.Fail(tool.CodeInvalidArgs, "%s was not run: %v", j.call.Name, err))
		return
	}
	j.call.Args, j.notes = args, notes
}

// access asks a tool what a call touches. Only an explicit yes lets a call
// overlap; a panic is a no (ruling 8).
func access(t tool.Tool, c *tool.Call) (a tool.Access) {
	ac, ok := t.(tool.Accessor)
	if !ok {
		return tool.Access{Outside: true}
	}
	defer func() {
		if recover() != nil {
			a = tool.Access{Outside: true}
		}
	}()
	return ac.Access(c)
}

// carry takes an admitted call from its hooks to its result.
func (rt *Runtime) carry(ctx context.Context, j *job) tool.Result {
	rt.permit(ctx, j)
	if j.result == nil {
		if err := rt.gate.enter(ctx, &j.ticket); err != nil {
			j.fail(tool.Fail(tool.CodeAbortedBefore, "%s was cancelled before it was started", j.call.Name))
		} else {
			rt.body(ctx, j)
		}
	}
	if !j.abandoned {
		rt.gate.leave(&j.ticket)
	}
	return rt.settle(ctx, j)
}

// permit asks hooks, rules, the person and the guards, in this order.
func (rt *Runtime) permit(ctx context.Context, j *job) {
	hooked := rt.hooksBefore(ctx, j)
	if j.result != nil {
		return
	}
	verdict := Verdict{Decision: Allow}
	if rt.opt.Policy != nil {
		verdict = rt.opt.Policy.Decide(ctx, j.request())
	}
	verdict = combine(verdict, hooked)
	switch {
	case ctx.Err() != nil:
		j.fail(tool.Fail(tool.CodeAbortedBefore, "%s was cancelled before it was started", j.call.Name))
	case verdict.Decision == Deny:
		j.fail(tool.Fail(tool.CodeDenied, "%s was denied: %s%s", j.call.Name, verdict.Reason, suggest(verdict)))
	case verdict.Decision == Ask:
		rt.ask(ctx, j, verdict)
	}
	for _, g := range rt.opt.Guards {
		if j.result != nil {
			return
		}
		if why := g(ctx, j.request()); why != "" {
			j.fail(tool.Fail(tool.CodeDenied, "%s was denied: %s", j.call.Name, why))
		}
	}
}

// combine lets a hook's allow skip the question, never a deny; a hook's ask or
// deny is stricter than an allow (ruling 11).
func combine(rule, hook Verdict) Verdict {
	switch {
	case rule.Decision == Deny || hook.Decision == Abstain:
		return rule
	case hook.Decision == Deny || hook.Decision == Allow:
		return hook
	case rule.Decision == Ask:
		return rule
	}
	return hook
}

func suggest(v Verdict) string {
	if v.Suggestion == "" {
		return ""
	}
	return ". " + v.Suggestion
}

func (rt *Runtime) ask(ctx context.Context, j *job, v Verdict) {
	if rt.opt.Approver == nil {
		j.fail(tool.Fail(tool.CodeDenied, "%s needs approval and nobody can be asked: %s%s", j.call.Name, v.Reason, suggest(v)))
		j.result.Unasked = true
		return
	}
	rt.observe(Event{Kind: Waiting, Call: j.traced()})
	answer, err := rt.opt.Approver.Approve(ctx, &Question{Request: *j.request(), Verdict: v})
	switch {
	case ctx.Err() != nil:
		j.fail(tool.Fail(tool.CodeAbortedBefore, "%s was cancelled before it was started", j.call.Name))
	case err != nil:
		j.fail(tool.Fail(tool.CodeDenied, "%s was denied: asking for approval failed: %v", j.call.Name, err))
	case !answer.Allow && answer.Reason != "":
		j.fail(tool.Fail(tool.CodeDenied, "%s was denied by the user, who says: %s", j.call.Name, answer.Reason))
	case !answer.Allow:
		j.fail(tool.Fail(tool.CodeDenied, "%s was denied by the user", j.call.Name))
	}
}

// hooksBefore runs the hooks. The strictest verdict wins; rewritten arguments
// are validated again and shown to the hooks that follow.
func (rt *Runtime) hooksBefore(ctx context.Context, j *job) Verdict {
	var strictest Verdict
	for _, h := range rt.opt.Hooks {
		v, err := h.Before(ctx, j.request())
		if ctx.Err() != nil {
			j.fail(tool.Fail(tool.CodeAbortedBefore, "%s was cancelled before it was started", j.call.Name))
			return strictest
		}
		if err != nil {
			v = HookVerdict{Verdict: Verdict{Decision: Deny, Reason: fmt.Sprintf("a hook failed: %v", err)}}
		}
		if v.Args != nil {
			if rt.rewrite(j, v.Args); j.result != nil {
				return strictest
			}
		}
		if v.Decision > strictest.Decision {
			strictest = v.Verdict
		}
	}
	return strictest
}

func (rt *Runtime) rewrite(j *job, args json.RawMessage) {
	parsed, err := schema.Parse(args)
	if err != nil {
		j.fail(tool.Fail(tool.CodeInvalidArgs, "a hook rewrote the arguments of %s to something that is not usable JSON: %v", j.call.Name, err))
		return
	}
	j.call.Args = parsed
	if j.validate(); j.result != nil {
		return
	}
	rt.gate.move(&j.ticket, access(j.entry.Tool(), &j.call))
}

// body runs the tool, if the call may still run.
func (rt *Runtime) body(ctx context.Context, j *job) {
	now, refusal := j.view().Resolve(&j.call, j.nested)
	switch {
	case refusal != nil: // the mode or the scope changed on the way
		j.result = refusal
		return
	case !now.Same(j.entry):
		j.fail(tool.Fail(tool.CodeStale, "the definition of %s changed while the call was waiting, so it was not run; look at the tool again and repeat the call", j.call.Name))
		return
	}
	j.ran = true
	rt.observe(Event{Kind: Running, Call: j.traced()})
	done := make(chan tool.Result, 1)
	go func() {
		r := rt.invoke(ctx, j)
		done <- r
	}()
	select {
	case r := <-done:
		j.result = &r
		return
	case <-ctx.Done():
	}
	timer := time.NewTimer(rt.opt.Grace)
	defer timer.Stop()
	select {
	case r := <-done:
		j.result = &r
	case <-timer.C:
		// Its slot is free again, its paths are not: it may still write.
		j.abandoned = true
		rt.gate.abandon(&j.ticket)
		go func() {
			<-done
			rt.gate.leave(&j.ticket)
		}()
		j.fail(tool.Fail(tool.CodeAborted, "%s was cancelled but did not stop within %v and was given up on; what it still does is not known", j.call.Name, rt.opt.Grace))
	}
}

func (rt *Runtime) invoke(ctx context.Context, j *job) (r tool.Result) {
	defer func() {
		if p := recover(); p != nil {
			r = tool.Fail(tool.CodeFailed, "%s failed: %v", j.call.Name, p)
		}
	}()
	inv := &tool.Invocation{Call: j.traced(), View: j.view(), Progress: func(p msg.Part) {
		rt.observe(Event{Kind: Progress, Call: j.traced(), Part: p})
	}}
	if j.entry.Spec().Class == tool.Gateway || j.call.Name == tool.ExecName {
		return rt.gateway(ctx, j, inv)
	}
	res, err := j.entry.Tool().Run(ctx, inv)
	return outcome(ctx, j, res, err)
}

func outcome(ctx context.Context, j *job, r tool.Result, err error) tool.Result {
	if err == nil {
		return r
	}
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		r := tool.Fail(tool.CodeAborted, "%s was cancelled while it ran", j.call.Name)
		return r
	}
	return tool.Fail(tool.CodeFailed, "%s failed: %v", j.call.Name, err)
}

// gateway runs a tool that makes calls. When it returns, its token is void and
// every call that it made has been cancelled and has settled.
func (rt *Runtime) gateway(ctx context.Context, j *job, inv *tool.Invocation) tool.Result {
	ctx, cancel := context.WithCancel(ctx)
	token, p := rt.mint(j)
	var dispatched waiter
	defer func() {
		cancel()
		rt.revoke(token)
		dispatched.wait()
	}()
	inv.Dispatch = func(ctx2 context.Context, calls []tool.Call) <-chan tool.Settled {
		for i := range calls {
			calls[i].Parent, calls[i].ID = token, ""
		}
		both, stop := context.WithCancel(ctx2)
		unhook := context.AfterFunc(ctx, stop)
		in := rt.Start(both, p.view, calls)
		out := make(chan tool.Settled, len(calls))
		dispatched.run(func() {
			defer stop()
			defer unhook()
			defer close(out)
			for s := range in {
				out <- s
			}
		})
		return out
	}
	r, err := j.entry.Tool().Run(ctx, inv)
	return outcome(ctx, j, r, err)
}

// settle completes the result: hooks after, finalizer, output budget,
// observers. It runs once for every call that was ever submitted.
func (rt *Runtime) settle(ctx context.Context, j *job) tool.Result {
	r := j.result
	if r.Status == "" {
		r.Status = tool.Success
	}
	after := context.WithoutCancel(ctx)
	if j.ran {
		for _, h := range rt.opt.Hooks {
			if err := h.After(after, j.request(), r); err != nil {
				r.Parts = append(r.Parts, msg.TextPart(fmt.Sprintf("[a hook after %s failed: %v]", j.call.Name, err)))
			}
		}
	}
	if f, ok := j.finalizer(); ok {
		finalize(after, f, j, r)
	}
	r.CallID, r.Name = j.call.ID, j.call.Name
	r.Notes = j.notes
	rt.budget(j, r)
	rt.observe(Event{Kind: Settled, Call: j.traced(), Result: r})
	return *r
}

func (j *job) finalizer() (tool.Finalizer, bool) {
	if !j.owed || j.entry == nil {
		return nil, false
	}
	f, ok := j.entry.Tool().(tool.Finalizer)
	return f, ok
}

func finalize(ctx context.Context, f tool.Finalizer, j *job, r *tool.Result) {
	defer func() {
		if p := recover(); p != nil {
			r.Parts = append(r.Parts, msg.TextPart(fmt.Sprintf("[the finalizer of %s failed: %v]", j.call.Name, p)))
		}
	}()
	f.Finalize(ctx, j.traced(), r)
}
