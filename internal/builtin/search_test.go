package builtin

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/tool"
)

func TestListDirectory(t *testing.T) {
	s := newSession(t)
	s.write("b.txt", "hello")
	s.write("a/x", "")
	s.write("skip.log", "")
	s.write(".git/config", "")
	s.write(".gitignore", "*.log\n")
	s.write("new\nline", "")
	s.link("b.txt", "l")
	r := s.call("list_directory", obj{})
	want := ".gitignore (6 bytes)\na/\nb.txt (5 bytes)\nl -> b.txt\n\"new\\nline\" (0 bytes)\n[1 path ignored (.gitignore, .capstanignore); name a path to look there]"
	data := `{"entries":[{"name":".gitignore","type":"file","size":6},{"name":"a","type":"directory"},{"name":"b.txt","type":"file","size":5},` +
		`{"name":"l","type":"symlink"},{"name":"new\nline","type":"file","size":0}]}`
	if diff := cmp.Diff([]string{want, data}, []string{r.Text(), string(r.Data)}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.fails("listing b.txt: it is not a directory; its directory is $DIR", "list_directory", obj{"path": "b.txt"})
	s.fails("listing gone: gone does not exist", "list_directory", obj{"path": "gone"})
	if got := s.ok("list_directory", obj{"path": "a/x/.."}); got != "x (0 bytes)\n" {
		t.Errorf("got %q", got)
	}
	s.write("big/.keep", "")
	for i := range modelLines + 5 {
		s.write(fmt.Sprintf("big/%04d", i), "")
	}
	r = s.call("list_directory", obj{"path": "big"})
	if got := r.Text(); !strings.HasSuffix(got, "\n[6 more not shown: narrow the search]") || strings.Count(got, "\n") != modelLines {
		t.Errorf("%d lines, ending in %q", strings.Count(got, "\n"), got[len(got)-80:])
	}
	s.src = tool.FromProgram
	if got := s.ok("list_directory", obj{"path": "big"}); strings.Count(got, "\n") != modelLines+6 {
		t.Errorf("a program got %d lines", strings.Count(got, "\n"))
	}
}

func TestGlob(t *testing.T) {
	s := newSession(t)
	for _, p := range []string{"main.go", "a/b.go", "a/b/c.go", "a/b/c.txt", "node_modules/x/y.go", "[x].go", ".hidden/h.go", "z-a.go"} {
		s.write(p, "")
	}
	s.write(".gitignore", "node_modules/\n")
	s.link("/", "root")
	s.link("a", "dirlink")
	s.link("main.go", "filelink.go")
	s.link(".", "a/loop")
	for _, tt := range []struct {
		args obj
		want string
	}{
		{obj{"pattern": "*.go"}, "[x].go\nfilelink.go\nmain.go\nz-a.go\n"},
		{obj{"pattern": "**/*.go"}, ".hidden/h.go\n[x].go\na/b/c.go\na/b.go\nfilelink.go\nmain.go\nz-a.go\n"},
		{obj{"pattern": "a/*/*.{go,txt}"}, "a/b/c.go\na/b/c.txt\n"},
		{obj{"pattern": "b/**", "path": "a"}, "a/b/c.go\na/b/c.txt\n"},
		{obj{"pattern": s.path("a") + "/*.go"}, "a/b.go\n"},
		{obj{"pattern": "main.go"}, "main.go\n"},
		{obj{"pattern": "node_modules/**/*.go"}, "node_modules/x/y.go\n"}, // named, so looked at
		{obj{"pattern": "a/../*/b.go"}, "a/b.go\n"},
		{obj{"pattern": "dirlink/*.go"}, "a/b.go\n"}, // by its real name
		{obj{"pattern": "*.rs"}, "[no file in $DIR matches *.rs, not counting subdirectories: that is **/*.rs; 1 path ignored (.gitignore, .capstanignore); name a path to look there]"},
		{obj{"pattern": "*/*.rs"}, "[no file in $DIR matches */*.rs; 1 path ignored (.gitignore, .capstanignore); name a path to look there]"},
	} {
		if got := strings.ReplaceAll(s.ok("glob", tt.args), s.dir, "$DIR"); got != tt.want {
			t.Errorf("%v: got\n%s\nwant\n%s", tt.args, got, tt.want)
		}
	}
	s.fails("the pattern \"[x\" is not a glob: an open [ or { needs its ] or }; write \\[ or \\{ for the character itself", "glob", obj{"pattern": "[x"})
	s.fails("searching gone: gone does not exist", "glob", obj{"pattern": "gone/*"})
	r := s.call("glob", obj{"pattern": "a/*.go"})
	if string(r.Data) != `{"files":["a/b.go"]}` {
		t.Errorf("data %s", r.Data)
	}
}

func TestGrep(t *testing.T) {
	s := newSession(t)
	s.write("a.go", "package a\nfunc One() {}\nfunc two() {}\n")
	s.write("b/b.go", "// func Three\r\nfunc Three() {}\r\n")
	s.write("b/c.txt", "\uFEFFfunc in text\n")
	s.write("bin", "func\x00")
	s.write("wide.txt", "\xff\xfef\x00u\x00n\x00c\x00")
	s.write(".git/x", "func")
	s.write(".gitignore", "out/\n")
	s.write("out/x.go", "func Ignored() {}\n")
	s.link("a.go", "link.go")
	s.link("/", "root")
	for _, tt := range []struct {
		args obj
		want string
	}{
		{obj{"pattern": `^func \w`, "glob": "*.go"}, "a.go\n  2: func One() {}\n  3: func two() {}\nb/b.go\n  2: func Three() {}\n"},
		{obj{"pattern": `func$`}, "wide.txt\n  1: func\n"},
		{obj{"pattern": `^func i`}, "b/c.txt\n  1: func in text\n"},
		{obj{"pattern": `{}$`, "path": "b"}, "b/b.go\n  2: func Three() {}\n"},
		{obj{"pattern": `(?i)THREE\(`}, "b/b.go\n  2: func Three() {}\n"},
		{obj{"pattern": "func", "path": "a.go", "limit": 1}, "a.go\n  2: func One() {}\n[1 more not shown: narrow the search]"},
		{obj{"pattern": "func", "path": "out"}, "out/x.go\n  1: func Ignored() {}\n"},
		{obj{"pattern": "Three", "glob": "b/*.go"}, "b/b.go\n  1: // func Three\n  2: func Three() {}\n"},
		{obj{"pattern": "Three", "glob": "*.{txt,md}"}, "[no line matches in 2 files of $DIR; 1 path ignored (.gitignore, .capstanignore); name a path to look there]"},
		{obj{"pattern": "zzz", "path": "bin"}, "[no line matches in 1 file of bin; 1 binary file skipped]"},
	} {
		if got := strings.ReplaceAll(s.ok("grep_search", tt.args), s.dir, "$DIR"); got != tt.want {
			t.Errorf("%v: got\n%s\nwant\n%s", tt.args, got, tt.want)
		}
	}
	r := s.call("grep_search", obj{"pattern": "two", "path": "a.go"})
	if want := `{"matches":[{"path":"a.go","line":3,"text":"func two() {}"}]}`; string(r.Data) != want {
		t.Errorf("data %s", r.Data)
	}
	for args, want := range map[[2]string]string{
		{"pattern", ""}:       "the pattern is empty: it would match every line",
		{"pattern", "a(?=b)"}: "the pattern \"a(?=b)\" is not a regular expression that RE2 knows: error parsing regexp: invalid or unsupported Perl syntax: `(?=`; there is no lookahead or lookbehind: match more, and filter the lines in a program",
		{"pattern", "f("}:     "the pattern \"f(\" is not a regular expression that RE2 knows: error parsing regexp: missing closing ): `f(`; write \\( \\) \\[ \\* for the characters themselves",
		{"pattern", `(a)\1`}:  "the pattern \"(a)\\\\1\" is not a regular expression that RE2 knows: error parsing regexp: invalid escape sequence: `\\1`; there are no back-references, and a backslash before a letter must be one of RE2's classes",
		{"pattern", "a\nb"}:   "the pattern \"a\\nb\" holds a line break, but lines are searched one by one: look for one of its lines",
		{"path", "gone"}:      "searching gone: gone does not exist",
		{"glob", "{a"}:        "the glob \"{a\" cannot be used: an open [ or { needs its ] or }",
	} {
		a := obj{"pattern": "x"}
		a[args[0]] = args[1]
		s.fails(want, "grep_search", a)
	}
}

// What an ignore file hides, a .capstanignore shows again, and naming a path
// shows it anyway.
func TestOwnIgnore(t *testing.T) { // BUG-SI-06
	s := newSession(t)
	s.write(".gitignore", "notes.md\nout/\n")
	s.write("sub/.gitignore", "notes.md\n")
	s.write(".capstanignore", "!notes.md\n*.secret\n")
	s.write("notes.md", "x")
	s.write("sub/notes.md", "x")
	s.write("a.secret", "x")
	s.write("out/y", "x")
	s.f.place.Move(s.f.place.Dir(), []string{s.dir})
	if got, want := s.ok("grep_search", obj{"pattern": "x"}), "notes.md\n  1: x\nsub/notes.md\n  1: x\n"; got != want {
		t.Errorf("got %q", got)
	}
	if got, want := s.ok("glob", obj{"pattern": "*", "path": "sub"}), "sub/.gitignore\nsub/notes.md\n"; got != want {
		t.Errorf("got %q", got)
	}
	if got := s.ok("read_file", obj{"file_path": "a.secret"}); got != "x" {
		t.Errorf("got %q", got)
	}
	if got, want := s.ok("grep_search", obj{"pattern": "x", "path": "out"}), "out/y\n  1: x\n"; got != want {
		t.Errorf("got %q", got)
	}
}

// What a rule forbids to read is not found.
func TestHidden(t *testing.T) {
	s := newSession(t)
	s.write("f", "x")
	s.write("d/.env", "x")
	s.write("keys/k", "x")
	s.f.hide = func(p string) bool { return filepath.Base(p) == ".env" || p == s.path("keys") }
	const note = "[2 paths left out, which a rule forbids to read]"
	if got, want := s.ok("grep_search", obj{"pattern": "x"}), "f\n  1: x\n"+note; got != want {
		t.Errorf("got %q", got)
	}
	if got, want := s.ok("glob", obj{"pattern": "**"}), "f\n"+note; got != want {
		t.Errorf("got %q", got)
	}
	if got, want := s.ok("list_directory", obj{}), "d/\nf (1 byte)\n[1 path left out, which a rule forbids to read]"; got != want {
		t.Errorf("got %q", got)
	}
}

// A linked work tree finds the exclude file of its repository.
func TestLinkedWorkTree(t *testing.T) {
	dir := gitRepo(t)
	run := func(args ...string) {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	run("commit", "-q", "--allow-empty", "-m", "x")
	tree := filepath.Join(t.TempDir(), "tree")
	run("worktree", "add", "-q", tree)
	write(t, filepath.Join(dir, ".git/info/exclude"), "hidden\n")
	write(t, filepath.Join(tree, "hidden"), "")
	write(t, filepath.Join(tree, "shown"), "")
	if diff := cmp.Diff([]string{"shown"}, kept(t, &files{}, tree)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// When its time is up a search gives what it has, and says so.
func TestSearchTime(t *testing.T) { // BUG-SI-01 BUG-SI-03 BUG-SI-05
	s := newSession(t)
	s.write("a/f", "x")
	s.f.searchTime = -time.Second // is up at once
	const want = "the search was ended after 20s, so there may be more: search a smaller directory"
	for name, args := range map[string]obj{"glob": {"pattern": "**"}, "grep_search": {"pattern": "x"}} {
		if got := s.ok(name, args); !strings.Contains(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Huge and odd files cost no memory and give short lines.
func TestGrepLarge(t *testing.T) { // BUG-SI-01
	s := newSession(t)
	f, err := os.Create(s.path("sparse"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(1 << 40); err != nil {
		t.Skip(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s.write("min.js", strings.Repeat("é", 300000)+"needle"+strings.Repeat("x", 2<<20)+"\nneedle\n")
	got := s.ok("grep_search", obj{"pattern": "needle"})
	want := "min.js\n  1: …" + strings.Repeat("é", 50) + "needle" + strings.Repeat("x", 294) + "… [line of 2.6 MiB]\n  2: needle\n"
	if got != want {
		t.Errorf("got %d bytes: %.900s", len(got), got)
	}
}

// A search finds what a regular expression finds line by line, whatever short
// cut it takes.
func FuzzGrep(f *testing.F) {
	for _, p := range []string{"a", "^a", "b$", "(?i)aB", "a.c", "x*", "a|b", "^$", "$", `\bfoo\b`, "(?s)a.b", `\Aa`, `b\z`, "[^x]", `a\s+b`, "(?i)k", "(foo)+bar", "(?i)ak", "(?i)strasse", "(?i)strasse|ſ"} {
		f.Add(p, "a\nb\r\nabc\n\nfoo bar\nAB\nK")
		f.Add(p, "\nxx\na b\na\n b")
		f.Add(p, "\u212a\n\u017ftras\u017fe\na\n")
	}
	f.Fuzz(func(t *testing.T, expr, text string) {
		re, err := regexp.Compile(expr)
		if err != nil || expr == "" || len(expr) > 100 || strings.IndexByte(text, 0) >= 0 {
			return
		}
		p, err := newPattern(expr)
		if err != nil {
			return
		}
		s := search{pattern: p, lines: newListing(tool.FromProgram)}
		var r searched
		s.scan(t.Context(), &r, []byte(text), 1)
		var got, want []int
		for _, h := range r.hits {
			got = append(got, h.Line)
		}
		lines := strings.Split(text, "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		for i, l := range lines {
			if re.MatchString(strings.TrimSuffix(l, "\r")) {
				want = append(want, i+1)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q in %q (-want +got):\n%s", expr, text, diff)
		}
	})
}

func BenchmarkGrep(b *testing.B) {
	dir := b.TempDir()
	for i := range 500 {
		write(b, filepath.Join(dir, fmt.Sprint(i%10), fmt.Sprint(i)), strings.Repeat("some line of text that is looked through\n", 200)+"Needle\n")
	}
	for name, pattern := range map[string]string{"literal": "Needle", "prefix": `Need\w+$`, "fold": "(?i)needle", "class": `[N]e+dl`} {
		b.Run(name, func(b *testing.B) {
			tl := newGrepSearch(newFiles(Options{Dir: dir}))
			for b.Loop() {
				call(b, tl, tool.FromProgram, obj{"pattern": pattern})
			}
			b.SetBytes(500 * 200 * 41)
		})
	}
}
