package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/agent"
	"capstan/internal/tool"
)

const frontReviewer = "---\nname: reviewer\ndescription: Reviews.\ntools: Read, Grep\npreset: base\n---\nYou review.\n"

// serverTools are deferred tools of a server, as a session with one has them.
func serverTools(t *testing.T, s *Session) {
	t.Helper()
	var tools []tool.Tool
	for _, n := range []string{"pull", "push"} {
		tools = append(tools, tool.New(tool.Spec{Name: "mcp__git__" + n, Server: "git", Deferred: true, Description: n + " of a remote repository"}, func(context.Context, *tool.Invocation, struct{}) (tool.Result, error) { return tool.Text("done"), nil }))
	}
	if err := s.Registry.Add(tools...); err != nil {
		t.Fatal(err)
	}
}

// The mode of a definition goes before that of its preset, and this before the
// session's; exec is there when any agent of the session writes programs. What is
// declared is what runs. S2-018 S2-019 S2-085 S2-088 S0-202
func TestAgentModes(t *testing.T) {
	for _, tc := range []struct {
		session    tool.Mode
		base, self string
		want       tool.Mode
	}{
		{"", "", "", tool.Direct},
		{tool.Both, "", "", tool.Both},
		{tool.Both, "mode: code", "", tool.Code},
		{tool.Both, "mode: code", "mode: direct", tool.Direct},
		{tool.Direct, "mode: both", "", tool.Both},
	} {
		files := map[string]string{
			".claude/agents/reviewer.md": strings.Replace(frontReviewer, "---\nYou", tc.self+"\n---\nYou", 1),
			".capstan/agents/base.md":    "---\nname: base\n" + tc.base + "\n---\n",
		}
		s := open(t, Options{Trust: true, Mode: tc.session}, files)
		m, err := s.member(t.Context(), agent.Order{Kind: "reviewer"}, agent.Options{})
		if err != nil {
			t.Fatal(err)
		}
		v := m.Options.View()
		if v.Mode() != tc.want {
			t.Errorf("%+v: mode %s", tc, v.Mode())
		}
		reads := []string{"glob", "grep_search", "list_directory", "read_file"}
		want := map[tool.Mode][]string{tool.Direct: reads, tool.Code: {"exec", "tool_search"}, tool.Both: append([]string{"exec"}, append(slices.Clone(reads), "tool_search")...)}[tc.want]
		var got []string
		for _, d := range v.Declarations() {
			got = append(got, d.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v: %s", tc, diff)
		}
		prompt := m.Options.System()
		if !strings.HasPrefix(prompt, "You review.") || !strings.Contains(prompt, "sees only your last message") || strings.Contains(prompt, "write_file") {
			t.Errorf("%+v: the prompt is %s", tc, prompt)
		}
		if only := strings.Contains(prompt, "These names can be called directly, and no others: exec, tool_search."); only != (tc.want == tool.Code) {
			t.Errorf("%+v: the prompt states the collapse: %v", tc, only)
		}
		// The same definition for the session itself: --mode goes before it.
		s = open(t, Options{Trust: true, Mode: tc.session, Agent: "reviewer"}, files)
		if wantMode := tool.ModeFor(tc.session, tc.want); s.mode != wantMode {
			t.Errorf("%+v: as the session's own: %s", tc, s.mode)
		}
		if d, n := s.View().Reach("write_file"); d || n {
			t.Errorf("%+v: the session reaches what its agent has not", tc)
		}
	}
}

// exec's text, its bindings and search agree with each other for every scope that a
// definition can have, and a scope without search is given full signatures, of
// what it allows only. S0-205 S0-206 S0-208 S1-068 S1-069 S1-071 S1-074 S1-082
// S1-083 S1-113 S1-114 S1-117
func TestAgentScopes(t *testing.T) {
	s := open(t, Options{Mode: tool.Code}, nil)
	serverTools(t, s)
	var all []string
	for _, b := range s.View().Bindings() {
		all = append(all, b.Entry.Spec().Name)
	}
	rnd := rand.New(rand.NewPCG(1, 5))
	for range 60 {
		x := &agent.Definition{Name: "x"}
		if rnd.IntN(3) > 0 {
			for range 1 + rnd.IntN(5) {
				x.Tools = append(x.Tools, all[rnd.IntN(len(all))])
			}
		}
		for range rnd.IntN(3) {
			x.Disallowed = append(x.Disallowed, append(all, "tool_search", "mcp__git")[rnd.IntN(len(all)+2)])
		}
		v := s.SubagentView(x)
		text := ""
		for _, d := range v.Declarations() {
			if d.Name == tool.ExecName {
				text = d.Description
			}
		}
		found, err := s.Search(t.Context(), v, "select:"+strings.Join(all, ","), 20)
		if err != nil {
			t.Fatal(err)
		}
		var hits []string
		for _, h := range found.Tools {
			hits = append(hits, h.Name)
		}
		for _, h := range found.More {
			hits = append(hits, h.Name)
		}
		for _, n := range all {
			_, bound := v.Reach(n)
			says := strings.Contains(text, n+"(")
			if hit := slices.Contains(hits, n); hit != bound {
				t.Errorf("%q without %q: search finds %s: %v, a program reaches it: %v", x.Tools, x.Disallowed, n, hit, bound)
			}
			switch {
			case says && !bound:
				t.Errorf("%q without %q: exec documents %s, which is not there", x.Tools, x.Disallowed, n)
			case bound && !says && !(v.Searches() && v.Deferred(n)):
				t.Errorf("%q without %q: exec does not document %s", x.Tools, x.Disallowed, n)
			}
		}
	}
}

// A fork that inherits is sent its lead's bytes; a list replaces them.
// S0-211 S0-212 S0-213 S1-080 S1-081 S1-083
func TestForkDeclarations(t *testing.T) {
	for _, mode := range []tool.Mode{tool.Direct, tool.Code, tool.Both} {
		s := open(t, Options{Mode: mode}, nil)
		serverTools(t, s)
		lead, err := encode(s.View().Declarations())
		if err != nil {
			t.Fatal(err)
		}
		f := s.fork(agent.Order{}, agent.Options{System: func() string { return "lead" }})
		inherited, err := encode(f.Options.Declared().Declarations())
		if err != nil || !bytes.Equal(lead, inherited) || f.Options.System() != "lead" {
			t.Errorf("%s: other bytes, or another prompt: %v", mode, err)
		}
		for _, b := range s.View().Bindings() { // and they are true of programs
			if _, nested := f.Options.View().Reach(b.Entry.Spec().Name); !nested {
				t.Errorf("%s: a fork's programs lack %s", mode, b.JS)
			}
		}
		some := s.fork(agent.Order{Tools: []string{"Read", "mcp__git__pull"}}, agent.Options{})
		v := some.Options.View()
		for n, want := range map[string]bool{"read_file": true, "mcp__git__pull": true, "mcp__git__push": false, "write_file": false, "agent": false} {
			if got := v.Visible(n) != nil; got != want || some.Options.Declared != nil {
				t.Errorf("%s: a fork with a list reaches %s: %v", mode, n, got)
			}
		}
		if none := s.fork(agent.Order{Tools: []string{}}, agent.Options{}).Options.View(); len(none.Declarations())+len(none.Bindings()) > 0 {
			t.Errorf("%s: an empty list leaves %v", mode, none.Declarations())
		}
		now, err := json.Marshal(s.View().Declarations())
		if before := mustJSON(t, s.View().Declarations()); err != nil || !bytes.Equal(now, before) {
			t.Errorf("%s: the lead's declarations changed", mode)
		}
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// An approval mode of a definition makes the session's stricter, never laxer.
func TestAgentApproval(t *testing.T) {
	for _, tc := range [][3]string{{"", "plan", "plan"}, {"yolo", "default", "default"}, {"plan", "yolo", "plan"}, {"auto-edit", "", "auto-edit"}, {"yolo", "dontAsk", "default"}} {
		files := map[string]string{"~/.claude/agents/x.md": fmt.Sprintf("---\nname: x\ndescription: d\npermissionMode: %s\nmodel: sonnet\n---\n", map[string]string{"yolo": "bypassPermissions"}[tc[1]]+map[bool]string{true: tc[1]}[tc[1] != "yolo"])}
		s := open(t, Options{ApprovalMode: tc[0]}, files)
		m, err := s.member(t.Context(), agent.Order{Kind: "x"}, agent.Options{Sched: s.calls, Model: "the lead's"})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Options.System(); !strings.Contains(got, "Approval mode: "+tc[2]+"\n") && !strings.HasSuffix(got, "Approval mode: "+tc[2]) {
			t.Errorf("%q: %s", tc, got)
		}
		if m.Options.Model != "the lead's" || !slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.Contains(w, "the model sonnet is the session's here") }) {
			t.Errorf("%q: model %s, warnings %q", tc, m.Options.Model, s.Warnings)
		}
		s = open(t, Options{ApprovalMode: tc[0], Agent: "x"}, files)
		if got := s.ApprovalMode(); got != tc[2] {
			t.Errorf("%q: as the session's own: %s", tc, got)
		}
	}
}

// A rule about one kind of agent, or one skill, meets it however a call names it,
// and no tool of ours reads an argument by another name than rules do.
func TestNamesRulesKnow(t *testing.T) {
	files := map[string]string{
		"~/.claude/agents/kelvin.md": "---\nname: task\ndescription: d\n---\n",
		"~/.capstan/settings.json":   `{"permissions": {"deny": ["Agent(general-purpose)", "Agent(TASK)", "Agent(Explore)", "Agent(fork)"]}}`,
	}
	s := open(t, Options{}, files)
	for _, args := range []string{
		`{"subagent_type":"general-purpose"}`, `{}`, `{"subagent_type":""}`, `{"subagent_type":"General-Purpose"}`, `{"subagent_type":"explore"}`, `{"subagent_type":"EXPLORE"}`,
		`{"subagent_type":"ta\u017fk"}`, `{"subagent_type":"tas\u212a"}`, `{"subagent_type":"fork"}`, `{"subagent_type":"FOR\u212a","fork_tools":[]}`,
	} {
		args = strings.Replace(args[:len(args)-1]+`,"prompt":"x"}`, "{,", "{", 1)
		why, err := s.Why(`{"name":"agent","arguments":` + args + `}`)
		if err != nil || why.Decision != "deny" || why.Wrong != nil {
			t.Errorf("%s: %+v, %v", args, why, err)
		}
	}
	for _, e := range s.Registry.Tools() {
		var in struct{ Properties map[string]json.RawMessage }
		if err := json.Unmarshal(e.Declaration().Parameters, &in); err != nil {
			t.Fatal(err)
		}
		for name := range in.Properties {
			other := strings.ToUpper(name)
			if _, _, err := e.Validate(json.RawMessage(`{"` + other + `":1}`)); err == nil || !strings.Contains(err.Error(), "/"+other+": ") {
				t.Errorf("%s takes %s: %v", e.Spec().Name, other, err)
			}
		}
	}
}

// An agent that leads a session starts the kinds that its tools name, and no
// others.
func TestKindsThatMayStart(t *testing.T) {
	s := open(t, Options{Agent: "lead"}, map[string]string{
		"~/.claude/agents/lead.md":   "---\nname: lead\ndescription: d\ntools: Agent(Worker), Read\n---\n",
		"~/.claude/agents/worker.md": "---\nname: worker\ndescription: d\n---\n",
	})
	var offered []string
	for _, x := range s.startable() {
		offered = append(offered, x.Name)
	}
	if diff := cmp.Diff([]string{"worker"}, offered); diff != "" {
		t.Error(diff)
	}
	for kind, want := range map[string]string{"worker": "", "general-purpose": "the agent lead may not start general-purpose: of its tools, Agent names Worker", "explore": "may not start", agent.Fork: "may not start"} {
		_, err := s.member(t.Context(), agent.Order{Kind: kind}, agent.Options{})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", kind, err, want)
		}
	}
}

// What a person mistypes is said, and nothing is run instead.
func TestAgentFaults(t *testing.T) {
	files := map[string]string{"~/.qwen/agents/x.md": "---\nname: x\ndescription: d\ntools: Raed, WebSearch, mcp__far\nmodel: nowhere/m\n---\n", "~/.capstan/agents/p.md": "---\nname: p\n---\n"}
	s := open(t, Options{}, files)
	if len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "there are no tools Raed;") {
		t.Errorf("warnings %q", s.Warnings)
	}
	for kind, want := range map[string]string{"x": "the model of the agent x: ", "p": "p is a preset", "explorer": "did you mean explore?"} {
		if _, err := s.member(t.Context(), agent.Order{Kind: kind}, agent.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
