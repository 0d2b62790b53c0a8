//go:build unix

package policy

import (
	"os"
	"path/filepath"
	"testing"
)

// TestWorkTreeOfAnother: a .git that another user made, in a directory that is
// open to all, does not make that directory the workspace.
func TestWorkTreeOfAnother(t *testing.T) {
	w := newWorld(t)
	const other = 12345
	user := os.Geteuid() // who asks
	for _, name := range []string{"git", "linked"} {
		dir := filepath.Join(w.base, name, "mine")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.put(t, "git/.git/HEAD", "ref: x\n")
	link := filepath.Join(w.base, "linked", ".git")
	if err := os.Symlink(filepath.Join(w.ws, ".git"), link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"ws", "git", "linked"} {
		if !isWorkTreeOf(user, filepath.Join(w.base, dir)) {
			t.Errorf("%s is no work tree of its owner", dir)
		}
	}
	if user != 0 {
		// Somebody else asks: this user is the other one.
		for _, dir := range []string{"ws", "git", "linked"} {
			if isWorkTreeOf(user+1, filepath.Join(w.base, dir)) {
				t.Errorf("%s is a work tree for somebody else", dir)
			}
		}
		return
	}
	if !isWorkTreeOf(other, w.ws) {
		t.Error("what the administrator made is no work tree")
	}
	for _, name := range []string{filepath.Join(w.base, "git", ".git"), link} {
		if err := os.Lchown(name, other, other); err != nil {
			t.Skip(err)
		}
		dir := filepath.Dir(name)
		if isWorkTreeOf(0, dir) || isWorkTreeOf(other+1, dir) {
			t.Errorf("the .git of another user makes %s a work tree", dir)
		}
		mine := filepath.Join(dir, "mine")
		if got, err := Workspace(mine); err != nil || got != mine {
			t.Errorf("the workspace of %s is %s (%v)", mine, got, err)
		}
	}
}
