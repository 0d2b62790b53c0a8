package worktree_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"capstan/internal/sandbox/sandboxtest"
	"capstan/internal/shell"
	"capstan/internal/worktree"
)

func TestMain(m *testing.M) { sandboxtest.Main(m) }

// A world is a repository with one commit, and a Repo of it.
type world struct {
	*testing.T
	dir, root string
	repo      *worktree.Repo
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, dir: filepath.Join(base, "repo"), root: filepath.Join(base, "state", "worktrees")}
	if err := os.Mkdir(w.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w.git(w.dir, "init", "-q", "-b", "main")
	w.write("repo/a", "one\n")
	w.write("repo/.gitignore", "*.o\n")
	w.git(w.dir, "add", ".")
	w.git(w.dir, "commit", "-qm", "first")
	w.repo = worktree.New(worktree.Options{Shell: shell.New(shell.Options{}), Environ: os.Environ(), Project: w.dir, Root: w.root})
	return w
}

func (w *world) write(name, text string) {
	w.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(w.dir), name)
	}
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		w.Fatal(err)
	}
}

func (w *world) git(dir string, args ...string) string {
	w.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x@x.test"}, args...)...).CombinedOutput()
	if err != nil {
		w.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w *world) add(name string) worktree.Tree {
	w.Helper()
	path, err := w.repo.Path(name, "call_1")
	if err != nil {
		w.Fatal(err)
	}
	t, err := w.repo.Add(w.Context(), path)
	if err != nil {
		w.Fatal(err)
	}
	return t
}

// S0-061
func TestAddAndRemove(t *testing.T) {
	w := newWorld(t)
	w.write("repo/a", "not committed\n")
	tree := w.add("try")
	want := worktree.Tree{Path: tree.Path, Branch: "capstan/try", Base: w.git(w.dir, "rev-parse", "HEAD"), Git: filepath.Join(w.dir, ".git")}
	if diff := cmp.Diff(want, tree); diff != "" || !strings.HasPrefix(tree.Path, w.root+"/repo-") || filepath.Base(tree.Path) != "try" {
		t.Errorf("%s %s", tree.Path, diff)
	}
	if b, err := os.ReadFile(filepath.Join(tree.Path, "a")); err != nil || string(b) != "one\n" {
		t.Errorf("%q, %v", b, err)
	}
	if err := w.repo.Open(t.Context(), tree); err != nil {
		t.Error(err)
	}
	if _, err := w.repo.Add(t.Context(), tree.Path); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("the same again: %v", err)
	}
	w.write(filepath.Join(tree.Path, "x.o"), "ignored") // goes, as git has it
	l, err := w.repo.Loss(t.Context(), tree)
	if err != nil || l.Any() {
		t.Fatalf("%+v, %v", l, err)
	}
	if err := w.repo.Remove(t.Context(), tree, l, false); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(tree.Path); !os.IsNotExist(err) || w.git(w.dir, "branch", "--list", "capstan/*") != "" {
		t.Error("something is left")
	}
	if err := w.repo.Open(t.Context(), tree); err == nil {
		t.Error("it opens a worktree that is gone")
	}
	if one, _ := w.repo.Path("", "a"); one == "" {
		t.Error("no name, no path")
	} else if again, _ := w.repo.Path("", "a"); again != one {
		t.Error("another path for the same call")
	}
	for _, bad := range []string{"..", "a/b", "-x", "x.lock", "x.", "a..b", strings.Repeat("x", 65), "a b", "ü"} {
		if _, err := w.repo.Path(bad, ""); err == nil {
			t.Errorf("the name %q is taken", bad)
		}
	}
}

