package tool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"capstan/internal/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type plain struct{ spec tool.Spec }

func (p *plain) Spec() *tool.Spec { return &p.spec }

func (p *plain) Run(context.Context, *tool.Invocation) (tool.Result, error) {
	return tool.Text(p.spec.Name), nil
}

func named(names ...string) (tools []tool.Tool) {
	for _, n := range names {
		tools = append(tools, &plain{tool.Spec{Name: n, Description: "does " + n}})
	}
	return tools
}

func registry(t testing.TB, tools ...tool.Tool) *tool.Registry {
	t.Helper()
	r := &tool.Registry{}
	if err := r.Add(tools...); err != nil {
		t.Fatal(err)
	}
	return r
}

func declared(v *tool.View) []string {
	out := []string{}
	for _, d := range v.Declarations() {
		out = append(out, d.Name)
	}
	return out
}

func bound(v *tool.View) []string {
	out := []string{}
	for _, b := range v.Bindings() {
		out = append(out, b.Entry.Spec().Name)
	}
	return out
}

func searchable(v *tool.View) []string {
	out := []string{}
	for _, e := range v.Searchable() {
		out = append(out, e.Spec().Name)
	}
	return out
}

func resolved(v *tool.View, name string, nested bool) string {
	e, refusal := v.Resolve(&tool.Call{Name: name, Args: json.RawMessage(`{"a":1}`)}, nested)
	if refusal != nil {
		return refusal.Code + ": " + refusal.Text()
	}
	return "runs " + e.Spec().Name
}

// The table of ruling 2: every class, mode and origin, shown and deferred.
// S0-005 S0-006 S0-032 S0-036 S0-044 to S0-051 S0-069 S0-197 S0-230 S0-231
// S1-007 S1-010 S2-002 S2-019 S2-030 S2-042 S2-053 S2-082 S2-083 S2-084 S2-086
func TestExposure(t *testing.T) {
	r := registry(t,
		&plain{tool.Spec{Name: "shown"}}, &plain{tool.Spec{Name: "deferred", Deferred: true}},
		&plain{tool.Spec{Name: "host_control", Class: tool.Control, Deferred: true}},
		&plain{tool.Spec{Name: "hidden", Class: tool.Hidden}},
		&plain{tool.Spec{Name: "relay", Class: tool.Gateway}},
		&plain{tool.Spec{Name: "agent"}}, &plain{tool.Spec{Name: "tool_search"}}, &plain{tool.Spec{Name: "tool_call"}}, &plain{tool.Spec{Name: "exec"}})
	type reach struct{ Model, Program string }
	yes, no := func(n string) string { return "runs " + n }, func(n string) string { return fmt.Sprintf("UNKNOWN_TOOL: there is no tool %q here", n) }
	collapsed := func(n string) string {
		return "UNKNOWN_TOOL: only exec and the direct controls can be called directly; run " + n + " inside exec: `const r = await tools." + n + `({"a":1}); text(r.output)` + "`"
	}
	outside := func(n string) string {
		return "UNKNOWN_TOOL: " + n + " cannot be called from a program; it is a tool of its own: call it directly, outside of exec"
	}
	for _, tc := range []struct {
		mode       tool.Mode
		declared   []string
		bound      []string
		searchable []string
		reach      map[string]reach
	}{
		{tool.Direct,
			[]string{"agent", "host_control", "shown", "tool_call", "tool_search"}, []string{}, []string{"deferred", "shown"},
			map[string]reach{
				"shown":        {yes("shown"), outside("shown")},
				"deferred":     {"UNKNOWN_TOOL: deferred is not loaded: find it with tool_search first, then call it through tool_call", "UNKNOWN_TOOL: deferred cannot be called from a program"},
				"host_control": {yes("host_control"), outside("host_control")}, "agent": {yes("agent"), outside("agent")},
				"hidden": {no("hidden"), no("hidden")}, "relay": {no("relay"), no("relay")}, "exec": {no("exec"), no("exec")},
				"tool_search": {yes("tool_search"), outside("tool_search")}, "tool_call": {yes("tool_call"), outside("tool_call")},
			}},
		{tool.Code,
			[]string{"agent", "exec", "host_control", "relay", "tool_search"}, []string{"deferred", "shown"}, []string{"deferred", "shown"},
			map[string]reach{
				"shown": {collapsed("shown"), yes("shown")}, "deferred": {collapsed("deferred"), yes("deferred")},
				"host_control": {yes("host_control"), outside("host_control")}, "agent": {yes("agent"), outside("agent")},
				"hidden": {no("hidden"), no("hidden")}, "relay": {yes("relay"), outside("relay")}, "exec": {yes("exec"), outside("exec")},
				"tool_search": {yes("tool_search"), outside("tool_search")}, "tool_call": {no("tool_call"), no("tool_call")},
			}},
		{tool.Both,
			[]string{"agent", "exec", "host_control", "relay", "shown", "tool_search"}, []string{"deferred", "shown"}, []string{"deferred", "shown"},
			map[string]reach{
				"shown":        {yes("shown"), yes("shown")},
				"deferred":     {strings.Replace(collapsed("deferred"), "exec and the direct controls", "the tools declared to you", 1), yes("deferred")},
				"host_control": {yes("host_control"), outside("host_control")}, "agent": {yes("agent"), outside("agent")},
				"hidden": {no("hidden"), no("hidden")}, "relay": {yes("relay"), outside("relay")}, "exec": {yes("exec"), outside("exec")},
				"tool_search": {yes("tool_search"), outside("tool_search")}, "tool_call": {no("tool_call"), no("tool_call")},
			}},
	} {
		t.Run(string(tc.mode), func(t *testing.T) {
			v := r.View(tc.mode, tool.Scope{})
			got := map[string]reach{}
			for n := range tc.reach {
				got[n] = reach{resolved(v, n, false), resolved(v, n, true)}
			}
			for _, diff := range []string{cmp.Diff(tc.declared, declared(v)), cmp.Diff(tc.bound, bound(v)), cmp.Diff(tc.searchable, searchable(v)), cmp.Diff(tc.reach, got)} {
				if diff != "" {
					t.Errorf("want -, got +:\n%s", diff)
				}
			}
			if len(r.Tools()) != 9 { // S2-037 to S2-041 S2-052 S2-054: listings are not filtered by mode
				t.Errorf("%d tools are listed", len(r.Tools()))
			}
		})
	}
}

