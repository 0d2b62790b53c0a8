//go:build unix

package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"capstan/internal/sched"
	"capstan/internal/shell"
	"capstan/internal/tool"
)

// What a PreToolUse hook can answer, and what becomes of it. BUG-HK-01 BUG-HK-03
func TestBefore(t *testing.T) {
	deny := func(reason string) sched.HookVerdict {
		return sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Deny, Reason: reason}}
	}
	specific := func(s string) string {
		return `echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", ` + s + `}}'`
	}
	for _, tc := range []struct {
		name, command, more string
		want                sched.HookVerdict
		notice              string // a part of what the user is told; empty: nothing
	}{
		{name: "says nothing", command: "true"},
		{name: "says words for the log", command: "echo checked"},
		{name: "reads nothing", command: "exec <&-; true"},
		{name: "exit 2 blocks, and stderr says why", command: "echo ignored; echo 'not on Fridays' >&2; exit 2", want: deny("not on Fridays")},
		{name: "exit 2 alone blocks", command: "exit 2", want: deny(`the hook "exit 2" blocked it and gave no reason`)}, // BUG-HK-01
		{name: "exit 1 blocks nothing, and that is told", command: "echo no >&2; exit 1",
			notice: `the hook "echo no >&2; exit 1" (settings:4): failed: it exited with code 1: no; run_shell_command was NOT blocked by it`}, // BUG-HK-03
		{name: "deny", command: specific(`"permissionDecision": "deny", "permissionDecisionReason": "never"`), want: deny("never")},
		{name: "the old words for deny", command: `echo '{"decision": "block", "reason": "old"}'`, want: deny("old")},
		{name: "allow", command: specific(`"permissionDecision": "allow"`),
			want: sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Allow}}},
		{name: "the old words for allow", command: `echo '{"decision": "approve", "reason": "fine"}'`, want: sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Allow, Reason: "fine"}}},
		{name: "ask", command: specific(`"permissionDecision": "ask", "permissionDecisionReason": "sure?"`), want: sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Ask, Reason: "sure?"}}},
		{name: "an unknown word asks", command: specific(`"permissionDecision": "forbid", "permissionDecisionReason": "x"`), want: sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Ask, Reason: "x"}},
			notice: `says "forbid", which is no decision`},
		{name: "rewrites, in its own names", command: specific(`"permissionDecision": "allow", "permissionDecisionReason": "r", "updatedInput": {"command": "ls", "run_in_background": true}`),
			want: sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Allow, Reason: "r"}, Args: json.RawMessage(`{"command":"ls","is_background":true}`)}},
		{name: "rewrites without a decision", command: specific(`"updatedInput": {"command": "ls"}`), want: sched.HookVerdict{Args: json.RawMessage(`{"command":"ls"}`)}},
		{name: "a context", command: specific(`"additionalContext": "the disk is full"`), want: sched.HookVerdict{Said: []string{`PreToolUse hook "CONTEXT": the disk is full`}}},
		{name: "ends the run", command: `echo '{"continue": false, "stopReason": "enough"}'`, want: deny("enough")},
		{name: "a message for the person", command: `echo '{"systemMessage": "hi \u001b[31mthere", "suppressOutput": true}'`, notice: `says: hi [31mthere`},
		{name: "not JSON", command: `echo '{"decision": '`, notice: "failed: its output is not the JSON of a hook"},
		{name: "of the wrong form", command: `echo '{"decision": 7}'`, notice: "failed: its output is not the JSON of a hook"},
		{name: "a name twice", command: `echo '{"decision": "approve", "decision": "block"}'`, notice: "failed: its output is not the JSON of a hook"},
		{name: "for another event", command: `echo '{"hookSpecificOutput": {"hookEventName": "Stop", "permissionDecision": "allow"}}'`, notice: `failed: its hookSpecificOutput is for "Stop", and the event is PreToolUse`},
		{name: "is not there", command: "./missing.sh", notice: "failed: it cannot be run (exit code 127)"},
		{name: "is not executable", command: "echo x > data; ./data", notice: "failed: it cannot be run (exit code 126)"},
		{name: "killed", command: "kill -9 $$", notice: "failed: it was ended by SIGKILL"},
		{name: "hangs", command: "sleep 1000", more: `, "timeout": 0.2`, notice: "failed: it did not end within 200ms and was ended"},
		{name: "leaves a process behind", command: "sleep 1000 >/dev/null 2>&1 &", notice: "left 1 of its processes running, and they were ended"},
		{name: "leaves one that hides", command: "(setsid sleep 1000 &) >/dev/null 2>&1; exit 2", want: deny(`the hook "(setsid sleep 1000 &) >/dev/null 2>&1; exit 2" blocked it and gave no reason`), notice: "they were ended"},
		{name: "megabytes of words, and then a no", command: "head -c 4000000 /dev/zero | tr '\\0' x; echo no >&2; exit 2", want: deny("no")},
		{name: "megabytes of JSON", command: `printf '{"reason": "'; head -c 4000000 /dev/zero | tr '\0' x; echo '"}'`, notice: "failed: it printed 4000015 bytes; its JSON may have 1048576"},
		{name: "megabytes of reasons", command: "head -c 4000000 /dev/zero | tr '\\0' x >&2; exit 2", want: deny(strings.Repeat("x", maxText-64) + fmt.Sprintf("\n[%d more characters were left out]", maxStderr-maxText+64))},
		{name: "invalid UTF-8", command: `printf 'a\377b' >&2; exit 2`, want: deny("a\ufffdb")},
		{name: "required, and fails", command: "exit 1", more: `, "required": true`, want: deny(`the required hook "exit 1" (settings:4) did not answer: it exited with code 1`), notice: "failed: it exited with code 1"},
		{name: "required, and is not there", command: "./missing.sh", more: `, "required": true`, want: deny("…"), notice: "it cannot be run (exit code 127)"},
		{name: "required, and hangs", command: "sleep 1000", more: `, "required": true, "timeout": 0.2`, want: deny(`the required hook "sleep 1000" (settings:4) did not answer: it did not end within 200ms and was ended`), notice: "did not end within 200ms"},
		{name: "required, and says what nobody understands", command: "echo '{'", more: `, "required": true`, want: deny("…"), notice: "is not the JSON of a hook"},
		{name: "required, and fine", command: "true", more: `, "required": true`},
		{name: "required, with a log before its JSON", command: `echo checking; echo '{"decision": "block"}'`, more: `, "required": true`, want: deny("…"), notice: "it printed what is not the JSON of a hook"},
		{name: "required, and prints an empty line", command: "echo", more: `, "required": true`},
		{name: "without a shell", command: "/bin/sh", more: `, "args": ["-c", "echo \"$1\" >&2; exit 2", "x", "${CLAUDE_PROJECT_DIR}/a b"]`, want: deny("DIR/a b")},
		{name: "without a shell, not there", command: "missing-program", more: `, "args": []`, notice: `it cannot be started: the program "missing-program" was not found in PATH`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, one(PreToolUse, "Bash", tc.command, tc.more))
			got, err := r.Before(t.Context(), request(t, "run_shell_command", `{"command":"rm -rf x"}`))
			if err != nil {
				t.Fatal(err)
			}
			want := tc.want
			if want.Decision != sched.Abstain {
				want.By = fmt.Sprintf("PreToolUse hook %s", r.hooks.by[PreToolUse][0])
			}
			want.Reason = strings.ReplaceAll(want.Reason, "DIR", r.dir)
			switch label := r.hooks.by[PreToolUse][0].label; {
			case want.Reason == "…":
				got.Reason = "…"
			case want.Said != nil:
				want.Said[0] = strings.ReplaceAll(want.Said[0], `"CONTEXT"`, fmt.Sprintf("%q", label))
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			if told := r.notices(); tc.notice == "" && told != "" || !strings.Contains(told, tc.notice) {
				t.Errorf("told %q, want %q", told, tc.notice)
			}
			if strings.Contains(tc.command, "sleep") {
				if left := children(); len(left) > 0 {
					t.Errorf("left running: %v", left)
				}
			}
		})
	}
}

