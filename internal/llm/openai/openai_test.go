package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/llm"
	"capstan/internal/llm/llmtest"
	"capstan/internal/msg"
)

// serve starts a scripted server, checks at the end that all went as the script
// has it, and returns a client for it.
func serve(t *testing.T, script string) (*Client, *llmtest.Server) {
	t.Helper()
	s, err := llmtest.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	server, err := llmtest.Listen(s)
	if err != nil {
		t.Fatal(err)
	}
	c := New(&llm.Endpoint{Name: "test", BaseURL: server.URL + "/v1", Retries: -1}, nil)
	t.Cleanup(func() {
		c.Close()
		server.Close()
		if err := server.Err(); err != nil {
			t.Error(err)
		}
	})
	return c, server
}

// ask collects an answer.
func ask(ctx context.Context, c *Client, r *llm.Request) (*llm.Turn, error) {
	turn := llm.NewTurn(Family + "/" + r.Model)
	for e, err := range c.Stream(ctx, r) {
		if err != nil {
			return turn, err
		}
		turn.Add(e)
	}
	return turn, nil
}

func said(s string) []msg.Message {
	return []msg.Message{{Role: msg.User, Parts: []msg.Part{msg.TextPart(s)}}}
}

var readFile = msg.Declaration{Name: "read_file", Description: "Read.", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)}

func TestAnswer(t *testing.T) {
	c, server := serve(t, `
-- look --
want "name":"read_file"
reasoning I should look.
text Let me look. 漢字 🙂
call read_file #c1 {"path":"a \"q\" ü"}
call read_file #c2 {"path":"b"}
usage 120 30 cached 100 reasoning 10
-- done --
want "tool_call_id":"c1"
text Done.
`)
	ctx := t.Context()
	r := &llm.Request{Model: "m", System: "Be brief.", Messages: said("look at a"), Tools: []msg.Declaration{readFile}}
	turn, err := ask(ctx, c, r)
	if err != nil {
		t.Fatal(err)
	}
	want := msg.Message{Role: msg.Assistant, Origin: "openai/m", Parts: []msg.Part{
		{Kind: msg.Reasoning, Text: "I should look."},
		msg.TextPart("Let me look. 漢字 🙂"),
		{Kind: msg.CallPart, Call: &msg.Call{ID: "c1", Name: "read_file", Args: `{"path":"a \"q\" ü"}`}},
		{Kind: msg.CallPart, Call: &msg.Call{ID: "c2", Name: "read_file", Args: `{"path":"b"}`}},
	}}
	if diff := cmp.Diff(want, turn.Message()); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(msg.Usage{Input: 120, Cached: 100, Output: 30, Reasoning: 10}, turn.Usage); diff != "" || turn.Finish != llm.FinishCalls {
		t.Errorf("usage (-want +got):\n%s\nfinish %s", diff, turn.Finish)
	}
	r.Messages = append(r.Messages, turn.Message(), msg.Message{Role: msg.Tool, Results: []msg.Result{
		{CallID: "c1", Parts: []msg.Part{msg.TextPart("A")}}, {CallID: "c2", Parts: []msg.Part{msg.TextPart("B")}}}})
	if turn, err = ask(ctx, c, r); err != nil || turn.Finish != llm.FinishStop {
		t.Fatal(turn.Finish, err)
	}
	wantBody := `{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"look at a"},` +
		`{"role":"assistant","content":"Let me look. 漢字 🙂","reasoning_content":"I should look.","tool_calls":[` +
		`{"id":"c1","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"a \\\"q\\\" ü\"}"}},` +
		`{"id":"c2","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"b\"}"}}]},` +
		`{"role":"tool","content":"A","tool_call_id":"c1"},{"role":"tool","content":"B","tool_call_id":"c2"}],` +
		`"tools":[{"type":"function","function":{"name":"read_file","description":"Read.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}],` +
		`"stream":true,"stream_options":{"include_usage":true}}`
	if diff := cmp.Diff(wantBody, server.Requests()[1].Body); diff != "" {
		t.Errorf("second request (-want +got):\n%s", diff)
	}
}

