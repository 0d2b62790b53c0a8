package builtin

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"capstan/internal/tool"
)

//go:embed glob.md
var globText string

const globInput = `{"type":"object","properties":{"pattern":{"type":"string"},` +
	`"path":{"type":"string","description":"where to start"}},"required":["pattern"],"additionalProperties":false}`

const globOutput = `{"type":"object","properties":{"files":{"type":"array","items":{"type":"string"}}},"required":["files"]}`

type globTool struct{ base }

func newGlob(f *files) tool.Tool {
	return &globTool{base{f, tool.Spec{
		Name: "glob", Title: "Glob", Description: text(globText),
		Input: json.RawMessage(globInput), Output: json.RawMessage(globOutput),
		Effect: tool.EffectRead, Hint: "find files by name extension wildcard",
	}}}
}

type globArgs struct {
	pathArgs
	Pattern string `json:"pattern"`
}

// split returns the directory to walk and the pattern below it: the walk is
// kept to the literal beginning of the pattern (BUG-SI-03).
func (a globArgs) split() (dir, pattern string) {
	dir, pattern = doublestar.SplitPattern(filepath.ToSlash(a.Pattern))
	dir = filepath.FromSlash(dir)
	if !filepath.IsAbs(dir) {
		dir = a.orHere() + string(filepath.Separator) + dir
	}
	return dir, pattern
}

func (a globArgs) check() error {
	switch {
	case strings.IndexByte(a.Pattern, 0) >= 0: // it names the directory to walk, too
		return fmt.Errorf("the pattern %q holds a NUL byte, which no path has", a.Pattern)
	case a.Pattern == "" || !doublestar.ValidatePattern(filepath.ToSlash(a.Pattern)):
		return fmt.Errorf("the pattern %q is not a glob: an open [ or { needs its ] or }; write \\[ or \\{ for the character itself", a.Pattern)
	}
	return nil
}

// Check refuses a pattern that is none.
func (t *globTool) Check(c *tool.Call) error {
	var in globArgs
	if json.Unmarshal(c.Args, &in) == nil && in.check() != nil {
		return in.check()
	}
	return t.base.Check(c)
}

// Access names the directory that is walked.
func (t *globTool) Access(c *tool.Call) tool.Access {
	var in globArgs
	if json.Unmarshal(c.Args, &in) != nil {
		return tool.Access{Overlap: true, Outside: true}
	}
	dir, _ := in.split()
	return t.readAccess(dir)
}

func (t *globTool) Run(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
	var in globArgs
	if err := json.Unmarshal(inv.Call.Args, &in); err != nil {
		return t.badArgs(err), nil
	}
	if err := in.check(); err != nil {
		return tool.Fail(tool.CodeInvalidArgs, "%v", err), nil
	}
	at, pattern := in.split()
	dir, err := t.judged(inv.Access, at)
	if err != nil {
		return tool.Fail(tool.CodeFailed, "searching %s: %v", at, err), nil
	}
	ctx, stop := t.budget(ctx)
	defer stop()
	found := []string{}
	lines := newListing(inv.Call.Source)
	w := &walk{f: t.files, ctx: ctx}
	below := func(p string) string { return filepath.ToSlash(p[len(slashed(dir)):]) }
	w.enter = func(p string) bool { return mayLead(pattern, below(p)) }
	w.visit = func(p string, d fs.DirEntry) {
		switch {
		case d.IsDir() || !doublestar.MatchUnvalidated(pattern, below(p)) || !isFile(p, d):
		case lines.full():
			lines.rest++
		default:
			found = append(found, t.show(p))
			lines.add(quoteName(t.show(p)))
		}
	}
	if err := w.run(dir); err != nil && !errors.Is(err, errSearchTime) {
		return t.searchFailed("searching", t.show(dir), err), nil
	} else if lines.notes = w.notices(err); len(found) == 0 {
		lines.note("no file in %s matches %s%s", t.show(dir), pattern, deeper(pattern))
		lines.hidden(w)
	}
	return lines.result(struct {
		Files []string `json:"files"`
	}{found}), nil
}

// deeper is the hint for a pattern that looks at one directory only.
func deeper(pattern string) string {
	if strings.Contains(pattern, "/") || strings.Contains(pattern, "**") {
		return ""
	}
	return ", not counting subdirectories: that is **/" + pattern
}

// mayLead says whether a directory may hold a match of a pattern. Both are
// relative to the same directory.
func mayLead(pattern, dir string) bool {
	if strings.ContainsAny(pattern, `{[\`) {
		return true // these may hold a slash: not worth the pruning
	}
	segments := strings.Split(pattern, "/")
	for i, name := range strings.Split(dir, "/") {
		switch {
		case i < len(segments) && segments[i] == "**":
			return true
		case i >= len(segments)-1, !doublestar.MatchUnvalidated(segments[i], name):
			return false
		}
	}
	return true
}

// isFile says whether an entry is a file or a link to one.
func isFile(p string, d fs.DirEntry) bool {
	if d.Type()&fs.ModeSymlink == 0 {
		return !d.IsDir()
	}
	fi, err := os.Stat(p)
	return err == nil && !fi.IsDir()
}
