package policy

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capstan/internal/sched"
)

// A commandCase is one line of testdata/commands.txt.
type commandCase struct {
	line            int
	mode            Mode
	rules           string
	decision        string
	source, command string
}

func commandCases(t testing.TB) []commandCase {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "commands.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var out []commandCase
	var mode Mode
	var rules string
	for i, l := range strings.Split(string(text), "\n") {
		if head, ok := strings.CutPrefix(l, "## "); ok {
			m, r, _ := strings.Cut(head, ":")
			if mode, err = ParseMode(m); err != nil {
				t.Fatal(err)
			}
			rules = strings.TrimSpace(r)
			continue
		}
		if l == "" || strings.HasPrefix(l, "#") {
			continue
		}
		decision, rest, _ := strings.Cut(l, "  ")
		source, command, ok := strings.Cut(strings.TrimSpace(rest), "  ")
		if !ok {
			t.Fatalf("line %d: %q", i+1, l)
		}
		out = append(out, commandCase{i + 1, mode, rules, strings.TrimSpace(decision), source, strings.ReplaceAll(command, "⏎", "\n")})
	}
	return out
}

// commandWorld is the workspace of the cases.
func commandWorld(t testing.TB) world {
	w := newWorld(t)
	w.put(t, "ws/keep", "x\n")
	w.put(t, "ws/src/keep", "x\n")
	w.put(t, "home/.ssh/id_rsa", "x\n")
	w.put(t, "ws/secrets/key.pem", "x\n")
	return w
}

// The decision about each of many commands, most of them from reports about other
// products and from their tests. BUG-SP-01, BUG-SP-03, BUG-SP-05, BUG-SP-06,
// BUG-SP-08, BUG-SP-10
func TestCommands(t *testing.T) {
	w := commandWorld(t)
	policies := map[string]*Policy{}
	foreign := 0
	cases := commandCases(t)
	for _, c := range cases {
		key := fmt.Sprint(c.mode, c.rules)
		p := policies[key]
		if p == nil {
			o := w.options(c.mode)
			o.Environ = []string{"PATH", "HOME", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "LD_PRELOAD"}
			o.Rules = w.rules(c.rules)
			var warnings []string
			var err error
			if p, warnings, err = New(o); err != nil || len(warnings) > 0 {
				t.Fatal(warnings, err)
			}
			policies[key] = p
		}
		if c.source != "own" {
			foreign++
		}
		req := w.request(t, "sh x")
		req.Call.Args = marshal(t, map[string]string{"command": c.command})
		got := p.Decide(t.Context(), req)
		if decisions[got.Decision] != c.decision {
			t.Errorf("line %d: %s, %q (%s): %s by %s (%s), want %s", c.line, c.mode, c.command, c.source, decisions[got.Decision], got.By, got.Reason, c.decision)
		}
	}
	if len(cases) < 300 {
		t.Errorf("%d cases, want at least 300", len(cases))
	}
	t.Logf("%d cases, %d of them from elsewhere", len(cases), foreign)
}

func marshal(t testing.TB, v any) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Everyday commands do not nag, under a list of rules as people have it, nor much
// more when a file is protected too.
func TestEveryday(t *testing.T) {
	for _, c := range []struct {
		name, deny string
		most       int // in 100 that ask
	}{{"plain", "", 2}, {"file protected", "Read(.env)", 10}} {
		t.Run(c.name, func(t *testing.T) { everyday(t, c.deny, c.most) })
	}
}

func everyday(t *testing.T, deny string, most int) {
	w := commandWorld(t)
	o := w.options(Default)
	o.Environ = []string{"PATH", "HOME", "USER", "LANG", "TERM", "SHELL", "GITHUB_TOKEN"}
	for _, s := range []string{
		"git add", "git commit", "git checkout", "git switch", "git stash", "git fetch", "git pull",
		"npm test", "npm run test", "npm run build", "npm run lint", "npm run test:unit", "npm ci", "npx tsc", "npx eslint", "npx prettier", "npx vitest", "node scripts/check.js",
		"go build", "go test", "go vet", "go mod tidy", "go doc", "gofmt", "cargo build", "cargo test", "cargo clippy", "cargo fmt",
		"python3 -m pytest", "pytest", "ruff check", "mypy", "make", "docker ps", "docker compose ps", "gh pr", "gh issue view", "mkdir", "touch",
	} {
		o.Rules = append(o.Rules, Rule{List: "allow", Text: "Bash(" + s + ":*)"})
	}
	if deny != "" {
		o.Rules = append(o.Rules, Rule{List: "deny", Text: deny})
	}
	p, warnings, err := New(o)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "everyday.txt"))
	if err != nil {
		t.Fatal(err)
	}
	all, asks := 0, 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		all++
		req := w.request(t, "sh x")
		req.Call.Args = marshal(t, map[string]string{"command": strings.ReplaceAll(line, "⏎", "\n")})
		if got := p.Decide(t.Context(), req); got.Decision != sched.Allow {
			asks++
			t.Logf("%s: %s", line, got.Reason)
		}
	}
	if all < 200 || asks*100 > all*most {
		t.Errorf("%d of %d everyday commands ask, want at most %d in 100", asks, all, most)
	}
	t.Logf("%d of %d ask", asks, all)
}
