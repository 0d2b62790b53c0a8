package quickjs

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/sandbox"
)

// A reply that is too long becomes a failure that still says which call it was,
// what became of it, and where the whole is. S0-107 S0-108
func TestReplyTooLong(t *testing.T) {
	long := strings.Repeat("x", 1001)
	h := &host{tools: map[string]tool{
		"text": func(_ context.Context, c sandbox.Call) sandbox.Reply { return succeed(c, long) },
		"value": func(_ context.Context, c sandbox.Call) sandbox.Reply {
			return sandbox.Reply{OK: true, Value: fmt.Appendf(nil, `{"callId":"c/2","name":"value","status":"success","structuredContent":%q,"file":"/spill/2"}`, long)}
		},
		"failure": func(_ context.Context, c sandbox.Call) sandbox.Reply {
			return refuse(c, "TOOL_TIMEOUT", "\x01\x01"+long)
		},
		"fits":    func(_ context.Context, c sandbox.Call) sandbox.Reply { return succeed(c, long[1:]) },
		"nothing": func(_ context.Context, c sandbox.Call) sandbox.Reply { return sandbox.Reply{Value: []byte(long)} },
	}}
	source := `for (const n of ['text', 'value', 'failure', 'nothing', 'fits'])
  try { text((await tools[n]()).output.length) } catch (e) { text(e.name, e.code, e.tool, e.callId, e.message) }`
	_, err := run(t, newRunner(t, Options{}), h, source, sandbox.Limits{Body: 1000})
	want := []string{
		"ToolCallError OUTPUT_LIMIT text call-1 the call was done, but its result is longer than the sandbox takes: 1001 bytes of text and 52 of values, and each may have 1000",
		"ToolCallError OUTPUT_LIMIT value c/2 the call was done, but its result is longer than the sandbox takes: 0 bytes of text and 1092 of values, and each may have 1000; the whole is in /spill/2",
		"ToolCallError TOOL_TIMEOUT failure call-3 the call failed, and its message is longer than the sandbox takes, with 1084 bytes; it begins: \x01\x01" + long[:123],
		"ToolCallError TOOL_FAILED   the call failed, and its message is longer than the sandbox takes, with 1001 bytes",
		"1000",
	}
	if diff := cmp.Diff(want, h.out); err != nil || diff != "" {
		t.Errorf("%v, want -, got +:\n%s", err, diff)
	}
}
