package sched

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"capstan/internal/msg"
	"capstan/internal/schema"
	"capstan/internal/tool"
)

// A job is one call on its path.
type job struct {
	ticket            // its place in the gate
	call    tool.Call // without its token; what every stage sees
	given   string    // the id that the caller knows the call by
	nested  bool
	bridge  bool // it came out of a tool_call
	view    func() *tool.View
	entry   *tool.Entry
	notes   []string      // coercions
	reviews *tool.Reviews // of the agent that calls
	result  *tool.Result
	said    []string // by hooks before the body, to the model
	ran     bool     // the body was entered
	by      *program // that made the call; nil for a model's
	// owed says that the finalizer has to see the result (ruling 4).
	owed    bool
	told    []*tool.Entry // definitions that the result gives the model
	settled bool          // nothing is observed any more; guarded by Runtime.observing
}

func (j *job) fail(r tool.Result) { j.result = &r }

func (j *job) aborted() {
	j.fail(tool.Fail(tool.CodeAbortedBefore, "%s was cancelled before it was started", j.call.Name))
}

func (j *job) request() *Request {
	return &Request{Call: j.traced(), Entry: j.entry, Access: j.access}
}

// submit resolves and validates one call and gives it its place in the gate,
// or leaves the refusal in the job. Its order of refusals is that of ruling 4.
// No hook, rule, person or guard has seen the call when it is refused here.
func (rt *Runtime) submit(ctx context.Context, view func() *tool.View, turn *group, by *program, c tool.Call) *job {
	given, shown := c.ID, c.Shown
	refusal := rt.origin(&c, by)
	j := &job{call: c, given: given, view: view, result: refusal, nested: by != nil, by: by, reviews: &rt.reviews}
	if given == "" { // every nested one: its id was made here
		j.given = c.ID
	}
	j.group = turn
	if refusal != nil {
		return j
	}
	v, aborted := j.view(), ctx.Err() != nil
	if aborted || c.Fault != "" || !j.callable(v) {
		if j.refuse(v, aborted); j.result != nil {
			return j
		}
	}
	if j.entry, j.result = j.resolve(v); j.result != nil {
		j.owed = false
		return j
	}
	j.owed = true
	if j.outdated(shown) {
		return j
	}
	if j.result = j.validate("%s was not run: %v"); j.result != nil {
		return j
	}
	j.access = access(j.entry.Tool(), j.traced())
	j.waits = j.entry.Spec().Waits || j.entry.Spec().Class == tool.Gateway
	rt.observe(j, Event{Kind: Started, Notes: j.notes})
	rt.gate.join(&j.ticket)
	return j
}

// outdated refuses a model's call that was written by another definition than the
// one that would run: as it was declared to the model. What a program calls, and
// what came out of tool_call, is held to what the model found (resolve).
func (j *job) outdated(shown *tool.Entry) bool {
	if shown == nil || j.bridge || j.nested || j.entry.Same(shown) {
		return false
	}
	j.fail(tool.Fail(tool.CodeStale, "the definition of %s changed after it was declared to you, so nothing was run; the new one is declared now: read it and repeat the call", j.call.Name))
	return true
}

// callable says whether the call may run under its own name.
func (j *job) callable(v *tool.View) bool {
	direct, nested := v.Reach(j.call.Name)
	if j.nested {
		return nested
	}
	return direct && j.call.Name != tool.ToolCallName
}

// refuse gives the refusals that come before the schema is looked at: a call
// that could not be read, arguments that are not JSON, and a caller that is
// gone. What is left is a name that Resolve refuses, or what a call of tool_call
// became.
func (j *job) refuse(v *tool.View, aborted bool) {
	var unusable *tool.Result
	args, bad := schema.Parse(j.call.Args)
	if bad == nil {
		j.call.Args = args
		if !j.nested && j.call.Fault == "" {
			j.call, j.bridge, unusable = v.Unwrap(j.call)
		}
	}
	j.entry = v.Visible(j.call.Name)
	j.owed = j.entry != nil && (j.bridge || j.callable(v) || aborted && !j.nested)
	switch {
	case j.call.Fault != "":
		j.fail(tool.Fail(tool.CodeInvalidArgs, "%s", j.call.Fault))
	case bad != nil:
		j.fail(tool.Fail(tool.CodeInvalidArgs, "%s was not run: %v", j.call.Name, bad))
	case aborted:
		j.aborted()
	case unusable != nil:
		j.result = unusable
	}
}

