// Package builtin holds the tools that come with Capstan: those that read,
// find, write and edit files here, and those that run commands and jobs. Each
// tool is one Go file with its description in a .md file beside it.
//
// It is not a policy: it says which paths a call touches (Access) and then
// touches no other ones, and package policy decides whether it may. It has no
// scheduler and no locks of its own either: calls on one path come one after
// the other because package sched locks what Access names.
package builtin

import (
	"path/filepath"
	"strings"
	"time"

	"capstan/internal/tool"
)

// Options configure the file tools of one session.
type Options struct {
	// Dir is the working directory, absolute: relative paths start there.
	Dir string
	// Roots are the workspace's roots, absolute. In a directory that is in no
	// git work tree the ignore files count from the root that holds it.
	Roots []string
}

// All returns the file tools of one session. They share what the session has
// read, so a session needs tools of its own (DESIGN section 5, "Files under
// edit").
func All(o Options) []tool.Tool {
	f := newFiles(o)
	return []tool.Tool{
		newReadFile(f),
	}
}

// files is what the file tools of one session share.
type files struct {
	dir   string
	roots []string
	seen  tracker
	judge claims

	// portable switches the Linux-only ways of opening files off, for tests.
	portable bool
	// searchTime replaces the constant of that name, for tests.
	searchTime time.Duration
}

func newFiles(o Options) *files {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		dir = o.Dir // the working directory is gone; every call will say so
	}
	f := &files{dir: dir, roots: o.Roots}
	f.seen.init()
	return f
}

// show spells a path for a reader: relative to the working directory when it
// lies there.
func (f *files) show(path string) string {
	if rel, ok := strings.CutPrefix(path, f.dir+string(filepath.Separator)); ok {
		return rel
	}
	return path
}

// text trims a description as it is embedded.
func text(md string) string { return strings.TrimSpace(md) }
