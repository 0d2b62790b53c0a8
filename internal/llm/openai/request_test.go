package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/llm"
	"capstan/internal/llm/llmtest"
	"capstan/internal/msg"
)

// request encodes r for a profile and returns its JSON members.
func request(t *testing.T, profile string, r *llm.Request) map[string]json.RawMessage {
	t.Helper()
	if r.Model == "" {
		r.Model = "m"
	}
	if r.Messages == nil {
		r.Messages = said("hi")
	}
	body, _, err := answering(profile, answers{}).encode(r)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]json.RawMessage
	if err := json.Unmarshal(body, &out); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return out
}

// What each endpoint is sent differently, and nothing else.
func TestProfiles(t *testing.T) {
	schema := &llm.OutputSchema{Name: "answer", Schema: json.RawMessage(`{"type":"object"}`)}
	full := func() *llm.Request {
		return &llm.Request{System: "S", MaxTokens: 100, Effort: "high", CacheKey: "k", Output: schema}
	}
	const inWords = `S\n\nAnswer with one JSON object and nothing else. It must follow this JSON Schema:\n{\"type\":\"object\"}`
	const asSchema = `{"json_schema":{"name":"answer","schema":{"type":"object"}},"type":"json_schema"}`
	plain := `[{"role":"system","content":"S"},{"role":"user","content":"hi"}]`
	worded := `[{"role":"system","content":"` + inWords + `"},{"role":"user","content":"hi"}]`
	usage := `{"include_usage":true}`
	tests := map[string]map[string]string{
		"openai":   {"max_completion_tokens": "100", "reasoning_effort": `"high"`, "prompt_cache_key": `"k"`, "response_format": asSchema, "messages": plain, "stream_options": usage},
		"azure":    {"max_completion_tokens": "100", "reasoning_effort": `"high"`, "prompt_cache_key": `"k"`, "response_format": asSchema, "messages": plain, "stream_options": usage},
		"deepseek": {"max_tokens": "100", "reasoning_effort": `"high"`, "response_format": `{"type":"json_object"}`, "messages": worded, "stream_options": usage},
		"mistral":  {"max_tokens": "100", "response_format": asSchema, "messages": plain},
		"openrouter": {"max_tokens": "100", "reasoning": `{"effort":"high"}`, "response_format": asSchema, "stream_options": usage,
			"messages": `[{"role":"system","content":[{"type":"text","text":"S","cache_control":{"type":"ephemeral"}}]},{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}]`},
		"compatible": {"max_tokens": "100", "reasoning_effort": `"high"`, "response_format": asSchema, "messages": plain, "stream_options": usage},
	}
	for profile, want := range tests {
		t.Run(profile, func(t *testing.T) {
			want["model"], want["stream"] = `"m"`, "true"
			got := map[string]string{}
			for k, v := range request(t, profile, full()) {
				got[k] = string(v)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What is cached: the system prompt and the last message of the user or result.
// A provider takes four marks at most, however long the conversation is.
func TestCacheMarks(t *testing.T) {
	history := said("one")
	for _, word := range []string{"two", "three", "four", "five"} {
		history = append(history, msg.Message{Role: msg.Assistant, Parts: []msg.Part{msg.TextPart("so")}}, said(word)[0])
	}
	const mark = `,"cache_control":{"type":"ephemeral"}`
	want := `[{"role":"system","content":[{"type":"text","text":"S"` + mark + `}]},` +
		`{"role":"user","content":"one"},{"role":"assistant","content":"so"},{"role":"user","content":"two"},{"role":"assistant","content":"so"},` +
		`{"role":"user","content":"three"},{"role":"assistant","content":"so"},{"role":"user","content":"four"},{"role":"assistant","content":"so"},` +
		`{"role":"user","content":[{"type":"text","text":"five"` + mark + `}]}]`
	if diff := cmp.Diff(want, string(request(t, "openrouter", &llm.Request{System: "S", CacheKey: "k", Messages: history})["messages"])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestProfileFor(t *testing.T) {
	for base, want := range map[string]string{
		"https://api.openai.com/v1":                              "openai",
		"https://x.openai.azure.com/openai/v1?api-version=1":     "azure",
		"https://openrouter.ai/api/v1":                           "openrouter",
		"https://api.cerebras.ai/v1":                             "cerebras",
		"https://API.DeepSeek.com":                               "deepseek",
		"https://dashscope-intl.aliyuncs.com/compatible-mode/v1": "dashscope",
		"http://127.0.0.1:11434/v1":                              "compatible",
		"https://evil-api.openai.com.example/v1":                 "compatible",
		"https://notopenrouter.ai/v1":                            "compatible",
		"":                                                       "compatible",
		":":                                                      "compatible",
	} {
		if got := Profiles().For(base).Name; got != want {
			t.Errorf("%s is %s, want %s", base, got, want)
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
}

// Every profile is sent the same system prompt and the same tools, in the order
// and with the words that it is given, exec like any other function. Strictness
// is never asked for, so properties may be optional. S0-199, S0-201, BUG-PC-01,
// BUG-SC-11
func TestDeclarations(t *testing.T) {
	exec := msg.Declaration{Name: "exec", Description: "Run a <program> & more.", Parameters: json.RawMessage(`{"type":"object","properties":{"source":{"type":"string"},"description":{"type":"string"}},"required":["source"]}`)}
	const want = `[{"type":"function","function":{"name":"exec","description":"Run a <program> & more.","parameters":{"type":"object","properties":{"source":{"type":"string"},"description":{"type":"string"}},"required":["source"]}}},` +
		`{"type":"function","function":{"name":"read_file","description":"Read.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}},` +
		`{"type":"function","function":{"name":"bare","parameters":{"type":"object","properties":{}}}},{"type":"web_search"}]`
	for _, profile := range Profiles().Names() {
		for range 20 {
			got := request(t, profile, &llm.Request{System: "S", Tools: []msg.Declaration{exec, readFile, {Name: "bare"}}, Hosted: []json.RawMessage{json.RawMessage(`{"type":"web_search"}`)}, Choice: llm.ChoiceNone})
			if diff := cmp.Diff(want, string(got["tools"])); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", profile, diff)
			}
			if string(got["tool_choice"]) != `"none"` || !strings.HasPrefix(string(got["messages"]), `[{"role":"system","content":"S"},`) {
				t.Fatalf("%s: %s", profile, got)
			}
		}
	}
	got := request(t, "openai", &llm.Request{Choice: llm.ChoiceNone})
	if got["tools"] != nil || got["tool_choice"] != nil {
		t.Errorf("without tools: %s", got)
	}
}

// withPixel puts the picture of the tests into what is written of it.
func withPixel(s string) string {
	size := fmt.Sprintf("image/png, %d B", len(llmtest.Pixel))
	return strings.NewReplacer("cG5n", base64.StdEncoding.EncodeToString(llmtest.Pixel), "image/png, 3 B", size).Replace(s)
}

// Media goes where the API takes it, else one line stands for it.
func TestMedia(t *testing.T) {
	png := msg.Part{Kind: msg.Image, MIMEType: "image/png", Data: llmtest.Pixel, Name: "a.png"}
	tiff := msg.Part{Kind: msg.Image, MIMEType: "image/tiff", Data: []byte("tiff")}
	wav := msg.Part{Kind: msg.Audio, MIMEType: "audio/wav", Data: []byte("wav")}
	pdf := msg.Part{Kind: msg.File, MIMEType: "application/pdf", Data: []byte("pdf")}
	history := []msg.Message{
		{Role: msg.User, Parts: []msg.Part{msg.TextPart("see"), png, tiff, wav, pdf}},
		{Role: msg.Assistant, Parts: []msg.Part{{Kind: msg.CallPart, Call: &msg.Call{ID: "abcdefghi", Name: "shot", Args: "{}"}}}},
		{Role: msg.Tool, Results: []msg.Result{{CallID: "abcdefghi", Parts: []msg.Part{msg.TextPart("taken"), png}}}},
	}
	const image = `{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}`
	const (
		lineTIFF = `{"type":"text","text":"[image image/tiff, 4 B; this model's API cannot take it]"}`
		call     = `,{"role":"assistant","content":null,"tool_calls":[{"id":"abcdefghi","type":"function","function":{"name":"shot","arguments":"{}"}}]}`
		result   = `,{"role":"tool","content":"taken\n[1 media: see the next message of the user]","tool_call_id":"abcdefghi"}`
		shown    = `{"role":"user","content":[{"type":"text","text":"Media of the result of shot (call abcdefghi):"},` + image + `]}`
	)
	for profile, want := range map[string]string{
		"openai": `[{"role":"user","content":[{"type":"text","text":"see"},` + image + `,` + lineTIFF +
			`,{"type":"input_audio","input_audio":{"data":"d2F2","format":"wav"}},{"type":"file","file":{"filename":"document.pdf","file_data":"data:application/pdf;base64,cGRm"}}]}` +
			call + result + `,` + shown + `]`,
		"mistral": `[{"role":"user","content":[{"type":"text","text":"see"},` + image + `,` + lineTIFF +
			`,{"type":"text","text":"[audio audio/wav, 3 B; this model's API cannot take it]"},{"type":"text","text":"[file application/pdf, 3 B; this model's API cannot take it]"}]}` +
			call + result + `,{"role":"assistant","content":"I have the results."},` + shown + `]`,
		"deepseek": `[{"role":"user","content":"see\n\n[image image/png, 3 B, a.png; this model's API cannot take it]\n\n[image image/tiff, 4 B; this model's API cannot take it]\n\n[audio audio/wav, 3 B; this model's API cannot take it]\n\n[file application/pdf, 3 B; this model's API cannot take it]"}` +
			strings.Replace(call, `"content":null`, `"content":null,"reasoning_content":""`, 1) +
			`,{"role":"tool","content":"taken\n[image image/png, 3 B, a.png; this model's API cannot take it]","tool_call_id":"abcdefghi"}]`,
	} {
		got := request(t, profile, &llm.Request{Messages: history, Tools: []msg.Declaration{readFile}})
		if diff := cmp.Diff(withPixel(want), string(got["messages"])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", profile, diff)
		}
	}
}

// Media of a result stand before the answer to it, and without tools there are no
// calls: servers that pass a request on to others refuse them. BUG-CP-18
func TestOrder(t *testing.T) {
	png := msg.Part{Kind: msg.Image, MIMEType: "image/png", Data: llmtest.Pixel}
	history := append(said("hi"),
		msg.Message{Role: msg.Assistant, Parts: []msg.Part{{Kind: msg.CallPart, Call: &msg.Call{ID: "c1", Name: "shot", Args: "{}"}}}},
		msg.Message{Role: msg.Tool, Results: []msg.Result{{CallID: "c1", Parts: []msg.Part{png}}}},
		msg.Message{Role: msg.Assistant, Parts: []msg.Part{msg.TextPart("Nice.")}}, said("well?")[0])
	got := string(request(t, "openai", &llm.Request{Messages: history, Tools: []msg.Declaration{readFile}})["messages"])
	if image, answer := strings.Index(got, "image_url"), strings.Index(got, "Nice."); image < 0 || image > answer {
		t.Errorf("the picture does not stand before the answer: %s", got)
	}
	if got := string(request(t, "openai", &llm.Request{Messages: history})["messages"]); strings.Contains(got, "tool_call") || !strings.Contains(got, "[Called shot with {}]") {
		t.Errorf("calls without tools: %s", got)
	}
}

// Reasoning goes back in the field that the endpoint wants, only to the model
// that wrote it.
func TestReasoningGoesBack(t *testing.T) {
	details := json.RawMessage(`[{"type":"reasoning.text","text":"R"}]`)
	history := func(origin string) []msg.Message {
		return append(said("hi"),
			msg.Message{Role: msg.Assistant, Origin: origin, Parts: []msg.Part{{Kind: msg.Reasoning, Text: "R", State: details}, {Kind: msg.CallPart, Call: &msg.Call{ID: "abcdefghi", Name: "read_file", Args: "{}"}}}},
			msg.Message{Role: msg.Tool, Results: []msg.Result{{CallID: "abcdefghi", Parts: []msg.Part{msg.TextPart("A")}}}})
	}
	for _, tt := range []struct{ profile, origin, want string }{
		{"openai", "openai/m", ""},
		{"deepseek", "openai/m", `,"reasoning_content":"R"`},
		{"deepseek", "openai/other", `,"reasoning_content":""`},
		{"cerebras", "openai/m", `,"reasoning":"R"`},
		{"cerebras", "openai/other", ""},
		{"moonshot", "openai/m", `,"reasoning_content":"R"`},
		{"moonshot", "anthropic/m", ""},
		{"openrouter", "openai/m", `,"reasoning_details":[{"type":"reasoning.text","text":"R"}]`},
		{"openrouter", "openai/other", ""},
	} {
		got := request(t, tt.profile, &llm.Request{Messages: history(tt.origin), Tools: []msg.Declaration{readFile}})
		want := `{"role":"assistant","content":null` + tt.want + `,"tool_calls"`
		if !strings.Contains(string(got["messages"]), want) {
			t.Errorf("%s, written by %s: want %s in %s", tt.profile, tt.origin, want, got["messages"])
		}
	}
}

// The key goes into the header that the endpoint reads, and nowhere without one.
func TestKey(t *testing.T) {
	for _, tt := range []struct{ profile, key, header, want string }{
		{"openai", "k", "Authorization", "Bearer k"},
		{"azure", "k", "Api-Key", "k"},
		{"azure", "k", "Authorization", ""},
		{"compatible", "", "Authorization", ""},
	} {
		c := answering(tt.profile, answers{})
		c.endpoint.Key = tt.key
		if got := c.header().Get(tt.header); got != tt.want {
			t.Errorf("%s: %s is %q, want %q", tt.profile, tt.header, got, tt.want)
		}
	}
}

// A model that names a tool it was not told of is passed on as it is; whoever
// runs calls refuses it. S2-006
func TestUnadvertisedName(t *testing.T) {
	c, _ := serve(t, "-- 1 --\nwantnot secret_tool\ncall secret_tool {\"a\":1}\n")
	turn, err := ask(t.Context(), c, &llm.Request{Model: "m", Messages: said("hi"), Tools: []msg.Declaration{readFile}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]msg.Call{{ID: "call_1_1", Name: "secret_tool", Args: `{"a":1}`}}, madeCalls(turn)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An endpoint that refuses long descriptions is asked again with them cut, at
// once, and from then on gets them so: the same bytes every time. The whole text
// is in the system prompt, and the tools keep their order.
func TestLongDescriptions(t *testing.T) {
	long := strings.Repeat("Say <what> it does.\n", 60)
	c, server := serve(t, "-- server --\ndescriptions 1024\n-- 1 --\nwant Tools, in full:\ntext one\n-- 2 --\ntext two\n")
	r := &llm.Request{Model: "m", System: "S", Messages: said("hi"), Tools: []msg.Declaration{readFile, {Name: "long_one", Description: long}}}
	for _, want := range []string{"one", "two"} {
		turn, err := ask(t.Context(), c, r)
		if m := turn.Message(); err != nil || m.Text() != want {
			t.Fatalf("%q, %v", m.Text(), err)
		}
	}
	asked := server.Requests()
	if len(asked) != 3 || asked[1].Body != asked[2].Body {
		t.Fatalf("%d requests, want 3 of which the last two are the same", len(asked))
	}
	var read struct {
		Messages []struct{ Content string }
		Tools    []struct{ Function struct{ Description string } }
	}
	if err := json.Unmarshal([]byte(asked[1].Body), &read); err != nil {
		t.Fatal(err)
	}
	got := []string{read.Messages[0].Content, read.Tools[0].Function.Description, read.Tools[1].Function.Description}
	want := []string{"S\n\nTools, in full:\n\nlong_one:\n" + strings.TrimSpace(long), "Read.", strings.TrimSpace(long[:49*20]) + "\n(Cut. In full in the system prompt.)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// OpenAI is sent no more tools than it takes; servers that have no such limit get
// them all.
func TestManyTools(t *testing.T) {
	search := json.RawMessage(`{"type":"web_search"}`)
	for _, profile := range []string{"openai", "azure"} {
		r := &llm.Request{Model: "m", Messages: said("hi"), Tools: []msg.Declaration{readFile}, Hosted: slices.Repeat([]json.RawMessage{search}, 128)}
		if _, err := ask(t.Context(), answering(profile, answers{Body: strings.NewReader("")}), r); err == nil || !strings.Contains(err.Error(), "129 tools") {
			t.Errorf("%s: %v", profile, err)
		}
		r.Hosted = r.Hosted[1:]
		request(t, profile, r)
	}
	request(t, "compatible", &llm.Request{Hosted: slices.Repeat([]json.RawMessage{search}, 300)})
}
