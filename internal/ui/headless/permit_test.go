package headless

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/agent"
	"capstan/internal/msg"
	"capstan/internal/sched"
	"capstan/internal/tool"
)

// A desk is a run whose calls ask the client, in a test.
type desk struct {
	t     *testing.T
	w     *Writer
	in    *io.PipeWriter
	lines chan string // what the client gets
	bad   chan string
	done  chan agent.Reason
	modes []string
}

// asked is what one call is told.
type asked struct {
	Answer sched.Answer
	Err    string
}

// newDesk starts a run that lasts until the test says so, or it is interrupted.
func newDesk(t *testing.T, run func(ctx context.Context, w *Writer)) *desk {
	t.Helper()
	d := &desk{t: t, lines: make(chan string, 1000), bad: make(chan string, 100), done: make(chan agent.Reason, 10)}
	d.w = New(Options{Out: d, Format: Stream, Session: session})
	in, w := io.Pipe()
	d.in = w
	served := make(chan struct{})
	go func() {
		defer close(served)
		d.w.Serve(t.Context(), in, []msg.Part{msg.TextPart("go")}, Conversation{
			Run: func(ctx context.Context, _ []msg.Part) *agent.Outcome {
				run(ctx, d.w)
				if ctx.Err() != nil {
					return &agent.Outcome{Reason: agent.Interrupted, Err: ctx.Err()}
				}
				return &agent.Outcome{Reason: agent.Finished}
			},
			Queue: func([]msg.Part) bool { return true },
			Ended: func(o *agent.Outcome) { d.done <- o.Reason },
			Bad:   func(err error) { d.bad <- err.Error() },
			SetMode: func(mode string) error {
				if mode == "frantic" {
					return errors.New("no such mode")
				}
				d.modes = append(d.modes, mode)
				return nil
			},
		})
	}()
	t.Cleanup(func() { w.Close(); <-served })
	return d
}

func (d *desk) Write(p []byte) (int, error) {
	d.lines <- string(bytes.TrimSpace(p))
	return len(p), nil
}

// next returns the next line of a type.
func (d *desk) next(kind string) string {
	d.t.Helper()
	for line := range d.lines {
		if strings.HasPrefix(line, `{"type":"`+kind+`"`) || strings.Contains(line, `"type":"`+kind+`"}`) {
			return line
		}
	}
	return ""
}

func (d *desk) send(line string) {
	d.t.Helper()
	if _, err := io.WriteString(d.in, line+"\n"); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) answer(id, response string) {
	d.send(`{"type":"control_response","response":{"subtype":"success","request_id":"` + id + `","response":` + response + `}}`)
}

// about makes a question about a call.
func about(id, args string, offers ...sched.Offer) *sched.Question {
	return &sched.Question{Request: sched.Request{Call: &tool.Call{ID: id, ParentID: "c1", Source: tool.FromProgram, Name: "run_shell_command", Args: json.RawMessage(args)}},
		Verdict: sched.Verdict{Decision: sched.Ask, Reason: "it writes"}, Offers: offers}
}

func approve(ctx context.Context, w *Writer, q *sched.Question) asked {
	answer, err := w.Approve(ctx, q)
	if err != nil {
		return asked{answer, err.Error()}
	}
	return asked{Answer: answer}
}

var offers = []sched.Offer{{Layer: "session", Rules: []string{"Bash(make (all))", "Edit"}}, {Layer: "local", File: "f", Rules: []string{"Edit"}}}

