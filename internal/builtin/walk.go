package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Names of the ignore files, and of the directories in which version control
// keeps what is not the user's.
const (
	gitIgnore = ".gitignore"
	ownIgnore = ".capstanignore" // has the last word over every .gitignore
)

func isVCS(name string) bool {
	return name == ".git" || name == ".hg" || name == ".svn" || name == ".jj" || name == ".bzr"
}

// A level is what the ignore files of one directory say; its parent's count
// where they say nothing.
type level struct {
	parent   *level
	base     string // the directory, with slashes, absolute
	git, own []rule
}

// ignored says whether a path is hidden, given that its directory is not.
// Within one kind of file the deepest one that matches decides, and every
// .capstanignore goes before any .gitignore (BUG-SI-06).
func (l *level) ignored(path string, dir bool) bool {
	for _, own := range []bool{true, false} {
		for at := l; at != nil; at = at.parent {
			rules := at.git
			if own {
				rules = at.own
			}
			for i := range rules {
				if rules[i].match(path[len(at.base):], dir) {
					return !rules[i].negate
				}
			}
		}
	}
	return false
}

// A walk goes through a directory tree in the order of its names, without what
// is ignored and without following links.
type walk struct {
	f   *files
	ctx context.Context // ends the walk; what was found until then stays
	// enter says whether a directory may hold something of interest; nil
	// means all do. visit gets every entry that is not ignored. Paths are
	// absolute.
	enter func(path string) bool
	visit func(path string, d fs.DirEntry)

	ignored    int // entries left out by ignore files; directories count once
	denied     int // entries left out by Options.Hidden
	unreadable int
}

// run walks the tree under root. Naming a root overrides what ignore files say
// about the root itself. An error is about the root, or is the context's.
func (w *walk) run(root string) error {
	return w.dir(root, w.above(root))
}

// above collects the ignore files that count for a root: those from the top of
// its git work tree down, or of the workspace, or its own alone.
func (w *walk) above(root string) *level {
	top, exclude := w.top(root)
	var at *level
	if exclude != nil {
		at = &level{base: slashed(top), git: exclude}
	}
	if top == root {
		return at
	}
	dirs := []string{}
	for d := filepath.Dir(root); ; d = filepath.Dir(d) {
		dirs = append(dirs, d)
		if d == top || d == filepath.Dir(d) {
			break
		}
	}
	for _, d := range slices.Backward(dirs) {
		at = w.level(at, d, true, true)
	}
	return at
}

// top returns where ignore files begin to count, and the rules of
// .git/info/exclude.
func (w *walk) top(root string) (string, []rule) {
	for d := root; ; d = filepath.Dir(d) {
		if fi, err := os.Stat(filepath.Join(d, ".git")); err == nil {
			exclude, err := follow(filepath.Join(w.gitCommon(d, fi), "info", "exclude"))
			if err != nil {
				return d, nil
			}
			return d, w.rules(exclude)
		}
		if d == filepath.Dir(d) {
			break
		}
	}
	for _, r := range w.f.place.Roots() {
		if r = filepath.Clean(r); strings.HasPrefix(slashed(root), slashed(r)) {
			return r, nil
		}
	}
	return root, nil
}

// gitCommon returns the git directory that all work trees of a repository
// share. In a linked work tree `.git` is a file that names its own, which names
// the common one.
func (w *walk) gitCommon(dir string, fi fs.FileInfo) string {
	at := filepath.Join(dir, ".git")
	if fi.IsDir() {
		return at
	}
	own, ok := w.named(at, "gitdir:", dir)
	if !ok {
		return at
	}
	if common, ok := w.named(filepath.Join(own, "commondir"), "", own); ok {
		return common
	}
	return own
}

