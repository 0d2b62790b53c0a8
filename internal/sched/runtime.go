package sched

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"capstan/internal/tool"
)

// A Runtime runs the calls of one session: one set of slots, one policy, one
// approver (ruling 18). Its subagents share it; two sessions do not.
type Runtime struct {
	opt  Options
	gate gate

	mu     sync.Mutex
	tokens map[*tool.Parent]*program // the exec calls that run now
	nextID int

	observing sync.Mutex // events reach Observe one at a time
}

// A program is one running exec as the executor knows it.
type program struct {
	id    string // of the exec call
	view  func() *tool.View
	group *group
	calls int // dispatched so far; guarded by Runtime.mu
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
	return &Runtime{opt: o, gate: gate{slots: o.Slots}, tokens: map[*tool.Parent]*program{}}
}

// maxNestedBytes is the most that one nested result carries (ruling 16).
const maxNestedBytes = 16 << 20

// Start submits calls that belong together, one model turn or one batch of a
// program, and returns the channel on which each result is sent as it settles.
// The channel is buffered for all of them and closed after the last, so a
// caller may walk away; what it started is then bounded by ctx alone.
//
// view gives the current view of the agent that calls. It is asked when a call
// is submitted and again just before its body. A call that carries a Parent is
// judged by the view of the exec that the token was minted for.
//
// Every call gets exactly one result. A call without an ID is given one.
func (rt *Runtime) Start(ctx context.Context, view func() *tool.View, calls []tool.Call) <-chan tool.Settled {
	out := make(chan tool.Settled, len(calls))
	turn := &group{inOrder: true}
	var running sync.WaitGroup
	jobs := make([]*job, len(calls))
	for i := range calls { // in submission order: places in the queues are taken here
		jobs[i] = rt.submit(ctx, view, turn, calls[i])
	}
	for i, j := range jobs {
		if j.result != nil { // refused already
			out <- tool.Settled{Index: i, Result: rt.settle(ctx, j)}
			continue
		}
		running.Go(func() { out <- tool.Settled{Index: i, Result: rt.carry(ctx, j)} })
	}
	go func() {
		running.Wait()
		close(out)
	}()
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
func (rt *Runtime) mint(j *job) (*tool.Parent, *program) {
	p := &program{id: j.call.ID, view: j.view, group: &group{}}
	token := new(tool.Parent)
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.tokens[token] = p
	return token, p
}

// revoke ends a token's validity.
func (rt *Runtime) revoke(token *tool.Parent) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	delete(rt.tokens, token)
}

// origin finds out who makes a call, by its token alone, and completes the
// call's trace. It returns the program, or nil when a model calls.
func (rt *Runtime) origin(c *tool.Call) (*program, *tool.Result) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if c.Parent == nil {
		c.Source = tool.FromModel
		if c.ID == "" {
			rt.nextID++
			c.ID = "call_" + strconv.Itoa(rt.nextID)
		}
		return nil, nil
	}
	c.Source = tool.FromProgram
	p := rt.tokens[c.Parent]
	if p == nil {
		r := tool.Fail(tool.CodeInvalidParent, "%s was called in the name of an exec that is not running", c.Name)
		return nil, &r
	}
	p.calls++
	if c.ID == "" {
		c.ID = fmt.Sprintf("%s/%d", p.id, p.calls)
	}
	c.ParentID = p.id
	return p, nil
}

func (rt *Runtime) observe(e Event) {
	if rt.opt.Observe == nil {
		return
	}
	rt.observing.Lock()
	defer rt.observing.Unlock()
	e.Time = time.Now()
	rt.opt.Observe(e)
}

// waiter waits for goroutines that may be started until the wait begins.
type waiter struct {
	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

// run starts f. After wait has begun nobody waits for it any more: it then
// only hands out refusals.
func (w *waiter) run(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		go f()
		return
	}
	w.wg.Go(f)
}

func (w *waiter) wait() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.wg.Wait()
}
