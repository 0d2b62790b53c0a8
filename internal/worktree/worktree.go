// Package worktree makes and removes git work trees for a session, and says what
// a removal would lose. It moves nobody there, asks nobody, and is no git library:
// it runs the user's git, with the repository's hooks and file system monitor off.
// A repository whose own settings name filters is refused, for those are programs
// that a checkout runs.
package worktree

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"capstan/internal/shell"
)

// Options configure a Repo.
type Options struct {
	Shell   *shell.Runner
	Environ []string // of git; its GIT_ variables are left out
	Project string   // the top of the work tree that others are made from: absolute, links resolved
	// Root is the directory for work trees, absolute: each repository has a
	// directory of its own below it.
	Root string
}

// A Repo makes work trees of one repository. It is safe for concurrent use.
type Repo struct {
	opt  Options
	salt string
}

// New returns a Repo. Nothing is looked at or made yet.
func New(o Options) *Repo { return &Repo{opt: o, salt: rand.Text()} }

// A Tree is a work tree that was made here, as a session's record keeps it.
type Tree struct {
	Path   string `json:"path"`
	Branch string `json:"branch"` // made with it
	Base   string `json:"base"`   // the commit that it began at
	Git    string `json:"git"`    // the directory of the repository, which commands there write to
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckName says what is wrong with the name of a work tree; empty is one that
// Path chooses.
func CheckName(name string) error {
	if name == "" || nameForm.MatchString(name) && !strings.Contains(name, "..") && !strings.HasSuffix(name, ".") && !strings.HasSuffix(name, ".lock") {
		return nil
	}
	return errors.New("want up to 64 letters, digits, dots, dashes and underscores, as for a branch")
}

// Path returns where the work tree of a name would be: absolute, links resolved.
// Without a name it depends on the call alone, so that what is shown to a person
// is what is made.
func (r *Repo) Path(name, callID string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	if name == "" {
		name = "work-" + digest(r.salt + callID)[:8]
	}
	root, err := resolve(r.opt.Root)
	if err != nil {
		return "", fmt.Errorf("finding the directory for worktrees: %w", err)
	}
	return filepath.Join(root, filepath.Base(r.opt.Project)+"-"+digest(r.opt.Project)[:8], name), nil
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// resolve follows the links of a path of which the end may not exist.
func resolve(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if dir := filepath.Dir(path); errors.Is(err, os.ErrNotExist) && dir != path {
		if _, err := os.Lstat(path); err == nil {
			return "", fmt.Errorf("%s is a link that leads nowhere", path)
		}
		if dir, err = resolve(dir); err != nil {
			return "", err
		}
		return filepath.Join(dir, filepath.Base(path)), nil
	}
	return real, err
}

// Add makes the work tree at a path that Path returned, on a new branch at the
// commit that is checked out now. What is not committed stays where it is. When it
// fails, or ctx ends, nothing is left of it.
func (r *Repo) Add(ctx context.Context, path string) (t Tree, err error) {
	if err := r.filters(ctx); err != nil {
		return t, err
	}
	t = Tree{Path: path, Branch: "capstan/" + filepath.Base(path)}
	if t.Base, err = r.git(ctx, r.opt.Project, "rev-parse", "--verify", "-q", "HEAD^{commit}"); err != nil {
		return t, fmt.Errorf("there is no commit to begin at: %w", err)
	}
	if t.Git, err = r.git(ctx, r.opt.Project, "rev-parse", "--path-format=absolute", "--git-common-dir"); err != nil {
		return t, err
	}
	if _, err := os.Lstat(path); err == nil {
		return t, fmt.Errorf("%s exists already: choose another name", path)
	}
	if _, err := r.git(ctx, r.opt.Project, "rev-parse", "--verify", "-q", "refs/heads/"+t.Branch); err == nil {
		return t, fmt.Errorf("the branch %s exists already: choose another name", t.Branch)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return t, err
	}
	if _, err = r.git(ctx, r.opt.Project, "worktree", "add", "--no-track", "-b", t.Branch, "--", path, t.Base); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_, _ = r.git(ctx, r.opt.Project, "worktree", "remove", "--force", "--", path) // there may be none yet
		_, _ = r.git(ctx, r.opt.Project, "update-ref", "-d", "refs/heads/"+t.Branch, t.Base)
		return t, errors.Join(err, os.RemoveAll(path))
	}
	return t, nil
}

// filters refuses a repository whose settings name programs that a checkout or a
// status runs. Those of the user's own settings, such as git-lfs has, are theirs.
func (r *Repo) filters(ctx context.Context) error {
	out, err := r.git(ctx, r.opt.Project, "config", "--show-scope", "--name-only", "--includes", "--get-regexp", `^filter\.`)
	var end *exitError
	if errors.As(err, &end) && end.code == 1 { // none
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the repository's settings: %w", err)
	}
	for line := range strings.Lines(out) {
		if scope, key, _ := strings.Cut(strings.TrimSpace(line), "\t"); scope != "global" && scope != "system" {
			return fmt.Errorf("the repository's own settings have %s, a program that a checkout would run: the user can move it into their own settings (git config --global)", key)
		}
	}
	return nil
}

// Open says whether a work tree of a record is still there, and one of ours.
func (r *Repo) Open(ctx context.Context, t Tree) error {
	path, err := r.Path(filepath.Base(t.Path), "")
	if err != nil || path != t.Path || t.Branch != "capstan/"+filepath.Base(path) {
		return errors.New("it is none that was made for this repository")
	}
	top, err := r.git(ctx, path, "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir")
	if err != nil {
		return err
	}
	if top != path+"\n"+t.Git {
		return errors.New("it is no worktree of this repository any more")
	}
	return nil
}

// A Loss is what the removal of a work tree would lose. Files that git ignores are
// not part of it.
type Loss struct {
	Files   []string // changed or new, as `git status` prints them
	Commits []string // that no other branch, remote branch or tag has
	More    bool     // there is more than is listed here
	tip     string   // of the branch
}

// Any says whether anything would be lost.
func (l *Loss) Any() bool { return len(l.Files)+len(l.Commits) > 0 }

// maxListed bounds the lists of a Loss.
const maxListed = 20

func (l *Loss) list(out string) []string {
	lines := slices.Collect(strings.Lines(out))
	if len(lines) > maxListed {
		lines, l.More = lines[:maxListed], true
	}
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

// Loss looks at what the removal of a work tree would lose.
func (r *Repo) Loss(ctx context.Context, t Tree) (*Loss, error) {
	if err := r.filters(ctx); err != nil { // somebody may have added one
		return nil, err
	}
	l := &Loss{}
	at, from := t.Path, []string{"HEAD"}
	if _, err := os.Lstat(t.Path); errors.Is(err, os.ErrNotExist) { // somebody removed it
		at, from = r.opt.Project, nil
	} else {
		out, err := r.git(ctx, at, "status", "--porcelain", "--untracked-files=all", "--ignore-submodules=none")
		if err != nil {
			return nil, fmt.Errorf("looking for changes: %w", err)
		}
		l.Files = l.list(out)
	}
	if tip, err := r.git(ctx, at, "rev-parse", "--verify", "-q", "refs/heads/"+t.Branch); err == nil {
		l.tip, from = tip, append(from, tip)
	}
	if from == nil {
		return l, nil
	}
	args := append([]string{"rev-list", "--oneline", "--max-count=" + fmt.Sprint(maxListed+1)}, from...)
	out, err := r.git(ctx, at, append(args, "--not", t.Base, "--exclude="+t.Branch, "--branches", "--remotes", "--tags")...)
	if err != nil {
		return nil, fmt.Errorf("looking for commits: %w", err)
	}
	l.Commits = l.list(out)
	return l, nil
}

// Remove removes a work tree and its branch. Without force it fails, and removes
// nothing, when something would be lost; l is what Loss said of it, and commits
// that were made since stay on the branch.
func (r *Repo) Remove(ctx context.Context, t Tree, l *Loss, force bool) error {
	if l.Any() && !force {
		return errors.New("it has changes or commits that would be lost")
	}
	args := []string{"worktree", "remove"}
	if force {
		args = append(args, "--force")
	}
	if _, err := r.git(ctx, r.opt.Project, append(args, "--", t.Path)...); err != nil {
		return err
	}
	if l.tip == "" {
		return nil
	}
	if _, err := r.git(ctx, r.opt.Project, "update-ref", "-d", "refs/heads/"+t.Branch, l.tip); err != nil {
		return fmt.Errorf("the worktree is removed, its branch is not: %w", err)
	}
	return nil
}
