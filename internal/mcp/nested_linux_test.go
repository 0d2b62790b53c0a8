package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/codemode"
	"capstan/internal/sandbox/quickjs"
	"capstan/internal/sandbox/sandboxtest"
	"capstan/internal/sched"
	"capstan/internal/tool"
)

// Tools of MCP servers are called from programs like every other: arguments
// are validated, values keep their digits, failures have their code, and a
// server that crashes costs one call. S0-258, BUG-MC-25
func TestNestedMCPTools(t *testing.T) {
	answer := `{"content":[{"type":"text","text":"seen"}],"structuredContent":{"id":9007199254740993}}`
	r := newRig(t, Options{}, stdioServer("good", "sdk"), stdioServer("num", "answer:"+answer), stdioServer("crash", "crash"))
	r.ready()
	runner := quickjs.New(quickjs.Options{Binary: sandboxtest.Binary(t)})
	t.Cleanup(runner.Close)
	if err := r.reg.Add(codemode.NewExec(codemode.Options{Runner: runner})); err != nil {
		t.Fatal(err)
	}
	rt := sched.New(sched.Options{})
	const source = `
const say = async (f) => { try { text(await f()) } catch (e) { text(e.code + ' ' + e.tool + ' ' + e.message.split('\n')[0]) } };
await say(async () => (await tools.mcp__good__echo({text: 'hi'})).output);
await say(async () => (await tools.mcp__good__echo({txt: 'hi'})).output);
await say(async () => { const r = await tools.mcp__num__t({}); return r.output + ' ' + String(r.structuredContent.id) });
await say(async () => (await tools.mcp__crash__t({})).output);
await say(async () => (await tools.mcp__crash__t({x: 1})).output);`
	args, err := json.Marshal(map[string]string{"source": source})
	if err != nil {
		t.Fatal(err)
	}
	got := rt.Run(r.ctx, func() *tool.View { return r.reg.View(tool.Code, tool.Scope{}) }, []tool.Call{{ID: "x", Name: tool.ExecName, Args: args}})[0]
	want := []string{
		"hi",
		"INVALID_ARGS mcp__good__echo ",
		"seen 9007199254740993",
		"TOOL_FAILED mcp__crash__t MCP server crash ended during the call: it ended with exit status 7; its stderr ends with:",
		"alive",
	}
	lines := strings.Split(got.Text(), "\n")
	if len(lines) > 1 && strings.HasPrefix(lines[1], want[1]) {
		lines[1] = want[1]
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("%s (-want +got):\n%s\n%s", got.Status, diff, got.Text())
	}
}
