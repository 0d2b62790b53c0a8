package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"capstan/internal/tool"
)

const (
	maxDefinitionFile = 64 << 10 // bytes of one file
	maxDefinitions    = 200      // of one session
	maxAgentEntries   = 2000     // that are looked at in one folder
	maxAgentDepth     = 3        // of folders within it
	maxAgentWarnings  = 20
)

// DefinitionOptions say where definitions lie.
type DefinitionOptions struct {
	Home string // the user's home directory; empty when there is none
	Root string // the workspace's root
	// Trusted says that the workspace's own are used.
	Trusted bool
}

// agentFolders are the folders with definitions, in a workspace and in a home.
// The first of two definitions of one name counts, the workspace's first.
var agentFolders = []string{".capstan", ".claude", ".qwen"}

// A definitionDir is one folder that is looked into.
type definitionDir struct {
	path, within string // within: links may not lead out of it; empty: they may
	project      bool
}

func definitionDirs(o DefinitionOptions) (dirs []definitionDir) {
	add := func(base, within string, project bool) {
		for _, f := range agentFolders {
			dirs = append(dirs, definitionDir{filepath.Join(base, f, "agents"), within, project})
		}
	}
	if o.Root != "" && o.Trusted {
		add(o.Root, o.Root, true)
	}
	if o.Home != "" {
		add(o.Home, "", false)
	}
	return dirs
}

// LoadDefinitions reads the definitions of agents. What cannot be used costs only
// itself, with a warning. In a workspace that is not trusted its own are not
// read: a warning says so when there are any.
func LoadDefinitions(o DefinitionOptions) (*Definitions, []string) {
	if resolvedPath(o.Root) == resolvedPath(o.Home) { // its agents are the user's own
		o.Root = ""
	}
	l := &definitionLoader{byName: map[string]*Definition{}, seen: map[string]bool{}}
	for _, d := range definitionDirs(o) {
		l.directory(d)
	}
	if !o.Trusted && o.Root != "" {
		l.unused(o)
	}
	for _, x := range builtIn() {
		if l.byName[x.Name] == nil {
			l.byName[x.Name] = x
		}
	}
	d := &Definitions{}
	for _, x := range l.byName {
		d.list = append(d.list, x)
	}
	slices.SortFunc(d.list, func(a, b *Definition) int { return strings.Compare(a.Name, b.Name) })
	for _, x := range d.list {
		if _, err := d.whole(x); err != nil {
			l.warn("agents: %s cannot be run: %v", shownPath(x.Path), err)
		}
	}
	if l.more > 0 {
		l.warnings = append(l.warnings, fmt.Sprintf("agents: %d more warnings", l.more))
	}
	return d, l.warnings
}

type definitionLoader struct {
	byName   map[string]*Definition
	seen     map[string]bool // files, links resolved
	read     int
	warnings []string
	more     int // that had no room
}

func (l *definitionLoader) warn(format string, a ...any) {
	if len(l.warnings) >= maxAgentWarnings {
		l.more++
		return
	}
	l.warnings = append(l.warnings, fmt.Sprintf(format, a...))
}

func shownPath(path string) string {
	if path == "" {
		return "a built-in one"
	}
	return showPath(path)
}

// files returns the Markdown files in a folder and in the folders within it, by
// name. Folders that are links are not entered.
func (l *definitionLoader) files(d definitionDir) (files []string) {
	entries := 0
	var look func(dir string, depth int)
	look = func(dir string, depth int) {
		list, err := readDir(dir, maxAgentEntries)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.warn("agents: %s is not used: %v", showPath(dir), err)
		}
		for _, e := range list {
			if entries++; entries == maxAgentEntries {
				l.warn("agents: only %d entries of %s were looked at", maxAgentEntries, showPath(d.path))
			}
			if entries >= maxAgentEntries {
				return
			}
			path := filepath.Join(dir, e.Name())
			switch {
			case strings.HasPrefix(e.Name(), "."):
			case e.IsDir() && depth < maxAgentDepth:
				look(path, depth+1)
			case strings.EqualFold(filepath.Ext(e.Name()), ".md"):
				files = append(files, path)
			}
		}
	}
	if real, err := filepath.EvalSymlinks(d.path); err == nil {
		if d.within != "" && !tool.Within(resolvedPath(d.within), real) {
			l.warn("agents: %s is not used: it leads out of %s", showPath(d.path), showPath(d.within))
			return nil
		}
		look(d.path, 1)
	}
	return files
}

// resolvedPath is a path without links, or as it is when that cannot be known.
func resolvedPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// readDir lists a directory, at most so many entries of it, by name.
func readDir(dir string, most int) ([]fs.DirEntry, error) {
	info, err := os.Stat(dir) // opening something else could wait for ever
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, errors.New("it is no directory")
	}
	h, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = h.Close() }() // only read
	list, err := h.ReadDir(most)
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	if err == io.EOF {
		err = nil
	}
	return list, err
}

func (l *definitionLoader) directory(d definitionDir) {
	for _, path := range l.files(d) {
		real, err := filepath.EvalSymlinks(path)
		if err == nil && d.within != "" && !tool.Within(resolvedPath(d.within), real) {
			err = fmt.Errorf("it leads out of %s", showPath(d.within))
		}
		if err == nil && l.seen[real] {
			continue // by another way
		}
		var x *Definition
		if err == nil {
			l.seen[real] = true
			x, err = readDefinition(real, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
		}
		if err != nil {
			l.warn("agents: %s is not used: %v", showPath(path), err)
			continue
		}
		x.Path, x.Project = path, d.project
		if x.Hooks != nil {
			x.HooksFrom, x.HooksProject = path, d.project
		}
		l.take(x)
	}
}

// take adds a definition. Of two with one name in one layer a person is told; that
// a workspace's goes before the user's is how it should be.
func (l *definitionLoader) take(x *Definition) {
	switch before := l.byName[x.Name]; {
	case before != nil && before.Project == x.Project:
		l.warn("agents: %s is not used: %s has the same name, %s, and goes before it", showPath(x.Path), showPath(before.Path), x.Name)
		return
	case before != nil:
		return
	case l.read == maxDefinitions:
		l.warn("agents: %s is not used: there can be %d agents", showPath(x.Path), maxDefinitions)
		return
	}
	l.read++
	l.byName[x.Name] = x
	for _, n := range x.notes {
		l.warn("agents: %s: %s", showPath(x.Path), n)
	}
}

func readDefinition(path, base string) (*Definition, error) {
	data, size, err := readStart(path, maxDefinitionFile)
	if err != nil {
		return nil, err
	}
	if size > maxDefinitionFile {
		return nil, fmt.Errorf("it is larger than %d KiB", maxDefinitionFile>>10)
	}
	return parseDefinition(data, base)
}

// unused tells of the definitions of a workspace that is not trusted. None is
// read.
func (l *definitionLoader) unused(o DefinitionOptions) {
	o.Home, o.Trusted = "", true
	var found []string
	for _, d := range definitionDirs(o) {
		if list, _ := readDir(d.path, maxAgentEntries); slices.ContainsFunc(list, func(e fs.DirEntry) bool { return strings.EqualFold(filepath.Ext(e.Name()), ".md") }) {
			found = append(found, showPath(d.path))
		}
	}
	if found != nil {
		l.warn("%s: not used, because this folder is not trusted: agents (--trust uses them for one run)", strings.Join(found, ", "))
	}
}