// TestCanUseTool is the question as the client gets it, and each answer that it
// may give.
//
// S0-180 S0-251
func TestCanUseTool(t *testing.T) {
	const question = `{"type":"control_request","request_id":"perm_1","request":{"subtype":"can_use_tool","tool_name":"run_shell_command",` +
		`"input":{"command":"make","n":12345678901234567890},"tool_use_id":"c1/1","parent_tool_use_id":"c1","capstan_source":"code_mode","decision_reason":"it writes",` +
		`"permission_suggestions":[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"make (all)"},{"toolName":"Edit"}],"behavior":"allow","destination":"session"},` +
		`{"type":"addRules","rules":[{"toolName":"Edit"}],"behavior":"allow","destination":"localSettings"}]}}`
	for _, tc := range []struct {
		response string
		want     asked
	}{
		{`{"behavior":"allow"}`, asked{Answer: sched.Answer{Allow: true, By: client}}},
		{`{"behavior":"allow","updatedInput":null,"updatedPermissions":null}`, asked{Answer: sched.Answer{Allow: true, By: client}}},
		{`{"behavior":"allow","updatedInput":{"command":"make all"}}`, asked{Answer: sched.Answer{Allow: true, By: client, Args: json.RawMessage(`{"command":"make all"}`)}}},
		{`{"behavior":"allow","updatedPermissions":[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"make (all)"},{"toolName":"Edit"}],"behavior":"allow","destination":"session"},{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"rm:*"}],"behavior":"deny","destination":"userSettings"}]}`,
			asked{Answer: sched.Answer{Allow: true, By: client, Grants: []sched.Grant{{Layer: "session", List: "allow", Rule: "Bash(make (all))"}, {Layer: "session", List: "allow", Rule: "Edit"}, {Layer: "user", List: "deny", Rule: "Bash(rm:*)"}}}}},
		{`{"behavior":"deny","message":" use go test instead "}`, asked{Answer: sched.Answer{By: client, Reason: "use go test instead"}}},
		{`{"behavior":"ask"}`, asked{Err: `the client's answer has the behavior "ask": want allow or deny`}},
		{`null`, asked{Err: `the client's answer has the behavior "": want allow or deny`}},
		{`[1]`, asked{Err: `the client's answer is no object`}},
		{`{"behavior":"allow","updatedPermissions":[{"type":"setMode","mode":"bypassPermissions"}]}`, asked{Err: `the type "setMode"`}},
		{`{"behavior":"allow","updatedPermissions":[{"type":"addRules","behavior":"allow","destination":"everywhere"}]}`, asked{Err: `"everywhere": want allow, ask or deny`}},
		{`{"behavior":"allow","updatedPermissions":[{"type":"addRules","behavior":"maybe","destination":"session"}]}`, asked{Err: `"maybe"`}},
	} {
		got := make(chan asked, 1)
		d := newDesk(t, func(ctx context.Context, w *Writer) {
			got <- approve(ctx, w, about("c1/1", `{"command":"make","n":12345678901234567890}`, offers...))
		})
		if diff := cmp.Diff(question, d.next("control_request")); diff != "" {
			t.Fatal(diff)
		}
		d.answer("perm_1", tc.response)
		a := <-got
		if tc.want.Err != "" {
			if !strings.Contains(a.Err, tc.want.Err) {
				t.Errorf("%s: %+v", tc.response, a)
			}
		} else if diff := cmp.Diff(tc.want, a); diff != "" {
			t.Errorf("%s: %s", tc.response, diff)
		}
	}
}

// Several questions are open at once, and each answer goes to its own call. A
// second answer is dropped, one to what was never asked is told of.
//
// S0-180
func TestAnswersInAnyOrder(t *testing.T) {
	got := map[string]chan asked{"a": make(chan asked, 1), "b": make(chan asked, 1), "c": make(chan asked, 1)}
	d := newDesk(t, func(ctx context.Context, w *Writer) {
		for id := range got {
			go func() { got[id] <- approve(ctx, w, about(id, `{}`)) }()
		}
		<-ctx.Done()
	})
	ids := map[string]string{}
	for range got {
		var l struct {
			ID      string `json:"request_id"`
			Request struct {
				ID string `json:"tool_use_id"`
			}
		}
		if err := json.Unmarshal([]byte(d.next("control_request")), &l); err != nil {
			t.Fatal(err)
		}
		ids[l.Request.ID] = l.ID
	}
	d.answer(ids["c"], `{"behavior":"deny","message":"c"}`)
	d.answer(ids["a"], `{"behavior":"allow"}`)
	d.answer(ids["a"], `{"behavior":"deny"}`) // too late
	d.answer("perm_4", `{"behavior":"allow"}`)
	d.answer("perm_0", `{"behavior":"allow"}`)
	d.send(`{"type":"control_response","response":{"subtype":"error","request_id":"` + ids["b"] + `","error":"the window is closed"}}`)
	want := map[string]asked{
		"a": {Answer: sched.Answer{Allow: true, By: client}},
		"b": {Err: "the client could not answer: the window is closed"},
		"c": {Answer: sched.Answer{Reason: "c", By: client}},
	}
	for id, c := range got {
		if diff := cmp.Diff(want[id], <-c); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
	}
	for _, id := range []string{"perm_4", "perm_0"} {
		if bad := <-d.bad; !strings.Contains(bad, `a control_response to "`+id+`", which was not asked`) {
			t.Error(bad)
		}
	}
	d.send(`{"type":"control_request","request_id":"i","request":{"subtype":"interrupt"}}`)
	if r := <-d.done; r != agent.Interrupted {
		t.Error(r)
	}
}