// Any transcript of ours becomes a request that the API takes, whatever the
// profile. BUG-CP-01, BUG-CP-03, BUG-CP-08, BUG-CP-13, BUG-CP-15, BUG-CP-16,
// BUG-AR-06, BUG-AR-18
func TestAnyTranscript(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 200
	}
	script := strings.Repeat("-- ok --\ntext ok\n", n)
	s, err := llmtest.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		r := rand.New(rand.NewPCG(1, uint64(i)))
		history := llmtest.Transcript(r)
		profile := Profiles()[r.IntN(len(Profiles()))]
		c := New(&llm.Endpoint{Name: "test", BaseURL: "http://127.0.0.1/v1"}, &profile)
		req := &llm.Request{Model: "m", Messages: history, CacheKey: strings.Repeat("k", 1+r.IntN(100))}
		s.IDs = 0
		if profile.Name == "openai" || profile.Name == "azure" || profile.Name == "openrouter" {
			s.IDs = 40
		}
		if r.IntN(4) > 0 {
			req.Tools = []msg.Declaration{readFile}
		}
		before, _ := json.Marshal(history)
		body, _, err := c.encode(req)
		if err != nil {
			t.Fatalf("seed %d: %v", i, err)
		}
		if err := s.Check("chat", body); err != nil {
			t.Fatalf("seed %d (%s): %v\n%s", i, profile.Name, err, body)
		}
		if after, _ := json.Marshal(history); string(after) != string(before) {
			t.Fatalf("seed %d: the history was changed", i)
		}
		if again, _, _ := c.encode(req); string(again) != string(body) {
			t.Fatalf("seed %d: the same request gave other bytes", i)
		}
	}
}

// A name that is too long is shortened, leads back, and is told of once.
// BUG-TN-01, BUG-TN-03
func TestLongName(t *testing.T) {
	const long = "mcp__example-billing-cost-management-server__billing_cost_management_get_reservation_purchase_recommendation"
	const short = "mcp__example-billing-cost-management-server__billing_co_d78d8d81"
	c, _ := serve(t, "-- 1 --\nwant \"name\":\""+short+"\"\ncall "+short+" {}\n-- 2 --\nwant \"name\":\""+short+"\",\"arguments\"\ntext ok\n")
	r := &llm.Request{Model: "m", Messages: said("hi"), Tools: []msg.Declaration{{Name: long, Parameters: json.RawMessage(`{"type":"object"}`)}}}
	turn, err := ask(t.Context(), c, r)
	if err != nil {
		t.Fatal(err)
	}
	if got := madeCalls(turn); len(got) != 1 || got[0].Name != long || len(turn.Warnings) != 1 || !strings.Contains(turn.Warnings[0], short) {
		t.Errorf("calls %+v, warnings %q", got, turn.Warnings)
	}
	r.Messages = append(r.Messages, turn.Message())
	if turn, err = ask(t.Context(), c, r); err != nil || len(turn.Warnings) != 0 {
		t.Errorf("the second time: %v, warnings %q", err, turn.Warnings)
	}
}

