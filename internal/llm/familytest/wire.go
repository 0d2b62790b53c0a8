package familytest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/llm"
	"capstan/internal/llm/llmtest"
	"capstan/internal/msg"
)

// Cancel tests that cancelling, and leaving the loop, close the connection before
// Stream returns, and that what came is kept.
func (f *Family) Cancel(t *testing.T) {
	for _, how := range []string{"cancel", "leave"} {
		t.Run(how, func(t *testing.T) {
			e, server := f.serve(t, "-- hang --\ntext half of it\nhang\n")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			turn := llm.NewTurn(f.Name + "/" + f.Model)
			var last error
			for event, err := range f.Open(e).Stream(ctx, &llm.Request{Model: f.Model, Messages: Said("hi")}) {
				if last = err; err != nil {
					continue
				}
				turn.Add(event)
				if m := turn.Message(); m.Text() == "half of it" {
					if how == "leave" {
						break
					}
					cancel()
				}
			}
			if how == "cancel" {
				if e := fails(t, last, llm.ErrCancelled, ""); !errors.Is(e, context.Canceled) {
					t.Errorf("the cause is %v", e.Err)
				}
			}
			if m := turn.Message(); m.Text() != "half of it" {
				t.Errorf("kept %q", m.Text())
			}
			select {
			case <-server.Requests()[0].Gone:
			case <-time.After(20 * time.Second):
				t.Error("the connection is still open")
			}
		})
	}
}

