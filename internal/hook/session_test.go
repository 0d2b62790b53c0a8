//go:build unix

package hook

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/msg"
	"capstan/internal/tool"
)

// The events that are not about one call: what they are told, and what a hook of
// them can do.
func TestEvents(t *testing.T) {
	a := Subagent{ID: "a1", Type: "reviewer", CallID: "c0"}
	fire := map[Event]func(context.Context, *rig) Outcome{
		SessionStart:     func(ctx context.Context, r *rig) Outcome { return r.SessionStart(ctx, "resume", "openai/m") },
		UserPromptSubmit: func(ctx context.Context, r *rig) Outcome { return r.Prompt(ctx, "do it") },
		PostToolBatch: func(ctx context.Context, r *rig) Outcome {
			return r.Batch(ctx, []tool.Call{{ID: "c1", Name: "edit", Args: json.RawMessage(`{"file_path":"/x"}`)}, {ID: "c2", Name: "exec", Args: json.RawMessage(`{`)}},
				[]msg.Result{{Parts: []msg.Part{msg.TextPart("edited")}}, {Parts: []msg.Part{msg.TextPart("not JSON")}}}, &a)
		},
		Stop:          func(ctx context.Context, r *rig) Outcome { return r.Stop(ctx, "bye", false) },
		SubagentStart: func(ctx context.Context, r *rig) Outcome { return r.SubagentStart(ctx, a) },
		SubagentStop:  func(ctx context.Context, r *rig) Outcome { return r.SubagentStop(ctx, a, "bye", true, "/trail") },
		PreCompact:    func(ctx context.Context, r *rig) Outcome { return r.PreCompact(ctx, "auto", "keep names") },
		SessionEnd:    func(_ context.Context, r *rig) Outcome { r.SessionEnd("other"); return Outcome{} },
	}
	halts := func(why string) Outcome { return Outcome{Halt: true, HaltReason: why} }
	failed := `the required hook "n" (settings:4) did not answer: it exited with code 1`
	for _, tc := range []struct {
		ev               Event
		matcher          string
		told             string // JSON, beside the common fields
		blocks, required Outcome
		halted           string // after exit code 2
	}{
		{SessionStart, "resume", `{"source":"resume","model":"openai/m"}`, Outcome{}, halts(failed), ""},
		{UserPromptSubmit, "ignored", `{"prompt":"do it"}`, Outcome{Block: true, Reason: "no"}, Outcome{Block: true, Reason: failed}, ""},
		{PostToolBatch, "", `{"agent_id":"a1","agent_type":"reviewer","parent_tool_use_id":"c0","tool_calls":[{"tool_name":"Edit","tool_input":{"file_path":"/x"},"tool_use_id":"c1","tool_response":"edited"},{"tool_name":"exec","tool_input":"{","tool_use_id":"c2","tool_response":"not JSON"}]}`,
			Outcome{Block: true, Reason: "no"}, halts(failed), "no"},
		{Stop, "", `{"stop_hook_active":false,"last_assistant_message":"bye"}`, Outcome{Block: true, Reason: "no"}, halts(failed), ""},
		{SubagentStart, "reviewer", `{"agent_id":"a1","agent_type":"reviewer","parent_tool_use_id":"c0"}`, Outcome{}, Outcome{Block: true, Reason: failed}, ""},
		{SubagentStop, "reviewer", `{"agent_id":"a1","agent_type":"reviewer","parent_tool_use_id":"c0","stop_hook_active":true,"last_assistant_message":"bye","agent_transcript_path":"/trail"}`, Outcome{Block: true, Reason: "no"}, halts(failed), ""},
		{PreCompact, "auto|manual", `{"trigger":"auto","custom_instructions":"keep names"}`, Outcome{Block: true, Reason: "no"}, Outcome{Block: true, Reason: failed}, ""},
		{SessionEnd, "other", `{"reason":"other"}`, Outcome{}, Outcome{}, ""},
	} {
		t.Run(string(tc.ev), func(t *testing.T) {
			r := newRig(t, one(tc.ev, tc.matcher, "cat > told; echo no >&2; exit 2", ""))
			if d := cmp.Diff(tc.blocks, fire[tc.ev](t.Context(), r)); d != "" || r.Halted() != tc.halted {
				t.Errorf("exit code 2: halted %q, -want +got\n%s", r.Halted(), d)
			}
			var told, want map[string]any
			if err := json.Unmarshal([]byte(r.file("told")), &told); err != nil {
				t.Fatal(err)
			}
			if told["hook_event_name"] != string(tc.ev) || told["session_id"] != "s1" || told["permission_mode"] != "acceptEdits" {
				t.Errorf("%v", told)
			}
			for _, k := range []string{"hook_event_name", "session_id", "permission_mode", "cwd", "transcript_path"} {
				delete(told, k)
			}
			if err := json.Unmarshal([]byte(tc.told), &want); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, told); d != "" {
				t.Errorf("told: -want +got\n%s", d)
			}
			r = newRig(t, one(tc.ev, tc.matcher, "exit 1", `, "required": true, "name": "n"`))
			if d := cmp.Diff(tc.required, fire[tc.ev](t.Context(), r)); d != "" || !strings.Contains(r.notices(), "exited with code 1") {
				t.Errorf("required: told %q, -want +got\n%s", r.notices(), d)
			}
			r = newRig(t, one(tc.ev, tc.matcher, `echo '{"hookSpecificOutput": {"additionalContext": "mind"}}'`, `, "name": "n"`))
			if tc.ev == SessionEnd {
				return
			}
			if d := cmp.Diff(Outcome{Context: []string{string(tc.ev) + ` hook "n": mind`}}, fire[tc.ev](t.Context(), r)); d != "" {
				t.Errorf("context: -want +got\n%s", d)
			}
		})
	}
	// A matcher that takes another word.
	r := newRig(t, one(SessionStart, "startup", "echo x; exit 2", ""))
	if got := r.SessionStart(t.Context(), "resume", ""); !cmp.Equal(got, Outcome{}) || r.notices() != "" {
		t.Errorf("%+v %s", got, r.notices())
	}
	// Plain words are context where Claude Code takes them so.
	r = newRig(t, one(SessionStart, "", "echo hello", `, "name": "n"`))
	if d := cmp.Diff(Outcome{Context: []string{`SessionStart hook "n": hello`}}, r.SessionStart(t.Context(), "startup", "")); d != "" {
		t.Error(d)
	}
}
