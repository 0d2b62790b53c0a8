package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/agent"
	"capstan/internal/llm"
	"capstan/internal/msg"
	"capstan/internal/tool"
)

// said are the texts of the user's messages in the history.
func (r *rig) said() (out []string) {
	for _, m := range r.agent.History() {
		if m.Role != msg.User {
			continue
		}
		for _, p := range m.Parts {
			out = append(out, p.Text)
		}
	}
	return out
}

// A hook may block a prompt, which the model then never sees, or add to it.
func TestPromptHook(t *testing.T) {
	r := newRig(t, tool.Direct)
	r.model.turns = []turn{events(llm.Text{Text: "one"}), events(llm.Text{Text: "two"})}
	r.opt.Hooks.Prompt = func(_ context.Context, parts []msg.Part) agent.Steer {
		text := msg.JoinText(parts)
		if strings.Contains(text, "secret") {
			return agent.Steer{Block: "no secrets"}
		}
		return agent.Steer{Add: []string{"about " + text}}
	}
	out := r.run("a secret")
	if want := "a hook blocked the prompt, so the model did not get it: no secrets"; out.Reason != agent.Hooked || out.Err == nil || out.Err.Error() != want || out.Turns != 0 {
		t.Errorf("%+v", out)
	}
	r.agent.Queue([]msg.Part{msg.TextPart("a secret, queued")})
	r.agent.Queue([]msg.Part{msg.TextPart("queued")})
	if out := r.run("go"); out.Reason != agent.Finished {
		t.Errorf("%+v", out)
	}
	if d := cmp.Diff([]string{"queued", "[From a hook, not from the user] about queued", "go", "[From a hook, not from the user] about go"}, r.said()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if !r.noticed("A hook blocked a message, so the model did not get it: no secrets") {
		t.Errorf("%v", r.events)
	}
}

func (r *rig) noticed(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if n, ok := e.(agent.Noticed); ok && n.Text == text {
			return true
		}
	}
	return false
}

// A hook is told of the calls of an answer when all have settled, and what it says
// comes behind their results. One that ends the run ends it before the next
// request.
func TestBatchHook(t *testing.T) {
	r := newRig(t, tool.Direct)
	r.model.turns = []turn{events(calls("a", "read_file", `{"path":"x"}`), calls("b", "read_file", `{"path":"missing"}`)), events(calls("c", "read_file", `{"path":"y"}`)), events(llm.Text{Text: "done"})}
	var seen []string
	halted := ""
	r.opt.Hooks = agent.Hooks{
		Batch: func(_ context.Context, calls []tool.Call, results []msg.Result) agent.Steer {
			for i, c := range calls {
				seen = append(seen, c.Name+" "+string(c.Args)+" "+msg.JoinText(results[i].Parts))
			}
			if len(seen) == 3 {
				halted = "enough"
			}
			return agent.Steer{Add: []string{"noted"}}
		},
		Halted: func() string { return halted },
	}
	out := r.run("go")
	if out.Reason != agent.Hooked || out.Err.Error() != "a hook ended the run: enough" || out.Turns != 2 {
		t.Errorf("%+v", out)
	}
	if d := cmp.Diff([]string{`read_file {"path":"x"} contents of x`, `read_file {"path":"missing"} there is no file missing`, `read_file {"path":"y"} contents of y`}, seen); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if d := cmp.Diff([]string{"go", "[From a hook, not from the user] noted", "[From a hook, not from the user] noted"}, r.said()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// A hook may keep a run from ending, and the model is told why; not for ever, and
// not in place of what the user has queued.
func TestStopHook(t *testing.T) {
	r := newRig(t, tool.Direct)
	r.model.repeats = true
	r.model.turns = []turn{events(llm.Text{Text: "done"})}
	var again []bool
	blocks := 2
	r.opt.Hooks.Stop = func(_ context.Context, text string, before bool) agent.Steer {
		again = append(again, before)
		if text != "done" || len(again) > blocks {
			return agent.Steer{}
		}
		return agent.Steer{Block: "run the tests", Add: []string{"make test"}}
	}
	out := r.run("go")
	if d := cmp.Diff([]bool{false, true, true}, again); d != "" || out.Reason != agent.Finished || out.Turns != 3 {
		t.Errorf("%+v %s", out, d)
	}
	hook := "[From a hook, not from the user] "
	if d := cmp.Diff([]string{"go", hook + "run the tests", hook + "make test", hook + "run the tests", hook + "make test"}, r.said()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	again, blocks = nil, 1000
	out = r.run("more")
	if len(again) != 9 || out.Reason != agent.Finished || out.Turns != 9 || !r.noticed("A hook kept the run from ending 8 times in a row; now it ends all the same. The last time it said: run the tests") {
		t.Errorf("%d %+v", len(again), out)
	}
}

// Without hooks nothing is asked: a run is as it was.
func TestNoHooks(t *testing.T) {
	r := newRig(t, tool.Direct)
	r.model.turns = []turn{events(calls("a", "read_file", `{"path":"x"}`)), events(llm.Text{Text: "done"})}
	if out := r.run("go"); out.Reason != agent.Finished || out.Turns != 2 {
		t.Errorf("%+v", out)
	}
	if d := cmp.Diff([]string{"go"}, r.said()); d != "" {
		t.Error(d)
	}
}