// Broken tests that an answer that breaks is asked for again with the same bytes,
// and that what was shown of it is void. result is how a result of "r1" stands in
// the request.
func (f *Family) Broken(t *testing.T, answer, result string) {
	t.Helper()
	e, server := f.serve(t, "-- breaks --\n"+answer+"-- whole --\nwant "+result+"\ntext I will now write.\n")
	e.Retries = 2
	history := append(Said("hi"), msg.Message{Role: msg.Assistant, Parts: []msg.Part{Call("c", "read_file", "{}")}}, Results(Result("c", "r1")))
	turn, err := Ask(t.Context(), f.Name, f.Open(e), &llm.Request{Model: f.Model, Messages: history, Tools: []msg.Declaration{ReadFile}})
	if err != nil {
		t.Fatal(err)
	}
	parts := turn.Message().Parts
	for i := range parts {
		parts[i].State = nil // which some give with every text
	}
	if diff := cmp.Diff([]msg.Part{msg.TextPart("I will now write.")}, parts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r := server.Requests(); r[0].Body != r[1].Body {
		t.Error("the second request is another one")
	}
}

// LongName tests that a name that is too long is shortened, leads back, and is
// told of once. declared and called are how the short name, NAME, stands in a
// request: in a declaration, and in a call that goes back.
func (f *Family) LongName(t *testing.T, declared, called string) {
	const long = "mcp__example-billing-cost-management-server__billing_cost_management_get_reservation_purchase_recommendation"
	const short = "mcp__example-billing-cost-management-server__billing_co_d78d8d81"
	e, _ := f.serve(t, strings.ReplaceAll("-- 1 --\nwant "+declared+"\ncall NAME {}\n-- 2 --\nwant "+called+"\ntext ok\n", "NAME", short))
	c := f.Open(e)
	r := &llm.Request{Model: f.Model, Messages: Said("hi"), Tools: []msg.Declaration{{Name: long, Parameters: json.RawMessage(`{"type":"object"}`)}}}
	turn, err := Ask(t.Context(), f.Name, c, r)
	if err != nil {
		t.Fatal(err)
	}
	if got := Calls(turn); len(got) != 1 || got[0].Name != long || len(turn.Warnings) != 1 || !strings.Contains(turn.Warnings[0], short) {
		t.Errorf("calls %+v, warnings %q", got, turn.Warnings)
	}
	r.Messages = append(r.Messages, turn.Message())
	if turn, err = Ask(t.Context(), f.Name, c, r); err != nil || len(turn.Warnings) != 0 {
		t.Errorf("the second time: %v, warnings %q", err, turn.Warnings)
	}
}

// Models tests the list of models, and a model that is not in it.
func (f *Family) Models(t *testing.T) {
	e, _ := f.serve(t, "-- server --\nmodels b a\n-- none --\ntext x\n")
	c := f.Open(e)
	got, err := c.Models(t.Context())
	if diff := cmp.Diff([]string{"a", "b"}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	_, err = Ask(t.Context(), f.Name, c, &llm.Request{Model: "zzz", Messages: Said("hi")})
	fails(t, err, llm.ErrNotFound, "zzz")
	if _, err := Ask(t.Context(), f.Name, c, &llm.Request{Model: "a", Messages: Said("hi")}); err != nil {
		t.Error(err)
	}
}

// A Bad answer, and the error that it becomes.
type Bad struct {
	name  string
	a     Answers
	kind  llm.Kind
	says  string
	after time.Duration
}

// NewBad returns a bad answer. after is how long the provider asks to wait.
func NewBad(name string, a Answers, kind llm.Kind, says string, after ...time.Duration) Bad {
	b := Bad{name, a, kind, says, 0}
	for _, d := range after {
		b.after += d
	}
	return b
}

// BadAnswers tests that each kind of bad answer gets an error that says what to
// do, with no key in it: these, and those that come from what stands between.
func (f *Family) BadAnswers(t *testing.T, own ...Bad) {
	html := http.Header{"Content-Type": {"text/html"}}
	body := strings.NewReader
	common := []Bad{
		{"html instead of json", Answers{Header: html, Body: body("<html><body>Welcome to the <b>router</b></body></html>")}, llm.ErrProtocol, "Welcome to the router", 0},
		{"a line of text", Answers{Body: body("upstream connect error or disconnect")}, llm.ErrProtocol, "upstream connect error", 0},
		{"cut in the name of a field", Answers{Body: body("dat")}, llm.ErrNetwork, "the connection broke off: the stream ended in the middle", 0},
		{"no stream", Answers{Body: body("")}, llm.ErrNetwork, "the connection broke off: the stream ended in the middle", 0},
		{"the size, from a proxy", Answers{Status: 413, Header: html, Body: body("<html><head><title>413 Request Entity Too Large</title></head></html>")}, llm.ErrTooLarge, "a web page: 413", 0},
		{"a bad gateway", Answers{Status: 502, Header: html, Body: body("<html><head><title>502 Bad Gateway</title></head></html>")}, llm.ErrOverloaded, "a web page: 502", 0},
		{"a redirect, which is not followed", Answers{Status: 307, Header: http.Header{"Location": {"https://elsewhere.example/v1"}}, Body: body("")}, llm.ErrNotFound, "redirects to https://elsewhere.example/v1", 0},
	}
	for _, tt := range append(common, own...) {
		t.Run(tt.name, func(t *testing.T) {
			_, err := f.ask(t, f.Open(f.Over(tt.a)))
			if e := fails(t, err, tt.kind, tt.says); e.RetryAfter != tt.after {
				t.Errorf("after %v, want %v", e.RetryAfter, tt.after)
			}
		})
	}
}

// stalled is a transport whose answer begins and does not go on.
type stalled string

func (s stalled) RoundTrip(r *http.Request) (*http.Response, error) {
	in, out := io.Pipe()
	go func() {
		_, _ = io.WriteString(out, string(s))
		<-r.Context().Done()
		out.CloseWithError(r.Context().Err())
	}()
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: in, Request: r}, nil
}

// Silence tests that an answer that does not go on is given up, and keeps what
// came. begin is the beginning of a stream, with the text "hel".
func (f *Family) Silence(t *testing.T, begin string) {
	synctest.Test(t, func(t *testing.T) {
		e := f.Over(stalled(begin))
		e.Idle = time.Minute
		start := time.Now()
		turn, err := f.ask(t, f.Open(e))
		fails(t, err, llm.ErrNetwork, "the endpoint fell silent: nothing came for 1m0s")
		if m := turn.Message(); m.Text() != "hel" || time.Since(start) != time.Minute {
			t.Errorf("kept %q, after %v", m.Text(), time.Since(start))
		}
	})
}

// Types tests that a stream is read as one, and a whole answer as one, whatever
// type they have. Each body says "x".
func (f *Family) Types(t *testing.T, bodies ...string) {
	for _, kind := range []string{"", "text/event-stream; charset=utf-8", "application/json", "text/plain"} {
		for _, body := range bodies {
			turn, err := f.ask(t, f.Open(f.Over(Answers{Header: http.Header{"Content-Type": {kind}}, Body: strings.NewReader(body)})))
			if m := turn.Message(); err != nil || m.Text() != "x" || turn.Finish != llm.FinishStop {
				t.Errorf("type %q: %q, %v: %s", kind, m.Text(), err, body)
			}
		}
	}
}

// AnswerLimit is what EndlessAnswers sets as the limit of an answer, in bytes.
const AnswerLimit = 3 << 20

// EndlessAnswers tests that an answer that repeats one of these events for ever
// is ended, soon after its limit; and so is a line, and an event. An event that is
// called "comments" says nothing, and has the limit of a stream.
func (f *Family) EndlessAnswers(t *testing.T, events map[string]string) {
	big := strings.Repeat("x", 1<<20)
	all := map[string]string{"one line": "data: " + big, "one event": "data: " + big + "\n"}
	for name, event := range events {
		all[name] = event
	}
	for name, event := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			most := 4*AnswerLimit + 2*len(event) // what is not text may be counted otherwise
			switch name {
			case "one line", "one event":
				most = llm.MaxFrame + 2<<20
			case "comments":
				most = llm.MaxStream + 2<<20
			}
			body := &Endless{Event: event}
			c := f.Open(f.Over(Answers{Body: body}))
			f.Limit(c, AnswerLimit)
			_, err := f.ask(t, c)
			e := fails(t, err, llm.ErrProtocol, "longer than")
			if e.What != "the answer does not end" || e.Advice == "" { // the address is right
				t.Errorf("%v", err)
			}
			if body.Sent > most {
				t.Errorf("read %d bytes, more than %d", body.Sent, most)
			}
		})
	}
}

