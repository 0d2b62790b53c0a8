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

// catalogue reads the tools of real servers, and the names of the servers.
func catalogue(t testing.TB) (tools []tool.Tool, servers []string) {
	t.Helper()
	const dir = "../../../shared/data/mcp"
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
	if len(tools) == 0 {
		t.Skip("the catalogue of real servers is not here")
	}
	return tools, servers
}

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
		Plan: &builtin.PlanOptions{},
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
// S1-001 S1-011 S1-014 S1-015 S1-026 S1-027 S1-041 S1-042 S1-044 S1-104 S1-105 S1-106 S1-111 S0-071 S0-074 S0-075
func TestDeclarationsOfACatalogue(t *testing.T) {
	real, servers := catalogue(t)
	tools := append(real, invented(4000-len(real), servers)...)
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
		search("list the open issues")
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
		if err != nil || !slices.Contains(first, sp.Name) || len(text) > 30_000 || len(f.More) > 10 {
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
