package anthropic

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/llm"
	"capstan/internal/llm/familytest"
	"capstan/internal/llm/llmtest"
	"capstan/internal/msg"
)

// request encodes r and returns its JSON members. The API takes it.
func request(t *testing.T, r *llm.Request) map[string]string {
	t.Helper()
	if r.Model == "" {
		r.Model = claude
	}
	if r.Messages == nil {
		r.Messages = said("hi")
	}
	e, err := answering(answers{}).encode(r, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := (&llmtest.Script{}).Check("anthropic", e.body); err != nil && modelFor(r.Model).claude {
		t.Errorf("%v: %s", err, e.body)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(e.body, &raw); err != nil {
		t.Fatalf("%v: %s", err, e.body)
	}
	out := map[string]string{}
	for k, v := range raw {
		out[k] = string(v)
	}
	if e.beta != "" {
		out["beta"] = e.beta
	}
	if e.warnings != nil {
		out["warnings"] = strings.Join(e.warnings, "\n")
	}
	return out
}

// exec is declared like any other tool, with the words and in the order that
// it is given, each time with the same bytes; nothing is added to the prompt.
// S0-200, S0-201, BUG-PC-01
func TestDeclarations(t *testing.T) {
	exec := msg.Declaration{Name: "exec", Description: "Run a <program> & more.", Parameters: json.RawMessage(`{"type":"object","properties":{"source":{"type":"string"},"description":{"type":"string"}},"required":["source"]}`)}
	const want = `[{"name":"exec","description":"Run a <program> & more.","input_schema":{"type":"object","properties":{"source":{"type":"string"},"description":{"type":"string"}},"required":["source"]}},` +
		`{"name":"read_file","description":"Read.","input_schema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}},` +
		`{"name":"bare","input_schema":{"type":"object","properties":{}}},{"type":"web_search_20250305","name":"web_search"}]`
	for range 20 {
		got := request(t, &llm.Request{System: "S", Tools: []msg.Declaration{exec, readFile, {Name: "bare"}}, Hosted: []json.RawMessage{webSearch}, Choice: llm.ChoiceNone})
		delete(got, "messages")
		if diff := cmp.Diff(map[string]string{"model": `"` + claude + `"`, "max_tokens": "32000", "system": `[{"type":"text","text":"S"}]`, "tools": want, "tool_choice": `{"type":"none"}`, "stream": "true"}, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
	if got := request(t, &llm.Request{Tools: []msg.Declaration{exec}, Choice: llm.ChoiceRequired}); got["tool_choice"] != `{"type":"any"}` {
		t.Errorf("required: %v", got)
	}
	if got := request(t, &llm.Request{System: " \n", Choice: llm.ChoiceNone}); got["tools"]+got["tool_choice"]+got["system"] != "" {
		t.Errorf("without tools: %v", got)
	}
	// A schema with conditions at its root is sent without them, never left out. BUG-SC-08
	conditional := msg.Declaration{Name: "big", Parameters: json.RawMessage(`{"type":"object","properties":{"mode":{"type":"string"},"size":{"type":"integer"}},"allOf":[{"if":{"properties":{"mode":{"const":"big"}}},"then":{"required":["size"]}}]}`)}
	if got := request(t, &llm.Request{Tools: []msg.Declaration{conditional}})["tools"]; !strings.Contains(got, `"name":"big"`) || !strings.Contains(got, `"size":{"type":"integer"}`) {
		t.Errorf("conditional: %s", got)
	}
}

// How each model is asked to think, and how many tokens an answer may have.
func TestThinking(t *testing.T) {
	const (
		adaptive  = `{"type":"adaptive"}`
		shown     = `{"type":"adaptive","display":"summarized"}`
		beta      = interleaved
		unadapted = `{"type":"disabled"}`
	)
	enabled := func(n int) string { return fmt.Sprintf(`{"type":"enabled","budget_tokens":%d}`, n) }
	tests := []struct {
		model, effort                          string
		tokens                                 int
		maxTokens, thinking, outputConfig, hdr string
	}{
		{"claude-opus-5-5", "", 0, "32000", "", "", ""},
		{"claude-opus-5-5", "none", 0, "32000", unadapted, "", ""},
		{"claude-opus-5-5", "minimal", 0, "32000", "", `{"effort":"low"}`, ""},
		{"claude-opus-5-5", "high", 0, "32000", shown, `{"effort":"high"}`, ""},
		{"claude-opus-5-5", "max", 0, "64000", shown, `{"effort":"max"}`, ""},
		{"claude-opus-5-5", "xhigh", 500, "500", shown, `{"effort":"xhigh"}`, ""},
		{"us.anthropic.claude-opus-4-8-v1:0", "xhigh", 0, "64000", shown, `{"effort":"xhigh"}`, ""},
		{"claude-fable-5-1", "none", 0, "32000", "", "", ""},
		{"claude-fable-5-1", "low", 0, "32000", shown, `{"effort":"low"}`, ""},
		{"anthropic/claude-sonnet-4-6", "xhigh", 0, "64000", adaptive, `{"effort":"high"}`, ""},
		{"claude-opus-4-6", "max", 0, "64000", adaptive, `{"effort":"max"}`, ""},
		{"claude-opus-4-5-20251101", "max", 0, "64000", enabled(40000), `{"effort":"high"}`, beta},
		{"claude-haiku-4-5", "low", 0, "32000", enabled(4096), "", beta},
		{"claude-haiku-4-5", "none", 0, "32000", "", "", ""},
		{"claude-haiku-4-5", "minimal", 0, "32000", "", "", ""},
		{"claude-sonnet-4-20250514", "medium", 0, "32000", enabled(10000), "", beta},
		{"claude-opus-4-1", "max", 0, "32000", enabled(21333), "", beta},
		{"claude-3-7-sonnet", "high", 3000, "3000", enabled(2000), "", beta},
		{"claude-3-7-sonnet", "high", 1500, "1500", "", "", ""},
		{"claude-3-5-haiku", "high", 0, "8192", "", "", ""},
		{"claude-3-haiku", "high", 0, "4096", "", "", ""},
		{"qwen3", "high", 0, "8192", enabled(5461), "", ""},
		{"qwen3", "none", 0, "8192", unadapted, "", ""},
	}
	for _, tt := range tests {
		got := request(t, &llm.Request{Model: tt.model, Effort: tt.effort, MaxTokens: tt.tokens, Tools: []msg.Declaration{readFile}})
		want := map[string]string{"max_tokens": tt.maxTokens, "thinking": tt.thinking, "output_config": tt.outputConfig, "beta": tt.hdr}
		for k, v := range want {
			if got[k] != v {
				t.Errorf("%s, effort %q: %s is %s, want %s", tt.model, tt.effort, k, got[k], v)
			}
		}
	}
	if got := modelFor("claude-opus-5-5").effort("silly"); got != "silly" {
		t.Errorf("a word that nobody knows became %q", got)
	}
	// A budget excludes a forced call, and results for an answer without thinking.
	old := "claude-haiku-4-5"
	thought := msg.Message{Role: msg.Assistant, Origin: Family + "/" + old, Parts: []msg.Part{{Kind: msg.Reasoning, Text: "T", State: encodeRaw(state{Signature: llmtest.Signature("T")})}, call("a", "read_file", "{}")}}
	for name, tt := range map[string]struct {
		r      *llm.Request
		thinks bool
	}{
		"forced":       {&llm.Request{Choice: llm.ChoiceRequired}, false},
		"another's":    {&llm.Request{Messages: append(said("hi"), answer(call("a", "read_file", "{}")), results(result("a", "A")))}, false},
		"its own":      {&llm.Request{Messages: append(said("hi"), thought, results(result("a", "A")))}, true},
		"long ago":     {&llm.Request{Messages: append(said("hi"), answer(call("a", "read_file", "{}")), results(result("a", "A")), answer(msg.TextPart("x")), said("y")[0])}, true},
		"its own, two": {&llm.Request{Messages: append(said("hi"), answer(call("a", "read_file", "{}")), results(result("a", "A")), thought, results(result("a", "A")))}, true},
	} {
		tt.r.Model, tt.r.Effort, tt.r.Tools = old, "high", []msg.Declaration{readFile}
		if got := request(t, tt.r); (got["thinking"] != "") != tt.thinks {
			t.Errorf("%s: thinking %q", name, got["thinking"])
		}
	}
}

// Temperature goes where it is taken, and where it is not a person is told.
func TestSampling(t *testing.T) {
	half := 0.5
	for _, tt := range []struct{ model, effort, want, warns string }{
		{"claude-opus-5-5", "", "", "claude-opus-5-5 does not take them"},
		{"claude-sonnet-4-6", "", "0.5", ""},
		{"claude-sonnet-4-6", "high", "", "while it thinks"},
		{"claude-haiku-4-5", "none", "0.5", ""},
		{"qwen3", "high", "0.5", ""},
	} {
		got := request(t, &llm.Request{Model: tt.model, Effort: tt.effort, Temperature: &half, TopP: &half, Stop: []string{"END"}})
		if got["temperature"] != tt.want || got["top_p"] != tt.want || got["stop_sequences"] != `["END"]` || (got["warnings"] == "") != (tt.warns == "") || !strings.Contains(got["warnings"], tt.warns) {
			t.Errorf("%s %s: %v", tt.model, tt.effort, got)
		}
	}
	c := New(&llm.Endpoint{Name: "test", Retries: -1, BaseURL: "https://api.anthropic.com", Transport: familytest.Repeating(speech("end_turn", "x"))}, nil)
	var warned []string
	for range 2 {
		turn, err := ask(t.Context(), c, &llm.Request{Model: claude, Messages: said("hi"), Temperature: &half})
		if err != nil {
			t.Fatal(err)
		}
		warned = append(warned, turn.Warnings...)
	}
	if len(warned) != 1 {
		t.Errorf("warned %q, want once", warned)
	}
}

// What is cached: tools, system prompt, and the last two messages of the user,
// so that the end of the request before is one of the marks.
func TestCacheMarks(t *testing.T) {
	history := append(said("one"), answer(msg.TextPart("1")), said("two")[0], answer(call("a", "read_file", "{}")), results(result("a", "A")))
	got := request(t, &llm.Request{System: "S", Tools: []msg.Declaration{readFile, shell}, Hosted: []json.RawMessage{webSearch}, Messages: history, CacheKey: "k"})
	const mark = `"cache_control":{"type":"ephemeral"}`
	want := map[string]string{
		"system":   `[{"type":"text","text":"S",` + mark + `}]`,
		"messages": `[{"role":"user","content":[{"type":"text","text":"one"}]},{"role":"assistant","content":[{"type":"text","text":"1"}]},{"role":"user","content":[{"type":"text","text":"two",` + mark + `}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"read_file","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"A",` + mark + `}]}]`,
		"tools":    `[{"name":"read_file","description":"Read.","input_schema":` + string(readFile.Parameters) + `},{"name":"shell","input_schema":` + string(shell.Parameters) + `,` + mark + `},` + string(webSearch) + `]`,
	}
	for k, v := range want {
		if diff := cmp.Diff(v, got[k]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", k, diff)
		}
	}
	for _, v := range request(t, &llm.Request{System: "S", Tools: []msg.Declaration{readFile}, Messages: history}) {
		if strings.Contains(v, "cache_control") {
			t.Errorf("marked without a key: %s", v)
		}
	}
	// A longer history begins with the same bytes, but for the marks.
	bare := func(m []msg.Message) string {
		s := request(t, &llm.Request{Tools: []msg.Declaration{readFile}, Messages: m, CacheKey: "k"})["messages"]
		return strings.TrimSuffix(strings.ReplaceAll(s, ","+mark, ""), "]")
	}
	if longer := append(history, answer(msg.TextPart("2")), said("three")[0]); !strings.HasPrefix(bare(longer), bare(history)) {
		t.Errorf("%s\ndoes not begin with\n%s", bare(longer), bare(history))
	}
}

func picturePNG(t *testing.T, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	data := b.Bytes()
	binary.BigEndian.PutUint32(data[16:], uint32(width))
	binary.BigEndian.PutUint32(data[20:], uint32(height))
	binary.BigEndian.PutUint32(data[29:], crc32.ChecksumIEEE(data[12:29]))
	return data
}

// Media goes where the API takes it, as what it is and not as what it is
// called; for all else one line stands.
func TestMedia(t *testing.T) {
	small := picturePNG(t, 10, 10)
	img := func(mimeType string, data []byte) msg.Part {
		return msg.Part{Kind: msg.Image, MIMEType: mimeType, Data: data, Name: "a"}
	}
	pdf := msg.Part{Kind: msg.File, MIMEType: "application/pdf", Data: []byte("%PDF-1"), Name: "b.pdf", Text: "caption"}
	base := func(data []byte) string { raw, _ := json.Marshal(data); return string(raw) }
	block := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":` + base(small) + `}}`
	doc := `{"type":"text","text":"caption"},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0x"},"title":"b.pdf"}`
	line := func(what string) string {
		return `{"type":"text","text":"[` + what + `; this model's API cannot take it]"}`
	}
	tests := []struct {
		name, model string
		parts       []msg.Part
		want        string
	}{
		{"image and PDF", claude, []msg.Part{msg.TextPart("see"), img("image/png", small), pdf}, `{"type":"text","text":"see"},` + block + `,` + doc},
		{"a PNG that is called something else", claude, []msg.Part{img("image/tiff", small)}, block},
		{"a PNG that is none", claude, []msg.Part{img("image/png", []byte("MZ"))}, line("image image/png, 2 B, a")},
		{"a PNG that is cut off", claude, []msg.Part{img("image/png", small[:12])}, line("image image/png, 12 B, a")},
		{"a PDF that is none", claude, []msg.Part{{Kind: msg.File, MIMEType: "application/pdf", Data: []byte("MZ")}}, line("file application/pdf, 2 B")},
		{"too many pixels", claude, []msg.Part{img("image/png", picturePNG(t, 8001, 10))}, line(fmt.Sprintf("image image/png, %d B, a", len(small)))},
		{"too many bytes", claude, []msg.Part{img("image/png", append(bytes.Clone(small), make([]byte, maxImage)...))}, line("image image/png, 3.9 MB, a")},
		{"sound", claude, []msg.Part{{Kind: msg.Audio, MIMEType: "audio/wav", Data: []byte("RIFF")}}, line("audio audio/wav, 4 B")},
		{"a PDF for an imitation", "qwen3", []msg.Part{pdf}, `{"type":"text","text":"[file application/pdf, 6 B, b.pdf; this model's API cannot take it] caption"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := request(t, &llm.Request{Model: tt.model, Messages: []msg.Message{{Role: msg.User, Parts: tt.parts}}})["messages"]
			if diff := cmp.Diff(`[{"role":"user","content":[`+tt.want+`]}]`, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	// In results: in place, and after all of them when a result failed.
	history := append(said("hi"), answer(call("a", "shot", "{}"), call("b", "shot", "{}")), results(
		msg.Result{CallID: "a", Status: "error", Parts: []msg.Part{msg.TextPart("broke"), img("image/png", small)}},
		msg.Result{CallID: "b", Status: "success", Parts: []msg.Part{img("image/png", small), msg.TextPart("taken")}}))
	want := `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"broke\n[1 media: see below]","is_error":true},` +
		`{"type":"tool_result","tool_use_id":"b","content":[` + block + `,{"type":"text","text":"taken"}]},` +
		`{"type":"text","text":"Media of the result of shot (call a):"},` + block + `]}]`
	if got := request(t, &llm.Request{Messages: history, Tools: []msg.Declaration{readFile}})["messages"]; !strings.HasSuffix(got, want) {
		t.Errorf("got  %s\nwant …%s", got, want)
	}
	// Of many images none may be large.
	var many []msg.Part
	for range manyImages {
		many = append(many, img("", small))
	}
	large := img("", picturePNG(t, 10, 2001))
	for n, want := range map[int]int{manyImages - 1: manyImages, manyImages: manyImages} {
		got := request(t, &llm.Request{Messages: []msg.Message{{Role: msg.User, Parts: append(many[:n:n], large)}}})["messages"]
		if strings.Count(got, `"type":"image"`) != want {
			t.Errorf("of %d images %d were sent, want %d", n+1, strings.Count(got, `"type":"image"`), want)
		}
	}
	// Of too many the oldest are left out, tens at a time.
	for n, want := range map[int]int{maxMedia: maxMedia, maxMedia + 1: 91, maxMedia + 10: maxMedia, maxMedia + 11: 91} {
		var parts []msg.Part
		for i := range n {
			parts = append(parts, img("", picturePNG(t, 1+i, 1)))
		}
		got := request(t, &llm.Request{Messages: []msg.Message{{Role: msg.User, Parts: parts}}})["messages"]
		if sent := strings.Count(got, `"type":"image"`); sent != want || !strings.Contains(got, base(parts[n-1].Data)) {
			t.Errorf("of %d images %d were sent, want %d", n, sent, want)
		}
	}
	if p := Profiles().For("https://api.deepseek.com/anthropic"); p.Images {
		t.Error("DeepSeek takes no images")
	}
}

// Thinking goes back as it came, to the model that wrote it; without its
// signature only to imitations, which have none.
func TestThinkingGoesBack(t *testing.T) {
	signature := llmtest.Signature("<T>")
	history := func(origin string) []msg.Message {
		return append(said("hi"), msg.Message{Role: msg.Assistant, Origin: origin, Parts: []msg.Part{
			{Kind: msg.Reasoning, Text: "<T>", State: encodeRaw(state{Signature: signature})},
			{Kind: msg.Reasoning, State: encodeRaw(state{Redacted: "R"})},
			{Kind: msg.Reasoning, Text: "unsigned"},
			call("a", "read_file", `{ "path": "<a>" }`),
		}}, results(result("a", "A")))
	}
	const use = `{"type":"tool_use","id":"a","name":"read_file","input":{"path":"<a>"}}`
	const redacted = `{"type":"redacted_thinking","data":"R"}`
	for _, tt := range []struct{ model, origin, want string }{
		{claude, "anthropic/" + claude, `{"type":"thinking","thinking":"<T>","signature":"` + signature + `"},` + redacted + `,` + use},
		{claude, "anthropic/claude-opus-5-5", use},
		{claude, "openai/" + claude, use},
		{"qwen3", "anthropic/qwen3", `{"type":"thinking","thinking":"<T>","signature":"` + signature + `"},` + redacted + `,{"type":"thinking","thinking":"unsigned","signature":""},` + use},
	} {
		got := request(t, &llm.Request{Model: tt.model, Messages: history(tt.origin), Tools: []msg.Declaration{readFile}})["messages"]
		if want := `{"role":"assistant","content":[` + tt.want + `]}`; !strings.Contains(got, want) {
			t.Errorf("%s, written by %s: want %s in %s", tt.model, tt.origin, want, got)
		}
	}
}

// Thinking between calls keeps its place among them.
func TestInterleavedGoesBack(t *testing.T) {
	thought := func(s string) msg.Part {
		return msg.Part{Kind: msg.Reasoning, Text: s, State: encodeRaw(state{Signature: llmtest.Signature(s)})}
	}
	history := append(said("hi"), answer(thought("1"), call("a", "shell", "{}"), thought("2"), call("b", "shell", "{}")), results(result("a", "A"), result("b", "B")))
	got := request(t, &llm.Request{Messages: history, Tools: []msg.Declaration{shell}})["messages"]
	var messages []struct {
		Content []struct{ Type, Thinking, ID string }
	}
	if err := json.Unmarshal([]byte(got), &messages); err != nil {
		t.Fatal(err)
	}
	want := []struct{ Type, Thinking, ID string }{{"thinking", "1", ""}, {"tool_use", "", "a"}, {"thinking", "2", ""}, {"tool_use", "", "b"}}
	if diff := cmp.Diff(want, messages[1].Content); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// After an interrupt the results come first in the user's next message, and
// calls are last in what another model wrote. BUG-CP-01
func TestInterrupted(t *testing.T) {
	history := append(said("hi"), msg.Message{Role: msg.Assistant, Origin: "gemini/m", Parts: []msg.Part{call("A", "read_file", "{}"), msg.TextPart("I am")}}, said("go on")[0])
	got := request(t, &llm.Request{Messages: history, Tools: []msg.Declaration{readFile}})["messages"]
	const want = `[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[{"type":"text","text":"I am"},{"type":"tool_use","id":"A","name":"read_file","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"A","content":"No result of this call was recorded: the session was interrupted. It may have run or not; find out before you repeat it.","is_error":true},{"type":"text","text":"go on"}]}]`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Blocks of the tools that the API runs go back in their place, in pairs; one
// that waits for its result only while the API is to go on.
func TestHostedGoesBack(t *testing.T) {
	kept := func(s string) msg.Part {
		return msg.Part{Kind: msg.Text, State: encodeRaw(state{Block: json.RawMessage(s)})}
	}
	const (
		use   = `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"<q>"}}`
		end   = `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"encrypted_content":"E"}]}`
		cite  = `{"type":"web_search_result_location","encrypted_index":"I"}`
		cited = `{"type":"text","text":"x","citations":[` + cite + `]}`
		f     = `{"type":"tool_use","id":"a","name":"read_file","input":{}}`
	)
	citation := msg.Part{Kind: msg.Text, Text: "x", State: encodeRaw(state{Citations: []json.RawMessage{json.RawMessage(cite)}})}
	thought := msg.Part{Kind: msg.Reasoning, Text: "T", State: encodeRaw(state{Signature: llmtest.Signature("T")})}
	for name, tt := range map[string]struct {
		parts []msg.Part
		rest  []msg.Message
		want  string // all after the first message
	}{
		"a pair": {[]msg.Part{{Kind: msg.Text, State: json.RawMessage("{}")}, kept(use), kept(end), citation}, said("so"),
			`{"role":"assistant","content":[` + use + `,` + end + `,` + cited + `]},{"role":"user","content":[{"type":"text","text":"so"}]}]`},
		"interrupted": {[]msg.Part{msg.TextPart("I search."), kept(use)}, said("so"),
			`{"role":"assistant","content":[{"type":"text","text":"I search."}]},{"role":"user","content":[{"type":"text","text":"so"}]}]`},
		"nothing else, and thinking that led to it": {[]msg.Part{thought, kept(use)}, said("so"), ""},
		"a result alone": {[]msg.Part{kept(end), citation}, said("so"),
			`{"role":"assistant","content":[` + cited + `]},{"role":"user","content":[{"type":"text","text":"so"}]}]`},
		"with a call of ours, which goes first": {[]msg.Part{kept(use), call("a", "read_file", "{}")}, []msg.Message{results(result("a", "A"))},
			`{"role":"assistant","content":[` + use + `,` + f + `]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"A"}]}]`},
	} {
		t.Run(name, func(t *testing.T) {
			got := request(t, &llm.Request{Messages: append(append(said("hi"), answer(tt.parts...)), tt.rest...), Tools: []msg.Declaration{readFile}, Hosted: []json.RawMessage{webSearch}})["messages"]
			want := `[{"role":"user","content":[{"type":"text","text":"hi"}]},` + tt.want
			if tt.want == "" {
				want = `[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"so"}]}]`
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// An answer that the API pauses is taken up again with what was said, and is
// one answer to everybody else.
func TestPaused(t *testing.T) {
	const pause = `
raw
data: {"type":"message_start","message":{"content":[],"usage":{"input_tokens":10,"output_tokens":1}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"I search. "}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}}}

data: {"type":"content_block_stop","index":1}

data: {"type":"message_delta","delta":{"stop_reason":"pause_turn"},"usage":{"output_tokens":5}}

data: {"type":"message_stop"}

`
	const goesOn = `
want \{"role":"user","content":\[\{"type":"text","text":"hi"\}\]\},\{"role":"assistant","content":\[\{"type":"text","text":"I search. "\},\{"id":"srvtoolu_1","input":\{"query":"q"\},"name":"web_search","type":"server_tool_use"\}\]\}\]
raw
data: {"type":"message_start","message":{"content":[],"usage":{"input_tokens":20,"output_tokens":1}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":"Found."}}

data: {"type":"content_block_stop","index":1}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}

data: {"type":"message_stop"}

`
	unordered := strings.NewReplacer(`\{"id":"srvtoolu_1","input":\{"query":"q"\},"name":"web_search","type":"server_tool_use"\}`, `\{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":\{"query":"q"\}\}`).Replace(goesOn)
	c, server := serve(t, "-- 1 --"+pause+"-- 2 --"+unordered)
	r := &llm.Request{Model: claude, Messages: said("hi"), Hosted: []json.RawMessage{webSearch}}
	turn, err := ask(t.Context(), c, r)
	if err != nil {
		t.Fatal(err)
	}
	want := answer(msg.Part{Kind: msg.Text, Text: "I search. ", State: json.RawMessage("{}")},
		msg.Part{Kind: msg.Text, State: json.RawMessage(`{"block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}}}`)},
		msg.Part{Kind: msg.Text, State: json.RawMessage(`{"block":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}}`)},
		msg.TextPart("Found."))
	if diff := cmp.Diff(want, turn.Message()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(msg.Usage{Input: 30, Output: 12}, turn.Usage); diff != "" || turn.Finish != llm.FinishStop || len(r.Messages) != 1 {
		t.Errorf("finish %s, usage (-want +got):\n%s", turn.Finish, diff)
	}
	if n := len(server.Requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
	endless := New(&llm.Endpoint{Name: "test", Retries: -1, BaseURL: "https://api.anthropic.com", Transport: familytest.Repeating(strings.TrimPrefix(pause, "\nraw\n"))}, nil)
	if _, err := ask(t.Context(), endless, r); err == nil || !strings.Contains(err.Error(), "paused more than 20 times") {
		t.Errorf("paused for ever: %v", err)
	}
	nothing := New(&llm.Endpoint{Name: "test", Retries: -1, BaseURL: "https://api.anthropic.com", Transport: familytest.Repeating(speech("pause_turn", " "))}, nil)
	if _, err := ask(t.Context(), nothing, r); err == nil || !strings.Contains(err.Error(), "nothing to go on with") {
		t.Errorf("paused with nothing to go on with: %v", err)
	}
}

// A structured answer is asked for with the API's format where the model has it
// and the schema can be said in it, else in words.
func TestOutput(t *testing.T) {
	const words = "Answer with one JSON object and nothing else: no prose, no code fence. It must be valid against this JSON Schema:\n"
	for name, tt := range map[string]struct {
		model, schema string
		want          string // the schema that is sent; empty: in words
	}{
		"closed":          {claude, `{"type":"object","properties":{"a":{"type":"integer","minimum":1,"maximum":9,"description":"How many"}},"required":["a"],"$schema":"x"}`, `{"additionalProperties":false,"properties":{"a":{"description":"How many (minimum: 1, maximum: 9)","type":"integer"}},"required":["a"],"type":"object"}`},
		"nested":          {claude, `{"type":"object","properties":{"a":{"type":"array","items":{"type":["object","null"],"properties":{}}},"b":{"oneOf":[{"type":"string"},{"type":"null"}]},"c":{"$ref":"#/$defs/d"},"e":{"$ref":"#/$defs/d"}},"$defs":{"d":{"enum":[1,"x"]}},"additionalProperties":true}`, `{"$defs":{"d":{"enum":[1,"x"]}},"additionalProperties":false,"properties":{"a":{"items":{"additionalProperties":false,"properties":{},"type":["object","null"]},"type":"array"},"b":{"anyOf":[{"type":"string"},{"type":"null"}]},"c":{"$ref":"#/$defs/d"},"e":{"$ref":"#/$defs/d"}},"type":"object"}`},
		"big numbers":     {claude, `{"type":"object","properties":{"a":{"const":12345678901234567890}}}`, `{"additionalProperties":false,"properties":{"a":{"const":12345678901234567890}},"type":"object"}`},
		"an older model":  {"claude-sonnet-4-20250514", `{"type":"object","properties":{}}`, ""},
		"an imitation":    {"qwen3", `{"type":"object","properties":{}}`, ""},
		"a map":           {claude, `{"type":"object","properties":{"a":{"type":"object","additionalProperties":{"type":"string"}}}}`, ""},
		"any object":      {claude, `{"type":"object"}`, ""},
		"no object":       {claude, `{"type":"array","items":{}}`, ""},
		"recursive":       {claude, `{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"type":"object","properties":{"c":{"$ref":"#/$defs/b"}}}}}`, ""},
		"the root itself": {claude, `{"type":"object","properties":{"a":{"$ref":"#"}}}`, ""},
		"elsewhere":       {claude, `{"type":"object","properties":{"a":{"$ref":"https://x"}}}`, ""},
		"a condition":     {claude, `{"type":"object","properties":{},"if":{}}`, ""},
		"a boolean":       {claude, `{"type":"object","properties":{"a":true}}`, ""},
		"a list":          {claude, `{"type":"object","properties":[]}`, ""},
		"very deep":       {claude, `{"type":"object","properties":{"a":` + strings.Repeat(`{"items":`, 200) + `{}` + strings.Repeat(`}`, 200) + `}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := request(t, &llm.Request{Model: tt.model, System: "S", Output: &llm.OutputSchema{Name: "answer", Schema: json.RawMessage(tt.schema)}})
			wantConfig, wantSystem := `{"format":{"type":"json_schema","schema":`+tt.want+`}}`, "S"
			if tt.want == "" {
				wantConfig, wantSystem = "", "S\n\n"+words+tt.schema
			}
			var system []struct{ Text string }
			if err := json.Unmarshal([]byte(got["system"]), &system); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{wantConfig, wantSystem}, []string{got["output_config"], system[0].Text}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	// Definitions that refer to others again and again are looked at once.
	defs := `"d0":{"type":"string"}`
	for i := range 60 {
		defs += fmt.Sprintf(`,"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i+1, i, i)
	}
	if _, ok := strict(json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/$defs/d60"}},"$defs":{` + defs + `}}`)); !ok {
		t.Error("a schema that doubles is refused")
	}
	got := request(t, &llm.Request{Effort: "low", Output: &llm.OutputSchema{Name: "answer", Schema: json.RawMessage(`{"type":"object","properties":{}}`)}})
	if want := `{"effort":"low","format":{"type":"json_schema","schema":{"additionalProperties":false,"properties":{},"type":"object"}}}`; got["output_config"] != want {
		t.Errorf("with an effort: %s", got["output_config"])
	}
}

// A model that names a tool it was not told of is passed on as it is; whoever
// runs calls refuses it. S2-006
func TestUnadvertisedName(t *testing.T) {
	c, _ := serve(t, "-- 1 --\nwantnot secret_tool\ncall secret_tool {\"a\":1}\n")
	turn, err := ask(t.Context(), c, &llm.Request{Model: claude, Messages: said("hi"), Tools: []msg.Declaration{readFile}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]msg.Call{{ID: "call_1_1", Name: "secret_tool", Args: `{"a":1}`}}, madeCalls(turn)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
