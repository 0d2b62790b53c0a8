package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/agent"
	"capstan/internal/llm"
	"capstan/internal/msg"
	"capstan/internal/sched"
	"capstan/internal/session"
	"capstan/internal/tool"
)

func prompt(s string) []msg.Part { return []msg.Part{msg.TextPart(s)} }

// A provider that takes no notice of an interrupt does not hold the run.
func TestDeafProvider(t *testing.T) {
	r := newRig(t, tool.Direct)
	r.model.turns = []turn{func(_ context.Context, _ *llm.Request, yield func(llm.Event, error) bool) {
		r.cancel(context.Canceled)
		for yield(llm.Text{Text: "and on "}, nil) {
		}
	}}
	if out := r.run("Work."); out.Reason != agent.Interrupted || out.Text != "and on " {
		t.Errorf("%+v", out)
	}
}

// What is sent in each mode is what the exposure policy declares, as it is, and
// nothing else; it is the same for every provider, the system prompt too.
// S0-195 S0-196 S0-197 S0-201 S3-005 S3-006 S3-017
func TestRequest(t *testing.T) {
	for _, mode := range []tool.Mode{tool.Direct, tool.Code, tool.Both} {
		var sent []*llm.Request
		for _, family := range []string{"openai", "gemini"} {
			r := newRig(t, mode).programs()
			temperature := 0.5
			r.opt.Family, r.opt.Temperature, r.opt.MaxTokens, r.opt.Effort = family, &temperature, 99, "low"
			r.opt.System = func() string { return "Be brief." }
			r.model.turns = []turn{events(calls("c", "read_file", `{"path":"a"}`)), events(llm.Text{Text: "Done."})}
			if out := r.run("Read a."); out.Reason != agent.Finished {
				t.Fatalf("%+v", out)
			}
			want := r.reg.View(mode, tool.Scope{}).Declarations()
			for i, q := range r.model.asks {
				if len(q.Tools) != len(want) || &q.Tools[0] != &want[0] {
					t.Errorf("%s: request %d has not the view's declarations", mode, i)
				}
				if q.CacheKey != r.opt.Log.ID() {
					t.Errorf("the cache key is %q, not the session's", q.CacheKey)
				}
			}
			if a, b := r.model.asks[0].PromptID, r.model.asks[1].PromptID; a == b || a == "" {
				t.Errorf("the prompt ids are %q and %q", a, b)
			}
			first := *r.model.asks[0]
			first.PromptID, first.CacheKey = "", ""
			sent = append(sent, &first)
		}
		if diff := cmp.Diff(sent[0], sent[1]); diff != "" {
			t.Errorf("%s: two families are asked otherwise:\n%s", mode, diff)
		}
		want := &llm.Request{Model: "m", System: "Be brief.", Messages: []msg.Message{{Role: msg.User, Parts: prompt("Read a.")}},
			Tools: sent[0].Tools, MaxTokens: 99, Temperature: sent[0].Temperature, Effort: "low"}
		if diff := cmp.Diff(want, sent[0]); diff != "" {
			t.Errorf("(- want, + sent)\n%s", diff)
		}
	}
}

// The wall time of a run ends a stream, a call and a question alike; time spent
// on the provider is told apart.
func TestWall(t *testing.T) {
	hang := func(ctx context.Context, _ *llm.Request, yield func(llm.Event, error) bool) {
		if yield(llm.Text{Text: "So"}, nil) {
			<-ctx.Done()
			yield(nil, &llm.Error{Kind: llm.ErrCancelled, Provider: "test", Err: ctx.Err()})
		}
	}
	slow := func(ctx context.Context, _ *llm.Request, yield func(llm.Event, error) bool) {
		time.Sleep(3 * time.Second)
		events(calls("c", "sleep", `{}`))(ctx, nil, yield)
	}
	for name, turns := range map[string][]turn{"stream": {hang}, "call": {slow}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, tool.Direct)
				r.add(&fake{tool.Spec{Name: "sleep"}, false, func(ctx context.Context, _ *tool.Invocation) (tool.Result, error) {
					<-ctx.Done()
					return tool.Result{}, ctx.Err()
				}})
				r.opt.Limits.Wall = 10 * time.Second
				r.model.turns = turns
				out := r.run("Work.")
				waiting := map[string]time.Duration{"stream": 10 * time.Second, "call": 3 * time.Second}[name]
				if out.Reason != agent.MaxWall || out.Elapsed != 10*time.Second || out.Waiting != waiting {
					t.Errorf("%s after %v, waiting %v: %v", out.Reason, out.Elapsed, out.Waiting, out.Err)
				}
			})
		})
	}
}

