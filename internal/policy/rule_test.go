package policy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/sched"
)

// TestBrokenRules: to forbid or to ask, a rule that cannot be read ends the
// start; to allow, it is dropped with a warning. Both say where it stands.
func TestBrokenRules(t *testing.T) {
	w := newWorld(t)
	for text, want := range map[string]string{
		"":                      "the rule is empty",
		"Read(":                 "closing parenthesis is missing",
		"Read(.env":             "closing parenthesis is missing",
		"(x)":                   "is no tool name",
		"Read, Edit":            "is no tool name",
		"'Read'":                "is no tool name",
		"Read(!x)":              "cannot be negated",
		"Read([a)":              "malformed wildcard",
		"Read(*.{a,b})":         "braces are no wildcards",
		"Read(a\\)":             "backslash",
		"Read(*/../x)":          "cannot follow a wildcard",
		"Bash(a && b)":          "one simple command",
		"Bash(a > b)":           "one simple command",
		"Bash(A=$X b)":          "has to be plain",
		"Bash(echo $X)":         "cannot hold variables",
		"Bash(echo 'x)":         "cannot be parsed",
		"WebFetch(https://x.y)": "domain:HOST",
		// A rule that no address could meet would forbid nothing.
		"WebFetch(domain:)":                  "domain:HOST",
		"WebFetch(domain:.)":                 "domain:HOST",
		"WebFetch(domain:.x.test)":           "domain:HOST",
		"WebFetch(domain:x..test)":           "domain:HOST",
		"WebFetch(domain:x*.test)":           "domain:HOST",
		"WebFetch(domain:x.test:80)":         "domain:HOST",
		"WebFetch(domain:x.test/a)":          "domain:HOST",
		"WebFetch(domain:x y.test)":          "domain:HOST",
		"WebFetch(domain:m\u00fcnchen.test)": "write it in its xn-- form",
		"mcp__s__t(x)":                       "takes nothing in parentheses",
		"TodoWrite(x)":                       "takes nothing in parentheses",
		strings.Repeat("x", 3000):            "longer than 2000 bytes",
		"Reed(.env)":                         "takes nothing in parentheses",
		"Reed":                               "did you mean Read?",
		"bash":                               "did you mean Bash?",
	} {
		for _, list := range []string{"deny", "ask", "allow"} {
			o := w.options(Default)
			o.Tools = []string{"read_file", "exec"}
			o.Rules = []Rule{{List: list, Text: text, Origin: "f.json:3:4"}}
			p, warnings, err := New(o)
			if list != "allow" {
				if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "permissions."+list) || !strings.Contains(err.Error(), "f.json:3:4") {
					t.Errorf("%s %q: error %v, want one with %q", list, text, err, want)
				}
				continue
			}
			if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], want) || !strings.Contains(warnings[0], "f.json:3:4") {
				t.Errorf("%s %q: %v %q, want a warning with %q", list, text, err, warnings, want)
			} else if len(p.rules.Load().allow) != 0 {
				t.Errorf("allow %q is in force", text)
			}
		}
	}
}

func TestAllBrokenRulesAreReported(t *testing.T) {
	o := newWorld(t).options(Default)
	o.Rules = []Rule{{"deny", "Read(", "a"}, {"ask", "Bash($X)", "b"}, {"never", "Read", "c"}}
	_, _, err := New(o)
	for _, origin := range []string{"(a)", "(b)", "(c)"} {
		if err == nil || !strings.Contains(err.Error(), origin) {
			t.Errorf("%s is missing in %v", origin, err)
		}
	}
}

