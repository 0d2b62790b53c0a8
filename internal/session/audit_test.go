package session

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/msg"
)

// TestAudit: every call of a session and of its subagents is there, in the order
// of their time, with how it was decided and what came of it; also one that was
// refused before anybody judged it.
func TestAudit(t *testing.T) {
	s := newStore(t)
	l := s.Create(Header{Dir: "/home/me/project", Model: "openai/m"})
	sub := l.Sub(Header{Call: "c1", Agent: "agent_1"})
	yes := Decision{Call: "c1", Name: "edit", Source: "model", Allowed: true, Stage: "person", By: "the user at the terminal", Rules: "ask", Asked: "it writes",
		Args: `{"a":1}`, ArgsSHA256: "12", Definition: "34", Said: "", Grants: []string{"session allow Edit"}, WaitMS: 12}
	no := Decision{Call: "c1/1", Name: "run_shell_command", Source: "code_mode", ParentID: "c1", Stage: "rules", By: "rule", Reason: "denied", Rules: "deny"}
	below := Decision{Call: "agent_1/s1", Name: "read_file", Source: "model", Agent: "agent_1", Allowed: true, Stage: "rules", Rules: "allow"}
	failed := func(id, name, code string) msg.Result {
		return msg.Result{CallID: id, Name: name, Status: "error", Code: code, Parts: []msg.Part{msg.TextPart(" there is no tool ")}}
	}
	for _, err := range []error{
		l.Message(user("go")), l.Decision(yes), sub.Message(user("look")), sub.Decision(below), l.Decision(no),
		l.Result("c1", msg.Result{CallID: "c1/1", Name: "run_shell_command", Status: "denied", Code: "DENIED"}),
		sub.Result("", ok("s1", "read_file", "x")), sub.Result("s2", failed("s2/1", "nope", "UNKNOWN_TOOL")), l.Result("c1", failed("c1/2", "nope", "UNKNOWN_TOOL")), l.Result("", ok("c1", "edit", "x")),
		l.Message(msg.Message{Role: msg.Assistant, Parts: []msg.Part{{Kind: msg.CallPart, Call: &msg.Call{ID: "c2", Name: "nope", Args: `{"b":1}`}}}}), l.Result("", failed("c2", "nope", "INVALID_ARGS")),
		l.Result("", ok("old", "edit", "of a version without decisions")), sub.Close(), l.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got, notes, err := s.Audit(l.ID()[:8])
	if err != nil || notes != nil {
		t.Fatal(err, notes)
	}
	for i := range got {
		if i > 0 && got[i].Time.Before(got[i-1].Time) {
			t.Errorf("entry %d is older than the one before", i)
		}
		got[i].Time = time.Time{}
	}
	want := []AuditEntry{
		{Turn: 1, Decision: yes, Status: "success"},
		{Turn: 1, Decision: below, Status: "success", Session: sub.ID()},
		{Turn: 1, Decision: no, Status: "denied", Code: "DENIED"},
		{Turn: 1, Decision: Decision{Call: "agent_1/s2/1", Name: "nope", Agent: "agent_1", Source: "code_mode", ParentID: "agent_1/s2", Stage: StageRefused, Reason: "there is no tool"}, Status: "error", Code: "UNKNOWN_TOOL", Session: sub.ID()},
		{Turn: 1, Decision: Decision{Call: "c1/2", Name: "nope", Source: "code_mode", ParentID: "c1", Stage: StageRefused, Reason: "there is no tool"}, Status: "error", Code: "UNKNOWN_TOOL"},
		{Turn: 1, Decision: Decision{Call: "c2", Name: "nope", Source: "model", Stage: StageRefused, Args: `{"b":1}`, Reason: "there is no tool"}, Status: "error", Code: "INVALID_ARGS"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

// Of long arguments the beginning is kept, and no key in it, whole or cut.
func TestDecisionIsAbridged(t *testing.T) {
	s := newStore(t)
	s.redact = func(text string) string { return strings.ReplaceAll(text, "hunter2hunter2", "[redacted]") }
	l := s.Create(Header{})
	for _, args := range []string{`{"key":"hunter2hunter2"}`, strings.Repeat("x", maxDecisionArgs-10) + "hunter2hunter2" + strings.Repeat("y", 1<<20)} {
		if err := l.Decision(Decision{Call: "c", Name: "t", Args: args}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(l.Path())
	if err != nil || strings.Contains(string(log), "hunter") || len(log) > 3*maxDecisionArgs {
		t.Errorf("%v, %d bytes: %s", err, len(log), log)
	}
}
