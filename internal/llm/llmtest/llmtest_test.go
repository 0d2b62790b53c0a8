package llmtest

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	testscript.Main(leakless{m}, map[string]func(){"ask": ask})
}

// leakless checks that the tests leave no goroutine behind.
type leakless struct{ m *testing.M }

func (l leakless) Run() int {
	code := l.m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// The testscript command serves a script to a real program.
func TestCommands(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata", Cmds: Commands()})
}

var pixel64 = base64.StdEncoding.EncodeToString(Pixel)

// Each rule of chat completions refuses what breaks it, and a request that
// keeps them all is taken.
func TestChatRules(t *testing.T) {
	call := func(id string) string {
		return `{"role":"assistant","content":null,"tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	}
	const user, tool = `{"role":"user","content":"hi"}`, `{"role":"tool","content":"ok","tool_call_id":"a"}`
	messages := func(list ...string) string {
		return `{"model":"m","stream":true,"messages":[` + strings.Join(list, ",") + `]}`
	}
	tools := func(list ...string) string {
		return `{"model":"m","stream":true,"messages":[` + user + `],"tools":[` + strings.Join(list, ",") + `]}`
	}
	function := func(name, schema string) string {
		return `{"type":"function","function":{"name":"` + name + `","parameters":` + schema + `}}`
	}
	const object = `{"type":"object","properties":{}}`
	tests := []struct{ name, body, says string }{
		{"fine", messages(`{"role":"system","content":"S"}`, user, call("a"), tool, call("b"), strings.Replace(tool, `"a"`, `"b"`, 1), user), ""},
		{"fine, parts", messages(`{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + pixel64 + `"}}]}`), ""},
		{"fine, tools", tools(function("f", object), `{"type":"web_search"}`), ""},
		{"not JSON", `{`, "parse the JSON"},
		{"unknown field", `{"model":"m","stream":true,"messages":[` + user + `],"foo":1}`, "Unrecognized request argument supplied: foo"},
		{"no model", `{"stream":true,"messages":[` + user + `]}`, "must provide a model"},
		{"no messages", messages(), "too short - 'messages'"},
		{"not streamed", `{"model":"m","messages":[` + user + `]}`, "only streams"},
		{"no tools", tools(), "too short - 'tools'"},
		{"choice without tools", `{"model":"m","stream":true,"messages":[` + user + `],"tool_choice":"none"}`, "only allowed when 'tools'"},
		{"call without result, or too late", messages(user, call("a"), user, tool), "did not have response messages: a"},
		{"call without result at the end", messages(user, call("a")), "did not have response messages: a"},
		{"result without call", messages(user, tool), "must be a response"},
		{"result twice", messages(user, call("a"), tool, tool), "must be a response"},
		{"id twice", messages(user, call("a"), tool, call("a"), tool), "duplicate id"},
		{"no id", messages(user, call(""), tool), "Missing required parameter"},
		{"long id", messages(user, call(strings.Repeat("a", 41)), tool), "maximum length 40"},
		{"long cache key", `{"model":"m","stream":true,"messages":[` + user + `],"prompt_cache_key":"` + strings.Repeat("k", 65) + `"}`, "maximum length 64"},
		{"name with a dot", messages(user, strings.Replace(call("a"), `"f"`, `"f.g"`, 1), tool), "does not match pattern"},
		{"arguments no object", messages(user, strings.Replace(call("a"), `"{}"`, `"{"`, 1), tool), "must be in JSON format"},
		{"arguments an object", messages(user, strings.Replace(call("a"), `"{}"`, `{}`, 1), tool), "expected a string"},
		{"empty user", messages(`{"role":"user","content":""}`), "Invalid value for 'content'"},
		{"empty text part", messages(`{"role":"user","content":[{"type":"text","text":""}]}`), "Invalid value for 'content'"},
		{"tiff", messages(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/tiff;base64,AA=="}}]}`), "Invalid value for 'content'"},
		{"no picture", messages(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}`), "Invalid value for 'content'"},
		{"empty assistant", messages(user, `{"role":"assistant","content":null}`, user), "Invalid value for 'content'"},
		{"image in a result", messages(user, call("a"), `{"role":"tool","tool_call_id":"a","content":[{"type":"image_url","image_url":{"url":"https://x"}}]}`), "must be text"},
		{"unknown role", messages(`{"role":"robot","content":"x"}`), "Invalid value: 'robot'"},
		{"the assistant last", messages(user, `{"role":"assistant","content":"x"}`), "the last message"},
		{"two of the user", messages(user, user), "conversation roles must alternate"},
		{"two of the assistant", messages(user, `{"role":"assistant","content":"x"}`, `{"role":"assistant","content":"y"}`, user), "conversation roles must alternate"},
		{"user with calls", messages(strings.Replace(call("a"), "assistant", "user", 1)), "only the assistant"},
		{"function name", tools(function("a b", object)), "does not match pattern"},
		{"long function name", tools(function(strings.Repeat("a", 65), object)), "does not match pattern"},
		{"function twice", tools(function("f", object), function("f", object)), "Duplicate function name"},
		{"schema of no object", tools(function("f", `{"type":"string"}`)), "type: \"object\""},
		{"schema with anyOf at the root", tools(function("f", `{"type":"object","properties":{},"anyOf":[]}`)), "top level"},
		{"object without properties", tools(function("f", `{"type":"object","properties":{"a":{"type":"object"}}}`)), "missing properties"},
		{"array without items", tools(function("f", `{"type":"object","properties":{"a":{"anyOf":[{"type":"array"}]}}}`)), "missing items"},
		{"boolean schema", tools(function("f", `{"type":"object","properties":{"a":true}}`)), "must be an object"},
		{"too many tools", tools(strings.Repeat(`{"type":"web_search"},`, 128) + function("f", object)), "maximum length 128"},
		{"a long description", tools(strings.Replace(function("f", object), `"name"`, `"description":"`+strings.Repeat("語", 51)+`","name"`, 1)), "'tools[0].function.description': string too long. Expected a string with maximum length 50, but got a string with length 51"},
		{"output without a name", `{"model":"m","stream":true,"messages":[` + user + `],"response_format":{"type":"json_schema","json_schema":{"schema":{}}}}`, "response_format"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := (&Script{IDs: 40, Descriptions: 50}).Check("chat", []byte(tt.body))
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %q", err, tt.says)
			}
		})
	}
}

// Each rule of the Messages API refuses what breaks it, and a request that
// keeps them all is taken.
func TestAnthropicRules(t *testing.T) {
	const (
		user   = `{"role":"user","content":"hi"}`
		say    = `{"role":"assistant","content":[{"type":"text","text":"ok"}]}`
		use    = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`
		tool   = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"ok"}]}`
		f      = `{"name":"f","input_schema":{"type":"object"}}`
		search = `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`
		found  = `{"type":"web_search_tool_result","tool_use_id":"s","content":[]}`
		budget = `"thinking":{"type":"enabled","budget_tokens":1024}`
	)
	request := func(more string, list ...string) string {
		if more != "" {
			more = "," + more
		}
		return `{"model":"m","max_tokens":2000,"stream":true,"messages":[` + strings.Join(list, ",") + `]` + more + `}`
	}
	with := func(list ...string) string { return request(`"tools":[`+f+`]`, list...) }
	tools := func(list ...string) string { return request(`"tools":[`+strings.Join(list, ",")+`]`, user) }
	schema := func(s string) string { return tools(`{"name":"f","input_schema":` + s + `}`) }
	assistant := func(blocks ...string) string {
		return `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`
	}
	content := func(blocks ...string) string { return `{"role":"user","content":[` + strings.Join(blocks, ",") + `]}` }
	image := func(kind, data string) string {
		return `{"type":"image","source":{"type":"base64","media_type":"` + kind + `","data":"` + data + `"}}`
	}
	png := pixel64
	cached := `{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}`
	thought := `{"type":"thinking","thinking":"T","signature":"` + Signature("T") + `"}`
	text := `{"type":"text","text":"x"}`
	tests := []struct{ name, body, says string }{
		{"fine", with(user, use, tool, say, user), ""},
		{"fine, thinking", request(`"tools":[`+f+`],`+budget, user, assistant(thought, use[len(`{"role":"assistant","content":[`):len(use)-2]), tool), ""},
		{"fine, media", with(content(image("image/png", png)), use, content(`{"type":"tool_result","tool_use_id":"a","content":[`+image("image/png", png)+`]}`, text)), ""},
		{"fine, a search", with(user, assistant(search, found, text), user), ""},
		{"fine, a search that goes on", with(user, assistant(search)), ""},
		{"fine, output", request(`"output_config":{"effort":"low","format":{"type":"json_schema","schema":{"type":"object","properties":{"minimum":{"type":"string"}},"additionalProperties":false}}}`, user), ""},
		{"not JSON", `{`, "not valid JSON"},
		{"unknown field", request(`"foo":1`, user), "foo: Extra inputs"},
		{"no model", strings.Replace(with(user), `"m"`, `""`, 1), "model: Field required"},
		{"no max_tokens", strings.Replace(with(user), `"max_tokens":2000,`, "", 1), "max_tokens: Field required"},
		{"no tokens", strings.Replace(with(user), `2000`, "0", 1), "greater than or equal to 1"},
		{"no messages", with(), "at least one message"},
		{"not streamed", strings.Replace(with(user), `"stream":true,`, "", 1), "only streams"},
		{"five marks", with(content(cached, cached, cached, cached, cached)), "A maximum of 4 blocks"},
		{"empty system", request(`"system":[{"type":"text","text":" "}]`, user), "system.0"},
		{"the assistant first", with(say, user), "roles must alternate"},
		{"two users", with(user, user), "roles must alternate"},
		{"unknown role", with(`{"role":"system","content":"x"}`), "roles must alternate"},
		{"the assistant last", with(user, say), "prefill"},
		{"white space last", with(user, assistant(search, found, `{"type":"text","text":"x "}`)), "trailing whitespace"},
		{"empty content", with(content()), "non-empty content"},
		{"empty text", with(content(`{"type":"text","text":" \n"}`)), "non-whitespace"},
		{"call without result", with(user, use, user), "were found without `tool_result`"},
		{"result without call", with(user, say, tool), "unexpected `tool_use_id`"},
		{"result twice", with(user, use, content(tool[len(`{"role":"user","content":[`):len(tool)-2], tool[len(`{"role":"user","content":[`):len(tool)-2])), "unexpected `tool_use_id`"},
		{"result after text", with(user, use, content(text, tool[len(`{"role":"user","content":[`):len(tool)-2])), "must come first"},
		{"id twice", with(user, use, tool, use, tool), "must be unique"},
		{"id with a dot", with(user, strings.Replace(use, `"a"`, `"a.b"`, 1), tool), "tool_use.id"},
		{"no id", with(user, strings.Replace(use, `"a"`, `""`, 1), tool), "tool_use.id"},
		{"name with a dot", with(user, strings.Replace(use, `"f"`, `"f.g"`, 1), tool), "tool_use.name"},
		{"input no object", with(user, strings.Replace(use, `{}`, `"{}"`, 1), tool), "valid dictionary"},
		{"calls without tools", request("", user, use, tool), "must define tools"},
		{"thinking last", with(user, assistant(text, thought), user), "cannot be `thinking`"},
		{"thinking changed", with(user, assistant(strings.Replace(thought, `"T"`, `"U"`, 1), text), user), "Invalid `signature`"},
		{"thinking without signature", with(user, assistant(`{"type":"thinking","thinking":"T"}`, text), user), "Invalid `signature`"},
		{"hidden thinking without data", with(user, assistant(`{"type":"redacted_thinking"}`, text), user), "data: Field required"},
		{"thinking marked", with(user, assistant(strings.Replace(thought, `{`, `{"cache_control":{"type":"ephemeral"},`, 1), text), user), "cache_control"},
		{"thinking not first", request(`"tools":[`+f+`],`+budget, user, use, tool), "must start with a thinking block"},
		{"thinking too little", request(strings.Replace(budget, "1024", "1000", 1), user), "1024"},
		{"thinking too much", request(strings.Replace(budget, "1024", "2000", 1), user), "must be greater"},
		{"thinking of no kind", request(`"thinking":{"type":"hard"}`, user), "expected tags"},
		{"thinking and forced", request(`"tools":[`+f+`],"tool_choice":{"type":"any"},`+budget, user), "forces tool use"},
		{"thinking and temperature", request(`"temperature":0,`+budget, user), "temperature"},
		{"choice without tools", request(`"tool_choice":{"type":"none"}`, user), "while providing tools"},
		{"choice of no kind", request(`"tools":[`+f+`],"tool_choice":{"type":"required"}`, user), "expected tags"},
		{"image of the user's in an answer", with(user, assistant(image("image/png", png)), user), "expected tags"},
		{"tiff", with(content(image("image/tiff", png))), "media_type"},
		{"too many images", with(content(strings.TrimSuffix(strings.Repeat(image("image/png", png)+",", 101), ","))), "Too much media"},
		{"a PNG that is cut off", with(content(image("image/png", "iVBORw0KGgo="))), "Could not process image"},
		{"a PNG that is none", with(content(image("image/png", "AAAA"))), "do not match"},
		{"a PDF as an image", with(content(image("application/pdf", "JVBERg=="))), "media_type"},
		{"a link", with(content(`{"type":"image","source":{"type":"url","url":"https://x"}}`)), "source"},
		{"an image that is too large", with(content(image("image/png", base64.StdEncoding.EncodeToString(append(bytes.Clone(Pixel), make([]byte, 5<<20/4*3)...))))), "exceeds 5 MB"},
		{"media in a failed result", with(user, use, content(`{"type":"tool_result","tool_use_id":"a","is_error":true,"content":[`+image("image/png", png)+`]}`)), "must be type"},
		{"empty text in a result", with(user, use, content(`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":""}]}`)), "non-whitespace"},
		{"a search without result", with(user, assistant(search, text), user, say, user), "without a corresponding"},
		{"a result without search", with(user, assistant(found, text), user), "unexpected `tool_use_id`"},
		{"tool name", tools(`{"name":"a b","input_schema":{"type":"object"}}`), "custom.name"},
		{"long tool name", tools(`{"name":"` + strings.Repeat("a", 65) + `","input_schema":{"type":"object"}}`), "custom.name"},
		{"tool twice", tools(f, f), "must be unique"},
		{"schema of no object", schema(`{"type":"string"}`), "should be 'object'"},
		{"no schema", tools(`{"name":"f"}`), "should be 'object'"},
		{"schema with anyOf at the root", schema(`{"type":"object","anyOf":[]}`), "top level"},
		{"property name", schema(`{"type":"object","properties":{"a":{"type":"array","items":{"properties":{"$b":{}}}}}}`), "Property keys"},
		{"effort", request(`"output_config":{"effort":"huge"}`, user), "effort"},
		{"open object in the output", request(`"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}`, user), "additionalProperties"},
		{"bounds in the output", request(`"output_config":{"format":{"type":"json_schema","schema":{"type":"integer","minimum":1}}}`, user), "not supported"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := (&Script{}).Check("anthropic", []byte(tt.body))
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %q", err, tt.says)
			}
		})
	}
	if err := (&Script{Models: []string{"n"}}).Check("anthropic", []byte(with(user))); err == nil || err.Error() != "HTTP 404: model: m" {
		t.Errorf("unknown model: %v", err)
	}
}

// Over a connection: the version is demanded, errors have the API's form, the
// models are listed, and a turn is streamed in the documented order.
func TestAnthropicServer(t *testing.T) {
	s, err := Parse([]byte("-- server --\nkey k\nmodels m\n-- one --\nreasoning R\ntext ü\ncall f #c {\"a\":1}\nusage 10 5 cached 4 reasoning 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	server, err := Listen(s)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	do := func(method, path, body string, headers ...string) string {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
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
		return fmt.Sprint(resp.StatusCode, " ", string(out))
	}
	const hi = `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}`
	version := []string{"anthropic-version", "2023-06-01", "x-api-key", "k"}
	for _, tt := range []struct{ got, want string }{
		{do("POST", "/v1/messages", hi, "anthropic-version", "2023-06-01"), `401 {"type":"error","error":{"type":"authentication_error","message":"Incorrect API key provided."},"request_id":"req_test"}`},
		{do("POST", "/v1/messages", hi, "Authorization", "Bearer k"), `400 {"type":"error","error":{"type":"invalid_request_error","message":"anthropic-version: header is required"},"request_id":"req_test"}`},
		{do("GET", "/v1/models", "", version...), `200 {"data":[{"type":"model","id":"m","display_name":"Test","created_at":"1970-01-01T00:00:00Z"}],"has_more":false,"first_id":null,"last_id":null}`},
		{do("POST", "/v1/messages", hi, version...), `200 event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"test","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":6,"cache_creation_input_tokens":0,"cache_read_input_tokens":4,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: ping
data: {"type":"ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"R"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"` + Signature("R") + `"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"ü"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{"}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"a"}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\":1"}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":5,"output_tokens_details":{"thinking_tokens":2}}}

event: message_stop
data: {"type":"message_stop"}

`},
	} {
		if tt.got != tt.want {
			t.Errorf("got  %s\nwant %s", tt.got, tt.want)
		}
	}
	want := "request 1: anthropic-version: header is required"
	if err := server.Err(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestParseFaults(t *testing.T) {
	for script, says := range map[string]string{
		"":                                 "it has no turns",
		"-- a --\ntext x\nfoo\n":           `a, line 2: no directive "foo"`,
		"-- a --\nwant (\n":                "a, line 1: error parsing regexp",
		"-- a --\ntext \"x\n":              "not a quoted Go string",
		"-- a --\nusage 1\n":               "usage is IN OUT",
		"-- a --\nusage 1 2 foo 3\n":       `counts no "foo"`,
		"-- a --\ncall\n":                  "a call is NAME",
		"-- a --\nheader x\n":              "a header is NAME: VALUE",
		"-- a --\nstatus x\n":              "invalid syntax",
		"-- server --\nfoo\n-- a --\n":     `server, line 1: no setting "foo"`,
		"-- server --\nlimit x\n-- a --\n": "server, line 1",
	} {
		if _, err := Parse([]byte(script)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, want %q", script, err, says)
		}
	}
}

// The server says what did not go as the script has it.
func TestServerErr(t *testing.T) {
	s, err := Parse([]byte("-- server --\nkey k\nmodels m\nlimit 500\n-- one --\nwant hello\ntext x\n-- two --\nstatus 429\nheader Retry-After: 1\nbody\n{\"slow\":1}\n-- three --\nraw\ndata: raw\n\n-- four --\ntext never\n"))
	if err != nil {
		t.Fatal(err)
	}
	server, err := Listen(s)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	post := func(key, body string) (string, http.Header) {
		req, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
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
		return fmt.Sprint(resp.StatusCode, " ", string(out)), resp.Header
	}
	hi := `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`
	for i, tt := range []struct{ key, body, says string }{
		{"wrong", hi, "401 "},
		{"k", strings.Replace(hi, `"m"`, `"n"`, 1), "404 "},
		{"k", strings.Replace(hi, "hi", strings.Repeat("x", 500), 1), "413 "},
		{"k", `{}`, "400 "},
		{"k", hi, "400 {\"error\":{\"message\":\"the script wants (?s)hello"},
		{"k", hi, "429 {\"slow\":1}"},
		{"k", hi, "200 data: raw\n\n"},
	} {
		got, header := post(tt.key, tt.body)
		if !strings.HasPrefix(got, tt.says) {
			t.Errorf("request %d: %s, want %s", i, got, tt.says)
		}
		if strings.HasPrefix(got, "429") && header.Get("Retry-After") != "1" {
			t.Errorf("request %d: headers %v", i, header)
		}
	}
	want := `request 3: you must provide a model parameter
request 4 (one): the body does not match (?s)hello
the last 1 turns of the script were not asked for, from "four" on`
	if err := server.Err(); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// ask is a program under test: it sends what it is given to the endpoint and
// prints the answer.
func ask() {
	in, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	resp, err := http.Post(os.Getenv("OPENAI_BASE_URL")+"/chat/completions", "application/json", strings.NewReader(in))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(os.Stdout, resp.Body)
}
