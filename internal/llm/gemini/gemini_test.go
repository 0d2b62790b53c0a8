package gemini

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
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
	c := New(&llm.Endpoint{Name: "test", BaseURL: server.URL + "/v1beta", Key: "the-key", Retries: -1})
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

func callPart(id, name, args string) msg.Part {
	return msg.Part{Kind: msg.CallPart, Call: &msg.Call{ID: id, Name: name, Args: args}}
}

func resultsOf(list ...msg.Result) msg.Message { return msg.Message{Role: msg.Tool, Results: list} }

var (
	readFile = msg.Declaration{Name: "read_file", Description: "Read.", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)}
	noArgs   = msg.Declaration{Name: "todo_list", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}
	allOpt   = msg.Declaration{Name: "delete_records", Parameters: json.RawMessage(`{"type":"object","properties":{"where":{"type":"string"}}}`)}
	shell    = msg.Declaration{Name: "shell", Parameters: json.RawMessage(`{"type":"object","properties":{"cmd":{"type":"string"}},"required":["cmd"]}`)}
	tools4   = []msg.Declaration{readFile, noArgs, allOpt, shell}
)

// A turn with thoughts, text, two calls and their results, over a connection:
// what is kept, and what goes back. The signature returns on the call that it
// came with.
func TestAnswer(t *testing.T) {
	c, server := serve(t, `
-- server --
key the-key
models gemini-3-pro-preview
-- look --
want "name":"read_file"
reasoning I should look.
text Let me look. 漢字 🙂
call read_file #c1 {"path":"a \"q\" ü","n":12345678901234567890}
call read_file #c2 {"path":"b"}
usage 120 30 cached 100 reasoning 10
-- done --
want "id":"c1"
text Done.
`)
	ctx := t.Context()
	r := &llm.Request{Model: "gemini-3-pro-preview", System: "Be brief.", Messages: said("look at a"), Tools: []msg.Declaration{readFile}}
	turn, err := ask(ctx, c, r)
	if err != nil {
		t.Fatal(err)
	}
	const signature = "c2lnbmVkOiByZWFkX2ZpbGU="
	first := callPart("c1", "read_file", `{"path":"a \"q\" ü","n":12345678901234567890}`)
	first.State = json.RawMessage(`"` + signature + `"`)
	want := msg.Message{Role: msg.Assistant, Origin: "gemini/gemini-3-pro-preview", Parts: []msg.Part{
		{Kind: msg.Reasoning, Text: "I should look."},
		msg.TextPart("Let me look. 漢字 🙂"),
		first,
		callPart("c2", "read_file", `{"path":"b"}`),
	}}
	if diff := cmp.Diff(want, turn.Message()); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(msg.Usage{Input: 120, Cached: 100, Output: 30, Reasoning: 10}, turn.Usage); diff != "" || turn.Finish != llm.FinishCalls {
		t.Errorf("usage (-want +got):\n%s\nfinish %s", diff, turn.Finish)
	}
	r.Messages = append(r.Messages, turn.Message(), resultsOf(
		msg.Result{CallID: "c1", Parts: []msg.Part{msg.TextPart("A")}}, msg.Result{CallID: "c2", Status: "error", Parts: []msg.Part{msg.TextPart("no b")}}))
	if turn, err = ask(ctx, c, r); err != nil || turn.Finish != llm.FinishStop {
		t.Fatal(turn.Finish, err)
	}
	wantBody := `{"systemInstruction":{"parts":[{"text":"Be brief."}]},` +
		`"tools":[{"functionDeclarations":[{"name":"read_file","description":"Read.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}]}],` +
		`"generationConfig":{"thinkingConfig":{"includeThoughts":true}},` +
		`"contents":[{"role":"user","parts":[{"text":"look at a"}]},{"role":"model","parts":[{"text":"Let me look. 漢字 🙂"},` +
		`{"functionCall":{"id":"c1","name":"read_file","args":{"path":"a \"q\" ü","n":12345678901234567890}},"thoughtSignature":"` + signature + `"},` +
		`{"functionCall":{"id":"c2","name":"read_file","args":{"path":"b"}}}]},` +
		`{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"read_file","response":{"output":"A"}}},` +
		`{"functionResponse":{"id":"c2","name":"read_file","response":{"error":"no b"}}}]}]}`
	got := server.Requests()[1]
	if diff := cmp.Diff(wantBody, got.Body); diff != "" {
		t.Errorf("second request (-want +got):\n%s", diff)
	}
	if got.Path != "/v1beta/models/gemini-3-pro-preview:streamGenerateContent" || got.Header.Get("X-Goog-Api-Key") != "the-key" {
		t.Errorf("sent to %s with %v", got.Path, got.Header)
	}
	first.State = nil
	if m := turn.Message(); len(m.Parts) != 1 || m.Text() != "Done." || string(m.Parts[0].State) != `{"thoughtSignature":"c2lnbmVkOiBlbmQ=","from":5}` {
		t.Errorf("the last answer: %+v", m)
	}
}

