package sched_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

// TestRandomSchedules runs random turns, programs and subagents, with random
// paths, approvals, rewrites, denials and cancellations, and checks each start
// of a body against what ruling 8 says in plain words; that nothing that could
// run is kept waiting; and that every call settles once.
// S0-169 S0-175 S0-194 S3-053 S3-057 S3-059 S0-170
func TestRandomSchedules(t *testing.T) {
	first := rand.Uint64()
	for seed := first; seed != first+schedules; seed++ {
		synctest.Test(t, func(t *testing.T) { newModel(t, seed).run() })
	}
}

// plan is one call of a schedule, and what is known of it so far.
type plan struct {
	id      int
	unit    *unit
	seq     int // its place in the unit
	name    string
	acc     tool.Access
	rewrite *tool.Access
	hook    time.Duration
	ask     time.Duration // 0: nobody is asked
	deny    bool
	lasts   time.Duration
	deaf    bool  // its body does not hear that it is cancelled
	sub     *unit // what an agent does

	movedAt   time.Duration // when the hook rewrote it; -1 before
	allowedAt time.Duration // -1 before
	endedAt   time.Duration // when it was cancelled in its body; -1 before
	started   bool
	inBody    bool
	settled   bool
	final     int
	code      string
}

func (p *plan) waits() bool {
	return p.name == "waiter" || p.name == "agent" || p.name == tool.ExecName
}

// unit is a turn of a model or a program, in which order and exclusion bind.
type unit struct {
	program bool
	calls   []*plan
	batches [][]*plan
	pause   time.Duration // before each batch but the first
	await   []bool        // whether the next batch waits for this one
	cancel  time.Duration // after its start; 0: never
}

type model struct {
	t     *testing.T
	seed  uint64
	rnd   *rand.Rand
	rt    *sched.Runtime
	reg   *tool.Registry
	slots int
	start time.Time

	mu    sync.Mutex
	plans []*plan
}

func newModel(t *testing.T, seed uint64) *model {
	rnd := rand.New(rand.NewPCG(seed, 0))
	m := &model{t: t, seed: seed, rnd: rnd, slots: 1 + rnd.IntN(3), start: time.Now(), reg: &tool.Registry{}}
	m.rt = sched.New(sched.Options{Slots: m.slots, Hooks: []sched.Hook{m}, Policy: policyFunc(m.decide), Approver: modelApprover{m},
		Guards: []sched.Guard{m.guard}, Observe: m.observe})
	input := json.RawMessage(`{"type":"object","properties":{"id":{"type":"integer"},"moved":{"type":"boolean"}},"required":["id"]}`)
	add := func(spec tool.Spec) {
		spec.Input = input
		f := &fake{spec: spec, access: m.access, run: m.body}
		if err := m.reg.Add(&finished{fake: f, finalize: func(_ context.Context, c *tool.Call, _ *tool.Result) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.plan(c).final++
		}}); err != nil {
			t.Fatal(err)
		}
	}
	add(tool.Spec{Name: "work"})
	add(tool.Spec{Name: "waiter", Waits: true})
	add(tool.Spec{Name: "agent", Waits: true})
	add(tool.Spec{Name: tool.ExecName, Waits: true})
	return m
}

func (m *model) errorf(format string, a ...any) {
	m.t.Helper()
	m.t.Errorf("seed %d: "+format, append([]any{m.seed}, a...)...)
}

func (m *model) now() time.Duration { return time.Since(m.start) }

func (m *model) duration() time.Duration {
	return time.Duration(1+m.rnd.IntN(40)) * 100 * time.Millisecond
}

func (m *model) someAccess() tool.Access {
	a := tool.Access{Overlap: m.rnd.IntN(5) > 0}
	for _, p := range []string{"/a", "/b", "/c"} {
		switch m.rnd.IntN(8) {
		case 0:
			a.Reads = append(a.Reads, p)
		case 1:
			a.Writes = append(a.Writes, p)
		case 2:
			a.Reads, a.Writes = append(a.Reads, p), append(a.Writes, p)
		}
	}
	return a
}

func (m *model) newUnit(program bool, depth int) *unit {
	u := &unit{program: program, pause: m.duration()}
	if m.rnd.IntN(4) == 0 {
		u.cancel = m.duration()
	}
	batches := 1
	if program {
		batches = 1 + m.rnd.IntN(3)
	}
	for range batches {
		var batch []*plan
		for range 1 + m.rnd.IntN(5) {
			batch = append(batch, m.newPlan(u, depth))
		}
		u.batches, u.await = append(u.batches, batch), append(u.await, m.rnd.IntN(2) == 0)
	}
	return u
}