// The JSON that hooks are given, in the names that their matcher speaks, also for
// the call of a program and of a subagent. S0-252 S0-253
func TestPayload(t *testing.T) {
	r := newRig(t, `{
		"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "cat > claude"}]},
			{"matcher": "run_shell_command", "hooks": [{"type": "command", "command": "cat > ours"}]}],
		"PostToolUse": [{"hooks": [{"type": "command", "command": "cat > after"}]}],
		"PostToolUseFailure": [{"hooks": [{"type": "command", "command": "cat > failed"}]}],
		"SubagentStart": [{"matcher": "reviewer", "hooks": [{"type": "command", "command": "cat > started"}]}]}`)
	read := func(name string) map[string]any {
		t.Helper()
		var m map[string]any
		if err := json.Unmarshal([]byte(r.file(name)), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	a := Subagent{ID: "a1", Type: "reviewer", CallID: "c0"}
	if out := r.SubagentStart(t.Context(), a); !cmp.Equal(out, Outcome{}) {
		t.Errorf("%+v", out)
	}
	exec := request(t, tool.ExecName, `{"source":"…"}`)
	exec.Call.ID, exec.Call.ParentID, exec.Call.Agent = "c1", "c0", "a1"
	sh := request(t, "run_shell_command", `{"command":"ls <x>","is_background":false,"directory":"sub"}`)
	sh.Call.ID, sh.Call.ParentID, sh.Call.Source, sh.Call.Agent = "c1/1", "c1", tool.FromProgram, "a1"
	for _, q := range []*sched.Request{exec, sh} {
		if _, err := r.Before(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	common := map[string]any{"session_id": "s1", "transcript_path": "/t.jsonl", "cwd": r.dir, "permission_mode": "acceptEdits", "agent_id": "a1", "agent_type": "reviewer"}
	with := func(more map[string]any) map[string]any {
		out := map[string]any{}
		for _, m := range []map[string]any{common, more} {
			for k, v := range m {
				out[k] = v
			}
		}
		return out
	}
	check := func(name string, want map[string]any) {
		t.Helper()
		if d := cmp.Diff(with(want), read(name)); d != "" {
			t.Errorf("%s: -want +got\n%s", name, d)
		}
	}
	check("started", map[string]any{"hook_event_name": "SubagentStart", "parent_tool_use_id": "c0"})
	call := map[string]any{"hook_event_name": "PreToolUse", "tool_name": "Bash", "canonical_tool_name": "run_shell_command", "tool_use_id": "c1/1", "parent_tool_use_id": "c1", "source": "code_mode",
		"tool_input": map[string]any{"command": "ls <x>", "run_in_background": false, "directory": "sub"}}
	check("claude", call)
	mine := map[string]any{}
	for k, v := range call {
		mine[k] = v
	}
	mine["tool_name"], mine["tool_input"] = "run_shell_command", map[string]any{"command": "ls <x>", "is_background": false, "directory": "sub"}
	check("ours", mine)

	res := tool.Text("a\nb")
	if err := r.After(t.Context(), sh, &res); err != nil {
		t.Fatal(err)
	}
	call["hook_event_name"], call["tool_response"] = "PostToolUse", map[string]any{"stdout": "a\nb", "stderr": "", "interrupted": false, "isImage": false}
	check("after", call)
	edit := request(t, "edit", `{"file_path":"a.go","old_string":"x","new_string":"y"}`)
	res = tool.Text("edited")
	if err := r.After(t.Context(), edit, &res); err != nil {
		t.Fatal(err)
	}
	if got := read("after"); !cmp.Equal(got["tool_response"], map[string]any{"filePath": r.dir + "/a.go", "success": true, "output": "edited"}) ||
		!cmp.Equal(got["tool_input"], map[string]any{"file_path": r.dir + "/a.go", "old_string": "x", "new_string": "y"}) || got["agent_id"] != nil {
		t.Errorf("%v", got)
	}
	res = tool.Fail(tool.CodeAborted, "it was cancelled")
	if err := r.After(t.Context(), sh, &res); err != nil {
		t.Fatal(err)
	}
	call["hook_event_name"], call["error"], call["is_interrupt"] = "PostToolUseFailure", "it was cancelled", true
	delete(call, "tool_response")
	check("failed", call)
	res = tool.Text("")
	if err := r.After(t.Context(), exec, &res); err != nil {
		t.Fatal(err)
	}
	r.SubagentGone(a)
	if len(r.subagents) > 0 {
		t.Errorf("remembered: %v", r.subagents)
	}
}

// A payload of megabytes for a hook that reads a little of it and ends: it is
// whole and valid for whoever reads it, and no fault for whoever does not.
// BUG-HK-06
func TestBigPayload(t *testing.T) {
	args := `{"content":"` + strings.Repeat(`ä\"<`, 1_000_000) + `","file_path":"/x"}`
	r := newRig(t, `{"PreToolUse": [{"hooks": [{"type": "command", "command": "head -c 65536 > part"}, {"type": "command", "command": "cat > all"}]}]}`)
	got, err := r.Before(t.Context(), request(t, "write_file", args))
	if err != nil || !cmp.Equal(got, sched.HookVerdict{}) || r.notices() != "" {
		t.Fatalf("%+v %v %s", got, err, r.notices())
	}
	var all struct {
		Input json.RawMessage `json:"tool_input"`
	}
	if err := json.Unmarshal([]byte(r.file("all")), &all); err != nil || string(all.Input) != args {
		t.Errorf("%v: %d bytes of %d", err, len(all.Input), len(args))
	}
	if n := len(r.file("part")); n != 65536 {
		t.Errorf("%d bytes", n)
	}
}

// Hooks of one event run at once, and what they say is merged by what it is and
// by the order of the settings, never by who was first.
func TestMerge(t *testing.T) {
	say := func(s string) string {
		return `{"type": "command", "command": ` + string(quote(`echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", `+s+`}}'`)) + `}`
	}
	allow := say(`"permissionDecision": "allow", "permissionDecisionReason": "a", "updatedInput": {"command": "one"}, "additionalContext": "x"`)
	ask := say(`"permissionDecision": "ask", "permissionDecisionReason": "b", "updatedInput": {"command": "two"}`)
	deny := say(`"permissionDecision": "deny", "permissionDecisionReason": "c", "updatedInput": {"command": "three"}`)
	other := say(`"permissionDecision": "deny", "permissionDecisionReason": "d"`)
	for _, tc := range []struct {
		hooks  []string
		want   sched.HookVerdict
		notice string
	}{
		{[]string{allow, ask}, sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Ask, Reason: "b"}, Args: json.RawMessage(`{"command":"two"}`)}, "rewrites what"},
		{[]string{ask, allow}, sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Ask, Reason: "b"}, Args: json.RawMessage(`{"command":"one"}`)}, "rewrites what"},
		{[]string{allow, deny, ask}, sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Deny, Reason: "c"}}, ""},
		{[]string{deny, other}, sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Deny, Reason: "c\nd"}}, ""},
	} {
		r := newRig(t, `{"PreToolUse": [{"matcher": "Bash", "hooks": [`+strings.Join(tc.hooks, ",")+`]}]}`)
		got, err := r.Before(t.Context(), request(t, "run_shell_command", `{}`))
		if err != nil {
			t.Fatal(err)
		}
		got.Said = nil
		if d := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(sched.Verdict{}, "By")); d != "" {
			t.Errorf("%v -want +got\n%s", tc.hooks, d)
		}
		if tc.notice != "" && !strings.Contains(r.notices(), tc.notice) {
			t.Errorf("told %q", r.notices())
		}
	}
}

