package gemini

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/llm"
	"capstan/internal/llm/llmtest"
	"capstan/internal/msg"
)

// request encodes r, checks that the API takes it, and returns its JSON members.
func request(t *testing.T, r *llm.Request) map[string]string {
	t.Helper()
	if r.Messages == nil {
		r.Messages = said("hi")
	}
	body, _, err := New(&llm.Endpoint{Name: "test"}).encode(r)
	if err != nil {
		t.Fatal(err)
	}
	format := "gemini"
	if !traitsOf(r.Model).third {
		format = "gemini-2.5"
	}
	if err := (&llmtest.Script{}).Check(format, body); err != nil {
		t.Errorf("%v: %s", err, body)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(body, &raw); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	out := map[string]string{}
	for k, v := range raw {
		out[k] = string(v)
	}
	return out
}

// Every model is sent the same tools, in the order and with the words that it
// is given, exec like any other function, its schema as JSON and not as text.
// S0-198, BUG-PC-01
func TestDeclarations(t *testing.T) {
	exec := msg.Declaration{Name: "exec", Description: "Run a <program> & more.", Parameters: json.RawMessage(`{"type":"object","properties":{"source":{"type":"string"},"description":{"type":"string"}},"required":["source"]}`)}
	const functions = `{"functionDeclarations":[{"name":"exec","description":"Run a <program> & more.","parameters":{"type":"object","properties":{"source":{"type":"string"},"description":{"type":"string"}},"required":["source"]}},` +
		`{"name":"read_file","description":"Read.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}},` +
		`{"name":"bare"},{"name":"todo_list"}]}`
	r := &llm.Request{System: "S", Tools: []msg.Declaration{exec, readFile, {Name: "bare"}, noArgs}}
	for _, model := range []string{"gemini-3-pro", "gemini-2.5-flash", "gemma-3-27b"} {
		for range 20 {
			r.Model = model
			got := request(t, r)
			delete(got, "generationConfig")
			want := map[string]string{"systemInstruction": `{"parts":[{"text":"S"}]}`, "tools": "[" + functions + "]", "contents": `[{"role":"user","parts":[{"text":"hi"}]}]`}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", model, diff)
			}
		}
	}
	r.Model, r.Choice, r.Hosted = "gemini-3-pro", llm.ChoiceNone, []json.RawMessage{json.RawMessage(`{"googleSearch":{}}`), json.RawMessage(`{"codeExecution":{}}`)}
	got := request(t, r)
	if got["tools"] != "["+functions+`,{"googleSearch":{}},{"codeExecution":{}}]` || got["toolConfig"] != `{"functionCallingConfig":{"mode":"NONE"},"includeServerSideToolInvocations":true}` {
		t.Errorf("with hosted tools: %s %s", got["tools"], got["toolConfig"])
	}
	got = request(t, &llm.Request{Model: "gemini-2.5-pro", Choice: llm.ChoiceRequired, Tools: r.Tools})
	if got["toolConfig"] != `{"functionCallingConfig":{"mode":"ANY"}}` {
		t.Errorf("required: %s", got["toolConfig"])
	}
	got = request(t, &llm.Request{Model: "gemini-2.5-pro", Choice: llm.ChoiceNone, Hosted: r.Hosted})
	if got["tools"] != `[{"googleSearch":{}},{"codeExecution":{}}]` || got["toolConfig"] != "" {
		t.Errorf("hosted alone: %s", got)
	}
}