func (m *model) newPlan(u *unit, depth int) *plan {
	p := &plan{id: len(m.plans), unit: u, seq: len(u.calls), name: "work", acc: m.someAccess(), lasts: m.duration(), movedAt: -1, allowedAt: -1, endedAt: -1}
	m.plans, u.calls = append(m.plans, p), append(u.calls, p)
	switch m.rnd.IntN(8) {
	case 0:
		p.name = "waiter"
	case 1, 2:
		if depth == 0 && !u.program {
			p.name, p.acc = "agent", tool.Access{Overlap: true}
			p.sub = m.newUnit(false, 1)
		}
	case 3:
		if !u.program {
			p.name, p.acc = tool.ExecName, tool.Access{}
			p.sub = m.newUnit(true, depth)
		}
	}
	if m.rnd.IntN(3) == 0 {
		p.hook = m.duration()
	}
	if m.rnd.IntN(4) == 0 {
		p.ask = m.duration()
	}
	if p.sub == nil && m.rnd.IntN(6) == 0 {
		a := m.someAccess()
		p.rewrite = &a
	}
	p.deny = m.rnd.IntN(10) == 0
	if p.deaf = p.sub == nil && m.rnd.IntN(6) == 0; p.deaf && m.rnd.IntN(2) == 0 {
		p.lasts = 20 * time.Second // longer than anybody waits
	}
	return p
}

func (m *model) run() {
	var units []*unit
	for range 1 + m.rnd.IntN(3) {
		units = append(units, m.newUnit(false, 0))
	}
	late := make([]time.Duration, len(units))
	for i := range late {
		late[i] = time.Duration(m.rnd.IntN(20)) * 100 * time.Millisecond
	}
	var agents sync.WaitGroup
	for i, u := range units {
		agents.Go(func() {
			time.Sleep(late[i])
			m.perform(m.t.Context(), u, func(ctx context.Context, calls []tool.Call) <-chan tool.Settled {
				return m.rt.Start(ctx, m.view, calls)
			})
		})
	}
	over := make(chan struct{})
	go func() { agents.Wait(); close(over) }()
	for tick := time.NewTicker(130 * time.Millisecond); ; {
		select {
		case <-tick.C:
			synctest.Wait()
			m.nothingKeptWaiting()
		case <-over:
			tick.Stop()
			time.Sleep(time.Minute) // what was given up on ends
			m.everythingSettled()
			return
		}
	}
}

func (m *model) view() *tool.View { return m.reg.View(tool.Both, tool.Scope{}) }

// perform makes the calls of a unit. When it returns, all of them have settled.
func (m *model) perform(ctx context.Context, u *unit, start func(context.Context, []tool.Call) <-chan tool.Settled) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if u.cancel > 0 {
		defer time.AfterFunc(u.cancel, cancel).Stop()
	}
	var open sync.WaitGroup
	defer open.Wait()
	for i, batch := range u.batches {
		var calls []tool.Call
		for _, p := range batch {
			calls = append(calls, tool.Call{Name: p.name, Args: json.RawMessage(fmt.Sprintf(`{"id":%d}`, p.id))})
		}
		in := start(ctx, calls)
		read := func() {
			for s := range in {
				m.mu.Lock()
				batch[s.Index].code += "|" + s.Code
				m.mu.Unlock()
			}
		}
		if u.await[i] {
			read()
		} else {
			open.Go(read)
			time.Sleep(u.pause)
		}
	}
}

func (m *model) plan(c *tool.Call) *plan {
	var in struct{ ID int }
	if err := json.Unmarshal(c.Args, &in); err != nil {
		m.t.Error(err)
	}
	return m.plans[in.ID]
}

func (m *model) access(c *tool.Call) tool.Access {
	var in struct {
		ID    int
		Moved bool
	}
	if err := json.Unmarshal(c.Args, &in); err != nil {
		m.t.Error(err)
	}
	if p := m.plans[in.ID]; in.Moved {
		return *p.rewrite
	}
	return m.plans[in.ID].acc
}

// over says that a call has nothing but its paths any more.
func (m *model) over(p *plan) bool {
	return p.settled || p.deaf && p.endedAt >= 0 && m.now()-p.endedAt >= 5*time.Second
}

// touches is what a call touches by now.
func (p *plan) touches() tool.Access {
	if p.movedAt >= 0 {
		return *p.rewrite
	}
	return p.acc
}

func (m *model) Before(ctx context.Context, q *sched.Request) (sched.HookVerdict, error) {
	p := m.plan(q.Call)
	wait(ctx, p.hook)
	if p.rewrite == nil || ctx.Err() != nil {
		return sched.HookVerdict{}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p.movedAt = m.now()
	return sched.HookVerdict{Args: json.RawMessage(fmt.Sprintf(`{"id":%d,"moved":true}`, p.id))}, nil
}

func (m *model) After(context.Context, *sched.Request, *tool.Result) error { return nil }

func (m *model) decide(q *sched.Request) sched.Verdict {
	switch p := m.plan(q.Call); {
	case p.ask > 0:
		return sched.Verdict{Decision: sched.Ask}
	case p.deny:
		return sched.Verdict{Decision: sched.Deny}
	}
	return sched.Verdict{Decision: sched.Allow}
}

type modelApprover struct{ *model }

func (a modelApprover) Approve(ctx context.Context, q *sched.Question) (sched.Answer, error) {
	p := a.plan(q.Call)
	wait(ctx, p.ask)
	return sched.Answer{Allow: !p.deny}, ctx.Err()
}

func (m *model) guard(_ context.Context, q *sched.Request) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.plan(q.Call).allowedAt = m.now()
	return ""
}

