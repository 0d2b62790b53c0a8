package app

import (
	"strings"
	"testing"

	"capstan/internal/policy"
)

// The system prompt names the approval mode in force, also when it has changed
// since the conversation began.
func TestPromptFollowsTheMode(t *testing.T) {
	s := open(t, Options{ApprovalMode: "plan"}, nil)
	prompt := s.prompt(AgentOptions{}, nil)
	for _, mode := range []policy.Mode{policy.Plan, policy.AutoEdit, policy.Default} {
		if err := s.rules.SetMode(mode); err != nil {
			t.Fatal(err)
		}
		got := prompt()
		if !strings.Contains(got, "Approval mode: "+string(mode)) || strings.Contains(got, "Plan mode:") != (mode == policy.Plan) {
			t.Errorf("in mode %s: %s", mode, got)
		}
	}
}
