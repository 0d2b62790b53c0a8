package llmtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each rule of the Responses API refuses what breaks it, and a request that
// keeps them all is taken.
func TestResponsesRules(t *testing.T) {
	call := func(id string) string {
		return `{"type":"function_call","call_id":"` + id + `","name":"f","arguments":"{}"}`
	}
	output := func(id string) string {
		return `{"type":"function_call_output","call_id":"` + id + `","output":"ok"}`
	}
	const user, assistant = `{"role":"user","content":"hi"}`, `{"type":"message","role":"assistant","content":"T"}`
	const head = `{"model":"m","stream":true,"store":false,"input":`
	input := func(list ...string) string { return head + `[` + strings.Join(list, ",") + `]}` }
	with := func(more string) string { return head + `"hi",` + more + `}` }
	function := func(name, schema string) string {
		return with(`"tools":[{"type":"function","strict":false,"name":"` + name + `","parameters":` + schema + `}]`)
	}
	content := func(parts string) string { return input(`{"role":"user","content":[` + parts + `]}`) }
	reasoning := func(replace ...string) string {
		item := string(ReasoningItem("rs_1", "S"))
		return strings.NewReplacer(append(replace, `"id":"rs_1",`, "")...).Replace(item)
	}
	const object = `{"type":"object","properties":{}}`
	tests := []struct{ name, body, says string }{
		{"fine", input(user, reasoning(), `{"type":"web_search_call","status":"completed"}`, reasoning(), call("a"), call("b"), output("b"), output("a"), reasoning(), assistant, user), ""},
		{"fine, text", with(`"instructions":"S","max_output_tokens":16,"include":["reasoning.encrypted_content"],"reasoning":{"effort":"low","summary":"auto"},"prompt_cache_key":"k"`), ""},
		{"a long description", strings.Replace(function("f", object), `"name"`, `"description":"`+strings.Repeat("x", 51)+`","name"`, 1), "'tools[0].description': string too long. Expected a string with maximum length 50, but got a string with length 51"},
		{"fine, parts", content(`{"type":"input_text","text":"x"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,` + pixel64 + `"},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,AA=="}`), ""},
		{"fine, tools", with(`"tools":[{"type":"function","strict":false,"name":"f","parameters":` + object + `},{"type":"web_search"}],"tool_choice":"none"`), ""},
		{"fine, strict", with(`"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}}]`), ""},
		{"fine, media in a result", input(call("a"), `{"type":"function_call_output","call_id":"a","output":[{"type":"input_image","image_url":"https://x"}]}`), ""},
		{"fine, ids", input(`{"type":"message","id":"msg_1","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"x","annotations":[]}]}`), ""},
		{"not JSON", `{`, "parse the JSON"},
		{"wrong type", with(`"include":"x"`), "Invalid type"},
		{"unknown field", with(`"foo":1`), "Unknown parameter: 'foo'"},
		{"messages", `{"model":"m","stream":true,"store":false,"messages":[` + user + `]}`, "Unknown parameter: 'messages'"},
		{"stop", with(`"stop":["x"]`), "Unknown parameter: 'stop'"},
		{"an earlier answer", with(`"previous_response_id":"resp_1"`), "Unknown parameter"},
		{"no model", `{"stream":true,"store":false,"input":"hi"}`, "Missing required parameter: 'model'"},
		{"no input", `{"model":"m","stream":true,"store":false}`, "Invalid type for 'input'"},
		{"empty input", input(), "Invalid type for 'input'"},
		{"not streamed", `{"model":"m","store":false,"input":"hi"}`, "only streams"},
		{"stored", `{"model":"m","stream":true,"input":"hi"}`, "'store' must be false"},
		{"too few tokens", with(`"max_output_tokens":15`), "Expected a value >= 16"},
		{"long cache key", with(`"prompt_cache_key":"` + strings.Repeat("k", 65) + `"`), "maximum length 64"},
		{"unknown include", with(`"include":["x"]`), "Invalid value: 'x'"},
		{"unknown reasoning", with(`"reasoning":{"x":"y"}`), "'reasoning.x'"},
		{"choice without tools", with(`"tool_choice":"required"`), "must be specified with 'tools'"},
		{"output without a name", with(`"text":{"format":{"type":"json_schema","schema":{}}}`), "text.format"},
		{"call without result", input(user, call("a"), user), "No tool output found for function call a"},
		{"result without call", input(user, output("a")), "No tool call found for function call output with call_id a"},
		{"result before its call", input(user, output("a"), call("a")), "No tool call found"},
		{"result twice", input(user, call("a"), output("a"), output("a")), "Duplicate function call output"},
		{"call twice", input(user, call("a"), output("a"), call("a"), output("a")), "Duplicate function call with call_id a"},
		{"result by the id of the item", input(user, strings.Replace(call("a"), `"type"`, `"id":"fc_1","type"`, 1), output("fc_1")), "No tool call found"},
		{"no call_id", input(user, call(""), output("")), "Missing required parameter: 'input[1].call_id'"},
		{"long call_id", input(user, call(strings.Repeat("a", 65))), "call_id': string too long"},
		{"name with a dot", input(user, strings.Replace(call("a"), `"f"`, `"f.g"`, 1)), "does not match pattern"},
		{"arguments no object", input(user, strings.Replace(call("a"), `"{}"`, `"{"`, 1)), "must be a JSON object"},
		{"arguments an object", input(user, strings.Replace(call("a"), `"{}"`, `{}`, 1)), "expected a string"},
		{"no output", input(user, call("a"), `{"type":"function_call_output","call_id":"a"}`), "Invalid type for 'input[2].output'"},
		{"empty output", input(user, call("a"), `{"type":"function_call_output","call_id":"a","output":[]}`), "Invalid type for 'input[2].output'"},
		{"wrong prefix", input(user, strings.Replace(call("a"), `"type"`, `"id":"call_1","type"`, 1), output("a")), "Expected an ID that begins with 'fc'"},
		{"long id", input(user, strings.Replace(call("a"), `"type"`, `"id":"fc_`+strings.Repeat("1", 64)+`","type"`, 1), output("a")), "id': string too long"},
		{"id twice", input(user, strings.Replace(call("a"), `"type"`, `"id":"fc_1","type"`, 1), strings.Replace(call("b"), `"type"`, `"id":"fc_1","type"`, 1)), "Duplicate item found with id fc_1"},
		{"reasoning last", input(user, reasoning()), "without its required following item"},
		{"reasoning before the user", input(user, reasoning(), user), "without its required following item"},
		{"reasoning before a result", input(user, call("a"), reasoning(), output("a")), "without its required following item"},
		{"reasoning by id", input(user, string(ReasoningItem("rs_1", "S")), assistant), "Item with id 'rs_1' not found"},
		{"reasoning without its content", input(user, `{"type":"reasoning","summary":[],"encrypted_content":null}`, assistant), "encrypted_content"},
		{"reasoning without a summary", input(user, `{"type":"reasoning","encrypted_content":"x"}`, assistant), "'input[1].summary'"},
		{"reasoning that was changed", input(user, reasoning(`"S"`, `"other"`), assistant), "could not be verified"},
		{"summary of another type", input(user, reasoning(`summary_text`, `text`), assistant), "Invalid value: 'text'"},
		{"empty user", input(`{"role":"user","content":""}`), "Invalid value for 'input[0].content'"},
		{"empty text part", content(`{"type":"input_text","text":""}`), "Invalid value for 'input[0].content'"},
		{"no parts", content(``), "Invalid value for 'input[0].content'"},
		{"a part of chat completions", content(`{"type":"text","text":"x"}`), "Invalid value for 'input[0].content'"},
		{"no picture", content(`{"type":"input_image","image_url":"data:image/png;base64,AA=="}`), "Invalid value for 'input[0].content'"},
		{"tiff", content(`{"type":"input_image","image_url":"data:image/tiff;base64,AA=="}`), "Invalid value for 'input[0].content'"},
		{"file without a name", content(`{"type":"input_file","file_data":"data:application/pdf;base64,AA=="}`), "Invalid value for 'input[0].content'"},
		{"input of the assistant", input(`{"role":"assistant","content":[{"type":"input_text","text":"x"}]}`), "Invalid value for 'input[0].content'"},
		{"phase of the user", input(`{"role":"user","content":"x","phase":"commentary"}`), "('input[0].phase')"},
		{"unknown phase", input(`{"role":"assistant","content":"x","phase":"x"}`), "('input[0].phase')"},
		{"role tool", input(`{"role":"tool","content":"x"}`), "Invalid value: 'tool'"},
		{"unknown item", input(`{"type":"item_reference","id":""}`), "Invalid 'input[0].id'"},
		{"unknown item without an id", input(`{"type":"x"}`), "('input[0].type')"},
		{"function name", function("a b", object), "does not match pattern"},
		{"no function name", function("", object), "Missing required parameter: 'tools[0].name'"},
		{"tool of chat completions", with(`"tools":[{"type":"function","function":{"name":"f","parameters":{}}}]`), "Missing required parameter: 'tools[0].name'"},
		{"tool without a type", with(`"tools":[{"name":"f"}]`), "Missing required parameter: 'tools[0].type'"},
		{"too many tools", with(`"tools":[` + strings.TrimSuffix(strings.Repeat(`{"type":"x"},`, 129), ",") + `]`), "maximum length 128"},
		{"function twice", with(`"tools":[{"type":"function","strict":false,"name":"f","parameters":` + object + `},{"type":"function","strict":false,"name":"f","parameters":` + object + `}]`), "Duplicate function name"},
		{"schema of no object", function("f", `{"type":"string"}`), "type: \"object\""},
		{"object without properties", function("f", `{"type":"object"}`), "missing properties"},
		{"strict, because nothing is said", with(`"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}}]`), "Missing 'a'"},
		{"strict, open", with(`"tools":[{"type":"function","strict":true,"name":"f","parameters":` + object + `}]`), "additionalProperties"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := (&Script{Descriptions: 50}).Check("responses", []byte(tt.body))
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %q\n%s", err, tt.says, tt.body)
			}
		})
	}
}

