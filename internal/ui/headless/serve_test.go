package headless

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/agent"
	"capstan/internal/msg"
)

// talk is a conversation in a test, whose agent does what the test says.
type talk struct {
	t   *testing.T
	in  *io.PipeWriter
	out bytes.Buffer
	w   *Writer

	runs   chan string       // what each run was given
	end    chan agent.Reason // ends the run under way
	queued chan string       // what was queued
	takes  bool              // what Queue answers
	linger chan struct{}     // when not nil, an interrupted run ends with it only
	bad    []string
	ended  chan []*agent.Outcome
	shown  chan struct{} // a result was
	cancel context.CancelFunc
}

func newTalk(t *testing.T, first string) *talk {
	t.Helper()
	k := &talk{t: t, runs: make(chan string), end: make(chan agent.Reason), queued: make(chan string), takes: true, ended: make(chan []*agent.Outcome, 1)}
	k.shown = make(chan struct{}, 100)
	k.w = New(Options{Out: k, Format: Stream, Session: session})
	k.w.maxWaiting = 10_000
	in, w := io.Pipe()
	k.in = w
	ctx, cancel := context.WithCancel(t.Context())
	k.cancel = cancel
	var parts []msg.Part
	if first != "" {
		parts = []msg.Part{msg.TextPart(first)}
	}
	go func() {
		var ended []*agent.Outcome
		k.w.Serve(ctx, in, parts, Conversation{Run: k.run, Queue: k.queue,
			Ended: func(o *agent.Outcome) { ended = append(ended, o) },
			Bad:   func(err error) { k.bad = append(k.bad, err.Error()) }})
		in.Close()
		k.ended <- ended
	}()
	t.Cleanup(func() { cancel(); w.Close() })
	return k
}

// Write keeps what is shown.
func (k *talk) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(`"type":"result"`)) {
		defer func() { k.shown <- struct{}{} }()
	}
	return k.out.Write(p)
}

func (k *talk) run(ctx context.Context, parts []msg.Part) *agent.Outcome {
	k.runs <- msg.JoinText(parts)
	select {
	case r := <-k.end:
		return &agent.Outcome{Reason: r, Text: "answer"}
	case <-ctx.Done():
		if k.linger != nil {
			<-k.linger
		}
		return &agent.Outcome{Reason: agent.Interrupted, Err: fmt.Errorf("interrupted: %w", context.Cause(ctx))}
	}
}

func (k *talk) queue(parts []msg.Part) bool {
	k.queued <- msg.JoinText(parts)
	return k.takes
}

func (k *talk) line(s string) {
	k.t.Helper()
	if _, err := io.WriteString(k.in, s+"\n"); err != nil {
		k.t.Fatal(err)
	}
}

func (k *talk) say(s string) {
	k.line(`{"type":"user","message":{"role":"user","content":"` + s + `"}}`)
}

func (k *talk) want(c <-chan string, text string) {
	k.t.Helper()
	if got := <-c; got != text {
		k.t.Errorf("%q, want %q", got, text)
	}
}

// reasons waits for the end.
func (k *talk) reasons() []agent.Reason {
	var out []agent.Reason
	for _, o := range <-k.ended {
		out = append(out, o.Reason)
	}
	return out
}

func (k *talk) results() int { return strings.Count(k.out.String(), `"type":"result"`) }

// Prompts are answered one after the other; those that come while the agent
// works are queued, but not before it has begun, so that their order holds.
func TestServe(t *testing.T) {
	k := newTalk(t, "first")
	k.want(k.runs, "first")
	k.say("second") // the run has made no request yet
	k.w.Event(agent.Asked{PromptID: "p"})
	k.want(k.queued, "second")
	k.say("third")
	k.want(k.queued, "third")
	k.end <- agent.Finished
	<-k.shown // so that it is no part of that run
	k.say("fourth")
	k.want(k.runs, "fourth")
	k.in.Close()
	k.end <- agent.Finished
	if diff := cmp.Diff([]agent.Reason{agent.Finished, agent.Finished}, k.reasons()); diff != "" {
		t.Error(diff)
	}
	if k.results() != 2 {
		t.Errorf("%d results:\n%s", k.results(), k.out.String())
	}
}

// A prompt that the ending run takes no more begins another one, and one that
// comes before the first request is not lost when there is none.
func TestServeLate(t *testing.T) {
	k := newTalk(t, "first")
	k.want(k.runs, "first")
	k.takes = false
	k.w.Event(agent.Asked{PromptID: "p"})
	k.say("late")
	k.want(k.queued, "late")
	k.end <- agent.Finished
	k.want(k.runs, "") // the agent holds it
	k.say("early")
	k.in.Close()
	k.end <- agent.Failed
	k.want(k.runs, "early")
	k.end <- agent.Finished
	if diff := cmp.Diff([]agent.Reason{agent.Finished, agent.Failed, agent.Finished}, k.reasons()); diff != "" {
		t.Error(diff)
	}
}

