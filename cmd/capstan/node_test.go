package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// nodePackages are the reference servers that the end-to-end test runs.
var nodePackages = []string{
	"@modelcontextprotocol/server-everything@2026.8.31",
	"@modelcontextprotocol/server-filesystem@2026.8.31",
	"@modelcontextprotocol/server-memory@2026.8.31",
}

// Real servers, which others wrote, in programs. It needs node, npm and the
// registry, so `make e2e-node` asks for it.
// S0-258
func TestNodeServers(t *testing.T) {
	if os.Getenv("CAPSTAN_E2E_NODE") == "" {
		t.Skip("set CAPSTAN_E2E_NODE=1 to install and run servers from npm (make e2e-node)")
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("there is no npm here")
	}
	dir := t.TempDir()
	install := exec.Command(npm, append([]string{"install", "--no-audit", "--no-fund", "--silent", "--prefix", dir}, nodePackages...)...)
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm install: %v\n%s", err, out)
	}
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "a.txt"), []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bin := func(name string) string { return filepath.Join(dir, "node_modules", ".bin", name) }
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"everything": map[string]any{"command": bin("mcp-server-everything")},
		"files":      map[string]any{"command": bin("mcp-server-filesystem"), "args": []string{work}},
		"memory":     map[string]any{"command": bin("mcp-server-memory"), "env": map[string]string{"MEMORY_FILE_PATH": filepath.Join(work, "memory.jsonl")}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	servers := filepath.Join(work, "servers.json")
	if err := os.WriteFile(servers, config, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(binary, append(args, "--mcp-config", servers)...)
		cmd.Dir, cmd.Env = work, environment(work)
		out, errs, code := runCapstan(t, cmd)
		if code != 0 {
			t.Fatalf("%q: exit code %d\n%s%s", args, code, out, errs)
		}
		return out
	}
	for _, name := range []string{"everything", "files", "memory"} {
		if out := run("mcp", "test", name); !strings.HasPrefix(out, "ok ") {
			t.Errorf("%s: %s", name, out)
		}
	}
	got := run("exec", "--approval-mode", "yolo", "-e", `
		const [echo, sum, image] = await Promise.all([
			tools.mcp__everything__echo({message: "hello"}),
			tools.mcp__everything__get_sum({a: 2, b: 40}),
			tools.mcp__everything__get_tiny_image({})]);
		text(echo.output);
		text(sum.output);
		text(image.content.map(c => c.type).join());
		text(Object.keys((await tools.mcp__everything__get_structured_content({location: "New York"})).structuredContent).sort().join());
		text((await tools.mcp__everything__trigger_long_running_operation({duration: 1, steps: 3})).output);
		text((await tools.read_mcp_resource({server: "everything", uri: "demo://resource/static/document/features.md"})).output.length > 100);
		text((await tools.mcp__files__read_text_file({path: "a.txt", head: 1})).output);
		await tools.mcp__files__read_text_file({path: "/etc/passwd"}).catch(e => text(e.code + " " + /outside allowed/.test(e.message)));
		await tools.mcp__memory__create_entities({entities: [{name: "Ann", entityType: "person", observations: ["likes Go"]}]});
		text((await tools.mcp__memory__search_nodes({query: "Go"})).structuredContent.entities[0].name);
		await tools.mcp__memory__create_entities({entities: "none"}).catch(e => text(e.code));`)
	want := `Echo: hello
The sum of 2 and 40 is 42.
text,image,text
conditions,humidity,temperature
Long running operation completed. Duration: 1 seconds, Steps: 3.
true
one
TOOL_FAILED true
Ann
INVALID_ARGS
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
	noneLeft(t, "HOME="+work, work)
}
