package sched_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a tool that does what its test says.
type fake struct {
	spec   tool.Spec
	access func(*tool.Call) tool.Access
	run    func(context.Context, *tool.Invocation) (tool.Result, error)
}

func (f *fake) Spec() *tool.Spec                { return &f.spec }
func (f *fake) Access(c *tool.Call) tool.Access { return f.access(c) }
func (f *fake) Run(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
	return f.run(ctx, inv)
}

// finished is a tool with a finalizer.
type finished struct {
	*fake
	finalize func(context.Context, *tool.Call, *tool.Result)
}

func (f *finished) Finalize(ctx context.Context, c *tool.Call, r *tool.Result) { f.finalize(ctx, c, r) }

// checked is a tool with a finalizer that looks at its arguments first.
type checked struct {
	*finished
	check func(*tool.Call) error
}

func (c *checked) Check(call *tool.Call) error { return c.check(call) }

func says(text string) func(context.Context, *tool.Invocation) (tool.Result, error) {
	return func(context.Context, *tool.Invocation) (tool.Result, error) { return tool.Text(text), nil }
}

// takes is a body that lasts d, or until it is cancelled.
func takes(d time.Duration) func(context.Context, *tool.Invocation) (tool.Result, error) {
	return func(ctx context.Context, _ *tool.Invocation) (tool.Result, error) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return tool.Text("done"), nil
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
	}
}

func overlapping(*tool.Call) tool.Access { return tool.Access{Overlap: true} }

func exclusively(*tool.Call) tool.Access { return tool.Access{} }

