package builtin

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"capstan/internal/msg"
	"capstan/internal/tool"
)

//go:embed read_file.md
var readFileText string

const readFileInput = `{"type":"object","properties":{` +
	`"file_path":{"type":"string"},` +
	`"offset":{"type":"integer","minimum":0,"description":"first line, 0-based"},` +
	`"limit":{"type":"integer","minimum":1,"description":"lines"},` +
	`"column":{"type":"integer","minimum":0,"description":"characters to skip in that line"}` +
	`},"required":["file_path"],"additionalProperties":false}`

const readFileOutput = `{"type":"object","properties":{` +
	`"path":{"type":"string"},"lines":{"type":"integer"},"totalLines":{"type":"integer"},` +
	`"truncated":{"type":"boolean"},"encoding":{"type":"string"},"mimeType":{"type":"string"}},"required":["path"]}`

const (
	maxWhole = 16 << 20 // of one read, in bytes
	maxMedia = 10 << 20 // of an image, sound or document, in bytes
)

type readFile struct{ base }

func newReadFile(f *files) tool.Tool {
	return &readFile{base{f, tool.Spec{
		Name: "read_file", Title: "ReadFile", Description: text(readFileText),
		Input: json.RawMessage(readFileInput), Output: json.RawMessage(readFileOutput),
		Effect: tool.EffectRead, Hint: "cat open view show head tail content",
	}}}
}

type readArgs struct {
	FilePath string  `json:"file_path"`
	Offset   number  `json:"offset"`
	Limit    *number `json:"limit"`
	Column   number  `json:"column"`
}

// Access names the one file. Reads overlap.
func (t *readFile) Access(c *tool.Call) tool.Access {
	var in readArgs
	_ = json.Unmarshal(c.Args, &in) // what cannot be read has no path, and that is said below
	path, ok := t.touched(in.FilePath)
	if !ok {
		return tool.Access{Overlap: true, Outside: true}
	}
	return tool.Access{Overlap: true, Reads: []string{path}}
}

func (t *readFile) Run(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
	var in readArgs
	if err := json.Unmarshal(inv.Call.Args, &in); err != nil {
		return tool.Fail(tool.CodeInvalidArgs, "reading the arguments of read_file: %v", err), nil
	}
	path, err := t.judged(inv.Access, in.FilePath)
	if err != nil {
		return t.fail(in.FilePath, err), nil
	}
	h, err := t.open(path)
	if err != nil {
		return t.fail(in.FilePath, err), nil
	}
	defer func() { _ = h.Close() }() // only read
	r := reading{path: t.show(path), in: in, exact: inv.Call.Source == tool.FromProgram}
	if h.size > maxWhole {
		return t.huge(ctx, h, path, &r), nil
	}
	data, err := slurp(ctx, h, maxWhole)
	if err != nil {
		return t.fail(in.FilePath, err), nil
	}
	t.seen.note(path, data)
	return r.whole(data), nil
}

func (t *readFile) fail(p string, err error) tool.Result {
	if cancelled(err) {
		return t.aborted(p)
	}
	hint := ""
	if odd := (*notRegular)(nil); errors.As(err, &odd) && odd.what == "a directory" {
		hint = "; use list_directory or glob"
	}
	return tool.Fail(tool.CodeFailed, "reading %s: %s%s", p, t.why(p, err), hint)
}

// A reading is one read of a file on its way to a result.
type reading struct {
	path  string // as shown
	in    readArgs
	exact bool // for a program: the very text, and nothing beside it
	cut   bool // the text ends where maxKept bytes do, or the time for it
}

// whole answers from the bytes of the whole file.
func (r *reading) whole(data []byte) tool.Result {
	k := sniff(data)
	switch {
	case k.media:
		return r.media(k, data)
	case !k.text:
		return r.refuse(k, int64(len(data)))
	}
	s, enc := decode(data)
	if !r.exact && strings.EqualFold(filepath.Ext(r.path), ".ipynb") {
		if cells, ok := renderNotebook(data); ok {
			s = cells
		}
	}
	total := countLines(s)
	first, ok := skipLines(s, int(r.in.Offset))
	if !ok && (r.in.Offset != 0 || total != 0) {
		return tool.Fail(tool.CodeFailed, "reading %s: offset %d is past its end: it has %s (offset counts from 0)", r.path, r.in.Offset, count(total, "line"))
	}
	return r.text(first, total, enc)
}