// Two hooks that wait for each other: they run at once.
func TestParallel(t *testing.T) {
	wait := func(mine, other string) string {
		return `{"type": "command", "timeout": 60, "command": "touch ` + mine + `; while [ ! -e ` + other + ` ]; do sleep 0.01; done"}`
	}
	r := newRig(t, `{"PreToolUse": [{"hooks": [`+wait("a", "b")+`,`+wait("b", "a")+`]}]}`)
	if got, err := r.Before(t.Context(), request(t, "edit", `{}`)); err != nil || !cmp.Equal(got, sched.HookVerdict{}) || r.notices() != "" {
		t.Errorf("%+v %v %s", got, err, r.notices())
	}
}

// What a hook finds in its environment: where the project is, and no keys.
func TestEnvironment(t *testing.T) {
	r := newRig(t, one(PreToolUse, "*", "pwd > dir; env > env", `, "env": {"EXTRA": "1", "ANTHROPIC_API_KEY": "sk-2"}`))
	if _, err := r.Before(t.Context(), request(t, "edit", `{}`)); err != nil {
		t.Fatal(err)
	}
	env := "\n" + r.file("env")
	for _, want := range []string{"CAPSTAN_PROJECT_DIR=" + r.dir, "CLAUDE_PROJECT_DIR=" + r.dir, "QWEN_PROJECT_DIR=" + r.dir, "CAPSTAN_HOOK_EVENT=PreToolUse", "EXTRA=1"} {
		if !strings.Contains(env, "\n"+want+"\n") {
			t.Errorf("no %s in %s", want, env)
		}
	}
	if strings.Contains(env, "sk-") || strings.Contains(env, "API_KEY") {
		t.Errorf("a key: %s", env)
	}
	if got := r.file("dir"); got != r.dir+"\n" {
		t.Errorf("ran in %s", got)
	}
}

