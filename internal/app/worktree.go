package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"capstan/internal/builtin"
	"capstan/internal/session"
	"capstan/internal/worktree"
)

// worktrees is where the session is, once it can go into work trees.
type worktrees struct {
	repo *worktree.Repo // nil: not in a git work tree
	dir  string         // the working directory that it began in, links resolved

	mu   sync.Mutex
	tree *worktree.Tree // that the session is in; nil: where it began
	keep func(*worktree.Tree) error
}

// addWorktrees lets the model go into work trees, where there is a repository.
func (s *Session) addWorktrees() error {
	s.trees.keep = func(*worktree.Tree) error { return nil }
	if _, err := os.Lstat(filepath.Join(s.project, ".git")); err != nil || s.opt.Program {
		return nil
	}
	environ := s.opt.Environ
	if environ == nil {
		environ = os.Environ()
	}
	var err error
	if s.trees.dir, err = filepath.EvalSymlinks(s.opt.Dir); err != nil {
		return fmt.Errorf("finding the working directory: %w", err)
	}
	s.trees.repo = worktree.New(worktree.Options{Shell: s.shell, Environ: environ, Project: s.project, Root: filepath.Join(stateDir(s.opt.Env, s.home), "worktrees")})
	return nil
}

// worktreeControls are what the controls of work trees do; nil without a repository.
func (s *Session) worktreeControls() *builtin.WorktreeOptions {
	if s.trees.repo == nil {
		return nil
	}
	return &builtin.WorktreeOptions{Path: s.trees.repo.Path, Enter: s.enterWorktree, Exit: s.exitWorktree, Now: func() string {
		if t := s.inWorktree(); t != nil {
			return t.Path
		}
		return ""
	}}
}

// inWorktree returns the work tree that the session is in.
func (s *Session) inWorktree() *worktree.Tree {
	s.trees.mu.Lock()
	defer s.trees.mu.Unlock()
	return s.trees.tree
}

// where returns the working directory and the workspace's root of now.
func (s *Session) where() (dir, root string) {
	if t := s.inWorktree(); t != nil {
		return s.place.Dir(), t.Path
	}
	return s.opt.Dir, s.project
}

func (s *Session) workingDir() string {
	dir, _ := s.where()
	return dir
}

// settled refuses to move what others work in.
func (s *Session) settled() error {
	if n := s.team.Working(); n > 0 {
		return fmt.Errorf("%d subagents work or wait: wait for them with task_output, or stop them with task_stop", n)
	}
	return nil
}

func (s *Session) enterWorktree(ctx context.Context, path string) (string, error) {
	if t := s.inWorktree(); t != nil {
		return "", fmt.Errorf("the session is in the worktree %s already: exit_worktree first", t.Path)
	}
	if err := s.settled(); err != nil {
		return "", err
	}
	t, err := s.trees.repo.Add(ctx, path)
	if err != nil {
		return "", err
	}
	if err := s.moveTo(&t); err != nil {
		return "", fmt.Errorf("%w; the worktree %s on the branch %s is there", err, t.Path, t.Branch)
	}
	return fmt.Sprintf("You are in the new worktree %s, on the new branch %s at %.12s. The working directory is %s. What was not committed stayed behind.", t.Path, t.Branch, t.Base, s.place.Dir()), nil
}