// resolve asks a view for the tool that the call may run. When the model was told
// another definition than the one that would run, nothing does. A tool that is
// declared by itself is held to its declaration instead (outdated).
func (j *job) resolve(v *tool.View) (e *tool.Entry, refusal *tool.Result) {
	if j.bridge {
		e, refusal = v.Bridge(&j.call)
	} else {
		e, refusal = v.Resolve(&j.call, j.nested)
	}
	if refusal == nil && (j.bridge || j.nested) && j.reviews.Stale(e) {
		stale := tool.Fail(tool.CodeStale, "%s", stale(e, v, j.nested))
		return nil, &stale
	}
	return e, refusal
}

// stale says what to do about a definition that is not the one which the model
// was told.
func stale(e *tool.Entry, v *tool.View, nested bool) string {
	name, then, by := e.Spec().Name, "repeat the call", tool.ToolSearchName+" returned"
	if nested {
		then, by = "write a program by it", "you were told"
	}
	if nested && !v.Searches() {
		return fmt.Sprintf("the definition of %s is not the one that %s any more, so nothing was run; the new one is declared now: read it and %s", name, by, then)
	}
	return fmt.Sprintf("the definition of %s is not the one that %s any more, so nothing was run; search for select:%s again, read it and %s", name, by, name, then)
}

// traced is the call as observers may keep it.
func (j *job) traced() *tool.Call {
	c := j.call
	return &c
}

// validate makes the arguments canonical, or returns the refusal, whose format
// is given the tool's name and the faults.
func (j *job) validate(format string) *tool.Result {
	args, notes, err := j.entry.Validate(j.call.Args)
	if err == nil {
		j.call.Args, j.notes = args, append(j.notes, notes...)
		err = check(j.entry.Tool(), j.traced())
	}
	if err != nil {
		r := tool.Fail(tool.CodeInvalidArgs, format, j.call.Name, err)
		return &r
	}
	return nil
}

// check asks a tool for what its schema cannot say of the arguments.
func check(t tool.Tool, c *tool.Call) (err error) {
	ck, ok := t.(tool.Checker)
	if !ok {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("checking the arguments failed: %v", p)
		}
	}()
	return ck.Check(c)
}

// access asks a tool what a call touches. Only an explicit yes lets a call
// overlap; a panic is a no (ruling 8). What it returns is ours: the gate counts
// with it.
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
	return owned(ac.Access(c))
}

// owned is a copy whose lists nobody else has.
func owned(a tool.Access) tool.Access {
	a.Reads, a.Writes = slices.Clone(a.Reads), slices.Clone(a.Writes)
	return a
}

// carry takes an admitted call from its hooks to its result. Its slot and its
// paths are its own until everything about it is done, since a hook or a
// finalizer may still work on the same file.
func (rt *Runtime) carry(ctx context.Context, j *job) tool.Result {
	rt.permit(ctx, j)
	if j.result == nil {
		if err := rt.gate.enter(ctx, &j.ticket); err != nil {
			j.aborted()
		} else {
			rt.body(ctx, j)
		}
	}
	r := rt.settle(ctx, j)
	if !j.abandoned {
		rt.gate.leave(&j.ticket)
	}
	return r
}

