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
	bin := fromNPM(t, nodePackages...)
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "a.txt"), []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
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

// fromNPM installs packages and returns where their commands are.
// CAPSTAN_E2E_NODE_DIR keeps them for the next time.
func fromNPM(t *testing.T, packages ...string) (command func(name string) string) {
	t.Helper()
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("there is no npm here")
	}
	dir := os.Getenv("CAPSTAN_E2E_NODE_DIR")
	if dir == "" {
		dir = t.TempDir()
	}
	install := exec.Command(npm, append([]string{"install", "--no-audit", "--no-fund", "--silent", "--ignore-scripts", "--prefer-offline", "--prefix", dir}, packages...)...)
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm install: %v\n%s", err, out)
	}
	return func(name string) string { return filepath.Join(dir, "node_modules", ".bin", name) }
}

// catalogue are servers of ../shared/data/mcp that start without a key, in the
// versions recorded there, with the tools that they have then.
var catalogue = []struct {
	name, pack, command string
	tools               int
	args                []string
}{
	{name: "browser", pack: "@playwright/mcp@0.0.83", command: "playwright-mcp", tools: 25},
	{name: "chart", pack: "@antv/mcp-server-chart@0.9.10", command: "mcp-server-chart", tools: 27},
	{name: "devtools", pack: "chrome-devtools-mcp@1.11.0", command: "chrome-devtools-mcp", tools: 32},
	{name: "figma", pack: "figma-console-mcp@1.40.4", command: "figma-console-mcp", tools: 121},
	{name: "git", pack: "@cyanheads/git-mcp-server@2.15.3", command: "git-mcp-server", tools: 28},
	{name: "github", pack: "@modelcontextprotocol/server-github@2025.4.8", command: "mcp-server-github", tools: 26},
	{name: "jira", pack: "@aashari/mcp-server-atlassian-jira@3.3.0", command: "mcp-atlassian-jira", tools: 5},
	{name: "kubernetes", pack: "kubernetes-mcp-server@0.0.67", command: "kubernetes-mcp-server", tools: 20, args: []string{"--kubeconfig", "kubeconfig"}},
	{name: "mongodb", pack: "mongodb-mcp-server@3.0.4", command: "mongodb-mcp-server", tools: 27},
	{name: "notion", pack: "@notionhq/notion-mcp-server@2.5.2", command: "notion-mcp-server", tools: 24},
}

// nowhere is the configuration of a cluster that is not there.
const nowhere = `{"apiVersion": "v1", "kind": "Config", "current-context": "none",
	"clusters": [{"name": "none", "cluster": {"server": "http://127.0.0.1:1"}}],
	"contexts": [{"name": "none", "context": {"cluster": "none", "user": ""}}]}`

// Ten servers of the wild in a project's own .mcp.json: they start, are found,
// cost the model nothing but their names, and are called.
// S0-258
func TestNodeCatalogue(t *testing.T) {
	if os.Getenv("CAPSTAN_E2E_NODE") == "" {
		t.Skip("set CAPSTAN_E2E_NODE=1 to install and run servers from npm (make e2e-node)")
	}
	packs := nodePackages
	for _, c := range catalogue {
		packs = append(packs, c.pack)
	}
	bin := fromNPM(t, packs...)
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	servers := map[string]any{}
	want := map[string]int{}
	for _, c := range catalogue {
		servers[c.name] = map[string]any{"command": bin(c.command), "args": c.args, "startupTimeout": 180_000}
		want[c.name] = c.tools
	}
	config, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{".mcp.json": config, "kubeconfig": []byte(nowhere)} {
		if err := os.WriteFile(filepath.Join(work, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(binary, append(args, "--trust")...)
		cmd.Dir, cmd.Env = work, environment(work)
		out, errs, code := runCapstan(t, cmd)
		if code != 0 {
			t.Fatalf("%q: exit code %d\n%s%s", args, code, out, errs)
		}
		return out
	}
	var tried []struct {
		Name  string
		Tools int
	}
	if err := json.Unmarshal([]byte(run("mcp", "test", "--json")), &tried); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, s := range tried {
		got[s.Name] = s.Tools
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tools by server (-want +got):\n%s", diff)
	}
	if n := len(run("tools", "declarations", "--mode", "code", "--json")); n > 9216 {
		t.Errorf("the declarations take %d bytes", n)
	}
	t.Log("\n" + run("tools", "cost"))
	if out := run("tools", "search", "show the commit history of a repository"); !strings.HasPrefix(out, "mcp__git__git_log\n") {
		t.Errorf("the search found:\n%s", out)
	}
	printed := run("exec", "--approval-mode", "yolo", "-e", `
		const path = "`+filepath.ToSlash(work)+`";
		await tools.mcp__git__git_init({path});
		text(JSON.parse((await tools.mcp__git__git_status({path})).output).success);
		text((await tools.mcp__figma__figma_get_status({})).status);
		await tools.mcp__github__search_repositories({}).catch(e => text(e.code));`)
	if diff := cmp.Diff("true\nsuccess\nINVALID_ARGS\n", printed); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
	noneLeft(t, "HOME="+work, work)
}