// How to answer, for each kind of model: thinking in levels or tokens, or not
// at all; JSON beside functions, or asked for in words.
func TestGeneration(t *testing.T) {
	half := 0.5
	output := &llm.OutputSchema{Name: "answer", Schema: json.RawMessage(`{"type":"object","properties":{"a":{"const":"x"}},"additionalProperties":false}`)}
	const asked = `"responseMimeType":"application/json","responseSchema":{"type":"object","properties":{"a":{"enum":["x"],"type":"string"}}}`
	tests := []struct {
		name   string
		r      llm.Request
		want   string
		system string
	}{
		{"3, nothing asked", llm.Request{Model: "gemini-3-pro-preview"}, `{"thinkingConfig":{"includeThoughts":true}}`, ""},
		{"3 Pro, minimal", llm.Request{Model: "gemini-3-pro-preview", Effort: "minimal"}, `{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"LOW"}}`, ""},
		{"3 Pro, medium", llm.Request{Model: "gemini-3-pro-preview", Effort: "medium"}, `{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"HIGH"}}`, ""},
		{"3.1 Pro, medium", llm.Request{Model: "gemini-3.1-pro-preview", Effort: "medium"}, `{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"MEDIUM"}}`, ""},
		{"3 Flash, none", llm.Request{Model: "models/gemini-3-flash-preview", Effort: "none"}, `{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"MINIMAL"}}`, ""},
		{"3.7 Flash, minimal", llm.Request{Model: "gemini-3.7-flash", Effort: "minimal"}, `{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"LOW"}}`, ""},
		{"the newest, high", llm.Request{Model: "gemini-flash-latest", Effort: "high"}, `{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"HIGH"}}`, ""},
		{"4, max", llm.Request{Model: "gemini-4-argon", Effort: "max"}, `{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"HIGH"}}`, ""},
		{"3, images", llm.Request{Model: "gemini-3-pro-image-preview", Effort: "high"}, `{"thinkingConfig":{"includeThoughts":true}}`, ""},
		{"2.5, low", llm.Request{Model: "gemini-2.5-flash", Effort: "low"}, `{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":1024}}`, ""},
		{"2.5 Flash, none", llm.Request{Model: "gemini-2.5-flash", Effort: "none"}, `{"thinkingConfig":{"thinkingBudget":0}}`, ""},
		{"2.5 Pro, none", llm.Request{Model: "gemini-2.5-pro", Effort: "none"}, `{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":128}}`, ""},
		{"2.5, images", llm.Request{Model: "gemini-2.5-flash-image", Effort: "high"}, `{}`, ""},
		{"2.5, speech", llm.Request{Model: "gemini-2.5-pro-preview-tts", Effort: "high"}, `{}`, ""},
		{"2.0", llm.Request{Model: "gemini-2.0-flash", Effort: "high"}, `{}`, ""},
		{"another model", llm.Request{Model: "gemma-3-27b-it", Effort: "high"}, `{}`, ""},
		{"limits", llm.Request{Model: "gemini-2.0-flash", MaxTokens: 100, Temperature: &half, TopP: &half, Stop: []string{"END"}},
			`{"maxOutputTokens":100,"temperature":0.5,"topP":0.5,"stopSequences":["END"]}`, ""},
		{"3, JSON beside functions", llm.Request{Model: "gemini-3-pro", Output: output, Tools: tools4}, `{` + asked + `,"thinkingConfig":{"includeThoughts":true}}`, ""},
		{"2.0, JSON", llm.Request{Model: "gemini-2.0-flash", Output: output, System: "S"}, `{` + asked + `}`, `{"parts":[{"text":"S"}]}`},
		{"2.0, JSON beside functions", llm.Request{Model: "gemini-2.0-flash", Output: output, Tools: tools4, System: "S"}, `{}`,
			`{"parts":[{"text":"S\n\nAnswer with one JSON object and nothing else. It must follow this JSON Schema:\n{\"type\":\"object\",\"properties\":{\"a\":{\"const\":\"x\"}},\"additionalProperties\":false}"}]}`},
		{"2.0, any JSON object", llm.Request{Model: "gemini-2.0-flash", Output: &llm.OutputSchema{Schema: json.RawMessage(`{"type":"object"}`)}}, `{"responseMimeType":"application/json"}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := request(t, &tt.r)
			if diff := cmp.Diff([]string{tt.want, tt.system}, []string{got["generationConfig"], got["systemInstruction"]}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Calls that another model made, or that were kept without a signature, get the
// one that the documentation names for them, on the first call of each step;
// a signature of this model stays where it was, and goes to no other. BUG-CP-11
func TestForeignCalls(t *testing.T) {
	history := func(origin string) []msg.Message {
		return append(said("hi"),
			msg.Message{Role: msg.Assistant, Origin: "openai/x", Parts: []msg.Part{signed(callPart("a", "shell", `{}`), `"Rk9SRUlHTg=="`), callPart("b", "shell", `{}`)}},
			resultsOf(msg.Result{CallID: "a", Parts: []msg.Part{msg.TextPart("A")}}, msg.Result{CallID: "b", Parts: []msg.Part{msg.TextPart("B")}}),
			msg.Message{Role: msg.Assistant, Origin: origin, Parts: []msg.Part{signed(msg.TextPart("ok"), `"VA=="`), signed(callPart("c", "shell", `{}`), `"c2lnbmVkOiBzaGVsbA=="`)}},
			resultsOf(msg.Result{CallID: "c", Parts: []msg.Part{msg.TextPart("C")}}),
			msg.Message{Role: msg.Assistant, Origin: origin, Parts: []msg.Part{callPart("d", "shell", `{}`), signed(callPart("e", "shell", `{}`), `"c2lnbmVkOiBzaGVsbA=="`)}})
	}
	const own, skip = `,"thoughtSignature":"c2lnbmVkOiBzaGVsbA=="`, `,"thoughtSignature":"skip_thought_signature_validator"`
	for _, tt := range []struct {
		model, origin string
		text          string
		a, b, c, d, e string // what the calls have
	}{
		{"gemini-3-pro", "gemini/gemini-3-pro", `,"thoughtSignature":"VA=="`, skip, "", own, skip, own},
		{"gemini-3-pro", "gemini/gemini-3-flash", "", skip, "", skip, skip, ""},
		{"gemini-2.5-pro", "gemini/gemini-2.5-pro", `,"thoughtSignature":"VA=="`, "", "", own, "", own},
		{"gemini-2.5-pro", "gemini/gemini-3-pro", "", "", "", "", "", ""},
	} {
		call := func(id, state string) string {
			return `{"functionCall":{"id":"` + id + `","name":"shell","args":{}}` + state + `}`
		}
		response := func(id, text string) string {
			return `{"functionResponse":{"id":"` + id + `","name":"shell","response":{` + text + `}}}`
		}
		const lost = `"error":"No result of this call was recorded: the session was interrupted. It may have run or not; find out before you repeat it."`
		want := `[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[` + call("a", tt.a) + `,` + call("b", tt.b) + `]},` +
			`{"role":"user","parts":[` + response("a", `"output":"A"`) + `,` + response("b", `"output":"B"`) + `]},` +
			`{"role":"model","parts":[{"text":"ok"` + tt.text + `},` + call("c", tt.c) + `]},{"role":"user","parts":[` + response("c", `"output":"C"`) + `]},` +
			`{"role":"model","parts":[` + call("d", tt.d) + `,` + call("e", tt.e) + `]},{"role":"user","parts":[` + response("d", lost) + `,` + response("e", lost) + `]}]`
		got := request(t, &llm.Request{Model: tt.model, Messages: history(tt.origin), Tools: tools4})
		if diff := cmp.Diff(want, got["contents"]); diff != "" {
			t.Errorf("%s, written by %s (-want +got):\n%s", tt.model, tt.origin, diff)
		}
	}
}

// What a session kept is not trusted: what the API would refuse is left out,
// and what is left is said.
func TestOddState(t *testing.T) {
	for state, want := range map[string]string{
		`"not base64!"`:                         `{"text":"Héllo"}`,
		`"`:                                     `{"text":"Héllo"}`,
		`{"opaque":true}`:                       `{"text":"Héllo"}`,
		`[1]`:                                   `{"text":"Héllo"}`,
		`{"thoughtSignature":"QQ==","from":99}`: `{"text":"Héllo","thoughtSignature":"QQ=="}`,
		`{"thoughtSignature":"QQ==","from":-1}`: `{"text":"Héllo","thoughtSignature":"QQ=="}`,
		`{"thoughtSignature":"QQ==","from":2}`:  `{"text":"Héllo","thoughtSignature":"QQ=="}`, // inside the é
		`{"thoughtSignature":"QQ==","from":3}`:  `{"text":"Hé"},{"text":"llo","thoughtSignature":"QQ=="}`,
		`{"executableCode":{"code":"x"},"toolCall":{}}`:     `{"text":"Héllo"},{"executableCode":{"code":"x"}}`,
		`{"functionResponse":{"name":"x","response":{}}}`:   `{"text":"Héllo"}`,
		`{"toolResponse":{"id":"t"},"thoughtSignature":""}`: `{"text":"Héllo"},{"toolResponse":{"id":"t"}}`,
	} {
		m := msg.Message{Role: msg.Assistant, Origin: "gemini/gemini-3-pro", Parts: []msg.Part{signed(msg.TextPart("Héllo"), state)}}
		r := &llm.Request{Model: "gemini-3-pro", Messages: append(said("hi"), m), Tools: tools4}
		if got := modelParts(t, r); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", state, got, want)
		}
	}
	// A message of which nothing can be sent leaves no gap.
	got := request(t, &llm.Request{Model: "gemini-3-pro", Tools: tools4, Messages: append(said("hi"), msg.Message{Role: msg.Assistant, Origin: "gemini/gemini-3-pro",
		Parts: []msg.Part{{Kind: msg.Text, State: json.RawMessage(`{}`)}}}, said("go")[0])})
	if want := `[{"role":"user","parts":[{"text":"hi"},{"text":"go"}]}]`; got["contents"] != want {
		t.Errorf("got %s, want %s", got["contents"], want)
	}
}

