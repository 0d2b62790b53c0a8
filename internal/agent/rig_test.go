package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"capstan/internal/agent"
	"capstan/internal/codemode"
	"capstan/internal/llm"
	"capstan/internal/msg"
	"capstan/internal/sandbox/quickjs"
	"capstan/internal/sandbox/sandboxtest"
	"capstan/internal/sched"
	"capstan/internal/session"
	"capstan/internal/tool"
)

func TestMain(m *testing.M) { sandboxtest.Main(m) }

// A model is a Provider that answers as a test says: each request takes the
// next of its turns, and the last one again and again when it repeats.
type model struct {
	t       testing.TB
	turns   []turn
	repeats bool

	mu   sync.Mutex
	asks []*llm.Request
}

// A turn yields the events of one answer.
type turn func(ctx context.Context, q *llm.Request, yield func(llm.Event, error) bool)

func (m *model) Stream(ctx context.Context, q *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		m.mu.Lock()
		n := len(m.asks)
		m.asks = append(m.asks, q)
		m.mu.Unlock()
		if n >= len(m.turns) && m.repeats {
			n = len(m.turns) - 1
		}
		if n >= len(m.turns) {
			yield(nil, &llm.Error{Kind: llm.ErrProtocol, Provider: "test", Message: "the script is at its end"})
			return
		}
		m.turns[n](ctx, q, yield)
	}
}

// events is a turn of events; without a Done it gets the fitting one.
func events(es ...llm.Event) turn {
	return func(_ context.Context, _ *llm.Request, yield func(llm.Event, error) bool) {
		finish, done := llm.FinishStop, false
		for _, e := range es {
			switch e.(type) {
			case llm.Call:
				finish = llm.FinishCalls
			case llm.Done:
				done = true
			}
			if !yield(e, nil) {
				return
			}
		}
		if !done {
			yield(llm.Done{Finish: finish}, nil)
		}
	}
}

func calls(id, name, args string) llm.Call {
	return llm.Call{Call: msg.Call{ID: id, Name: name, Args: args}}
}

// fake is a tool whose body is a function.
type fake struct {
	spec    tool.Spec
	overlap bool
	run     func(ctx context.Context, inv *tool.Invocation) (tool.Result, error)
}

func (f *fake) Spec() *tool.Spec              { return &f.spec }
func (f *fake) Access(*tool.Call) tool.Access { return tool.Access{Overlap: f.overlap} }
func (f *fake) Run(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
	return f.run(ctx, inv)
}

// rig is an agent with a scripted model, some tools and a real log.
type rig struct {
	t     testing.TB
	model *model
	reg   tool.Registry
	mode  tool.Mode
	opt   agent.Options
	store *session.Store
	agent *agent.Agent

	cancel context.CancelCauseFunc // of the Run under way
	polls  int                     // of the tool poll; its calls never overlap

	mu     sync.Mutex
	events []agent.Event
}

const path = `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}`

func newRig(t testing.TB, mode tool.Mode) *rig {
	r := &rig{t: t, model: &model{t: t}, mode: mode}
	simple := func(name string, effect tool.Effect, overlap bool, run func(ctx context.Context, path string) (tool.Result, error)) *fake {
		return &fake{tool.Spec{Name: name, Description: name, Effect: effect, Input: json.RawMessage(path)}, overlap,
			func(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
				var in struct{ Path string }
				if err := json.Unmarshal(inv.Call.Args, &in); err != nil {
					return tool.Result{}, err
				}
				return run(ctx, in.Path)
			}}
	}
	read := func(_ context.Context, path string) (tool.Result, error) {
		if strings.HasPrefix(path, "missing") {
			return tool.Fail(tool.CodeFailed, "there is no file %s", path), nil
		}
		return tool.Text("contents of " + path), nil
	}
	tools := []tool.Tool{
		simple("read_file", tool.EffectRead, true, read),
		simple("write_file", tool.EffectWrite, false, func(_ context.Context, path string) (tool.Result, error) { return tool.Text("wrote " + path), nil }),
		simple("poll", tool.EffectRead, false, func(context.Context, string) (tool.Result, error) {
			r.polls++
			return tool.Text(fmt.Sprintf("at %d%%", r.polls)), nil
		}),
		simple("interrupt", tool.EffectWrite, false, func(ctx context.Context, _ string) (tool.Result, error) {
			r.cancel(context.Canceled)
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		}),
		&fake{tool.Spec{Name: "structured_output", Description: "Ends.", Effect: tool.EffectNone, Input: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)}, false,
			func(context.Context, *tool.Invocation) (tool.Result, error) { return tool.Text("taken"), nil }},
	}
	if err := r.reg.Add(tools...); err != nil {
		t.Fatal(err)
	}
	r.store = session.New(session.Options{Root: t.TempDir(), Workspace: "/w"})
	r.opt = agent.Options{Provider: r.model, Family: "test", Model: "m", Log: r.store.Create(session.Header{}),
		View: func() *tool.View { return r.reg.View(r.mode, tool.Scope{}) },
		Emit: func(e agent.Event) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.events = append(r.events, e)
		}}
	return r
}