// Cancelling closes the connection before Stream returns, and keeps what came.
func TestCancel(t *testing.T) {
	c, server := serve(t, "-- hang --\ntext half of it\nhang\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	turn := llm.NewTurn("openai/m")
	var last error
	for e, err := range c.Stream(ctx, &llm.Request{Model: "m", Messages: said("hi")}) {
		last = err
		if err != nil {
			continue
		}
		turn.Add(e)
		if m := turn.Message(); m.Text() == "half of it" {
			cancel()
		}
	}
	var e *llm.Error
	if !errors.As(last, &e) || e.Kind != llm.ErrCancelled || !errors.Is(last, context.Canceled) {
		t.Errorf("error %v, want a cancelled one", last)
	}
	if m := turn.Message(); m.Text() != "half of it" {
		t.Errorf("kept %q", m.Text())
	}
	select {
	case <-server.Requests()[0].Gone:
	case <-time.After(20 * time.Second):
		t.Error("the connection is still open")
	}
}

// Leaving the loop closes the connection too.
func TestLeave(t *testing.T) {
	c, server := serve(t, "-- hang --\ntext half of it\nhang\n")
	for range c.Stream(t.Context(), &llm.Request{Model: "m", Messages: said("hi")}) {
		break
	}
	select {
	case <-server.Requests()[0].Gone:
	case <-time.After(20 * time.Second):
		t.Error("the connection is still open")
	}
}

// A stream that breaks is asked for again, without what was done before it
// being done again; not once a call was handed out. BUG-SD-13, BUG-SD-15
func TestBrokenStream(t *testing.T) {
	c, server := serve(t, `
-- breaks --
text I will now
call read_file {"pa
cut
-- whole --
want "content":"r1"
text I will now write.
`)
	c.endpoint.Retries = 2
	history := append(said("hi"), msg.Message{Role: msg.Assistant, Parts: []msg.Part{{Kind: msg.CallPart, Call: &msg.Call{ID: "c", Name: "read_file", Args: "{}"}}}},
		msg.Message{Role: msg.Tool, Results: []msg.Result{{CallID: "c", Parts: []msg.Part{msg.TextPart("r1")}}}})
	turn, err := ask(t.Context(), c, &llm.Request{Model: "m", Messages: history, Tools: []msg.Declaration{readFile}})
	if err != nil {
		t.Fatal(err)
	}
	if m := turn.Message(); m.Text() != "I will now write." || len(m.Calls()) != 0 {
		t.Errorf("got %+v", m)
	}
	if r := server.Requests(); r[0].Body != r[1].Body {
		t.Error("the second request is another one")
	}
}

func TestModels(t *testing.T) {
	c, _ := serve(t, "-- server --\nmodels b a\n-- none --\ntext x\n")
	got, err := c.Models(t.Context())
	if diff := cmp.Diff([]string{"a", "b"}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	_, err = ask(t.Context(), c, &llm.Request{Model: "zzz", Messages: said("hi")})
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.ErrNotFound || !strings.Contains(e.Error(), "zzz") {
		t.Errorf("unknown model: %v", err)
	}
	if _, err := ask(t.Context(), c, &llm.Request{Model: "a", Messages: said("hi")}); err != nil {
		t.Error(err)
	}
}

// answers is a transport that gives one answer to everything.
type answers struct {
	status int
	header http.Header
	body   io.Reader
}

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	h := a.header
	if h == nil {
		h = http.Header{"Content-Type": {"text/event-stream"}}
	}
	return &http.Response{StatusCode: max(a.status, 200), Header: h, Body: io.NopCloser(a.body), Request: r}, nil
}

func answering(profile string, a answers) *Client {
	p, ok := Profiles().Named(profile)
	if !ok {
		panic("no profile " + profile)
	}
	return New(&llm.Endpoint{Name: "test", BaseURL: "http://test/v1", Key: "sk-secret-key-123", Retries: -1, Transport: a}, &p)
}

// Each kind of bad answer gets an error that says what to do, with no key in it.
func TestBadAnswers(t *testing.T) {
	html := http.Header{"Content-Type": {"text/html"}}
	js := http.Header{"Content-Type": {"application/json"}}
	tests := []struct {
		name string
		a    answers
		kind llm.Kind
		says string
	}{
		{"401", answers{status: 401, header: js, body: strings.NewReader(`{"error":{"message":"Incorrect API key provided: sk-secret-key-123.","type":"invalid_request_error","code":"invalid_api_key"}}`)}, llm.ErrAuth, "check the API key"},
		{"404", answers{status: 404, header: js, body: strings.NewReader("{\"error\":{\"message\":\"The model `x` does not exist\",\"code\":\"model_not_found\"}}")}, llm.ErrNotFound, "check the model's name"},
		{"413", answers{status: 413, header: html, body: strings.NewReader("<html><head><title>413 Request Entity Too Large</title></head></html>")}, llm.ErrTooLarge, "a web page: 413"},
		{"html instead of json", answers{header: html, body: strings.NewReader("<html><body>Welcome to the <b>router</b></body></html>")}, llm.ErrProtocol, "Welcome to the router"},
		{"a line of text", answers{body: strings.NewReader("upstream connect error or disconnect")}, llm.ErrProtocol, "upstream connect error"},
		{"cut in the name of a field", answers{body: strings.NewReader("dat")}, llm.ErrNetwork, "in the middle"},
		{"no stream", answers{body: strings.NewReader("")}, llm.ErrNetwork, "in the middle"},
		{"cut in an event", answers{body: strings.NewReader(`data: {"choices":[{"delta":{"content":"hel`)}, llm.ErrNetwork, "in the middle"},
		{"cut between events", answers{body: strings.NewReader("data: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\n")}, llm.ErrNetwork, "in the middle"},
		{"only the end", answers{body: strings.NewReader("data: [DONE]\n\n")}, llm.ErrProtocol, "without an answer"},
		{"not json", answers{body: strings.NewReader("data: oops\n\ndata: [DONE]\n\n")}, llm.ErrProtocol, "oops"},
		{"an error in the stream", answers{body: strings.NewReader("data: {\"error\":{\"message\":\"Overloaded\",\"type\":\"overloaded_error\"}}\n\n")}, llm.ErrOverloaded, "Overloaded"},
		{"an error in a whole answer", answers{header: js, body: strings.NewReader(`{"error":"context length exceeded"}`)}, llm.ErrContext, "start a new session"},
		{"no choices", answers{header: js, body: strings.NewReader(`{"object":"x"}`)}, llm.ErrProtocol, "no choices"},
		{"an error that is no event", answers{body: strings.NewReader("\n{\"error\":{\"message\":\"context length exceeded\"}}")}, llm.ErrContext, "start a new session"},
		{"calls without end", answers{body: &endless{event: "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}}]}\n\n"}}, llm.ErrProtocol, "more than 1000 tool calls"},
		{"type confusion", answers{body: strings.NewReader("data: {\"choices\":\"x\"}\n\n")}, llm.ErrProtocol, "not what the API promises (in choices, the string should be something else)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ask(t.Context(), answering("openai", tt.a), &llm.Request{Model: "m", Messages: said("hi")})
			var e *llm.Error
			if !errors.As(err, &e) || e.Kind != tt.kind || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got kind %q: %v\nwant %q with %q", e.Kind, err, tt.kind, tt.says)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the key shows: %v", err)
			}
		})
	}
}

