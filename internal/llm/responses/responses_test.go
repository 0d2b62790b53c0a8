package responses

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
func serve(t *testing.T, profile, script string) (*Client, *llmtest.Server) {
	t.Helper()
	s, err := llmtest.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	server, err := llmtest.Listen(s)
	if err != nil {
		t.Fatal(err)
	}
	p, ok := Profiles().Named(profile)
	if !ok {
		t.Fatal("no profile " + profile)
	}
	c := New(&llm.Endpoint{Name: "test", BaseURL: server.URL + "/v1", Retries: -1}, &p)
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

func results(id, text string) msg.Message {
	return msg.Message{Role: msg.Tool, Results: []msg.Result{{CallID: id, Parts: []msg.Part{msg.TextPart(text)}}}}
}

var readFile = msg.Declaration{Name: "read_file", Description: "Read.", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)}

// reasoningOf is the State of reasoning that llmtest gives out.
func reasoningOf(t *testing.T, summary string) json.RawMessage {
	t.Helper()
	it := item{raw: llmtest.ReasoningItem("rs_1", summary)}
	return it.state()
}

// A conversation: the second request has the reasoning of the first answer as
// it came, before the calls that it led to, and no ids of items. BUG-CP-05,
// BUG-CP-06
func TestAnswer(t *testing.T) {
	c, server := serve(t, "openai", `
-- look --
want "name":"read_file"
want "include":\["reasoning.encrypted_content"\]
reasoning I should look.
text Let me look. 漢字 🙂
call read_file #c1 {"path":"a \"q\" ü"}
reasoning And at b.
call read_file #c2 {"path":"b"}
usage 120 30 cached 100 reasoning 10
-- done --
text Done.
`)
	ctx := t.Context()
	r := &llm.Request{Model: "m", System: "Be brief.", Messages: said("look at a"), Tools: []msg.Declaration{readFile}}
	turn, err := ask(ctx, c, r)
	if err != nil {
		t.Fatal(err)
	}
	first, second := reasoningOf(t, "I should look."), reasoningOf(t, "And at b.")
	want := msg.Message{Role: msg.Assistant, Origin: "responses/m", Parts: []msg.Part{
		{Kind: msg.Reasoning, Text: "I should look.", State: first},
		msg.TextPart("Let me look. 漢字 🙂"),
		{Kind: msg.CallPart, Call: &msg.Call{ID: "c1", Name: "read_file", Args: `{"path":"a \"q\" ü"}`}},
		{Kind: msg.Reasoning, Text: "And at b.", State: second},
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
	wantBody := `{"model":"m","instructions":"Be brief.","input":[{"type":"message","role":"user","content":"look at a"},` +
		string(first) + `,{"type":"message","role":"assistant","content":"Let me look. 漢字 🙂"},` +
		`{"type":"function_call","call_id":"c1","name":"read_file","arguments":"{\"path\":\"a \\\"q\\\" ü\"}"},` +
		string(second) + `,{"type":"function_call","call_id":"c2","name":"read_file","arguments":"{\"path\":\"b\"}"},` +
		`{"type":"function_call_output","call_id":"c1","output":"A"},{"type":"function_call_output","call_id":"c2","output":"B"}],` +
		`"tools":[{"type":"function","name":"read_file","description":"Read.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]},"strict":false}],` +
		`"include":["reasoning.encrypted_content"],"store":false,"stream":true}`
	if diff := cmp.Diff(wantBody, server.Requests()[1].Body); diff != "" {
		t.Errorf("second request (-want +got):\n%s", diff)
	}
}

// Any transcript of ours becomes a request that the API takes, whatever the
// profile. BUG-CP-01, BUG-CP-05, BUG-CP-06, BUG-CP-08, BUG-CP-13, BUG-CP-15,
// BUG-CP-16, BUG-AR-06, BUG-AR-18
func TestAnyTranscript(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 200
	}
	s := &llmtest.Script{}
	returned := 0
	for i := range n {
		r := rand.New(rand.NewPCG(1, uint64(i)))
		history := llmtest.Transcript(r)
		keep(t, r, history)
		profile := Profiles()[r.IntN(len(Profiles()))]
		profile.Encrypted = true // the checker is OpenAI, which takes no other reasoning
		c := New(&llm.Endpoint{Name: "test", BaseURL: "http://127.0.0.1/v1"}, &profile)
		req := &llm.Request{Model: "m", Messages: history, CacheKey: strings.Repeat("k", r.IntN(200)), MaxTokens: r.IntN(40)}
		if r.IntN(4) > 0 {
			req.Tools = []msg.Declaration{readFile}
		}
		before, _ := json.Marshal(history)
		body, _, err := c.encode(req)
		if err != nil {
			t.Fatalf("seed %d: %v", i, err)
		}
		if err := s.Check("responses", body); err != nil {
			t.Fatalf("seed %d (%s): %v\n%s", i, profile.Name, err, body)
		}
		if after, _ := json.Marshal(history); string(after) != string(before) {
			t.Fatalf("seed %d: the history was changed", i)
		}
		if again, _, _ := c.encode(req); string(again) != string(body) {
			t.Fatalf("seed %d: the same request gave other bytes", i)
		}
		returned += strings.Count(string(body), `"type":"reasoning"`)
	}
	if returned < n/20 {
		t.Errorf("only %d items of reasoning went back in %d requests", returned, n)
	}
}

// keep gives the reasoning of a random history the states that answers leave
// there, some of them of no use.
func keep(t *testing.T, r *rand.Rand, history []msg.Message) {
	for i := range history {
		m := &history[i]
		if m.Role == msg.Assistant && r.IntN(4) > 0 {
			m.Origin = "responses/m"
			if r.IntN(2) == 0 {
				m.Parts = append(m.Parts, msg.TextPart("T"))
			}
		}
		for k := range m.Parts {
			p := &m.Parts[k]
			if p.Kind == msg.Reasoning && p.State != nil {
				p.State = []json.RawMessage{reasoningOf(t, p.Text), reasoningOf(t, p.Text), reasoningOf(t, p.Text), json.RawMessage(`{"type":"web_search_call","status":"completed"}`), p.State,
					json.RawMessage(`{"type":"reasoning","summary":[]}`), json.RawMessage(`{"type":"reasoning","encrypted_content":"","summary":[]}`), json.RawMessage(`"x"`)}[r.IntN(8)]
			}
			if p.Kind == msg.Text && r.IntN(3) == 0 {
				p.State = []json.RawMessage{json.RawMessage(`{"phase":"commentary"}`), json.RawMessage(`{"phase":"x"}`), json.RawMessage(`7`)}[r.IntN(3)]
			}
		}
	}
}

// A longer history begins with the items of the one before, so that its
// beginning is read from the cache.
func TestStablePrefix(t *testing.T) {
	c := answering("openai", answers{})
	input := func(history []msg.Message) string {
		body, _, err := c.encode(&llm.Request{Model: "m", Messages: history, Tools: []msg.Declaration{readFile}})
		if err != nil {
			t.Fatal(err)
		}
		text, _, _ := strings.Cut(string(body), `],"tools":`)
		return text
	}
	history := said("hi")
	last := input(history)
	for _, m := range []msg.Message{
		{Role: msg.Assistant, Origin: "responses/m", Parts: []msg.Part{{Kind: msg.Reasoning, Text: "R", State: reasoningOf(t, "R")}, {Kind: msg.CallPart, Call: &msg.Call{ID: "c1", Name: "read_file", Args: `{"path"`}}}},
		results("c1", "A"),
		{Role: msg.Assistant, Origin: "responses/m", Parts: []msg.Part{msg.TextPart("T")}},
		{Role: msg.User, Parts: []msg.Part{msg.TextPart("more")}},
	} {
		history = append(history, m)
		if m.Role == msg.Assistant {
			continue // not a request that is sent
		}
		next := input(history)
		if !strings.HasPrefix(next, last) {
			t.Errorf("%s\ndoes not begin with\n%s", next, last)
		}
		last = next
	}
}

// A name that is too long is shortened, leads back, and is told of once.
// BUG-TN-01, BUG-TN-03
func TestLongName(t *testing.T) {
	const long = "mcp__example-billing-cost-management-server__billing_cost_management_get_reservation_purchase_recommendation"
	const short = "mcp__example-billing-cost-management-server__billing_co_d78d8d81"
	c, _ := serve(t, "openai", "-- 1 --\nwant \"name\":\""+short+"\"\ncall "+short+" {}\n-- 2 --\nwant \"name\":\""+short+"\",\"arguments\"\ntext ok\n")
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

// Cancelling, and leaving the loop, close the connection before Stream returns;
// what came is kept.
func TestCancel(t *testing.T) {
	for _, how := range []string{"cancel", "leave"} {
		t.Run(how, func(t *testing.T) {
			c, server := serve(t, "openai", "-- hang --\ntext half of it\nhang\n")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			turn := llm.NewTurn("responses/m")
			var last error
			for e, err := range c.Stream(ctx, &llm.Request{Model: "m", Messages: said("hi")}) {
				if last = err; err != nil {
					continue
				}
				turn.Add(e)
				if m := turn.Message(); m.Text() == "half of it" {
					if how == "leave" {
						break
					}
					cancel()
				}
			}
			var e *llm.Error
			if how == "cancel" && (!errors.As(last, &e) || e.Kind != llm.ErrCancelled || !errors.Is(last, context.Canceled)) {
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
		})
	}
}

// A stream that breaks is asked for again, and what was shown of it is void.
// BUG-SD-13, BUG-SD-15
func TestBrokenStream(t *testing.T) {
	c, server := serve(t, "openai", `
-- breaks --
reasoning Hm.
text I will now
call read_file {"pa
cut
-- whole --
want "output":"r1"
text I will now write.
`)
	c.endpoint.Retries = 2
	history := append(said("hi"), msg.Message{Role: msg.Assistant, Parts: []msg.Part{{Kind: msg.CallPart, Call: &msg.Call{ID: "c", Name: "read_file", Args: "{}"}}}}, results("c", "r1"))
	turn, err := ask(t.Context(), c, &llm.Request{Model: "m", Messages: history, Tools: []msg.Declaration{readFile}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]msg.Part{msg.TextPart("I will now write.")}, turn.Message().Parts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r := server.Requests(); r[0].Body != r[1].Body {
		t.Error("the second request is another one")
	}
}

// What a model or an account does not take is left out from then on; what is
// refused for another reason is not asked for again.
func TestRetreat(t *testing.T) {
	refusal := func(code, message string) string {
		return "status 400\nbody\n" + `{"error":{"message":"` + message + `","type":"invalid_request_error","param":null,"code":` + code + "}}\n"
	}
	c, server := serve(t, "openai", `
-- 1 --
want "summary":"auto"
want "include"
`+refusal("null", "Encrypted content is not supported with this model.")+`
-- 2 --
want "summary":"auto"
wantnot "include"
`+refusal(`"unsupported_value"`, "Your organization must be verified to generate reasoning summaries. Please go to the settings.")+`
-- 3 --
want "reasoning":\{"effort":"low"\}
wantnot "include"
text one
-- 4 --
wantnot "summary"
wantnot "include"
text two
-- 5 --
want "model":"other"
want "include"
want "gAAA
`+refusal(`"invalid_encrypted_content"`, "The encrypted content gAAA could not be verified.")+`
-- 6 --
wantnot gAAA
text three
-- 7 --
wantnot gAAA.*gAAA
want gAAA
text four
-- 8 --
`+refusal(`"invalid_encrypted_content"`, "The encrypted content gAAA could not be verified.")+`
-- 9 --
text five
-- 10 --
`+refusal(`"invalid_encrypted_content"`, "The encrypted content gAAA could not be verified.")+`
`)
	r := &llm.Request{Model: "m", Messages: said("hi"), Effort: "low", Tools: []msg.Declaration{readFile}}
	hear := func(want string) {
		t.Helper()
		turn, err := ask(t.Context(), c, r)
		if m := turn.Message(); err != nil || m.Text() != want {
			t.Fatalf("got %q, %v, want %q", m.Text(), err, want)
		}
	}
	hear("one")
	hear("two")
	r.Model = "other"
	thought := func(s string) msg.Message {
		return msg.Message{Role: msg.Assistant, Origin: "responses/other", Parts: []msg.Part{{Kind: msg.Reasoning, State: reasoningOf(t, s)}, msg.TextPart("T")}}
	}
	r.Messages = append(r.Messages, thought("old"), said("more")[0])
	hear("three")
	r.Messages = append(r.Messages, thought("new"), said("more")[0])
	hear("four")
	hear("five")
	_, err := ask(t.Context(), c, r)
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.ErrBadRequest || e.Code != "invalid_encrypted_content" {
		t.Errorf("the last one: %v", err)
	}
	if n := len(server.Requests()); n != 10 {
		t.Errorf("%d requests", n)
	}
}

func TestModels(t *testing.T) {
	c, _ := serve(t, "openai", "-- server --\nmodels b a\n-- none --\ntext x\n")
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
// The bodies are OpenAI's, Azure's and OpenRouter's.
func TestBadAnswers(t *testing.T) {
	html := http.Header{"Content-Type": {"text/html"}}
	js := http.Header{"Content-Type": {"application/json"}}
	created := `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","output":[]}}`
	tests := []struct {
		name string
		a    answers
		kind llm.Kind
		says string
	}{
		{"400", answers{status: 400, header: js, body: strings.NewReader(`{"error":{"message":"Unknown parameter: 'foo'.","type":"invalid_request_error","param":"foo","code":"unknown_parameter"}}`)}, llm.ErrBadRequest, "Unknown parameter: 'foo'"},
		{"400, too long", answers{status: 400, header: js, body: strings.NewReader(`{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`)}, llm.ErrContext, "start a new session"},
		{"400, unpaired", answers{status: 400, header: js, body: strings.NewReader(`{"error":{"message":"No tool output found for function call call_1.","type":"invalid_request_error","param":"input","code":null}}`)}, llm.ErrBadRequest, "call_1"},
		{"401", answers{status: 401, header: js, body: strings.NewReader(`{"error":{"message":"Incorrect API key provided: sk-secret-key-123.","type":"invalid_request_error","code":"invalid_api_key"}}`)}, llm.ErrAuth, "check the API key"},
		{"401, Azure", answers{status: 401, header: js, body: strings.NewReader(`{"error":{"code":"401","message":"Access denied due to invalid subscription key or wrong API endpoint."}}`)}, llm.ErrAuth, "check the API key"},
		{"403", answers{status: 403, header: js, body: strings.NewReader(`{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported","param":null,"type":"request_forbidden"}}`)}, llm.ErrAuth, "Country"},
		{"404", answers{status: 404, header: js, body: strings.NewReader(`{"error":{"message":"The requested model 'x' does not exist.","type":"invalid_request_error","param":"model","code":"model_not_found"}}`)}, llm.ErrNotFound, "check the model's name"},
		{"404, Azure", answers{status: 404, header: js, body: strings.NewReader(`{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`)}, llm.ErrNotFound, "deployment"},
		{"404, no such API", answers{status: 404, header: http.Header{"Content-Type": {"text/plain"}}, body: strings.NewReader("404 page not found")}, llm.ErrNotFound, "page not found"},
		{"402", answers{status: 402, header: js, body: strings.NewReader(`{"error":{"code":402,"message":"Insufficient credits"}}`)}, llm.ErrQuota, "add credit"},
		{"413", answers{status: 413, header: html, body: strings.NewReader("<html><head><title>413 Request Entity Too Large</title></head></html>")}, llm.ErrTooLarge, "a web page: 413"},
		{"429", answers{status: 429, header: js, body: strings.NewReader(`{"error":{"message":"Rate limit reached for m in organization o on tokens per min (TPM): Limit 30000, Used 29000. Please try again in 6.2s.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`)}, llm.ErrRateLimit, "wait"},
		{"429, spent", answers{status: 429, header: js, body: strings.NewReader(`{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`)}, llm.ErrQuota, "add credit"},
		{"500", answers{status: 500, header: js, body: strings.NewReader(`{"error":{"message":"The server had an error while processing your request.","type":"server_error","param":null,"code":null}}`)}, llm.ErrOverloaded, "try again later"},
		{"503", answers{status: 503, header: js, body: strings.NewReader(`{"error":{"message":"That model is currently overloaded with other requests.","type":"server_error"}}`)}, llm.ErrOverloaded, "overloaded"},
		{"html instead of json", answers{header: html, body: strings.NewReader("<html><body>Welcome to the <b>router</b></body></html>")}, llm.ErrProtocol, "Welcome to the router"},
		{"a line of text", answers{body: strings.NewReader("upstream connect error or disconnect")}, llm.ErrProtocol, "upstream connect error"},
		{"cut in the name of a field", answers{body: strings.NewReader("dat")}, llm.ErrNetwork, "in the middle"},
		{"no stream", answers{body: strings.NewReader("")}, llm.ErrNetwork, "in the middle"},
		{"cut in an event", answers{body: strings.NewReader("data: " + created + "\n\n" + `data: {"type":"response.output_text.delta","delta":"hel`)}, llm.ErrNetwork, "in the middle"},
		{"cut between events", answers{body: strings.NewReader("data: " + created + "\n\n")}, llm.ErrNetwork, "in the middle"},
		{"done, but not the answer", answers{body: strings.NewReader("data: " + created + "\n\ndata: [DONE]\n\n")}, llm.ErrNetwork, "in the middle"},
		{"only the end", answers{body: strings.NewReader("data: [DONE]\n\n")}, llm.ErrProtocol, "without an answer"},
		{"chat completions", answers{body: strings.NewReader("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n")}, llm.ErrProtocol, "without an answer"},
		{"not json", answers{body: strings.NewReader("data: oops\n\ndata: [DONE]\n\n")}, llm.ErrProtocol, "oops"},
		{"an error event", answers{body: strings.NewReader("event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"Something broke\",\"param\":null,\"sequence_number\":1}\n\n")}, llm.ErrOverloaded, "Something broke"},
		{"an error event with an error in it", answers{body: strings.NewReader("data: {\"type\":\"error\",\"sequence_number\":2,\"error\":{\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\",\"message\":\"Rate limit reached\",\"param\":null}}\n\n")}, llm.ErrRateLimit, "Rate limit reached"},
		{"an error without a type", answers{body: strings.NewReader("data: {\"error\":{\"message\":\"Overloaded\",\"type\":\"overloaded_error\"}}\n\n")}, llm.ErrOverloaded, "Overloaded"},
		{"failed", answers{body: strings.NewReader(events(created, `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"The model failed to generate a response."},"output":[]}}`))}, llm.ErrOverloaded, "failed to generate"},
		{"failed, too long", answers{body: strings.NewReader(events(created, `{"type":"response.failed","response":{"status":"failed","error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}}`))}, llm.ErrContext, "start a new session"},
		{"failed, refused", answers{body: strings.NewReader(events(created, `{"type":"response.failed","response":{"status":"failed","error":{"code":"invalid_prompt","message":"Invalid prompt."}}}`))}, llm.ErrBadRequest, "Invalid prompt"},
		{"failed, no reason", answers{body: strings.NewReader(events(created, `{"type":"response.failed","response":{"status":"failed","error":null}}`))}, llm.ErrOverloaded, "nothing says why"},
		{"failed, nothing", answers{body: strings.NewReader(events(created, `{"type":"response.failed"}`))}, llm.ErrOverloaded, "nothing says why"},
		{"failed in a whole answer", answers{header: js, body: strings.NewReader(`{"object":"response","status":"failed","error":{"code":"server_error","message":"Broken."},"output":[]}`)}, llm.ErrOverloaded, "Broken."},
		{"failed in a whole answer, no reason", answers{header: js, body: strings.NewReader(`{"object":"response","status":"failed","error":null,"output":[]}`)}, llm.ErrOverloaded, "nothing says why"},
		{"an error in a whole answer", answers{header: js, body: strings.NewReader(`{"error":"context length exceeded"}`)}, llm.ErrContext, "start a new session"},
		{"no output", answers{header: js, body: strings.NewReader(`{"object":"x"}`)}, llm.ErrProtocol, "no output"},
		{"items without end", answers{body: &endless{event: "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"function_call\",\"name\":\"f\",\"arguments\":\"{}\"}}\n\n"}}, llm.ErrProtocol, "more than 2000 items"},
		{"type confusion", answers{body: strings.NewReader("data: {\"type\":\"response.output_item.added\",\"item\":\"x\"}\n\n")}, llm.ErrProtocol, "not what the API promises"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ask(t.Context(), answering("openai", tt.a), &llm.Request{Model: "m", Messages: said("hi")})
			var e *llm.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			if e.Kind != tt.kind || !strings.Contains(err.Error(), tt.says) {
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
	output := `"output":[{"id":"rs_1","type":"reasoning","summary":[]},{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}],"usage":{"input_tokens":3,"output_tokens":1}`
	for _, kind := range []string{"", "text/event-stream; charset=utf-8", "application/json", "text/plain"} {
		for _, body := range []string{
			events(`{"type":"response.completed","response":{"status":"completed",` + output + `}}`),
			": processing\n\n" + events(`{"type":"response.completed","response":{`+output+`}}`),
			" " + `{"object":"response","status":"completed","error":null,` + output + `}`,
		} {
			c := answering("openai", answers{header: http.Header{"Content-Type": {kind}}, body: strings.NewReader(body)})
			turn, err := ask(t.Context(), c, &llm.Request{Model: "m", Messages: said("hi")})
			if m := turn.Message(); err != nil || m.Text() != "x" || turn.Finish != llm.FinishStop || turn.Usage.Input != 3 {
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
		"text":      `data: {"type":"response.output_text.delta","delta":"` + big + "\"}\n\n",
		"waiting":   `data: {"type":"response.output_item.added","item":{"type":"function_call"}}` + "\n\n" + `data: {"type":"response.output_text.delta","delta":"` + big + "\"}\n\n",
		"reasoning": `data: {"type":"response.reasoning_text.delta","delta":"` + big + "\"}\n\n",
		"arguments": `data: {"type":"response.function_call_arguments.delta","delta":"` + big + "\"}\n\n",
		"whole":     `data: {"type":"response.function_call_arguments.done","item_id":"fc_1","arguments":"` + big + "\"}\n\n",
		"items":     `data: {"type":"response.output_item.done","item":{"type":"reasoning","encrypted_content":"` + big + "\"}}\n\n",
		"image":     `data: {"type":"response.output_item.done","item":{"type":"image_generation_call","result":"` + big + "\"}}\n\n",
		"one line":  "data: " + big,
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
			if body.sent > 2*llm.MaxFrame+1<<20 {
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
		"writing the request":       {Model: "m", Messages: said("hi"), Output: &llm.OutputSchema{Name: "x", Schema: json.RawMessage(`{`)}},
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
				err = checker.Check("responses", body)
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
		"output":  `{"type":"response.completed","response":{"output":[]}}`,
		"content": `{"type":"response.output_item.done","item":{"type":"message","content":[]}}`,
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
