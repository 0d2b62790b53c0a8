package shell

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Where cd goes is where its path really leads, whatever the shell and the
// environment remember of links: that is how policy judged it.
func TestCdIsPhysical(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("cmd has no links to go back by")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(top, "ws", "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(top, "link")
	if err := os.Symlink(filepath.Join(top, "ws", "a", "b"), link); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PWD", link)
	t.Setenv("OLDPWD", top)
	t.Setenv("CDPATH", top)
	for _, sh := range [][]string{nil, {"/bin/sh", "-c"}} {
		r := New(Options{Shell: sh})
		for line, want := range map[string]string{
			"pwd":                             "ws/a/b",
			"cd ..; pwd":                      "ws/a",
			"cd ../../../link; cd ..; pwd":    "ws/a",
			"cd - 2>/dev/null || pwd":         "ws/a/b",
			"cd ws 2>/dev/null || pwd":        "ws/a/b",
			"(cd ../../../link/..; pwd); pwd": "ws/a\nws/a/b",
		} {
			res, err := r.Run(t.Context(), Command{Line: line, Dir: link})
			if err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(strings.TrimSpace(res.Output), top+"/", "")
			if got != want {
				t.Errorf("%v: %s: %q, want %q", sh, line, got, want)
			}
		}
	}
}

// Whatever the user's environment sets for git, a repository's fsmonitor does
// not run, and what only looks like a repository is none.
func TestGitSettings(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	dir, ran := t.TempDir(), filepath.Join(t.TempDir(), "ran")
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "user.name")
	t.Setenv("GIT_CONFIG_VALUE_0", "somebody")
	r := New(Options{})
	run := func(line string) string {
		t.Helper()
		res, err := r.Run(t.Context(), Command{Line: line, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return res.Output
	}
	out := run("git init -q . && git config core.fsmonitor 'touch " + ran + "; false' && git status -s && git config user.name")
	if _, err := os.Stat(ran); err == nil || !strings.Contains(out, "somebody") {
		t.Errorf("the repository's program ran, or the user's setting is lost: %s", out)
	}
	out = run("git init -q --bare sub && cd sub && git config core.worktree .. && git status -s")
	if !strings.Contains(out, "not in a git directory") && !strings.Contains(out, "bare repository") {
		t.Errorf("a bare repository among the files is used: %s", out)
	}
}
