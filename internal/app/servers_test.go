package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"capstan/internal/mcp"
	"capstan/internal/sched"
	"capstan/internal/tool"
	"capstan/internal/ui/terminal"
)

// hub is a server over HTTP with so many tools, and the settings that name it.
func hub(t *testing.T, tools int, more string) string {
	t.Helper()
	server := sdk.NewServer(&sdk.Implementation{Name: "hub", Version: "1"}, nil)
	for i := range tools {
		sdk.AddTool(server, &sdk.Tool{Name: fmt.Sprintf("t%03d", i), Description: strings.Repeat("words ", 20)},
			func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
				return &sdk.CallToolResult{}, nil, nil
			})
	}
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(web.Close)
	return fmt.Sprintf(`{"mcpServers": {"hub": {"url": %q%s}}}`, web.URL, more)
}

// Nothing is started, and nothing changes in what is sent, until something needs a
// server; tools that are marked are shown once it has answered, and the one
// warning about those that have no room comes then.
func TestServersAnswer(t *testing.T) {
	for _, c := range []struct {
		name, more string
		shown      bool
		notices    int
	}{
		{"deferred", "", false, 0},
		{"marked", `, "alwaysLoad": true`, true, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var notices []string
			o := Options{Mode: tool.Code, Notice: func(s string) { notices = append(notices, s) }}
			s := open(t, o, map[string]string{"~/.capstan/settings.json": hub(t, 100, c.more)})
			before := wire(t, s)
			if st := s.ServerStatus(); len(st) != 1 || st[0].State != "idle" {
				t.Errorf("%+v", st)
			}
			if missing := s.AwaitServers(t.Context()); missing != nil {
				t.Fatal(missing)
			}
			s.AwaitServers(t.Context()) // nothing is told twice
			after := wire(t, s)
			if (before != after) != c.shown || strings.Contains(after, "mcp__hub__t000") != c.shown {
				t.Errorf("it is shown: %v", before != after)
			}
			if len(notices) != c.notices || c.notices > 0 && !strings.Contains(notices[0], "are left to tool_search") {
				t.Errorf("%q", notices)
			}
			if diff := cmp.Diff([]ServerState{{"hub", "connected"}}, s.ServerStates()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A direct call waits for the server of its tool; one whose server is missing is
// refused with the reason, before anybody is asked.
func TestCallsAwaitServers(t *testing.T) {
	settings := strings.TrimSuffix(hub(t, 1, ""), "}}") + `, "dead": {"url": "http://127.0.0.1:1/mcp"}, "odd": {"command": 7}}}`
	s := open(t, Options{Mode: tool.Direct}, map[string]string{"~/.capstan/settings.json": settings})
	bridged := func(name string) tool.Call {
		args, err := json.Marshal(map[string]any{"name": name, "arguments": map[string]any{}})
		if err != nil {
			t.Fatal(err)
		}
		return tool.Call{Name: tool.ToolCallName, Args: args}
	}
	calls := []tool.Call{bridged("mcp__hub__t000"), {Name: "mcp__dead__x", Args: json.RawMessage(`{}`)}, bridged("mcp__odd__x"), bridged("mcp__nobody__x"), {Name: "read_file", Args: json.RawMessage(`{}`)}}
	s.awaitCalls(t.Context(), calls)
	if s.View().Visible("mcp__hub__t000") == nil {
		t.Error("the server was not waited for")
	}
	var faults []string
	for _, c := range calls {
		fault, _, _ := strings.Cut(c.Fault, "missing: ")
		faults = append(faults, fault)
	}
	if diff := cmp.Diff([]string{"", "mcp__dead__x was not run: MCP server dead is ", "mcp__odd__x was not run: MCP server odd is ", "", ""}, faults); diff != "" {
		t.Error(diff)
	}
}

// Two servers whose names are written alike in JavaScript: a program's call waits
// for both, a call by the tool's own name for the one that it means.
func TestServersWrittenAlike(t *testing.T) {
	settings := strings.Replace(strings.TrimSuffix(hub(t, 1, ""), "}}"), `"hub"`, `"my_db"`, 1) + `, "my-db": {"url": "http://127.0.0.1:1/mcp"}, "my+db": {"command": 7}}}`
	s := open(t, Options{Program: true, ApprovalMode: "yolo"}, map[string]string{"~/.capstan/settings.json": settings})
	odd := mcp.ToolName("my+db", "x")
	for name, want := range map[string][]string{"mcp__my_db__t000": {"my_db"}, "mcp__my-db__x": {"my-db"}, odd: {"my+db"}, "mcp__my_d__x": nil, "my_db": nil} {
		if diff := cmp.Diff(want, s.serversNamed(name)); diff != "" {
			t.Errorf("%s by name (-want +got):\n%s", name, diff)
		}
	}
	for js, want := range map[string][]string{"mcp__my_db__t000": {"my-db", "my_db"}, odd: {"my+db"}, "mcp__my__x": nil} {
		if diff := cmp.Diff(want, s.serversOf(js)); diff != "" {
			t.Errorf("%s as a property (-want +got):\n%s", js, diff)
		}
	}
}

// A tool that a rule denies whole is gone from the moment its server has answered,
// as it was before; the rules of others stay what they are. S2-019
func TestForbiddenToolsOfServers(t *testing.T) {
	for _, mode := range []tool.Mode{tool.Direct, tool.Code, tool.Both} {
		settings := strings.TrimSuffix(hub(t, 30, `, "alwaysLoad": true`), "}") + `, "permissions": {"deny": ["mcp__hub__t000", "mcp__hub__t01*"], "ask": ["mcp__hub__t002"]}}`
		s := open(t, Options{Mode: mode}, map[string]string{"~/.capstan/settings.json": settings})
		if missing := s.AwaitServers(t.Context()); missing != nil {
			t.Fatal(missing)
		}
		for name, want := range map[string]bool{"mcp__hub__t000": false, "mcp__hub__t001": true, "mcp__hub__t002": true, "mcp__hub__t010": false, "mcp__hub__t020": true} {
			if got := s.View().Visible(name) != nil; got != want {
				t.Errorf("%s: %s is there: %v", mode, name, got)
			}
			if got := strings.Contains(wire(t, s), name); got != want {
				t.Errorf("%s: %s is declared: %v", mode, name, got)
			}
			if found, err := s.Search(t.Context(), s.View(), "select:"+name, 5); err != nil || len(found.Tools) > 0 != want {
				t.Errorf("%s: %s is found: %+v, %v", mode, name, found, err)
			}
		}
	}
}

type approverFunc func(context.Context, *sched.Question) (sched.Answer, error)

func (f approverFunc) Approve(ctx context.Context, q *sched.Question) (sched.Answer, error) {
	return f(ctx, q)
}

// A person approves a definition. When the server changes it while the question is
// open, the call is not run; the next one is asked about with the new definition.
func TestChangeDuringApproval(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "hub", Version: "1"}, nil)
	var ran atomic.Int64
	define := func(description string) {
		sdk.AddTool(server, &sdk.Tool{Name: "drop", Description: description}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			ran.Add(1)
			return &sdk.CallToolResult{}, nil, nil
		})
	}
	define("Drops nothing.")
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(web.Close)
	var s *Session
	var asked []string
	o := Options{Mode: tool.Direct, Approver: approverFunc(func(ctx context.Context, q *sched.Question) (sched.Answer, error) {
		asked = append(asked, q.Entry.Spec().Description)
		for q.Entry.Same(s.View().Visible(q.Call.Name)) && len(asked) == 1 && ctx.Err() == nil {
			define("Drops everything.") // it says so as soon as somebody listens
			time.Sleep(20 * time.Millisecond)
		}
		return sched.Answer{Allow: true}, nil
	})}
	s = open(t, o, map[string]string{"~/.capstan/settings.json": fmt.Sprintf(`{"mcpServers": {"hub": {"url": %q, "alwaysLoad": true}}}`, web.URL)})
	if missing := s.AwaitServers(t.Context()); missing != nil {
		t.Fatal(missing)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var codes []string
	for range 2 {
		codes = append(codes, s.rt.Run(ctx, s.View, []tool.Call{{Name: "mcp__hub__drop", Args: json.RawMessage(`{}`)}})[0].Code)
	}
	if diff := cmp.Diff([]string{tool.CodeStale, ""}, codes); diff != "" || ran.Load() != 1 {
		t.Errorf("%s; it ran %d times", diff, ran.Load())
	}
	if diff := cmp.Diff([]string{"Drops nothing.", "Drops everything."}, asked); diff != "" {
		t.Errorf("asked about (-want +got):\n%s", diff)
	}
}

// What a server says of its tools loosens no rule. Without trust a tool that says
// that it only reads is asked about, and plan mode does not run it; with trust it
// runs, unless a rule says otherwise.
func TestHintsLoosenNoRule(t *testing.T) {
	const plan, normal = "plan", "default"
	for _, c := range []struct {
		trust, mode, rules string
		reads, destroys    sched.Decision
	}{
		{"false", normal, ``, sched.Ask, sched.Ask},
		{"false", plan, ``, sched.Deny, sched.Deny},
		{"true", normal, ``, sched.Allow, sched.Ask},
		{"true", plan, ``, sched.Allow, sched.Deny},
		{"true", normal, `"ask": ["mcp__hub"]`, sched.Ask, sched.Ask},
		{"true", "yolo", `"ask": ["mcp__hub__reads"]`, sched.Ask, sched.Allow},
		{"true", "yolo", `"deny": ["mcp__hub__re*y*", "mcp__hub__*a*"]`, sched.Deny, sched.Allow},
	} {
		server := sdk.NewServer(&sdk.Implementation{Name: "hub", Version: "1"}, nil)
		for name, hints := range map[string]*sdk.ToolAnnotations{"reads": {ReadOnlyHint: true}, "destroys": {DestructiveHint: new(true)}} {
			sdk.AddTool(server, &sdk.Tool{Name: name, Annotations: hints}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
				return &sdk.CallToolResult{}, nil, nil
			})
		}
		web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
		t.Cleanup(web.Close)
		s := open(t, Options{ApprovalMode: c.mode}, map[string]string{"~/.capstan/settings.json": fmt.Sprintf(
			`{"mcpServers": {"hub": {"url": %q, "trust": %s}}, "permissions": {%s}}`, web.URL, c.trust, c.rules)})
		if missing := s.AwaitServers(t.Context()); missing != nil {
			t.Fatal(missing)
		}
		decide := func(name string) sched.Decision {
			e := s.View().Visible("mcp__hub__" + name)
			return s.rules.Decide(t.Context(), &sched.Request{Call: &tool.Call{Name: "mcp__hub__" + name, Args: json.RawMessage(`{}`)}, Entry: e}).Decision
		}
		if reads, destroys := decide("reads"), decide("destroys"); reads != c.reads || destroys != c.destroys {
			t.Errorf("trust %s, mode %s, %s: reads %v, destroys %v; want %v, %v", c.trust, c.mode, c.rules, reads, destroys, c.reads, c.destroys)
		}
	}
}

// A list of all servers' resources leaves out those that a rule denies or asks
// about, whoever is not asked then.
func TestRulesOfResources(t *testing.T) {
	for rule, kept := range map[string]bool{`"ask": ["mcp__hub"]`: true, `"deny": ["mcp__hub__list_*"]`: true, `"ask": ["mcp__hub__t*"]`: false, `"allow": ["mcp__hub"]`: false} {
		settings := strings.TrimSuffix(hub(t, 1, ""), "}") + `, "permissions": {` + rule + `}}`
		s := open(t, Options{Mode: tool.Direct, ApprovalMode: "yolo"}, map[string]string{"~/.capstan/settings.json": settings})
		if missing := s.AwaitServers(t.Context()); missing != nil {
			t.Fatal(missing)
		}
		e := s.entry("list_mcp_resources")
		res, err := e.Tool().Run(t.Context(), &tool.Invocation{Call: &tool.Call{Name: e.Spec().Name, Args: json.RawMessage(`{}`)}})
		if text := res.Text(); err != nil || strings.Contains(text, "MCP server hub, which permissions.") != kept {
			t.Errorf("%s: %s, %v", rule, text, err)
		}
		named := s.rules.Decide(t.Context(), &sched.Request{Call: &tool.Call{Name: e.Spec().Name, Args: json.RawMessage(`{"server": "hub"}`)}, Entry: e})
		if (named.Decision != sched.Allow) != kept {
			t.Errorf("%s: with its name: %v", rule, named)
		}
	}
}

// Of two servers of one name the nearer layer's counts, with a warning. What is
// wrong with one costs that one, and is said with its place.
func TestServerLayers(t *testing.T) {
	s := open(t, Options{Trust: true}, map[string]string{
		"~/.capstan/settings.json": "{\"mcpServers\": {\n \"a\": {\"command\": \"far\"}, \"b\": {\"command\": \"b\", \"arg\": []}}}",
		".mcp.json":                "{\"mcpServers\": {\n \"a\": {\"command\": \"near\"},\n \"c\": {\"command\": \"c\", \"type\": \"http\"}}}",
	})
	var got []string
	for _, v := range s.Servers() {
		got = append(got, v.Name+" "+strings.Join(v.Target, " "))
	}
	if diff := cmp.Diff([]string{"a near", "b b", "c "}, got); diff != "" {
		t.Error(diff)
	}
	var warnings []string
	for _, w := range s.Warnings {
		w = strings.ReplaceAll(strings.ReplaceAll(w, s.home, "~"), s.opt.Dir, ".")
		warnings = append(warnings, strings.ReplaceAll(w, string(filepath.Separator), "/"))
	}
	want := []string{
		`user settings ~/.capstan/settings.json:2:49: mcpServers.b.arg: is not known and has no effect; is "args" meant?`,
		`./.mcp.json:3:2: mcpServers.c.url: is missing: type "http" needs it`,
		`./.mcp.json:2:2: mcpServers.a: hides the server of the same name in user settings ~/.capstan/settings.json:2:2`,
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Error(diff)
	}
	// A nearer layer turns off what a farther one has.
	s = open(t, Options{Trust: true}, map[string]string{
		"~/.capstan/settings.json": `{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}, "c": {"command": "c"}}}`,
		".mcp.json":                `{"mcpServers": {"a": null, "b": {"disabled": true}}}`,
	})
	if diff := cmp.Diff([]string{"c"}, s.servers.names); diff != "" || s.Warnings != nil {
		t.Error(diff, s.Warnings)
	}
}

// What a server asks of a person: its wishes become fields, required ones first,
// and the answers have the types that it wants. What cannot be shown as fields is
// declined without asking.
func TestElicit(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","required":["n","kind"],"properties":{
		"a":{"type":"string","title":"Name","description":"Who?"},
		"n":{"type":"integer"},"yes":{"type":"boolean"},
		"kind":{"type":"string","oneOf":[{"const":"x","title":"the first"},{"const":"y","title":"the second"}]}}}`)
	var asked terminal.Form
	answers, ok, fault := []string{"y", "7", "", "true"}, true, error(nil)
	s := &Session{opt: Options{Ask: func(_ context.Context, f terminal.Form) ([]string, bool, error) {
		asked = f
		return answers, ok, fault
	}}}
	do := func(p *sdk.ElicitParams) sdk.ElicitResult {
		t.Helper()
		r, err := s.elicit()(t.Context(), "hub", p)
		if err != nil {
			t.Fatal(err)
		}
		return *r
	}
	p := &sdk.ElicitParams{Message: "m", RequestedSchema: schema}
	if diff := cmp.Diff(sdk.ElicitResult{Action: "accept", Content: map[string]any{"kind": "y", "n": int64(7), "yes": true}}, do(p)); diff != "" {
		t.Error(diff)
	}
	var fields []string
	for _, f := range asked.Fields {
		fields = append(fields, fmt.Sprintf("%s %v %v %q", f.Name, f.Optional, f.Options, f.Help))
	}
	if diff := cmp.Diff([]string{`kind false [x y] "x: the first\ny: the second"`, `n false [] ""`, `Name true [] "Who?"`, `yes true [true false] ""`}, fields); diff != "" || asked.Server != "hub" || asked.Message != "m" {
		t.Error(diff, asked)
	}
	if err := asked.Fields[1].Check("many"); err == nil || err.Error() != "n has to be of type integer" {
		t.Error(err)
	}
	ok = false
	if r := do(p); r.Action != "decline" || r.Content != nil {
		t.Error(r)
	}
	fault = errors.New("gone")
	if r := do(p); r.Action != "cancel" {
		t.Error(r)
	}
	asked, fault, ok = terminal.Form{}, nil, true
	for _, p := range []*sdk.ElicitParams{
		{Mode: "url", URL: "https://a.test", Message: "m"},
		{RequestedSchema: json.RawMessage(`{"properties":{"a":{"type":"array"}}}`)},
		{RequestedSchema: json.RawMessage(`[]`)},
	} {
		if r := do(p); r.Action != "decline" || asked.Server != "" {
			t.Error(p, r)
		}
	}
	if (&Session{}).elicit() != nil {
		t.Error("nobody can be asked, and servers are told that somebody can")
	}
}