// body runs the tool, if the call may still run.
func (rt *Runtime) body(ctx context.Context, j *job) {
	v := j.view()
	now, refusal := j.resolve(v)
	switch {
	case ctx.Err() != nil: // it came together with the permission to start
		j.aborted()
		return
	case refusal != nil: // the mode or the scope changed on the way
		j.result = refusal
		return
	case !now.Same(j.entry):
		j.fail(tool.Fail(tool.CodeStale, "the definition of %s changed while the call was waiting, so it was not run; look at the tool again and repeat the call", j.call.Name))
		return
	}
	j.entry = now // the same definition, and the tool that stands behind it now
	if rt.begin(ctx, j); j.result != nil {
		return
	}
	j.ran = true
	rt.observe(j, Event{Kind: Running})
	done := make(chan tool.Result, 1)
	go func() {
		var r tool.Result
		returned := false
		defer func() {
			if !returned { // it called runtime.Goexit
				r = tool.Fail(tool.CodeFailed, "%s failed: it ended without a result", j.call.Name)
			}
			done <- r
		}()
		r, returned = rt.invoke(ctx, j, v), true
	}()
	select {
	case r := <-done:
		j.result = &r
	case <-ctx.Done():
		rt.outlast(j, done)
	}
}

// begin lets a session record that the call starts.
func (rt *Runtime) begin(ctx context.Context, j *job) {
	if rt.opt.Begin == nil {
		return
	}
	err := func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%v", p)
			}
		}()
		return rt.opt.Begin(ctx, j.request())
	}()
	switch {
	case err != nil:
		j.fail(tool.Fail(tool.CodeNotStarted, "%s was not run: recording that it starts failed: %v", j.call.Name, err))
	case ctx.Err() != nil: // recording takes a while
		j.aborted()
	}
}

// outlast waits for a cancelled body to end, but not for ever. A gateway has
// twice as long, since it ends only after the calls that it made; a subagent,
// whose calls may be gateways, three times.
func (rt *Runtime) outlast(j *job, done <-chan tool.Result) {
	grace := rt.opt.Grace
	switch {
	case j.gateway():
		grace *= 2
	case j.entry.Spec().Name == tool.AgentName:
		grace *= 3
	}
	timer := time.NewTimer(grace)
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
		j.fail(tool.Fail(tool.CodeAborted, "%s was cancelled but did not stop within %v and was given up on; what it still does is not known", j.call.Name, grace))
	}
}

func (j *job) gateway() bool { return j.entry.Spec().Class == tool.Gateway }

func (rt *Runtime) invoke(ctx context.Context, j *job, v *tool.View) (r tool.Result) {
	defer func() {
		if p := recover(); p != nil {
			r = tool.Fail(tool.CodeFailed, "%s failed: %v", j.call.Name, p)
		}
	}()
	inv := &tool.Invocation{Call: j.traced(), View: v, Access: owned(j.access), Progress: func(p msg.Part) {
		rt.observe(j, Event{Kind: Progress, Part: p})
	}, Yield: func() func() {
		rt.gate.yield(&j.ticket)
		return sync.OnceFunc(func() { rt.gate.retake(&j.ticket) })
	}}
	if j.gateway() {
		return rt.gateway(ctx, j, inv)
	}
	res, err := j.entry.Tool().Run(ctx, inv)
	return outcome(ctx, j, res, err)
}

func outcome(ctx context.Context, j *job, r tool.Result, err error) tool.Result {
	switch {
	case err == nil:
		return r
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return tool.Fail(tool.CodeAborted, "%s was cancelled while it ran", j.call.Name)
	case ctx.Err() != nil: // what else went wrong went wrong because of that, or does not matter any more
		return tool.Fail(tool.CodeAborted, "%s was cancelled while it ran: %v", j.call.Name, err)
	case errors.Is(err, context.DeadlineExceeded):
		return tool.Fail(tool.CodeTimeout, "%s ran out of time: %v", j.call.Name, err)
	}
	return tool.Fail(tool.CodeFailed, "%s failed: %v", j.call.Name, err)
}

