package builtin

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"capstan/internal/tool"
)

//go:embed edit.md
var editText string

const editInput = `{"type":"object","properties":{"file_path":{"type":"string"},"old_string":{"type":"string"},` +
	`"new_string":{"type":"string"},"replace_all":{"type":"boolean"}},` +
	`"required":["file_path","old_string","new_string"],"additionalProperties":false}`

type editTool struct{ base }

func newEdit(f *files) tool.Tool {
	return &editTool{base{f, tool.Spec{
		Name: "edit", Title: "Edit", Description: text(editText),
		Input: json.RawMessage(editInput), Effect: tool.EffectWrite, Hint: "replace change modify patch sed",
	}}}
}

type editArgs struct {
	FilePath   string `json:"file_path"`
	Old        string `json:"old_string"`
	New        string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all"`
}

// Access names the one file. Edits overlap: those of one path are kept apart by
// its lock, so two edits of one file in one Promise.all both apply (ruling 8).
func (t *editTool) Access(c *tool.Call) tool.Access {
	var in editArgs
	_ = json.Unmarshal(c.Args, &in) // what cannot be read has no path, and that is said below
	return t.writeAccess(in.FilePath)
}

// Preview shows what a call would change.
func (t *editTool) Preview(ctx context.Context, c *tool.Call, judged tool.Access) (string, error) {
	var in editArgs
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return "", fmt.Errorf("previewing edit: %w", err)
	}
	path, err := t.judged(judged, in.FilePath)
	if err != nil {
		return "", err
	}
	ch, err := t.plan(ctx, path, in)
	if err != nil {
		return "", err
	}
	return ch.diff(), nil
}

func (t *editTool) Run(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
	var in editArgs
	if err := json.Unmarshal(inv.Call.Args, &in); err != nil {
		return t.badArgs(err), nil
	}
	path, err := t.judged(inv.Access, in.FilePath)
	if err != nil {
		return t.notWritten(in.FilePath, err), nil
	}
	c, err := t.plan(ctx, path, in)
	if err == nil {
		err = t.write(ctx, c)
	}
	if err != nil {
		return t.notWritten(in.FilePath, err), nil
	}
	var out tool.Result
	if c.creates {
		out = tool.Text(fmt.Sprintf("Created %s (%s).", c.shown, count(countLines(c.new), "line")))
	} else {
		out = tool.Text(c.report())
	}
	out.Display = c.diff()
	return out, nil
}

// report tells a model what an edit did: where, and the new text of the first
// place.
func (c *change) report() string {
	first := c.edits[0]
	line := strings.Count(c.old[:first.Start], "\n")
	where := fmt.Sprintf("at line %d", line+1)
	if len(c.edits) > 1 {
		where = fmt.Sprintf("in %d places, the first at line %d", len(c.edits), line+1)
	}
	return fmt.Sprintf("Edited %s %s%s:\n%s", c.shown, where, c.noted(), region(c.new, line, 1+strings.Count(first.New, "\n")))
}

func (t *editTool) plan(ctx context.Context, path string, in editArgs) (_ *change, err error) {
	c := &change{path: path, shown: t.show(path)}
	c.before, err = t.load(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && in.Old == "":
		c.creates, c.new, c.after = true, in.New, []byte(in.New)
		return c, nil
	case err != nil:
		return nil, err
	case in.Old == "":
		return nil, errors.New("it exists, and an empty old_string is only for creating a file: give the text to replace, or use write_file")
	}
	var enc *encoding
	if c.old, enc, err = editable(c.before); err != nil {
		return nil, err
	}
	e := editor{text: c.old, old: in.Old, new: in.New, all: in.ReplaceAll}
	if enc.mark != "" { // BUG-ED-05
		e.old, e.new = strings.TrimPrefix(e.old, "\uFEFF"), strings.TrimPrefix(e.new, "\uFEFF")
	}
	switch read, same := t.seen.check(path, c.before); {
	case !read:
		return nil, errors.New("it has not been read in this session: read_file it first, then edit")
	case !same:
		return nil, e.stale()
	}
	if c.edits, err = e.edits(); err != nil {
		return nil, err
	}
	c.notes = e.notes
	if c.new, err = udiff.Apply(c.old, c.edits); err != nil {
		return nil, fmt.Errorf("applying the edit: %w", err)
	}
	if c.after, err = enc.encode(c.new); err != nil {
		return nil, err
	}
	return c, nil
}

// editable returns the text of a file's bytes when nothing of them is lost on
// the way there and back.
func editable(b []byte) (string, *encoding, error) {
	if k := sniff(b); !k.text {
		return "", nil, fmt.Errorf("it is not text but %s", k.mime)
	}
	s, enc := decode(b)
	if enc == utf8Plain {
		return s, enc, nil
	}
	if back, err := enc.encode(s); err != nil || !bytes.Equal(back, b) {
		return "", nil, fmt.Errorf("it is broken %s: an edit would change more than the text", enc.name)
	}
	return s, enc, nil
}

// stale says that the file is not what the session read, and what is there now
// (BUG-ED-13).
func (e *editor) stale() error {
	const again = "it has changed since it was read: read_file it again, then edit"
	line, n := -1, countLines(e.old)
	if i := strings.Index(e.text, e.old); i >= 0 {
		line = strings.Count(e.text[:i], "\n")
	} else if near, _, ok := closest(e.text, e.old); ok {
		line = near
	}
	if line < 0 {
		return errors.New(again + "; nothing like old_string is in it now")
	}
	return fmt.Errorf("%s; near old_string it is now:\n%s", again, region(e.text, line, n))
}
