package oracle

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/llm"
	"capstan/internal/llm/llmtest"
	"capstan/internal/msg"
)

var families = []family{chat, openAIResponses, anthropicMessages, generateContent}

// A family is a wire format of ours and the SDK that it is held against.
type family struct {
	name   string // as in FAMILY/MODEL
	format string // as llmtest names it
	base   string // what follows the server's address
	// models are asked for requests, the first one for answers.
	models []string
	client func(*llm.Endpoint) llm.Provider
	// again decodes a request into the SDK's types and encodes it.
	again func(body []byte) ([]byte, error)
	// ask sends a request with the SDK and collects the answer.
	ask func(ctx context.Context, base, model string, body []byte) (answer, error)
	// apart are members that only one of the two has, each with why. They are
	// named by their path, without the places in arrays.
	apart map[string]string
	// blocks are members that may be a string instead of one block of text.
	blocks []string
	floats bool // the SDK's numbers are floats
	omits  bool // the SDK leaves empty objects and texts out
	// bad are requests that the SDK does not know; again must show it.
	bad []string
}

// An answer is what both sides must agree on.
type answer struct {
	Text   string
	Calls  []msg.Call
	Usage  msg.Usage
	Finish llm.Finish
}

// recorder keeps the body of a request and refuses it.
type recorder struct{ body []byte }

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	var err error
	if r.body, err = io.ReadAll(req.Body); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: req}, nil
}

// sent is what a family sends for r.
func (f *family) sent(t *testing.T, r *llm.Request) []byte {
	t.Helper()
	rec := &recorder{}
	p := f.client(&llm.Endpoint{Name: "test", BaseURL: "http://test" + f.base, Retries: -1, Transport: rec})
	var last error
	for _, err := range p.Stream(t.Context(), r) {
		last = err
	}
	if rec.body == nil {
		t.Fatalf("nothing was sent: %v", last)
	}
	return rec.body
}

var tools = []msg.Declaration{
	{Name: "read_file", Description: "Read a <file> & more.", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":["integer","null"],"minimum":1}},"required":["path"],"additionalProperties":false}`)},
	{Name: "exec", Parameters: json.RawMessage(`{"type":"object","properties":{"source":{"type":"string"},"options":{"type":"object"}}}`)},
	{Name: "mcp__server.with.dots__tool", Description: "D", Parameters: json.RawMessage(`{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"list":{"type":"array","items":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/a"}]}}}}}}`)},
	{Name: "nothing"},
}

// request is a random request: any transcript, any set of options.
func request(r *rand.Rand, models []string) *llm.Request {
	req := &llm.Request{Model: models[r.IntN(len(models))], Messages: llmtest.Transcript(r)}
	if r.IntN(4) > 0 {
		req.Tools = tools
		req.Choice = []llm.Choice{llm.ChoiceAuto, llm.ChoiceNone, llm.ChoiceRequired}[r.IntN(3)]
	}
	if r.IntN(2) == 0 {
		req.System = "Be <brief>. 漢字"
	}
	if r.IntN(2) == 0 {
		req.CacheKey = "conversation-1"
	}
	if r.IntN(3) == 0 {
		req.MaxTokens = 4000
	}
	if r.IntN(3) == 0 {
		req.Effort = []string{"low", "medium", "high"}[r.IntN(3)]
	}
	if r.IntN(4) == 0 {
		half := 0.5
		req.Temperature, req.TopP, req.Stop = &half, &half, []string{"END"}
	}
	if r.IntN(4) == 0 {
		req.Output = &llm.OutputSchema{Name: "answer", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)}
	}
	return req
}

// TestRequests holds what we send against the SDK's types.
func TestRequests(t *testing.T) {
	for i := range families {
		f := &families[i]
		t.Run(f.name, func(t *testing.T) {
			for seed := range 2000 {
				f.hold(t, fmt.Sprint("seed ", seed), request(rand.New(rand.NewPCG(7, uint64(seed))), f.models))
			}
		})
	}
}

// hold fails when what is sent for r, which it returns, is not the same to the
// SDK.
func (f *family) hold(t *testing.T, what string, r *llm.Request) []byte {
	t.Helper()
	body := f.sent(t, r)
	again, err := f.again(body)
	if err != nil {
		t.Fatalf("%s: the SDK refuses %s: %v", what, body, err)
	}
	if diff := f.differ(t, body, again); diff != "" {
		t.Fatalf("%s: %s\nis to the SDK (-ours +its)\n%s", what, body, diff)
	}
	return body
}

// An oracle that lets everything pass says nothing.
func TestStrict(t *testing.T) {
	for i := range families {
		f := &families[i]
		for _, body := range f.bad {
			if again, err := f.again([]byte(body)); err == nil && f.differ(t, []byte(body), again) == "" {
				t.Errorf("%s: %s passed as %s", f.name, body, again)
			}
		}
	}
}

// differ compares two requests as JSON. null and an absent member are the same.
func (f *family) differ(t *testing.T, ours, its []byte) string {
	t.Helper()
	return cmp.Diff(f.plain(t, ours), f.plain(t, its))
}

func (f *family) plain(t *testing.T, raw []byte) any {
	t.Helper()
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	if !f.floats {
		dec.UseNumber()
	}
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	f.strip(v, "")
	return v
}

