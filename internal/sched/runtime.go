package sched

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"capstan/internal/tool"
)

// A Runtime runs the calls of one session: one set of slots, one order on each
// path (ruling 18). Its subagents share it; two sessions do not.
type Runtime struct {
	opt     Options
	reviews tool.Reviews // what the model of this agent was told
	agent   string       // the subagent whose calls these are; empty: the session's own
	*shared
}

// shared is what binds all calls of a session, whichever agent makes them.
type shared struct {
	gate gate

	mu     sync.Mutex
	tokens map[*tool.Parent]*program // the exec calls that run now
	live   map[string]bool           // the ids of the calls that have not settled
	nextID int

	observing sync.Mutex // events reach Observe one at a time
}

// A program is one running exec as the executor knows it.
type program struct {
	token *tool.Parent // never leaves the executor
	id    string       // of the exec call
	view  func() *tool.View
	group *group
	calls int // dispatched so far; guarded by Runtime.mu, as what follows

	said   []string // by hooks, of its calls
	size   int      // of said and of what was left out, in bytes
	unsaid int
}

// New returns a Runtime.
func New(o Options) *Runtime {
	if o.Slots <= 0 {
		o.Slots = 10
	}
	if o.ModelChars <= 0 {
		o.ModelChars = 30_000
	}
	if o.NestedBytes <= 0 || o.NestedBytes > maxNestedBytes {
		o.NestedBytes = maxNestedBytes
	}
	if o.Grace <= 0 {
		o.Grace = 5 * time.Second
	}
	return &Runtime{opt: o, shared: &shared{gate: gate{slots: o.Slots}, tokens: map[*tool.Parent]*program{}, live: map[string]bool{}}}
}

// Options returns what the Runtime was made with, its defaults filled in: where
// those of a subagent begin.
func (rt *Runtime) Options() Options { return rt.opt }

// Sub returns the Runtime of a subagent: its calls are judged, recorded and told
// of by options of their own, and bound by the same slots and the same order on
// paths as those of rt. Call.Agent names it in all that is told. Slots is not
// looked at: there is one number for all.
func (rt *Runtime) Sub(agent string, o Options) *Runtime {
	sub := New(o)
	sub.agent, sub.shared = agent, rt.shared
	return sub
}

// Reviews returns what the model was told of tools, for who leads the
// conversation: to restore it, or to say what a request declares.
func (rt *Runtime) Reviews() *tool.Reviews { return &rt.reviews }

// Start submits calls that belong together, one model turn or one batch of a
// program, and returns the channel on which each result is sent as it settles.
// The channel is buffered for all of them and closed after the last, so a
// caller may walk away; what it started is then bounded by ctx alone.
//
// view gives the current view of the agent that calls. It is asked when a call
// is submitted and again just before its body.
//
// The calls are a model's. A call that carries a Parent is refused, whatever
// token that is: only the Dispatch of the Invocation that a token was minted
// for makes calls in its name.
//
// Every call gets exactly one result. A call without an ID is given one. A call
// whose ID another live call has goes through the stages under one of its own,
// and its result still has that which the caller gave it.
func (rt *Runtime) Start(ctx context.Context, view func() *tool.View, calls []tool.Call) <-chan tool.Settled {
	return rt.start(ctx, view, nil, calls, func() {})
}

// start is Start, for the calls of a model or, when by is not nil, of a program.
// done is called after the last result.
func (rt *Runtime) start(ctx context.Context, view func() *tool.View, by *program, calls []tool.Call, done func()) <-chan tool.Settled {
	out := make(chan tool.Settled, len(calls))
	var turn *group
	if by != nil {
		turn = by.group
	} else {
		turn = &group{inOrder: true}
	}
	jobs := make([]*job, len(calls))
	for i := range calls { // in submission order: places in the queues are taken here
		jobs[i] = rt.submit(ctx, view, turn, by, calls[i])
	}
	var left atomic.Int64
	left.Store(int64(len(jobs)) + 1)
	finish := func() {
		if left.Add(-1) == 0 {
			if by == nil { // only now can the model read what its searches found
				for _, j := range jobs {
					rt.reviews.Tell(j.told...)
				}
			}
			close(out)
			done()
		}
	}
	for i, j := range jobs {
		if j.result != nil { // refused already
			out <- tool.Settled{Index: i, Result: rt.settle(ctx, j)}
			finish()
			continue
		}
		go func() {
			defer finish()
			out <- tool.Settled{Index: i, Result: rt.carry(ctx, j)}
		}()
	}
	finish()
	return out
}

