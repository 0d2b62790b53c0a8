// Package builtin holds the tools that come with Capstan: those that read,
// find, write and edit files here, and those that run commands and jobs. Each
// tool is one Go file with its description in a .md file beside it.
//
// It is not a policy: it says which paths a call touches (Access) and then
// touches no other ones (Invocation.Access), and package policy decides whether it may. It has no
// scheduler and no locks of its own either: calls on one path come one after
// the other because package sched locks what Access names.
package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"capstan/internal/tool"
)

// Options configure the file tools of one session.
type Options struct {
	// Dir is the working directory, absolute: relative paths start there.
	Dir string
	// Roots are the workspace's roots, absolute and with links resolved. In a
	// directory that is in no git work tree the ignore files count from the
	// root that holds it.
	Roots []string
	// Place, when not nil, is where the session is instead of Dir and Roots.
	Place *Place
	// Hidden, when not nil, says which files and directories (absolute,
	// resolved) a rule forbids to read; listings and searches leave them out.
	// It is called by one goroutine of each call and must be quick.
	Hidden func(path string) bool
	// Seen is what the session has read so far; nil: nothing.
	Seen *Seen
}

// All returns the file tools of one session. They share what the session has
// read, so a session needs tools of its own (DESIGN section 5, "Files under
// edit").
func All(o Options) []tool.Tool {
	return allOf(newFiles(o))
}

func allOf(f *files) []tool.Tool {
	return []tool.Tool{
		newReadFile(f),
		newListDirectory(f),
		newGlob(f),
		newGrepSearch(f),
		newWriteFile(f),
		newEdit(f),
	}
}

// files is what the file tools of one session share.
type files struct {
	place *Place
	hide  func(path string) bool
	seen  *Seen

	// portable switches the Linux-only ways of opening files off, for tests.
	portable bool
	// searchTime replaces the constant of that name, for tests.
	searchTime time.Duration
}

func newFiles(o Options) *files {
	f := &files{place: o.Place, hide: o.Hidden, seen: o.Seen}
	if f.place == nil {
		f.place = NewPlace(o.Dir, o.Roots)
	}
	if f.seen == nil {
		f.seen = &Seen{}
	}
	return f
}

// base is what every file tool has.
type base struct {
	*files
	spec tool.Spec
}

func (b *base) Spec() *tool.Spec { return &b.spec }

// Check refuses paths that no file can have.
func (b *base) Check(c *tool.Call) error {
	var in struct {
		FilePath *string `json:"file_path"`
		Path     string  `json:"path"`
	}
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return nil // which the body says better
	}
	switch {
	case in.FilePath != nil && *in.FilePath == "":
		return errors.New("/file_path: the path is empty")
	case in.FilePath != nil && strings.IndexByte(*in.FilePath, 0) >= 0:
		return fmt.Errorf("/file_path: the path %q holds a NUL byte", *in.FilePath)
	case strings.IndexByte(in.Path, 0) >= 0:
		return fmt.Errorf("/path: the path %q holds a NUL byte", in.Path)
	}
	return nil
}

// badArgs is the answer to arguments that passed the schema and still are none.
func (b *base) badArgs(err error) tool.Result {
	return tool.Fail(tool.CodeInvalidArgs, "reading the arguments of %s: %v", b.spec.Name, err)
}

func (b *base) aborted(p string) tool.Result {
	return tool.Fail(tool.CodeAborted, "%s %s was cancelled before it was done", b.spec.Name, p)
}

// cancelled says whether an error comes from the call's own context.
func cancelled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// show spells a path for a reader: relative to the working directory when it
// lies there.
func (f *files) show(path string) string {
	if rel, ok := strings.CutPrefix(path, f.place.Dir()+string(filepath.Separator)); ok {
		return rel
	}
	return path
}

// text trims a description as it is embedded.
func text(md string) string { return strings.TrimSpace(md) }

// A number is a whole number in arguments. JSON Schema takes 2.0 and 2e3 for
// integers, which Go's decoder does not.
type number int

func (n *number) UnmarshalJSON(b []byte) error {
	if i, err := strconv.Atoi(string(b)); err == nil {
		*n = number(i)
		return nil
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return fmt.Errorf("%s is not a whole number of a usable size", b)
	}
	*n = number(f)
	return nil
}
