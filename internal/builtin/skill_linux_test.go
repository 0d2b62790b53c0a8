package builtin

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A named pipe in place of a SKILL.md is not waited for.
func TestSkillPipe(t *testing.T) {
	s := newShelf(t, map[string]string{"ws/.agents/skills/a/SKILL.md": skillFileText("a", "Fine.", "x")})
	path := s.path("ws/.agents/skills/b/SKILL.md")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	s.want(`
a (ws/.agents/skills/a/SKILL.md): Fine.
! skills: ws/.agents/skills/b/SKILL.md is not used: ws/.agents/skills/b/SKILL.md is a named pipe, not a file
`)
}
