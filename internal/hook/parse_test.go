package hook

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/sched"
)

// Headers of a folder's hooks are not given what holds a key of the user's, and
// another hook that does the same has what it is allowed.
func TestWithheld(t *testing.T) {
	in := json.RawMessage(`{"Stop": [{"hooks": [{"type": "http", "url": "http://h/", "headers": {"A": "$KEY$OTHER"}, "allowedEnvVars": ["KEY", "OTHER"]}]}]}`)
	h, warnings, err := Parse([]Source{{Value: in, Where: where, Withheld: []string{"key"}}, {Value: in, Where: where}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"settings:5: hooks.Stop[0].hooks[0].allowedEnvVars: KEY is not given to a hook of the folder: it holds a key of yours",
		`settings:5: hooks.Stop[0].hooks[0].headers: KEY stays empty in "A": it is not in allowedEnvVars`}
	if d := cmp.Diff(want, warnings); d != "" {
		t.Error(d)
	}
	d := New(h, Options{Env: func(name string) string { return "<" + name + ">" }})
	defer d.Close()
	var got []string
	for _, p := range d.forWord(Stop, "") {
		got = append(got, d.expand(p.h, "$KEY$OTHER"))
	}
	if d := cmp.Diff([]string{"<OTHER>", "<KEY><OTHER>"}, got); d != "" {
		t.Error(d)
	}
}

// A hook that nobody waits for does not stand for the same one that can block.
func TestAsyncAndNot(t *testing.T) {
	r := newRig(t, `{"PreToolUse": [{"hooks": [{"type": "command", "command": "exit 2", "async": true}, {"type": "command", "command": "exit 2"}]}]}`)
	got, err := r.Before(t.Context(), request(t, "run_shell_command", `{"command":"x"}`))
	if err != nil || got.Decision != sched.Deny {
		t.Errorf("%+v %v", got, err)
	}
}

// Nor does one that runs once in a session, required or not, or that is given
// less time than it needs.
func TestOnceAndAlways(t *testing.T) {
	for _, hooks := range []string{
		`[{"hooks": [{"type": "command", "command": "exit 2", "once": true}, {"type": "command", "command": "exit 2"}]}]`,
		`[{"hooks": [{"type": "command", "command": "exit 2"}]}, {"matcher": "*", "hooks": [{"type": "command", "command": "exit 2", "once": true, "required": true}]}]`,
		`[{"hooks": [{"type": "command", "command": "sleep 0.2; exit 2", "timeout": 0.01}, {"type": "command", "command": "sleep 0.2; exit 2", "timeout": 60}]}]`,
	} {
		r := newRig(t, `{"PreToolUse": `+hooks+`}`)
		for n := range 2 {
			got, err := r.Before(t.Context(), request(t, "run_shell_command", `{"command":"x"}`))
			if err != nil || got.Decision != sched.Deny {
				t.Errorf("%s: call %d: %+v %v", hooks, n+1, got, err)
			}
		}
	}
}

// What a hooks setting may look like, and what is said of one that is wrong. Every
// fault is told with its place: what nobody understands may be there to forbid
// something.
func TestParse(t *testing.T) {
	cmd := `{"type": "command", "command": "true"}`
	for _, tc := range []struct {
		name, in string
		hooks    []string
		warnings []string
		faults   []string
	}{
		{name: "none", in: `{}`},
		{name: "as Claude Code writes it", in: `{"PreToolUse": [{"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "check.sh", "timeout": 5}]}], "Stop": [{"hooks": [` + cmd + `]}]}`,
			hooks: []string{`PreToolUse [Edit Write] "check.sh" 5s`, `Stop all "true" 10m0s`}},
		{name: "an empty matcher, a star, a list with commas", in: `{"PreToolUse": [{"matcher": "", "hooks": [` + cmd + `]}, {"matcher": "A, B", "hooks": [{"type": "command", "command": "false"}]}]}`,
			hooks: []string{`PreToolUse all "true" 10m0s`, `PreToolUse [A B] "false" 10m0s`}},
		{name: "times", in: `{"UserPromptSubmit": [{"hooks": [` + cmd + `]}], "SessionEnd": [{"hooks": [` + cmd + `]}], "Stop": [{"hooks": [{"type": "command", "command": "a", "timeout": 0.5}, {"type": "command", "command": "b", "timeout": 5000}]}]}`,
			hooks:    []string{`SessionEnd all "true" 5s`, `Stop all "a" 500ms`, `Stop all "b" 5s`, `UserPromptSubmit all "true" 30s`},
			warnings: []string{"settings:5: hooks.Stop[0].hooks[1].timeout: 5000 is read as milliseconds: the timeout is in seconds, and 1,000 or more is qwen-code's old form"}},
		{name: "the same hook twice runs once", in: `{"Stop": [{"hooks": [` + cmd + `,` + cmd + `]}]}`, hooks: []string{`Stop all "true" 10m0s`}},
		{name: "http", in: `{"Stop": [{"hooks": [{"type": "http", "url": "https://user:pw@example.com/x?key=1", "headers": {"Authorization": "Bearer $TOKEN", "X": "${OTHER}"}, "allowedEnvVars": ["TOKEN"]}]}]}`,
			hooks:    []string{`Stop all "https://example.com/x" 10m0s`},
			warnings: []string{`settings:5: hooks.Stop[0].hooks[0].headers: OTHER stays empty in "X": it is not in allowedEnvVars`}},
		{name: "what other products have", in: `{"WorktreeCreate": [{"hooks": [` + cmd + `]}], "PreToolUse": [{"hooks": [{"type": "prompt", "prompt": "?"}, {"type": "command", "command": "x", "if": "Bash(git *)", "sometimes": 1, "statusMessage": "…"}], "sequential": true}]}`,
			hooks: []string{`PreToolUse all "x" 10m0s`},
			warnings: []string{
				`settings:3: hooks.PreToolUse[0].sequential: "sequential" has no effect: expected one of matcher, hooks`,
				`settings:4: hooks.PreToolUse[0].hooks[0]: Capstan runs no hooks of type "prompt", so this one has no effect`,
				`settings:5: hooks.PreToolUse[0].hooks[1].if: "if" is not looked at, so the hook runs for all that its matcher takes`,
				`settings:5: hooks.PreToolUse[0].hooks[1].sometimes: "sometimes" has no effect: expected one of type, command, args, shell, env, url, headers, allowedEnvVars, timeout, required, async, once, name`,
				`settings:1: hooks.WorktreeCreate: Capstan has no event WorktreeCreate, so its hooks never run`}},
		{name: "not an object", in: `[]`, faults: []string{"settings:0: hooks: want an object, not a list"}},
		{name: "misspelt event", in: `{"PreTooluse": []}`, faults: []string{`settings:1: hooks.PreTooluse: there is no event "PreTooluse": want one of Notification, PermissionRequest, PostToolBatch, PostToolUse, PostToolUseFailure, PreCompact, PreToolUse, SessionEnd, SessionStart, Stop, SubagentStart, SubagentStop, UserPromptSubmit`}},
		{name: "required where it cannot run", in: `{"WorktreeCreate": [{"hooks": [{"type": "command", "command": "x", "required" : true}]}], "Stop": [{"hooks": [{"type": "agent", "required": true}, {"type": "command", "command": "x", "required": true, "async": true}]}]}`,
			faults: []string{
				`settings:4: hooks.Stop[0].hooks[0]: Capstan runs no hooks of type "agent", so a required one could never be answered: use a command`,
				`settings:4: hooks.Stop[0].hooks[1]: a required hook cannot be async: nobody would wait for its answer`,
				`settings:1: hooks.WorktreeCreate: Capstan has no event WorktreeCreate, so a required hook of it would never run`}},
		{name: "every fault of one file", in: `{"Stop": 1, "PreToolUse": [2, {"matcher": "(", "hooks": [{}, {"type": "x"}, {"type": "command", "command": 3}, {"type": "command", "command": "a", "timeout": "5", "required": "yes", "shell": "fish", "env": {"A=": "1"}, "args": "b"}]}, {}], "SessionStart": [{"hooks": [{"type": "http", "url": "ftp://x"}, {"type": "http", "url": "http://x/$Y", "headers": {"Host": "a", "A": "b\nc"}}, {"type": "http"}]}]}`,
			faults: []string{
				"settings:2: hooks.PreToolUse[0]: want an object, not 2",
				"settings:3: hooks.PreToolUse[1].matcher: the matcher \"(\" is no regular expression: error parsing regexp: missing closing ): `(`",
				`settings:4: hooks.PreToolUse[1].hooks[0]: needs "type": "command" or "http"`,
				`settings:5: hooks.PreToolUse[1].hooks[1].type: want "command" or "http", not "x"`,
				"settings:5: hooks.PreToolUse[1].hooks[2].command: want a text, not 3",
				`settings:4: hooks.PreToolUse[1].hooks[2]: a command hook needs "command"`,
				`settings:5: hooks.PreToolUse[1].hooks[3].required: want true or false, not "yes"`,
				`settings:5: hooks.PreToolUse[1].hooks[3].timeout: want a number of seconds, not "5"`,
				`settings:5: hooks.PreToolUse[1].hooks[3].args: want a list, not a text`,
				`settings:5: hooks.PreToolUse[1].hooks[3].shell: want "bash" or "powershell", not "fish"`,
				`settings:5: hooks.PreToolUse[1].hooks[3].env: "A=" is no name of a variable, or has no usable value`,
				`settings:2: hooks.PreToolUse[2]: needs "hooks", a list of {"type": "command", "command": "…"} or {"type": "http", "url": "…"}`,
				`settings:5: hooks.SessionStart[0].hooks[0].url: "ftp://x" is no address of http or https`,
				`settings:5: hooks.SessionStart[0].hooks[1].url: variables are put into headers only: what an address holds ends up in logs`,
				`settings:5: hooks.SessionStart[0].hooks[1].headers: "A" is no header, or has no usable value`,
				`settings:5: hooks.SessionStart[0].hooks[1].headers: "Host" is no header, or has no usable value`,
				`settings:4: hooks.SessionStart[0].hooks[2]: an http hook needs "url"`,
				`settings:1: hooks.Stop: want a list, not 1`}},
		{name: "a name twice", in: `{"Stop": [{"hooks": [{"type": "command", "type": "http"}]}]}`, faults: []string{"settings:0: hooks: want an object, not what has a name twice: /Stop/0/hooks/0/type"}},
		{name: "too many", in: `{"Stop": [{"hooks": [` + strings.TrimSuffix(strings.Repeat(cmd+",", maxHooks+2), ",") + `]}]}`, faults: []string{"settings:4: hooks.Stop[0].hooks[1000]: more than 1000 hooks"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h, warnings, err := Parse([]Source{{Value: json.RawMessage(tc.in), Where: where}})
			var faults, hooks []string
			if err != nil {
				faults = strings.Split(err.Error(), "\n")
			} else {
				for _, ev := range eventNames() {
					for _, x := range h.by[Event(ev)] {
						m := "all"
						if !x.matcher.all {
							m = fmt.Sprint(x.matcher.words)
						}
						hooks = append(hooks, fmt.Sprintf("%s %s %q %v", ev, m, x.label, x.timeout))
					}
				}
			}
			if d := cmp.Diff([][]string{tc.hooks, tc.warnings, tc.faults}, [][]string{hooks, warnings, faults}); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

// Matchers of Claude Code and of qwen-code mean our tools, and say in whose names
// a hook is told of them.
func TestMatcher(t *testing.T) {
	all := []string{"run_shell_command", "read_file", "write_file", "edit", "glob", "grep_search", "agent", "exec", "mcp__github__get_issue"}
	for _, tc := range []struct{ matcher, want string }{
		{"", "Bash Read Write Edit Glob Grep Task exec mcp__github__get_issue"},
		{"*", "Bash Read Write Edit Glob Grep Task exec mcp__github__get_issue"},
		{"Bash", "Bash"},
		{"Edit|Write", "Write Edit"},
		{"Edit|MultiEdit|Write|NotebookEdit", "Write Edit"},
		{"Read", "Read"}, // unlike a rule, which is about all reading
		{"run_shell_command", "run_shell_command"},
		{"write_file, edit", "write_file edit"},
		{"ShellTool", "run_shell_command"},
		{"replace", "edit"},
		{"Bash|run_shell_command", "Bash"},
		{"bash", ""}, // names have their case
		{"^(Edit|Write)$", "Write Edit"},
		{"Edit.*", "Edit"},
		{"mcp__.*", "mcp__github__get_issue"},
		{"mcp__github__*", "mcp__github__get_issue"},
		{"mcp__github", ""}, // a word, so the whole name
		{"run_.*", "run_shell_command"},
		{".*_file$", "read_file write_file"},
		{"^(?!Bash|Read).*$", "Write Edit Glob Grep Task exec mcp__github__get_issue"},
		{"^(a+)+$(?!b)", ""},
		{"Task|Agent", "Task"},
		{"exec", "exec"},
	} {
		m, err := parseMatcher(tc.matcher)
		if err != nil {
			t.Errorf("%q: %v", tc.matcher, err)
			continue
		}
		var got []string
		for _, name := range all {
			if d, ok := m.tool(name); ok {
				got = append(got, d.name(name))
			}
		}
		if s := strings.Join(got, " "); s != tc.want {
			t.Errorf("%q matches %q, want %q", tc.matcher, s, tc.want)
		}
	}
	// One that never ends counts as a match: the hook may be there to forbid.
	m, err := parseMatcher("^(a+)+$(?!b)")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := m.tool(strings.Repeat("a", 60) + "!"); !ok {
		t.Error("a matcher that takes too long matches nothing")
	}
}

// Arguments in Claude Code's names, and back.
func TestDialect(t *testing.T) {
	for _, tc := range []struct{ tool, args, want string }{
		{"run_shell_command", `{"command":"ls","is_background":true,"directory":"x"}`, `{"command":"ls","directory":"x","run_in_background":true}`},
		{"write_file", `{"file_path":"a/b","content":"<x>"}`, `{"content":"<x>","file_path":"/w/a/b"}`},
		{"edit", `{"file_path":"/abs","old_string":"a","new_string":"b"}`, `{"file_path":"/abs","new_string":"b","old_string":"a"}`},
		{"grep_search", `{"pattern":"x","limit":3}`, `{"head_limit":3,"pattern":"x"}`},
		{"read_file", `{"file_path":12345678901234567890}`, `{"file_path":12345678901234567890}`},
		{"todo_write", `{"todos":[]}`, `{"todos":[]}`},
		{"mcp__a__b", `{"b":1,"a":2}`, `{"b":1,"a":2}`},
		{"run_shell_command", `[1]`, `[1]`},
		{"run_shell_command", `null`, `null`},
	} {
		got := claude.input(tc.tool, json.RawMessage(tc.args), "/w")
		if string(got) != tc.want {
			t.Errorf("%s %s: %s, want %s", tc.tool, tc.args, got, tc.want)
		}
		if same := own.input(tc.tool, json.RawMessage(tc.args), "/w"); string(same) != tc.args {
			t.Errorf("%s: our own names became %s", tc.tool, same)
		}
	}
	if got := claude.back("run_shell_command", json.RawMessage(`{"command":"ls","run_in_background":true}`)); string(got) != `{"command":"ls","is_background":true}` {
		t.Errorf("back: %s", got)
	}
	if got := own.back("run_shell_command", json.RawMessage(`{"is_background":true}`)); string(got) != `{"is_background":true}` {
		t.Errorf("back: %s", got)
	}
}

// Hooks of one subagent: Stop is its SubagentStop, for every type as Stop is, and
// what happens in no subagent is told.
func TestParseSubagent(t *testing.T) {
	const in = `{"Stop": [{"matcher": "x", "hooks": [{"type": "command", "command": "a"}]}], "SubagentStop": [{"matcher": "reviewer", "hooks": [{"type": "command", "command": "b"}]}],
		"SessionStart": [{"hooks": [{"type": "command", "command": "c"}]}]}`
	h, warnings, err := Parse([]Source{{Value: json.RawMessage(in), Where: where, Subagent: true}})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"settings:1: hooks.SessionStart: SessionStart does not happen in a subagent, so these hooks run only where the agent is the session's own (--agent)"}, warnings); d != "" {
		t.Error(d)
	}
	d := New(h, Options{})
	defer d.Close()
	got := map[string][]string{}
	for _, kind := range []string{"reviewer", "helper"} {
		for _, p := range d.forWord(SubagentStop, kind) {
			got[kind] = append(got[kind], string(p.h.event)+" "+p.h.command)
		}
	}
	got["stop"] = nil
	for _, p := range d.forWord(Stop, "") {
		got["stop"] = append(got["stop"], p.h.command)
	}
	if d := cmp.Diff(map[string][]string{"reviewer": {"SubagentStop a", "SubagentStop b"}, "helper": {"SubagentStop a"}, "stop": nil}, got); d != "" {
		t.Error(d)
	}
}