// Any transcript of ours becomes a request that the API takes, of models that
// want signatures and of those that don't. BUG-CP-01, BUG-CP-03, BUG-CP-08,
// BUG-CP-11, BUG-CP-13, BUG-CP-15, BUG-CP-16, BUG-AR-06, BUG-AR-18
func TestAnyTranscript(t *testing.T) {
	n := 1000
	if testing.Short() {
		n = 200
	}
	s := &llmtest.Script{}
	c := New(&llm.Endpoint{Name: "test"})
	for i := range n {
		r := rand.New(rand.NewPCG(1, uint64(i)))
		history := llmtest.Transcript(r)
		for k := range history { // as if this model had written some of it
			if history[k].Origin == "gemini/m" {
				history[k].Origin = []string{"gemini/gemini-3-flash", "gemini/gemini-2.5-pro"}[r.IntN(2)]
				for n := range history[k].Parts {
					if r.IntN(2) == 0 {
						history[k].Parts[n].State = someState(r, &history[k].Parts[n])
					}
				}
			}
		}
		model := []string{"gemini-3-flash", "gemini-2.5-pro"}[i%2]
		format := []string{"gemini", "gemini-2.5"}[i%2]
		req := &llm.Request{Model: model, Messages: history, CacheKey: "k", System: []string{"", "S"}[r.IntN(2)]}
		if r.IntN(4) > 0 {
			req.Tools = []msg.Declaration{readFile, {Name: "名前"}, noArgs}
		}
		before, _ := json.Marshal(history)
		body, _, err := c.encode(req)
		if err != nil {
			t.Fatalf("seed %d: %v", i, err)
		}
		if err := s.Check(format, body); err != nil {
			t.Fatalf("seed %d (%s): %v\n%s", i, model, err, body)
		}
		if after, _ := json.Marshal(history); string(after) != string(before) {
			t.Fatalf("seed %d: the history was changed", i)
		}
		if again, _, _ := c.encode(req); string(again) != string(body) {
			t.Fatalf("seed %d: the same request gave other bytes", i)
		}
	}
}

// someState is what the API may have given with a part, in an answer of its own.
func someState(r *rand.Rand, p *msg.Part) json.RawMessage {
	if p.Kind == msg.CallPart {
		return stateOf(base64.StdEncoding.EncodeToString([]byte("signed: " + llm.NewNames(nameRule, []msg.Declaration{{Name: p.Call.Name}}, nil).Wire(p.Call.Name))))
	}
	return []json.RawMessage{stateOf("QQ=="), json.RawMessage(`{"thoughtSignature":"QQ==","from":2}`), json.RawMessage(`{"executableCode":{"code":"x"}}`),
		json.RawMessage(`{"toolCall":{"id":"t"},"thoughtSignature":"QQ=="}`), json.RawMessage(`{"thoughtSignature":"?"}`)}[r.IntN(5)]
}

