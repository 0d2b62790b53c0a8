package session_test

import (
	"testing"

	"capstan/internal/session"
	"capstan/internal/tool"
)

// The codes and the status of a repair are package tool's, which this one may
// not import.
func TestCodesAreTools(t *testing.T) {
	if session.CodeNotStarted != tool.CodeNotStarted || session.CodeOutcomeUnknown != tool.CodeOutcomeUnknown {
		t.Error("the codes differ from those of package tool")
	}
	if session.StatusError != string(tool.Failed) {
		t.Error("the status differs from that of package tool")
	}
}
