package llmtest

import (
	"bufio"
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
		{"fine, parts", messages(`{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}`), ""},
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
		{"name with a dot", messages(user, strings.Replace(call("a"), `"f"`, `"f.g"`, 1), tool), "does not match pattern"},
		{"arguments no object", messages(user, strings.Replace(call("a"), `"{}"`, `"{"`, 1), tool), "must be in JSON format"},
		{"arguments an object", messages(user, strings.Replace(call("a"), `"{}"`, `{}`, 1), tool), "expected a string"},
		{"empty user", messages(`{"role":"user","content":""}`), "Invalid value for 'content'"},
		{"empty text part", messages(`{"role":"user","content":[{"type":"text","text":""}]}`), "Invalid value for 'content'"},
		{"tiff", messages(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/tiff;base64,AA=="}}]}`), "Invalid value for 'content'"},
		{"empty assistant", messages(user, `{"role":"assistant","content":null}`, user), "Invalid value for 'content'"},
		{"image in a result", messages(user, call("a"), `{"role":"tool","tool_call_id":"a","content":[{"type":"image_url","image_url":{"url":"https://x"}}]}`), "must be text"},
		{"unknown role", messages(`{"role":"robot","content":"x"}`), "Invalid value: 'robot'"},
		{"the assistant last", messages(user, `{"role":"assistant","content":"x"}`), "the last message"},
		{"user with calls", messages(strings.Replace(call("a"), "assistant", "user", 1)), "only the assistant"},
		{"function name", tools(function("a b", object)), "does not match pattern"},
		{"long function name", tools(function(strings.Repeat("a", 65), object)), "does not match pattern"},
		{"function twice", tools(function("f", object), function("f", object)), "Duplicate function name"},
		{"schema of no object", tools(function("f", `{"type":"string"}`)), "type: \"object\""},
		{"schema with anyOf at the root", tools(function("f", `{"type":"object","properties":{},"anyOf":[]}`)), "top level"},
		{"object without properties", tools(function("f", `{"type":"object","properties":{"a":{"type":"object"}}}`)), "missing properties"},
		{"array without items", tools(function("f", `{"type":"object","properties":{"a":{"anyOf":[{"type":"array"}]}}}`)), "missing items"},
		{"boolean schema", tools(function("f", `{"type":"object","properties":{"a":true}}`)), "must be an object"},
		{"output without a name", `{"model":"m","stream":true,"messages":[` + user + `],"response_format":{"type":"json_schema","json_schema":{"schema":{}}}}`, "response_format"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := (&Script{}).Check("chat", []byte(tt.body))
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %q", err, tt.says)
			}
		})
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