// A stream is read as one, and a whole answer as one, whatever type they have.
func TestTypes(t *testing.T) {
	for _, kind := range []string{"", "text/event-stream; charset=utf-8", "application/json", "text/plain"} {
		for _, body := range []string{
			deltas("stop", `{"content":"x"}`),
			": processing\n\n" + deltas("stop", `{"content":"x"}`),
			" " + `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}`,
		} {
			c := answering("openai", answers{header: http.Header{"Content-Type": {kind}}, body: strings.NewReader(body)})
			turn, err := ask(t.Context(), c, &llm.Request{Model: "m", Messages: said("hi")})
			if m := turn.Message(); err != nil || m.Text() != "x" || turn.Finish != llm.FinishStop {
				t.Errorf("type %q: %q, %v: %s", kind, m.Text(), err, body)
			}
		}
	}
}

// endless repeats an event for ever.
type endless struct {
	event string
	rest  string
	sent  int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.rest == "" {
		e.rest = e.event
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	e.sent += n
	return n, nil
}

// An answer that does not end is ended, and so is an event that does not.
func TestEndlessAnswer(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	for name, event := range map[string]string{
		"text":      `data: {"choices":[{"index":0,"delta":{"content":"` + big + "\"}}]}\n\n",
		"reasoning": `data: {"choices":[{"index":0,"delta":{"reasoning":"` + big + "\"}}]}\n\n",
		"arguments": `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"` + big + "\"}}]}}]}\n\n",
		"details":   `data: {"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.text","text":"` + big + "\"}]}}]}\n\n",
		"one line":  "data: " + big,
		"one event": "data: " + big + "\n",
		"comments":  ": " + big + "\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := &endless{event: event}
			c := answering("openai", answers{body: body})
			c.limit = 3 << 20
			_, err := ask(t.Context(), c, &llm.Request{Model: "m", Messages: said("hi")})
			var e *llm.Error
			if !errors.As(err, &e) || e.Kind != llm.ErrProtocol || !strings.Contains(err.Error(), "longer than") {
				t.Errorf("got %v", err)
			}
			most := 2*llm.MaxFrame + 1<<20
			if name == "comments" {
				most = llm.MaxStream + 1<<20
			}
			if body.sent > most {
				t.Errorf("read %d bytes", body.sent)
			}
		})
	}
}

// What the request itself lacks is said before anything is sent.
func TestRefusedRequests(t *testing.T) {
	c := answering("openai", answers{body: strings.NewReader("")})
	for says, r := range map[string]*llm.Request{
		"no model is named":         {Messages: said("hi")},
		"the conversation is empty": {Model: "m"},
		"tool bad":                  {Model: "m", Messages: said("hi"), Tools: []msg.Declaration{{Name: "bad", Parameters: json.RawMessage(`{"type":`)}}},
	} {
		_, err := ask(t.Context(), c, r)
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != llm.ErrBadRequest || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v", says, err)
		}
	}
}

// The schemas of real MCP servers are taken, whatever they are.
func TestRealSchemas(t *testing.T) {
	files, _ := filepath.Glob("../../../../shared/data/mcp/*.json")
	if len(files) == 0 {
		t.Skip("the shared catalogues are not here")
	}
	checker := &llmtest.Script{}
	c := answering("openai", answers{body: strings.NewReader("")})
	n := 0
	for _, f := range files {
		raw, err := os.ReadFile(f)
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
			body, _, err := c.encode(&llm.Request{Model: "m", Messages: said("hi"), Tools: []msg.Declaration{{Name: tool.Name, Parameters: tool.InputSchema}}})
			if err == nil {
				err = checker.Check("chat", body)
			}
			if err != nil {
				t.Errorf("%s: %s: %v", filepath.Base(f), tool.Name, err)
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d tools were found", n)
	}
}

// A list whose elements take more memory than bytes is refused before it is
// read.
func TestLongLists(t *testing.T) {
	for name, event := range map[string]string{
		"choices": `{"choices":[]}`,
		"calls":   `{"choices":[{"delta":{"tool_calls":[]}}]}`,
		"details": `{"choices":[{"delta":{"reasoning_details":[]}}]}`,
	} {
		body := strings.Replace(event, "[]", "["+strings.Repeat("{},", 100_001)+"{}]", 1)
		c := answering("openai", answers{body: strings.NewReader("data: " + body + "\n\n")})
		_, err := ask(t.Context(), c, &llm.Request{Model: "m", Messages: said("hi")})
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != llm.ErrProtocol || !strings.Contains(err.Error(), "a list has more than") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