// pathArgs is the schema of the tools whose paths are their arguments.
var pathArgs = json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}`)

func pathOf(c *tool.Call) string {
	var in struct{ Path string }
	if err := json.Unmarshal(c.Args, &in); err != nil {
		panic(err)
	}
	return in.Path
}

func reading(c *tool.Call) tool.Access {
	return tool.Access{Overlap: true, Reads: []string{pathOf(c)}}
}

func writing(c *tool.Call) tool.Access {
	return tool.Access{Overlap: true, Writes: []string{pathOf(c)}}
}

// A program is what a test's exec does with its invocation.
type program func(ctx context.Context, inv *tool.Invocation) (tool.Result, error)

func execTool(p program) *fake {
	return &fake{spec: tool.Spec{Name: tool.ExecName, Class: tool.Gateway, Waits: true}, access: exclusively, run: p}
}

// call is a call without arguments.
func call(name string) tool.Call { return tool.Call{Name: name, Args: json.RawMessage(`{}`)} }

func callOn(name, path string) tool.Call {
	return tool.Call{Name: name, Args: json.RawMessage(fmt.Sprintf(`{"path":%q}`, path))}
}

// rig is a runtime with a registry, a mode that can be changed, and a record of
// every stage that saw a call.
type rig struct {
	*log
	t    *testing.T
	reg  *tool.Registry
	rt   *sched.Runtime
	opt  sched.Options
	mu   sync.Mutex
	mode tool.Mode
	scp  tool.Scope

	// What the stages say.
	hook    sched.HookVerdict
	hookFn  func(*sched.Request) (sched.HookVerdict, error)
	hookCtx func(context.Context) error
	after   func(context.Context, *sched.Request, *tool.Result) error
	rule    sched.Verdict
	answer  func(context.Context, *sched.Question) (sched.Answer, error)
	guard   string
	begin   func() error

	exempt    string   // a tool that all stages let through
	sawNested []string // by oneNested
}

func newRig(t *testing.T, m tool.Mode) *rig {
	t.Helper()
	r := &rig{log: &log{t: t}, t: t, reg: &tool.Registry{}, mode: m, rule: sched.Verdict{Decision: sched.Allow}}
	r.opt = sched.Options{
		Policy: policyStage{r}, Hooks: []sched.Hook{hookStage{r}},
		Guards: []sched.Guard{func(_ context.Context, q *sched.Request) string {
			r.saw("guard", q.Call)
			if q.Call.Name == r.exempt {
				return ""
			}
			return r.guard
		}},
		Observe: r.observed,
		Begin: func(_ context.Context, q *sched.Request) error {
			if r.begin == nil || q.Call.Name == r.exempt {
				return nil
			}
			r.saw("begin", q.Call)
			return r.begin()
		},
	}
	return r
}

// bare makes the runtime from options of the test's own: no stages but the
// observer.
func (r *rig) bare(o sched.Options) *rig {
	o.Observe = r.observed
	r.opt = o
	return r
}

func (r *rig) runtime() *sched.Runtime {
	if r.rt == nil {
		r.rt = sched.New(r.opt)
	}
	return r.rt
}

func (r *rig) view() *tool.View {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reg.View(r.mode, r.scp)
}

func (r *rig) flip(m tool.Mode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mode = m
}

func (r *rig) run(ctx context.Context, calls ...tool.Call) []tool.Result {
	r.t.Helper()
	return r.runtime().Run(ctx, r.view, calls)
}

// program runs p as an exec of a code-mode agent and returns its result.
func (r *rig) program(ctx context.Context, p program) tool.Result {
	r.t.Helper()
	if err := r.reg.Replace(func(s *tool.Spec) bool { return s.Name == tool.ExecName }, execTool(p)); err != nil {
		r.t.Fatal(err)
	}
	return r.run(ctx, call(tool.ExecName))[0]
}

// nested runs the calls as one batch of a program, and returns their results in
// the order of the calls.
func (r *rig) nested(ctx context.Context, calls ...tool.Call) []tool.Result {
	r.t.Helper()
	var out []tool.Result
	res := r.program(ctx, func(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
		out = collect(inv.Dispatch(ctx, calls), len(calls))
		return tool.Text("program done"), nil
	})
	if res.Status != tool.Success && ctx.Err() == nil {
		r.t.Fatalf("exec: %+v", res)
	}
	return out
}

func collect(in <-chan tool.Settled, n int) []tool.Result {
	out := make([]tool.Result, n)
	for s := range in {
		out[s.Index] = s.Result
	}
	return out
}

// log is what the stages saw, as "stage name".
type log struct {
	t      *testing.T
	lock   sync.Mutex
	lines  []string
	events []sched.Event
	ids    map[string]map[sched.EventKind]int
}

func (l *log) saw(stage string, c *tool.Call) {
	if c.Parent != nil { // S2-056: authority never gets as far as this
		l.t.Errorf("%s sees the token of %s", stage, c.Name)
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	l.lines = append(l.lines, stage+" "+c.Name)
}

func (l *log) observed(e sched.Event) {
	switch e.Kind {
	case sched.Settled:
		l.saw("result", e.Call)
	case sched.Started, sched.Running:
		l.saw(string(e.Kind), e.Call)
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	l.events = append(l.events, e)
	if l.ids == nil {
		l.ids = map[string]map[sched.EventKind]int{}
	}
	if l.ids[e.Call.ID] == nil {
		l.ids[e.Call.ID] = map[sched.EventKind]int{}
	}
	l.ids[e.Call.ID][e.Kind]++
}

// stages returns what saw the calls of one name, in order.
func (l *log) stages(name string) []string {
	l.lock.Lock()
	defer l.lock.Unlock()
	out := []string{}
	for _, line := range l.lines {
		if stage, ok := strings.CutSuffix(line, " "+name); ok {
			out = append(out, stage)
		}
	}
	return out
}

// order returns the lines of one stage, in order.
func (l *log) order(stage string) []string {
	l.lock.Lock()
	defer l.lock.Unlock()
	out := []string{}
	for _, line := range l.lines {
		if name, ok := strings.CutPrefix(line, stage+" "); ok {
			out = append(out, name)
		}
	}
	return out
}

// settledOnce checks that every call that was ever seen has settled once, and
// that nothing about it came later.
func (l *log) settledOnce() {
	l.t.Helper()
	l.lock.Lock()
	defer l.lock.Unlock()
	over := map[string]bool{}
	for _, e := range l.events {
		if over[e.Call.ID] {
			l.t.Errorf("%s of %s after it settled", e.Kind, e.Call.ID)
		}
		over[e.Call.ID] = e.Kind == sched.Settled
	}
	for id, kinds := range l.ids {
		if kinds[sched.Settled] != 1 {
			l.t.Errorf("%s settled %d times", id, kinds[sched.Settled])
		}
		for _, k := range []sched.EventKind{sched.Started, sched.Waiting, sched.Decided, sched.Running} {
			if kinds[k] > 1 {
				l.t.Errorf("%s: %d events %s", id, kinds[k], k)
			}
		}
	}
}

type policyStage struct{ *rig }

func (p policyStage) Decide(_ context.Context, q *sched.Request) sched.Verdict {
	p.saw("policy", q.Call)
	if q.Call.Name == p.exempt {
		return sched.Verdict{Decision: sched.Allow}
	}
	return p.rule
}

type hookStage struct{ *rig }

func (h hookStage) Before(ctx context.Context, q *sched.Request) (sched.HookVerdict, error) {
	h.saw("before", q.Call)
	if q.Call.Name == h.exempt {
		return sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Allow}}, nil
	}
	if h.hookCtx != nil {
		return h.hook, h.hookCtx(ctx)
	}
	if h.hookFn != nil {
		return h.hookFn(q)
	}
	return h.hook, nil
}

func (h hookStage) After(ctx context.Context, q *sched.Request, r *tool.Result) error {
	h.saw("after", q.Call)
	if h.after != nil && q.Call.Name != h.exempt {
		return h.after(ctx, q, r)
	}
	return nil
}

type approver struct{ *rig }

func (a approver) Approve(ctx context.Context, q *sched.Question) (sched.Answer, error) {
	a.saw("approver", q.Call)
	return a.answer(ctx, q)
}

// seenBody is a tool with a finalizer whose stages are recorded.
func (l *log) tool(name string, class tool.Class) *finished {
	f := &fake{spec: tool.Spec{Name: name, Class: class}, access: overlapping}
	f.run = func(_ context.Context, inv *tool.Invocation) (tool.Result, error) {
		l.saw("body", inv.Call)
		return tool.Text("ran " + name), nil
	}
	return &finished{fake: f, finalize: func(_ context.Context, c *tool.Call, _ *tool.Result) { l.saw("finalizer", c) }}
}

func texts(rs []tool.Result) []string {
	var out []string
	for _, r := range rs {
		out = append(out, r.Text())
	}
	return out
}

func codes(rs []tool.Result) []string {
	var out []string
	for _, r := range rs {
		out = append(out, r.Code)
	}
	return out
}

func repeat(s string, n int) []string { return slices.Repeat([]string{s}, n) }

// add registers tools, and replaces those of the same names.
func (r *rig) add(tools ...tool.Tool) *rig {
	r.t.Helper()
	names := map[string]bool{}
	for _, t := range tools {
		names[t.Spec().Name] = true
	}
	if err := r.reg.Replace(func(s *tool.Spec) bool { return names[s.Name] }, tools...); err != nil {
		r.t.Fatal(err)
	}
	return r
}