// The events of an answer are those that the API documents, in its order and
// numbered; an error is the API's.
func TestResponsesAnswer(t *testing.T) {
	s, err := Parse([]byte("-- server --\nmodels m\n-- one --\nreasoning R\ntext T\ncall f #c1 {}\nusage 5 6 cached 4 reasoning 3\n-- two --\ntext T\nfinish length\n"))
	if err != nil {
		t.Fatal(err)
	}
	server, err := Listen(s)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	post := func(model string) string {
		req, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/v1/responses", strings.NewReader(`{"model":"`+model+`","stream":true,"store":false,"input":"hi"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Close = true
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		out, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	var got []string
	var last struct {
		Response struct {
			Status string
			Output []struct{ Type string }
			Usage  struct {
				Total int `json:"total_tokens"`
			}
		}
	}
	for i, frame := range strings.Split(strings.TrimSuffix(post("m"), "\n\n"), "\n\n") {
		name, data, _ := strings.Cut(frame, "\n")
		var e struct {
			Type     string `json:"type"`
			Sequence int    `json:"sequence_number"`
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(data, "data: ")), &e); err != nil || e.Sequence != i || name != "event: "+e.Type {
			t.Errorf("event %d: %v: %s", i, err, frame)
		}
		got = append(got, strings.TrimPrefix(e.Type, "response."))
		_ = json.Unmarshal([]byte(strings.TrimPrefix(data, "data: ")), &last) // checked above
	}
	want := strings.Fields(`created in_progress
		output_item.added reasoning_summary_part.added reasoning_summary_text.delta reasoning_summary_text.done reasoning_summary_part.done output_item.done
		output_item.added content_part.added output_text.delta output_text.done content_part.done output_item.done
		output_item.added function_call_arguments.delta function_call_arguments.delta function_call_arguments.done output_item.done
		completed`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if text := fmt.Sprint(last); text != "{{completed [{reasoning} {message} {function_call}] {11}}}" {
		t.Errorf("the end is %s", text)
	}
	if end := post("m"); !strings.Contains(end, "event: response.incomplete\n") || !strings.Contains(end, `"incomplete_details":{"reason":"max_output_tokens"}`) {
		t.Errorf("cut off: %s", end)
	}
	if got := post("x"); got != `{"error":{"message":"The requested model 'x' does not exist.","type":"invalid_request_error","param":null,"code":"model_not_found"}}` {
		t.Errorf("unknown model: %s", got)
	}
	if err := server.Err(); err != nil {
		t.Error(err)
	}
}