// LongLists tests that a list whose elements take more memory than bytes is
// refused before it is read. The events have it as [].
func (f *Family) LongLists(t *testing.T, events map[string]string) {
	for name, event := range events {
		t.Run(name, func(t *testing.T) {
			body := strings.Replace(event, "[]", "["+strings.Repeat("{},", 100_001)+"{}]", 1)
			_, err := f.ask(t, f.Open(f.Over(Answers{Body: strings.NewReader("data: " + body + "\n\n")})))
			fails(t, err, llm.ErrProtocol, "a list has more than")
		})
	}
}

// RefusedRequests tests that what a request itself lacks is said before anything
// is sent: these, by what is said, and what no family takes.
func (f *Family) RefusedRequests(t *testing.T, own map[string]*llm.Request) {
	all := map[string]*llm.Request{
		"no model is named":         {Messages: Said("hi")},
		"the conversation is empty": {Model: f.Model},
		"tool bad":                  {Model: f.Model, Messages: Said("hi"), Tools: []msg.Declaration{{Name: "bad", Parameters: json.RawMessage(`{"type":`)}}},
	}
	for says, r := range own {
		all[says] = r
	}
	for says, r := range all {
		t.Run(says, func(t *testing.T) {
			_, err := Ask(t.Context(), f.Name, f.Open(f.Over(unused{t})), r)
			fails(t, err, llm.ErrBadRequest, says)
		})
	}
}

// unused is a transport that nobody may use.
type unused struct{ t *testing.T }

func (u unused) RoundTrip(*http.Request) (*http.Response, error) {
	u.t.Error("something was sent")
	return nil, io.EOF
}

// RealSchemas tests that the schemas of real MCP servers are taken, whatever they
// are.
func (f *Family) RealSchemas(t *testing.T) {
	files, _ := filepath.Glob("../../../../shared/data/mcp/*.json")
	if len(files) == 0 {
		t.Skip("the shared catalogues are not here")
	}
	n := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var catalogue struct {
			Tools []struct {
				Name        string
				InputSchema json.RawMessage
			}
		}
		if json.Unmarshal(raw, &catalogue) != nil {
			continue // the index
		}
		for _, tool := range catalogue.Tools {
			n++
			if err := f.takes(tool.Name, tool.InputSchema); err != nil {
				t.Errorf("%s: %s: %v", filepath.Base(file), tool.Name, err)
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d tools were found", n)
	}
}

// takes says what an API has against a tool.
func (f *Family) takes(name string, schema json.RawMessage) error {
	body, err := f.Body(&llm.Request{Model: f.Model, Messages: Said("hi"), Tools: []msg.Declaration{{Name: name, Parameters: schema}}})
	if err != nil {
		return err
	}
	return (&llmtest.Script{}).Check(f.Check, body)
}
