package openai

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/llm"
	"capstan/internal/llm/familytest"
	"capstan/internal/llm/llmtest"
	"capstan/internal/msg"
)

// What all families are tested with.
var (
	said      = familytest.Said
	madeCalls = familytest.Calls
	readFile  = familytest.ReadFile
	tools4    = familytest.Tools4
	bad       = familytest.NewBad
)

type (
	answers = familytest.Answers
	endless = familytest.Endless
)

var family = &familytest.Family{
	Name: Family, Model: "m", Base: "/v1", Key: "sk-secret-key-123", Check: "chat",
	Open:  func(e *llm.Endpoint) familytest.Client { return New(e, profile("openai")) },
	Limit: func(c familytest.Client, bytes int) { c.(*Client).limit = bytes },
	Body: func(r *llm.Request) ([]byte, error) {
		body, _, err := New(&llm.Endpoint{Name: "test"}, profile("openai")).encode(r)
		return body, err
	},
}

func profile(name string) *Profile {
	p, ok := Profiles().Named(name)
	if !ok {
		panic("no profile " + name)
	}
	return &p
}

func answering(name string, a answers) *Client { return New(family.Over(a), profile(name)) }

// serve returns a client of a scripted server.
func serve(t *testing.T, script string) (*Client, *llmtest.Server) {
	t.Helper()
	e, server := familytest.Serve(t, script, "/v1", "")
	return New(e, nil), server
}

// ask collects an answer.
func ask(ctx context.Context, c *Client, r *llm.Request) (*llm.Turn, error) {
	return familytest.Ask(ctx, Family, c, r)
}

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
func TestLongName(t *testing.T) { family.LongName(t, `"name":"NAME"`, `"name":"NAME","arguments"`) }

// Cancelling, and leaving the loop, close the connection before Stream returns,
// and keep what came.
func TestCancel(t *testing.T) { family.Cancel(t) }

// A stream that breaks is asked for again, without what was done before it
// being done again; not once a call was handed out. BUG-SD-13, BUG-SD-15
func TestBrokenStream(t *testing.T) {
	family.Broken(t, "text I will now\ncall read_file {\"pa\ncut\n", `"content":"r1"`)
}

// An answer that does not go on is given up.
func TestSilence(t *testing.T) {
	family.Silence(t, events(`{"choices":[{"index":0,"delta":{"content":"hel"}}]}`))
}

func TestModels(t *testing.T) { family.Models(t) }

// Each kind of bad answer gets an error that says what to do, with no key in it.
func TestBadAnswers(t *testing.T) {
	js := http.Header{"Content-Type": {"application/json"}}
	family.BadAnswers(t,
		bad("401", answers{Status: 401, Header: js, Body: strings.NewReader(`{"error":{"message":"Incorrect API key provided: sk-secret-key-123.","type":"invalid_request_error","code":"invalid_api_key"}}`)}, llm.ErrAuth, "check the API key"),
		bad("404", answers{Status: 404, Header: js, Body: strings.NewReader("{\"error\":{\"message\":\"The model `x` does not exist\",\"code\":\"model_not_found\"}}")}, llm.ErrNotFound, "check the model's name"),
		bad("cut in an event", answers{Body: strings.NewReader(`data: {"choices":[{"delta":{"content":"hel`)}, llm.ErrNetwork, "in the middle"),
		bad("cut between events", answers{Body: strings.NewReader("data: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\n")}, llm.ErrNetwork, "in the middle"),
		bad("only the end", answers{Body: strings.NewReader("data: [DONE]\n\n")}, llm.ErrProtocol, "without an answer"),
		bad("not json", answers{Body: strings.NewReader("data: oops\n\ndata: [DONE]\n\n")}, llm.ErrProtocol, "oops"),
		bad("an error in the stream", answers{Body: strings.NewReader("data: {\"error\":{\"message\":\"Overloaded\",\"type\":\"overloaded_error\"}}\n\n")}, llm.ErrOverloaded, "Overloaded"),
		bad("an error in a whole answer", answers{Header: js, Body: strings.NewReader(`{"error":"context length exceeded"}`)}, llm.ErrContext, "start a new session"),
		bad("no choices", answers{Header: js, Body: strings.NewReader(`{"object":"x"}`)}, llm.ErrProtocol, "no choices"),
		bad("an error that is no event", answers{Body: strings.NewReader("\n{\"error\":{\"message\":\"context length exceeded\"}}")}, llm.ErrContext, "start a new session"),
		bad("calls without end", answers{Body: &endless{Event: "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}}]}\n\n"}}, llm.ErrProtocol, "more than 1000 tool calls"),
		bad("type confusion", answers{Body: strings.NewReader("data: {\"choices\":\"x\"}\n\n")}, llm.ErrProtocol, "not what the API promises"),
	)
}

// A stream is read as one, and a whole answer as one, whatever type they have.
func TestTypes(t *testing.T) {
	stream := deltas("stop", `{"content":"x"}`)
	family.Types(t, stream, ": processing\n\n"+stream, " "+`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}`)
}

// An answer that does not end is ended, and so is an event that does not.
func TestEndlessAnswer(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	family.EndlessAnswers(t, map[string]string{
		"text":      `data: {"choices":[{"index":0,"delta":{"content":"` + big + "\"}}]}\n\n",
		"reasoning": `data: {"choices":[{"index":0,"delta":{"reasoning":"` + big + "\"}}]}\n\n",
		"arguments": `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"` + big + "\"}}]}}]}\n\n",
		"details":   `data: {"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.text","text":"` + big + "\"}]}}]}\n\n",
		"comments":  ": " + big + "\n\n",
	})
}

// What the request itself lacks is said before anything is sent.
func TestRefusedRequests(t *testing.T) { family.RefusedRequests(t, nil) }

// The schemas of real MCP servers are taken, whatever they are.
func TestRealSchemas(t *testing.T) { family.RealSchemas(t) }

// A list whose elements take more memory than bytes is refused before it is
// read.
func TestLongLists(t *testing.T) {
	family.LongLists(t, map[string]string{
		"choices": `{"choices":[]}`,
		"calls":   `{"choices":[{"delta":{"tool_calls":[]}}]}`,
		"details": `{"choices":[{"delta":{"reasoning_details":[]}}]}`,
	})
}