// A cancelled run ends its hooks, and tells nobody of it; a required one has not
// answered.
func TestCancelled(t *testing.T) {
	r := newRig(t, one(PreToolUse, "*", "touch began; sleep 1000", `, "required": true`))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for range 6000 {
			if _, err := os.Stat(r.dir + "/began"); err == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	got, err := r.Before(ctx, request(t, "edit", `{}`))
	if err != nil || got.Decision != sched.Deny || r.notices() != "" {
		t.Errorf("%+v %v %q", got, err, r.notices())
	}
}

// After a hook has ended the run no call is run, until a new run begins.
func TestHalt(t *testing.T) {
	r := newRig(t, one(PostToolUse, "Edit", `echo '{"continue": false, "stopReason": "the build is red"}'`, ""))
	res := tool.Text("ok")
	if err := r.After(t.Context(), request(t, "edit", `{}`), &res); err != nil {
		t.Fatal(err)
	}
	if got := r.Halted(); got != "the build is red" {
		t.Errorf("halted: %q", got)
	}
	got, err := r.Before(t.Context(), request(t, "read_file", `{}`))
	if want := "a hook has ended the run: the build is red"; err != nil || got.Decision != sched.Deny || got.Reason != want {
		t.Errorf("%+v %v", got, err)
	}
	r.Resume()
	if got, err := r.Before(t.Context(), request(t, "read_file", `{}`)); err != nil || !cmp.Equal(got, sched.HookVerdict{}) {
		t.Errorf("%+v %v", got, err)
	}
}

// What hooks after a call say of it, and put in its place.
func TestAfter(t *testing.T) {
	for _, tc := range []struct {
		ev      Event
		command string
		res     tool.Result
		want    tool.Result
	}{
		{PostToolUse, "echo words", tool.Text("ok"), tool.Text("ok")},
		{PostToolUse, "echo 'gofmt failed' >&2; exit 2", tool.Text("ok"), said(tool.Text("ok"), "PostToolUse hook: gofmt failed")},
		{PostToolUse, `echo '{"decision": "block", "reason": "run the tests", "hookSpecificOutput": {"additionalContext": "there are 3"}}'`, tool.Text("ok"),
			said(tool.Text("ok"), "PostToolUse hook: run the tests", `PostToolUse hook "n": there are 3`)},
		{PostToolUse, `echo '{"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": "masked"}}'`, tool.Text("secret"), tool.Text("masked")},
		{PostToolUse, `echo '{"hookSpecificOutput": {"updatedMCPToolOutput": {"a": 1}}}'`, tool.Text("secret"), tool.Result{Status: tool.Success, Parts: tool.Text(`{"a": 1}`).Parts, Data: json.RawMessage(`{"a": 1}`)}},
		{PostToolUse, "exit 2", tool.Fail(tool.CodeFailed, "no"), tool.Fail(tool.CodeFailed, "no")},
		{PostToolUseFailure, "echo 'look at the log' >&2; exit 2", tool.Fail(tool.CodeFailed, "no"), said(tool.Fail(tool.CodeFailed, "no"), "PostToolUseFailure hook: look at the log")},
		{PostToolUseFailure, "exit 2", tool.Text("ok"), tool.Text("ok")},
	} {
		r := newRig(t, one(tc.ev, "*", tc.command, `, "name": "n"`))
		if err := r.After(t.Context(), request(t, "edit", `{}`), &tc.res); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tc.want, tc.res); d != "" {
			t.Errorf("%s %s: -want +got\n%s", tc.ev, tc.command, d)
		}
	}
}