// tool_search and tool_call are there in direct mode when there is something to
// search for; without them nothing can be deferred, so nothing is.
func TestSearchInDirect(t *testing.T) {
	deferred := &plain{tool.Spec{Name: "deferred", Deferred: true}}
	for _, tc := range []struct {
		name  string
		mode  tool.Mode
		tools []tool.Tool
		scope tool.Scope
		want  []string
		found bool
	}{
		{"nothing deferred, no server", tool.Direct, named("read", "tool_search", "tool_call"), tool.Scope{}, []string{"read"}, false},
		{"a server is configured", tool.Direct, named("read", "tool_search", "tool_call"), tool.Scope{Servers: true}, []string{"read", "tool_call", "tool_search"}, true},
		{"something is deferred", tool.Direct, append(named("tool_search", "tool_call"), deferred), tool.Scope{}, []string{"tool_call", "tool_search"}, true},
		{"but it is not in the scope", tool.Direct, append(named("tool_search", "tool_call"), deferred), tool.Scope{Disallow: []string{"deferred"}}, []string{}, false},
		{"no tool_search", tool.Direct, append(named("tool_call"), deferred), tool.Scope{}, []string{"deferred"}, false},
		{"no tool_call", tool.Direct, append(named("tool_search"), deferred), tool.Scope{}, []string{"deferred", "tool_search"}, true},
		{"tool_search is taken away", tool.Direct, append(named("tool_search", "tool_call"), deferred), tool.Scope{Disallow: []string{"tool_search"}}, []string{"deferred"}, false},
		{"code: always", tool.Code, named("tool_search", "exec"), tool.Scope{}, []string{"exec", "tool_search"}, true},
		{"both, without exec", tool.Both, append(named("tool_search"), deferred), tool.Scope{}, []string{"deferred", "tool_search"}, true},
		{"both, exec taken away", tool.Both, append(named("exec"), deferred), tool.Scope{Disallow: []string{"exec"}}, []string{"deferred"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := registry(t, tc.tools...).View(tc.mode, tc.scope)
			if diff := cmp.Diff(tc.want, declared(v)); diff != "" {
				t.Error(diff)
			}
			if v.Searches() != tc.found {
				t.Errorf("Searches is %v", v.Searches())
			}
		})
	}
}