// A context that has ended before the run: the prompt is kept, nothing is asked.
func TestInterruptedBefore(t *testing.T) {
	r := newRig(t, tool.Direct)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := r.start().Run(ctx, prompt("Work."))
	r.check(out)
	if out.Reason != agent.Interrupted || !errors.Is(out.Err, context.Canceled) || len(r.model.asks) != 0 || len(r.agent.History()) != 1 {
		t.Errorf("%+v", out)
	}
}

// An interrupt that a call does not notice: its result counts, and no other
// request is made.
func TestInterruptedBetween(t *testing.T) {
	r := newRig(t, tool.Direct)
	r.add(&fake{tool.Spec{Name: "last"}, false, func(context.Context, *tool.Invocation) (tool.Result, error) {
		r.cancel(context.Canceled)
		return tool.Text("written"), nil
	}})
	r.model.turns = []turn{events(calls("c1", "last", `{}`))}
	out := r.run("Work.")
	history := r.agent.History()
	want := []msg.Result{{CallID: "c1", Name: "last", Status: "success", Parts: prompt("written")}}
	if diff := cmp.Diff(want, history[len(history)-1].Results); out.Reason != agent.Interrupted || len(r.model.asks) != 1 || diff != "" {
		t.Errorf("%s after %d requests\n%s", out.Reason, len(r.model.asks), diff)
	}
}

// A stream that ends without its end is a failure, and what had arrived is kept.
func TestNoEnd(t *testing.T) {
	r := newRig(t, tool.Direct)
	r.model.turns = []turn{func(_ context.Context, _ *llm.Request, yield func(llm.Event, error) bool) {
		yield(llm.Text{Text: "So"}, nil)
	}}
	if out := r.run("Work."); out.Reason != agent.Failed || out.Text != "So" || !strings.Contains(out.Err.Error(), "try again") {
		t.Errorf("%+v", out)
	}
}

// Nothing to ask is an error, not a request that no API takes.
func TestNothing(t *testing.T) {
	r := newRig(t, tool.Direct)
	r.opt.Log = nil
	if out := r.run(""); out.Reason != agent.Failed || len(r.model.asks) != 0 {
		t.Errorf("%+v", out)
	}
}

// One run at a time; the second is told so and changes nothing.
func TestBusy(t *testing.T) {
	r := newRig(t, tool.Direct)
	r.model.turns = []turn{func(ctx context.Context, q *llm.Request, yield func(llm.Event, error) bool) {
		if out := r.agent.Run(ctx, prompt("me too")); !errors.Is(out.Err, agent.ErrBusy) {
			t.Errorf("%+v", out)
		}
		events(llm.Text{Text: "Done."})(ctx, q, yield)
	}}
	if out := r.run("Work."); out.Reason != agent.Finished || len(r.agent.History()) != 2 {
		t.Errorf("%+v", out)
	}
}

// Queue says whether a run will see the message, and it is never lost.
func TestQueue(t *testing.T) {
	r := newRig(t, tool.Direct)
	a := r.start()
	if a.Queue(prompt("first")) {
		t.Error("there is no run that takes it")
	}
	r.model.turns = []turn{func(ctx context.Context, q *llm.Request, yield func(llm.Event, error) bool) {
		if !a.Queue(prompt("second")) {
			t.Error("the run does not take it")
		}
		events(llm.Text{Text: "One."})(ctx, q, yield)
	}, events(llm.Text{Text: "Two."})}
	r.run("")
	if a.Queue(prompt("third")) {
		t.Error("there is no run any more")
	}
	r.model.turns = append(r.model.turns, events(llm.Text{Text: "Three."}))
	r.run("fourth")
	var said []string
	for _, m := range a.History() {
		said = append(said, m.Text())
	}
	if want := []string{"first", "One.", "second", "Two.", "third", "fourth", "Three."}; !cmp.Equal(want, said) {
		t.Errorf("the conversation is %q", said)
	}
}

