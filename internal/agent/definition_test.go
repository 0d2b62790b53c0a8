package agent_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"capstan/internal/agent"
	"capstan/internal/tool"
)

// defined writes files and loads the definitions among them. Paths begin with
// home/ or root/.
func defined(t testing.TB, trusted bool, files map[string]string) (*agent.Definitions, []string, string) {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"home", "root"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d, warnings := agent.LoadDefinitions(agent.DefinitionOptions{Home: filepath.Join(dir, "home"), Root: filepath.Join(dir, "root"), Trusted: trusted})
	for i := range warnings {
		warnings[i] = strings.ReplaceAll(warnings[i], dir, "")
	}
	return d, warnings, dir
}

var noPath = cmpopts.IgnoreFields(agent.Definition{}, "Path", "HooksFrom", "HooksProject")

// The words of Claude Code, of qwen-code and our own are all understood.
func TestDefinition(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       agent.Definition
		notes      string
	}{
		{"claude", "---\nname: code-reviewer\ndescription: \"Reviews code.\"\ntools: Read, Grep, Glob, Bash\nmodel: inherit\ncolor: red\npermissionMode: plan\nmaxTurns: 12\n---\n\nYou review code.\n",
			agent.Definition{Name: "code-reviewer", Description: "Reviews code.", Prompt: "You review code.", Approval: "plan", MaxTurns: 12,
				Tools: []string{"read_file", "list_directory", "glob", "grep_search", "run_shell_command"}}, ""},
		{"qwen", "---\nname: tester\ndescription: Writes tests\ntools:\n  - read_file\n  - write_file\n  - mcp__github\nmodelConfig:\n  model: openai/qwen-plus\n  temp: 0.3\nrunConfig:\n  max_turns: 10\n  max_time_minutes: 1.5\napprovalMode: auto-edit\n---\nTest.",
			agent.Definition{Name: "tester", Description: "Writes tests", Prompt: "Test.", Tools: []string{"read_file", "write_file", "mcp__github"}, Model: "openai/qwen-plus", MaxTurns: 10, Wall: 90 * time.Second, Approval: "auto-edit"}, ""},
		{"ours", "---\ndescription: Reads\nmode: code\npreset: base\ndisallowedTools: [Bash, mcp__x__*]\nbackground: true\n---\n",
			agent.Definition{Name: "x", Description: "Reads", Mode: tool.Code, Preset: "base", Disallowed: []string{"run_shell_command", "mcp__x__*"}, Background: true}, ""},
		{"hooks", "---\nname: x\ndescription: d\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: ./check\n---\n",
			agent.Definition{Name: "x", Description: "d", Hooks: json.RawMessage(`{"PreToolUse":[{"hooks":[{"command":"./check","type":"command"}],"matcher":"Bash"}]}`)}, ""},
		{"no tools", "---\nname: x\ndescription: d\ntools: []\n---\n", agent.Definition{Name: "x", Description: "d", Tools: []string{}}, ""},
		{"all tools", "---\nname: x\ndescription: d\ntools: \"*\"\n---\n", agent.Definition{Name: "x", Description: "d"}, ""},
		{"tools left empty", "---\nname: x\ndescription: d\ntools:\n---\n", agent.Definition{Name: "x", Description: "d"}, ""},
		{"nobody is asked", "---\nname: x\ndescription: d\npermissionMode: dontAsk\n---\n", agent.Definition{Name: "x", Description: "d", Approval: "default", Silent: true}, ""},
		{"subagents of a kind", "---\nname: x\ndescription: d\ntools: Read, Agent(a, b)\n---\n", agent.Definition{Name: "x", Description: "d", Tools: []string{"read_file", "list_directory", "glob", "grep_search", "agent"}, Starts: []string{"a", "b"}}, ""},
		{"subagents of any kind", "---\nname: x\ndescription: d\ntools: Task(*), Agent()\n---\n", agent.Definition{Name: "x", Description: "d", Tools: []string{"agent"}}, ""},
		{"a preset", "---\nname: x\nmode: both\n---\n", agent.Definition{Name: "x", Mode: tool.Both}, ""},
		// Many agents in the wild have a colon in their description.
		{"no YAML", "---\nname: x\ndescription: Use this: when needed. Examples: <example>\\nContext: c</example>\ntools: [Read, \"Bash\"]\nmodel: opus\ncolor: green\n---\nBe: good.",
			agent.Definition{Name: "x", Description: "Use this: when needed. Examples: <example> Context: c</example>", Prompt: "Be: good.", Model: "opus", Tools: []string{"read_file", "list_directory", "glob", "grep_search", "run_shell_command"}},
			"agents: /root/.claude/agents/x.md: its front matter is no YAML and was read line by line: put quotation marks around values with a colon"},
		{"no YAML, with a list", "---\nname: x\ndescription: a: b\ndisallowedTools:\n  - Bash\n  - 'Write'\ncolor: green\n---\n",
			agent.Definition{Name: "x", Description: "a: b", Disallowed: []string{"run_shell_command", "write_file"}},
			"agents: /root/.claude/agents/x.md: its front matter is no YAML and was read line by line: put quotation marks around values with a colon"},
		{"no YAML, with comments", "---\n# a reviewer\nname: x # its name\ndescription: \"a # b\": c\nuser: one\nuser: two\ndisallowedTools: # no shell\n  # nor files\n  - Bash # no shell\n  - Write\t# nor this\npermissionMode: plan # only\n---\n",
			agent.Definition{Name: "x", Description: `"a # b": c`, Disallowed: []string{"run_shell_command", "write_file"}, Approval: "plan"},
			"agents: /root/.claude/agents/x.md: its front matter is no YAML and was read line by line: put quotation marks around values with a colon"},
		{"no YAML, and a comment behind", "---\nname: x\ndescription: Reviews: all\ndisallowedTools: Bash # no shell\n---\n",
			agent.Definition{Name: "x", Description: "Reviews: all", Disallowed: []string{"run_shell_command"}},
			"agents: /root/.claude/agents/x.md: its front matter is no YAML and was read line by line: put quotation marks around values with a colon"},
		{"no YAML, a list over lines", "---\nname: x\ndescription: Reviews: all\ndisallowedTools: [Bash, # no shell\n  \"mcp__x__*\"]\n---\n",
			agent.Definition{Name: "x", Description: "Reviews: all", Disallowed: []string{"run_shell_command", "mcp__x__*"}},
			"agents: /root/.claude/agents/x.md: its front matter is no YAML and was read line by line: put quotation marks around values with a colon"},
		{"what has no effect here", "---\nname: x\ndescription: d\nisolation: worktree\ntools: Bash(git diff:*)\n---\n", agent.Definition{Name: "x", Description: "d", Tools: []string{"run_shell_command"}},
			"agents: /root/.claude/agents/x.md: tools: what stands in parentheses after Bash does not narrow it: write rules into permissions\nagents: /root/.claude/agents/x.md: it runs in the working directory itself, not in one of its own"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			files := map[string]string{"root/.claude/agents/x.md": tc.text}
			if tc.want.Preset != "" {
				files["home/.capstan/agents/base.md"] = "---\nname: base\n---\n"
			}
			d, warnings, _ := defined(t, true, files)
			var got *agent.Definition
			for _, x := range d.All() {
				if x.Project {
					got = x
				}
			}
			if got == nil {
				t.Fatalf("not loaded: %q", warnings)
			}
			tc.want.Project = true
			if diff := cmp.Diff(&tc.want, got, noPath, cmpopts.IgnoreUnexported(agent.Definition{})); diff != "" {
				t.Error(diff)
			}
			if notes := strings.Join(warnings, "\n"); notes != tc.notes {
				t.Errorf("warnings %q, want %q", notes, tc.notes)
			}
		})
	}
}