func said(r tool.Result, s ...string) tool.Result {
	r.Said = s
	return r
}

// A PermissionRequest hook answers in place of the person.
func TestAnswer(t *testing.T) {
	decision := func(s string) string {
		return `echo '{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": ` + s + `}}'`
	}
	for _, tc := range []struct {
		command string
		want    sched.HookVerdict
		halted  string
		notice  string
	}{
		{"cat > asked", sched.HookVerdict{}, "", ""},
		{decision(`{"behavior": "allow"}`), sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Allow}}, "", ""},
		{decision(`{"behavior": "allow", "updatedInput": {"command": "ls", "run_in_background": false}}`), sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Allow}, Args: json.RawMessage(`{"command":"ls","is_background":false}`)}, "", ""},
		{decision(`{"behavior": "deny", "message": "ask Bob"}`), sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Deny, Reason: "ask Bob"}}, "", ""},
		{decision(`{"behavior": "deny", "message": "stop it", "interrupt": true}`), sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Deny, Reason: "stop it"}}, "stop it", ""},
		{decision(`{"behavior": "allow", "updatedPermissions": [{}]}`), sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Allow}}, "", "updatedPermissions, which has no effect"},
		{"echo no >&2; exit 2", sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Deny, Reason: "no"}}, "", ""},
	} {
		r := newRig(t, one(PermissionRequest, "Bash", tc.command, ""))
		q := &sched.Question{Request: *request(t, "run_shell_command", `{"command":"x"}`), Verdict: sched.Verdict{Decision: sched.Ask, Reason: "no rule"}}
		got, err := r.Answer(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(sched.Verdict{}, "By")); d != "" {
			t.Errorf("%s: -want +got\n%s", tc.command, d)
		}
		if r.Halted() != tc.halted || !strings.Contains(r.notices(), tc.notice) || tc.notice == "" && r.notices() != "" {
			t.Errorf("%s: halted %q, told %q", tc.command, r.Halted(), r.notices())
		}
		if tc.command == "cat > asked" && !strings.Contains(r.file("asked"), `"permission_reason":"no rule"`) {
			t.Errorf("asked %s", r.file("asked"))
		}
	}
}

