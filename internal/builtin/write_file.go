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

	"capstan/internal/tool"
)

//go:embed write_file.md
var writeFileText string

const writeFileInput = `{"type":"object","properties":{"file_path":{"type":"string"},"content":{"type":"string"}},` +
	`"required":["file_path","content"],"additionalProperties":false}`

type writeFile struct{ base }

func newWriteFile(f *files) tool.Tool {
	return &writeFile{base{f, tool.Spec{
		Name: "write_file", Title: "WriteFile", Description: text(writeFileText),
		Input: json.RawMessage(writeFileInput), Effect: tool.EffectWrite, Hint: "create save overwrite new file",
	}}}
}

type writeArgs struct {
	FilePath string `json:"file_path"`
	Content  string `json:"content"`
}

// Access names the one file. Writes overlap: those of one path are kept apart
// by its lock (ruling 8).
func (t *writeFile) Access(c *tool.Call) tool.Access {
	var in writeArgs
	_ = json.Unmarshal(c.Args, &in) // what cannot be read has no path, and that is said below
	return t.writeAccess(in.FilePath)
}

func (b *base) writeAccess(p string) tool.Access {
	path, ok := b.touched(p)
	if !ok {
		return tool.Access{Overlap: true, Outside: true}
	}
	return tool.Access{Overlap: true, Writes: []string{path}}
}

// Preview shows what a call would change.
func (t *writeFile) Preview(ctx context.Context, c *tool.Call, judged tool.Access) (string, error) {
	var in writeArgs
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return "", fmt.Errorf("previewing write_file: %w", err)
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

func (t *writeFile) Run(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
	var in writeArgs
	if err := json.Unmarshal(inv.Call.Args, &in); err != nil {
		return t.badArgs(err), nil
	}
	path, err := t.judged(inv.Access, in.FilePath)
	if err != nil {
		return t.notWritten(in.FilePath, err), nil
	}
	c, err := t.plan(ctx, path, in)
	if err != nil {
		return t.notWritten(in.FilePath, err), nil
	}
	if !c.creates && bytes.Equal(c.before, c.after) {
		return tool.Text(c.shown + " holds exactly this already; nothing was written."), nil
	}
	if err := t.write(ctx, c); err != nil {
		return t.notWritten(in.FilePath, err), nil
	}
	verb := "Replaced"
	if c.creates {
		verb = "Created"
	}
	out := tool.Text(fmt.Sprintf("%s %s (%s, %s)%s.", verb, c.shown, count(countLines(c.new), "line"), size(int64(len(c.after))), c.noted()))
	out.Display = c.diff()
	return out, nil
}

// noted is the notes of a change, to end a sentence with.
func (c *change) noted() string {
	if len(c.notes) == 0 {
		return ""
	}
	return "; " + strings.Join(c.notes, "; ")
}

// notWritten answers for a file that stays as it was.
func (b *base) notWritten(p string, err error) tool.Result {
	if cancelled(err) {
		return b.aborted(p)
	}
	return tool.Fail(tool.CodeFailed, "%s %s: %s; nothing was changed", b.spec.Name, p, b.why(p, err))
}

func (t *writeFile) plan(ctx context.Context, path string, in writeArgs) (_ *change, err error) {
	c := &change{path: path, shown: t.show(path), new: in.Content, after: []byte(in.Content)}
	c.before, err = t.load(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		c.creates = true
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	switch read, same := t.seen.check(path, c.before); {
	case !read:
		return nil, errors.New("it exists and has not been read in this session: read_file it first, so that nothing in it is lost unseen")
	case !same:
		return nil, errors.New("it has changed since it was read: read_file it again before replacing it")
	}
	if sniff(c.before).text {
		c.keepForm()
	}
	return c, nil
}

// keepForm spells the new content the way the old one was spelled, where the
// content itself does not say otherwise: its encoding, byte order mark and
// line ends.
func (c *change) keepForm() {
	old, enc := decode(c.before)
	c.old = old
	s := c.new
	if uniformCRLF(old) && bareLF(s) {
		s = strings.ReplaceAll(s, "\n", "\r\n")
		c.notes = append(c.notes, "with CRLF line ends, as before")
	}
	if enc.mark != "" {
		s = strings.TrimPrefix(s, "\uFEFF")
	}
	b, err := enc.encode(s)
	switch {
	case err != nil:
		c.notes = append(c.notes, "it was "+enc.name+" and is UTF-8 now")
		b = []byte(s)
	case enc != utf8Plain:
		c.notes = append(c.notes, "as "+enc.name+", as before")
	}
	c.new, c.after = s, b
}
