package responses

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
func request(t *testing.T, profile string, r *llm.Request) map[string]string {
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
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	out := map[string]string{}
	for k, v := range members {
		out[k] = string(v)
	}
	return out
}

// What each endpoint is sent differently, and nothing else.
func TestProfiles(t *testing.T) {
	half := 0.5
	full := func() *llm.Request {
		return &llm.Request{System: "S", MaxTokens: 5, Effort: "high", CacheKey: "k", Temperature: &half, TopP: &half, Stop: []string{"x"},
			Output: &llm.OutputSchema{Name: "answer", Schema: json.RawMessage(`{"type":"object"}`)}}
	}
	const encrypted = `["reasoning.encrypted_content"]`
	const summarised = `{"effort":"high","summary":"auto"}`
	tests := map[string]map[string]string{
		"openai":     {"reasoning": summarised, "prompt_cache_key": `"k"`, "include": encrypted},
		"azure":      {"reasoning": summarised, "prompt_cache_key": `"k"`, "include": encrypted},
		"openrouter": {"reasoning": `{"effort":"high"}`, "prompt_cache_key": `"k"`, "include": encrypted},
		"xai":        {"reasoning": `{"effort":"high"}`, "prompt_cache_key": `"k"`, "include": encrypted},
		"compatible": {"reasoning": `{"effort":"high"}`},
	}
	for _, profile := range Profiles().Names() {
		t.Run(profile, func(t *testing.T) {
			want := tests[profile]
			for k, v := range map[string]string{"model": `"m"`, "stream": "true", "store": "false", "instructions": `"S"`, "max_output_tokens": "16", "temperature": "0.5", "top_p": "0.5",
				"text":  `{"format":{"type":"json_schema","name":"answer","schema":{"type":"object"}}}`,
				"input": `[{"type":"message","role":"user","content":"hi"}]`} {
				want[k] = v
			}
			if diff := cmp.Diff(want, request(t, profile, full())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestProfileFor(t *testing.T) {
	for base, want := range map[string]string{
		"https://api.openai.com/v1":                "openai",
		"https://x.openai.azure.com/openai/v1":     "azure",
		"https://openrouter.ai/api/v1":             "openrouter",
		"https://API.X.ai/v1":                      "xai",
		"http://127.0.0.1:11434/v1":                "compatible",
		"https://evil-api.openai.com.example/v1":   "compatible",
		"":                                         "compatible",
		"https://openai.azure.com.evil.example/v1": "compatible",
	} {
		if got := Profiles().For(base).Name; got != want {
			t.Errorf("%s is %s, want %s", base, got, want)
		}
	}
	if _, ok := Profiles().Named("nope"); ok {
		t.Error("there is a profile that is not in the table")
	}
}

// The tools are in the order and with the words that they are given, exec like
// any other function, none of them strict; those of the provider come last.
// S0-199, S0-201, BUG-PC-01, BUG-CM-10
func TestDeclarations(t *testing.T) {
	exec := msg.Declaration{Name: "exec", Description: "Run a <program> & more.", Parameters: json.RawMessage(`{"type":"object","properties":{"source":{"type":"string"},"description":{"type":"string"}},"required":["source"]}`)}
	const want = `[{"type":"function","name":"exec","description":"Run a <program> & more.","parameters":{"type":"object","properties":{"source":{"type":"string"},"description":{"type":"string"}},"required":["source"]},"strict":false},` +
		`{"type":"function","name":"read_file","description":"Read.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]},"strict":false},` +
		`{"type":"function","name":"bare","parameters":{"type":"object","properties":{}},"strict":false},{"type":"web_search"}]`
	for _, profile := range Profiles().Names() {
		for range 20 {
			got := request(t, profile, &llm.Request{System: "S", Tools: []msg.Declaration{exec, readFile, {Name: "bare"}}, Hosted: []json.RawMessage{json.RawMessage(`{"type":"web_search"}`)}, Choice: llm.ChoiceNone})
			if diff := cmp.Diff(want, got["tools"]); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", profile, diff)
			}
			if got["tool_choice"] != `"none"` || got["instructions"] != `"S"` {
				t.Fatalf("%s: %s", profile, got)
			}
		}
	}
	got := request(t, "openai", &llm.Request{Choice: llm.ChoiceNone})
	if got["tools"] != "" || got["tool_choice"] != "" {
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
	tiff := msg.Part{Kind: msg.Image, MIMEType: "image/tiff", Data: []byte("tiff"), Text: "caption"}
	wav := msg.Part{Kind: msg.Audio, MIMEType: "audio/wav", Data: []byte("wav")}
	pdf := msg.Part{Kind: msg.File, MIMEType: "application/pdf", Data: []byte("pdf"), Text: "a paper"}
	history := []msg.Message{
		{Role: msg.User, Parts: []msg.Part{msg.TextPart("see"), png, tiff, wav, pdf}},
		{Role: msg.Assistant, Parts: []msg.Part{png, {Kind: msg.CallPart, Call: &msg.Call{ID: "c1", Name: "shot", Args: "{}"}}}},
		{Role: msg.Tool, Results: []msg.Result{{CallID: "c1", Parts: []msg.Part{msg.TextPart("taken"), png}}}},
	}
	const (
		image    = `{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,cG5n"}`
		lineTIFF = `{"type":"input_text","text":"[image image/tiff, 4 B; this model's API cannot take it] caption"}`
		lineWAV  = `{"type":"input_text","text":"[audio audio/wav, 3 B; this model's API cannot take it]"}`
		see      = `[{"type":"message","role":"user","content":[{"type":"input_text","text":"see"},` + image + `,` + lineTIFF + `,` + lineWAV + `,`
		file     = `{"type":"input_text","text":"a paper"},{"type":"input_file","filename":"document.pdf","file_data":"data:application/pdf;base64,cGRm"}]}`
		call     = `,{"type":"message","role":"assistant","content":"[image image/png, 3 B, a.png; this model's API cannot take it]"},{"type":"function_call","call_id":"c1","name":"shot","arguments":"{}"}`
		later    = `,{"type":"function_call_output","call_id":"c1","output":"taken\n[1 media: see the next message of the user]"},` +
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"Media of the result of shot (call c1):"},` + image + `]}]`
	)
	for profile, want := range map[string]string{
		"openai":     see + file + call + `,{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"taken"},` + image + `]}]`,
		"openrouter": see + file + call + later,
		"compatible": see + `{"type":"input_text","text":"[file application/pdf, 3 B; this model's API cannot take it] a paper"}]}` + call + later,
	} {
		got := request(t, profile, &llm.Request{Messages: history, Tools: []msg.Declaration{readFile}})
		if diff := cmp.Diff(withPixel(want), got["input"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", profile, diff)
		}
	}
}

// Media of a result stands before what comes next, whoever says it.
func TestMediaBeforeUser(t *testing.T) {
	png := msg.Part{Kind: msg.Image, MIMEType: "image/png", Data: llmtest.Pixel}
	history := append(said("hi"),
		msg.Message{Role: msg.Assistant, Parts: []msg.Part{{Kind: msg.CallPart, Call: &msg.Call{ID: "c1", Name: "shot", Args: "{}"}}}},
		msg.Message{Role: msg.Tool, Results: []msg.Result{{CallID: "c1", Parts: []msg.Part{png}}}}, said("well?")[0])
	got := request(t, "compatible", &llm.Request{Messages: history, Tools: []msg.Declaration{readFile}})
	want := `{"type":"function_call_output","call_id":"c1","output":"[1 media: see the next message of the user]"},{"type":"message","role":"user","content":[` +
		`{"type":"input_text","text":"Media of the result of shot (call c1):"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,cG5n"},{"type":"input_text","text":"well?"}]}]`
	if !strings.HasSuffix(got["input"], withPixel(want)) {
		t.Errorf("got %s\nwant %s at the end", got["input"], want)
	}
	history[3] = msg.Message{Role: msg.Assistant, Parts: []msg.Part{msg.TextPart("Nice.")}}
	got = request(t, "compatible", &llm.Request{Messages: append(history, said("well?")...), Tools: []msg.Declaration{readFile}})
	want = `"image_url":"data:image/png;base64,cG5n"}]},{"type":"message","role":"assistant","content":"Nice."},{"type":"message","role":"user","content":"well?"}]`
	if !strings.HasSuffix(got["input"], withPixel(want)) {
		t.Errorf("got %s\nwant %s at the end", got["input"], want)
	}
}

// A request that declares no tools has no calls: they become text. BUG-CP-18
func TestCallsWithoutTools(t *testing.T) {
	history := append(said("go"),
		msg.Message{Role: msg.Assistant, Parts: []msg.Part{{Kind: msg.CallPart, Call: &msg.Call{ID: "c1", Name: "read_file", Args: `{"path":"a"}`}}}},
		msg.Message{Role: msg.Tool, Results: []msg.Result{{CallID: "c1", Status: "success", Parts: []msg.Part{msg.TextPart("A")}}}})
	want := `[{"type":"message","role":"user","content":"go"},{"type":"message","role":"assistant","content":"[Called read_file with {\"path\":\"a\"}]"},` +
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"[Result of read_file: success]"},{"type":"input_text","text":"A"}]}]`
	if got := request(t, "openai", &llm.Request{Messages: history})["input"]; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Reasoning goes back only to the model that wrote it, in a form that the
// endpoint takes; so do searches and what a text was meant as. BUG-CP-05
func TestStateGoesBack(t *testing.T) {
	const (
		sealed = `{"type":"reasoning","encrypted_content":"E","summary":[]}`
		open   = `{"type":"reasoning","content":[{"type":"reasoning_text","text":"R"}],"summary":[]}`
		void   = `{"type":"reasoning","encrypted_content":"","summary":[]}`
		search = `{"type":"web_search_call","status":"completed"}`
		item   = `{"type":"function_call","call_id":"c1","name":"read_file","arguments":"{}"}`
		spoken = `{"type":"message","role":"assistant","phase":"commentary","content":"T"}`
		plain  = `{"type":"message","role":"assistant","content":"T"}`
	)
	history := func(origin, state string) []msg.Message {
		return append(said("hi"), msg.Message{Role: msg.Assistant, Origin: origin, Parts: []msg.Part{
			{Kind: msg.Reasoning, Text: "R", State: json.RawMessage(state)}, {Kind: msg.Text, Text: "T", State: json.RawMessage(`{"phase":"commentary"}`)},
			{Kind: msg.CallPart, Call: &msg.Call{ID: "c1", Name: "read_file", Args: "{}"}}}}, results("c1", "A"))
	}
	for _, tt := range []struct{ profile, origin, state, want string }{
		{"openai", "responses/m", sealed, sealed + "," + spoken},
		{"openai", "responses/m", search, search + "," + spoken},
		{"openai", "responses/m", open, spoken},
		{"openai", "responses/m", void, spoken},
		{"openai", "responses/m", `{"opaque":true}`, spoken},
		{"openai", "responses/other", sealed, plain},
		{"openai", "openai/m", sealed, plain},
		{"compatible", "responses/m", open, open + "," + spoken},
		{"compatible", "responses/other", open, plain},
	} {
		got := request(t, tt.profile, &llm.Request{Messages: history(tt.origin, tt.state), Tools: []msg.Declaration{readFile}})
		want := `[{"type":"message","role":"user","content":"hi"},` + tt.want + `,` + item + `,{"type":"function_call_output","call_id":"c1","output":"A"}]`
		if diff := cmp.Diff(want, got["input"]); diff != "" {
			t.Errorf("%s, written by %s: %s (-want +got):\n%s", tt.profile, tt.origin, tt.state, diff)
		}
	}
}

// Each text that has a phase is a message of its own; reasoning that led to
// nothing is not sent.
func TestMessagesApart(t *testing.T) {
	text := func(s, phase string) msg.Part {
		p := msg.TextPart(s)
		if phase != "" {
			p.State = json.RawMessage(`{"phase":"` + phase + `"}`)
		}
		return p
	}
	thought := msg.Part{Kind: msg.Reasoning, State: json.RawMessage(`{"type":"reasoning","encrypted_content":"E","summary":[]}`)}
	history := append(said("hi"), msg.Message{Role: msg.Assistant, Origin: "responses/m", Parts: []msg.Part{text("A", "commentary"), text("B", ""), text("C", ""), text("D", "final_answer"), thought, text("", "commentary")}}, said("on")[0])
	got := request(t, "openai", &llm.Request{Messages: history, Tools: []msg.Declaration{readFile}})
	want := `[{"type":"message","role":"user","content":"hi"},{"type":"message","role":"assistant","phase":"commentary","content":"A"},{"type":"message","role":"assistant","content":"B\nC"},` +
		`{"type":"message","role":"assistant","phase":"final_answer","content":"D"},{"type":"message","role":"user","content":"on"}]`
	if diff := cmp.Diff(want, got["input"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The limits of the API that a request cannot know.
func TestLimits(t *testing.T) {
	got := request(t, "openai", &llm.Request{CacheKey: strings.Repeat("k", 65), MaxTokens: 1000})
	if len(got["prompt_cache_key"]) != 64+2 || got["max_output_tokens"] != "1000" {
		t.Errorf("got %s", got)
	}
	if again := request(t, "openai", &llm.Request{CacheKey: strings.Repeat("k", 66)}); again["prompt_cache_key"] == got["prompt_cache_key"] {
		t.Error("two keys became one")
	}
}

// Stop sequences do not exist here, and that is said once.
func TestStop(t *testing.T) {
	c, _ := serve(t, "openai", "-- 1 --\nwantnot STOP\ntext one\n-- 2 --\ntext two\n")
	for i, want := range []int{1, 0} {
		turn, err := ask(t.Context(), c, &llm.Request{Model: "m", Messages: said("hi"), Stop: []string{"STOP"}})
		if err != nil || len(turn.Warnings) != want {
			t.Errorf("request %d: %v, warnings %q", i, err, turn.Warnings)
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
		if got := c.endpoint.Bearer(c.profile.KeyHeader).Get(tt.header); got != tt.want {
			t.Errorf("%s: %s is %q, want %q", tt.profile, tt.header, got, tt.want)
		}
	}
}

// A model that names a tool it was not told of is passed on as it is; whoever
// runs calls refuses it. S2-006
func TestUnadvertisedName(t *testing.T) {
	c, _ := serve(t, "openai", "-- 1 --\nwantnot secret_tool\ncall secret_tool {\"a\":1}\n")
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
	c, server := serve(t, "compatible", "-- server --\ndescriptions 1024\n-- 1 --\nwant Tools, in full:\ntext one\n-- 2 --\ntext two\n")
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
		Instructions string
		Tools        []struct{ Description string }
	}
	if err := json.Unmarshal([]byte(asked[1].Body), &read); err != nil {
		t.Fatal(err)
	}
	got := []string{read.Instructions, read.Tools[0].Description, read.Tools[1].Description}
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
