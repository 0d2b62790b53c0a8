package app

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/tool"
)

// A deny rule without parentheses takes its tools out of the scope: they are not
// declared, documented, found or named in the prompt. One about some calls does not.
// S2-019
func TestForbiddenTools(t *testing.T) {
	skill := map[string]string{"~/.capstan/skills/notes/SKILL.md": "---\ndescription: d\n---\nx"}
	for _, tc := range []struct {
		name, rules string
		opt         Options
		gone        []string
		warning     string // in code mode
	}{
		{name: "none", rules: `"deny": []`},
		{name: "one", rules: `"deny": ["web_fetch"]`, gone: []string{"web_fetch"}},
		{name: "several, by names of others and a pattern", rules: `"deny": ["Read", "job_*", "WebFetch(*)"]`,
			gone: []string{"read_file", "list_directory", "glob", "grep_search", "job_list", "job_output", "job_stop", "web_fetch"}},
		{name: "skills", rules: `"deny": ["skill"]`, gone: []string{"skill"}},
		{name: "some calls", rules: `"deny": ["Edit(/src/**)", "Bash(rm:*)", "WebFetch(domain:go.dev)"]`},
		{name: "ask", rules: `"ask": ["web_fetch"]`},
		{name: "and a flag", rules: `"deny": ["edit"]`, opt: Options{Exclude: []string{"glob"}}, gone: []string{"edit", "glob"}},
		{name: "what code mode needs", rules: `"deny": ["exec"]`, warning: `forbids exec: in code mode it is the only way to the other tools`},
		{name: "what a schema needs", rules: `"deny": ["structured_output"]`, opt: Options{Structured: []byte(`{"type":"object"}`)},
			warning: "forbids structured_output: with --json-schema the run ends with a call of it"},
	} {
		for _, mode := range []tool.Mode{tool.Direct, tool.Code, tool.Both} {
			t.Run(tc.name+"/"+string(mode), func(t *testing.T) {
				all := open(t, Options{Mode: mode, Structured: tc.opt.Structured}, skill)
				files := map[string]string{"~/.capstan/settings.json": `{"permissions": {` + tc.rules + `}}`}
				for name, text := range skill {
					files[name] = text
				}
				o := tc.opt
				o.Mode = mode
				s := open(t, o, files)
				gone := tc.gone
				if tc.name == "what code mode needs" && mode == tool.Both {
					gone = []string{tool.ExecName}
				}
				want := slices.DeleteFunc(reached(all), func(n string) bool { return slices.Contains(gone, n) })
				if diff := cmp.Diff(want, reached(s)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				for _, name := range gone {
					if strings.Contains(wire(t, s), `"name":"`+name+`"`) || strings.Contains(s.Types(s.View()), name+"(") {
						t.Errorf("%s is declared", name)
					}
					if found, err := s.Search(context.Background(), s.View(), "select:"+name, 5); err != nil || len(found.Tools) > 0 {
						t.Errorf("%s is found: %+v, %v", name, found, err)
					}
				}
				if got := len(s.Skills()) == 0; got != slices.Contains(gone, "skill") {
					t.Errorf("skills %q", s.Skills())
				}
				warned := strings.Join(s.Warnings, "\n")
				if tc.warning == "" && warned != "" || mode == tool.Code && !strings.Contains(warned, tc.warning) {
					t.Errorf("warnings %q, want %q", s.Warnings, tc.warning)
				}
			})
		}
	}
}

// A mode in which a session goes on, or that somebody looks at, has a scope of its
// own; a server that is forbidden is not spoken of before it has answered.
func TestForbiddenInAnotherMode(t *testing.T) {
	s := open(t, Options{}, map[string]string{"~/.capstan/settings.json": `{"mcpServers": {"prod": {"command": "prod"}, "b": {"command": "b"}}, "permissions": {"deny": ["exec", "mcp__prod"]}}`})
	if s.View().Serves("prod") || !s.View().Serves("b") {
		t.Error("the wrong servers")
	}
	for mode, want := range map[tool.Mode]bool{tool.Direct: false, tool.Code: true, tool.Both: false} {
		v, err := s.InMode(mode)
		if err != nil {
			t.Fatal(err)
		}
		if direct, _ := v.Reach(tool.ExecName); direct != want {
			t.Errorf("%s: exec is there: %v", mode, direct)
		}
	}
	for _, mode := range []string{"both", "code"} {
		if err := s.goOnIn(mode); err != nil {
			t.Error(err)
		}
		if got := slices.Contains(declared(s), tool.ExecName); got != (mode == "code") {
			t.Errorf("going on in %s: exec is there: %v", mode, got)
		}
	}
}

// reached are the tools that a session's model can call in some way.
func reached(s *Session) []string {
	var names []string
	for _, e := range s.Registry.Tools() {
		if s.View().Visible(e.Spec().Name) != nil {
			names = append(names, e.Spec().Name)
		}
	}
	return names
}