// What cannot be used is not, above all when it would have restricted the agent,
// and the warning says why.
func TestDefinitionFaults(t *testing.T) {
	for text, want := range map[string]string{
		"hello":                                                        "it does not begin with front matter",
		"---\nname: x\n":                                               "no line --- ends its front matter",
		"---\n---\nprompt":                                             "its front matter has no fields",
		"---\nname: x\n---\nprompt":                                    "no description",
		"---\nname: fork\ndescription: d\n---":                         "the name fork is taken",
		"---\nname: a b\ndescription: d\n---":                          "letters, digits",
		"---\ndescription: d\ntools: {a: b}\n---":                      "tools: want names of tools",
		"---\ndescription: d\ntools: [[a]]\n---":                       "tools: want names of tools",
		"---\ndescription: d\ndisallowedTools: Bash(rm:*)\n---":        "disallowedTools: it takes away whole tools",
		"---\ndescription: d\nmode: native\n---":                       `mode: unknown mode "native"`,
		"---\ndescription: d\npermissionMode: free\n---":               `permissionMode: unknown approval mode "free"`,
		"---\ndescription: d\nmaxTurns: 0\n---":                        `maxTurns: "0": want a whole number from 1 on`,
		"---\ndescription: d\nrunConfig: {max_time_minutes: -1}\n---":  "max_time_minutes",
		"---\ndescription: d\nhooks: ./check\n---":                     "hooks: want a map",
		"---\ndescription: a: b\nhooks:\n  PreToolUse: []\n---":        "reading its front matter",
		"---\ndescription: a: b\ndisallowedTools: |\n  Bash\n---":      `disallowedTools: "| Bash" is no name of a tool`,
		"---\ndescription: a: b\ndisallowedTools: Bash Write\n---":     `disallowedTools: "Bash Write" is no name of a tool`,
		"---\ndescription: d\ndisallowedTools: Bash Write\n---":        `disallowedTools: "Bash Write" is no name of a tool`,
		"---\ndescription: d\ndisallowedTools: [\"Bash\\u200b\"]\n---": "is no name of a tool",
		"---\ndescription: a: b\ndisallowedTools:\n- - Bash\n---":      `disallowedTools: "- Bash" is no name of a tool`,
		"---\ndescription: a: b\ndisallowedTools:\n- Read\nBash\n---":  `disallowedTools: "Bash" is no part of the list`,
		"---\ndescription: a: b\n disallowedTools: Bash\n---":          "disallowedTools has to stand at the beginning of a line",
		"---\ndescription: a: b\n\"disallowedTools\": Bash\n---":       "disallowedTools has to stand at the beginning of a line",
		"---\ndescription: a: b\ndisallowedTools : Bash\n---":          "disallowedTools has to stand at the beginning of a line",
		"---\ndescription: a: b\n? disallowedTools\n: Bash\n---":       "disallowedTools has to stand at the beginning of a line",
		"---\ndescription: a: b\ntools: Read\ntools: Bash\n---":        "tools is there twice",
		"---\ndescription: a: b\ndisallowed-tools: Bash\n---":          "disallowed-tools is no field: did you mean disallowedTools?",
		"---\ndescription: d\nDisallowedTools: Bash\n---":              "DisallowedTools is no field: did you mean disallowedTools?",
		"---\ndescription: d\ntools: Read, Agent(worker\n---":          "tools: the closing parenthesis of Agent(worker is missing",
		"---\ndescription: &d text\nname: *d\n---":                     "name: an alias is not followed",
		"---\ndescription: d\npreset: nowhere\n---":                    `cannot be run: the agent x has the preset "nowhere", which there is not`,
		"---\ndescription: d\npreset: x\n---":                          "have no end: x, then x",
		"---\ndescription: d\n---\x00":                                 "not UTF-8 text",
		"---\ndescription: d\n---\n" + strings.Repeat("long ", 20_000): "larger than 64 KiB",
	} {
		_, warnings, _ := defined(t, true, map[string]string{"root/.qwen/agents/x.md": text})
		if len(warnings) != 1 || !strings.Contains(warnings[0], want) || !strings.HasPrefix(warnings[0], "agents: /root/.qwen/agents/x.md ") {
			t.Errorf("%.60q: %q, want %q", text, warnings, want)
		}
	}
}