func TestRuleForNoTool(t *testing.T) {
	o := newWorld(t).options(Default)
	o.Tools = []string{"read_file"}
	o.Rules = []Rule{{"deny", "Kubernetes", "o"}, {"deny", "mcp__x__y", "o"}, {"deny", "NotebookRead", "o"}, {"deny", "foo*", "o"}, {"deny", "agent", "o"}, {"deny", "exec", "o"}, {"ask", "run_shell_command", "o"}}
	_, warnings, err := New(o)
	if diff := cmp.Diff([]string{`permissions.deny "Kubernetes" (o): no tool is called Kubernetes`}, warnings); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// TestManyReports: warnings and errors about rules are bounded. With every
// distance to a name counted in full, this test takes a minute.
func TestManyReports(t *testing.T) {
	o := newWorld(t).options(Default)
	for i := range 3000 {
		o.Tools = append(o.Tools, fmt.Sprintf("mcp__server__%020d", i))
	}
	for i := range 2000 {
		o.Rules = append(o.Rules, Rule{List: "deny", Text: fmt.Sprintf("mpc_service__%020d", i)})
	}
	_, warnings, err := New(o)
	if len(warnings) != maxReports+1 || warnings[maxReports] != "and 1980 more warnings about rules" || err != nil {
		t.Errorf("%d warnings, the last %q; %v", len(warnings), warnings[len(warnings)-1], err)
	}
	for i := range o.Rules {
		o.Rules[i].Text = "Read("
	}
	_, _, err = New(o)
	lines := strings.Split(fmt.Sprint(err), "\n")
	if len(lines) != maxReports+1 || lines[maxReports] != "and 1980 more rules that cannot be read" {
		t.Errorf("%d faults, the last %q", len(lines), lines[len(lines)-1])
	}
}

// TestEdits compares with the whole table of distances.
func TestEdits(t *testing.T) {
	words := []string{"", "a", "b", "ab", "ba", "abc", "acb", "bash", "Bash", "bahs", "basch", "bas", "shell", "read", "reed", "raed", "reader", "dear"}
	for _, a := range words {
		for _, b := range words {
			for most := range 4 {
				if got, want := edits(a, b, most), levenshtein(a, b) <= most; got != want {
					t.Errorf("%q to %q in %d: %t, want %t", a, b, most, got, want)
				}
			}
		}
	}
}

func levenshtein(a, b string) int {
	switch {
	case a == "" || b == "":
		return len(a) + len(b)
	case a[0] == b[0]:
		return levenshtein(a[1:], b[1:])
	}
	return 1 + min(levenshtein(a[1:], b[1:]), levenshtein(a[1:], b), levenshtein(a, b[1:]))
}

// TestHostileRules: what a folder's rules say cannot act on the terminal.
func TestHostileRules(t *testing.T) {
	w := newWorld(t)
	const hostile = "\x1b[2K\u202e\u009b\U000e0001"
	for _, text := range []string{
		hostile, "To" + hostile, "Read(" + hostile, "To" + hostile + "(x)", "WebFetch" + hostile + "(x)", "Bas" + "\x1b",
		"Bash($(" + hostile + "))", "Bash('" + hostile + ")", "Read(/loop/" + hostile + ")", "Read(" + strings.Repeat(hostile, 1000) + ")", "mcp__" + hostile + "(x)",
	} {
		if err := os.Symlink("loop", filepath.Join(w.ws, "loop")); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
		for _, list := range []string{"deny", "allow"} {
			o := w.options(Default)
			o.Tools = []string{"read_file"}
			o.Rules = []Rule{{List: list, Text: text}}
			_, warnings, err := New(o)
			if s := fmt.Sprint(warnings, err); strings.ContainsAny(s, "\x1b\u202e\u009b\U000e0001") || len(s) > 3000 || err == nil && len(warnings) == 0 {
				t.Errorf("%s %.40q: %q", list, text, s)
			}
		}
	}
	if got, want := quote("a\"\\\x1b\U000e0001é"), `"a\"\\\u001b\udb40\udc01é"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := Workspace(w.base + "/" + hostile); err == nil || strings.ContainsAny(err.Error(), hostile) && strings.Contains(err.Error(), "\x1b") {
		t.Error(err)
	}
}

func TestOptions(t *testing.T) {
	w := newWorld(t)
	for name, o := range map[string]Options{
		"unknown approval mode":         {Mode: "auto", Dir: w.ws},
		"not an absolute path":          {Dir: "x"},
		"no such file":                  {Dir: filepath.Join(w.base, "none")},
		"not a directory":               {Dir: filepath.Join(w.ws, "a.txt")},
		"workspace directory \"x\"":     {Dir: w.ws, Roots: []string{"x"}},
		"finding a workspace directory": {Dir: w.ws, Roots: []string{filepath.Join(w.base, "none")}},
		"no home directory":             {Dir: w.ws, Rules: []Rule{{List: "deny", Text: "Read(~/x)"}}},
	} {
		if _, _, err := New(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: error %v, want %q", o, err, name)
		}
	}
}

func TestWorkspace(t *testing.T) {
	w := newWorld(t)
	for _, f := range []string{"tree/x/y/f", "stray/sub/f", "empty/.git/x", "empty/sub/f"} {
		if err := os.MkdirAll(filepath.Join(w.base, filepath.Dir(f)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(w.base, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("tree/x/.git", "gitdir: ../../elsewhere\n")
	write("stray/.git", "hello")
	for dir, want := range map[string]string{
		"ws": "ws", "ws/sub/deep": "ws", "link/sub": "ws", "outside/dir": "outside/dir",
		"tree/x/y": "tree/x", "stray/sub": "stray/sub", "empty/sub": "empty/sub", "ws/out": "outside",
	} {
		got, err := Workspace(filepath.Join(w.base, dir))
		if diff := cmp.Diff(filepath.Join(w.base, want), got); diff != "" || err != nil {
			t.Errorf("%s: %s %v", dir, diff, err)
		}
	}
	if _, err := Workspace("ws"); err == nil {
		t.Error("a relative directory has no workspace")
	}
}

// TestAddedRoot: --add-dir widens the workspace; `/x` stays the project's.
func TestAddedRoot(t *testing.T) {
	w := newWorld(t)
	o := w.options(AutoEdit)
	o.Roots = []string{w.ws, w.outside}
	o.Rules = w.rules("deny Read(/x.txt); deny Read(secret)")
	p, _, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]string{
		"read_file $OUT/x.txt": "allow", "write_file $OUT/y": "allow", "read_file $OUT/secret": "deny",
		"write_file $OUT/.git/config": "ask", "write_file $BASE/z": "ask",
	} {
		if got := p.Decide(t.Context(), w.request(t, call)); decisions[got.Decision] != want {
			t.Errorf("%s: got %s, want %s", call, decisions[got.Decision], want)
		}
	}
}

func TestResolve(t *testing.T) {
	w := newWorld(t)
	links := map[string]string{"loop": "loop", "l1": "ws/a.txt"}
	for i := 2; i <= maxLinks+1; i++ {
		links[fmt.Sprint("l", i)] = fmt.Sprint("l", i-1)
	}
	for link, target := range links {
		if err := os.Symlink(target, filepath.Join(w.base, link)); err != nil {
			t.Fatal(err)
		}
	}
	for in, want := range map[string]string{
		"/ws/a.txt": "/ws/a.txt", "/link/a.txt": "/ws/a.txt", "/link/../x": "/x", "/ws/out/../y": "/y",
		"/ws/out/new/f": "/outside/new/f", "/ws/dangling": "/outside/new.txt", "/ws/none/../../x": "/x", "/ws//./a.txt/": "/ws/a.txt",
		"/l40": "/ws/a.txt",
	} {
		got, err := resolve(w.base + in)
		if diff := cmp.Diff(w.base+want, got); diff != "" || err != nil {
			t.Errorf("%s: %s %v", in, diff, err)
		}
	}
	for in, want := range map[string]error{
		"/loop/x": errLinks, "/l41": errLinks, strings.Repeat("/ws/..", maxSteps/2) + "/ws": errLinks, "/ws/a.txt/x": syscall.ENOTDIR, "/ws/" + strings.Repeat("x", 300) + "/../a.txt": syscall.ENAMETOOLONG,
	} {
		if got, err := resolve(w.base + in); !errors.Is(err, want) {
			t.Errorf("%s resolves to %s (%v), want %v", in, got, err, want)
		}
	}
}

// TestRuleBelowWhatIsClosed: a rule about files that this user cannot look at
// stays in force; one whose links lead nowhere is broken.
func TestRuleBelowWhatIsClosed(t *testing.T) {
	w := newWorld(t)
	if err := os.Symlink("loop", filepath.Join(w.ws, "loop")); err != nil {
		t.Fatal(err)
	}
	o := w.options(Yolo)
	o.Home = w.ws + "/a.txt/home" // a home that cannot be
	o.Rules = w.rules("deny Read(/a.txt/x/*.pem)")
	p, _, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if !p.Hidden(w.ws+"/a.txt/x/y.pem") || p.Hidden(w.ws+"/a.txt/y.pem") {
		t.Error("the rule does not mean what it says")
	}
	o.Rules = w.rules("deny Read(/loop/x)")
	if _, _, err := New(o); !errors.Is(err, errLinks) {
		t.Errorf("a rule that leads in a circle: %v", err)
	}
}

// TestHostileText: what a call names cannot hide in a reason.
func TestHostileText(t *testing.T) {
	w := newWorld(t)
	p, _, err := New(w.options(Default))
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("é", 1000)
	for call, want := range map[string]string{
		"write_file a\x1b[2Kb":       `a\x1b[2Kb`,
		"write_file a\u202eb":        `a\u202eb`,
		"write_file a\xffb":          `a\xffb`,
		"write_file a\nb":            `a\nb`,
		"sh make \x1b[1A \u2066":     `\x1b[1A`,
		"sh make " + long:            "…",
		"sh make '\x01" + long + "'": "…",
	} {
		got := p.Decide(t.Context(), w.request(t, call))
		if !strings.Contains(got.Reason, want) || strings.ContainsAny(got.Reason, "\x1b\n\u202e\u2066\xff") || len(got.Reason) > 1500 {
			t.Errorf("%q: reason %q", call, got.Reason)
		}
	}
}

func TestDeepNestingIsNotParsed(t *testing.T) {
	w := newWorld(t)
	p, _, err := New(w.options(Default))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"(", "$(", "`", "! ", "if ", "{ ", "${x:-", "<(", "[[ ", "$((", "while "} {
		for _, n := range []int{100, 10_000} {
			got := p.Decide(t.Context(), w.request(t, "sh "+strings.Repeat(part, min(n, maxCommand/len(part)))))
			if deep := strings.Contains(got.Reason, "nested too deeply"); got.Decision != sched.Ask || deep != (n > maxNesting) {
				t.Errorf("%d times %q: %+v", n, part, got)
			}
		}
	}
}

// FuzzRule: no rule text makes the parser fail, and a rule that was read can
// be asked about anything.
func FuzzRule(f *testing.F) {
	for _, s := range []string{"Read(.env)", "Bash(git log:*)", "mcp__a__*", "Edit(//x/**)", "Bash(a 'b' \\* *)", "Read(~/[a-z]?)", "WebFetch(domain:x)", "*", "Bash(:*)", "Edit(\\", "Read(**/a/**/b)"} {
		f.Add(s, "sub/.env", "git log -1 && rm x")
	}
	w := newWorld(f)
	f.Fuzz(func(t *testing.T, text, path, command string) {
		pl, err := newPlace(w.ws, w.home, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := parseRule(Rule{List: "deny", Text: text}, pl)
		if err != nil {
			return
		}
		r.matches(&act{kind: actRead, tool: readTool, path: filepath.Join(w.ws, path)}, pl)
		p := &Policy{first: pl, settings: "S"}
		p.rules.Store(&ruleSet{place: pl, deny: []*rule{r}})
		if err := p.SetMode(Default); err != nil {
			t.Fatal(err)
		}
		p.Explain(w.request(t, "sh "+command))
	})
}

// FuzzSuggestion: the rules that are suggested for a call do allow it, and an
// exact rule for one command allows no other.
func FuzzSuggestion(f *testing.F) {
	for _, s := range []string{"make 'a b' *.o && ls > x", "rm -rf \"$X\"", "cat <<EOF\nx\nEOF", "a\\ b 'c'\"d\"", "make ~ ~/x", "echo ${x} > 'y z'", "find . -exec rm {} \\;", "make é\u202e"} {
		f.Add(s)
	}
	w := newWorld(f)
	f.Fuzz(func(t *testing.T, command string) {
		o := w.options(Default)
		p, _, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		req := w.request(t, "sh "+command)
		got := p.Explain(req)
		if len(got.Rules) == 0 {
			return
		}
		for _, text := range got.Rules {
			o.Rules = append(o.Rules, Rule{List: "allow", Text: text})
		}
		if p, _, err = New(o); err != nil {
			t.Fatalf("%q: suggested %q: %v", command, got.Rules, err)
		}
		if after := p.Explain(req); after.Decision != sched.Allow {
			t.Errorf("%q: suggested %q, which do not allow it: %s", command, got.Rules, after.Reason)
		}
		for _, text := range got.Rules {
			if strings.HasPrefix(text, "Bash(") {
				other := strings.TrimSuffix(strings.TrimPrefix(text, "Bash("), ")") + " more"
				if v := p.Explain(w.request(t, "sh "+other)); v.Decision == sched.Allow && v.Rule == text {
					t.Errorf("the exact rule %q allows %q", text, other)
				}
			}
		}
	})
}

func BenchmarkDecideRead(b *testing.B) {
	w := newWorld(b)
	p, _, err := New(w.options(Default))
	if err != nil {
		b.Fatal(err)
	}
	req := w.request(b, "read_file a.txt")
	b.ReportAllocs()
	for b.Loop() {
		if v := p.Decide(b.Context(), req); v.Decision != sched.Allow {
			b.Fatal(v)
		}
	}
}

func BenchmarkDecideShell(b *testing.B) {
	w := newWorld(b)
	p, _, err := New(w.options(Default))
	if err != nil {
		b.Fatal(err)
	}
	req := w.request(b, "sh git log --oneline | head -5 && cat src/main.go")
	b.ReportAllocs()
	for b.Loop() {
		if v := p.Decide(b.Context(), req); v.Decision != sched.Allow {
			b.Fatal(v)
		}
	}
}
