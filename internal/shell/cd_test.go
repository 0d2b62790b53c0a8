package shell

import (
	"os"
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
