// Package arch checks the architecture: who may import whom.
package arch

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// module is the path that our packages begin with. It sorts before every
// dependency's, which the early init of the sandbox child and of the keeper
// needs.
const module = "capstan" // the module's path

// allowed is the whole architecture: a package may import only those listed
// for it (docs/ARCHITECTURE.md says why).
var allowed = map[string][]string{
	"cmd/capstan":                        {"internal/agent", "internal/app", "internal/codemode", "internal/llm", "internal/msg", "internal/sandbox", "internal/sched", "internal/session", "internal/tool", "internal/ui/headless", "internal/ui/terminal"},
	"internal/msg":                       {},
	"internal/schema":                    {},
	"internal/tool":                      {"internal/msg", "internal/schema"},
	"internal/sched":                     {"internal/tool", "internal/schema", "internal/msg"},
	"internal/sandbox":                   {},
	"internal/sandbox/bin":               {},
	"internal/sandbox/frame":             {"internal/sandbox/bin"},
	"internal/sandbox/guest":             {"internal/sandbox/bin", "internal/sandbox/frame", "internal/sandbox/guest/qjswasm"},
	"internal/sandbox/guest/qjswasm":     {"internal/sandbox/bin"},
	"internal/sandbox/quickjs":           {"internal/sandbox", "internal/sandbox/frame", "internal/sandbox/guest"},
	"internal/sandbox/sandboxtest":       {"internal/sandbox/guest"},
	"internal/sandbox/sandboxtest/child": {"internal/sandbox/guest"},
	"internal/codemode":                  {"internal/tool", "internal/sandbox", "internal/schema", "internal/search", "internal/msg", "internal/typescript"},
	"internal/typescript":                {},
	"internal/search":                    {},
	"internal/policy":                    {"internal/sched", "internal/tool"},
	"internal/worktree":                  {"internal/shell"},
	"internal/hook":                      {"internal/sched", "internal/tool", "internal/shell", "internal/msg"},
	"internal/shell":                     {"internal/shell/keeper"},
	"internal/shell/keeper":              {},
	"internal/builtin":                   {"internal/tool", "internal/shell", "internal/msg", "internal/schema"},
	"internal/config":                    {},
	"internal/llm":                       {"internal/msg", "internal/schema"},
	"internal/llm/openai":                {"internal/llm", "internal/msg", "internal/schema"},
	"internal/llm/responses":             {"internal/llm", "internal/msg", "internal/schema"},
	"internal/llm/gemini":                {"internal/llm", "internal/msg", "internal/schema"},
	"internal/llm/anthropic":             {"internal/llm", "internal/msg", "internal/schema"},
	"internal/llm/llmtest":               {"internal/msg"},                                         // and nothing that it tests
	"internal/llm/familytest":            {"internal/llm", "internal/llm/llmtest", "internal/msg"}, // what the tests of the families share
	"internal/llm/llmtest/cmd/llmtest":   {"internal/llm/llmtest"},
	"internal/session":                   {"internal/msg"},
	"internal/agent":                     {"internal/llm", "internal/sched", "internal/tool", "internal/session", "internal/msg"},
	"internal/telemetry":                 {"internal/sched", "internal/agent", "internal/tool", "internal/llm", "internal/msg"},
	"internal/ui/headless":               {"internal/agent", "internal/llm", "internal/sched", "internal/tool", "internal/msg"},
	"internal/ui/terminal":               {"internal/sched", "internal/tool", "internal/msg"},
	"internal/mcp":                       {"internal/tool", "internal/schema", "internal/shell", "internal/msg"},
	"internal/app":                       {"*"},
	"internal/arch":                      {},
	"internal/arch/conformance":          {},
}

// forbidden are packages that ours may not import, but for those named.
var forbidden = []struct {
	path, why string
	except    []string
}{
	{"os/exec", "only the packages that start processes do", []string{"internal/sandbox/quickjs", "internal/shell", "internal/sandbox/sandboxtest", "internal/typescript"}},
	{"text/template", "it turns off the linker's elimination of dead methods", nil},
	{"html/template", "it turns off the linker's elimination of dead methods", nil},
	{"internal/config", "settings are resolved once, by app; nobody else reads them", []string{"internal/app"}},
}

type pkg struct {
	ImportPath, Standard string
	Imports              []string
}

func TestImports(t *testing.T) {
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		ok, known := allowed[name]
		if !known && !tooling(name) {
			t.Errorf("%s is not in the table: say where it belongs", name)
			continue
		}
		for _, i := range p.Imports {
			rel, own := strings.CutPrefix(i, module+"/")
			if own && known && !slices.Contains(ok, rel) && !slices.Contains(ok, "*") {
				t.Errorf("%s may not import %s", name, rel)
			}
			for _, f := range forbidden {
				if (i == f.path || own && rel == f.path) && known && !slices.Contains(f.except, name) {
					t.Errorf("%s may not import %s: %s", name, i, f.why)
				}
			}
		}
	}
}

// tooling are programs that are no part of the product.
func tooling(name string) bool {
	return strings.HasPrefix(name, "script/") || strings.HasPrefix(name, "bench") || strings.HasPrefix(name, "examples")
}

// The child and the keeper take over in an early init. What they import decides
// how early: each of these costs well under a millisecond, their common
// alternatives (os, fmt) wait for the whole program's packages.
func TestEarlyPackagesAreLean(t *testing.T) {
	lean := []string{"syscall", "time", "unsafe", "embed", "io", "runtime", "runtime/debug", "math", "math/bits", "errors", "sync", "sync/atomic"}
	early := []string{"internal/sandbox/guest", "internal/sandbox/guest/qjswasm", "internal/sandbox/frame", "internal/sandbox/bin", "internal/shell/keeper"}
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		if !slices.Contains(early, name) {
			continue
		}
		for _, i := range p.Imports {
			if !strings.HasPrefix(i, module+"/") && !slices.Contains(lean, i) {
				t.Errorf("%s imports %s, which is not known to initialise early", name, i)
			}
		}
	}
}

func list(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", module+"/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var ps []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p pkg
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
	if len(ps) < 10 {
		t.Fatalf("go list found only %d packages", len(ps))
	}
	return ps
}
