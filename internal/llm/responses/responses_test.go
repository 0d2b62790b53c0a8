package responses

import (
	"context"
	"encoding/json"
	"errors"
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
	Name: Family, Model: "m", Base: "/v1", Key: "sk-secret-key-123", Check: "responses",
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
func serve(t *testing.T, name, script string) (*Client, *llmtest.Server) {
	t.Helper()
	e, server := familytest.Serve(t, script, "/v1", "")
	return New(e, profile(name)), server
}

// ask collects an answer.
func ask(ctx context.Context, c *Client, r *llm.Request) (*llm.Turn, error) {
	return familytest.Ask(ctx, Family, c, r)
}

func results(id, text string) msg.Message {
	return msg.Message{Role: msg.Tool, Results: []msg.Result{{CallID: id, Parts: []msg.Part{msg.TextPart(text)}}}}
}

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
func TestLongName(t *testing.T) { family.LongName(t, `"name":"NAME"`, `"name":"NAME","arguments"`) }

// Cancelling, and leaving the loop, close the connection before Stream returns;
// what came is kept.
func TestCancel(t *testing.T) { family.Cancel(t) }

// A stream that breaks is asked for again, and what was shown of it is void.
// BUG-SD-13, BUG-SD-15
func TestBrokenStream(t *testing.T) {
	family.Broken(t, "reasoning Hm.\ntext I will now\ncall read_file {\"pa\ncut\n", `"output":"r1"`)
}

// An answer that does not go on is given up.
func TestSilence(t *testing.T) {
	family.Silence(t, events(`{"type":"response.output_text.delta","delta":"hel"}`))
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

func TestModels(t *testing.T) { family.Models(t) }

// Each kind of bad answer gets an error that says what to do, with no key in it.
// The bodies are OpenAI's, Azure's and OpenRouter's.
func TestBadAnswers(t *testing.T) {
	js := http.Header{"Content-Type": {"application/json"}}
	created := `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","output":[]}}`
	family.BadAnswers(t,
		bad("400", answers{Status: 400, Header: js, Body: strings.NewReader(`{"error":{"message":"Unknown parameter: 'foo'.","type":"invalid_request_error","param":"foo","code":"unknown_parameter"}}`)}, llm.ErrBadRequest, "Unknown parameter: 'foo'"),
		bad("400, too long", answers{Status: 400, Header: js, Body: strings.NewReader(`{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`)}, llm.ErrContext, "start a new session"),
		bad("400, unpaired", answers{Status: 400, Header: js, Body: strings.NewReader(`{"error":{"message":"No tool output found for function call call_1.","type":"invalid_request_error","param":"input","code":null}}`)}, llm.ErrBadRequest, "call_1"),
		bad("401", answers{Status: 401, Header: js, Body: strings.NewReader(`{"error":{"message":"Incorrect API key provided: sk-secret-key-123.","type":"invalid_request_error","code":"invalid_api_key"}}`)}, llm.ErrAuth, "check the API key"),
		bad("401, Azure", answers{Status: 401, Header: js, Body: strings.NewReader(`{"error":{"code":"401","message":"Access denied due to invalid subscription key or wrong API endpoint."}}`)}, llm.ErrAuth, "check the API key"),
		bad("403", answers{Status: 403, Header: js, Body: strings.NewReader(`{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported","param":null,"type":"request_forbidden"}}`)}, llm.ErrAuth, "Country"),
		bad("404", answers{Status: 404, Header: js, Body: strings.NewReader(`{"error":{"message":"The requested model 'x' does not exist.","type":"invalid_request_error","param":"model","code":"model_not_found"}}`)}, llm.ErrNotFound, "check the model's name"),
		bad("404, Azure", answers{Status: 404, Header: js, Body: strings.NewReader(`{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`)}, llm.ErrNotFound, "deployment"),
		bad("404, no such API", answers{Status: 404, Header: http.Header{"Content-Type": {"text/plain"}}, Body: strings.NewReader("404 page not found")}, llm.ErrNotFound, "page not found"),
		bad("402", answers{Status: 402, Header: js, Body: strings.NewReader(`{"error":{"code":402,"message":"Insufficient credits"}}`)}, llm.ErrQuota, "add credit"),
		bad("429", answers{Status: 429, Header: js, Body: strings.NewReader(`{"error":{"message":"Rate limit reached for m in organization o on tokens per min (TPM): Limit 30000, Used 29000. Please try again in 6.2s.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`)}, llm.ErrRateLimit, "wait"),
		bad("429, spent", answers{Status: 429, Header: js, Body: strings.NewReader(`{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`)}, llm.ErrQuota, "add credit"),
		bad("500", answers{Status: 500, Header: js, Body: strings.NewReader(`{"error":{"message":"The server had an error while processing your request.","type":"server_error","param":null,"code":null}}`)}, llm.ErrOverloaded, "try again later"),
		bad("503", answers{Status: 503, Header: js, Body: strings.NewReader(`{"error":{"message":"That model is currently overloaded with other requests.","type":"server_error"}}`)}, llm.ErrOverloaded, "overloaded"),
		bad("cut in an event", answers{Body: strings.NewReader("data: " + created + "\n\n" + `data: {"type":"response.output_text.delta","delta":"hel`)}, llm.ErrNetwork, "in the middle"),
		bad("cut between events", answers{Body: strings.NewReader("data: " + created + "\n\n")}, llm.ErrNetwork, "in the middle"),
		bad("done, but not the answer", answers{Body: strings.NewReader("data: " + created + "\n\ndata: [DONE]\n\n")}, llm.ErrNetwork, "in the middle"),
		bad("only the end", answers{Body: strings.NewReader("data: [DONE]\n\n")}, llm.ErrProtocol, "without an answer"),
		bad("chat completions", answers{Body: strings.NewReader("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n")}, llm.ErrProtocol, "without an answer"),
		bad("not json", answers{Body: strings.NewReader("data: oops\n\ndata: [DONE]\n\n")}, llm.ErrProtocol, "oops"),
		bad("an error event", answers{Body: strings.NewReader("event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"Something broke\",\"param\":null,\"sequence_number\":1}\n\n")}, llm.ErrOverloaded, "Something broke"),
		bad("an error event with an error in it", answers{Body: strings.NewReader("data: {\"type\":\"error\",\"sequence_number\":2,\"error\":{\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\",\"message\":\"Rate limit reached\",\"param\":null}}\n\n")}, llm.ErrRateLimit, "Rate limit reached"),
		bad("an error without a type", answers{Body: strings.NewReader("data: {\"error\":{\"message\":\"Overloaded\",\"type\":\"overloaded_error\"}}\n\n")}, llm.ErrOverloaded, "Overloaded"),
		bad("failed", answers{Body: strings.NewReader(events(created, `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"The model failed to generate a response."},"output":[]}}`))}, llm.ErrOverloaded, "failed to generate"),
		bad("failed, too long", answers{Body: strings.NewReader(events(created, `{"type":"response.failed","response":{"status":"failed","error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}}`))}, llm.ErrContext, "start a new session"),
		bad("failed, refused", answers{Body: strings.NewReader(events(created, `{"type":"response.failed","response":{"status":"failed","error":{"code":"invalid_prompt","message":"Invalid prompt."}}}`))}, llm.ErrBadRequest, "Invalid prompt"),
		bad("failed, no reason", answers{Body: strings.NewReader(events(created, `{"type":"response.failed","response":{"status":"failed","error":null}}`))}, llm.ErrOverloaded, "nothing says why"),
		bad("failed, nothing", answers{Body: strings.NewReader(events(created, `{"type":"response.failed"}`))}, llm.ErrOverloaded, "nothing says why"),
		bad("failed in a whole answer", answers{Header: js, Body: strings.NewReader(`{"object":"response","status":"failed","error":{"code":"server_error","message":"Broken."},"output":[]}`)}, llm.ErrOverloaded, "Broken."),
		bad("failed in a whole answer, no reason", answers{Header: js, Body: strings.NewReader(`{"object":"response","status":"failed","error":null,"output":[]}`)}, llm.ErrOverloaded, "nothing says why"),
		bad("an error in a whole answer", answers{Header: js, Body: strings.NewReader(`{"error":"context length exceeded"}`)}, llm.ErrContext, "start a new session"),
		bad("no output", answers{Header: js, Body: strings.NewReader(`{"object":"x"}`)}, llm.ErrProtocol, "no output"),
		bad("items without end", answers{Body: &endless{Event: "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"function_call\",\"name\":\"f\",\"arguments\":\"{}\"}}\n\n"}}, llm.ErrProtocol, "more than 2000 items"),
		bad("type confusion", answers{Body: strings.NewReader("data: {\"type\":\"response.output_item.added\",\"item\":\"x\"}\n\n")}, llm.ErrProtocol, "not what the API promises"),
	)
}

// A stream is read as one, and a whole answer as one, whatever type they have.
func TestTypes(t *testing.T) {
	output := `"output":[{"id":"rs_1","type":"reasoning","summary":[]},{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}],"usage":{"input_tokens":3,"output_tokens":1}`
	family.Types(t,
		events(`{"type":"response.completed","response":{"status":"completed",`+output+`}}`),
		": processing\n\n"+events(`{"type":"response.completed","response":{`+output+`}}`),
		" "+`{"object":"response","status":"completed","error":null,`+output+`}`)
}

// An answer that does not end is ended, and so is an event that does not.
func TestEndlessAnswer(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	family.EndlessAnswers(t, map[string]string{
		"text":      `data: {"type":"response.output_text.delta","delta":"` + big + "\"}\n\n",
		"waiting":   `data: {"type":"response.output_item.added","item":{"type":"function_call"}}` + "\n\n" + `data: {"type":"response.output_text.delta","delta":"` + big + "\"}\n\n",
		"reasoning": `data: {"type":"response.reasoning_text.delta","delta":"` + big + "\"}\n\n",
		"arguments": `data: {"type":"response.function_call_arguments.delta","delta":"` + big + "\"}\n\n",
		"whole":     `data: {"type":"response.function_call_arguments.done","item_id":"fc_1","arguments":"` + big + "\"}\n\n",
		"items":     `data: {"type":"response.output_item.done","item":{"type":"reasoning","encrypted_content":"` + big + "\"}}\n\n",
		"image":     `data: {"type":"response.output_item.done","item":{"type":"image_generation_call","result":"` + big + "\"}}\n\n",
	})
}

// What the request itself lacks is said before anything is sent.
func TestRefusedRequests(t *testing.T) {
	family.RefusedRequests(t, map[string]*llm.Request{
		"writing the request": {Model: "m", Messages: said("hi"), Output: &llm.OutputSchema{Name: "x", Schema: json.RawMessage(`{`)}},
	})
}

// The schemas of real MCP servers are taken, whatever they are.
func TestRealSchemas(t *testing.T) { family.RealSchemas(t) }

// A list whose elements take more memory than bytes is refused before it is
// read.
func TestLongLists(t *testing.T) {
	family.LongLists(t, map[string]string{
		"output":  `{"type":"response.completed","response":{"output":[]}}`,
		"content": `{"type":"response.output_item.done","item":{"type":"message","content":[]}}`,
	})
}