// A structured answer is given up for what the user added meanwhile, and the
// next one counts.
func TestQueueAfterStructured(t *testing.T) {
	r := newRig(t, tool.Direct)
	r.opt.Structured = json.RawMessage(`{}`)
	r.model.turns = []turn{func(ctx context.Context, q *llm.Request, yield func(llm.Event, error) bool) {
		r.agent.Queue(prompt("I meant 6."))
		events(calls("c1", "structured_output", `{"n":5}`))(ctx, q, yield)
	}, events(llm.Text{Text: "6 then."}), events(calls("c2", "structured_output", `{"n":6}`))}
	if out := r.run("How many?"); out.Reason != agent.Finished || string(out.Structured) != `{"n":6}` {
		t.Errorf("%s %s %v", out.Reason, out.Structured, out.Err)
	}
}

// What an interruption, a crash or a finished run leaves is taken up again, and
// prompt ids do not repeat.
func TestResume(t *testing.T) {
	r := newRig(t, tool.Direct)
	r.model.turns = []turn{
		events(calls("c1", "interrupt", `{"path":"a"}`), calls("c1", "read_file", `{"path":"b"}`)),
		events(calls("c1", "read_file", `{"path":"b"}`)), events(llm.Text{Text: "Done."}),
	}
	r.run("Work.")
	had := r.agent.History()
	if err := r.opt.Log.Close(); err != nil {
		t.Fatal(err)
	}
	log, state, err := r.store.Resume(r.opt.Log.ID())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(had, state.Messages); diff != "" {
		t.Fatalf("(- had, + resumed)\n%s", diff)
	}
	r.opt.Log, r.opt.History, r.agent = log, state.Messages, nil
	if out := r.run("Go on."); out.Reason != agent.Finished || len(r.agent.History()) != 7 {
		t.Errorf("%+v", out)
	}
	seen := map[string]bool{}
	for _, q := range r.model.asks {
		if seen[q.PromptID] {
			t.Errorf("the prompt id %s is used twice", q.PromptID)
		}
		seen[q.PromptID] = true
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

// A message is in the log before it is acted on, and a call's start before its
// body: a crash in the body is then told as "outcome unknown", with the calls
// that a program had made.
func TestRecordedFirst(t *testing.T) {
	r := newRig(t, tool.Code).programs()
	var during *session.State
	r.add(&fake{tool.Spec{Name: "crash"}, false, func(context.Context, *tool.Invocation) (tool.Result, error) {
		var err error
		if during, err = r.store.Read(r.opt.Log.ID()); err != nil {
			t.Error(err)
		}
		return tool.Text("survived"), nil
	}})
	r.model.turns = []turn{events(calls("c1", "exec", `{"source":"await tools.read_file({path:'a'}); await tools.crash({})"}`)), events(llm.Text{Text: "Done."})}
	r.run("Work.")
	if len(during.Repaired) != 1 {
		t.Fatalf("%+v", during)
	}
	want := "Calls that it had made:\n- success: read_file {\"path\":\"a\"}\n- outcome unknown: crash {}"
	if got := during.Repaired[0]; got.Code != tool.CodeOutcomeUnknown || !strings.Contains(got.Parts[0].Text, want) {
		t.Errorf("after a crash: %+v", got)
	}
}

// The record of a start says whether the call may change something: then it is
// on the disk before the call runs.
func TestRecordedMutates(t *testing.T) {
	r := newRig(t, tool.Direct)
	r.model.turns = []turn{events(calls("c1", "read_file", `{"path":"a"}`), calls("c2", "write_file", `{"path":"a"}`)), events(llm.Text{Text: "Done."})}
	r.run("Work.")
	log, err := os.ReadFile(r.opt.Log.Path())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"start":{"id":"c1","name":"read_file"}`, `"start":{"id":"c2","name":"write_file","mutates":true}`} {
		if !strings.Contains(string(log), want) {
			t.Errorf("the log has no %s:\n%s", want, log)
		}
	}
}

// What a hook made of the arguments is in the record of the start.
func TestRecordedRewrite(t *testing.T) {
	r := newRig(t, tool.Direct)
	r.opt.Sched.Hooks = []sched.Hook{rewriter{}}
	began, seen := "", 0
	r.opt.Sched.Observe = func(sched.Event) { seen++ }
	r.opt.Sched.Begin = func(_ context.Context, q *sched.Request) error {
		began += q.Call.Name
		return nil
	}
	r.model.turns = []turn{events(calls("c1", "read_file", `{"path":"a"}`)), events(llm.Text{Text: "Done."})}
	r.run("Work.")
	log, err := os.ReadFile(r.opt.Log.Path())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(log), `"id":"c1","name":"read_file","args":"{\"path\":\"rewritten\"}"`) || began != "read_file" || seen != 4 {
		t.Errorf("%q began, %d events; the log:\n%s", began, seen, log)
	}
}

type rewriter struct{}

func (rewriter) Before(context.Context, *sched.Request) (sched.HookVerdict, error) {
	return sched.HookVerdict{Args: json.RawMessage(`{"path":"rewritten"}`)}, nil
}
func (rewriter) After(context.Context, *sched.Request, *tool.Result) error { return nil }

// What cannot be recorded is not run, and ends the run with what to do; the
// history is complete all the same.
func TestLogFails(t *testing.T) {
	write := events(calls("c1", "write_file", `{"path":"a"}`))
	for _, tc := range []struct {
		name   string
		turns  []turn
		before func(r *rig)
		code   string // of the call
		asked  int
	}{
		{name: "at the prompt", before: func(r *rig) { r.opt.Log.Close() }},
		{name: "at the answer", asked: 1, code: tool.CodeAbortedBefore, turns: []turn{func(ctx context.Context, q *llm.Request, yield func(llm.Event, error) bool) {
			_ = r0.opt.Log.Close()
			write(ctx, q, yield)
		}}},
		{name: "at the last answer", asked: 1, turns: []turn{func(ctx context.Context, q *llm.Request, yield func(llm.Event, error) bool) {
			_ = r0.opt.Log.Close()
			events(llm.Text{Text: "Done."})(ctx, q, yield)
		}}},
		{name: "at the start of a call that changes something", asked: 1, code: tool.CodeNotStarted, turns: []turn{func(ctx context.Context, q *llm.Request, yield func(llm.Event, error) bool) {
			_ = os.Remove(r0.opt.Log.Path()) // written to, but not kept: only a sync finds out
			write(ctx, q, yield)
		}}},
		{name: "at a result", asked: 1, code: "done", turns: []turn{events(calls("c1", "close", `{}`))}},
		{name: "at the end", asked: 1, turns: []turn{func(ctx context.Context, q *llm.Request, yield func(llm.Event, error) bool) {
			_ = os.Remove(r0.opt.Log.Path())
			events(llm.Text{Text: "Done."})(ctx, q, yield)
		}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, tool.Direct)
			r0 = r
			r.add(&fake{tool.Spec{Name: "close", Effect: tool.EffectRead}, true, func(context.Context, *tool.Invocation) (tool.Result, error) {
				return tool.Text("closed"), r.opt.Log.Close()
			}})
			r.model.turns = tc.turns
			if tc.before != nil {
				tc.before(r)
			}
			out := r.run("Work.")
			if out.Reason != agent.Failed || !strings.Contains(out.Err.Error(), "free space on the disk") || len(r.model.asks) != tc.asked {
				t.Errorf("%s: %v; asked %d times", out.Reason, out.Err, len(r.model.asks))
			}
			code := ""
			for _, m := range r.agent.History() {
				for _, res := range m.Results {
					if code = res.Code; res.Status == string(tool.Success) {
						code = "done"
					}
				}
			}
			if code != tc.code {
				t.Errorf("the call got %q", code)
			}
			_ = r.opt.Log.Close()
		})
	}
}

var r0 *rig // of TestLogFails

// Denials are counted without end, and listed within a bound.
func TestManyDenials(t *testing.T) {
	r := newRig(t, tool.Direct)
	r.opt.Sched.Policy = &notAllowed{deny: []string{"read_file"}}
	var es []llm.Event
	long := fmt.Sprintf(`{"path":"%s"}`, strings.Repeat("x", 2000))
	for i := range 1500 {
		es = append(es, calls(fmt.Sprint("c", i), "read_file", long))
	}
	r.opt.Log = nil
	r.model.turns = []turn{events(es...), events(llm.Text{Text: "Done."})}
	out := r.run("Work.")
	args := 0
	for _, d := range out.Denials {
		args += len(d.Args)
	}
	if len(out.Denials) != 1000 || args > 1<<20 || args < 1<<19 || out.Calls != 1500 {
		t.Errorf("%d denials with %d bytes of arguments, of %d calls", len(out.Denials), args, out.Calls)
	}
}
