package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
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

// claude is a model of the newest kind.
const claude = "claude-sonnet-5-5"

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
	c := New(&llm.Endpoint{Name: "test", BaseURL: server.URL, Key: "k", Retries: -1}, nil)
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

func answer(parts ...msg.Part) msg.Message {
	return msg.Message{Role: msg.Assistant, Origin: Family + "/" + claude, Parts: parts}
}

func call(id, name, args string) msg.Part {
	return msg.Part{Kind: msg.CallPart, Call: &msg.Call{ID: id, Name: name, Args: args}}
}

func results(list ...msg.Result) msg.Message { return msg.Message{Role: msg.Tool, Results: list} }

func result(id, text string) msg.Result {
	return msg.Result{CallID: id, Status: "success", Parts: []msg.Part{msg.TextPart(text)}}
}

var readFile = msg.Declaration{Name: "read_file", Description: "Read.", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)}

func TestAnswer(t *testing.T) {
	c, server := serve(t, `
-- server --
key k
-- look --
want "name":"read_file"
reasoning I should look.
text Let me look. 漢字 🙂
call read_file #c1 {"path":"a \"q\" ü"}
call read_file #c2 {"path":"b"}
usage 120 30 cached 100 reasoning 10
-- done --
want "tool_use_id":"c1"
text Done.
`)
	ctx := t.Context()
	r := &llm.Request{Model: claude, System: "Be brief.", Messages: said("look at a"), Tools: []msg.Declaration{readFile}}
	turn, err := ask(ctx, c, r)
	if err != nil {
		t.Fatal(err)
	}
	signature := llmtest.Signature("I should look.")
	want := answer(
		msg.Part{Kind: msg.Reasoning, Text: "I should look.", State: json.RawMessage(`{"signature":"` + signature + `"}`)},
		msg.TextPart("Let me look. 漢字 🙂"),
		call("c1", "read_file", `{"path":"a \"q\" ü"}`),
		call("c2", "read_file", `{"path":"b"}`))
	if diff := cmp.Diff(want, turn.Message()); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(msg.Usage{Input: 120, Cached: 100, Output: 30, Reasoning: 10}, turn.Usage); diff != "" || turn.Finish != llm.FinishCalls {
		t.Errorf("usage (-want +got):\n%s\nfinish %s", diff, turn.Finish)
	}
	r.Messages = append(r.Messages, turn.Message(), results(result("c1", "A"), msg.Result{CallID: "c2", Status: "denied", Parts: []msg.Part{msg.TextPart("No.")}}))
	if turn, err = ask(ctx, c, r); err != nil || turn.Finish != llm.FinishStop {
		t.Fatal(turn.Finish, err)
	}
	wantBody := `{"model":"claude-sonnet-5-5","max_tokens":32000,"system":[{"type":"text","text":"Be brief."}],` +
		`"tools":[{"name":"read_file","description":"Read.","input_schema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}],` +
		`"messages":[{"role":"user","content":[{"type":"text","text":"look at a"}]},` +
		`{"role":"assistant","content":[{"type":"thinking","thinking":"I should look.","signature":"` + signature + `"},{"type":"text","text":"Let me look. 漢字 🙂"},` +
		`{"type":"tool_use","id":"c1","name":"read_file","input":{"path":"a \"q\" ü"}},{"type":"tool_use","id":"c2","name":"read_file","input":{"path":"b"}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"A"},{"type":"tool_result","tool_use_id":"c2","content":"No.","is_error":true}]}],` +
		`"stream":true}`
	got := server.Requests()[1]
	if diff := cmp.Diff(wantBody, got.Body); diff != "" {
		t.Errorf("second request (-want +got):\n%s", diff)
	}
	if got.Path != "/v1/messages" || got.Header.Get("Anthropic-Version") != "2023-06-01" || got.Header.Get("Accept") != "text/event-stream" {
		t.Errorf("path %s, headers %v", got.Path, got.Header)
	}
}