// A conversation that grows begins with the bytes of the one before, so that
// the provider's cache is of use.
func TestKeepsPrefix(t *testing.T) {
	c := New(&llm.Endpoint{Name: "test"})
	r := &llm.Request{Model: "gemini-3-pro", System: "S", Tools: tools4}
	before := ""
	for _, m := range []msg.Message{
		said("hi")[0],
		{Role: msg.Assistant, Origin: "gemini/gemini-3-pro", Parts: []msg.Part{callPart("a", "shell", `{"cmd":"ls"}`)}},
		resultsOf(msg.Result{CallID: "a", Parts: []msg.Part{msg.TextPart("A")}}),
		{Role: msg.Assistant, Origin: "gemini/gemini-3-pro", Parts: []msg.Part{msg.TextPart("ok")}},
		said("go")[0],
	} {
		r.Messages = append(r.Messages, m)
		if m.Role == msg.Assistant {
			continue // no request ends there
		}
		body, _, err := c.encode(r)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(body), before) {
			t.Errorf("%s\ndoes not begin with\n%s", body, before)
		}
		before = strings.TrimSuffix(string(body), "]}")
	}
}

// A name that is too long is shortened, leads back, and is told of once; one
// that only other APIs refuse stays. BUG-TN-01, BUG-TN-03
func TestLongName(t *testing.T) {
	const long = "mcp__example-billing-cost-management-server__billing_cost_management_get_reservation_purchase_recommendation"
	const short = "mcp__example-billing-cost-management-server__billing_co_d78d8d81"
	c, _ := serve(t, "-- 1 --\nwant \"name\":\""+short+"\"\nwant \"name\":\"a.b:c\"\ncall "+short+" {}\n-- 2 --\nwant \"functionResponse\":{\"id\":\"call_1_1\",\"name\":\""+short+"\"\ntext ok\n")
	r := &llm.Request{Model: "gemini-3-pro", Messages: said("hi"), Tools: []msg.Declaration{{Name: long, Parameters: json.RawMessage(`{"type":"object"}`)}, {Name: "a.b:c"}}}
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

// A model that names a tool it was not told of is passed on as it is; whoever
// runs calls refuses it. S2-006
func TestUnadvertisedName(t *testing.T) {
	c, _ := serve(t, "-- 1 --\nwantnot secret_tool\ncall secret_tool {\"a\":1}\n")
	turn, err := ask(t.Context(), c, &llm.Request{Model: "gemini-2.5-pro", Messages: said("hi"), Tools: []msg.Declaration{readFile}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]msg.Call{{ID: "call_1_1", Name: "secret_tool", Args: `{"a":1}`}}, madeCalls(turn)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Cancelling closes the connection before Stream returns, and keeps what came.
func TestCancel(t *testing.T) {
	c, server := serve(t, "-- hang --\ntext half of it\nhang\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	turn := llm.NewTurn("gemini/m")
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

// A stream that breaks is asked for again, even when a call had come: calls are
// handed out at the end. BUG-SD-13, BUG-SD-15
func TestBrokenStream(t *testing.T) {
	c, server := serve(t, `
-- breaks --
text I will now
call read_file {"path":"a"}
cut
-- whole --
want "output":"r1"
text I will now write.
`)
	c.endpoint.Retries = 2
	history := append(said("hi"), msg.Message{Role: msg.Assistant, Parts: []msg.Part{callPart("c", "read_file", "{}")}},
		resultsOf(msg.Result{CallID: "c", Parts: []msg.Part{msg.TextPart("r1")}}))
	turn, err := ask(t.Context(), c, &llm.Request{Model: "gemini-3-pro", Messages: history, Tools: []msg.Declaration{readFile}})
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

// Only models for conversations are listed, without their collection, over all
// pages.
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
	pages := paged{
		"":    `{"models":[{"name":"models/b","supportedGenerationMethods":["generateContent"]},{"name":"models/e","supportedGenerationMethods":["embedContent"]}],"nextPageToken":"x&y"}`,
		"x&y": `{"models":[{"name":"tunedModels/a","supportedGenerationMethods":["generateContent"]},{}]}`,
	}
	got, err = New(&llm.Endpoint{Name: "test", BaseURL: "http://test/v1beta", Transport: pages}).Models(t.Context())
	if diff := cmp.Diff([]string{"b", "tunedModels/a"}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for page, says := range map[string]string{`{"models":[],"nextPageToken":"x"}`: "more than 100 pages", `{"models":"x"}`: "list of models is not"} {
		_, err := New(&llm.Endpoint{Name: "test", BaseURL: "http://test/v1beta", Transport: paged{"": page, "x": page}}).Models(t.Context())
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", page, err)
		}
	}
}

// paged is a transport that has pages by their token.
type paged map[string]string

func (p paged) RoundTrip(r *http.Request) (*http.Response, error) {
	return answers{body: strings.NewReader(p[r.URL.Query().Get("pageToken")])}.RoundTrip(r)
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
	return New(&llm.Endpoint{Name: "test", BaseURL: "http://test/v1beta", Key: "AIzaSecretKeySecretKeySecretKey", Retries: -1, Transport: a})
}

// Each kind of bad answer gets an error that says what to do, with no key in
// it, and with the time that the API asks to wait.
func TestBadAnswers(t *testing.T) {
	js := http.Header{"Content-Type": {"application/json; charset=UTF-8"}}
	body := func(status int, word, message, details string) answers {
		raw, _ := json.Marshal(message)
		return answers{status: status, header: js, body: strings.NewReader(`{"error":{"code":` + strconv.Itoa(status) + `,"message":` + string(raw) + `,"status":"` + word + `","details":[` + details + `]}}`)}
	}
	stream := func(s string) answers { return answers{body: strings.NewReader(s)} }
	const retry = `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"20.044s"}`
	quota := func(id string) string {
		return `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"generativelanguage.googleapis.com/generate_content_free_tier_requests","quotaId":"` + id + `","quotaDimensions":{"location":"global"}}]},`
	}
	const exceeded = "You exceeded your current quota, please check your plan and billing details."
	wait := 20044 * time.Millisecond
	tests := []struct {
		name  string
		a     answers
		kind  llm.Kind
		says  string
		after time.Duration
	}{
		{"wrong key", body(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", `{"reason":"API_KEY_INVALID"}`), llm.ErrAuth, "check the API key", 0},
		{"no key", body(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers", ""), llm.ErrAuth, "check the API key", 0},
		{"unauthenticated", body(401, "UNAUTHENTICATED", "Request had invalid authentication credentials for AIzaSecretKeySecretKeySecretKey", ""), llm.ErrAuth, "[redacted]", 0},
		{"unknown model", body(404, "NOT_FOUND", "models/x is not found for API version v1beta", ""), llm.ErrNotFound, "check the model's name", 0},
		{"too many at once", body(429, "RESOURCE_EXHAUSTED", exceeded, quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier")+retry), llm.ErrRateLimit, "rate limit", wait},
		{"the day's quota", body(429, "RESOURCE_EXHAUSTED", exceeded, quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier")+retry), llm.ErrQuota, "quota is spent", wait},
		{"no more room", body(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).", ""), llm.ErrRateLimit, "rate limit", 0},
		{"a context too long", body(400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", ""), llm.ErrContext, "start a new session", 0},
		{"too many bytes", body(400, "INVALID_ARGUMENT", "Request payload size exceeds the limit: 20971520 bytes.", ""), llm.ErrTooLarge, "smaller", 0},
		{"a bad schema", body(400, "INVALID_ARGUMENT", "* GenerateContentRequest.tools[0].function_declarations[0].parameters.properties: should be non-empty for OBJECT type\n", ""), llm.ErrBadRequest, "non-empty for OBJECT", 0},
		{"overloaded", body(503, "UNAVAILABLE", "The model is overloaded. Please try again later.", ""), llm.ErrOverloaded, "try again later", 0},
		{"failing", body(500, "INTERNAL", "An internal error has occurred.", ""), llm.ErrOverloaded, "internal error", 0},
		{"too late", body(504, "DEADLINE_EXCEEDED", "Deadline expired", ""), llm.ErrOverloaded, "Deadline", 0},
		{"a list of errors", answers{status: 429, header: js, body: strings.NewReader(`[{"error":{"code":429,"message":"Slow down.","status":"RESOURCE_EXHAUSTED","details":[` + retry + `]}}]`)}, llm.ErrRateLimit, "Slow down", wait},
		{"a line of text", stream("upstream connect error or disconnect"), llm.ErrProtocol, "upstream connect error", 0},
		{"html", answers{header: http.Header{"Content-Type": {"text/html"}}, body: strings.NewReader("<html><body>Welcome to the <b>router</b></body></html>")}, llm.ErrProtocol, "Welcome to the router", 0},
		{"413 from a proxy", answers{status: 413, body: strings.NewReader("<html><head><title>413 Request Entity Too Large</title></head></html>")}, llm.ErrTooLarge, "a web page: 413", 0},
		{"no stream", stream(""), llm.ErrNetwork, "in the middle", 0},
		{"cut in an event", stream(`data: {"candidates":[{"content":{"parts":[{"text":"hel`), llm.ErrNetwork, "in the middle", 0},
		{"cut between events", stream(events(`{"candidates":[{"content":{"parts":[{"text":"hel"}]}}]}`)), llm.ErrNetwork, "in the middle", 0},
		{"only the end", stream("data: [DONE]\n\n"), llm.ErrNetwork, "in the middle", 0},
		{"not json", stream("data: oops\n\n"), llm.ErrProtocol, "oops", 0},
		{"an error in the stream", stream(events(`{"candidates":[{"content":{"parts":[{"text":"hel"}]}}]}`, `{"error":{"code":503,"message":"Later.","status":"UNAVAILABLE"}}`)), llm.ErrOverloaded, "Later.", 0},
		{"a limit in the stream", stream(events(`[{"error":{"code":429,"message":"Slow.","status":"RESOURCE_EXHAUSTED","details":[` + retry + `]}}]`)), llm.ErrRateLimit, "Slow.", wait},
		{"an error in a whole answer", answers{header: js, body: strings.NewReader(`[{"error":{"code":500,"message":"Bad day.","status":"INTERNAL"}}]`)}, llm.ErrOverloaded, "Bad day", 0},
		{"no candidates", answers{header: js, body: strings.NewReader(`{"usageMetadata":{"promptTokenCount":5}}`)}, llm.ErrProtocol, "no candidates", 0},
		{"an empty list", answers{header: js, body: strings.NewReader(`[]`)}, llm.ErrProtocol, "no candidates", 0},
		{"type confusion", stream(events(`{"candidates":"x"}`)), llm.ErrProtocol, "not what the API promises", 0},
		{"a list in a list", stream(events(`[[]]`)), llm.ErrProtocol, "not what the API promises", 0},
		{"media that is no base64", stream(events(`{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"%%"}}]}}]}`)), llm.ErrProtocol, "inline data", 0},
		{"calls without end", answers{body: &endless{event: events(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]}}]}`)}}, llm.ErrProtocol, "more than 1000 tool calls", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ask(t.Context(), answering(tt.a), &llm.Request{Model: "gemini-3-pro", Messages: said("hi")})
			var e *llm.Error
			if !errors.As(err, &e) || e.Kind != tt.kind || !strings.Contains(err.Error(), tt.says) || e.RetryAfter != tt.after {
				t.Fatalf("got %v (%+v)\nwant %q with %q, after %v", err, e, tt.kind, tt.says, tt.after)
			}
			if strings.Contains(err.Error(), "SecretKey") {
				t.Errorf("the key shows: %v", err)
			}
		})
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

// An answer that does not end is ended, whatever it is made of.
func TestEndlessAnswer(t *testing.T) {
	big := strings.Repeat("xxxx", 1<<18)
	parts := map[string]string{
		"text":      `{"text":"` + big + `"}`,
		"thought":   `{"text":"` + big + `","thought":true}`,
		"signature": `{"thoughtSignature":"` + big + `"}`,
		"arguments": `{"functionCall":{"name":"f","args":{"a":"` + big + `"}}}`,
		"hosted":    `{"executableCode":{"code":"` + big + `"}}`,
		"media":     `{"inlineData":{"mimeType":"image/png","data":"` + big + big + `"}}`,
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := &endless{event: events(`{"candidates":[{"content":{"parts":[` + part + `]}}]}`)}
			c := answering(answers{body: body})
			c.limit = 3 << 20
			_, err := ask(t.Context(), c, &llm.Request{Model: "m", Messages: said("hi")})
			var e *llm.Error
			if !errors.As(err, &e) || e.Kind != llm.ErrProtocol || !strings.Contains(err.Error(), "longer than") {
				t.Errorf("got %v", err)
			}
			if body.sent > 16<<20 {
				t.Errorf("read %d bytes", body.sent)
			}
		})
	}
}

// What the request itself lacks is said before anything is sent.
func TestRefusedRequests(t *testing.T) {
	c := answering(answers{body: strings.NewReader("")})
	for says, r := range map[string]*llm.Request{
		"no model is named":          {Messages: said("hi")},
		"the conversation is empty":  {Model: "m"},
		"tool bad":                   {Model: "m", Messages: said("hi"), Tools: []msg.Declaration{{Name: "bad", Parameters: json.RawMessage(`{"type":`)}}},
		`no effort "huge"`:           {Model: "gemini-3-pro", Messages: said("hi"), Effort: "huge"},
		"reducing schema":            {Model: "gemini-3-pro", Messages: said("hi"), Output: &llm.OutputSchema{Schema: json.RawMessage(`{`)}},
		"cannot be the name of a mo": {Model: "m:x?alt=json#", Messages: said("hi")},
		`"../v1/m" cannot be`:        {Model: "../v1/m", Messages: said("hi")},
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
	c := New(&llm.Endpoint{Name: "test"})
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
			taken(t, c, filepath.Base(f)+": "+tool.Name, tool.InputSchema)
		}
	}
	if n < 100 {
		t.Errorf("only %d tools were found", n)
	}
}

// taken reports whether the API takes a tool with a schema.
func taken(t *testing.T, c *Client, name string, schema json.RawMessage) string {
	t.Helper()
	body, _, err := c.encode(&llm.Request{Model: "m", Messages: said("hi"), Tools: []msg.Declaration{{Name: "tool", Parameters: schema}}})
	if err == nil {
		err = (&llmtest.Script{}).Check("gemini", body)
	}
	if err != nil {
		t.Errorf("%s: %v\n%s", name, err, body)
	}
	return string(body)
}

// A list whose elements take more memory than bytes is refused before it is
// read.
func TestLongLists(t *testing.T) {
	for name, event := range map[string]string{
		"candidates": `{"candidates":[]}`,
		"parts":      `{"candidates":[{"content":{"parts":[]}}]}`,
		"chunks":     `[]`,
	} {
		body := strings.Replace(event, "[]", "["+strings.Repeat("{},", 100_001)+"{}]", 1)
		c := answering(answers{body: strings.NewReader("data: " + body + "\n\n")})
		_, err := ask(t.Context(), c, &llm.Request{Model: "gemini-3-pro", Messages: said("hi")})
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != llm.ErrProtocol || !strings.Contains(err.Error(), "a list has more than") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