// Where definitions lie, and which of two with one name counts.
func TestLoadDefinitions(t *testing.T) {
	one := func(name, description string) string {
		return "---\nname: " + name + "\ndescription: " + description + "\n---\n"
	}
	files := map[string]string{
		"root/.capstan/agents/a.md":     one("a", "root capstan"),
		"root/.claude/agents/a.md":      one("a", "root claude"),
		"home/.claude/agents/a.md":      one("a", "home claude"),
		"home/.qwen/agents/b.md":        one("b", "home qwen"),
		"root/.qwen/agents/sub/c.md":    one("c", "in a folder"),
		"root/.qwen/agents/README.txt":  "no agent",
		"root/.claude/agents/.draft.md": "no agent",
		"home/.capstan/agents/e.md":     one("Explore", "my own"),
	}
	kinds := func(d *agent.Definitions) map[string]string {
		got := map[string]string{}
		for _, x := range d.Kinds() {
			got[x.Name] = x.Description
		}
		return got
	}
	d, warnings, _ := defined(t, true, files)
	got := kinds(d)
	delete(got, agent.General)
	delete(got, agent.Explore)
	if diff := cmp.Diff(map[string]string{"a": "root capstan", "b": "home qwen", "c": "in a folder", "Explore": "my own"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"agents: /root/.claude/agents/a.md is not used: /root/.capstan/agents/a.md has the same name, a, and goes before it"}, warnings); diff != "" {
		t.Error(diff)
	}
	// In a folder that nobody trusts none is read.
	d, warnings, _ = defined(t, false, files)
	if got := kinds(d); got["a"] != "home claude" || got["c"] != "" {
		t.Errorf("not trusted: %v", got)
	}
	if diff := cmp.Diff([]string{"/root/.capstan/agents, /root/.claude/agents: not used, because this folder is not trusted: agents (--trust uses them for one run)"}, warnings); diff != "" {
		t.Error(diff)
	}
	if x, err := d.Find("A"); err != nil || x.Name != "a" {
		t.Errorf("by another case of letters: %v, %v", x, err)
	}
	if _, err := d.Find("explorer"); err == nil || err.Error() != `there is no agent "explorer": did you mean explore?` && err.Error() != `there is no agent "explorer": did you mean Explore?` {
		t.Errorf("a misspelt name: %v", err)
	}
}