// Any transcript of ours becomes a request that the API takes, whatever the
// model, its effort and its tools. BUG-CP-01, BUG-CP-03, BUG-CP-08, BUG-CP-13,
// BUG-CP-15, BUG-CP-16, BUG-CP-18, BUG-AR-06, BUG-AR-18
func TestAnyTranscript(t *testing.T) {
	n := 1000
	if testing.Short() {
		n = 200
	}
	c := New(&llm.Endpoint{Name: "test", BaseURL: "https://api.anthropic.com"}, nil)
	checker := &llmtest.Script{}
	for i := range n {
		r := rand.New(rand.NewPCG(2, uint64(i)))
		table := models()
		model := table[r.IntN(len(table)-1)].prefix + "-x"
		history := signed(r, llmtest.Transcript(r), model)
		req := &llm.Request{Model: model, Messages: history, System: "S", CacheKey: []string{"", "k"}[r.IntN(2)],
			Effort: []string{"", "none", "minimal", "low", "high", "max"}[r.IntN(6)], Choice: []llm.Choice{llm.ChoiceAuto, llm.ChoiceNone, llm.ChoiceRequired}[r.IntN(3)]}
		if r.IntN(4) > 0 {
			req.Tools = []msg.Declaration{readFile}
		}
		if r.IntN(4) == 0 {
			req.Hosted = []json.RawMessage{webSearch}
		}
		before, _ := json.Marshal(history)
		e, err := c.encode(req, false)
		if err != nil {
			t.Fatalf("seed %d: %v", i, err)
		}
		if err := checker.Check("anthropic", e.body); err != nil {
			t.Fatalf("seed %d (%s): %v\n%s", i, model, err, e.body)
		}
		if after, _ := json.Marshal(history); string(after) != string(before) {
			t.Fatalf("seed %d: the history was changed", i)
		}
		if again, _ := c.encode(req, false); string(again.body) != string(e.body) {
			t.Fatalf("seed %d: the same request gave other bytes", i)
		}
	}
}

var webSearch = json.RawMessage(`{"type":"web_search_20250305","name":"web_search"}`)

