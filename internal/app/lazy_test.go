package app

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/builtin"
	"capstan/internal/tool"
)

// served is a tool of an MCP server.
type served struct{ spec tool.Spec }

func (s *served) Spec() *tool.Spec { return &s.spec }
func (s *served) Run(_ context.Context, inv *tool.Invocation) (tool.Result, error) {
	return tool.Text(string(inv.Call.Args)), nil
}

// catalogue reads the tools of real servers, and the names of the servers; none
// when they are not here.
func catalogue(t testing.TB) (tools []tool.Tool, servers []string) {
	t.Helper()
	root := "../../../shared"
	if dir := os.Getenv("CAPSTAN_SHARED"); dir != "" {
		root = dir
	}
	dir := filepath.Join(root, "data", "mcp")
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	for _, name := range files {
		if filepath.Base(name) == "INDEX.json" {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Server string
			Tools  []struct {
				Name, Title, Description  string
				InputSchema, OutputSchema json.RawMessage
			}
		}
		if err := json.Unmarshal(b, &file); err != nil {
			t.Fatal(err)
		}
		servers = append(servers, file.Server)
		for _, d := range file.Tools {
			tools = append(tools, &served{tool.Spec{Name: "mcp__" + file.Server + "__" + d.Name, Title: d.Title, Description: d.Description,
				Input: d.InputSchema, Output: d.OutputSchema, Server: file.Server, Deferred: true}})
		}
	}
	return tools, servers
}

// noCatalogue is why a test is skipped.
const noCatalogue = "the catalogue of real servers is not here"

// invented makes tools of servers as far as the real ones do not go.
func invented(n int, servers []string) []tool.Tool {
	tools := make([]tool.Tool, n)
	for i := range tools {
		server := servers[i%len(servers)]
		tools[i] = &served{tool.Spec{Name: fmt.Sprintf("mcp__%s__invented_%d", server, i), Description: "Does what nobody asked for.",
			Input: json.RawMessage(`{"type":"object","properties":{"what":{"type":"string"}}}`), Server: server, Deferred: true}}
	}
	return tools
}

// fully opens a session with every built-in and control that there is and these
// servers configured.
func fully(t testing.TB, mode tool.Mode, servers []string) *Session {
	t.Helper()
	settings := map[string]any{"mcpServers": map[string]any{}}
	for _, name := range servers {
		settings["mcpServers"].(map[string]any)[name] = map[string]string{"command": "x"}
	}
	b, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, Options{Mode: mode}, map[string]string{"~/.capstan/settings.json": string(b), "~/.capstan/skills/one/SKILL.md": "---\nname: one\ndescription: One.\n---\nText."})
	loop := builtin.Loop(builtin.LoopOptions{
		Ask:  func(context.Context, []builtin.Question) ([]builtin.Answer, error) { return nil, nil },
		Plan: &builtin.PlanOptions{}, Worktree: &builtin.WorktreeOptions{},
	})
	loop = slices.DeleteFunc(loop, func(t tool.Tool) bool {
		return slices.ContainsFunc(s.Registry.Tools(), func(e *tool.Entry) bool { return e.Spec().Name == t.Spec().Name })
	})
	if err := s.Registry.Add(loop...); err != nil {
		t.Fatal(err)
	}
	return s
}

