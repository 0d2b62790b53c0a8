package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/agent"
	"capstan/internal/llm"
	"capstan/internal/sched"
	"capstan/internal/session"
	"capstan/internal/tool"
)

// starts reads the starts of calls in the rig's log.
func (r *rig) starts() map[string]session.Start {
	r.t.Helper()
	log, err := os.ReadFile(r.opt.Log.Path())
	if err != nil {
		r.t.Fatal(err)
	}
	found := map[string]session.Start{}
	for line := range strings.Lines(string(log)) {
		var e struct{ Start *session.Start }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			r.t.Fatal(err)
		}
		if e.Start != nil {
			found[e.Start.Name] = *e.Start
		}
	}
	return found
}

// A writer is a tool that names what it writes.
type writer struct {
	fake
	writes []string
}

func (w *writer) Access(*tool.Call) tool.Access { return tool.Access{Writes: w.writes} }

// What may change something is on the disk before it begins: by its effect, or
// because it writes a path, whatever it says of its effect.
func TestRecordedMutations(t *testing.T) {
	r := newRig(t, tool.Direct)
	want := map[string]bool{}
	var es []llm.Event
	for effect, says := range map[tool.Effect]bool{tool.EffectUnknown: true, tool.EffectNone: false, tool.EffectRead: false, tool.EffectWrite: true, tool.EffectExec: true} {
		for _, writes := range [][]string{nil, {"/w/a"}} {
			name := fmt.Sprintf("t%d_%d", effect, len(writes))
			want[name] = says || writes != nil
			r.add(&writer{fake{tool.Spec{Name: name, Effect: effect}, false, func(context.Context, *tool.Invocation) (tool.Result, error) { return tool.Text("done"), nil }}, writes})
			es = append(es, calls(name, name, `{}`))
		}
	}
	r.model.turns = []turn{events(es...), events(llm.Text{Text: "Done."})}
	r.run("Work.")
	got := map[string]bool{}
	for name, s := range r.starts() {
		got[name] = s.Mutates
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("recorded as a change (-want +got):\n%s", diff)
	}
}

// mending is a tool whose finalizer frees the disk.
type mending struct {
	fake
	mend func()
}

func (m *mending) Finalize(context.Context, *tool.Call, *tool.Result) { m.mend() }

type longer struct{}

func (longer) Before(context.Context, *sched.Request) (sched.HookVerdict, error) {
	return sched.HookVerdict{Args: json.RawMessage(`{"path":"` + strings.Repeat("x", 1<<20) + `"}`)}, nil
}
func (longer) After(context.Context, *sched.Request, *tool.Result) error { return nil }

// A start that cannot be recorded ends the run, also when all that comes after
// it can be again: what the disk does next is anybody's guess.
func TestStartNotRecorded(t *testing.T) {
	r := newRig(t, tool.Direct)
	files := strings.TrimSuffix(r.opt.Log.Path(), ".jsonl") + ".files" // where long events go
	ran := false
	r.add(&mending{fake{tool.Spec{Name: "write", Effect: tool.EffectWrite, Input: []byte(path)}, false, func(context.Context, *tool.Invocation) (tool.Result, error) {
		ran = true
		return tool.Text("written"), nil
	}}, func() {
		if err := os.Remove(files); err != nil {
			t.Error(err)
		}
	}})
	r.opt.Sched.Hooks = []sched.Hook{longer{}}
	r.model.turns = []turn{func(ctx context.Context, q *llm.Request, yield func(llm.Event, error) bool) {
		if err := os.WriteFile(files, nil, 0o600); err != nil {
			t.Error(err)
		}
		events(calls("c1", "write", `{"path":"a"}`))(ctx, q, yield)
	}, events(llm.Text{Text: "Done."})}
	out := r.run("Work.")
	last := r.agent.History()[2]
	if out.Reason != agent.Failed || ran || len(r.model.asks) != 1 || last.Results[0].Code != tool.CodeNotStarted {
		t.Errorf("%s (%v) after %d requests, ran: %v, the call: %+v", out.Reason, out.Err, len(r.model.asks), ran, last)
	}
}

