package gemini

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

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
	noArgs    = familytest.NoArgs
	callPart  = familytest.Call
	resultsOf = familytest.Results
)

type (
	answers = familytest.Answers
	endless = familytest.Endless
)

var family = &familytest.Family{
	Name: Family, Model: "gemini-3-pro", Base: "/v1beta", Key: "AIzaSecretKeySecretKeySecretKey", Check: "gemini",
	Open:  func(e *llm.Endpoint) familytest.Client { return New(e) },
	Limit: func(c familytest.Client, bytes int) { c.(*Client).limit = bytes },
	Body: func(r *llm.Request) ([]byte, error) {
		body, _, err := New(&llm.Endpoint{Name: "test"}).encode(r)
		return body, err
	},
}

func answering(a answers) *Client { return New(family.Over(a)) }

// serve returns a client of a scripted server.
func serve(t *testing.T, script string) (*Client, *llmtest.Server) {
	t.Helper()
	e, server := familytest.Serve(t, script, "/v1beta", "the-key")
	return New(e), server
}

// ask collects an answer.
func ask(ctx context.Context, c *Client, r *llm.Request) (*llm.Turn, error) {
	return familytest.Ask(ctx, Family, c, r)
}

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

// A name that is too long is shortened, leads back, and is told of once.
// BUG-TN-01, BUG-TN-03
func TestLongName(t *testing.T) {
	family.LongName(t, `"name":"NAME"`, `"functionResponse":\{"id":"call_1_1","name":"NAME"`)
}

