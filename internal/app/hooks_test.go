//go:build unix

package app

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/hook"
	"capstan/internal/msg"
	"capstan/internal/sched"
	"capstan/internal/tool"
)

// A guard of an embedder has the last word, also over a hook's allow, for a
// model's call and a program's alike; a hook of its own comes before the user's.
// S2-025 S2-058 S2-059
func TestGuards(t *testing.T) {
	noEnv(t)
	var guarded []string
	var mu sync.Mutex
	s := open(t, Options{ApprovalMode: "yolo", Mode: tool.Code, Guards: []sched.Guard{func(_ context.Context, r *sched.Request) string {
		mu.Lock()
		defer mu.Unlock()
		guarded = append(guarded, r.Call.Name)
		if r.Call.Name == "write_file" {
			return "the freeze is on"
		}
		return ""
	}}}, map[string]string{"~/.capstan/settings.json": `{"hooks": {"PreToolUse": [{"matcher": "Write", "hooks": [
		{"type": "command", "command": "echo '{\"hookSpecificOutput\": {\"hookEventName\": \"PreToolUse\", \"permissionDecision\": \"allow\"}}'"}]}]}}`})
	calls := []tool.Call{{Name: "write_file", Args: json.RawMessage(`{"file_path":"a","content":"x"}`)}}
	collapsed := s.rt.Run(t.Context(), s.View, calls)[0]
	if collapsed.Code != tool.CodeUnknownTool || guarded != nil { // no guard sees a collapsed call, and none is needed for it
		t.Errorf("%+v %v", collapsed, guarded)
	}
	direct := s.rt.Run(t.Context(), func() *tool.View { return s.Registry.View(tool.Direct, s.scope) }, calls)[0]
	if direct.Text() != "write_file was denied: the freeze is on" {
		t.Errorf("%+v", direct)
	}
	if _, err := os.Stat(filepath.Join(s.opt.Dir, "a")); err == nil {
		t.Error("the file was written")
	}
}

// The hooks of a subagent: they are told of it, may keep it from beginning and
// from ending, and know its calls.
func TestSubagentHooks(t *testing.T) {
	noEnv(t)
	s := open(t, Options{ApprovalMode: "yolo"}, map[string]string{"~/.capstan/settings.json": `{"hooks": {
		"SubagentStart": [{"matcher": "reviewer", "hooks": [{"type": "command", "command": "echo '{\"hookSpecificOutput\": {\"hookEventName\": \"SubagentStart\", \"additionalContext\": \"be kind\"}}'"}]},
			{"matcher": "forbidden", "hooks": [{"type": "command", "required": true, "command": "exit 1"}]}],
		"SubagentStop": [{"hooks": [{"type": "command", "command": "cat > stopped; echo 'not yet' >&2; exit 2"}]}],
		"PreToolUse": [{"hooks": [{"type": "command", "command": "cat > called"}]}]}}`})
	a := hook.Subagent{ID: "a1", Type: "reviewer", CallID: "c0"}
	h, said, blocked, gone := s.Subagent(t.Context(), a, "/trail")
	defer gone()
	if blocked != "" || len(said) != 1 || !strings.HasSuffix(said[0], ": be kind") {
		t.Errorf("%q %q", said, blocked)
	}
	if got := h.Stop(t.Context(), "bye", true); got.Block != "not yet" {
		t.Errorf("%+v", got)
	}
	var stopped map[string]any
	raw, err := os.ReadFile(filepath.Join(s.opt.Dir, "stopped"))
	if err != nil || json.Unmarshal(raw, &stopped) != nil {
		t.Fatal(err, raw)
	}
	for _, k := range []string{"session_id", "transcript_path", "cwd"} {
		delete(stopped, k)
	}
	if d := cmp.Diff(map[string]any{"hook_event_name": "SubagentStop", "permission_mode": "bypassPermissions", "agent_id": "a1", "agent_type": "reviewer",
		"stop_hook_active": true, "last_assistant_message": "bye", "agent_transcript_path": "/trail"}, stopped); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	s.rt.Run(t.Context(), s.View, []tool.Call{{Name: "list_directory", Args: json.RawMessage(`{"path":"."}`), ParentID: "c0"}})
	if raw, err := os.ReadFile(filepath.Join(s.opt.Dir, "called")); err != nil || !strings.Contains(string(raw), `"agent_id":"a1","agent_type":"reviewer","tool_name":"LS"`) {
		t.Errorf("%s %v", raw, err)
	}
	if _, _, blocked, gone := s.Subagent(t.Context(), hook.Subagent{ID: "a2", Type: "forbidden", CallID: "c9"}, ""); !strings.Contains(blocked, "did not answer: it exited with code 1") {
		t.Errorf("%q", blocked)
	} else {
		gone()
	}
	// Without hooks there is nothing to ask.
	s = open(t, Options{}, nil)
	if h, said, blocked, gone := s.Subagent(t.Context(), a, ""); h.Stop != nil || h.Batch != nil || said != nil || blocked != "" {
		t.Error("hooks out of nothing")
	} else {
		gone()
	}
}

// What a hook for an address is given of the environment is a secret: nobody is
// shown it, and no command gets it.
func TestHookSecrets(t *testing.T) {
	noEnv(t)
	t.Setenv("HOOK_TOKEN", "t0ken-0123456789")
	s := open(t, Options{ApprovalMode: "yolo", Environ: os.Environ()}, map[string]string{"~/.capstan/settings.json": `{"hooks": {"Stop": [{"hooks": [
		{"type": "http", "url": "http://127.0.0.1:1/", "headers": {"Authorization": "Bearer $HOOK_TOKEN", "X-Home": "$HOME"}, "allowedEnvVars": ["HOOK_TOKEN", "HOME"]}]}]}}`})
	if got := s.Redact("a t0ken-0123456789 in " + s.home); got != "a [redacted] in "+s.home {
		t.Error(got)
	}
	res := s.rt.Run(t.Context(), s.View, []tool.Call{{Name: "run_shell_command", Args: json.RawMessage(`{"command":"echo [$HOOK_TOKEN]"}`)}})[0]
	if text := msg.JoinText(res.Parts); !strings.HasPrefix(text, "[]") {
		t.Errorf("%s", text)
	}
}

// A person who is asked is announced to Notification hooks.
func TestNotification(t *testing.T) {
	noEnv(t)
	told := make(chan string, 10)
	s := open(t, Options{Approver: yes{}, HookNotice: func(text string) { told <- text }}, map[string]string{"~/.capstan/settings.json": `{"hooks": {"Notification": [{"matcher": "permission_prompt", "hooks": [
		{"type": "command", "name": "bell", "command": "cat > note; echo '{\"systemMessage\": \"rung\"}'"}]}]}}`})
	res := s.rt.Run(t.Context(), s.View, []tool.Call{{Name: "write_file", Args: json.RawMessage(`{"file_path":"a","content":"x"}`)}})[0]
	if res.Status != tool.Success {
		t.Errorf("%+v", res)
	}
	if got := <-told; !strings.HasPrefix(got, `the hook "bell" (user settings `) || !strings.HasSuffix(got, ") says: rung") {
		t.Error(got)
	}
	if raw, err := os.ReadFile(filepath.Join(s.opt.Dir, "note")); err != nil || !strings.Contains(string(raw), `"message":"Capstan needs your permission to use write_file"`) {
		t.Errorf("%s %v", raw, err)
	}
}

type yes struct{}

func (yes) Approve(context.Context, *sched.Question) (sched.Answer, error) {
	return sched.Answer{Allow: true}, nil
}
