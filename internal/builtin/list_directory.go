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

	"capstan/internal/tool"
)

//go:embed list_directory.md
var listDirectoryText string

const listDirectoryInput = `{"type":"object","properties":{` +
	`"path":{"type":"string","description":"default: ."}},"additionalProperties":false}`

const listDirectoryOutput = `{"type":"object","properties":{"entries":{"type":"array","items":{"type":"object","properties":{` +
	`"name":{"type":"string"},"type":{"enum":["file","directory","symlink","other"]},"size":{"type":"integer"}},` +
	`"required":["name","type"]}}},"required":["entries"]}`

type listDirectory struct{ base }

func newListDirectory(f *files) tool.Tool {
	return &listDirectory{base{f, tool.Spec{
		Name: "list_directory", Title: "ListFiles", Description: text(listDirectoryText),
		Input: json.RawMessage(listDirectoryInput), Output: json.RawMessage(listDirectoryOutput),
		Effect: tool.EffectRead, Hint: "ls dir folder tree",
	}}}
}

type pathArgs struct {
	Path string `json:"path"`
}

// orHere is the path, or the working directory when none is given.
func (a pathArgs) orHere() string {
	if a.Path == "" {
		return "."
	}
	return a.Path
}

// Access names the directory.
func (t *listDirectory) Access(c *tool.Call) tool.Access {
	var in pathArgs
	_ = json.Unmarshal(c.Args, &in) // what cannot be read means the working directory
	return t.readAccess(in.orHere())
}

func (b *base) readAccess(p string) tool.Access {
	path, ok := b.touched(p)
	if !ok {
		return tool.Access{Overlap: true, Outside: true}
	}
	return tool.Access{Overlap: true, Reads: []string{path}}
}

type listed struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Size *int64 `json:"size,omitempty"` // of a file
}

func (t *listDirectory) Run(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
	var in pathArgs
	if err := json.Unmarshal(inv.Call.Args, &in); err != nil {
		return t.badArgs(err), nil
	}
	dir, err := t.judged(inv.Access, in.orHere())
	if err != nil {
		return tool.Fail(tool.CodeFailed, "listing %s: %v", in.orHere(), err), nil
	}
	w := &walk{f: t.files, ctx: ctx, enter: func(string) bool { return false }}
	entries := []listed{}
	lines := newListing(inv.Call.Source)
	w.visit = func(path string, d fs.DirEntry) {
		if lines.full() {
			lines.rest++
			return
		}
		e := describe(d)
		entries = append(entries, e)
		lines.add(lineOf(path, e))
	}
	if err := w.run(dir); err != nil {
		return t.searchFailed("listing", in.orHere(), err), nil
	}
	if lines.notes = w.notices(nil); len(entries) == 0 {
		lines.note("%s holds nothing that is not ignored", t.show(dir))
	}
	lines.hidden(w)
	return lines.result(struct {
		Entries []listed `json:"entries"`
	}{entries}), nil
}

func describe(d fs.DirEntry) listed {
	e := listed{Name: d.Name(), Type: "other"}
	switch m := d.Type(); {
	case m.IsDir():
		e.Type = "directory"
	case m&fs.ModeSymlink != 0:
		e.Type = "symlink"
	case m.IsRegular():
		e.Type = "file"
		if fi, err := d.Info(); err == nil { // else it has just gone
			n := fi.Size()
			e.Size = &n
		}
	}
	return e
}

func lineOf(path string, e listed) string {
	name := quoteName(e.Name)
	switch e.Type {
	case "directory":
		return name + "/"
	case "symlink":
		target, _ := os.Readlink(path) // "" when it has just gone
		return name + " -> " + quoteName(target)
	case "other":
		return name + " (not a file)"
	}
	if e.Size == nil {
		return name
	}
	return fmt.Sprintf("%s (%s)", name, size(*e.Size))
}

// searchFailed answers for a directory that cannot be searched at all.
func (b *base) searchFailed(doing, p string, err error) tool.Result {
	var file *notDir
	switch {
	case cancelled(err):
		return b.aborted(p)
	case errors.As(err, &file):
		return tool.Fail(tool.CodeFailed, "%s %s: it is not a directory; its directory is %s", doing, p, filepath.Dir(file.path))
	}
	return tool.Fail(tool.CodeFailed, "%s %s: %s", doing, p, b.why(p, err))
}
