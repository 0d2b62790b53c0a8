package anthropic

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
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
	shell     = familytest.Shell
	call      = familytest.Call
	result    = familytest.Result
	results   = familytest.Results
)

type (
	answers = familytest.Answers
	endless = familytest.Endless
)

var family = &familytest.Family{
	Name: Family, Model: claude, Base: "", Key: "sk-ant-secret-key-123", Check: "anthropic",
	Open:  func(e *llm.Endpoint) familytest.Client { return New(e, &Profiles()[0]) },
	Limit: func(c familytest.Client, bytes int) { c.(*Client).limit = bytes },
	Body: func(r *llm.Request) ([]byte, error) {
		e, err := New(&llm.Endpoint{Name: "test"}, nil).encode(r, false)
		if err != nil {
			return nil, err
		}
		return e.body, nil
	},
}

func answering(a answers) *Client { return New(family.Over(a), &Profiles()[0]) }

// serve returns a client of a scripted server.
func serve(t *testing.T, script string) (*Client, *llmtest.Server) {
	t.Helper()
	e, server := familytest.Serve(t, script, "", "k")
	return New(e, nil), server
}

// ask collects an answer.
func ask(ctx context.Context, c *Client, r *llm.Request) (*llm.Turn, error) {
	return familytest.Ask(ctx, Family, c, r)
}

// claude is a model of the newest kind.
const claude = "claude-sonnet-5-5"

func answer(parts ...msg.Part) msg.Message {
	return msg.Message{Role: msg.Assistant, Origin: Family + "/" + claude, Parts: parts}
}

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
	family.LongName(t, `"name":"NAME","input_schema"`, `"name":"NAME","input"`)
}

// Cancelling, and leaving the loop, close the connection before Stream returns,
// and keep what came.
func TestCancel(t *testing.T) { family.Cancel(t) }

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
		t.Run(name, func(t *testing.T) { family.Broken(t, breaks, `"content":"r1"`) })
	}
}

// An answer that does not go on is given up.
func TestSilence(t *testing.T) {
	family.Silence(t, stream(start, begin(0, `{"type":"text","text":""}`), textDelta(0, "hel")))
}

func TestModels(t *testing.T) { family.Models(t) }

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