// The list of ruling 17, reserved names included: whatever their Spec says,
// they are controls, and exec and the bridge stay what they are.
// S0-052 to S0-067 S0-086 S3-033
func TestControls(t *testing.T) {
	controls := []string{
		"ask_user_question", "agent", "send_message", "list_agents", "task_list", "task_output", "task_stop",
		"structured_output", "enter_plan_mode", "exit_plan_mode", "enter_worktree", "exit_worktree", "tool_search",
		"update_goal", "team_create", "team_delete", "create_sub_session", "cron_create", "cron_list", "cron_delete",
	}
	ordinary := []string{"todo_write", "skill", "job_list", "job_output", "job_stop", "read_file", "workflow", "never_heard_of"}
	for _, class := range []tool.Class{tool.Ordinary, tool.Control, tool.Gateway, tool.Hidden} {
		r := &tool.Registry{}
		for _, n := range append([]string{"exec", "tool_call"}, controls...) {
			if err := r.Add(&plain{tool.Spec{Name: n, Class: class}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Add(named(ordinary...)...); err != nil {
			t.Fatal(err)
		}
		v := r.View(tool.Code, tool.Scope{})
		if diff := cmp.Diff(slices.Sorted(slices.Values(append([]string{"exec"}, controls...))), declared(v)); diff != "" {
			t.Errorf("class %d: %s", class, diff)
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(ordinary)), bound(v)); diff != "" {
			t.Errorf("class %d: %s", class, diff)
		}
		want := map[string]tool.Class{"exec": tool.Gateway, "tool_call": tool.Hidden, "agent": tool.Control, "skill": tool.Ordinary}
		for n, c := range want {
			if got := v.Visible(n); n != "tool_call" && got.Spec().Class != c {
				t.Errorf("%s of class %d is registered under %d", n, class, got.Spec().Class)
			}
		}
	}
}

// S2-018 S2-085 S2-088 S3-029 S3-030
func TestModeAndPreset(t *testing.T) {
	for _, tc := range []struct{ agent, preset, global, want tool.Mode }{
		{"", "", "", tool.Direct}, {"", "", tool.Code, tool.Code}, {"", tool.Both, tool.Code, tool.Both}, {tool.Direct, tool.Both, tool.Code, tool.Direct},
	} {
		if got := tool.ModeFor(tc.agent, tc.preset, tc.global); got != tc.want {
			t.Errorf("%+v: %s", tc, got)
		}
	}
	for _, s := range []string{"", "Direct", "code_mode_only", "native"} {
		if m, err := tool.ParseMode(s); err == nil {
			t.Errorf("%q is the mode %s", s, m)
		}
	}
	for _, m := range []tool.Mode{tool.Direct, tool.Code, tool.Both} {
		if got, err := tool.ParseMode(string(m)); got != m || err != nil {
			t.Errorf("%s: %s, %v", m, got, err)
		}
	}
	// A mode that there is not exposes nothing but controls.
	v := registry(t, named("exec", "read", "agent")...).View("whatever", tool.Scope{})
	if diff := cmp.Diff([]string{"agent"}, declared(v)); diff != "" || len(bound(v)) > 0 {
		t.Error(diff, bound(v))
	}
}

// S0-208 S0-209 S0-210 S0-234 S3-028 S3-030 S3-036 S3-037
func TestScope(t *testing.T) {
	tools := named("exec", "tool_search", "tool_call", "agent", "read", "reads", "write", "mcp__git__push", "mcp__git__pull", "mcp__github__get")
	odd := &plain{tool.Spec{Name: "mcp__my__server__x", Server: "my__server"}}
	r := registry(t, append(tools, odd)...)
	all := []string{"mcp__git__pull", "mcp__git__push", "mcp__github__get", "mcp__my__server__x", "read", "reads", "write"}
	drop := func(names ...string) (out []string) {
		for _, n := range all {
			if !slices.Contains(names, n) {
				out = append(out, n)
			}
		}
		return out
	}
	controls := []string{"agent", "exec", "tool_search"}
	for _, tc := range []struct {
		name     string
		scope    tool.Scope
		bound    []string
		declared []string
	}{
		{"zero", tool.Scope{}, all, controls},
		{"allow", tool.Scope{Allow: []string{"read", "agent"}}, []string{"read"}, controls},
		{"allow leaves controls out", tool.Scope{Allow: []string{"read"}}, []string{"read"}, []string{"exec", "tool_search"}},
		{"allow nothing", tool.Scope{Allow: []string{}}, []string{}, []string{}},
		{"allow a pattern", tool.Scope{Allow: []string{"read*"}}, []string{"read", "reads"}, []string{"exec", "tool_search"}},
		{"allow a server", tool.Scope{Allow: []string{"mcp__git"}}, []string{"mcp__git__pull", "mcp__git__push"}, []string{"exec", "tool_search"}},
		{"allow never makes a bridge or exec callable from programs", tool.Scope{Allow: []string{"tool_call", "exec", "tool_search", "read"}}, []string{"read"}, []string{"exec", "tool_search"}},
		{"disallow", tool.Scope{Disallow: []string{"read"}}, drop("read"), controls},
		{"disallow beats allow", tool.Scope{Allow: []string{"read", "write"}, Disallow: []string{"write"}}, []string{"read"}, []string{"exec", "tool_search"}},
		{"disallow a server", tool.Scope{Disallow: []string{"mcp__git"}}, drop("mcp__git__pull", "mcp__git__push"), controls},
		{"disallow a server, with a star", tool.Scope{Disallow: []string{"mcp__git__*"}}, drop("mcp__git__pull", "mcp__git__push"), controls},
		{"disallow all servers", tool.Scope{Disallow: []string{"mcp__*"}}, []string{"read", "reads", "write"}, controls},
		{"disallow a server whose name holds __", tool.Scope{Disallow: []string{"mcp__my__server"}}, drop("mcp__my__server__x"), controls},
		{"disallow exec and tool_search", tool.Scope{Disallow: []string{"exec", "tool_search"}}, all, []string{"agent"}},
		{"disallow everything", tool.Scope{Disallow: []string{"*"}}, []string{}, []string{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := r.View(tool.Code, tc.scope)
			if diff := cmp.Diff(tc.bound, bound(v)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.declared, declared(v)); diff != "" {
				t.Error(diff)
			}
			for _, n := range all { // enforced, not only shown
				if got, want := resolved(v, n, true) == "runs "+n, slices.Contains(tc.bound, n); got != want {
					t.Errorf("%s: %s", n, resolved(v, n, true))
				}
			}
		})
	}
}

// What an agent inherits from a preset is what both allow, without what either
// takes away. Checked against the two scopes asked one by one.
func TestUnder(t *testing.T) {
	names := []string{"a", "ab", "abc", "mcp__s__x", "mcp__s__y", "mcp__st__x", "z*", "z*y"}
	entries := []string{"a", "ab", "a*", "ab*", "mcp__s", "mcp__s__*", "mcp__s*", "mcp__s__x", "*", "z*", "z**", "none"}
	r := registry(t, named(append(names, "exec")...)...)
	rnd := rand.New(rand.NewPCG(1, 2))
	some := func() []string {
		if rnd.IntN(5) == 0 {
			return nil
		}
		out := []string{}
		for _, e := range entries {
			if rnd.IntN(4) == 0 {
				out = append(out, e)
			}
		}
		return out
	}
	for range 1000 {
		parent, child := tool.Scope{Allow: some(), Disallow: some()}, tool.Scope{Allow: some(), Disallow: some()}
		if rnd.IntN(2) == 0 {
			parent.Disallow, child.Disallow = nil, nil
		}
		got := bound(r.View(tool.Code, tool.Preset{Scope: parent}.Under(child)))
		want := []string{}
		for _, n := range bound(r.View(tool.Code, parent)) {
			if slices.Contains(bound(r.View(tool.Code, child)), n) {
				want = append(want, n)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%+v under %+v: %s", child, parent, diff)
		}
	}
	p := tool.Preset{Scope: tool.Scope{Eager: []string{"e"}, Visible: []string{"v"}, Servers: true}}
	if diff := cmp.Diff(p.Scope, p.Under(tool.Scope{})); diff != "" {
		t.Error(diff)
	}
	own := tool.Scope{Eager: []string{}, Visible: []string{"w"}, Servers: true}
	if diff := cmp.Diff(own, p.Under(own)); diff != "" {
		t.Error(diff)
	}
}

// tools.eager and tools.visible change what is shown, and never what may be
// called. S0-068 S0-070
func TestEagerAndVisible(t *testing.T) {
	tools := append(named("exec", "agent", "read", "write"), &plain{tool.Spec{Name: "mcp__s__x", Deferred: true}})
	for _, tc := range []struct {
		name     string
		scope    tool.Scope
		deferred []string
	}{
		{"as they are", tool.Scope{}, []string{"mcp__s__x"}},
		{"visible", tool.Scope{Visible: []string{"mcp__s"}}, nil},
		{"eager", tool.Scope{Eager: []string{"read"}}, []string{"mcp__s__x", "write"}},
		{"eager, empty", tool.Scope{Eager: []string{}}, []string{"mcp__s__x", "read", "write"}},
		{"eager marks what is deferred by itself", tool.Scope{Eager: []string{"mcp__s"}}, []string{"read", "write"}}, // S1-107
		{"eager, all", tool.Scope{Eager: []string{"*"}}, nil},
		{"eager and visible", tool.Scope{Eager: []string{"read"}, Visible: []string{"write", "mcp__s"}}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := registry(t, tools...).View(tool.Both, tc.scope)
			var deferred []string
			for _, b := range v.Bindings() {
				if b.Deferred {
					deferred = append(deferred, b.JS)
				}
				if direct, nested := v.Reach(b.JS); direct == b.Deferred || !nested {
					t.Errorf("%s: direct %v, nested %v", b.JS, direct, nested)
				}
			}
			if diff := cmp.Diff(tc.deferred, deferred); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{"mcp__s__x", "read", "write"}, bound(v)); diff != "" {
				t.Error(diff)
			}
			for _, e := range registry(t, tools...).Tools() { // S0-070: the registry's own state stays
				if e.Spec().Deferred != (e.Spec().Name == "mcp__s__x") {
					t.Errorf("%s is deferred: %v", e.Spec().Name, e.Spec().Deferred)
				}
			}
		})
	}
}

// What the registry refuses, and that it then changes nothing.
func TestRegistryRefuses(t *testing.T) {
	r := registry(t, named("a", "b")...)
	for _, tc := range []struct {
		name string
		tool tool.Tool
		want string
	}{
		{"empty", &plain{}, "registering a tool: the name is empty"},
		{"taken", named("a")[0], `registering a tool: the name "a" is taken`},
		{"not UTF-8", named("a\xff")[0], `registering a tool: the name "a\xff" is not valid UTF-8`},
		{"not printable", named("a\u202e")[0], `registering a tool: the name "a\u202e" holds a character that cannot be printed`},
		{"a line break", named("a\nb")[0], `registering a tool: the name "a\nb" holds a character that cannot be printed`},
		{"too long", named(strings.Repeat("x", 1025))[0], "registering a tool: the name \"" + strings.Repeat("x", 40) + "\"… is longer than 1,024 bytes"},
		{"no such class", &plain{tool.Spec{Name: "c", Class: 4}}, "registering a tool: c has class 4, which there is not"},
		{"no such class", &plain{tool.Spec{Name: "c", Class: -1}}, "registering a tool: c has class -1, which there is not"},
	} {
		before := r.View(tool.Direct, tool.Scope{})
		err := r.Add(named("new")[0], tc.tool)
		if err == nil || err.Error() != tc.want {
			t.Errorf("%s: %v", tc.name, err)
		}
		if r.View(tool.Direct, tool.Scope{}) != before {
			t.Errorf("%s: the registry changed", tc.name)
		}
	}
	if err := r.Replace(func(s *tool.Spec) bool { return s.Name == "a" }, named("a", "c")...); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, declared(r.View(tool.Direct, tool.Scope{}))); diff != "" {
		t.Error(diff)
	}
}