// gateway runs a tool that makes calls. When it returns, its token is void and
// every call that it made has been cancelled and has settled.
func (rt *Runtime) gateway(ctx context.Context, j *job, inv *tool.Invocation) (r tool.Result) {
	ctx, cancel := context.WithCancel(ctx)
	p := rt.mint(j)
	var dispatched waiter
	defer func() {
		cancel()
		rt.revoke(p)
		dispatched.wait()
		r.Said = append(r.Said, rt.heard(p)...)
	}()
	inv.Dispatch = func(given context.Context, calls []tool.Call) <-chan tool.Settled {
		both, stop := context.WithCancel(given)
		unhook := context.AfterFunc(ctx, stop)
		if ctx.Err() != nil {
			stop() // now, and not when AfterFunc gets round to it
		}
		release := dispatched.hold() // before they start, so that none is missed
		return rt.start(both, p.view, p, p.sign(calls), func() {
			unhook()
			stop()
			release()
		})
	}
	res, err := j.entry.Tool().Run(ctx, inv)
	return outcome(ctx, j, res, err)
}

// settle completes the result: hooks after, finalizer, output budget,
// observers. It runs once for every call that was ever submitted.
func (rt *Runtime) settle(ctx context.Context, j *job) tool.Result {
	r := j.result
	r.Parts = slices.Clip(r.Parts) // what is added is not added to a slice of the tool's
	complete(r)
	f, final := j.finalizer()
	if j.ran && len(rt.opt.Hooks) > 0 || final {
		after, stop := lingering(ctx, rt.opt.Grace)
		defer stop()
		if j.ran {
			rt.hooksAfter(after, j, r)
		}
		if final {
			finalize(after, f, j, r)
		}
		complete(r)
	}
	rt.tell(j, r)
	if r.Status == tool.Success {
		j.told = r.Told
	}
	r.Told = nil
	r.CallID, r.Name = j.given, j.call.Name
	r.Notes = j.notes
	rt.budget(j, r)
	rt.observe(j, Event{Kind: Settled, Result: r})
	rt.unname(j.call.ID)
	return *r
}

// tell passes on what hooks said of a call to the model that caused it: with the
// call's own result, or with that of the exec whose program made it, for a program
// may print nothing of a result.
func (rt *Runtime) tell(j *job, r *tool.Result) {
	said := slices.Concat(j.said, r.Said)
	r.Said = nil
	if len(said) == 0 {
		return
	}
	if j.by != nil {
		rt.mu.Lock()
		defer rt.mu.Unlock()
		for _, s := range said {
			j.by.say("of " + j.call.Name + " (" + j.call.ID + "): " + s)
		}
		return
	}
	for _, s := range said {
		r.Parts = append(r.Parts, msg.TextPart("["+s+"]"))
	}
}

// maxSaid bounds what the hooks of one program's calls say, in bytes.
const maxSaid = 32 << 10

// say keeps what a hook said of a call that the program made. The caller holds mu.
func (p *program) say(s string) {
	if p.size += len(s); p.size > maxSaid {
		p.unsaid++
		return
	}
	p.said = append(p.said, s)
}

// heard is what hooks said of the calls of a program that has ended.
func (rt *Runtime) heard(p *program) []string {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	said := p.said
	if p.unsaid > 0 {
		said = append(said, fmt.Sprintf("%d more remarks of hooks were left out", p.unsaid))
	}
	return said
}

// complete gives a result that somebody else wrote a status and a code that
// programs know.
func complete(r *tool.Result) {
	switch r.Status {
	case "", tool.Success:
		r.Status, r.Code = tool.Success, ""
		return
	case tool.Failed, tool.Denied, tool.Cancelled:
	default:
		r.Status = tool.Failed
	}
	if r.Code == "" {
		r.Code = map[tool.Status]string{
			tool.Failed: tool.CodeFailed, tool.Denied: tool.CodeDenied, tool.Cancelled: tool.CodeAborted,
		}[r.Status]
	}
}

// lingering returns a context for what has to be done after the body, cancelled
// or not: it ends only a while after ctx does.
func lingering(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	after, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-after.Done():
		}
	})
	return after, func() {
		unhook()
		cancel()
	}
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