// A link of a workspace does not lead out of it, one of the user's own may, and
// nothing waits for a pipe.
func TestDefinitionLinks(t *testing.T) {
	_, _, dir := defined(t, true, map[string]string{"away/x.md": "---\nname: away\ndescription: d\n---\n", "root/.claude/agents/y.md": "---\nname: y\ndescription: d\n---\n", "home/.claude/agents/z.md": "---\nname: z\ndescription: d\n---\n"})
	for _, at := range []string{"root", "home"} {
		if err := os.Symlink(filepath.Join(dir, "away", "x.md"), filepath.Join(dir, at, ".claude", "agents", "link.md")); err != nil {
			t.Skip(err)
		}
	}
	d, warnings := agent.LoadDefinitions(agent.DefinitionOptions{Home: filepath.Join(dir, "home"), Root: filepath.Join(dir, "root"), Trusted: true})
	x, err := d.Find("away")
	if err != nil || x.Project {
		t.Errorf("the user's own link: %v, %v", x, err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "leads out of") {
		t.Errorf("warnings %q", warnings)
	}
}

// The nearest of agent, preset and session counts, and what may be called is what
// all allow. S2-018 S2-088
func TestPresets(t *testing.T) {
	d, warnings, _ := defined(t, true, map[string]string{
		"root/.capstan/agents/base.md":   "---\nname: base\nmode: code\ntools: Read, Bash, mcp__*\nmaxTurns: 5\napprovalMode: default\n---\n",
		"root/.capstan/agents/strict.md": "---\nname: strict\npreset: base\ndisallowedTools: Bash\napprovalMode: plan\nmodel: openai/m\n---\n",
		"root/.capstan/agents/one.md":    "---\nname: one\ndescription: d\npreset: strict\ntools: Read, Write, mcp__git\nmaxTurns: 3\napprovalMode: yolo\n---\nGo.",
		"root/.capstan/agents/lead.md":   "---\nname: lead\ntools: Agent(a, B)\n---\n",
		"root/.capstan/agents/three.md":  "---\nname: three\ndescription: d\npreset: lead\ntools: Agent(b, c), Agent\n---\n",
		"root/.capstan/agents/four.md":   "---\nname: four\ndescription: d\npreset: lead\n---\n",
		"root/.capstan/agents/five.md":   "---\nname: five\ndescription: d\npreset: lead\ntools: Agent(,)\n---\n",
		"root/.capstan/agents/two.md":    "---\nname: two\ndescription: d\npreset: base\nmode: both\n---\n",
	})
	if warnings != nil {
		t.Error(warnings)
	}
	one, err := d.Find("one")
	if err != nil {
		t.Fatal(err)
	}
	want := &agent.Definition{Name: "one", Description: "d", Prompt: "Go.", Preset: "strict", Mode: tool.Code, Model: "openai/m", MaxTurns: 3, Approval: "plan", Project: true,
		Tools: []string{"read_file", "list_directory", "glob", "grep_search", "mcp__git"}, Disallowed: []string{"run_shell_command"}}
	if diff := cmp.Diff(want, one, noPath, cmpopts.IgnoreUnexported(agent.Definition{})); diff != "" {
		t.Error(diff)
	}
	if two, err := d.Find("two"); err != nil || two.Mode != tool.Both || two.MaxTurns != 5 {
		t.Errorf("%+v, %v", two, err)
	}
	for name, want := range map[string][]string{"three": {"b"}, "four": {"a", "B"}, "five": {}, "one": nil} {
		if x, err := d.Find(name); err != nil || !cmp.Equal(x.Starts, want) {
			t.Errorf("%s may start %q, want %q: %v", name, x.Starts, want, err)
		}
	}
	for _, tc := range [][3]string{{"", "", ""}, {"plan", "", "plan"}, {"", "yolo", "yolo"}, {"yolo", "default", "default"}, {"auto-edit", "yolo", "auto-edit"}, {"what", "plan", "what"}} {
		if got := agent.Stricter(tc[0], tc[1]); got != tc[2] {
			t.Errorf("the stricter of %q and %q is %q", tc[0], tc[1], got)
		}
	}
}

// Whatever a file holds, loading it ends, and what is loaded can be used.
func FuzzDefinition(f *testing.F) {
	f.Add("---\nname: a\ndescription: b\ntools: Read, Bash(x, y)\n---\nbody")
	f.Add("---\ndescription: a: b\ntools:\n- x\n---\n")
	f.Add("---\n{a: &x [*x]}\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		d, _, _ := defined(t, true, map[string]string{"root/.claude/agents/x.md": text})
		for _, x := range d.Kinds() {
			if x.Name == "" || strings.ContainsAny(x.Description, "\n\r\x1b") || len([]rune(x.Description)) > 1024 {
				t.Errorf("%+v", x)
			}
			if x.Hooks != nil && !json.Valid(x.Hooks) {
				t.Errorf("hooks %s", x.Hooks)
			}
		}
	})
}