// A name that only other APIs refuse stays.
func TestOddName(t *testing.T) {
	c, _ := serve(t, "-- 1 --\nwant \"name\":\"a.b:c\"\ncall a.b:c {}\n")
	turn, err := ask(t.Context(), c, &llm.Request{Model: "gemini-3-pro", Messages: said("hi"), Tools: []msg.Declaration{{Name: "a.b:c"}}})
	if got := madeCalls(turn); err != nil || len(got) != 1 || got[0].Name != "a.b:c" || len(turn.Warnings) > 0 {
		t.Errorf("%v: calls %+v, warnings %q", err, got, turn.Warnings)
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

// Cancelling, and leaving the loop, close the connection before Stream returns,
// and keep what came.
func TestCancel(t *testing.T) { family.Cancel(t) }

// A stream that breaks is asked for again, even when a call had come: calls are
// handed out at the end. BUG-SD-13, BUG-SD-15
func TestBrokenStream(t *testing.T) {
	family.Broken(t, "text I will now\ncall read_file {\"path\":\"a\"}\ncut\n", `"output":"r1"`)
}

// An answer that does not go on is given up.
func TestSilence(t *testing.T) {
	family.Silence(t, events(`{"candidates":[{"content":{"parts":[{"text":"hel"}]}}]}`))
}

// Only models for conversations are listed, without their collection, over all
// pages.
func TestModels(t *testing.T) {
	family.Models(t)
	pages := paged{
		"":    `{"models":[{"name":"models/b","supportedGenerationMethods":["generateContent"]},{"name":"models/e","supportedGenerationMethods":["embedContent"]}],"nextPageToken":"x&y"}`,
		"x&y": `{"models":[{"name":"tunedModels/a","supportedGenerationMethods":["generateContent"]},{}]}`,
	}
	got, err := New(&llm.Endpoint{Name: "test", BaseURL: "http://test/v1beta", Transport: pages}).Models(t.Context())
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
	return answers{Body: strings.NewReader(p[r.URL.Query().Get("pageToken")])}.RoundTrip(r)
}

// Each kind of bad answer gets an error that says what to do, with no key in
// it, and with the time that the API asks to wait.
func TestBadAnswers(t *testing.T) {
	js := http.Header{"Content-Type": {"application/json; charset=UTF-8"}}
	body := func(status int, word, message, details string) answers {
		raw, _ := json.Marshal(message)
		return answers{Status: status, Header: js, Body: strings.NewReader(`{"error":{"code":` + strconv.Itoa(status) + `,"message":` + string(raw) + `,"status":"` + word + `","details":[` + details + `]}}`)}
	}
	stream := func(s string) answers { return answers{Body: strings.NewReader(s)} }
	const retry = `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"20.044s"}`
	quota := func(id string) string {
		return `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"generativelanguage.googleapis.com/generate_content_free_tier_requests","quotaId":"` + id + `","quotaDimensions":{"location":"global"}}]},`
	}
	const exceeded = "You exceeded your current quota, please check your plan and billing details."
	wait := 20044 * time.Millisecond
	family.BadAnswers(t,
		bad("wrong key", body(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", `{"reason":"API_KEY_INVALID"}`), llm.ErrAuth, "check the API key"),
		bad("no key", body(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers", ""), llm.ErrAuth, "check the API key"),
		bad("unauthenticated", body(401, "UNAUTHENTICATED", "Request had invalid authentication credentials for AIzaSecretKeySecretKeySecretKey", ""), llm.ErrAuth, "[redacted]"),
		bad("unknown model", body(404, "NOT_FOUND", "models/x is not found for API version v1beta", ""), llm.ErrNotFound, "check the model's name"),
		bad("too many at once", body(429, "RESOURCE_EXHAUSTED", exceeded, quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier")+retry), llm.ErrRateLimit, "rate limit", wait),
		bad("the day's quota", body(429, "RESOURCE_EXHAUSTED", exceeded, quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier")+retry), llm.ErrQuota, "quota is spent", wait),
		bad("no more room", body(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).", ""), llm.ErrRateLimit, "rate limit"),
		bad("a context too long", body(400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", ""), llm.ErrContext, "start a new session"),
		bad("too many bytes", body(400, "INVALID_ARGUMENT", "Request payload size exceeds the limit: 20971520 bytes.", ""), llm.ErrTooLarge, "smaller"),
		bad("a bad schema", body(400, "INVALID_ARGUMENT", "* GenerateContentRequest.tools[0].function_declarations[0].parameters.properties: should be non-empty for OBJECT type\n", ""), llm.ErrBadRequest, "non-empty for OBJECT"),
		bad("overloaded", body(503, "UNAVAILABLE", "The model is overloaded. Please try again later.", ""), llm.ErrOverloaded, "try again later"),
		bad("failing", body(500, "INTERNAL", "An internal error has occurred.", ""), llm.ErrOverloaded, "internal error"),
		bad("too late", body(504, "DEADLINE_EXCEEDED", "Deadline expired", ""), llm.ErrOverloaded, "Deadline"),
		bad("a list of errors", answers{Status: 429, Header: js, Body: strings.NewReader(`[{"error":{"code":429,"message":"Slow down.","status":"RESOURCE_EXHAUSTED","details":[` + retry + `]}}]`)}, llm.ErrRateLimit, "Slow down", wait),
		bad("cut in an event", stream(`data: {"candidates":[{"content":{"parts":[{"text":"hel`), llm.ErrNetwork, "in the middle"),
		bad("cut between events", stream(events(`{"candidates":[{"content":{"parts":[{"text":"hel"}]}}]}`)), llm.ErrNetwork, "in the middle"),
		bad("only the end", stream("data: [DONE]\n\n"), llm.ErrNetwork, "in the middle"),
		bad("not json", stream("data: oops\n\n"), llm.ErrProtocol, "oops"),
		bad("an error in the stream", stream(events(`{"candidates":[{"content":{"parts":[{"text":"hel"}]}}]}`, `{"error":{"code":503,"message":"Later.","status":"UNAVAILABLE"}}`)), llm.ErrOverloaded, "Later."),
		bad("a limit in the stream", stream(events(`[{"error":{"code":429,"message":"Slow.","status":"RESOURCE_EXHAUSTED","details":[`+retry+`]}}]`)), llm.ErrRateLimit, "Slow.", wait),
		bad("an error in a whole answer", answers{Header: js, Body: strings.NewReader(`[{"error":{"code":500,"message":"Bad day.","status":"INTERNAL"}}]`)}, llm.ErrOverloaded, "Bad day"),
		bad("no candidates", answers{Header: js, Body: strings.NewReader(`{"usageMetadata":{"promptTokenCount":5}}`)}, llm.ErrProtocol, "no candidates"),
		bad("an empty list", answers{Header: js, Body: strings.NewReader(`[]`)}, llm.ErrProtocol, "no candidates"),
		bad("type confusion", stream(events(`{"candidates":"x"}`)), llm.ErrProtocol, "not what the API promises"),
		bad("a list in a list", stream(events(`[[]]`)), llm.ErrProtocol, "not what the API promises"),
		bad("media that is no base64", stream(events(`{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"%%"}}]}}]}`)), llm.ErrProtocol, "inline data"),
		bad("calls without end", answers{Body: &endless{Event: events(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]}}]}`)}}, llm.ErrProtocol, "more than 1000 tool calls"),
	)
}

// An answer that does not end is ended, whatever it is made of.
func TestEndlessAnswer(t *testing.T) {
	big := strings.Repeat("xxxx", 1<<18)
	all := map[string]string{}
	for name, part := range map[string]string{
		"text":      `{"text":"` + big + `"}`,
		"thought":   `{"text":"` + big + `","thought":true}`,
		"signature": `{"thoughtSignature":"` + big + `"}`,
		"arguments": `{"functionCall":{"name":"f","args":{"a":"` + big + `"}}}`,
		"hosted":    `{"executableCode":{"code":"` + big + `"}}`,
		"media":     `{"inlineData":{"mimeType":"image/png","data":"` + big + big + `"}}`,
	} {
		all[name] = events(`{"candidates":[{"content":{"parts":[` + part + `]}}]}`)
	}
	family.EndlessAnswers(t, all)
}

// What the request itself lacks is said before anything is sent.
func TestRefusedRequests(t *testing.T) {
	family.RefusedRequests(t, map[string]*llm.Request{
		`no effort "huge"`:           {Model: "gemini-3-pro", Messages: said("hi"), Effort: "huge"},
		"reducing schema":            {Model: "gemini-3-pro", Messages: said("hi"), Output: &llm.OutputSchema{Schema: json.RawMessage(`{`)}},
		"cannot be the name of a mo": {Model: "m:x?alt=json#", Messages: said("hi")},
		`"../v1/m" cannot be`:        {Model: "../v1/m", Messages: said("hi")},
	})
}

// The schemas of real MCP servers are taken, whatever they are.
func TestRealSchemas(t *testing.T) { family.RealSchemas(t) }

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
	family.LongLists(t, map[string]string{
		"candidates": `{"candidates":[]}`,
		"parts":      `{"candidates":[{"content":{"parts":[]}}]}`,
		"chunks":     `[]`,
	})
}
