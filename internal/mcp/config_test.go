package mcp

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParseFile(t *testing.T) {
	src := `{
		// a comment
		"mcpServers": {
			"files": {"command": "npx", "args": ["-y", "x", "${HOME}"], "env": {"A": "${B:-c}"}, "cwd": "sub",
				"includeTools": ["read_*"], "excludeTools": ["read_all"], "trust": true, "timeout": 1500, "startupTimeout": 60000,
				"alwaysLoad": true, "description": "my files"},
			"web": {"url": "https://h/mcp", "headers": {"Authorization": "Bearer ${KEY}"}},
			"old": {"url": "https://h/sse"},
			"typed": {"type": "streamable-http", "url": "https://h/sse"},
			"gemini": {"httpUrl": "https://h/x"},
			"off": {"command": "x", "disabled": true},
		},
	}`
	got, faults := ParseFile([]byte(src), ".mcp.json")
	if len(faults) > 0 {
		t.Errorf("faults: %v", faults)
	}
	want := []Config{
		{Name: "files", Type: Stdio, From: ".mcp.json", Command: "npx", Args: []string{"-y", "x", "${HOME}"}, Env: map[string]string{"A": "${B:-c}"}, Cwd: "sub",
			Include: []string{"read_*"}, Exclude: []string{"read_all"}, Trust: true, Timeout: 1500 * time.Millisecond, StartupTimeout: time.Minute, AlwaysLoad: true, Description: "my files"},
		{Name: "gemini", Type: HTTP, From: ".mcp.json", URL: "https://h/x"},
		{Name: "old", Type: SSE, From: ".mcp.json", URL: "https://h/sse", guessed: true},
		{Name: "typed", Type: HTTP, From: ".mcp.json", URL: "https://h/sse"},
		{Name: "web", Type: HTTP, From: ".mcp.json", URL: "https://h/mcp", Headers: map[string]string{"Authorization": "Bearer ${KEY}"}, guessed: true},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Config{})); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
}

// Each fault says where it is, and costs its own server only.
func TestFaultsOfConfigurations(t *testing.T) {
	good := `"good": {"command": "x"}`
	for _, test := range []struct{ server, want string }{
		{`"bad": []`, `f: mcpServers.bad: expected an object such as`},
		{`"bad": {"command": ["x"]}`, `f: mcpServers.bad.command: expected a string, found ["x"]`},
		{`"bad": {"command": null}`, `f: mcpServers.bad.command: expected a string, found null`},
		{`"bad": {"command": "x", "args": "y"}`, `f: mcpServers.bad.args: expected a list of strings, found something else`},
		{`"bad": {"command": "x", "env": {"KEY": 12345}}`, `f: mcpServers.bad.env: expected an object of strings, found something else`},
		{`"bad": {"command": "x", "env": {"A=B": "c"}}`, `f: mcpServers.bad.env: "A=B" cannot be the name of a variable`},
		{`"bad": {}`, `f: mcpServers.bad: it has neither "command" nor "url"`},
		{`"bad": {"command": "x", "url": "y"}`, `f: mcpServers.bad: it has both "command" and "url"`},
		{`"bad": {"type": "stdio", "url": "y"}`, `f: mcpServers.bad.command: is missing`},
		{`"bad": {"type": "http", "command": "y"}`, `f: mcpServers.bad.url: is missing`},
		{`"bad": {"type": "ws", "url": "y"}`, `f: mcpServers.bad.type: expected stdio, http or sse, found "ws"`},
		{`"bad": {"command": "x", "timeout": "5s"}`, `f: mcpServers.bad.timeout: expected whole milliseconds`},
		{`"bad": {"command": "x", "timeout": 1.5}`, `f: mcpServers.bad.timeout: expected whole milliseconds`},
		{`"bad": {"command": "x", "startupTimeout": 0}`, `f: mcpServers.bad.startupTimeout: expected whole milliseconds`},
		{`"bad\u0007": {"command": "x"}`, `the name has characters that cannot be shown`},
		{`" ": {"command": "x"}`, `a server needs a name`},
	} {
		got, faults := ParseFile([]byte(`{"mcpServers": {`+good+`,`+test.server+`}}`), "f")
		if len(got) != 1 || got[0].Name != "good" {
			t.Errorf("%s: servers %v", test.server, got)
		}
		if len(faults) != 1 || faults[0].Warning || !strings.Contains(faults[0].Error(), test.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", test.server, faults, test.want)
		}
	}
	for src, want := range map[string]string{
		`{"mcpServers": {` + good + `, ` + good + `}}`: "duplicate",
		`{"mcpServers": {` + good:                      "it is not JSON: line 1",
		`{"servers": {}}`:                              `there is no "mcpServers" in it`,
		`[]`:                                           "expected an object with mcpServers",
		`{"mcpServers": 1}`:                            "f: mcpServers: expected an object of servers",
		"\xff":                                         "it is not UTF-8",
	} {
		if got, faults := ParseFile([]byte(src), "f"); len(got) > 0 || len(faults) != 1 || !strings.Contains(faults[0].Error(), want) {
			t.Errorf("%s: %v, %v", src, got, faults)
		}
	}
	if got, faults := ParseFile([]byte(" \n"), "f"); got != nil || faults != nil {
		t.Errorf("empty: %v, %v", got, faults)
	}
}