func (r *reading) media(k kind, data []byte) tool.Result {
	if len(data) > maxMedia {
		return tool.Fail(tool.CodeFailed, "reading %s: it is %s of %s; at most %s can be given", r.path, size(int64(len(data))), k.mime, size(maxMedia))
	}
	p := msg.Part{Kind: msg.File, MIMEType: k.mime, Data: data, Name: filepath.Base(r.path)}
	switch top, _, _ := strings.Cut(k.mime, "/"); top {
	case "image":
		p.Kind = msg.Image
	case "audio":
		p.Kind = msg.Audio
	}
	out := tool.Text(fmt.Sprintf("%s: %s, %s", r.path, k.mime, size(int64(len(data)))))
	out.Parts = append(out.Parts, p)
	out.Data, _ = json.Marshal(struct { // strings and a number cannot fail
		Path     string `json:"path"`
		MIMEType string `json:"mimeType"`
	}{r.path, k.mime})
	return out
}

func (r *reading) refuse(k kind, n int64) tool.Result {
	hint := "; use a command that understands it"
	if strings.HasPrefix(k.mime, "image/") {
		hint = "; convert it to PNG or JPEG first"
	}
	return tool.Fail(tool.CodeFailed, "reading %s: it is not text but %s, %s%s", r.path, k.mime, size(n), hint)
}

// text answers with lines. s begins at the line that was asked for; total is
// the number of lines of the file, or -1 when it was not counted.
func (r *reading) text(s string, total int, enc *encoding) tool.Result {
	skipped := s
	if r.in.Column > 0 {
		line, _, _ := strings.Cut(s, "\n")
		n := runeIndex(line, int(r.in.Column))
		if n < 0 {
			return tool.Fail(tool.CodeFailed, "reading %s: column %d is past the end of the line at offset %d", r.path, r.in.Column, r.in.Offset)
		}
		skipped = s[n:]
	}
	var pg page
	if r.exact {
		pg = exactPage(skipped, r.in)
	} else {
		pg = modelPage(skipped, r.in)
	}
	pg.more = pg.more || r.cut || total < 0 || int(r.in.Offset)+pg.lines < total
	out := tool.Text(pg.text)
	out.Truncated = r.exact && r.cut
	if note := r.note(&pg, total, enc); note != "" && (!r.exact || r.cut) {
		out.Parts = append(out.Parts, msg.TextPart(note))
	}
	out.Data = r.data(&pg, total, enc)
	return out
}

// note tells a model what it does not see of the text itself.
func (r *reading) note(pg *page, total int, enc *encoding) string {
	var notes []string
	if pg.more && total < 0 {
		notes = append(notes, fmt.Sprintf("%s shown from offset %d of a file that was not counted to its end; go on with offset %d%s", count(pg.lines, "line"), r.in.Offset, pg.next, pg.column()))
	} else if pg.more || r.in.Offset > 0 {
		s := fmt.Sprintf("%d of %s shown from offset %d", pg.lines, count(total, "line"), r.in.Offset)
		if pg.more {
			s += fmt.Sprintf("; go on with offset %d%s", pg.next, pg.column())
		}
		notes = append(notes, s)
	}
	if total == 0 {
		notes = append(notes, "the file is empty")
	}
	if enc == win1252 {
		notes = append(notes, "the file is not UTF-8 and was read as "+enc.name)
	} else if enc.order != nil {
		notes = append(notes, "the file is "+enc.name)
	}
	if len(notes) == 0 {
		return ""
	}
	return "[" + strings.Join(notes, "; ") + "]"
}

// data is the same as a value. It is made by hand because a program may read a
// thousand files.
func (r *reading) data(pg *page, total int, enc *encoding) json.RawMessage {
	b := make([]byte, 0, 96+len(r.path))
	b = append(b, `{"path":`...)
	b = appendString(b, r.path)
	b = append(b, `,"lines":`...)
	b = strconv.AppendInt(b, int64(pg.lines), 10)
	if total >= 0 {
		b = append(b, `,"totalLines":`...)
		b = strconv.AppendInt(b, int64(total), 10)
	}
	b = append(b, `,"truncated":`...)
	b = strconv.AppendBool(b, pg.more)
	b = append(b, `,"encoding":`...)
	b = appendString(b, enc.name)
	return append(b, '}')
}

func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			q, _ := json.Marshal(s) // a string cannot fail
			return append(b, q...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