// Run is Start, with the results in the order of the calls.
func (rt *Runtime) Run(ctx context.Context, view func() *tool.View, calls []tool.Call) []tool.Result {
	results := make([]tool.Result, len(calls))
	for s := range rt.Start(ctx, view, calls) {
		results[s.Index] = s.Result
	}
	return results
}

// mint issues the token of an exec call that is about to run.
func (rt *Runtime) mint(j *job) *program {
	p := &program{token: new(tool.Parent), id: j.call.ID, view: j.view, group: &group{}}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.tokens[p.token] = p
	return p
}

// revoke ends the validity of its token.
func (rt *Runtime) revoke(p *program) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	delete(rt.tokens, p.token)
}

// sign returns the calls with the program's token, but for those that bring
// one of their own. The tool that dispatches them does not get to see it.
func (p *program) sign(calls []tool.Call) []tool.Call {
	signed := slices.Clone(calls)
	for i := range signed {
		signed[i].ID = "" // nested ids begin with their parent's
		if signed[i].Parent == nil {
			signed[i].Parent = p.token
		}
	}
	return signed
}

// origin completes a call's trace and takes its token away: authority ends
// here. It refuses a call whose token is not that of the program on whose
// behalf it came, or whose program does not run any more.
func (rt *Runtime) origin(c *tool.Call, by *program) *tool.Result {
	token := c.Parent
	c.Parent, c.Shown, c.Agent = nil, nil, rt.agent
	rt.mu.Lock()
	defer rt.mu.Unlock()
	valid := token == nil
	if by == nil {
		c.Source = tool.FromModel
	} else {
		by.calls++
		c.Source, c.ParentID, c.ID = tool.FromProgram, by.id, by.id+"/"+strconv.Itoa(by.calls)
		valid = token == by.token && rt.tokens[token] == by
	}
	rt.name(c)
	if valid {
		return nil
	}
	r := tool.Fail(tool.CodeInvalidParent, "%s was called in the name of an exec that is not running, or not this one", c.Name)
	return &r
}

// name gives a call an id that no other live call has: models repeat theirs,
// by mistake or on purpose, and what is told apart by them are approvals,
// traces and jobs. The caller holds mu.
func (rt *Runtime) name(c *tool.Call) {
	prefix := c.ID + "#"
	if c.ID == "" {
		prefix = "call_"
	}
	for c.ID == "" || rt.live[c.ID] {
		rt.nextID++
		c.ID = prefix + strconv.Itoa(rt.nextID)
	}
	rt.live[c.ID] = true
}

// unname frees the id of a call that has settled.
func (rt *Runtime) unname(id string) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	delete(rt.live, id)
}

// observe reports what happens to a call, until it has settled.
func (rt *Runtime) observe(j *job, e Event) {
	if rt.opt.Observe == nil {
		return
	}
	e.Call = j.traced()
	rt.observing.Lock()
	defer rt.observing.Unlock()
	if j.settled {
		return // a tool that was given up on, or kept its Progress
	}
	j.settled = e.Kind == Settled
	e.Time = time.Now()
	rt.opt.Observe(e)
}

// waiter waits for what was held before the wait began.
type waiter struct {
	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

// hold makes wait wait until release is called. After wait has begun it does
// nothing: what comes then is refused anyway.
func (w *waiter) hold() (release func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return func() {}
	}
	w.wg.Add(1)
	return w.wg.Done
}

func (w *waiter) wait() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.wg.Wait()
}
