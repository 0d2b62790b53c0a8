package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

// The denials that an Outcome lists, and the bytes of their arguments. A program
// can be denied ten thousand times.
const (
	maxDenials     = 1000
	maxDenialBytes = 1 << 20
)

// slow is how long the body of a call has to run to count as waiting.
const slow = time.Second

// structuredOutput is the control that ends a run whose answer has a schema.
const structuredOutput = "structured_output"

// A ledger counts the calls of one run, nested ones under their own names, and
// remembers of them what the run is judged by (ruling 12).
type ledger struct {
	limit int // of calls; 0: none

	mu      sync.Mutex
	made    int
	live    map[string]liveCall
	turn    sample // of this turn's calls
	denials []denied
	bytes   int // of the denials' arguments
	answer  json.RawMessage
}

// A liveCall is a call that has not settled.
type liveCall struct {
	number int             // in the order of submission; 1 is the first
	args   json.RawMessage // as it was admitted, before hooks
	since  time.Time       // its body began
}

// A denied is a denial and the number of its call.
type denied struct {
	Denial
	number int
}

// see takes an event of a call. kind says what it means when a tool takes long;
// nil is a call of a subagent's, which counts here and repeats nothing of this
// run's.
func (b *ledger) see(e *sched.Event, kind func(name string) pace) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.live == nil {
		b.live = map[string]liveCall{}
	}
	id := e.Call.ID
	switch e.Kind {
	case sched.Started:
		b.made++
		b.live[id] = liveCall{number: b.made, args: e.Call.Args}
	case sched.Running:
		c := b.live[id]
		c.since = e.Time
		b.live[id] = c
	case sched.Settled:
		c, admitted := b.live[id]
		delete(b.live, id)
		if !admitted { // refused at once
			b.made++
			c.number = b.made
		}
		p := working
		if kind != nil {
			if !c.since.IsZero() && e.Time.Sub(c.since) >= slow {
				p = kind(e.Call.Name)
			}
			b.turn.add(e.Call, e.Result, p)
		}
		b.settled(e, c.number)
	}
}

func (b *ledger) settled(e *sched.Event, number int) {
	r := e.Result
	if e.Call.Name == structuredOutput && e.Call.ParentID == "" && r.Status == tool.Success {
		if b.answer = e.Call.Args; r.Data != nil { // of an answer that is no object, what is in it
			b.answer = r.Data
		}
	}
	over := b.limit > 0 && number > b.limit
	if r.Status != tool.Denied || over || len(b.denials) == maxDenials {
		return
	}
	d := Denial{Name: e.Call.Name, CallID: r.CallID, Reason: r.Text(), Unasked: r.Unasked}
	if b.bytes += len(e.Call.Args); b.bytes <= maxDenialBytes {
		d.Args = e.Call.Args
	}
	b.denials = append(b.denials, denied{d, number})
}

// calls is the number of calls so far.
func (b *ledger) calls() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.made
}

// over reports whether a live call is beyond the limit.
func (b *ledger) over(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit > 0 && b.live[id].number > b.limit
}

// admitted returns the arguments of a live call as they were before hooks.
func (b *ledger) admitted(id string) json.RawMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.live[id].args
}

// structured returns the structured answer, if it was given.
func (b *ledger) structured() json.RawMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.answer
}

// restructure forgets the structured answer, so that another has to be given.
func (b *ledger) restructure() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = nil
}

// turned returns what the calls of the turn were, and begins another turn.
func (b *ledger) turned() sample {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.turn
	b.turn = sample{}
	return s
}

// close writes the counts into an outcome.
func (b *ledger) close(out *Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if out.Calls = b.made; b.limit > 0 { // what is beyond it was not even judged
		out.Calls = min(b.made, b.limit)
	}
	slices.SortFunc(b.denials, func(x, y denied) int { return cmp.Compare(x.number, y.number) })
	for _, d := range b.denials {
		out.Denials = append(out.Denials, d.Denial)
	}
}

// budgeted is the session's policy, and before it the limit of calls: nobody is
// asked about a call that is beyond it.
type budgeted struct {
	a     *Agent
	rules sched.Policy // nil allows everything
}

// Decide implements sched.Policy.
func (p budgeted) Decide(ctx context.Context, q *sched.Request) sched.Verdict {
	for r := p.a.current(); r != nil; r = r.above {
		if r.book.over(q.Call.ID) {
			return sched.Verdict{Decision: sched.Deny, By: "limit", Code: tool.CodeCallLimit,
				Reason: fmt.Sprintf("the run has made its %d calls, more are not started", r.book.limit)}
		}
	}
	if p.rules == nil {
		return sched.Verdict{Decision: sched.Allow}
	}
	return p.rules.Decide(ctx, q)
}
