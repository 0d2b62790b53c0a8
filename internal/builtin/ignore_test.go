package builtin

import (
	"bytes"
	"context"
	"flag"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// kept lists what a walk of dir finds, relative to it.
func kept(t testing.TB, f *files, dir string) []string {
	t.Helper()
	out := []string{}
	w := &walk{f: f, ctx: context.Background()}
	w.visit = func(path string, d fs.DirEntry) {
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			t.Fatal(err)
		}
		rel = filepath.ToSlash(rel)
		if !strings.HasSuffix(rel, "ignore") {
			out = append(out, rel)
		}
	}
	if err := w.run(dir); err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// gitKept is what git says about the same tree.
func gitKept(t testing.TB, dir string, all []string) []string {
	t.Helper()
	cmd := exec.Command("git", "-C", dir, "check-ignore", "--no-index", "-z", "--stdin")
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "XDG_CONFIG_HOME=/nonexistent", "HOME=/nonexistent")
	cmd.Stdin = strings.NewReader(strings.Join(all, "\x00") + "\x00")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	b, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 1 { // 1: nothing is ignored
		t.Fatalf("git check-ignore: %v\n%s", err, stderr.String())
	}
	hidden := strings.Split(string(b), "\x00")
	return slices.DeleteFunc(slices.Clone(all), func(p string) bool { return slices.Contains(hidden, p) })
}

// gitRepo makes an empty repository, or skips the test where git is not
// installed.
func gitRepo(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	return dir
}

var treePaths = []string{
	"a", "b.go", "ab", "a b", "x[1]", "#c", "!d", "bin/www/index.html", "bin/tool", "src/a/b/c.go", "src/a/b.go", "src/b.go",
	"src/ab/a", "a.d/b", "a.d/a.go", "A", "a-c", "foo/x/bar", "foox/bar", "foo/bar", "w\\x", "t ",
}

func makeTree(t testing.TB, dir string) []string {
	t.Helper()
	for _, p := range treePaths {
		write(t, filepath.Join(dir, p), "")
	}
	return kept(t, &files{}, dir)
}

// What the ignore files hide is exactly what git hides.
func TestIgnoreAgainstGit(t *testing.T) { // BUG-SI-08
	dir := gitRepo(t)
	all := makeTree(t, dir)
	for _, rules := range []string{
		"bin/*\n!bin/www/\n", "bin/\n!bin/www/\n", "*.go\n!b.go\n", "/a\n", "a/\n", "src/**/b.go\n", "**/b\n", "src/**\n!src/b.go\n",
		"foo**/bar\n", "foo/**\n", "**foo\n", "f**o\n", "f*/x/bar\n", "a\\ b\n", "a b   \n", "t\\ \n", "t\\  \n", "\\#c\n", "\\!d\n", "#c\n", "!d\n",
		"x[[]1]\n", "x\\[1]\n", "x[1]\n", "[!a]\n", "[^a]\n", "[]a]\n", "[a\n", "a\\\n", "w\\\\x\n", "a[-]c\n", "a[a-]c\n", "[[:upper:]]\n", "[[:bad:]]\n",
		"[[:alpha:]-z]\n", "*\n!*/\n!*.go\n", "/*\n!/src\n/src/*\n!/src/a\n", "a\r\nab\r\n", "a\r", "\uFEFFa\n", "/\n", "//\n", "!\n", "!/\n", "**\n",
		"/**\n", "**/\n", "*/\n", "src/\n!src/\n", "src/a/\n!src/a/b.go\n", "/src/a/b/\n", "bin/www/index.html\n", "a?c\n", "foo/*/bar\n", "foo*/bar\n",
		"src/**/**/c.go\n", "**/a/**\n", "src/a**\n", "src/a**/c.go\n", "src/*b.go\n", "src*b.go\n", "***\n", "src/***/c.go\n", "a.d/[!a]*\n", "a.d[/]b\n", "/foo**\n", "src/a**\n!src/a/b.go\n", "fo*o**/bar\n", "src/[a]**/c.go\n",
	} {
		write(t, filepath.Join(dir, gitIgnore), rules)
		if diff := cmp.Diff(gitKept(t, dir, all), kept(t, &files{}, dir)); diff != "" {
			t.Errorf("%q: (-git +ours)\n%s", rules, diff)
		}
	}
}

// The same with patterns and nested files that nobody thought of.
func TestIgnoreRandomAgainstGit(t *testing.T) {
	dir := gitRepo(t)
	all := makeTree(t, dir)
	r := rand.New(rand.NewPCG(1, uint64(*rounds)))
	for range *rounds {
		at := map[string]string{"": randomRules(r), "src/": randomRules(r), "src/a/": randomRules(r), ".git/info/exclude": randomRules(r)}
		for d, s := range at {
			if d == ".git/info/exclude" {
				write(t, filepath.Join(dir, d), s)
			} else {
				write(t, filepath.Join(dir, d, gitIgnore), s)
			}
		}
		if diff := cmp.Diff(gitKept(t, dir, all), kept(t, &files{}, dir)); diff != "" {
			t.Errorf("%q: (-git +ours)\n%s", at, diff)
		}
	}
}

// A longer run: go test -run IgnoreRandom -rounds 20000
var rounds = flag.Int("rounds", 300, "of TestIgnoreRandomAgainstGit")

func randomRules(r *rand.Rand) string {
	pieces := []string{"a", "b", "src", "foo", "bar", "bin", "www", "*", "**", "/", "/", ".go", "[ab]", "[!a]", "\\a", "x", "a.d", "-", "[a-c]"}
	var b strings.Builder
	for range r.IntN(4) {
		if r.IntN(3) == 0 {
			b.WriteByte('!')
		}
		for range 1 + r.IntN(5) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		b.WriteByte('\n')
	}
	return b.String()
}