// A thought goes back from where it was signed on: the beginning of it, which
// was not, is for people. (Of a text the beginning goes back too.)
func TestHeadOfThought(t *testing.T) {
	thought := signed(msg.Part{Kind: msg.Reasoning, Text: "Headtail"}, `{"thoughtSignature":"QQ==","from":4}`)
	m := msg.Message{Role: msg.Assistant, Origin: "gemini/gemini-3-pro", Parts: []msg.Part{thought, msg.TextPart("ok")}}
	got := modelParts(t, &llm.Request{Model: "gemini-3-pro", Messages: append(said("hi"), m), Tools: tools4})
	if want := `{"thought":true,"text":"tail","thoughtSignature":"QQ=="},{"text":"ok"}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// What the model made goes back as it is, signed as it was, or as a line where
// the API does not take it.
func TestMediaOfModel(t *testing.T) {
	png := signed(msg.Part{Kind: msg.Image, MIMEType: "image/png", Data: llmtest.Pixel}, `"QQ=="`)
	gif := msg.Part{Kind: msg.Image, MIMEType: "image/gif", Data: []byte("gif")}
	m := msg.Message{Role: msg.Assistant, Origin: "gemini/gemini-3-pro", Parts: []msg.Part{png, gif}}
	got := modelParts(t, &llm.Request{Model: "gemini-3-pro", Messages: append(said("hi"), m), Tools: tools4})
	want := withPixel(`{"inlineData":{"mimeType":"image/png","data":"cG5n"},"thoughtSignature":"QQ=="},{"text":"[image image/gif, 3 B; this model's API cannot take it]"}`)
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Calls of other APIs have ids that this one does not give: they get one that
// it might have given, the same for the call and its result.
func TestForeignIDs(t *testing.T) {
	const spaced, long = "call 1|fc/2", "0123456789abcdef"
	history := []msg.Message{said("go")[0],
		{Role: msg.Assistant, Origin: "openai/m", Parts: []msg.Part{callPart(spaced, "shell", "{}"), callPart(strings.Repeat(long, 9), "shell", "{}"), callPart(strings.Repeat(long, 8), "shell", "{}")}},
		resultsOf(msg.Result{CallID: spaced, Parts: []msg.Part{msg.TextPart("A")}}, msg.Result{CallID: strings.Repeat(long, 9), Parts: []msg.Part{msg.TextPart("B")}}, msg.Result{CallID: strings.Repeat(long, 8), Parts: []msg.Part{msg.TextPart("C")}})}
	contents := request(t, &llm.Request{Model: "gemini-2.5-pro", Messages: history, Tools: tools4})["contents"]
	type one struct{ ID string }
	var read []struct {
		Parts []struct{ FunctionCall, FunctionResponse *one }
	}
	if err := json.Unmarshal([]byte(contents), &read); err != nil || len(read) != 3 {
		t.Fatalf("%v: %s", err, contents)
	}
	var calls, answers []string
	for i := range read[1].Parts {
		calls, answers = append(calls, read[1].Parts[i].FunctionCall.ID), append(answers, read[2].Parts[i].FunctionResponse.ID)
	}
	if diff := cmp.Diff(calls, answers); diff != "" {
		t.Errorf("calls and their results (-calls +results):\n%s", diff)
	}
	want := []string{"call_1_fc_2_54971057", strings.Repeat(long, 7) + "0123456_1fc1b51f", strings.Repeat(long, 8)}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A request that declares no tools has no calls: they become text. BUG-CP-18
func TestCallsWithoutTools(t *testing.T) {
	history := []msg.Message{said("go")[0],
		{Role: msg.Assistant, Origin: "gemini/gemini-3-pro", Parts: []msg.Part{signed(callPart("a", "shell", `{"cmd":"ls"}`), `"QQ=="`)}},
		resultsOf(msg.Result{CallID: "a", Status: "success", Parts: []msg.Part{msg.TextPart("A")}}), said("sum up")[0]}
	want := `[{"role":"user","parts":[{"text":"go"}]},{"role":"model","parts":[{"text":"[Called shell with {\"cmd\":\"ls\"}]"}]},` +
		`{"role":"user","parts":[{"text":"[Result of shell: success]"},{"text":"A"},{"text":"sum up"}]}]`
	if got := request(t, &llm.Request{Model: "gemini-3-pro", Messages: history})["contents"]; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The answer to a call is an object for this API, whatever the tool returned.
// BUG-SC-06
func TestResultIsAnObject(t *testing.T) {
	for _, text := range []string{`[1,2]`, `7`, `null`, `"a"`, `{"a":1}`} {
		got := request(t, &llm.Request{Model: "gemini-2.5-pro", Tools: tools4, Messages: []msg.Message{said("go")[0],
			{Role: msg.Assistant, Parts: []msg.Part{callPart("a", "shot", "{}")}},
			resultsOf(msg.Result{CallID: "a", Parts: []msg.Part{msg.TextPart(text)}})}})
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		want := `[{"role":"user","parts":[{"text":"go"}]},{"role":"model","parts":[{"functionCall":{"id":"a","name":"shot","args":{}}}]},` +
			`{"role":"user","parts":[{"functionResponse":{"id":"a","name":"shot","response":{"output":` + string(quoted) + `}}}]}]`
		if diff := cmp.Diff(want, got["contents"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// withPixel puts the picture of the tests into what is written of it.
func withPixel(s string) string {
	size := fmt.Sprintf("image/png, %d B", len(llmtest.Pixel))
	return strings.NewReplacer("cG5n", base64.StdEncoding.EncodeToString(llmtest.Pixel), "image/png, 3 B", size).Replace(s)
}

// Media goes where the API takes it, else one line stands for it. The user's
// next words follow the results in the same content.
func TestMedia(t *testing.T) {
	png := msg.Part{Kind: msg.Image, MIMEType: "image/png", Data: llmtest.Pixel, Name: "a.png", Text: "a cat"}
	gif := msg.Part{Kind: msg.Image, MIMEType: "image/gif", Data: []byte("gif")}
	wav := msg.Part{Kind: msg.Audio, MIMEType: "audio/wav", Data: []byte("wav")}
	pdf := msg.Part{Kind: msg.File, MIMEType: "application/pdf", Data: []byte("pdf")}
	history := []msg.Message{
		{Role: msg.User, Parts: []msg.Part{msg.TextPart("see"), png, gif, wav, pdf}},
		{Role: msg.Assistant, Parts: []msg.Part{callPart("a", "shot", "{}"), callPart("b", "shot", "{}")}},
		resultsOf(msg.Result{CallID: "a", Parts: []msg.Part{msg.TextPart("taken"), png, gif, wav}}, msg.Result{CallID: "b", Status: "denied", Parts: []msg.Part{pdf}}),
		said("and?")[0],
	}
	const (
		seen = `[{"role":"user","parts":[{"text":"see"},{"text":"a cat"},{"inlineData":{"mimeType":"image/png","data":"cG5n"}},{"text":"[image image/gif, 3 B; this model's API cannot take it]"},` +
			`{"inlineData":{"mimeType":"audio/wav","data":"d2F2"}},{"inlineData":{"mimeType":"application/pdf","data":"cGRm"}}]},`
		line  = `taken\n[image image/gif, 3 B; this model's API cannot take it]`
		sound = `{"text":"Media of the result of shot (call a):"},{"inlineData":{"mimeType":"audio/wav","data":"d2F2"}}`
	)
	for model, want := range map[string]string{
		"gemini-3-pro": `{"role":"model","parts":[{"functionCall":{"id":"a","name":"shot","args":{}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"id":"b","name":"shot","args":{}}}]},` +
			`{"role":"user","parts":[{"functionResponse":{"id":"a","name":"shot","response":{"output":"` + line + `\n[1 media: see below, after the results]"},"parts":[{"inlineData":{"mimeType":"image/png","data":"cG5n"}}]}},` +
			`{"functionResponse":{"id":"b","name":"shot","response":{"error":""},"parts":[{"inlineData":{"mimeType":"application/pdf","data":"cGRm"}}]}},` + sound + `,{"text":"and?"}]}]`,
		"gemini-2.5-pro": `{"role":"model","parts":[{"functionCall":{"id":"a","name":"shot","args":{}}},{"functionCall":{"id":"b","name":"shot","args":{}}}]},` +
			`{"role":"user","parts":[{"functionResponse":{"id":"a","name":"shot","response":{"output":"` + line + `\n[2 media: see below, after the results]"}}},` +
			`{"functionResponse":{"id":"b","name":"shot","response":{"error":"[1 media: see below, after the results]"}}},` +
			strings.Replace(sound, `):"},`, `):"},{"inlineData":{"mimeType":"image/png","data":"cG5n"}},`, 1) +
			`,{"text":"Media of the result of shot (call b):"},{"inlineData":{"mimeType":"application/pdf","data":"cGRm"}},{"text":"and?"}]}]`,
	} {
		got := request(t, &llm.Request{Model: model, Messages: history, Tools: tools4})
		if diff := cmp.Diff(withPixel(seen+want), got["contents"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", model, diff)
		}
	}
}

// Arguments that were no JSON are replayed as ruling 14 says. BUG-AR-06
func TestBrokenArguments(t *testing.T) {
	m := msg.Message{Role: msg.Assistant, Origin: "gemini/gemini-2.5-pro", Parts: []msg.Part{callPart("a", "shell", `{"cmd":`), callPart("b", "shell", "")}}
	got := modelParts(t, &llm.Request{Model: "gemini-2.5-pro", Messages: append(said("hi"), m), Tools: tools4})
	if want := `{"functionCall":{"id":"a","name":"shell","args":{"_raw":"{\"cmd\":"}}},{"functionCall":{"id":"b","name":"shell","args":{}}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Schemas that made the API refuse whole requests are taken, and still say what
// they said.
func TestSchemas(t *testing.T) {
	c := New(&llm.Endpoint{Name: "test"})
	for name, tt := range map[string]struct{ schema, want string }{
		"references and null (BUG-SC-01)": {`{"type":"object","properties":{"target":{"anyOf":[{"$ref":"#/$defs/Issue"},{"type":"null"}]}},"$defs":{"Issue":{"type":"object","properties":{"id":{"type":"string"},"next":{"$ref":"#/$defs/Issue"}}}}}`,
			`{"type":"object","properties":{"target":{"nullable":true,"type":"object","properties":{"id":{"type":"string"},"next":{"type":"object","description":"Again a Issue, as above."}}}}}`},
		"a reference into properties (BUG-SC-03)": {`{"type":"object","properties":{"headers":{"type":"object"},"actions":{"type":"array","items":{"$ref":"#/properties/headers"}},"bare":{"type":"array"}}}`,
			`{"type":"object","properties":{"headers":{"type":"object"},"actions":{"type":"array","items":{"type":"object"}},"bare":{"type":"array","items":{"type":"string"}}}}`},
		"lists of types and none (BUG-SC-05)": {`{"type":"object","properties":{"state":{"type":["string","null"]},"meta":{},"empty":{"type":""}}}`,
			`{"type":"object","properties":{"state":{"nullable":true,"type":"string"},"meta":{"type":"string"},"empty":{"type":"string"}}}`},
	} {
		if got := taken(t, c, name, json.RawMessage(tt.schema)); !strings.Contains(got, `"parameters":`+tt.want+`}`) {
			t.Errorf("%s: want %s in\n%s", name, tt.want, got)
		}
	}
}