// Who is gone cannot be asked: an open question ends at once, and a later one is
// not even put.
//
// BUG-AH-01
func TestClientIsGone(t *testing.T) {
	got := make(chan asked, 2)
	d := newDesk(t, func(ctx context.Context, w *Writer) {
		got <- approve(ctx, w, about("a", `{}`))
		got <- approve(ctx, w, about("b", `{}`))
	})
	d.next("control_request")
	d.in.Close()
	want := asked{Answer: sched.Answer{Unasked: true, Reason: "the client's end of standard input is closed"}}
	for range 2 {
		if diff := cmp.Diff(want, <-got); diff != "" {
			t.Error(diff)
		}
	}
	if r := <-d.done; r != agent.Finished {
		t.Error(r)
	}
	for _, format := range []Format{Text, JSON} { // nothing could be asked in these
		if a := approve(t.Context(), New(Options{Out: io.Discard, Format: format}), about("a", `{}`)); !a.Answer.Unasked {
			t.Errorf("%s: %+v", format, a)
		}
	}
}

// A question that needs no answer any more is withdrawn, and an answer to it that
// is under way does no harm.
func TestWithdrawn(t *testing.T) {
	withdraw, got := make(chan struct{}), make(chan asked, 1)
	d := newDesk(t, func(ctx context.Context, w *Writer) {
		mine, cancel := context.WithCancel(ctx)
		go func() {
			<-withdraw
			cancel()
		}()
		got <- approve(mine, w, about("a", `{}`))
		<-ctx.Done()
	})
	d.next("control_request")
	close(withdraw)
	if a := <-got; a.Err != context.Canceled.Error() || a.Answer.Allow {
		t.Errorf("%+v", a)
	}
	if diff := cmp.Diff(`{"request_id":"perm_1","type":"control_cancel_request"}`, d.next("control_cancel_request")); diff != "" {
		t.Error(diff)
	}
	d.answer("perm_1", `{"behavior":"allow"}`)
	d.send(`{"type":"control_request","request_id":"i","request":{"subtype":"interrupt"}}`)
	<-d.done
	if len(d.bad) > 0 {
		t.Error(<-d.bad)
	}
}

// A no can end the run with it.
func TestNoAndInterrupt(t *testing.T) {
	got := make(chan asked, 1)
	d := newDesk(t, func(ctx context.Context, w *Writer) {
		got <- approve(ctx, w, about("a", `{}`))
		<-ctx.Done()
	})
	d.next("control_request")
	d.answer("perm_1", `{"behavior":"deny","message":"stop","interrupt":true}`)
	if diff := cmp.Diff(asked{Answer: sched.Answer{Reason: "stop", By: client}}, <-got); diff != "" {
		t.Error(diff)
	}
	if r := <-d.done; r != agent.Interrupted {
		t.Error(r)
	}
}

// The approval mode can be changed, in Claude Code's words and in ours.
func TestSetPermissionMode(t *testing.T) {
	d := newDesk(t, func(ctx context.Context, _ *Writer) { <-ctx.Done() })
	for mode, want := range map[string]string{"acceptEdits": "success", "plan": "success", "bypassPermissions": "success", "default": "success", "yolo": "success", "frantic": "error"} {
		d.send(`{"type":"control_request","request_id":"1","request":{"subtype":"set_permission_mode","mode":"` + mode + `"}}`)
		if line := d.next("control_response"); !strings.Contains(line, `"subtype":"`+want+`"`) {
			t.Errorf("%s: %s", mode, line)
		}
	}
	d.send(`{"type":"control_request","request_id":"i","request":{"subtype":"interrupt"}}`)
	<-d.done
	modes := strings.Join(d.modes, " ")
	for _, m := range []string{"auto-edit", "plan", "yolo", "default"} {
		if !strings.Contains(modes, m) {
			t.Errorf("%s was not set: %s", m, modes)
		}
	}
}
