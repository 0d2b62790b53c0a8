package builtin

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"capstan/internal/tool"
)

//go:embed grep_search.md
var grepSearchText string

const grepSearchInput = `{"type":"object","properties":{"pattern":{"type":"string"},` +
	`"path":{"type":"string","description":"file or directory"},` +
	`"glob":{"type":"string","description":"only these files"},` +
	`"limit":{"type":"integer","minimum":1,"description":"lines"}},"required":["pattern"],"additionalProperties":false}`

const grepSearchOutput = `{"type":"object","properties":{"matches":{"type":"array","items":{"type":"object","properties":{` +
	`"path":{"type":"string"},"line":{"type":"integer"},"text":{"type":"string"}},"required":["path","line","text"]}}},"required":["matches"]}`

// grepLines is how many matches a model is shown when it sets no limit.
const grepLines = 200

type grepSearch struct{ base }

func newGrepSearch(f *files) tool.Tool {
	return &grepSearch{base{f, tool.Spec{
		Name: "grep_search", Title: "Grep", Description: text(grepSearchText),
		Input: json.RawMessage(grepSearchInput), Output: json.RawMessage(grepSearchOutput),
		Effect: tool.EffectRead, Hint: "grep rg ripgrep find text code regex content",
	}}}
}

type grepArgs struct {
	pathArgs
	Pattern string `json:"pattern"`
	Glob    string `json:"glob"`
	Limit   number `json:"limit"`
}

// compile reads the pattern and the glob.
func (a *grepArgs) compile() (*pattern, error) {
	p, err := newPattern(a.Pattern)
	if err != nil {
		return nil, err
	}
	if a.Glob = filepath.ToSlash(a.Glob); !doublestar.ValidatePattern(a.Glob) {
		return nil, fmt.Errorf("the glob %q cannot be used: an open [ or { needs its ] or }", a.Glob)
	}
	return p, nil
}

// Check refuses a pattern or a glob that is none.
func (t *grepSearch) Check(c *tool.Call) error {
	var in grepArgs
	if json.Unmarshal(c.Args, &in) == nil {
		if _, err := in.compile(); err != nil {
			return err
		}
	}
	return t.base.Check(c)
}

// Access names the file or the directory that is searched.
func (t *grepSearch) Access(c *tool.Call) tool.Access {
	var in grepArgs
	if json.Unmarshal(c.Args, &in) != nil {
		return tool.Access{Overlap: true, Outside: true}
	}
	return t.readAccess(in.orHere())
}

// A match is one line that the pattern was found in.
type match struct {
	Path string `json:"path"`
	Line int    `json:"line"` // from 1
	Text string `json:"text"`
}

func (t *grepSearch) Run(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
	var in grepArgs
	if err := json.Unmarshal(inv.Call.Args, &in); err != nil {
		return t.badArgs(err), nil
	}
	p, err := in.compile()
	if err != nil {
		return tool.Fail(tool.CodeInvalidArgs, "%v", err), nil
	}
	root, err := t.judged(inv.Access, in.orHere())
	if err != nil {
		return tool.Fail(tool.CodeFailed, "searching %s: %v", in.orHere(), err), nil
	}
	ctx, stop := t.budget(ctx)
	defer stop()
	lines := newListing(inv.Call.Source)
	switch {
	case in.Limit > 0:
		lines.maxLines = min(int(in.Limit), programLines)
	case inv.Call.Source != tool.FromProgram:
		lines.maxLines = grepLines
	}
	s := search{files: t.files, pattern: p, lines: lines, found: []match{}}
	w := &walk{f: t.files, ctx: ctx}
	err = s.run(ctx, w, root, in.Glob)
	if err != nil && !errors.Is(err, errSearchTime) {
		return t.searchFailed("searching", in.orHere(), err), nil
	}
	s.notes(w, err, t.show(root))
	return lines.result(struct {
		Matches []match `json:"matches"`
	}{s.found}), nil
}

// notes adds to the lines what the reader has to know about the search.
func (s *search) notes(w *walk, err error, root string) {
	w.unreadable += s.unreadable
	s.lines.notes = w.notices(err)
	if s.long > 0 {
		s.lines.note("%s too long for a pattern with ^, $ or \\b, and not searched: try it without them", count(s.long, "line"))
	}
	if len(s.found) > 0 || s.lines.rest > 0 {
		return
	}
	s.lines.note("no line matches in %s of %s", count(s.searched, "file"), root)
	if s.binary > 0 {
		s.lines.note("%s skipped", count(s.binary, "binary file"))
	}
	s.lines.hidden(w)
}

// wanted makes the test for the glob argument. As in .gitignore, a glob
// without a slash is about names and one with a slash about paths below root.
func wanted(glob, root string) func(path string, d fs.DirEntry) bool {
	if glob == "" {
		return func(_ string, d fs.DirEntry) bool { return d.Type().IsRegular() }
	}
	glob = strings.TrimPrefix(strings.TrimPrefix(glob, "./"), "/")
	byName := !strings.Contains(glob, "/")
	skip := len(slashed(root))
	return func(path string, d fs.DirEntry) bool {
		name := d.Name()
		if !byName {
			name = filepath.ToSlash(path[skip:])
		}
		return d.Type().IsRegular() && doublestar.MatchUnvalidated(glob, name)
	}
}

// add takes the matches of one file, in the order of the walk.
func (s *search) add(r *searched) {
	s.searched++
	s.long += r.long
	switch {
	case r.err != nil:
		s.unreadable++
		s.failed = r.err
	case r.binary:
		s.binary++
	}
	shown := false
	for _, m := range r.hits {
		if s.lines.full() {
			s.lines.rest++
			continue
		}
		if !shown {
			s.lines.b.WriteString(quoteName(s.files.show(r.path)) + "\n")
			s.lines.chars += len(r.path)
			shown = true
		}
		m.Path = s.files.show(r.path)
		s.found = append(s.found, m)
		s.lines.add(fmt.Sprintf("  %d: %s", m.Line, m.Text))
	}
	s.lines.rest += r.more
}
