package shell

import (
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestEnviron(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("locales by environment are not for Windows")
	}
	base := []string{"PATH=/bin", "OPENAI_API_KEY=k", "ANTHROPIC_API_KEY=k", "GEMINI_API_KEY=k", "GEMINI_API_KEY_2=k", "GITHUB_TOKEN=t", "MY_API_KEY=mine",
		"EDITOR=code --wait", "PAGER=less", "TERM=xterm", "GIT_EDITOR=vim", "DUP=1", "DUP=2", "nonsense", "=x", "NUL=\x00", "TAIL_SECRET=1", "PRE_X_MID=1"}
	got := Environ(base, append(DefaultSecrets(), "*_SECRET", "*_X_*"))
	want := map[string]string{"PATH": "/bin", "GITHUB_TOKEN": "t", "MY_API_KEY": "mine", "DUP": "2",
		"EDITOR": "false", "PAGER": "cat", "GIT_PAGER": "cat", "TERM": "dumb", "GIT_EDITOR": "true", "GIT_TERMINAL_PROMPT": "0", "DEBIAN_FRONTEND": "noninteractive",
		"PYTHONIOENCODING": "utf-8", "LANG": "C.UTF-8"} // BUG-EN-03
	for name, value := range want {
		if lookup(got, name) != value {
			t.Errorf("%s is %q, want %q", name, lookup(got, name), value)
		}
	}
	seen := map[string]bool{}
	for _, e := range got {
		name, _, ok := strings.Cut(e, "=")
		if !ok || name == "" || seen[name] || strings.Contains(e, "\x00") {
			t.Errorf("entry %q", e)
		}
		seen[name] = true
	}
	for _, gone := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GEMINI_API_KEY_2", "TAIL_SECRET", "PRE_X_MID", "NUL", "nonsense"} {
		if seen[gone] {
			t.Errorf("%s is still there", gone)
		}
	}
}

// BUG-EN-03: what the user set about encodings stays.
func TestEnvironKeepsLocale(t *testing.T) {
	got := Environ([]string{"PYTHONIOENCODING=latin-1", "LC_CTYPE=de_DE.ISO8859-1"}, nil)
	if lookup(got, "PYTHONIOENCODING") != "latin-1" || slices.ContainsFunc(got, func(e string) bool { return strings.HasPrefix(e, "LANG=") }) {
		t.Errorf("got %q", got)
	}
	if got := Environ([]string{"LANG="}, nil); lookup(got, "LANG") != "C.UTF-8" && runtime.GOOS != "windows" {
		t.Errorf("an empty LANG became %q", lookup(got, "LANG"))
	}
}