// The client can interrupt what runs, and go on.
func TestServeInterrupt(t *testing.T) {
	k := newTalk(t, "")
	k.line(`{"type":"control_request","request_id":"0","request":{"subtype":"interrupt"}}`) // nothing runs
	k.say("first")
	k.want(k.runs, "first")
	k.line(`{"type":"control_request","request_id":"1","request":{"subtype":"interrupt"}}`)
	<-k.shown
	k.say("second")
	k.want(k.runs, "second")
	k.line("nonsense")
	k.line(`{"type":"control_request","request_id":"2","request":{"subtype":"mcp_status"}}`)
	k.in.Close()
	k.end <- agent.Finished
	if diff := cmp.Diff([]agent.Reason{agent.Interrupted, agent.Finished}, k.reasons()); diff != "" {
		t.Error(diff)
	}
	var replies []string
	for line := range strings.Lines(k.out.String()) {
		var l struct {
			Type, Subtype string
			Response      struct {
				Subtype string
				ID      string `json:"request_id"`
			}
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.Type == "control_response" {
			replies = append(replies, l.Response.ID+" "+l.Response.Subtype)
		}
	}
	if diff := cmp.Diff([]string{"0 success", "1 success", "2 error"}, replies); diff != "" {
		t.Error(diff)
	}
	if len(k.bad) != 1 || !strings.HasPrefix(k.bad[0], "line 5 of the input: ") {
		t.Error(k.bad)
	}
}

// A prompt that comes while an interrupted run is still ending is not given to
// that run, which would never answer it: it begins the next one. So is one that
// came before the run's first request.
func TestServeAfterInterrupt(t *testing.T) {
	for _, asked := range []bool{true, false} {
		k := newTalk(t, "first")
		k.linger = make(chan struct{})
		k.want(k.runs, "first")
		if asked {
			k.w.Event(agent.Asked{PromptID: "p"})
			k.say("joins")
			k.want(k.queued, "joins")
		}
		k.line(`{"type":"control_request","request_id":"1","request":{"subtype":"interrupt"}}`)
		k.say("instead")
		k.w.Event(agent.Asked{PromptID: "p"})
		k.line("") // the one before has been looked at
		close(k.linger)
		k.want(k.runs, "instead")
		k.in.Close()
		k.end <- agent.Finished
		if diff := cmp.Diff([]agent.Reason{agent.Interrupted, agent.Finished}, k.reasons()); diff != "" {
			t.Error(diff)
		}
	}
}

// When the context ends what runs is awaited and shown, and the rest is left.
func TestServeEnds(t *testing.T) {
	k := newTalk(t, "first")
	k.want(k.runs, "first")
	k.cancel()
	if diff := cmp.Diff([]agent.Reason{agent.Interrupted}, k.reasons()); diff != "" {
		t.Error(diff)
	}
	if k.results() != 1 {
		t.Error(k.out.String())
	}

	k = newTalk(t, "") // nothing runs
	k.cancel()
	if got := k.reasons(); got != nil {
		t.Error(got)
	}
}

// What waits for an answer is bounded, and a short prompt is more than its letters.
func TestServeFull(t *testing.T) {
	for prompt, fit := range map[string]int{strings.Repeat("x", 2000): 3, "x": 9} {
		k := newTalk(t, "first")
		k.want(k.runs, "first")
		for range fit + 1 {
			k.say(prompt)
		}
		k.line("") // the one before has been looked at
		k.end <- agent.Finished
		for range fit {
			k.want(k.runs, prompt)
			k.end <- agent.Finished
		}
		k.in.Close()
		if got := k.reasons(); len(got) != fit+1 {
			t.Error(got)
		}
		if len(k.bad) != 1 || !strings.Contains(k.bad[0], "more than 10000 bytes of prompts wait") {
			t.Error(k.bad)
		}
	}
}

// An input that fails is told of, and ends the conversation.
func TestServeInputFails(t *testing.T) {
	k := newTalk(t, "")
	k.in.CloseWithError(errors.New("broken"))
	if got := k.reasons(); got != nil || len(k.bad) != 1 || k.bad[0] != "line 1 of the input: broken" {
		t.Error(got, k.bad)
	}
}

// A run that made its first request just before it ended has not begun the next
// one: what comes then waits for that one's own first request.
func TestServeAskedLate(t *testing.T) {
	queued := 0
	s := &server{w: New(Options{Out: io.Discard, Format: Text}), asked: make(chan struct{}, 1), done: make(chan *agent.Outcome, 1), c: Conversation{
		Run:   func(context.Context, []msg.Part) *agent.Outcome { return &agent.Outcome{Reason: agent.Finished} },
		Queue: func([]msg.Part) bool { queued++; return true },
		Ended: func(*agent.Outcome) {},
	}}
	s.w.maxWaiting = 10_000
	for run := range 2 {
		s.start(t.Context(), []msg.Part{msg.TextPart("a prompt")})
		if run == 0 {
			s.asked <- struct{}{} // and the end is seen first
			s.ended(<-s.done)
		}
	}
	select {
	case <-s.asked:
		s.begun()
	default:
	}
	s.command(t.Context(), command{parts: []msg.Part{msg.TextPart("early")}})
	if queued != 0 || len(s.waiting) != 1 {
		t.Errorf("%d prompts were given to a run that has not begun, %d wait", queued, len(s.waiting))
	}
	s.ended(<-s.done)
}

// Nothing is kept of a run that has ended: a conversation may have any number.
func TestServeKeepsNothing(t *testing.T) {
	s := &server{w: New(Options{Out: io.Discard, Format: JSON}), asked: make(chan struct{}, 1), done: make(chan *agent.Outcome, 1), c: Conversation{
		Run: func(context.Context, []msg.Part) *agent.Outcome {
			return &agent.Outcome{Reason: agent.Finished, Text: strings.Repeat("x", 100)}
		},
	}}
	var kept weak.Pointer[agent.Outcome]
	s.c.Ended = func(o *agent.Outcome) { kept = weak.Make(o) }
	s.start(t.Context(), []msg.Part{msg.TextPart("a prompt")})
	s.ended(<-s.done)
	runtime.GC()
	if kept.Value() != nil {
		t.Error("the outcome is still there")
	}
	runtime.KeepAlive(s)
}
