//go:build unix

package hook

import (
	"encoding/json"
	"testing"

	"capstan/internal/sched"
	"capstan/internal/shell"
)

// BenchmarkCommand is a call with one command hook that says nothing: a keeper, a
// shell and their end.
func BenchmarkCommand(b *testing.B) {
	h, _, err := Parse([]Source{{Value: json.RawMessage(one(PreToolUse, "Bash", ":", "")), Where: where}})
	if err != nil {
		b.Fatal(err)
	}
	d := New(h, Options{Dir: b.TempDir(), Shell: shell.New(shell.Options{})})
	defer d.Close()
	q := request(b, "run_shell_command", `{"command":"ls"}`)
	for b.Loop() {
		if v, err := d.Before(b.Context(), q); err != nil || v.Decision != sched.Abstain {
			b.Fatal(v, err)
		}
	}
}
