package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"capstan/internal/tool"
)

// The limits of project memory.
const (
	maxMemoryFile  = 32 << 10 // bytes of one file
	maxMemory      = 96 << 10 // bytes of all files
	maxMemoryFiles = 64       // files, imported ones too, which share what is left of it
	maxImports     = 1000     // references to files in all of them, shared likewise
	maxImportDepth = 5        // imports below one another
	maxWarnings    = 20       // of one LoadMemory
)

// memoryNames are the files of one directory, in the order in which they are
// shown: our own has the last word.
var memoryNames = []string{"AGENTS.md", "QWEN.md", "CAPSTAN.md"}

// A MemoryFile is a file of conventions that belongs into the prompt (S3-050,
// S3-052).
type MemoryFile struct {
	Path string // absolute, links resolved
	User bool   // of the user's own, or imported by one that is
	// ImportedBy is the path of the file whose @path led here; empty for one
	// that was found by its name.
	ImportedBy string
	Text       string
	// Cut says that Text is not the whole file; its last line says so too.
	Cut bool
}

// MemoryOptions say where memory lies.
type MemoryOptions struct {
	// Home is the user's home directory, in whose .capstan the user's own
	// files lie. Empty means that there is none.
	Home string
	// Root is the workspace's root and Dir the working directory in it; both
	// absolute. A Dir that is not in Root is looked at alone.
	Root, Dir string
	// Hidden, when not nil, says which files (absolute, links resolved) a rule
	// forbids to read.
	Hidden func(path string) bool
}

// LoadMemory reads the files of conventions: the user's, then those of each
// directory from the workspace's root down to the working directory, so that
// the nearest comes last. A file comes after those that it imports, and once
// only. It looks at no other directory, starts nothing and waits for nothing.
//
// What cannot be used is left out with a warning that names it and says why:
// memory is help, and its absence ends no run. Memory is text for the model and
// grants nothing, so a folder's is read whether or not the folder is trusted.
func LoadMemory(o MemoryOptions) ([]MemoryFile, []string) {
	l := &memoryLoader{hidden: o.Hidden, seen: map[string]bool{}}
	if o.Home != "" {
		l.home = o.Home
		l.user = filepath.Join(o.Home, ".capstan")
		if real, err := filepath.EvalSymlinks(l.user); err == nil {
			l.user = real
		}
	}
	dirs := l.between(o.Root, o.Dir)
	var named []memoryRef
	if l.user != "" {
		named = l.named(l.user, true)
	}
	own := len(named)
	for _, d := range dirs {
		named = append(named, l.named(d, false)...)
	}
	if n := len(named) - maxMemoryFiles; n > 0 { // of more directories than anybody works in
		l.warn("%s and what follows: not read: project memory is limited to %d files, the nearest", &named[own], maxMemoryFiles)
		named = slices.Delete(named, own, own+n)
	}
	l.all(named)
	l.share()
	if n := len(l.warnings) - maxWarnings; n > 0 {
		l.warnings = append(l.warnings[:maxWarnings], fmt.Sprintf("project memory: %d more warnings", n))
	}
	return l.files, l.warnings
}

type memoryLoader struct {
	home, user, root string // root and user with links resolved
	hidden           func(string) bool
	seen             map[string]bool
	read, refs       int
	// How far read and refs may go with the file that is being read for its
	// name, and whether a warning said that they would have gone further.
	mostFiles, mostRefs int
	told                bool
	files               []MemoryFile
	warnings            []string
}

func (l *memoryLoader) warn(format string, a ...any) {
	l.warnings = append(l.warnings, fmt.Sprintf(format, a...))
}

// enough warns of a limit, once for each file that is read for its name.
func (l *memoryLoader) enough(format string, a ...any) {
	if !l.told {
		l.warn(format, a...)
	}
	l.told = true
}

// between returns the directories from the root down to dir.
func (l *memoryLoader) between(root, dir string) []string {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		l.warn("reading project memory: the working directory: %v", plainErr(err))
		return nil
	}
	l.root = dir
	if root, err := filepath.EvalSymlinks(root); err == nil && tool.Within(root, dir) {
		l.root = root
	}
	dirs := []string{dir}
	for at := dir; at != l.root && at != filepath.Dir(at); {
		at = filepath.Dir(at)
		dirs = append(dirs, at)
	}
	slices.Reverse(dirs)
	return dirs
}

// named returns the files of a directory that are read for their names.
func (l *memoryLoader) named(dir string, user bool) []memoryRef {
	var found []memoryRef
	for _, name := range memoryNames {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		found = append(found, memoryRef{path: path, user: user})
	}
	return found
}

// all reads these files with what they import. The limits leave room for each
// of them, and what they leave to imports is shared: a file gets what those
// after it, which are nearer, can do without, and what those before it left.
func (l *memoryLoader) all(named []memoryRef) {
	for i, r := range named {
		after := len(named) - i - 1
		l.mostFiles = l.read + 1 + (maxMemoryFiles-l.read-1-after)/(after+1)
		l.mostRefs = l.refs + (maxImports-l.refs)/(after+1)
		l.told = false
		l.file(r)
	}
}

// A memoryRef is a file that is wanted, and by whom.
type memoryRef struct {
	path  string
	user  bool   // asked for by a file of the user's
	by    string // the file that imports it; empty when its name did
	where string // as a warning names it; empty means path
	depth int
	// loose says that the reference may be none: text can hold an @ for other
	// reasons, so what names no file is passed over.
	loose bool
}

func (r *memoryRef) String() string {
	if r.where != "" {
		return r.where
	}
	return showPath(r.path)
}