// Nothing is removed that would be lost, unless it is forced.
func TestLoss(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct {
		do    func(tree string)
		files []string
		more  int // commits
	}{
		"changed":   {func(tree string) { w.write(filepath.Join(tree, "a"), "two") }, []string{"M a"}, 0},
		"new":       {func(tree string) { w.write(filepath.Join(tree, "b"), "two") }, []string{"?? b"}, 0},
		"committed": {func(tree string) { w.git(tree, "commit", "-q", "--allow-empty", "-m", "second") }, nil, 1},
		"detached": {func(tree string) {
			w.git(tree, "checkout", "-q", "--detach")
			w.git(tree, "commit", "-q", "--allow-empty", "-m", "second")
		}, nil, 1},
		"on another branch": {func(tree string) {
			w.git(tree, "commit", "-q", "--allow-empty", "-m", "kept")
			w.git(tree, "branch", "kept")
		}, nil, 0},
		"tagged": {func(tree string) {
			w.git(tree, "commit", "-q", "--allow-empty", "-m", "kept2")
			w.git(tree, "tag", "kept2")
		}, nil, 0},
		"gone": {func(tree string) { w.git(tree, "commit", "-q", "--allow-empty", "-m", "gone"); _ = os.RemoveAll(tree) }, nil, 1},
	} {
		tree := w.add(strings.ReplaceAll(name, " ", "-"))
		tc.do(tree.Path)
		l, err := w.repo.Loss(t.Context(), tree)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(tc.files, l.Files, cmpopts.EquateEmpty()); diff != "" || len(l.Commits) != tc.more {
			t.Errorf("%s: %s, commits %q", name, diff, l.Commits)
		}
		if err := w.repo.Remove(t.Context(), tree, l, false); (err != nil) != l.Any() {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && l.Any() {
			if w.git(w.dir, "branch", "--list", tree.Branch) == "" {
				t.Errorf("%s: the branch was removed", name)
			}
			if err := w.repo.Remove(t.Context(), tree, l, true); err != nil {
				t.Errorf("%s, forced: %v", name, err)
			}
		}
		if _, err := os.Lstat(tree.Path); !os.IsNotExist(err) || w.git(w.dir, "branch", "--list", tree.Branch) != "" {
			t.Errorf("%s: something is left", name)
		}
	}
	// A change that comes after the look is not lost.
	tree := w.add("late")
	l, err := w.repo.Loss(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	w.write(filepath.Join(tree.Path, "late"), "x")
	if err := w.repo.Remove(t.Context(), tree, l, false); err == nil {
		t.Error("a late file was removed")
	}
}

// Nothing that the repository names is run.
func TestRunsNothing(t *testing.T) {
	w := newWorld(t)
	mark := filepath.Join(filepath.Dir(w.dir), "ran")
	for _, hook := range []string{"post-checkout", "post-index-change", "reference-transaction", "fsmonitor"} {
		w.write("repo/.git/hooks/"+hook, "#!/bin/sh\ntouch "+mark+"\n")
	}
	w.git(w.dir, "config", "core.hooksPath", ".git/hooks")
	w.git(w.dir, "config", "core.fsmonitor", filepath.Join(w.dir, ".git/hooks/fsmonitor"))
	if err := os.RemoveAll(mark); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_DIR", "/nowhere")
	tree := w.add("hooked")
	l, err := w.repo.Loss(t.Context(), tree)
	if err == nil {
		err = w.repo.Remove(t.Context(), tree, l, false)
	}
	if _, ran := os.Stat(mark); err != nil || ran == nil {
		t.Errorf("%v; a hook ran: %v", err, ran == nil)
	}
	if err := os.Unsetenv("GIT_DIR"); err != nil {
		t.Fatal(err)
	}
	w.git(w.dir, "config", "filter.x.smudge", "touch "+mark)
	path, _ := w.repo.Path("filtered", "")
	if _, err := w.repo.Add(t.Context(), path); err == nil || !strings.Contains(err.Error(), "filter.x.smudge") {
		t.Errorf("with a filter: %v", err)
	}
	w.git(w.dir, "config", "--unset", "filter.x.smudge")
	w.git(w.dir, "config", "--global", "filter.x.smudge", "cat") // the user's own
	w.add("filtered")
}

// What fails leaves nothing.
func TestAddFails(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path, _ := w.repo.Path("x", "")
	if _, err := w.repo.Add(ctx, path); err == nil {
		t.Error("cancelled, and made all the same")
	}
	w.git(w.dir, "branch", "capstan/taken")
	taken, _ := w.repo.Path("taken", "")
	if _, err := w.repo.Add(t.Context(), taken); err == nil || !strings.Contains(err.Error(), "capstan/taken exists") {
		t.Errorf("a taken branch: %v", err)
	}
	for _, p := range []string{path, taken} {
		if _, err := os.Lstat(p); !os.IsNotExist(err) {
			t.Errorf("%s is left", p)
		}
	}
	if got := w.git(w.dir, "branch", "--list", "capstan/*"); got != "capstan/taken" {
		t.Errorf("branches: %s", got)
	}
	empty := filepath.Join(filepath.Dir(w.dir), "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	w.git(empty, "init", "-q")
	r := worktree.New(worktree.Options{Shell: shell.New(shell.Options{}), Environ: os.Environ(), Project: empty, Root: w.root})
	path, _ = r.Path("x", "")
	if _, err := r.Add(t.Context(), path); err == nil || !strings.Contains(err.Error(), "there is no commit") {
		t.Errorf("an empty repository: %v", err)
	}
}