// A tool whose schema cannot be used costs that tool only: it is declared
// without parameters that would spoil the request, and refuses every call.
// S3-020 S3-055
func TestBadSchema(t *testing.T) {
	bad := map[string]string{"broken": `{"type":`, "array": `[]`, "null": `null`, "impossible": `{"type":"nothing"}`}
	r := registry(t, named("good")...)
	for n, s := range bad {
		if err := r.Add(&plain{tool.Spec{Name: n, Input: json.RawMessage(s)}}); err != nil {
			t.Fatal(err)
		}
	}
	v := r.View(tool.Direct, tool.Scope{})
	wire, err := json.Marshal(v.Declarations())
	if err != nil || !json.Valid(wire) {
		t.Fatal(err)
	}
	for n := range bad {
		e := v.Visible(n)
		prefix := "the input schema of " + n + " cannot be used, so its arguments cannot be checked and it cannot be called: "
		if err := e.Compile(); err == nil || !strings.HasPrefix(err.Error(), prefix) {
			t.Errorf("%s: %v", n, err)
		}
		if _, _, err := e.Validate(json.RawMessage(`{}`)); err == nil {
			t.Errorf("%s is called unchecked", n)
		}
	}
	if _, _, err := v.Visible("good").Validate(json.RawMessage(`{}`)); err != nil {
		t.Error(err)
	}
}