// named returns the directory that a file of git names, relative to dir.
func (w *walk) named(file, prefix, dir string) (string, bool) {
	h, err := w.f.open(file)
	if err != nil {
		return "", false
	}
	defer func() { _ = h.Close() }() // only read
	b, err := slurp(w.ctx, h, 4096)
	name, ok := strings.CutPrefix(string(b), prefix)
	if name = strings.TrimSpace(name); err != nil || !ok || name == "" {
		return "", false
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	return name, true
}

func (w *walk) level(parent *level, dir string, git, own bool) *level {
	l := &level{parent: parent, base: slashed(dir)}
	if git {
		l.git = w.rules(filepath.Join(dir, gitIgnore))
	}
	if own {
		l.own = w.rules(filepath.Join(dir, ownIgnore))
	}
	if l.git == nil && l.own == nil {
		return parent
	}
	return l
}

func (w *walk) rules(file string) []rule {
	h, err := w.f.open(file)
	if err != nil {
		return nil
	}
	defer func() { _ = h.Close() }() // only read
	b, err := slurp(w.ctx, h, maxIgnoreFile)
	if err != nil {
		return nil
	}
	return parseRules(b)
}

func (w *walk) dir(dir string, at *level) error {
	entries, err := w.f.readDir(w.ctx, dir)
	if err != nil {
		return err
	}
	var git, own bool
	for _, e := range entries {
		git = git || e.Name() == gitIgnore
		own = own || e.Name() == ownIgnore
	}
	if git || own {
		at = w.level(at, dir, git, own)
	}
	base := slashed(dir)
	for _, e := range entries {
		path := base + e.Name()
		if isVCS(e.Name()) {
			continue
		}
		if at.ignored(path, e.IsDir()) {
			w.ignored++
			continue
		}
		if w.f.hide != nil && w.f.hide(filepath.FromSlash(path)) {
			w.denied++
			continue
		}
		w.visit(filepath.FromSlash(path), e)
		if !e.IsDir() || w.enter != nil && !w.enter(filepath.FromSlash(path)) {
			continue
		}
		switch err := w.dir(filepath.FromSlash(path), at); {
		case w.ctx.Err() != nil:
			return context.Cause(w.ctx)
		case err != nil:
			w.unreadable++
		}
	}
	return w.ctx.Err()
}

// slashed is a directory with slashes, ready to be put before a name.
func slashed(dir string) string {
	return strings.TrimSuffix(filepath.ToSlash(dir), "/") + "/"
}

// readDir lists a directory by name. The context is looked at all along, since
// a directory can hold millions of entries (BUG-SI-05).
func (f *files) readDir(ctx context.Context, dir string) ([]fs.DirEntry, error) {
	d, err := f.openDir(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }() // only read
	var all []fs.DirEntry
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		some, err := d.ReadDir(1024)
		all = append(all, some...)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", dir, err)
		}
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all, nil
}

// openDir opens the directory at a resolved path, following no link.
func (f *files) openDir(path string) (*os.File, error) {
	if !f.portable {
		if d, err := openDirNoLinks(path); !errors.Is(err, errors.ErrUnsupported) {
			return d, err
		}
	}
	before, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !before.IsDir() {
		return nil, &notDir{path}
	}
	d, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	after, err := d.Stat()
	now, err2 := follow(path)
	if err != nil || err2 != nil || now != path || !os.SameFile(before, after) {
		_ = d.Close() // only read
		return nil, fmt.Errorf("opening %s: %w", path, errMoved)
	}
	return d, nil
}

type notDir struct{ path string }

func (e *notDir) Error() string { return e.path + " is not a directory" }

// searchTime is how long one search, or the read of a huge file, may look
// around. What it has found by then is its answer, with a notice (BUG-SI-01, BUG-SI-03).
const searchTime = 20 * time.Second

var errSearchTime = errors.New("the search took too long")

// budget bounds a search in time.
func (f *files) budget(ctx context.Context) (context.Context, context.CancelFunc) {
	d := f.searchTime
	if d == 0 {
		d = searchTime
	}
	return context.WithTimeoutCause(ctx, d, errSearchTime)
}

// notices says what a search did not look at.
func (w *walk) notices(err error) []string {
	var out []string
	if errors.Is(err, errSearchTime) {
		out = append(out, "the search was ended after "+searchTime.String()+", so there may be more: search a smaller directory")
	}
	if w.denied > 0 {
		out = append(out, count(w.denied, "path")+" left out, which a rule forbids to read")
	}
	if w.unreadable > 0 {
		out = append(out, count(w.unreadable, "directory or file")+" could not be read")
	}
	return out
}

// isBinary says whether the beginning of a file is not text, as git and grep
// see it.
func isBinary(head []byte) bool {
	return bytes.IndexByte(head[:min(len(head), sniffLen)], 0) >= 0
}