func TestUnknownKeysWarn(t *testing.T) {
	got, faults := Parse([]byte(`{"s": {"command": "x", "include_tools": [], "wat": 1}}`), "f")
	want := []Fault{
		{Where: "f", Path: "mcpServers.s.include_tools", Server: "s", Warning: true, Message: `is not known and has no effect; is "includeTools" meant?`},
		{Where: "f", Path: "mcpServers.s.wat", Server: "s", Warning: true, Message: "is not known and has no effect"},
	}
	if diff := cmp.Diff(want, faults); diff != "" || len(got) != 1 {
		t.Errorf("%v (-want +got):\n%s", got, diff)
	}
}

func TestMergeTakesTheNearest(t *testing.T) {
	far := []Config{{Name: "a", From: "far", Env: map[string]string{"KEY": "1"}}, {Name: "b", From: "far"}}
	near := []Config{{Name: "a", From: "near"}}
	got, faults := Merge(far, near)
	if diff := cmp.Diff([]Config{{Name: "a", From: "near"}, {Name: "b", From: "far"}}, got, cmpopts.IgnoreUnexported(Config{})); diff != "" {
		t.Error(diff)
	}
	if len(faults) != 1 || faults[0].Error() != "near: mcpServers.a: hides the server of the same name in far" {
		t.Errorf("%v", faults)
	}
}

func TestExpansion(t *testing.T) {
	env := lookup([]string{"A=1", "EMPTY=", "A=2", "N=${A}"})
	c := Config{Name: "s", From: "f", Command: "${A}", Args: []string{"x${A}y${EMPTY:-d}", "$A", "${N}", "${EMPTY}"}, Cwd: "${X:-/a:-b}",
		URL: "u${A}", Env: map[string]string{"K": "${X:-}"}, Headers: map[string]string{"H": "${A}"}}
	got, err := c.expanded(env)
	want := Config{Name: "s", From: "f", Command: "2", Args: []string{"x2yd", "$A", "${A}", ""}, Cwd: "/a:-b",
		URL: "u2", Env: map[string]string{"K": ""}, Headers: map[string]string{"H": "2"}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Config{})); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if c.Args[0] != "x${A}y${EMPTY:-d}" {
		t.Error("the configuration itself was changed")
	}
	c.Headers["H"] = "${X}"
	if _, err := c.expanded(env); err == nil || err.Error() != "mcpServers.s.headers.H in f: the environment variable X is not set; set it, or give a default as ${X:-default}" {
		t.Errorf("%v", err)
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add([]byte(`{"mcpServers": {"a": {"command": "x", "args": [], "env": {}, "timeout": 1}, "b": {"url": "http://h"}}}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		servers, faults := ParseFile(src, "f")
		for _, s := range servers {
			if s.Type != Stdio && s.Type != HTTP && s.Type != SSE || s.Name == "" {
				t.Errorf("%+v", s)
			}
			for _, fault := range faults {
				if fault.Server == s.Name && !fault.Warning {
					t.Errorf("%s is returned with the fault %v", s.Name, fault)
				}
			}
		}
	})
}