// S3-018 to S3-024 S3-027
func TestNew(t *testing.T) {
	type in struct {
		Path string `json:"path"`
	}
	n := tool.New(tool.Spec{Name: "n", Title: "N", Description: "d"}, func(_ context.Context, _ *tool.Invocation, a in) (tool.Result, error) {
		if a.Path == "" {
			return tool.Result{}, errors.New("empty")
		}
		return tool.Text(a.Path), nil
	})
	v := registry(t, n).View(tool.Direct, tool.Scope{})
	e := v.Visible("n")
	args, _, err := e.Validate(json.RawMessage(`{"path":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := e.Tool().Run(t.Context(), &tool.Invocation{Call: &tool.Call{Args: args}})
	if err != nil || got.Text() != "x" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, _, err := e.Validate(json.RawMessage(`{}`)); err == nil {
		t.Error("the schema of the struct does not require its field")
	}
	if d := v.Declarations()[0]; d.Name != "n" || d.Description != "d" || string(d.Parameters) != string(e.Spec().Input) || e.Spec().Title != "N" {
		t.Errorf("declared as %+v", d)
	}
}

// A closed tool refuses names that its schema has not, also one in other letters,
// and declares its schema as it is. A Canonizer spells what is valid.
func TestClosedAndCanonical(t *testing.T) {
	const input = `{"type":"object","properties":{"kind":{"type":"string"}}}`
	reg := &tool.Registry{}
	if err := reg.Add(&spelling{tool.Spec{Name: "open", Input: json.RawMessage(input)}}, &spelling{tool.Spec{Name: "closed", Closed: true, Input: json.RawMessage(input)}}, &spelling{tool.Spec{Name: "none", Closed: true}}); err != nil {
		t.Fatal(err)
	}
	for _, e := range reg.Tools() {
		if e.Spec().Name != "none" && string(e.Declaration().Parameters) != input {
			t.Errorf("%s declares %s", e.Spec().Name, e.Declaration().Parameters)
		}
		for args, want := range map[string][3]string{ // of closed, none, open
			`{"kind":"a"}`: {`{"kind":"A"}`, "/kind: ", `{"kind":"A"}`},
			`{"KIND":"a"}`: {"/KIND: ", "/KIND: ", `{"KIND":"A"}`},
			`{}`:           {`{}`, `{}`, `{}`},
			`{"kind":"!"}`: {"spelling the arguments of closed: ", "/kind: ", "spelling the arguments of open: "},
			`{"kind":"?"}`: {"spelling the arguments of closed: no letters", "/kind: ", "spelling the arguments of open: no letters"},
		} {
			got, _, err := e.Validate(json.RawMessage(args))
			if err != nil {
				got = json.RawMessage(err.Error())
			}
			if want := want[map[string]int{"closed": 0, "none": 1, "open": 2}[e.Spec().Name]]; !strings.Contains(string(got), want) {
				t.Errorf("%s %s: %s, want %s", e.Spec().Name, args, got, want)
			}
		}
	}
}

type spelling struct{ spec tool.Spec }

func (s *spelling) Spec() *tool.Spec { return &s.spec }

func (s *spelling) Run(context.Context, *tool.Invocation) (tool.Result, error) {
	return tool.Result{}, nil
}

func (s *spelling) Canonical(args json.RawMessage) json.RawMessage {
	switch {
	case bytes.Contains(args, []byte("?")):
		panic("no letters")
	case bytes.Contains(args, []byte("!")):
		return nil
	}
	return bytes.ReplaceAll(args, []byte(`"a"`), []byte(`"A"`))
}