func wire(t testing.TB, s *Session) string {
	t.Helper()
	b, err := encode(s.View().Declarations())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// What a model is sent is the same bytes however many deferred tools there are,
// before and after servers connect, restart and change their lists, and across
// searches; and it is small.
// S1-001 S1-011 S1-014 S1-015 S1-026 S1-027 S1-041 S1-042 S1-044 S1-104 S1-105 S1-106 S1-111 S0-071 S0-074 S0-075 BUG-PC-05
func TestDeclarationsOfACatalogue(t *testing.T) {
	tools, servers := catalogue(t)
	if len(tools) == 0 {
		t.Log(noCatalogue)
		for i := range 37 {
			servers = append(servers, fmt.Sprintf("the-server-of-number-%d", i))
		}
	}
	tools = append(tools, invented(4000-len(tools), servers)...)
	for _, mode := range []tool.Mode{tool.Code, tool.Both, tool.Direct} {
		s := fully(t, mode, servers)
		before, prompt := wire(t, s), s.prompt(AgentOptions{}, nil)()
		if t.Logf("%s: %d bytes", mode, len(before)); mode == tool.Code && len(before) > 9216 {
			t.Errorf("%d bytes in code mode, want at most 9,216", len(before))
		}
		same := func(when string) {
			t.Helper()
			if diff := cmp.Diff(before, wire(t, s)); diff != "" {
				t.Fatalf("%s: the declarations changed %s:\n%s", mode, when, diff)
			}
			if diff := cmp.Diff(prompt, s.prompt(AgentOptions{}, nil)()); diff != "" {
				t.Fatalf("%s: the prompt changed %s:\n%s", mode, when, diff)
			}
		}
		add := func(tools ...tool.Tool) {
			t.Helper()
			if err := s.Registry.Add(tools...); err != nil {
				t.Fatal(err)
			}
		}
		search := func(query string) {
			t.Helper()
			f, err := s.search.Find(t.Context(), s.View(), query, 5)
			if err != nil || len(f.Tools)+len(f.More) == 0 {
				t.Errorf("%s: %+v, %v", query, f, err)
			}
			same("with a search for " + query)
		}
		add(tools[:500]...)
		same("with 500 tools")
		search("list what there is open, or nobody asked for")
		add(tools[500:]...)
		same("with 4,000 tools")
		search("select:" + tools[600].Spec().Name)
		gone := servers[3]
		if err := s.Registry.Replace(func(sp *tool.Spec) bool { return sp.Server == gone }); err != nil {
			t.Fatal(err)
		}
		same("when a server ended")
		add(&served{tool.Spec{Name: "mcp__" + gone + "__other", Description: "Another list.", Server: gone, Deferred: true}})
		same("when it came back with another list")
		search("another list")
	}
}

// Each tool of the catalogue is found by its name, and is whole; the first words
// of its description find most of them. A page of results stays small.
// S1-029 S1-033 S1-034 S1-109
func TestSearchOfACatalogue(t *testing.T) {
	tools, servers := catalogue(t)
	if len(tools) == 0 {
		t.Skip(noCatalogue)
	}
	s := fully(t, tool.Code, servers)
	if err := s.Registry.Add(tools...); err != nil {
		t.Fatal(err)
	}
	v := s.View()
	for i, tl := range tools {
		sp := tl.Spec()
		if v.Find(sp.Name) == nil {
			continue // its JavaScript name is another one's
		}
		f, err := s.search.Find(t.Context(), v, "select:"+sp.Name, 5)
		if err != nil || len(f.Tools) != 1 || f.Tools[0].Name != sp.Name || f.Tools[0].Description != sp.Description || f.Tools[0].Signature == "" {
			t.Fatalf("%s: %+v, %v", sp.Name, f, err)
		}
		if !cmp.Equal(value(t, sp.Input), value(t, f.Tools[0].InputSchema)) {
			t.Errorf("%s: another schema", sp.Name)
		}
		if i%20 > 0 {
			continue
		}
		f, err = s.search.Find(t.Context(), v, sp.Name, 20)
		text, _ := f.Text()
		var first []string // it is too large to be whole, or it is the best
		for _, w := range f.Tools[:min(1, len(f.Tools))] {
			first = append(first, w.Name)
		}
		for _, l := range f.More[:min(1, len(f.More))] {
			first = append(first, l.Name)
		}
		if err != nil || !slices.Contains(first, sp.Name) || len(text) > 32<<10 || len(f.More) > 10 {
			t.Errorf("%s: %d bytes, %q, %v", sp.Name, len(text), first, err)
		}
	}
}

func value(t *testing.T, raw json.RawMessage) (v any) {
	t.Helper()
	if len(raw) == 0 {
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// few are the tools of two servers, one of them marked to be shown.
func few() []tool.Tool {
	input := json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`)
	return []tool.Tool{
		&served{tool.Spec{Name: "mcp__b__late", Description: "Late.", Input: input, Server: "b", Deferred: true}},
		&served{tool.Spec{Name: "mcp__b__later", Description: "Later.", Input: input, Server: "b", Deferred: true}},
		&served{tool.Spec{Name: "mcp__a__soon", Description: "Soon.", Input: input, Server: "a"}},
	}
}

// What each source costs adds up to what is sent, and what deferred tools would
// cost is what they do cost when they are shown.
func TestCosts(t *testing.T) {
	for _, mode := range []tool.Mode{tool.Direct, tool.Code, tool.Both} {
		s := fully(t, mode, []string{"a", "b"})
		if err := s.Registry.Add(few()...); err != nil {
			t.Fatal(err)
		}
		costs, err := s.Costs()
		if err != nil {
			t.Fatal(err)
		}
		s.scope.Visible = []string{"mcp__b"}
		shown, err := s.Costs()
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range costs {
			if c.InForce != (c.Mode == mode) || c.InForce && c.Bytes != len(wire(t, s))-c.Sources[2].IfShown {
				t.Errorf("%s in %s: %d bytes", c.Mode, mode, c.Bytes)
			}
			sum := 0
			for _, r := range c.Sources {
				sum += r.Bytes
			}
			if sum != c.Bytes || c.Tokens != (c.Bytes+3)/4 {
				t.Errorf("%s: the sources take %d of %d bytes", c.Mode, sum, c.Bytes)
			}
			b := c.Sources[2]
			want := SourceCost{Server: "b", Tools: 2, Shown: 2, Bytes: b.IfShown, Tokens: tokens(b.IfShown)}
			if diff := cmp.Diff(want, shown[i].Sources[2]); diff != "" {
				t.Errorf("%s, shown: %s", c.Mode, diff)
			}
			if diff := cmp.Diff(SourceCost{Server: "b", Tools: 2, Deferred: 2, IfShown: b.IfShown}, b); diff != "" {
				t.Errorf("%s: %s", c.Mode, diff)
			}
			if a := c.Sources[1]; a.Bytes == 0 || a.Shown != 1 {
				t.Errorf("%s: %+v", c.Mode, a)
			}
		}
	}
}

// When a rule, a flag or the scope takes search away, everything is shown; a
// rule about something else changes nothing.
// S1-019 S1-020 S1-021 S1-069 S1-117 S0-071
func TestWithoutSearch(t *testing.T) {
	for _, tc := range []struct {
		name     string
		opt      Options
		settings string
		search   bool
	}{
		{"as it is", Options{}, `{"mcpServers": {"b": {"command": "x"}}}`, true},
		{"denied", Options{}, `{"mcpServers": {"b": {"command": "x"}}, "permissions": {"deny": ["tool_search"]}}`, false},
		{"denied by pattern", Options{}, `{"mcpServers": {"b": {"command": "x"}}, "permissions": {"deny": ["tool_*"]}}`, false},
		{"asked for", Options{}, `{"mcpServers": {"b": {"command": "x"}}, "permissions": {"ask": ["tool_search"]}}`, true},
		{"another is denied", Options{}, `{"mcpServers": {"b": {"command": "x"}}, "permissions": {"deny": ["edit"]}}`, true},
		{"excluded", Options{Exclude: []string{"tool_search"}}, `{"mcpServers": {"b": {"command": "x"}}}`, false},
		{"in plan mode", Options{ApprovalMode: "plan"}, `{"mcpServers": {"b": {"command": "x"}}}`, true},
	} {
		for _, mode := range []tool.Mode{tool.Code, tool.Both, tool.Direct} {
			t.Run(tc.name+"/"+string(mode), func(t *testing.T) {
				tc.opt.Mode = mode
				s := open(t, tc.opt, map[string]string{"~/.capstan/settings.json": tc.settings})
				if err := s.Registry.Add(few()...); err != nil {
					t.Fatal(err)
				}
				sent := wire(t, s)
				if got := slices.Contains(declared(s), tool.ToolSearchName); got != tc.search {
					t.Errorf("tool_search is declared: %v", got)
				}
				if got := slices.Contains(declared(s), tool.ToolCallName); got != (tc.search && mode == tool.Direct) {
					t.Errorf("tool_call is declared: %v", got)
				}
				if strings.Contains(sent, "mcp__b__late") == tc.search || !strings.Contains(sent, "mcp__a__soon") || strings.Contains(sent, "MCP servers: b.") != tc.search {
					t.Errorf("wrong declarations: %s", sent)
				}
				if len(s.Warnings) > 0 {
					t.Error(s.Warnings)
				}
			})
		}
	}
}

// The settings name the servers, in any number of layers. With none configured and nothing deferred, direct mode has
// neither search nor bridge.
func TestServers(t *testing.T) {
	s := open(t, Options{Trust: true}, map[string]string{
		"~/.capstan/settings.json": `{"mcpServers": {"b": {"command": "x"}, "a": {"command": "x"}}}`, ".capstan/settings.json": `{"mcpServers": {"c": {"url": "https://x.test"}, "b": {"command": "y"}}}`})
	if diff := cmp.Diff([]string{"a", "b", "c"}, s.servers.names); diff != "" || !s.scope.Servers {
		t.Error(diff)
	}
	s = open(t, Options{}, nil)
	if s.servers.names != nil || s.scope.Servers || !cmp.Equal(declared(s), sorted(controls...)) {
		t.Errorf("%q, %q", s.servers.names, declared(s))
	}
}

// Declarations of all tools that are deferred are made in 20 ms (issue 4).
func BenchmarkDeclarations(b *testing.B) {
	tools, servers := catalogue(b)
	if len(tools) == 0 {
		b.Skip(noCatalogue)
	}
	s := fully(b, tool.Code, servers)
	if err := s.Registry.Add(tools...); err != nil {
		b.Fatal(err)
	}
	n := 0
	for b.Loop() {
		n++
		s.scope.Visible = []string{fmt.Sprint("nothing", n)} // a view that nobody has asked for
		s.View().Declarations()
	}
}