// signed makes the answers of this family look as if the model had written
// them: thinking with its signature, hidden, or without one, and searches with
// and without their results.
func signed(r *rand.Rand, history []msg.Message, model string) []msg.Message {
	searches := 0
	for i := range history {
		m := &history[i]
		if m.Origin != "anthropic/m" {
			continue
		}
		m.Origin = Family + "/" + model
		for k := range m.Parts {
			p := &m.Parts[k]
			switch {
			case p.Kind == msg.Reasoning:
				p.State = []json.RawMessage{encodeRaw(state{Signature: llmtest.Signature(p.Text)}), encodeRaw(state{Redacted: "R"}), nil}[r.IntN(3)]
			case p.Kind == msg.Text && r.IntN(2) == 0:
				searches++
				use := fmt.Sprintf(`{"type":"server_tool_use","id":"srvtoolu_%d","name":"web_search","input":{}}`, searches)
				end := fmt.Sprintf(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_%d","content":[]}`, searches-r.IntN(2))
				p.Text, p.State = "", encodeRaw(state{Block: json.RawMessage([]string{use, end}[r.IntN(2)])})
			}
		}
	}
	return history
}

// A name that is too long is shortened, leads back, and is told of once.
// BUG-TN-01, BUG-TN-03
func TestLongName(t *testing.T) {
	const long = "mcp__example-billing-cost-management-server__billing_cost_management_get_reservation_purchase_recommendation"
	const short = "mcp__example-billing-cost-management-server__billing_co_d78d8d81"
	c, _ := serve(t, "-- 1 --\nwant \"name\":\""+short+"\",\"input_schema\"\ncall "+short+" {}\n-- 2 --\nwant \"name\":\""+short+"\",\"input\"\ntext ok\n")
	r := &llm.Request{Model: claude, Messages: said("hi"), Tools: []msg.Declaration{{Name: long, Parameters: json.RawMessage(`{"type":"object"}`)}}}
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
	turn := llm.NewTurn("anthropic/m")
	var last error
	for e, err := range c.Stream(ctx, &llm.Request{Model: claude, Messages: said("hi")}) {
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
	waitGone(t, server)
}

// Leaving the loop closes the connection too.
func TestLeave(t *testing.T) {
	c, server := serve(t, "-- hang --\ntext half of it\nhang\n")
	for range c.Stream(t.Context(), &llm.Request{Model: claude, Messages: said("hi")}) {
		break
	}
	waitGone(t, server)
}

func waitGone(t *testing.T, server *llmtest.Server) {
	t.Helper()
	select {
	case <-server.Requests()[0].Gone:
	case <-time.After(20 * time.Second):
		t.Error("the connection is still open")
	}
}

// A stream that breaks is asked for again: after text, and after calls too,
// since none is handed out before the end. BUG-SD-13, BUG-SD-15
func TestBrokenStream(t *testing.T) {
	for name, breaks := range map[string]string{
		"in a call":          "text I will now\ncall read_file {\"path\":\"a\"}\ncut\n",
		"in the second call": "text I will now\ncall read_file {\"path\":\"a\"}\ncall read_file {\"path\":\"b\"}\ncut\n",
		"in thinking":        "reasoning I think\ncut\n",
		"overloaded":         "raw\nevent: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"content\":[]}}\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
		"529":                "status 529\nheader Retry-After: 0.001\nbody\n{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			c, server := serve(t, "-- breaks --\n"+breaks+"-- whole --\nwant \"content\":\"r1\"\ntext I will now write.\n")
			c.endpoint.Retries = 2
			history := append(said("hi"), answer(call("c", "read_file", "{}")), results(result("c", "r1")))
			turn, err := ask(t.Context(), c, &llm.Request{Model: claude, Messages: history, Tools: []msg.Declaration{readFile}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]msg.Part{msg.TextPart("I will now write.")}, turn.Message().Parts); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if r := server.Requests(); r[0].Body != r[1].Body {
				t.Error("the second request is another one")
			}
		})
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

// A list of models comes in pages; one that does not end is ended.
func TestModelPages(t *testing.T) {
	var asked []string
	endless := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String())
		switch after := r.URL.Query().Get("after_id"); {
		case endless:
			fmt.Fprintf(w, `{"data":[],"has_more":true,"last_id":%q}`, fmt.Sprint(len(asked)))
		case after == "":
			fmt.Fprint(w, `{"data":[{"id":"b"},{"id":"c&d"}],"has_more":true,"last_id":"c&d"}`)
		case after == "c&d":
			fmt.Fprint(w, `{"data":[{"id":"a"}],"has_more":false,"last_id":"a"}`)
		}
	}))
	defer server.Close()
	c := New(&llm.Endpoint{Name: "test", BaseURL: server.URL + "/v1?beta=1"}, nil)
	defer c.Close()
	got, err := c.Models(t.Context())
	if diff := cmp.Diff([]string{"a", "b", "c&d"}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	want := []string{"/v1/models?beta=1&limit=1000", "/v1/models?beta=1&after_id=c%26d&limit=1000"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	endless = true
	if _, err := c.Models(t.Context()); err != nil || len(asked) > 200 {
		t.Errorf("an endless list: %v after %d requests", err, len(asked))
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

func answering(a answers) *Client {
	return New(&llm.Endpoint{Name: "test", BaseURL: "https://api.anthropic.com", Key: "sk-ant-secret-key-123", Retries: -1, Transport: a}, nil)
}

// Each kind of bad answer gets an error that says what to do, with no key in it.
func TestBadAnswers(t *testing.T) {
	html := http.Header{"Content-Type": {"text/html"}}
	js := http.Header{"Content-Type": {"application/json"}}
	fault := func(kind, message string) io.Reader {
		return strings.NewReader(`{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"},"request_id":"req_011"}`)
	}
	text := func(s string) io.Reader { return strings.NewReader(s) }
	tests := []struct {
		name string
		a    answers
		kind llm.Kind
		says string
	}{
		{"400", answers{status: 400, header: js, body: fault("invalid_request_error", "messages.0: x")}, llm.ErrBadRequest, "messages.0: x"},
		{"400, too long", answers{status: 400, header: js, body: fault("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")}, llm.ErrContext, "start a new session"},
		{"400, input and output too long", answers{status: 400, header: js, body: fault("invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000")}, llm.ErrContext, "start a new session"},
		{"400, spent", answers{status: 400, header: js, body: fault("invalid_request_error", "Your credit balance is too low to access the Anthropic API.")}, llm.ErrQuota, "add credit"},
		{"401", answers{status: 401, header: js, body: fault("authentication_error", "invalid x-api-key sk-ant-secret-key-123")}, llm.ErrAuth, "check the API key"},
		{"402", answers{status: 402, header: js, body: fault("billing_error", "pay")}, llm.ErrQuota, "add credit"},
		{"403", answers{status: 403, header: js, body: fault("permission_error", "not yours")}, llm.ErrAuth, "check the API key"},
		{"404", answers{status: 404, header: js, body: fault("not_found_error", "model: claude-x")}, llm.ErrNotFound, "check the model's name"},
		{"413", answers{status: 413, header: js, body: fault("request_too_large", "Request exceeds the maximum size")}, llm.ErrTooLarge, "smaller"},
		{"429", answers{status: 429, header: js, body: fault("rate_limit_error", "This request would exceed your organization's rate limit")}, llm.ErrRateLimit, "wait"},
		{"500", answers{status: 500, header: js, body: fault("api_error", "Internal server error")}, llm.ErrOverloaded, "try again later"},
		{"504", answers{status: 504, header: js, body: fault("timeout_error", "timed out")}, llm.ErrOverloaded, "try again later"},
		{"529", answers{status: 529, header: js, body: fault("overloaded_error", "Overloaded")}, llm.ErrOverloaded, "try again later"},
		{"html instead of json", answers{header: html, body: text("<html><body>Welcome to the <b>router</b></body></html>")}, llm.ErrProtocol, "Welcome to the router"},
		{"a line of text", answers{body: text("upstream connect error or disconnect")}, llm.ErrProtocol, "upstream connect error"},
		{"cut in the name of a field", answers{body: text("dat")}, llm.ErrNetwork, "in the middle"},
		{"no stream", answers{body: text("")}, llm.ErrNetwork, "in the middle"},
		{"cut in an event", answers{body: text(stream(start) + `data: {"type":"content_block_del`)}, llm.ErrNetwork, "in the middle"},
		{"cut between events", answers{body: text(stream(start, begin(0, `{"type":"text","text":""}`), textDelta(0, "hel")))}, llm.ErrNetwork, "in the middle"},
		{"only the end", answers{body: text(stream(`{"type":"message_stop"}`))}, llm.ErrProtocol, "without an answer"},
		{"not json", answers{body: text("data: oops\n\n")}, llm.ErrProtocol, "oops"},
		{"an error in the stream", answers{body: text(stream(start, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`))}, llm.ErrOverloaded, "Overloaded"},
		{"an error of another kind in the stream", answers{body: text(stream(start, `{"type":"error","error":{"type":"api_error","message":"broke"}}`))}, llm.ErrOverloaded, "broke"},
		{"an error in a whole answer", answers{header: js, body: fault("invalid_request_error", "context length exceeded")}, llm.ErrContext, "start a new session"},
		{"no content", answers{header: js, body: text(`{"object":"x"}`)}, llm.ErrProtocol, "no content"},
		{"type confusion", answers{body: text("data: {\"type\":\"content_block_start\",\"content_block\":\"x\"}\n\n")}, llm.ErrProtocol, "not what the API promises"},
		{"type confusion in an event", answers{body: text("data: {\"type\":7}\n\n")}, llm.ErrProtocol, "not what the API promises"},
		{"blocks without end", answers{body: &endless{event: stream(begin(0, `{"type":"text","text":"x"}`))}}, llm.ErrProtocol, "more than 2000 blocks"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ask(t.Context(), answering(tt.a), &llm.Request{Model: claude, Messages: said("hi")})
			var e *llm.Error
			if !errors.As(err, &e) || e.Kind != tt.kind || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("got %v\nwant %q with %q", err, tt.kind, tt.says)
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
			speech("end_turn", "x"),
			": processing\n\n" + speech("end_turn", "x"),
			" " + `{"type":"message","role":"assistant","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":1}}`,
		} {
			c := answering(answers{header: http.Header{"Content-Type": {kind}}, body: strings.NewReader(body)})
			turn, err := ask(t.Context(), c, &llm.Request{Model: claude, Messages: said("hi")})
			if m := turn.Message(); err != nil || m.Text() != "x" || turn.Finish != llm.FinishStop || turn.Usage.Input == 0 {
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

// An answer that does not end is ended, whatever grows in it.
func TestEndlessAnswer(t *testing.T) {
	big := strings.Repeat("x", 1<<18)
	for name, event := range map[string]string{
		"text":      stream(textDelta(0, big)),
		"thinking":  stream(`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"` + big + `"}}`),
		"arguments": stream(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"` + big + `"}}`),
		"signature": stream(begin(0, `{"type":"thinking","thinking":""}`), `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"`+big+`"}}`),
		"citations": stream(begin(0, `{"type":"text","text":""}`), `{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"a":"`+big+`"}}}`),
		"blocks":    stream(begin(0, `{"type":"web_search_tool_result","content":"`+big+`"}`)),
	} {
		t.Run(name, func(t *testing.T) {
			body := &endless{event: event}
			c := answering(answers{body: body})
			c.limit = 1 << 20
			_, err := ask(t.Context(), c, &llm.Request{Model: claude, Messages: said("hi")})
			var e *llm.Error
			if !errors.As(err, &e) || e.Kind != llm.ErrProtocol || !strings.Contains(err.Error(), "longer than") || body.sent > 4<<20 {
				t.Errorf("after %d bytes: %v", body.sent, err)
			}
		})
	}
}

// What the request itself lacks is said before anything is sent.
func TestRefusedRequests(t *testing.T) {
	c := answering(answers{body: strings.NewReader("")})
	for says, r := range map[string]*llm.Request{
		"no model is named":         {Messages: said("hi")},
		"the conversation is empty": {Model: claude},
		"tool bad":                  {Model: claude, Messages: said("hi"), Tools: []msg.Declaration{{Name: "bad", Parameters: json.RawMessage(`{"type":`)}}},
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
	c := answering(answers{})
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
			e, err := c.encode(&llm.Request{Model: claude, Messages: said("hi"), Tools: []msg.Declaration{{Name: tool.Name, Parameters: tool.InputSchema}}}, false)
			if err == nil {
				err = (&llmtest.Script{}).Check("anthropic", e.body)
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

// The base URL may have its version or not.
func TestBaseURL(t *testing.T) {
	for base, want := range map[string]string{
		"https://api.anthropic.com":            "https://api.anthropic.com/v1/messages",
		"https://api.anthropic.com/":           "https://api.anthropic.com/v1/messages",
		"https://api.anthropic.com/v1":         "https://api.anthropic.com/v1/messages",
		"https://api.deepseek.com/anthropic/":  "https://api.deepseek.com/anthropic/v1/messages",
		" http://127.0.0.1:11434/v1/?team=a ":  "http://127.0.0.1:11434/v1/messages?team=a",
		"https://gateway.example/v1/anthropic": "https://gateway.example/v1/anthropic/v1/messages",
	} {
		e := &llm.Endpoint{Name: "test", BaseURL: base}
		if got, err := e.URL(New(e, nil).path("/messages")); got != want || err != nil {
			t.Errorf("%q: %s, %v; want %s", base, got, err, want)
		}
	}
}

// The key goes where the endpoint looks for it; a token is a bearer; headers of
// one's own win.
func TestKey(t *testing.T) {
	bearer := Profile{Key: KeyBearer}
	for _, tt := range []struct {
		base, key    string
		profile      *Profile
		header, auth string
	}{
		{"https://api.anthropic.com", "k", nil, "k", ""},
		{"https://api.anthropic.com", "", nil, "", ""},
		{"https://api.anthropic.com", "k", &bearer, "", "Bearer k"},
		{"https://proxy.example", "k", nil, "k", "Bearer k"},
		{"https://api.anthropic.com.example", "k", nil, "k", "Bearer k"},
		{"https://API.deepseek.com/anthropic", "k", nil, "k", "Bearer k"},
		{":", "k", nil, "k", "Bearer k"},
	} {
		h := New(&llm.Endpoint{BaseURL: tt.base, Key: tt.key}, tt.profile).header()
		if h.Get("X-Api-Key") != tt.header || h.Get("Authorization") != tt.auth {
			t.Errorf("%s: %v", tt.base, h)
		}
	}
	for _, name := range Profiles().Names() {
		if p, ok := Profiles().Named(name); !ok || p.Name != name {
			t.Errorf("no profile is named %s", name)
		}
	}
	if _, ok := Profiles().Named("nope"); ok {
		t.Error("there is a profile that is not in the table")
	}
	c, server := serve(t, "-- 1 --\ntext x\n-- 2 --\ntext x\n")
	for i, own := range []http.Header{nil, {"Anthropic-Beta": {"mine"}, "X-Team": {"a"}}} {
		c.endpoint.Header = own
		if _, err := ask(t.Context(), c, &llm.Request{Model: "claude-haiku-4-5", Messages: said("hi"), Effort: "high", Tools: []msg.Declaration{readFile}}); err != nil {
			t.Fatal(err)
		}
		want := interleaved
		if own != nil {
			want = "mine"
		}
		if h := server.Requests()[i].Header; h.Get("Anthropic-Beta") != want || h.Get("X-Team") != own.Get("X-Team") {
			t.Errorf("headers %v", h)
		}
	}
}

// A list whose elements take more memory than bytes is refused before it is
// read.
func TestLongLists(t *testing.T) {
	for name, event := range map[string]string{
		"content":   `{"type":"message_start","message":{"content":[]}}`,
		"citations": `{"type":"content_block_start","content_block":{"type":"text","citations":[]}}`,
	} {
		body := strings.Replace(event, "[]", "["+strings.Repeat("{},", 100_001)+"{}]", 1)
		c := answering(answers{body: strings.NewReader("data: " + body + "\n\n")})
		_, err := ask(t.Context(), c, &llm.Request{Model: claude, Messages: said("hi")})
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != llm.ErrProtocol || !strings.Contains(err.Error(), "a list has more than") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