func (s *Session) exitWorktree(ctx context.Context, remove, discard bool) (string, error) {
	t := s.inWorktree()
	if t == nil {
		return "", errors.New("the session is in none")
	}
	if err := s.settled(); err != nil {
		return "", err
	}
	if !remove {
		if err := s.moveTo(nil); err != nil {
			return "", err
		}
		return fmt.Sprintf("You are back in %s. The worktree %s and its branch %s are kept.", s.place.Dir(), t.Path, t.Branch), nil
	}
	for _, j := range s.jobs.List() {
		if j.Running {
			return "", fmt.Errorf("%s runs: job_stop it first", j.ID)
		}
	}
	l, err := s.trees.repo.Loss(ctx, *t)
	if err != nil {
		return "", fmt.Errorf("nothing was removed: %w", err)
	}
	if l.Any() && !discard {
		return "", fmt.Errorf("nothing was removed, for this would be lost:\n%s\nCommit or merge it, use the action keep, or ask the user whether to discard it (discard_changes)", lossText(l))
	}
	if err := s.moveTo(nil); err != nil {
		return "", err
	}
	if err := s.trees.repo.Remove(ctx, *t, l, discard); err != nil {
		return "", fmt.Errorf("you are back in %s, but the worktree %s was not removed: %w", s.place.Dir(), t.Path, err)
	}
	said := fmt.Sprintf("You are back in %s. The worktree %s and its branch %s are removed.", s.place.Dir(), t.Path, t.Branch)
	if l.Any() {
		said += " Discarded:\n" + lossText(l)
	}
	return said, nil
}

func lossText(l *worktree.Loss) string {
	var lines []string
	for _, f := range l.Files {
		lines = append(lines, "not committed: "+f)
	}
	for _, c := range l.Commits {
		lines = append(lines, "on no other branch: "+c)
	}
	if l.More {
		lines = append(lines, "and more")
	}
	return strings.Join(lines, "\n")
}

// moveTo moves the session into a work tree, or back with nil: rules, tools and
// the system's sandbox, in this order, so that no tool works where nothing was
// judged. The session's directory is the same below the one root as below the
// other, for the rules that are relative to it.
func (s *Session) moveTo(t *worktree.Tree) error {
	dir, root := s.trees.dir, s.project
	if t != nil {
		rel, err := filepath.Rel(s.project, s.trees.dir)
		if err != nil {
			return err
		}
		dir, root = filepath.Join(t.Path, rel), t.Path
		if err := os.MkdirAll(dir, 0o777); err != nil { // one that is not in git
			return err
		}
	}
	roots := append([]string{root}, s.added...)
	if err := s.rules.Move(dir, roots); err != nil {
		return err
	}
	s.place.Move(dir, roots)
	if s.box != nil {
		box := *s.box
		if t != nil {
			box.Writable = append(slices.DeleteFunc(slices.Clone(box.Writable), func(d string) bool { return d == s.project }), t.Path, t.Git)
		}
		s.shell.Confine(&box)
	}
	s.trees.mu.Lock()
	s.trees.tree = t
	keep := s.trees.keep
	s.trees.mu.Unlock()
	_ = keep(t) // a record that fails says so at its end
	return nil
}

// worktreeKey is the key under which a session's record keeps the work tree that it
// is in.
const worktreeKey = "worktree"

// returnToWorktree takes a resumed session back into its work tree, and keeps in
// the record where it goes from now on. It says what a person should know.
func (s *Session) returnToWorktree(ctx context.Context, state *session.State, log *session.Log) (note string) {
	if s.trees.repo == nil {
		return ""
	}
	defer func() {
		s.trees.mu.Lock()
		defer s.trees.mu.Unlock()
		s.trees.keep = func(t *worktree.Tree) error { return log.Set(worktreeKey, t) }
	}()
	var t *worktree.Tree
	if json.Unmarshal(state.Values[worktreeKey], &t) != nil || t == nil {
		return ""
	}
	err := s.trees.repo.Open(ctx, *t)
	if err == nil {
		err = s.moveTo(t)
	}
	if err != nil {
		return fmt.Sprintf("the session was in the worktree %s, which cannot be used (%v): it goes on in %s", t.Path, err, s.opt.Dir)
	}
	return fmt.Sprintf("the session goes on in the worktree %s, on the branch %s", t.Path, t.Branch)
}

// leftWorktree says that a work tree is kept beyond the end of the session.
func (s *Session) leftWorktree() {
	if t := s.inWorktree(); t != nil && s.opt.Notice != nil {
		s.opt.Notice(fmt.Sprintf("the worktree %s with the branch %s is kept: resuming the session goes on there, and git worktree remove takes it away", t.Path, t.Branch))
	}
}