// file reads one file and, before it, what it imports.
func (l *memoryLoader) file(r memoryRef) {
	real, err := l.find(&r)
	switch {
	case err != nil:
		l.warn("%s: not read: %v", &r, plainErr(err))
		return
	case real == "" || l.seen[real]:
		return
	}
	if l.read == l.mostFiles {
		l.enough("%s and what follows: not read: project memory is limited to %d files", &r, maxMemoryFiles)
		return
	}
	l.read++
	l.seen[real] = true
	text, cut, warning, err := readMemory(real)
	switch {
	case err != nil && r.loose && errors.Is(err, errNoFile):
		return
	case err != nil:
		l.warn("%s: not read: %v", &r, plainErr(err))
		return
	case warning != "":
		l.warn("%s: %s", &r, warning)
	}
	l.imports(&r, real, text)
	if text != "" {
		l.files = append(l.files, MemoryFile{Path: real, User: r.user, ImportedBy: r.by, Text: text, Cut: cut})
	}
}

// imports reads what a text refers to.
func (l *memoryLoader) imports(r *memoryRef, real, text string) {
	for _, i := range findImports(text) {
		if l.refs == l.mostRefs {
			l.enough("%s, line %d, and what follows: not read: project memory is limited to %d references", showPath(real), i.line, maxImports)
			return
		}
		l.refs++
		to := memoryRef{user: r.user, by: real, depth: r.depth + 1, loose: !i.explicit(),
			where: fmt.Sprintf("%s, line %d: @%s", r, i.line, showPath(i.path))}
		if r.where != "" { // do not repeat the whole way here
			to.where = fmt.Sprintf("%s, line %d: @%s", showPath(real), i.line, showPath(i.path))
		}
		rest, home := strings.CutPrefix(i.path, "~/")
		switch {
		case home && l.home == "":
			l.warn("%s: not read: there is no home directory", &to)
			continue
		case home:
			to.path = filepath.Join(l.home, rest)
		case filepath.IsAbs(i.path):
			to.path = filepath.Clean(i.path)
		default:
			to.path = filepath.Join(filepath.Dir(r.path), i.path)
		}
		l.file(to)
	}
}

var (
	errOutside = errors.New("it lies outside of the workspace and of ~/.capstan")
	errPrivate = errors.New("it lies outside of the workspace, and only your own files may import from ~/.capstan")
	errSecret  = errors.New("files of this name hold secrets, and memory is sent to the model's provider")
	errDeep    = fmt.Errorf("imports go at most %d deep", maxImportDepth)
)

// find returns where a file really lies, or "" when there is none and none was
// meant. Nothing outside of what may be read is even looked at.
func (l *memoryLoader) find(r *memoryRef) (string, error) {
	if r.by != "" && !l.may(r.path, r) {
		if r.loose {
			return "", nil
		}
		return "", l.outside(r)
	}
	real, err := filepath.EvalSymlinks(r.path)
	switch {
	case err != nil && r.loose:
		return "", nil
	case err != nil:
		return "", err
	case !l.may(real, r):
		return "", l.outside(r)
	case secretName(l.rel(r.path)) || secretName(l.rel(real)):
		return "", errSecret
	case l.hidden != nil && l.hidden(real):
		return "", errors.New("a rule forbids to read it")
	case r.depth > maxImportDepth && !l.seen[real]:
		return "", errDeep
	}
	return real, nil
}

// outside says why a path is refused.
func (l *memoryLoader) outside(r *memoryRef) error {
	if r.user {
		return errOutside
	}
	return errPrivate
}

// may says whether memory may come from a path: the workspace, and for what the
// user wrote the user's own folder too, of which an import gets documents only,
// for its settings may hold keys. A repository has no way in there: it would
// choose what of the user's is sent to a provider. A file that the user keeps in
// that folder under one of our names may be a link to wherever the user wants it
// to be.
func (l *memoryLoader) may(path string, r *memoryRef) bool {
	if r.by == "" && r.user {
		return true
	}
	if tool.Within(l.root, path) && !unreal(path) {
		return true
	}
	inUser := r.user && (tool.Within(l.user, path) || l.home != "" && tool.Within(filepath.Join(l.home, ".capstan"), path))
	return inUser && document(path)
}

// rel returns a path as its folder sees it: what the folder itself is called
// makes nothing in it a secret.
func (l *memoryLoader) rel(path string) string {
	for _, dir := range []string{l.root, l.user} {
		if rel, err := filepath.Rel(dir, path); err == nil && tool.Within(dir, path) {
			return rel
		}
	}
	return filepath.Base(path)
}

// unreal says whether a path leads to what only looks like files: reading it
// can wait.
func unreal(path string) bool {
	return slices.ContainsFunc([]string{"/proc", "/sys", "/dev"}, func(dir string) bool { return tool.Within(dir, path) })
}

// share cuts the texts so that together they stay within maxMemory. The user's
// own come first, so that no repository can push them out; then the nearest.
func (l *memoryLoader) share() {
	left := maxMemory
	give := func(i int) {
		f := &l.files[i]
		if n := len(f.Text); n > left {
			l.warn("%s: cut, since project memory is limited to %d KiB", showPath(f.Path), maxMemory>>10)
			f.Text, f.Cut = cutMemory(f.Text, max(left, 0)), true
		}
		left -= len(f.Text)
	}
	for i := range l.files {
		if l.files[i].User {
			give(i)
		}
	}
	for i := len(l.files) - 1; i >= 0; i-- {
		if !l.files[i].User {
			give(i)
		}
	}
}

// plainErr leaves the path out of an error, which the message names already.
func plainErr(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		err = p.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("there is no such file")
	}
	return err
}