// What a tool has to remark of its result reaches the model and the log, and is
// told from what was done to the arguments.
func TestRemarks(t *testing.T) {
	r := newRig(t, tool.Direct)
	r.add(&fake{tool.Spec{Name: "look", Effect: tool.EffectNone, Input: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}, false, func(context.Context, *tool.Invocation) (tool.Result, error) {
		res := tool.Text("seen")
		res.Remarks = []string{"the result breaks the tool's own output schema: b", "and c"}
		return res, nil
	}})
	r.model.turns = []turn{events(calls("c1", "look", `{"n":"5"}`)), events(llm.Text{Text: "Done."})}
	r.run("Work.")
	state, err := r.store.Read(r.opt.Log.ID())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range state.Messages {
		for _, res := range m.Results {
			for _, p := range res.Parts {
				got = append(got, p.Text)
			}
		}
	}
	want := []string{"seen", `[The arguments did not fit as they were. /n: the string "5" was taken as number 5.]`, "[the result breaks the tool's own output schema: b; and c.]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Each decision is in the record before the call starts, under the true name of
// the tool: who had the last word, what was shown, and what they said.
//
// S0-250 S0-251 S0-256
func TestRecordedDecisions(t *testing.T) {
	r := newRig(t, tool.Direct)
	for _, name := range []string{"free", "asked", "banned"} {
		r.add(&fake{tool.Spec{Name: name, Description: "d"}, false, func(context.Context, *tool.Invocation) (tool.Result, error) { return tool.Text("done"), nil }})
	}
	r.opt.Sched.Policy = judge{"free": {Decision: sched.Allow, By: "mode"}, "asked": {Decision: sched.Ask, Reason: "it writes", By: "mode"}, "banned": {Decision: sched.Deny, Reason: "never", By: "rule"}}
	r.opt.Sched.Approver = answers(sched.Answer{Allow: true, By: "the user", Grants: []sched.Grant{{Layer: "session", List: "allow", Rule: "asked"}}})
	r.model.turns = []turn{events(calls("c1", "free", `{}`), calls("c2", "asked", `{}`), calls("c3", "banned", `{}`)), events(llm.Text{Text: "done"})}
	r.run("go")
	log, err := os.ReadFile(r.opt.Log.Path())
	if err != nil {
		t.Fatal(err)
	}
	got, started := map[string]session.Decision{}, map[string]bool{}
	for line := range strings.Lines(string(log)) {
		var e struct {
			Decision *session.Decision
			Start    *session.Start
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Start != nil {
			started[e.Start.ID] = true
		}
		if d := e.Decision; d != nil {
			if started[d.Call] || len(d.ArgsSHA256) != 64 || (d.Definition != "") != (d.Name == "asked") {
				t.Errorf("started before: %t, %+v", started[d.Call], d)
			}
			d.ArgsSHA256, d.Definition, d.WaitMS = "", "", 0
			got[d.Call] = *d
		}
	}
	want := map[string]session.Decision{
		"c1": {Call: "c1", Name: "free", Source: "model", Allowed: true, Stage: "rules", By: "mode", Rules: "allow", Args: "{}"},
		"c2": {Call: "c2", Name: "asked", Source: "model", Allowed: true, Stage: "person", By: "the user", Rules: "ask", Args: "{}", Asked: "it writes", Answered: "the user", Grants: []string{"session allow asked"}},
		"c3": {Call: "c3", Name: "banned", Source: "model", Stage: "rules", By: "rule", Reason: "banned was denied: never", Rules: "deny", Args: "{}"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

// judge is a policy that says the same of a tool whenever it is asked.
type judge map[string]sched.Verdict

func (j judge) Decide(_ context.Context, q *sched.Request) sched.Verdict { return j[q.Call.Name] }

type answers sched.Answer

func (a answers) Approve(context.Context, *sched.Question) (sched.Answer, error) {
	return sched.Answer(a), nil
}
