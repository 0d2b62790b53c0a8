package gemini

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/llm"
	"capstan/internal/llm/llmtest"
	"capstan/internal/msg"
)

// events is a stream of these data lines.
func events(data ...string) string {
	return "data: " + strings.Join(data, "\r\n\r\ndata: ") + "\r\n\r\n"
}

// answer is a stream of these parts, each in an event, and a reason to finish.
func answer(finish string, parts ...string) string {
	var all []string
	for _, p := range parts {
		all = append(all, `{"candidates":[{"content":{"parts":[`+p+`],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":3},"modelVersion":"gemini-3-pro-preview","responseId":"r"}`)
	}
	all = append(all, `{"candidates":[{"content":{"parts":[],"role":"model"},"finishReason":"`+finish+`","index":0}]}`)
	return events(all...)
}

func hear(t *testing.T, stream string, history ...msg.Message) *llm.Turn {
	t.Helper()
	r := &llm.Request{Model: "gemini-3-pro", Messages: append(said("hi"), history...), Tools: tools4}
	turn, err := ask(t.Context(), answering(answers{Body: strings.NewReader(stream)}), r)
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

func signed(p msg.Part, state string) msg.Part {
	p.State = json.RawMessage(state)
	return p
}

// The streams of the documentation: what is heard, and that it goes back to the
// API as the parts that came. BUG-CP-10
func TestParts(t *testing.T) {
	thought := func(s string) msg.Part { return msg.Part{Kind: msg.Reasoning, Text: s} }
	tests := []struct {
		name   string
		stream string
		want   []msg.Part
		back   string // the parts of the model's content
	}{
		{"text in pieces", answer("STOP", `{"text":"Hel"}`, `{"text":"lo"}`),
			[]msg.Part{msg.TextPart("Hello")}, `{"text":"Hello"}`},
		{"a thought, then text with a signature", answer("STOP", `{"text":"**Plan**","thought":true}`, `{"text":"Hello","thoughtSignature":"U0lH"}`),
			[]msg.Part{thought("**Plan**"), signed(msg.TextPart("Hello"), `"U0lH"`)}, `{"text":"Hello","thoughtSignature":"U0lH"}`},
		{"a signature in an empty part after the text", answer("STOP", `{"text":"Hé"}`, `{"text":"llo"}`, `{"text":"","thoughtSignature":"U0lH"}`),
			[]msg.Part{signed(msg.TextPart("Héllo"), `{"thoughtSignature":"U0lH","from":6}`)}, `{"text":"Héllo"},{"text":"","thoughtSignature":"U0lH"}`},
		{"a signature on the last piece", answer("STOP", `{"text":"Hel"}`, `{"text":"lo","thoughtSignature":"U0lH"}`),
			[]msg.Part{signed(msg.TextPart("Hello"), `{"thoughtSignature":"U0lH","from":3}`)}, `{"text":"Hel"},{"text":"lo","thoughtSignature":"U0lH"}`},
		{"two signatures in a text", answer("STOP", `{"text":"a","thoughtSignature":"QQ=="}`, `{"text":"b"}`, `{"text":"c","thoughtSignature":"Qg=="}`),
			[]msg.Part{signed(msg.TextPart("a"), `"QQ=="`), signed(msg.TextPart("bc"), `{"thoughtSignature":"Qg==","from":1}`)},
			`{"text":"a","thoughtSignature":"QQ=="},{"text":"b"},{"text":"c","thoughtSignature":"Qg=="}`},
		{"a signature alone, without text", answer("STOP", `{"thoughtSignature":"U0lH"}`, `{"text":"Hello"}`),
			[]msg.Part{signed(msg.Part{Kind: msg.Text}, `"U0lH"`), msg.TextPart("Hello")}, `{"text":"","thoughtSignature":"U0lH"},{"text":"Hello"}`},
		{"a thought with a signature", answer("STOP", `{"text":"R","thought":true,"thoughtSignature":"U0lH"}`, `{"text":"T"}`),
			[]msg.Part{signed(thought("R"), `"U0lH"`), msg.TextPart("T")}, `{"thought":true,"text":"R","thoughtSignature":"U0lH"},{"text":"T"}`},
		{"parallel calls, the first with a signature", answer("STOP", `{"functionCall":{"id":"a","name":"shell","args":{"cmd":"1"}},"thoughtSignature":"U0lH"}`, `{"functionCall":{"id":"b","name":"shell","args":{"cmd":"2"}}}`),
			[]msg.Part{signed(callPart("a", "shell", `{"cmd":"1"}`), `"U0lH"`), callPart("b", "shell", `{"cmd":"2"}`)},
			`{"functionCall":{"id":"a","name":"shell","args":{"cmd":"1"}},"thoughtSignature":"U0lH"},{"functionCall":{"id":"b","name":"shell","args":{"cmd":"2"}}}`},
		{"calls with a signature each, and a last one", answer("STOP", `{"functionCall":{"id":"a","name":"shell","args":{"cmd":"1"}},"thoughtSignature":"UzE="},{"functionCall":{"id":"b","name":"shell","args":{"cmd":"2"}},"thoughtSignature":"UzI="}`, `{"text":"","thoughtSignature":"UzM="}`),
			[]msg.Part{signed(callPart("a", "shell", `{"cmd":"1"}`), `"UzE="`), signed(callPart("b", "shell", `{"cmd":"2"}`), `"UzI="`), signed(msg.Part{Kind: msg.Text}, `"UzM="`)},
			`{"functionCall":{"id":"a","name":"shell","args":{"cmd":"1"}},"thoughtSignature":"UzE="},{"functionCall":{"id":"b","name":"shell","args":{"cmd":"2"}},"thoughtSignature":"UzI="},{"text":"","thoughtSignature":"UzM="}`},
		{"text between and after calls", answer("STOP", `{"functionCall":{"id":"a","name":"shell","args":{"cmd":"1"}},"thoughtSignature":"UzE="}`, `{"text":"and "}`, `{"text":"then"}`, `{"functionCall":{"id":"b","name":"shell","args":{"cmd":"2"}}}`),
			[]msg.Part{signed(callPart("a", "shell", `{"cmd":"1"}`), `"UzE="`), msg.TextPart("and then"), callPart("b", "shell", `{"cmd":"2"}`)},
			`{"functionCall":{"id":"a","name":"shell","args":{"cmd":"1"}},"thoughtSignature":"UzE="},{"text":"and then"},{"functionCall":{"id":"b","name":"shell","args":{"cmd":"2"}}}`},
		{"code that the provider ran", answer("STOP", `{"text":"Let me count."}`, `{"executableCode":{"language":"PYTHON","code":"print(1)"}}`, `{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1\n"},"thoughtSignature":"U0lH"}`, `{"text":"One."}`),
			[]msg.Part{msg.TextPart("Let me count."), signed(thought(""), `{"executableCode":{"language":"PYTHON","code":"print(1)"}}`),
				signed(msg.Part{Kind: msg.Text}, `{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1\n"},"thoughtSignature":"U0lH"}`), msg.TextPart("One.")},
			`{"text":"Let me count."},{"executableCode":{"language":"PYTHON","code":"print(1)"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1\n"},"thoughtSignature":"U0lH"},{"text":"One."}`},
		{"a hosted tool, then a call", answer("STOP", `{"text":"R","thought":true}`, `{"toolCall":{"id":"t","toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["x"]}},"thoughtSignature":"UzE="}`, `{"toolResponse":{"id":"t","toolType":"GOOGLE_SEARCH_WEB","response":{}}}`, `{"functionCall":{"id":"a","name":"shell","args":{"cmd":"1"}},"thoughtSignature":"UzI="}`),
			[]msg.Part{thought("R"), signed(msg.Part{Kind: msg.Text}, `{"toolCall":{"id":"t","toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["x"]}},"thoughtSignature":"UzE="}`),
				signed(msg.Part{Kind: msg.Text}, `{"toolResponse":{"id":"t","toolType":"GOOGLE_SEARCH_WEB","response":{}}}`), signed(callPart("a", "shell", `{"cmd":"1"}`), `"UzI="`)},
			`{"toolCall":{"id":"t","toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["x"]}},"thoughtSignature":"UzE="},{"toolResponse":{"id":"t","toolType":"GOOGLE_SEARCH_WEB","response":{}}},{"functionCall":{"id":"a","name":"shell","args":{"cmd":"1"}},"thoughtSignature":"UzI="}`},
		{"code at the end", answer("STOP", `{"text":"Let me."}`, `{"executableCode":{}}`, `{"codeExecutionResult":{}}`),
			[]msg.Part{msg.TextPart("Let me."), signed(thought(""), `{"executableCode":{}}`), signed(msg.Part{Kind: msg.Text}, `{"codeExecutionResult":{}}`)},
			`{"text":"Let me."},{"executableCode":{}},{"codeExecutionResult":{}}`},
		{"an image", answer("STOP", `{"text":"Here:"}`, `{"inlineData":{"mimeType":"image/png","data":"`+base64.StdEncoding.EncodeToString(llmtest.Pixel)+`"},"thoughtSignature":"U0lH"}`, `{"inlineData":{"mimeType":"audio/wav","data":"UklG_-8"}}`),
			[]msg.Part{msg.TextPart("Here:"), signed(msg.Part{Kind: msg.Image, MIMEType: "image/png", Data: llmtest.Pixel}, `"U0lH"`), {Kind: msg.Audio, MIMEType: "audio/wav", Data: []byte("RIF\xff\xef")}},
			`{"text":"Here:"},{"inlineData":{"mimeType":"image/png","data":"` + base64.StdEncoding.EncodeToString(llmtest.Pixel) + `"},"thoughtSignature":"U0lH"},{"inlineData":{"mimeType":"audio/wav","data":"UklG/+8="}}`},
		{"a signature that is no base64 could not go back", answer("STOP", `{"text":"a","thoughtSignature":"\"},{"}`),
			[]msg.Part{msg.TextPart("a")}, `{"text":"a"}`},
		{"parts that we know nothing of", answer("STOP", `{"fileData":{"fileUri":"x"}}`, `{}`, `{"text":null}`, `{"text":"a","newThing":{"x":1}}`),
			[]msg.Part{msg.TextPart("a")}, `{"text":"a"}`},
		{"candidates by other numbers", events(`{"candidates":[{"content":{"parts":[{"text":"a"}]},"index":"0"},{"content":{"parts":[{"text":"x"}]},"index":"1"}]}`, `{"candidates":[{"content":{"parts":[{"text":"b"}]},"index":0.0}]}`, `{"candidates":[{"content":{"parts":[{"text":"c"}]},"index":null},{"content":{"parts":[{"text":"x"}]},"index":2.0}],"usageMetadata":{"promptTokenCount":"3"}}`, `{"candidates":[{"finishReason":"STOP"}]}`),
			[]msg.Part{msg.TextPart("abc")}, `{"text":"abc"}`},
		{"other candidates", events(`{"candidates":[{"content":{"parts":[{"text":"a"}]},"index":0},{"content":{"parts":[{"text":"b"}]},"index":1,"finishReason":"STOP"}]}`, `{"candidates":[{"finishReason":"STOP"}]}`),
			[]msg.Part{msg.TextPart("a")}, `{"text":"a"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			turn := hear(t, tt.stream)
			m := turn.Message()
			if diff := cmp.Diff(tt.want, m.Parts); diff != "" {
				t.Errorf("heard (-want +got):\n%s", diff)
			}
			text := ""
			for _, p := range tt.want {
				if p.Kind == msg.Text && p.Text != "" {
					text += "\n" + p.Text
				}
			}
			if got := m.Text(); got != strings.TrimPrefix(text, "\n") {
				t.Errorf("a person reads %q", got)
			}
			r := &llm.Request{Model: "gemini-3-pro", Messages: append(said("hi"), m), Tools: tools4}
			if diff := cmp.Diff(tt.back, modelParts(t, r)); diff != "" {
				t.Errorf("goes back (-want +got):\n%s", diff)
			}
		})
	}
}

// modelParts are the parts of the first content of the model in a request.
func modelParts(t *testing.T, r *llm.Request) string {
	t.Helper()
	body, _, err := New(&llm.Endpoint{Name: "test"}).encode(r)
	if err != nil {
		t.Fatal(err)
	}
	var w struct {
		Contents []struct {
			Role  string
			Parts json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &w); err != nil {
		t.Fatal(err)
	}
	for _, c := range w.Contents {
		if c.Role == "model" {
			return strings.TrimSuffix(strings.TrimPrefix(string(c.Parts), "["), "]")
		}
	}
	return ""
}

// What the API sends, and the calls that it means.
func TestCalls(t *testing.T) {
	old := msg.Message{Role: msg.Assistant, Parts: []msg.Part{callPart("dup_1", "shell", "{}")}}
	function := func(s string) string { return `{"functionCall":` + s + `}` }
	const broken = "Another call of the same answer could not be read, so none was run. Make all of them again, each as a proper function call."
	tests := []struct {
		name   string
		stream string
		finish llm.Finish
		want   []msg.Call
	}{
		{"without an id (BUG-SD-01)", answer("STOP", function(`{"name":"shell","args":{"cmd":"1"}}`), function(`{"name":"shell","args":{"cmd":"1"}}`)), llm.FinishCalls,
			[]msg.Call{{ID: "call_2", Name: "shell", Args: `{"cmd":"1"}`}, {ID: "call_3", Name: "shell", Args: `{"cmd":"1"}`}}},
		{"several in one event", answer("STOP", function(`{"id":"a","name":"shell","args":{"cmd":"1"}}`)+","+function(`{"id":"b","name":"read_file","args":{"path":"p"}}`)), llm.FinishCalls,
			[]msg.Call{{ID: "a", Name: "shell", Args: `{"cmd":"1"}`}, {ID: "b", Name: "read_file", Args: `{"path":"p"}`}}},
		{"ids used twice and before (BUG-CP-13)", answer("STOP", function(`{"id":"dup_1","name":"shell","args":{"cmd":"1"}}`), function(`{"id":"dup_1","name":"shell","args":{"cmd":"2"}}`)), llm.FinishCalls,
			[]msg.Call{{ID: "dup_1_2", Name: "shell", Args: `{"cmd":"1"}`}, {ID: "dup_1_3", Name: "shell", Args: `{"cmd":"2"}`}}},
		{"arguments letter for letter (BUG-AR-05)", answer("STOP", function(`{"id":7,"name":"multiply","args":{ "x": 1337, "y":42.0, "n":12345678901234567890 }}`)), llm.FinishCalls,
			[]msg.Call{{ID: "7", Name: "multiply", Args: `{ "x": 1337, "y":42.0, "n":12345678901234567890 }`}}},
		{"duplicate names are kept for the parser to refuse", answer("STOP", function(`{"id":"a","name":"shell","args":{"cmd":1,"cmd":2}}`)), llm.FinishCalls,
			[]msg.Call{{ID: "a", Name: "shell", Args: `{"cmd":1,"cmd":2}`}}},
		{"none, of a tool without any (BUG-AR-11)", answer("STOP", function(`{"id":"a","name":"todo_list"}`)), llm.FinishCalls,
			[]msg.Call{{ID: "a", Name: "todo_list", Args: "{}"}}},
		{"none, of a tool that could take some", answer("STOP", function(`{"id":"a","name":"delete_records"}`), function(`{"id":"b","name":"delete_records","args":null}`)), llm.FinishCalls,
			[]msg.Call{{ID: "a", Name: "delete_records", Args: "{}"}, {ID: "b", Name: "delete_records", Args: "{}"}}},
		{"none, at the limit: not guessed (BUG-AR-03)", answer("MAX_TOKENS", function(`{"id":"a","name":"delete_records"}`), function(`{"id":"b","name":"delete_records"}`)), llm.FinishLength,
			[]msg.Call{{ID: "a", Name: "delete_records"}, {ID: "b", Name: "delete_records", Fault: "The call was cut off by the limit of output tokens after 0 bytes of its arguments; nothing was run. Make it again with less: write a long text in several calls, or explain less before the call."}}},
		{"none, before an end that nobody knows: not guessed (BUG-AR-03)", answer("TOO_MANY_TOOL_CALLS", function(`{"id":"a","name":"delete_records"}`)), llm.FinishCalls,
			[]msg.Call{{ID: "a", Name: "delete_records"}}},
		{"an empty text, from a proxy: not guessed (BUG-AR-03)", answer("STOP", function(`{"id":"a","name":"delete_records","args":""}`)), llm.FinishCalls,
			[]msg.Call{{ID: "a", Name: "delete_records"}}},
		{"as text, from a proxy", answer("STOP", function(`{"id":"a","name":"shell","args":"{\"cmd\":\"\\u00e9\"}"}`)), llm.FinishCalls,
			[]msg.Call{{ID: "a", Name: "shell", Args: `{"cmd":"\u00e9"}`}}},
		{"cut off by the limit, from a proxy (BUG-AR-03)", answer("MAX_TOKENS", function(`{"id":"a","name":"shell","args":{"cmd":"ls"}}`), function(`{"id":"b","name":"delete_records","args":"{\"where\""}`)), llm.FinishLength,
			[]msg.Call{{ID: "a", Name: "shell", Args: `{"cmd":"ls"}`}, {ID: "b", Name: "delete_records", Args: `{"where"`,
				Fault: "The call was cut off by the limit of output tokens after 8 bytes of its arguments; nothing was run. Make it again with less: write a long text in several calls, or explain less before the call."}}},
		{"whole at the limit", answer("MAX_TOKENS", function(`{"id":"a","name":"shell","args":{"cmd":"ls"}}`)), llm.FinishLength,
			[]msg.Call{{ID: "a", Name: "shell", Args: `{"cmd":"ls"}`}}},
		{"beside one that could not be read", answer("MALFORMED_FUNCTION_CALL", function(`{"id":"a","name":"shell","args":{"cmd":"ls"}}`)), llm.FinishCalls,
			[]msg.Call{{ID: "a", Name: "shell", Args: `{"cmd":"ls"}`, Fault: broken}}},
		{"a call without a name is not dropped (BUG-AR-18)", answer("STOP", function(`{"id":"a","args":{"x":1}}`)), llm.FinishCalls,
			[]msg.Call{{ID: "a", Args: `{"x":1}`, Fault: "The call names no tool; nothing was run. Make it again with the name of a tool."}}},
		{"a phantom", answer("STOP", `{"text":"x"}`, function(`{}`)), llm.FinishStop, nil},
		{"a list, as without alt=sse", `[{"candidates":[{"content":{"parts":[{"functionCall":{"id":"a","name":"shell","args":{}}}]}}]},` + "\r\n" + `{"candidates":[{"finishReason":"STOP"}]}]`, llm.FinishCalls,
			[]msg.Call{{ID: "a", Name: "shell", Args: "{}"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			turn := hear(t, tt.stream, old)
			if diff := cmp.Diff(tt.want, madeCalls(turn)); diff != "" || turn.Finish != tt.finish {
				t.Errorf("finish %s, want %s (-want +got):\n%s", turn.Finish, tt.finish, diff)
			}
		})
	}
}

// Why an answer ends, whether the model should be asked to make its call again,
// and what a person is told.
func TestEnds(t *testing.T) {
	filtered := []string{"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "OTHER", "IMAGE_SAFETY", "MODEL_ARMOR"}
	type end struct {
		finish llm.Finish
		leaked bool
		warned string
	}
	tests := map[string]struct {
		stream string
		want   end
	}{
		"stop":       {answer("STOP", `{"text":"x"}`), end{llm.FinishStop, false, ""}},
		"limit":      {answer("MAX_TOKENS", `{"text":"x"}`), end{llm.FinishLength, false, ""}},
		"each event": {events(`{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}]}`, `{"candidates":[{"content":{"parts":[{"text":"y"}]},"finishReason":"STOP"}]}`), end{llm.FinishStop, false, ""}},
		"malformed": {events(`{"candidates":[{"content":{},"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: print(default_api.shell(\u001b[2J"}]}`),
			end{llm.FinishStop, true, `test ended the answer: "MALFORMED_FUNCTION_CALL" ("Malformed function call: print(default_api.shell(\x1b[2J")`}},
		"unexpected": {answer("UNEXPECTED_TOOL_CALL"), end{llm.FinishStop, true, `test ended the answer: "UNEXPECTED_TOOL_CALL"`}},
		"too many":   {answer("TOO_MANY_TOOL_CALLS", `{"text":"x"}`), end{llm.FinishStop, false, `test ended the answer: "TOO_MANY_TOOL_CALLS"`}},
		"new":        {answer("NEW_REASON", `{"text":"x"}`), end{llm.FinishStop, false, `test ended the answer: "NEW_REASON"`}},
		"unsaid":     {answer("FINISH_REASON_UNSPECIFIED", `{"text":"x"}`) + events(`{"candidates":[{"finishReason":"STOP"}]}`), end{llm.FinishStop, false, ""}},
		"prompt blocked": {events(`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":3}}`),
			end{llm.FinishFiltered, false, `test refused the prompt: "PROHIBITED_CONTENT"`}},
		"prompt blocked, whole answer": {`{"promptFeedback":{"blockReason":"SAFETY","blockReasonMessage":"no"}}`, end{llm.FinishFiltered, false, `test refused the prompt: "SAFETY" ("no")`}},
		"cut after the reason":         {answer("STOP", `{"text":"x"}`) + `data: {"usa`, end{llm.FinishStop, false, ""}},
		"done, from a proxy":           {answer("STOP", `{"text":"x"}`) + "data: [DONE]\n\ndata: oops\n\n", end{llm.FinishStop, false, ""}},
	}
	for _, reason := range filtered {
		tests[reason] = struct {
			stream string
			want   end
		}{answer(reason, `{"text":"x"}`), end{llm.FinishFiltered, false, `test ended the answer: "` + reason + `"`}}
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got end
			c := answering(answers{Body: strings.NewReader(tt.stream)})
			for e, err := range c.Stream(t.Context(), &llm.Request{Model: "m", Messages: said("hi")}) {
				if err != nil {
					t.Fatal(err)
				}
				switch e := e.(type) {
				case llm.Warning:
					got.warned = e.Text
				case llm.Done:
					got.finish, got.leaked = e.Finish, e.Leaked
				}
			}
			if got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// Text may be cut anywhere by a proxy: inside a character, as raw bytes or as
// halves of a pair; also where a signature begins.
func TestCutAnywhere(t *testing.T) {
	const text = "a\"\\\n é 漢 🙂"
	quoted := func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
	}
	for i := 0; i <= len(text); i++ {
		turn := hear(t, answer("STOP", `{"text":`+quoted(text[:i])+`}`, `{"text":`+quoted(text[i:])+`,"thoughtSignature":"U0lH"}`))
		m := turn.Message()
		if m.Text() != text {
			t.Fatalf("cut at %d: %q", i, m.Text())
		}
		body, _, err := answering(answers{}).encode(&llm.Request{Model: "gemini-3-pro", Messages: append(said("hi"), m)})
		if err != nil || strings.Contains(string(body), "\uFFFD") {
			t.Fatalf("cut at %d: %v %s", i, err, body)
		}
	}
	turn := hear(t, answer("STOP", `{"text":"x \ud83d"}`, `{"text":"\ude42 y\ud83d"}`, `{"text":"z\ud83d"}`))
	if m := turn.Message(); m.Text() != "x 🙂 y\uFFFDz\uFFFD" {
		t.Errorf("halves of a pair: %q", m.Text())
	}
}

// Usage comes with every event and grows; a count that an event leaves out is
// not forgotten.
func TestUsage(t *testing.T) {
	tests := map[string]struct {
		chunk string
		want  msg.Usage
	}{
		"all":        {`{"promptTokenCount":100,"cachedContentTokenCount":80,"candidatesTokenCount":20,"thoughtsTokenCount":30,"totalTokenCount":150}`, msg.Usage{Input: 100, Cached: 80, Output: 50, Reasoning: 30}},
		"hosted":     {`{"promptTokenCount":100,"toolUsePromptTokenCount":40,"candidatesTokenCount":20}`, msg.Usage{Input: 140, Output: 20}},
		"left out":   {`{"candidatesTokenCount":20}`, msg.Usage{Input: 10, Output: 20}},
		"odd":        {`{"promptTokenCount":"100","candidatesTokenCount":20.0,"thoughtsTokenCount":null}`, msg.Usage{Input: 100, Output: 20}},
		"hostile":    {`{"promptTokenCount":-1e300,"candidatesTokenCount":{"a":1}}`, msg.Usage{Input: 10, Output: 1}},
		"not at all": {`null`, msg.Usage{Input: 10, Output: 1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			turn := hear(t, events(`{"candidates":[{"content":{"parts":[{"text":"x"}]}}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":1}}`,
				`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":`+tt.chunk+`}`))
			if diff := cmp.Diff(tt.want, turn.Usage); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever bytes come, there is an end: Done or an error, once and last, text
// that is UTF-8, and a message that the API takes back.
func FuzzStream(f *testing.F) {
	f.Add(answer("STOP", `{"text":"R","thought":true}`, `{"text":"T","thoughtSignature":"U0lH"}`))
	f.Add(answer("STOP", `{"functionCall":{"name":"shell","args":{}},"thoughtSignature":"QQ=="}`, `{"executableCode":{}}`, `{"text":"\ud83d"}`))
	f.Add(answer("MALFORMED_FUNCTION_CALL", `{"inlineData":{"mimeType":"image/png","data":"AA"}}`))
	f.Add(`[{"error":{"code":5}}]`)
	f.Add("event: x\r\ndata: [\r\ndata: ]\r\n\r\n")
	f.Fuzz(func(t *testing.T, stream string) {
		c := answering(answers{Body: strings.NewReader(stream)})
		turn := llm.NewTurn("gemini/gemini-3-pro")
		ends := 0
		r := &llm.Request{Model: "gemini-3-pro", Messages: said("hi"), Tools: tools4}
		for e, err := range c.Stream(t.Context(), r) {
			if ends > 0 {
				t.Fatal("something follows the end")
			}
			_, done := e.(llm.Done)
			if done || err != nil {
				ends++
			} else {
				turn.Add(e)
			}
			if x, ok := e.(llm.Text); ok && x.Text != strings.ToValidUTF8(x.Text, "") {
				t.Fatalf("text %q is no UTF-8", x.Text)
			}
		}
		if ends != 1 {
			t.Fatalf("%d ends", ends)
		}
		r.Messages = append(r.Messages, turn.Message())
		if body, _, err := c.encode(r); err != nil || !json.Valid(body) {
			t.Fatalf("going back: %v: %s", err, body)
		}
	})
}

// Many small parts are bounded too: they may be held, and a message keeps each.
func TestManyParts(t *testing.T) {
	for _, first := range []string{"", `{"functionCall":{"name":"f","args":{"a":1}}},`} {
		one := `{"text":"a"},{"text":"b","thought":true},`
		body := `data: {"candidates":[{"content":{"parts":[` + first + strings.Repeat(one, 4999) + `{"text":"c"}]}}]}` + "\n\n"
		c := answering(answers{Body: strings.NewReader(strings.Repeat(body, 20))})
		c.limit = 1 << 20
		turn, err := ask(t.Context(), c, &llm.Request{Model: "gemini-3-pro", Messages: said("hi")})
		if m := turn.Message(); err == nil || !strings.Contains(err.Error(), "longer than") || len(m.Parts) > c.limit/minPiece+10_000 {
			t.Errorf("%d parts, %v", len(m.Parts), err)
		}
	}
}