// The exit code of a hook behind a wrapper, and without the keeper. BUG-HK-05
func TestWrapper(t *testing.T) {
	for _, portable := range []bool{false, true} {
		r := newRig(t, one(PreToolUse, "*", `sh -c 'echo "nein: ä" >&2; exit 2'`, ""), func(o *Options) { o.Shell = shell.New(shell.Options{Portable: portable}) })
		got, err := r.Before(t.Context(), request(t, "edit", `{}`))
		if err != nil || got.Decision != sched.Deny || got.Reason != "nein: ä" {
			t.Errorf("portable %t: %+v %v", portable, got, err)
		}
	}
}

// A command that prints without end is ended.
func TestFlood(t *testing.T) {
	r := newRig(t, one(PreToolUse, "*", "yes", `, "timeout": 120`))
	got, err := r.Before(t.Context(), request(t, "edit", `{}`))
	if err != nil || !cmp.Equal(got, sched.HookVerdict{}) || !strings.Contains(r.notices(), "it printed more than 64 MiB and was ended") {
		t.Errorf("%+v %v %q", got, err, r.notices())
	}
}

// Hooks that nobody waits for: they decide nothing, and end with the session.
func TestAsync(t *testing.T) {
	r := newRig(t, `{"PreToolUse": [{"hooks": [{"type": "command", "async": true, "command": "exit 2"}, {"type": "command", "async": true, "command": "sleep 1000"}]}],
		"Notification": [{"matcher": "permission_prompt", "hooks": [{"type": "command", "command": "cat > note; echo '{\"systemMessage\": \"noted\"}'"}]}]}`)
	if got, err := r.Before(t.Context(), request(t, "edit", `{}`)); err != nil || !cmp.Equal(got, sched.HookVerdict{}) {
		t.Errorf("%+v %v", got, err)
	}
	r.Notify("idle_prompt", "", "not for it")
	r.Notify("permission_prompt", "Capstan", "May I?")
	for range 6000 {
		if strings.Contains(r.notices(), "noted") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if got := r.file("note"); !strings.Contains(got, `"message":"May I?","title":"Capstan","notification_type":"permission_prompt"`) {
		t.Errorf("%s", got)
	}
	r.Close()
	if left := children(); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
	r.Notify("permission_prompt", "", "after the end") // does nothing
}

// once, and the same command from two matchers.
func TestOnce(t *testing.T) {
	r := newRig(t, `{"PreToolUse": [{"matcher": "Edit", "hooks": [{"type": "command", "command": "echo x >> often"}, {"type": "command", "once": true, "command": "echo x >> once"}]},
		{"matcher": "*", "hooks": [{"type": "command", "command": "echo x >> often"}]}]}`)
	for range 3 {
		if _, err := r.Before(t.Context(), request(t, "edit", `{}`)); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff([]string{"x\nx\nx\n", "x\n"}, []string{r.file("often"), r.file("once")}); d != "" {
		t.Error(d)
	}
}

// Faults of one hook are told a few times, not for every call.
func TestFaultsAreBounded(t *testing.T) {
	r := newRig(t, one(PreToolUse, "*", "exit 1", ""))
	for range maxWarned + 3 {
		if _, err := r.Before(t.Context(), request(t, "edit", `{}`)); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(r.notices(), "exited with code 1"); n != maxWarned || !strings.Contains(r.notices(), "further faults of this hook are not told") {
		t.Errorf("told %d times: %s", n, r.notices())
	}
}