// Each kind of bad answer gets an error that says what to do, with no key in it.
func TestBadAnswers(t *testing.T) {
	js := http.Header{"Content-Type": {"application/json"}}
	fault := func(kind, message string) io.Reader {
		return strings.NewReader(`{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"},"request_id":"req_011"}`)
	}
	text := func(s string) io.Reader { return strings.NewReader(s) }
	family.BadAnswers(t,
		bad("400", answers{Status: 400, Header: js, Body: fault("invalid_request_error", "messages.0: x")}, llm.ErrBadRequest, "messages.0: x"),
		bad("400, too long", answers{Status: 400, Header: js, Body: fault("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")}, llm.ErrContext, "start a new session"),
		bad("400, input and output too long", answers{Status: 400, Header: js, Body: fault("invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000")}, llm.ErrContext, "start a new session"),
		bad("400, spent", answers{Status: 400, Header: js, Body: fault("invalid_request_error", "Your credit balance is too low to access the Anthropic API.")}, llm.ErrQuota, "add credit"),
		bad("401", answers{Status: 401, Header: js, Body: fault("authentication_error", "invalid x-api-key sk-ant-secret-key-123")}, llm.ErrAuth, "check the API key"),
		bad("402", answers{Status: 402, Header: js, Body: fault("billing_error", "pay")}, llm.ErrQuota, "add credit"),
		bad("403", answers{Status: 403, Header: js, Body: fault("permission_error", "not yours")}, llm.ErrAuth, "check the API key"),
		bad("404", answers{Status: 404, Header: js, Body: fault("not_found_error", "model: claude-x")}, llm.ErrNotFound, "check the model's name"),
		bad("413", answers{Status: 413, Header: js, Body: fault("request_too_large", "Request exceeds the maximum size")}, llm.ErrTooLarge, "smaller"),
		bad("429", answers{Status: 429, Header: js, Body: fault("rate_limit_error", "This request would exceed your organization's rate limit")}, llm.ErrRateLimit, "wait"),
		bad("500", answers{Status: 500, Header: js, Body: fault("api_error", "Internal server error")}, llm.ErrOverloaded, "try again later"),
		bad("504", answers{Status: 504, Header: js, Body: fault("timeout_error", "timed out")}, llm.ErrOverloaded, "try again later"),
		bad("529", answers{Status: 529, Header: js, Body: fault("overloaded_error", "Overloaded")}, llm.ErrOverloaded, "try again later"),
		bad("cut in an event", answers{Body: text(stream(start) + `data: {"type":"content_block_del`)}, llm.ErrNetwork, "in the middle"),
		bad("cut between events", answers{Body: text(stream(start, begin(0, `{"type":"text","text":""}`), textDelta(0, "hel")))}, llm.ErrNetwork, "in the middle"),
		bad("only the end", answers{Body: text(stream(`{"type":"message_stop"}`))}, llm.ErrProtocol, "without an answer"),
		bad("not json", answers{Body: text("data: oops\n\n")}, llm.ErrProtocol, "oops"),
		bad("an error in the stream", answers{Body: text(stream(start, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`))}, llm.ErrOverloaded, "Overloaded"),
		bad("an error of another kind in the stream", answers{Body: text(stream(start, `{"type":"error","error":{"type":"api_error","message":"broke"}}`))}, llm.ErrOverloaded, "broke"),
		bad("an error in a whole answer", answers{Header: js, Body: fault("invalid_request_error", "context length exceeded")}, llm.ErrContext, "start a new session"),
		bad("no content", answers{Header: js, Body: text(`{"object":"x"}`)}, llm.ErrProtocol, "no content"),
		bad("type confusion", answers{Body: text("data: {\"type\":\"content_block_start\",\"content_block\":\"x\"}\n\n")}, llm.ErrProtocol, "not what the API promises"),
		bad("type confusion in an event", answers{Body: text("data: {\"type\":7}\n\n")}, llm.ErrProtocol, "not what the API promises"),
		bad("blocks without end", answers{Body: &endless{Event: stream(begin(0, `{"type":"text","text":"x"}`))}}, llm.ErrProtocol, "more than 2000 blocks"),
	)
}

// A stream is read as one, and a whole answer as one, whatever type they have.
func TestTypes(t *testing.T) {
	family.Types(t, speech("end_turn", "x"), ": processing\n\n"+speech("end_turn", "x"),
		" "+`{"type":"message","role":"assistant","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":1}}`)
}

// An answer that does not end is ended, whatever grows in it.
func TestEndlessAnswer(t *testing.T) {
	big := strings.Repeat("x", 1<<18)
	family.EndlessAnswers(t, map[string]string{
		"text":      stream(textDelta(0, big)),
		"thinking":  stream(`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"` + big + `"}}`),
		"arguments": stream(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"` + big + `"}}`),
		"signature": stream(begin(0, `{"type":"thinking","thinking":""}`), `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"`+big+`"}}`),
		"citations": stream(begin(0, `{"type":"text","text":""}`), `{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"a":"`+big+`"}}}`),
		"blocks":    stream(begin(0, `{"type":"web_search_tool_result","content":"`+big+`"}`)),
	})
}

// What the request itself lacks is said before anything is sent.
func TestRefusedRequests(t *testing.T) { family.RefusedRequests(t, nil) }

// The schemas of real MCP servers are taken, whatever they are.
func TestRealSchemas(t *testing.T) { family.RealSchemas(t) }

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
	family.LongLists(t, map[string]string{
		"content":   `{"type":"message_start","message":{"content":[]}}`,
		"citations": `{"type":"content_block_start","content_block":{"type":"text","citations":[]}}`,
	})
}