// programs gives the rig the real exec.
func (r *rig) programs() *rig {
	runner := quickjs.New(quickjs.Options{Binary: sandboxtest.Binary(r.t)})
	r.t.Cleanup(runner.Close)
	if err := r.reg.Add(codemode.NewExec(codemode.Options{Runner: runner})); err != nil {
		r.t.Fatal(err)
	}
	return r
}

// start makes the agent, once.
func (r *rig) start() *agent.Agent {
	if r.agent == nil {
		r.agent = agent.New(r.opt)
	}
	return r.agent
}

// run gives the agent a prompt and checks what must hold after every run.
func (r *rig) run(prompt string) *agent.Outcome {
	r.t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	r.cancel = cancel
	var parts []msg.Part
	if prompt != "" {
		parts = []msg.Part{msg.TextPart(prompt)}
	}
	out := r.start().Run(ctx, parts)
	r.check(out)
	return out
}

// check holds the history against the rules, and the log against the history.
func (r *rig) check(out *agent.Outcome) {
	r.t.Helper()
	history := r.agent.History()
	complete(r.t, history)
	if (out.Err == nil) != (out.Reason == agent.Finished) {
		r.t.Errorf("%s with the error %v", out.Reason, out.Err)
	}
	if n := len(r.events); n == 0 || r.events[n-1] != agent.Event(agent.Ended{Outcome: out}) {
		r.t.Errorf("the last event is no Ended")
	}
	r.settled()
	if r.opt.Log == nil || r.noLog(out) {
		return
	}
	state, err := r.store.Read(r.opt.Log.ID())
	if err != nil {
		r.t.Fatal(err)
	}
	if diff := cmp.Diff(history, state.Messages, cmpopts.EquateEmpty()); diff != "" {
		r.t.Errorf("the log reads back as another history (- had, + read):\n%s", diff)
	}
	if state.Unfinished || len(state.Notes) > 0 {
		r.t.Errorf("the log is unfinished (%v) or damaged: %q", state.Unfinished, state.Notes)
	}
}

// settled fails the test unless each result was told of when its call settled, as
// it is in the history.
func (r *rig) settled() {
	r.t.Helper()
	told := map[string]msg.Result{}
	for _, e := range r.events {
		switch e := e.(type) {
		case agent.Called:
			if (e.Result != nil) != (e.Event.Kind == sched.Settled) {
				r.t.Errorf("%s %s with the result %v", e.Event.Call.ID, e.Event.Kind, e.Result)
			}
			if e.Result != nil {
				told[e.Result.CallID] = *e.Result
			}
		case agent.Observed:
			for _, res := range e.Message.Results {
				if diff := cmp.Diff(res, told[res.CallID]); diff != "" {
					r.t.Errorf("a result was told of otherwise than it is (- is, + told):\n%s", diff)
				}
			}
		}
	}
}

func (r *rig) noLog(out *agent.Outcome) bool {
	return out.Err != nil && strings.Contains(out.Err.Error(), "recording the session failed")
}

// complete fails the test unless each call has exactly one result, right behind
// the message that made it and in order, and no id twice.
func complete(t testing.TB, history []msg.Message) {
	t.Helper()
	ids := map[string]bool{}
	for i := range history {
		var want, got []string
		for _, c := range history[i].Calls() {
			if ids[c.ID] || c.ID == "" {
				t.Errorf("the id %q is used twice, or empty", c.ID)
			}
			ids[c.ID] = true
			want = append(want, c.ID)
		}
		if history[i].Role == msg.Tool {
			if i == 0 || history[i-1].Role != msg.Assistant {
				t.Errorf("message %d: results behind no calls", i)
			}
			continue
		}
		if i+1 < len(history) && history[i+1].Role == msg.Tool {
			for _, res := range history[i+1].Results {
				got = append(got, res.CallID)
				if res.Status == "" {
					t.Errorf("the result of %s has no status", res.CallID)
				}
			}
		}
		if !slices.Equal(want, got) {
			t.Errorf("message %d calls %q, answered are %q", i, want, got)
		}
	}
}

// notAllowed is a policy that denies some tools and asks about others.
type notAllowed struct{ deny, ask []string }

func (p *notAllowed) Decide(_ context.Context, q *sched.Request) sched.Verdict {
	switch {
	case slices.Contains(p.deny, q.Call.Name):
		return sched.Verdict{Decision: sched.Deny, Reason: "a rule says so"}
	case slices.Contains(p.ask, q.Call.Name):
		return sched.Verdict{Decision: sched.Ask, Reason: "it writes", Suggestion: "Allow it."}
	}
	return sched.Verdict{Decision: sched.Allow}
}

func (r *rig) add(tools ...tool.Tool) {
	r.t.Helper()
	if err := r.reg.Add(tools...); err != nil {
		r.t.Fatal(err)
	}
}
