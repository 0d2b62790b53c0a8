package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

// Rules about one agent or one skill. Claude Code writes Task(NAME), Agent(NAME)
// and Skill(NAME), with :* or * for what it is told.
func TestItemRules(t *testing.T) {
	w := newWorld(t)
	request := func(name string, effect tool.Effect, args string) *sched.Request {
		return &sched.Request{Call: &tool.Call{ID: "1", Name: name, Args: json.RawMessage(args)}, Entry: entry(t, name, effect),
			Access: tool.Access{Reads: []string{w.spill}}}
	}
	for _, c := range []struct {
		rules, tool string
		effect      tool.Effect
		args, want  string
	}{
		{"deny Agent(Explore)", "agent", tool.EffectNone, `{"subagent_type": "Explore"}`, "deny"},
		{"deny Task(Explore)", "agent", tool.EffectNone, `{"subagent_type": "Explore"}`, "deny"},
		{"deny agent(Explore)", "agent", tool.EffectNone, `{"subagent_type": "Explore"}`, "deny"},
		{"deny Agent(Explore)", "agent", tool.EffectNone, `{"subagent_type": "Explorer"}`, "allow"},
		{"deny Agent(Ex*)", "agent", tool.EffectNone, `{"subagent_type": "Explorer"}`, "deny"},
		{"deny Agent(Explore)", "agent", tool.EffectNone, `{}`, "allow"},
		{"deny Agent(Explore)", "agent", tool.EffectNone, `{"subagent_type": 3}`, "allow"},
		{"deny Agent(Explore)", "agent", tool.EffectNone, `{"subagent_type": "explore"}`, "deny"},
		{"deny Agent(task)", "agent", tool.EffectNone, `{"subagent_type": "ta\u017fK"}`, "deny"},
		{"deny Agent(ta*)", "agent", tool.EffectNone, `{"subagent_type": "TASK"}`, "deny"},
		{"ask Skill(PDF)", "skill", tool.EffectRead, `{"skill": "pdf"}`, "ask"},
		{"deny Agent; allow Agent(Explore)", "agent", tool.EffectNone, `{"subagent_type": "Explore"}`, "deny"},
		{"ask Agent(*)", "agent", tool.EffectNone, `{"subagent_type": "x"}`, "ask"},
		{"deny Agent", "agent", tool.EffectNone, `{"subagent_type": "x"}`, "deny"},
		{"deny Skill(pdf)", "skill", tool.EffectRead, `{"skill": "pdf"}`, "deny"},
		{"deny Skill(pdf:*)", "skill", tool.EffectRead, `{"skill": "pdf"}`, "deny"},
		{"deny Skill(pdf *)", "skill", tool.EffectRead, `{"skill": "pdf"}`, "deny"},
		{"deny Skill(/pdf)", "skill", tool.EffectRead, `{"skill": "pdf"}`, "deny"},
		{"deny Skill(pdf)", "skill", tool.EffectRead, `{"skill": "pdf2"}`, "allow"},
		{"deny Skill(pdf)", "list_directory", tool.EffectRead, `{"skill": "pdf"}`, "allow"},
	} {
		o := w.options(Default)
		o.Rules = w.rules(c.rules)
		p, warnings, err := New(o)
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v %v", c.rules, warnings, err)
			continue
		}
		if got := p.Decide(t.Context(), request(c.tool, c.effect, c.args)); decisions[got.Decision] != c.want {
			t.Errorf("%s, %s %s: %s (%s), want %s", c.rules, c.tool, c.args, decisions[got.Decision], got.Reason, c.want)
		}
	}
	// A rule about one agent takes no tool away.
	o := w.options(Default)
	o.Rules = w.rules("deny Agent(Explore); deny Skill(pdf)")
	p, _, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if p.Forbids("agent") != "" || p.Forbids("skill") != "" {
		t.Error("a rule about one name forbids the tool")
	}
}

// Rules as they stand in settings of Claude Code and qwen-code are understood as
// they are: the start goes on, and only what has no counterpart here warns.
func TestForeignRules(t *testing.T) {
	w := newWorld(t)
	o := w.options(Default)
	o.Tools = []string{"run_shell_command", "read_file", "edit", "write_file", "glob", "grep_search", "list_directory", "web_fetch", "skill"}
	o.ToolOf = func(server, tool string) string { return "mcp__" + server + "__" + tool }
	for _, text := range []string{
		"Bash", "Bash(*)", "Bash(npm run *)", "Bash(npm run test:*)", "Bash(git * main)", "Bash(* --version)", "Bash(ls*)", "Bash(git commit -m:*)", "Bash(NODE_ENV=test npm test:*)",
		"Read", "Read(*)", "Read(./.env)", "Read(./.env.*)", "Read(./secrets/**)", "Read(~/.zshrc)", "Read(//etc/hosts)", "Read(**/*.pem)", "Edit(/src/**/*.ts)", "Edit(docs/**)", "Write(*)",
		"MultiEdit", "NotebookEdit", "Glob", "Grep", "LS", "WebFetch", "WebFetch(domain:example.com)", "WebFetch(domain:*.example.com)", "WebFetch(domain:*)", "WebSearch",
		"Task", "Task(code-reviewer)", "Agent(Explore)", "Skill", "Skill(pdf)", "Skill(review-pr *)", "TodoWrite", "ExitPlanMode", "BashOutput", "KillShell",
		"mcp__github", "mcp__github__*", "mcp__github__get_issue", "mcp__*", "ListMcpResourcesTool", "ReadMcpResourceTool",
		"ShellTool", "ShellTool(git status)", "run_shell_command(git)", "run_shell_command", "ReadFileTool", "ReadFile", "WriteFileTool", "EditTool", "GrepTool", "GlobTool", "read_many_files", "replace", "search_file_content",
	} {
		for _, list := range []string{"allow", "ask", "deny"} {
			o.Rules = []Rule{{List: list, Text: text}}
			if _, warnings, err := New(o); err != nil || len(warnings) > 0 {
				t.Errorf("%s %s: %v %v", list, text, warnings, err)
			}
		}
	}
	for _, text := range []string{"PowerShell", "PowerShell(rm:*)", "SlashCommand(/deploy)", "LSP"} {
		o.Rules = []Rule{{List: "deny", Text: text}}
		if _, warnings, err := New(o); err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "no effect") {
			t.Errorf("%s: %v %v", text, warnings, err)
		}
	}
	// *.example.com means what is below it, and the host itself.
	o.Rules = []Rule{{List: "deny", Text: "WebFetch(domain:*.example.com)"}}
	p, _, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if v := p.Decide(t.Context(), w.request(t, "fetch https://a.example.com/")); decisions[v.Decision] != "deny" {
		t.Error(v)
	}
}