// strip takes away null and what stands apart, and makes blocks of strings.
func (f *family) strip(v any, path string) {
	switch v := v.(type) {
	case map[string]any:
		for name, m := range v {
			if text, ok := m.(string); ok && slices.Contains(f.blocks, path+name) {
				v[name] = []any{map[string]any{"type": "text", "text": text}}
			}
			f.strip(m, path+name+".")
			if m == nil || f.apart[path+name] != "" || f.omits && empty(m) {
				delete(v, name)
			}
		}
	case []any:
		for _, m := range v {
			f.strip(m, path)
		}
	}
}

func empty(v any) bool {
	m, ok := v.(map[string]any)
	return v == "" || ok && len(m) == 0
}

// turn is a random answer.
func turn(r *rand.Rand, n int) llmtest.Turn {
	texts := []string{"hello", "ü 漢字 🙂👩‍👩‍👧", "a\n\tb\"\\\u2028\x01", strings.Repeat("long ", 100), " ", "data: [DONE]\n\n", "<b>&amp;</b>"}
	args := []string{`{}`, `{"path":"a \"q\" ü\n"}`, `{"n":12345678901234567890,"f":0.10}`, `{"text":"` + strings.Repeat("🙂", 50) + `"}`, `{"nested":{"a":[1,{"b":null}]}}`}
	t := llmtest.Turn{Name: fmt.Sprint(n), Usage: llmtest.Usage{In: 100 + r.IntN(1000), Out: 50 + r.IntN(100), Cached: r.IntN(100), Reasoning: r.IntN(50)}}
	if r.IntN(3) == 0 {
		t.Steps = append(t.Steps, llmtest.Step{Reasoning: texts[r.IntN(len(texts))]})
	}
	for range 1 + r.IntN(2) {
		t.Steps = append(t.Steps, llmtest.Step{Text: texts[r.IntN(len(texts))]})
	}
	if n%10 == 9 {
		t.Finish = []string{"length", "filtered"}[r.IntN(2)]
		args = args[1:] // no arguments at all, at the limit, are taken as cut off
	}
	for k := range r.IntN(4) {
		t.Steps = append(t.Steps, llmtest.Step{Call: &llmtest.Call{ID: fmt.Sprintf("call_%d_%d", n, k), Name: []string{"read_file", "exec", "nothing"}[r.IntN(3)], Args: args[r.IntN(len(args))]}})
	}
	return t
}

// TestAnswers asks the same server the same with our client and the SDK's, and
// holds against the SDK what goes back with the results: reasoning, signatures,
// calls as they came.
func TestAnswers(t *testing.T) {
	const n = 200
	r := rand.New(rand.NewPCG(8, 9))
	script := &llmtest.Script{}
	for i := range n {
		one := turn(r, i)
		script.Turns = append(script.Turns, one, one)
	}
	for i := range families {
		f := &families[i]
		t.Run(f.name, func(t *testing.T) {
			server, err := llmtest.Listen(script)
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			p := f.client(&llm.Endpoint{Name: "test", BaseURL: server.URL + f.base, Key: "k", Retries: -1})
			defer p.(interface{ Close() }).Close()
			for k := range n {
				req := &llm.Request{Model: f.models[0], Tools: tools, Messages: []msg.Message{{Role: msg.User, Parts: []msg.Part{msg.TextPart("hi")}}}}
				said, err := f.collect(t.Context(), p, req)
				if err != nil {
					t.Fatalf("turn %d: %v", k, err)
				}
				requests := server.Requests()
				its, err := f.ask(t.Context(), server.URL+f.base, f.models[0], []byte(requests[len(requests)-1].Body))
				if err != nil {
					t.Fatalf("turn %d: the SDK: %v", k, err)
				}
				if diff := cmp.Diff(its, f.understood(t, said)); diff != "" {
					t.Errorf("turn %d (-SDK +ours)\n%s", k, diff)
				}
				m := said.Message()
				req.Messages = append(req.Messages, m)
				for _, c := range m.Calls() {
					req.Messages = append(req.Messages, msg.Message{Role: msg.Tool, Results: []msg.Result{{CallID: c.ID, Parts: []msg.Part{msg.TextPart("done")}}}})
				}
				body := f.hold(t, fmt.Sprint("after turn ", k), req)
				if err := script.Check(f.format, body); err != nil {
					t.Errorf("after turn %d: %v: %s", k, err, body)
				}
			}
			if err := server.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

// collect asks with our client.
func (f *family) collect(ctx context.Context, p llm.Provider, r *llm.Request) (*llm.Turn, error) {
	turn := llm.NewTurn(f.name + "/" + r.Model)
	for e, err := range p.Stream(ctx, r) {
		if err != nil {
			return nil, err
		}
		turn.Add(e)
	}
	return turn, nil
}

// understood is what our client made of an answer.
func (f *family) understood(t *testing.T, turn *llm.Turn) answer {
	t.Helper()
	m := turn.Message()
	a := answer{Text: m.Text(), Usage: turn.Usage, Finish: turn.Finish}
	for _, c := range m.Calls() {
		c := *c
		if f.omits { // and what it leaves is in its own spelling
			var args map[string]any
			if err := json.Unmarshal([]byte(c.Args), &args); err != nil {
				t.Fatal(err)
			}
			again, err := json.Marshal(args)
			if err != nil {
				t.Fatal(err)
			}
			c.Args = string(again)
		}
		a.Calls = append(a.Calls, c)
	}
	return a
}