func (m *model) observe(e sched.Event) {
	if e.Kind == sched.Settled {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.plan(e.Call).settled = true
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (m *model) body(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
	p := m.plan(inv.Call)
	m.enter(p)
	defer m.leave(p)
	defer context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		p.endedAt = m.now()
	})()
	switch {
	case p.name == "agent":
		m.perform(ctx, p.sub, func(ctx context.Context, calls []tool.Call) <-chan tool.Settled {
			return m.rt.Start(ctx, m.view, calls)
		})
	case p.name == tool.ExecName:
		m.perform(ctx, p.sub, inv.Dispatch)
	case p.deaf:
		time.Sleep(p.lasts)
	default:
		wait(ctx, p.lasts)
	}
	return tool.Result{}, ctx.Err()
}

// enter checks that a body may start now.
func (m *model) enter(p *plan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.started {
		m.errorf("call %d runs twice", p.id)
	}
	if p.deny {
		m.errorf("call %d was denied", p.id)
	}
	p.started, p.inBody = true, true
	a, used := p.touches(), 0
	for _, o := range m.plans {
		if o.inBody && !m.over(o) && !o.waits() {
			used++
		}
		if o == p {
			continue
		}
		b := o.touches()
		if o.inBody && clash(a, b) {
			m.errorf("calls %d and %d run on one path", p.id, o.id)
		}
		if o.unit != p.unit || m.over(o) {
			continue
		}
		if o.inBody && (!a.Overlap || !b.Overlap) {
			m.errorf("calls %d and %d run beside each other, and one is exclusive", p.id, o.id)
		}
		if o.seq < p.seq && comesFirst(o, p, m.now()-1) {
			m.errorf("call %d runs before call %d", p.id, o.id)
		}
	}
	if used > m.slots {
		m.errorf("%d of %d slots", used, m.slots)
	}
}

// comesFirst says whether o, an unfinished earlier call of the same unit, has to
// be done before p starts, by what had happened at a time. (What happens at the
// very moment of a start may have come before or after it.)
func comesFirst(o, p *plan, by time.Duration) bool {
	if o.movedAt > by {
		return false
	}
	a, b := p.touches(), o.touches()
	switch {
	case clash(a, b):
		return true
	case !o.unit.program:
		return !a.Overlap || !b.Overlap
	}
	return !b.Overlap && o.allowedAt >= 0 && o.allowedAt <= by
}

func (m *model) leave(p *plan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.inBody = false
}

// nothingKeptWaiting checks, while nothing moves, that each call that is
// allowed and does not run has a reason.
func (m *model) nothingKeptWaiting() {
	m.mu.Lock()
	defer m.mu.Unlock()
	free := m.slots
	for _, p := range m.plans {
		if p.inBody && !m.over(p) && !p.waits() {
			free--
		}
	}
	for _, p := range m.plans {
		if p.allowedAt < 0 || p.started || p.settled || !p.waits() && free == 0 {
			continue
		}
		if !slices.ContainsFunc(m.plans, func(o *plan) bool { return o != p && m.holdsBack(o, p) }) {
			m.errorf("call %d waits at %v for nothing", p.id, m.now())
		}
	}
}

func (m *model) holdsBack(o, p *plan) bool {
	a, b := p.touches(), o.touches()
	if o.inBody && clash(a, b) {
		return true // given up on or not
	}
	if m.over(o) {
		return false
	}
	if o.unit == p.unit && (o.inBody && (!a.Overlap || !b.Overlap) || o.seq < p.seq && comesFirst(o, p, m.now())) {
		return true
	}
	return o.allowedAt >= 0 && clash(a, b) // it is before p in the queue of a path
}

func (m *model) everythingSettled() {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := map[string]bool{"|": true, "|DENIED": true, "|ABORTED": true, "|ABORTED_BEFORE_DISPATCH": true}
	for _, p := range m.plans {
		if p.code == "" && !p.settled { // its exec or agent never ran, or ended before
			continue
		}
		if !known[p.code] || !p.settled || p.final != 1 || p.inBody {
			m.errorf("call %d: codes %q, settled %v, %d times finalized, still in its body %v", p.id, p.code, p.settled, p.final, p.inBody)
		}
		if p.started && (p.code == "|DENIED" || p.code == "|ABORTED_BEFORE_DISPATCH") || !p.started && (p.code == "|" || p.code == "|ABORTED") {
			m.errorf("call %d: %s, and its body ran: %v", p.id, p.code, p.started)
		}
	}
}

// clash says whether two calls touch a path that one of them writes.
func clash(a, b tool.Access) bool {
	for _, p := range a.Writes {
		if slices.Contains(b.Writes, p) || slices.Contains(b.Reads, p) {
			return true
		}
	}
	return slices.ContainsFunc(a.Reads, func(p string) bool { return slices.Contains(b.Writes, p) })
}
