package tool_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/msg"
	"capstan/internal/tool"
)

// described is a tool whose description depends on the view, as exec's does.
type described struct{ plain }

func (d *described) Describe(v *tool.View) string {
	var b strings.Builder
	for _, x := range v.Bindings() {
		fmt.Fprintf(&b, "%s(%s) ", x.JS, x.Entry.Spec().Input)
	}
	return b.String()
}

func schemaTool(n int) *plain {
	return &plain{tool.Spec{
		Name: fmt.Sprintf("mcp__server%d__tool_%d", n%20, n), Description: fmt.Sprintf("Does thing number %d to the item that is given.", n),
		Input:    json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"id":{"type":"string","description":"the item"},"n%d":{"type":"integer"}},"required":["id"]}`, n)),
		Deferred: n%3 == 0, Server: fmt.Sprintf("server%d", n%20),
	}}
}

// Views are the same bytes for the same tools, whatever the order of their
// registration, and whatever was registered and taken out meanwhile. S0-077
// S0-095 S0-233
func TestByteStable(t *testing.T) {
	var tools []tool.Tool
	for n := range 60 {
		tools = append(tools, schemaTool(n))
	}
	tools = append(tools, &described{plain{tool.Spec{Name: "exec"}}})
	tools = append(tools, named("tool_search", "agent", "a.b", "a-b")...)
	bytes := func(r *tool.Registry, m tool.Mode) string {
		v := r.View(m, tool.Scope{Disallow: []string{"mcp__server7"}})
		out, err := json.Marshal(v.Declarations())
		if err != nil {
			t.Fatal(err)
		}
		return string(out) + fmt.Sprint(v.Warnings(), bound(v), searchable(v))
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, m := range []tool.Mode{tool.Direct, tool.Code, tool.Both} {
		want := bytes(registry(t, tools...), m)
		for range 6 {
			rnd.Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
			r := &tool.Registry{}
			for _, x := range tools {
				if err := r.Add(x); err != nil {
					t.Fatal(err)
				}
			}
			if got := bytes(r, m); got != want {
				t.Fatalf("%s: the bytes depend on the order", m)
			}
			first := tools[0].Spec().Name
			if err := r.Replace(func(s *tool.Spec) bool { return s.Name == first }); err != nil {
				t.Fatal(err)
			}
			if err := r.Add(tools[0]); err != nil || bytes(r, m) != want {
				t.Fatalf("%s: %s came back, and the bytes are others", m, first)
			}
		}
	}
}

// A view is computed once, until the registry changes; an older view stays what
// it was. S0-043 S0-076 S0-227
func TestViewsAreCachedAndImmutable(t *testing.T) {
	r := registry(t, named("exec", "read")...)
	scope := tool.Scope{Allow: []string{"read", "write"}}
	v := r.View(tool.Code, scope)
	if r.View(tool.Code, tool.Scope{Allow: []string{"read", "write"}}) != v || r.View("", tool.Scope{}) != r.View(tool.Direct, tool.Scope{}) {
		t.Error("the same question has another answer")
	}
	for _, other := range []*tool.View{r.View(tool.Both, scope), r.View(tool.Code, tool.Scope{}), r.View(tool.Code, tool.Scope{Allow: []string{}}),
		r.View(tool.Code, tool.Scope{Allow: []string{"read write"}}), r.View(tool.Code, tool.Scope{Disallow: []string{"read", "write"}}),
		r.View(tool.Code, tool.Scope{Allow: scope.Allow, Eager: []string{}}), r.View(tool.Code, tool.Scope{Allow: scope.Allow, Visible: []string{"x"}}),
		r.View(tool.Code, tool.Scope{Allow: scope.Allow, Servers: true})} {
		if other == v {
			t.Errorf("%s %+v is the same view", other.Mode(), other.Scope())
		}
	}
	scope.Allow[0] = "changed"
	if v.Scope().Allow[0] != "read" {
		t.Error("a view shares its scope with its caller")
	}
	old, decls := bound(v), v.Declarations()
	_ = append(v.Bindings(), tool.Binding{JS: "intruder"})
	_ = append(decls, msg.Declaration{Name: "intruder"})
	if err := r.Add(named("write")...); err != nil {
		t.Fatal(err)
	}
	now := r.View(tool.Code, tool.Scope{Allow: []string{"read", "write"}})
	if now == v {
		t.Error("the registry changed and the view did not")
	}
	if diff := cmp.Diff([]string{"read", "write"}, bound(now)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(old, bound(v)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(decls, v.Declarations()); diff != "" {
		t.Error(diff)
	}
	for n := range 1000 { // scopes that somebody makes up are forgotten
		r.View(tool.Code, tool.Scope{Allow: []string{fmt.Sprint(n)}})
	}
}

// Readers and writers of a registry at once; the race detector is the judge.
func TestConcurrentUse(t *testing.T) {
	r := registry(t, named("exec", "tool_search", "read")...)
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			name := fmt.Sprintf("own_%d", n)
			for range 50 {
				if err := r.Add(named(name)...); err != nil {
					t.Error(err)
				}
				v := r.View(tool.Code, tool.Scope{})
				if got := resolved(v, name, true); got != "runs "+name {
					t.Error(got)
				}
				v.Declarations()
				v.Searchable()
				if _, _, err := v.Visible("read").Validate(json.RawMessage(`{}`)); err != nil {
					t.Error(err)
				}
				if err := r.Replace(func(s *tool.Spec) bool { return s.Name == name }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// In direct mode nothing shows that code mode exists: the bytes of the
// declarations are those of a registry without exec, and turning code mode off
// again brings them back. S0-017 to S0-020 S0-039 S0-040 S0-041 S0-196 S0-225
// S0-228 S0-229
func TestDirectIsUntouched(t *testing.T) {
	tools := []tool.Tool{schemaTool(1), schemaTool(2), schemaTool(3)}
	tools = append(tools, named("agent", "a.b", "a-b")...)
	bytes := func(r *tool.Registry) string {
		out, err := json.Marshal(r.View(tool.Direct, tool.Scope{}).Declarations())
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	without := registry(t, tools...)
	want := bytes(without)
	with := registry(t, append(tools, &described{plain{tool.Spec{Name: "exec"}}})...)
	with.View(tool.Code, tool.Scope{}).Declarations()
	if got := bytes(with); got != want {
		t.Errorf("with exec: %s\nwithout: %s", got, want)
	}
	v := with.View(tool.Direct, tool.Scope{})
	if len(v.Warnings()) > 0 || v.Visible("exec") != nil || len(bound(v)) > 0 {
		t.Error("direct mode knows of programs")
	}
	for _, e := range without.Tools() {
		if e.Spec().Name == "exec" {
			t.Error("exec is listed though nobody registered it")
		}
	}
}

// Same is about what was approved: each field of the definition that matters
// makes another one, and what only helps to find it does not.
func TestSame(t *testing.T) {
	base := tool.Spec{Name: "a", Title: "t", Description: "d", Input: json.RawMessage(`{}`), Output: json.RawMessage(`{}`)}
	entry := func(s tool.Spec) *tool.Entry { return registry(t, &plain{s}).Tools()[0] }
	for name, change := range map[string]func(*tool.Spec){
		"name": func(s *tool.Spec) { s.Name = "b" }, "title": func(s *tool.Spec) { s.Title = "" }, "description": func(s *tool.Spec) { s.Description = "" },
		"input": func(s *tool.Spec) { s.Input = json.RawMessage(`{ }`) }, "output": func(s *tool.Spec) { s.Output = nil },
		"class": func(s *tool.Spec) { s.Class = tool.Control }, "effect": func(s *tool.Spec) { s.Effect = tool.EffectNone },
		"waits": func(s *tool.Spec) { s.Waits = true }, "claims": func(s *tool.Spec) { s.Claims = []string{"it only reads"} }, "server": func(s *tool.Spec) { s.Server = "s" },
	} {
		other := base
		change(&other)
		if entry(base).Same(entry(other)) {
			t.Errorf("another %s is the same definition", name)
		}
	}
	other := base
	other.Hint, other.Deferred = "h", true
	if !entry(base).Same(entry(other)) {
		t.Error("how to find it makes another definition")
	}
}

// What a model is told and what the executor runs is one thing, for any
// registry, scope and mode: checked against a reference that is written down
// apart from the exposure function. S1-085 S0-202 S0-207 S2-019 S2-042 S2-057
func TestWireEqualsExecutor(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	pool := []tool.Spec{
		{Name: "exec"}, {Name: "tool_search"}, {Name: "tool_call"}, {Name: "agent"}, {Name: "task_stop", Class: tool.Hidden},
		{Name: "read"}, {Name: "re.ad"}, {Name: "re-ad", Deferred: true}, {Name: "rare", Seldom: true}, {Name: "write", Deferred: true}, {Name: "then"}, {Name: "_then"},
		{Name: "mcp__s__a", Server: "s", Deferred: true}, {Name: "mcp__s__b", Server: "s"}, {Name: "mcp__t__a", Server: "t", Deferred: true},
		{Name: "mcp__x__y__z", Server: "x__y"}, {Name: "host", Class: tool.Control}, {Name: "secret", Class: tool.Hidden}, {Name: "relay", Class: tool.Gateway},
	}
	patterns := []string{"read", "re*", "write", "mcp__s", "mcp__s__*", "mcp__t__a", "mcp__x__y", "agent", "exec", "tool_search", "tool_call", "secret", "relay", "host", "*", "mcp__*"}
	list := func(one int) []string {
		if rnd.IntN(2) == 0 {
			return nil
		}
		out := []string{}
		for _, p := range patterns {
			if rnd.IntN(one) == 0 {
				out = append(out, p)
			}
		}
		return out
	}
	for n := range 1500 {
		var specs []tool.Spec
		var tools []tool.Tool
		for _, s := range pool {
			if rnd.IntN(4) > 0 {
				specs = append(specs, s)
				tools = append(tools, &plain{s})
			}
		}
		scope := tool.Scope{Allow: list(3), Disallow: list(8), Eager: list(3), Visible: list(4), Servers: rnd.IntN(3) == 0}
		mode := []tool.Mode{tool.Direct, tool.Code, tool.Both}[rnd.IntN(3)]
		v := registry(t, tools...).View(mode, scope)
		ref := reference{mode, scope, specs}
		shown, programs, found := []string{}, []string{}, []string{}
		for _, s := range specs {
			direct, nested, bridge := ref.reach(s)
			if direct {
				shown = append(shown, s.Name)
			}
			if nested {
				programs = append(programs, s.Name)
			}
			if nested || mode == tool.Direct && (direct || bridge) && ref.class(s) == tool.Ordinary {
				found = append(found, s.Name)
			}
			if d, p := v.Reach(s.Name); d != direct || p != nested {
				t.Fatalf("case %d: %s in %s %+v: Reach says %v, %v, the table %v, %v", n, s.Name, mode, scope, d, p, direct, nested)
			}
			c := tool.Call{Name: s.Name, Args: json.RawMessage(`{}`)}
			e, refusal := v.Resolve(&c, false)
			if (e != nil) != direct || (refusal == nil) != direct {
				t.Fatalf("case %d: a model's %s in %s %+v: %+v", n, s.Name, mode, scope, refusal)
			}
			route := refusal != nil && strings.Contains(refusal.Text(), "tools."+tool.JSName(s.Name)+"(")
			_, hasExec := v.Resolve(&tool.Call{Name: "exec", Args: c.Args}, false)
			if want := !direct && nested && hasExec == nil; route != want {
				t.Fatalf("case %d: the route to %s in %s %+v is told: %v", n, s.Name, mode, scope, route)
			}
			if e, _ := v.Resolve(&c, true); (e != nil) != nested {
				t.Fatalf("case %d: a program's %s in %s %+v: %v", n, s.Name, mode, scope, e != nil)
			}
			if e, _ := v.Bridge(&c); mode == tool.Direct && s.Name != "tool_call" && (e != nil) != (direct || bridge) {
				t.Fatalf("case %d: %s through tool_call in %s %+v: %v", n, s.Name, mode, scope, e != nil)
			}
			if (v.Find(s.Name) != nil) != slices.Contains(found, s.Name) {
				t.Fatalf("case %d: %s is found: %v", n, s.Name, v.Find(s.Name) != nil)
			}
			if v.Deferred(s.Name) != (ref.deferred(s) && v.Visible(s.Name) != nil) {
				t.Fatalf("case %d: %s is deferred: %v", n, s.Name, v.Deferred(s.Name))
			}
			if (v.Visible(s.Name) != nil) != (direct || nested || bridge) {
				t.Fatalf("case %d: %s is visible", n, s.Name)
			}
			if v.Collapsed(s.Name, false) != (nested && !direct) || v.Collapsed(s.Name, true) {
				t.Fatalf("case %d: %s collapses", n, s.Name)
			}
		}
		slices.Sort(shown)
		slices.Sort(programs)
		slices.Sort(found)
		for _, diff := range []string{cmp.Diff(shown, declared(v)), cmp.Diff(programs, bound(v)), cmp.Diff(found, searchable(v))} {
			if diff != "" {
				t.Fatalf("case %d: %s %+v: %s", n, mode, scope, diff)
			}
		}
	}
}

// reference is the rules of rulings 2, 15 and 17 in the words of the rulings.
type reference struct {
	mode  tool.Mode
	scope tool.Scope
	specs []tool.Spec
}

func (r reference) class(s tool.Spec) tool.Class {
	switch s.Name {
	case "exec":
		return tool.Gateway
	case "tool_call":
		return tool.Hidden
	case "agent", "task_stop", "tool_search":
		return tool.Control
	}
	return s.Class
}

func (r reference) lists(patterns []string, s tool.Spec) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if before, ok := strings.CutSuffix(p, "*"); ok {
			return strings.HasPrefix(s.Name, before)
		}
		return p == s.Name || s.Server != "" && p == "mcp__"+s.Server
	})
}

func (r reference) inScope(s tool.Spec) bool {
	// What leads to tools needs no name of its own, unless there are none.
	free := len(r.scope.Allow) > 0 && (s.Name == "exec" || s.Name == "tool_search" || s.Name == "tool_call")
	return !r.lists(r.scope.Disallow, s) && (r.scope.Allow == nil || free || r.lists(r.scope.Allow, s))
}

func (r reference) has(name string) bool {
	return slices.ContainsFunc(r.specs, func(s tool.Spec) bool { return s.Name == name && r.inScope(s) })
}

func (r reference) deferred(s tool.Spec) bool {
	if r.class(s) != tool.Ordinary || r.lists(r.scope.Visible, s) {
		return false
	}
	if r.scope.Eager != nil {
		return !r.lists(r.scope.Eager, s)
	}
	return s.Deferred || s.Seldom && r.mode == tool.Code
}

func (r reference) collides(s tool.Spec) bool {
	return slices.ContainsFunc(r.specs, func(o tool.Spec) bool {
		return o.Name < s.Name && r.inScope(o) && r.class(o) == tool.Ordinary && tool.JSName(o.Name) == tool.JSName(s.Name)
	})
}

func (r reference) reach(s tool.Spec) (direct, nested, bridge bool) {
	if !r.inScope(s) {
		return false, false, false
	}
	something := r.scope.Servers || slices.ContainsFunc(r.specs, func(o tool.Spec) bool { return r.inScope(o) && r.deferred(o) })
	switch {
	case s.Name == "tool_call":
		return r.mode == tool.Direct && r.has("tool_search") && something, false, false
	case s.Name == "tool_search":
		return r.mode != tool.Direct || something, false, false
	case r.class(s) == tool.Control:
		return true, false, false
	case r.class(s) == tool.Gateway:
		return r.mode != tool.Direct, false, false
	case r.class(s) == tool.Hidden:
		return false, false, false
	}
	switch r.mode {
	case tool.Code:
		return false, !r.collides(s), false
	case tool.Both:
		return !r.deferred(s) || !r.has("exec"), !r.collides(s), false
	}
	bridge = r.deferred(s) && r.has("tool_search") && r.has("tool_call")
	return !bridge, false, bridge
}

// BenchmarkView is a registry that changed: the view and its declarations from
// nothing. BenchmarkSameView is one that did not.
func BenchmarkView(b *testing.B) {
	for _, size := range []int{20, 500, 4_000, 10_000} {
		for _, mode := range []tool.Mode{tool.Direct, tool.Code} {
			b.Run(fmt.Sprintf("%s/%d", mode, size), func(b *testing.B) {
				var tools []tool.Tool
				for n := range size {
					tools = append(tools, schemaTool(n))
				}
				r := registry(b, append(tools, named("exec", "tool_search", "tool_call")...)...)
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					r.View(mode, tool.Scope{Visible: []string{fmt.Sprint(n)}}).Declarations() // a scope nobody asked for
					n++
				}
			})
		}
	}
}

func BenchmarkSameView(b *testing.B) {
	var tools []tool.Tool
	for n := range 10_000 {
		tools = append(tools, schemaTool(n))
	}
	r := registry(b, tools...)
	scope := tool.Scope{Allow: []string{"mcp__server1", "mcp__server2"}, Disallow: []string{"x"}}
	b.ReportAllocs()
	for b.Loop() {
		r.View(tool.Direct, scope).Declarations()
	}
}

func BenchmarkUnknownTool(b *testing.B) {
	var tools []tool.Tool
	for n := range 10_000 {
		tools = append(tools, schemaTool(n))
	}
	v := registry(b, append(tools, named("exec")...)...).View(tool.Code, tool.Scope{})
	for b.Loop() {
		v.Resolve(&tool.Call{Name: "mcp__server3__tol_1003"}, true)
	}
}

// Whether a scope may hold a tool of a server is known before the server is.
func TestServes(t *testing.T) {
	prefix := tool.ServerPrefix("mail.app")
	if strings.Contains(prefix, ".") {
		t.Fatalf("%s keeps its dot", prefix)
	}
	for _, tc := range []struct {
		name  string
		scope tool.Scope
		want  []string
	}{
		{"everything", tool.Scope{}, []string{"git", "git__hub", "mail.app", "s"}},
		{"a server", tool.Scope{Allow: []string{"mcp__s"}}, []string{"s"}},
		{"a server whose name looks like a tool", tool.Scope{Allow: []string{"mcp__git__hub"}}, []string{"git", "git__hub"}},
		{"a tool", tool.Scope{Allow: []string{"read", "mcp__s__x"}}, []string{"s"}},
		{"a pattern within a server", tool.Scope{Allow: []string{"mcp__s__x*"}}, []string{"s"}},
		{"a pattern beyond one", tool.Scope{Allow: []string{"mcp__g*"}}, []string{"git", "git__hub"}},
		{"no server", tool.Scope{Allow: []string{"read"}}, nil},
		{"nothing", tool.Scope{Allow: []string{}}, nil},
		{"without a server", tool.Scope{Disallow: []string{"mcp__s"}}, []string{"git", "git__hub", "mail.app"}},
		{"without some tools of one", tool.Scope{Disallow: []string{"mcp__s__x", "mcp__s__y*"}}, []string{"git", "git__hub", "mail.app", "s"}},
		{"without any", tool.Scope{Disallow: []string{"mcp__*"}}, nil},
		{"a registered name of a tool", tool.Scope{Allow: []string{prefix + "send"}}, []string{"mail.app"}},
		{"a registered name of a server", tool.Scope{Allow: []string{strings.TrimSuffix(prefix, "__")}}, []string{"mail.app"}},
		{"a configured name that is changed", tool.Scope{Allow: []string{"mcp__mail.app"}}, []string{"mail.app"}},
		{"a pattern of registered names", tool.Scope{Allow: []string{prefix + "s*"}}, []string{"mail.app"}},
		{"a name that no tool gets", tool.Scope{Allow: []string{"mcp__mail.app__send"}}, nil},
		{"without a registered name of a server", tool.Scope{Disallow: []string{strings.TrimSuffix(prefix, "__")}}, []string{"git", "git__hub", "s"}},
		{"without all registered names of a server", tool.Scope{Disallow: []string{prefix + "*"}}, []string{"git", "git__hub", "s"}},
		{"without a configured name that is changed", tool.Scope{Disallow: []string{"mcp__mail.app"}}, []string{"git", "git__hub", "s"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := registry(t).View(tool.Code, tc.scope)
			var got []string
			for _, s := range []string{"git", "git__hub", "mail.app", "s"} {
				if v.Serves(s) {
					got = append(got, s)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
