package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"capstan/internal/llm/llmtest"
)

var binary string

func TestMain(m *testing.M) {
	if file := os.Getenv(serverVariable); file != "" {
		if err := serve(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	dir, err := os.MkdirTemp("", "capstan-probe-test-")
	if err == nil {
		binary = filepath.Join(dir, "capstan")
		err = build(context.Background(), binary)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// What scripted models do.
const (
	search  = "call tool_search {\"query\": \"book a parcel\"}\n"
	program = "call exec {\"source\": \"text((await tools.mcp__parcels__create_shipment(%s)).output)\"}\n"
	first   = `{order: 4711, reference: 'AB1234', to: {city: 'Utrecht', country: 'NL'}}`
	second  = `{order: 4712, reference: 'AB1235', to: {city: 'Ghent', country: 'BE'}}`
)

// script makes a script of one turn a text.
func script(turns ...string) string {
	var b strings.Builder
	for i, t := range turns {
		fmt.Fprintf(&b, "-- %d --\n%s", i+1, t)
	}
	return b.String()
}

func call(args string) string { return fmt.Sprintf(program, args) }

func says(words ...any) string {
	return "text " + strings.TrimSuffix(fmt.Sprintln(words...), "\n") + "\nusage 1000 20 cached 800\n"
}

// judged runs probes against a scripted model and returns the table.
func judged(t *testing.T, ps []probe, archive string) (bool, string) {
	t.Helper()
	parsed, err := llmtest.Parse([]byte(archive))
	if err != nil {
		t.Fatal(err)
	}
	server, err := llmtest.Listen(parsed)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var out strings.Builder
	good, err := (&rig{dir: t.TempDir(), bin: binary, base: server.URL + "/v1", model: "m"}).all(ctx, ps, &out)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Err(); err != nil && good {
		t.Error(err)
	}
	return good, out.String()
}

// A model that does what the seed wants of it passes every probe. No real model is
// asked: that is what `make probe-responses` is for.
// S1-100 S1-121
func TestAModelThatPasses(t *testing.T) {
	good, table := judged(t, probes, script(
		search, call(first), call(second), says(code(4711), code(4712)),
		search, call(`{order: 4713, reference: 'ab-1236', to: {city: 'Bonn', country: 'DE'}}`), call(`{order: 4713, reference: 'AB1236', to: {city: 'Bonn', country: 'DE'}}`), says(code(4713)),
		`call tool_search {"query": "select:track_shipment"}`+"\n", `call tool_search {"query": "where is a parcel"}`+"\n",
		"call exec {\"source\": \"text((await tools.mcp__parcels__track_shipment({code: 'KX77Q'})).output)\"}\n", says("Zwolle, 07:42"),
	))
	want := `| probe | result | requests | searches | input tokens | of them cached | |
|---|---|---|---|---|---|---|
| deferred-tool | passed | 4 | 1 | 1000 | 800 |  |
| hidden-constraint | passed | 4 | 1 | 1000 | 800 |  |
| unregistered-name | passed | 4 | 2 | 1000 | 800 |  |
`
	if !good || table != want {
		t.Errorf("good: %v\n%s", good, table)
	}
}

// Each way to fail is named.
// S1-100 S1-121
func TestModelsThatFail(t *testing.T) {
	for _, test := range []struct {
		name   string
		probe  int
		script string
		want   []string
	}{
		{"calls without arguments", 0, script(search, call(`{}`), says("I could not book it.")),
			[]string{`create_shipment with {"order": 4711`, "was never called", "the answer lacks " + code(4711)}},
		{"calls without a search", 0, script(call(first), call(second), says(code(4711), code(4712))),
			[]string{"a program uses mcp__parcels__create_shipment before a search returned it"}},
		{"calls with other arguments", 0, script(search, call(first), call(strings.Replace(second, "4712", "4711", 1)), says(code(4711), code(4712))),
			[]string{`call 2 was create_shipment with {"order":4711`}},
		{"calls once too often", 1, script(search, strings.Repeat(call(`{order: 4713, reference: 'AB1236', to: {city: 'Bonn', country: 'DE'}}`), 2), says(code(4713))),
			[]string{"which nobody wanted"}},
		{"makes the answer up", 1, script(search, says("KX1Q")),
			[]string{"no program used a tool that was found", "the answer lacks " + code(4713)}},
		{"does not look for the name", 2, script(`call tool_search {"query": "where is a parcel"}`+"\n",
			"call exec {\"source\": \"text((await tools.mcp__parcels__track_shipment({code: 'KX77Q'})).output)\"}\n", says("Zwolle, 07:42")),
			[]string{"no search was answered with the hint"}},
		{"is not there", 0, script("status 404\nbody\n{\"error\": {\"message\": \"no such model\"}}\n"),
			[]string{"the run failed: exit status 1", "no such model"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			good, table := judged(t, probes[test.probe:test.probe+1], test.script)
			for _, want := range append(test.want, "| FAILED |") {
				if good || !strings.Contains(table, want) {
					t.Errorf("good: %v, want %q\n%s", good, want, table)
				}
			}
		})
	}
}

// What Capstan may get wrong, and no model can show.
func TestFaultsOfTheRequests(t *testing.T) {
	p := probe{}
	used := []item{
		{Type: "function_call", CallID: "1", Name: "tool_search"}, {Type: "function_call_output", CallID: "1", Output: json.RawMessage(`"mcp__parcels__track_shipment"`)},
		{Type: "function_call", CallID: "2", Name: "exec", Arguments: "tools.mcp__parcels__track_shipment"},
	}
	for name, test := range map[string]struct {
		tools []string
		want  string
	}{
		"none":             {[]string{`["exec"]`, `["exec"]`}, ""},
		"a deferred tool":  {[]string{`["track_shipment"]`, `["track_shipment"]`}, "the first request declares track_shipment, which is deferred"},
		"a changed prefix": {[]string{`["exec"]`, `["exec","more"]`}, "request 2 has other tools than the first"},
	} {
		s := &seen{}
		for _, tools := range test.tools {
			s.requests = append(s.requests, request{Tools: json.RawMessage(tools), Input: used})
		}
		if got := strings.Join(p.judge(s), "; "); got != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestNothingToProbe(t *testing.T) {
	for _, env := range []map[string]string{{}, {"OPENAI_API_KEY": "k"}} {
		var out, errs strings.Builder
		if code := run(t.Context(), "", func(k string) string { return env[k] }, &out, &errs); code != 2 || !strings.Contains(errs.String(), "set OPENAI_BASE_URL") {
			t.Errorf("%v: %d %s", env, code, errs.String())
		}
	}
}
