package builtin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"unicode/utf8"

	"capstan/internal/tool"
)

// What a model is shown of a file at once. Both stay under the budget that
// sched sets for a result, so that a page ends at the end of a line and says
// how to go on.
const (
	pageLines = 2000
	pageChars = 28000
	lineChars = 2000 // of a line that is not the first one asked for with column
)

// A page is the part of a text that one read gives.
type page struct {
	text  string
	lines int  // begun in text
	more  bool // there is more, from line next, character col
	next  int
	col   int
}

func (p *page) column() string {
	if p.col == 0 {
		return ""
	}
	return fmt.Sprintf(", column %d", p.col)
}

// exactPage cuts whole lines for a program.
func exactPage(s string, in readArgs) page {
	rest := ""
	if in.Limit != nil {
		rest, _ = skipLines(s, int(*in.Limit))
	}
	s = s[:len(s)-len(rest)]
	pg := page{text: s, lines: countLines(s), more: rest != ""}
	if pg.next = int(in.Offset) + pg.lines; rest == "" && s != "" && !strings.HasSuffix(s, "\n") {
		pg.next-- // should there be more, it is of the same line
		pg.col = utf8.RuneCountInString(s[strings.LastIndexByte(s, '\n')+1:])
		if pg.lines == 1 {
			pg.col += int(in.Column)
		}
	}
	return pg
}

// modelPage cuts a page for a model. Long lines are cut too, and say how to
// get the rest; with column the line at offset is cut only by the page, so
// reading on always gets further (BUG-RD-03).
func modelPage(s string, in readArgs) page {
	limit, room := pageLines, pageChars
	if in.Limit != nil {
		limit = int(*in.Limit)
	}
	var b strings.Builder
	pg := page{next: int(in.Offset)}
	for ; s != "" && pg.lines < limit; pg.lines, pg.next = pg.lines+1, pg.next+1 {
		line, rest := cutLine(s)
		n := utf8.RuneCountInString(line)
		from := 0
		if pg.lines == 0 {
			from = int(in.Column)
		}
		switch {
		case from > 0 && n > room:
			pg.text, pg.more, pg.lines, pg.col = line[:runeIndex(line, room)], true, 1, from+room
			return pg
		case min(n, lineChars) > room: // it fits on the next page
			pg.text, pg.more = b.String(), true
			return pg
		case from == 0 && n > lineChars:
			b.WriteString(line[:runeIndex(line, lineChars)])
			fmt.Fprintf(&b, "… [%d more characters in this line: offset %d, column %d]", n-lineChars, pg.next, lineChars)
			if strings.HasSuffix(line, "\n") {
				b.WriteByte('\n')
			}
			n = lineChars
		default:
			b.WriteString(line)
		}
		room -= n
		s = rest
	}
	pg.text, pg.more = b.String(), s != ""
	return pg
}

// cutLine splits a text after its first line break.
func cutLine(s string) (line, rest string) {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return s[:i+1], s[i+1:]
	}
	return s, ""
}

// skipLines returns the text from line n on; ok is false when there is no such
// line.
func skipLines(s string, n int) (rest string, ok bool) {
	for ; n > 0 && s != ""; n-- {
		_, s = cutLine(s)
	}
	return s, s != ""
}

// countLines counts lines; a last one needs no line break.
func countLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

// runeIndex returns where character n of s begins, or -1 when s has fewer.
func runeIndex(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	if n == 0 {
		return len(s)
	}
	return -1
}

// maxCounted is the size up to which a huge file is read to its end, so that
// its lines are counted and an edit may follow; in bytes.
const maxCounted = 64 << 20

// maxKept is how much of a huge file is given at once, in bytes: with the note
// that says so it stays below the budget of a nested result.
const maxKept = maxWhole - 4096

// huge reads lines of a file that is too large to hold, for as long as a search
// may take.
func (t *readFile) huge(ctx context.Context, h *handle, path string, r *reading) tool.Result {
	ctx, stop := t.budget(ctx)
	defer stop()
	c := collector{skip: int(r.in.Offset), want: pageLines, sum: sha256.New()}
	if r.in.Limit != nil {
		c.want = int(*r.in.Limit)
	} else if r.exact {
		c.want = 1 << 62
	}
	buf := make([]byte, chunk)
	for first := true; ; first = false {
		n, err := h.Read(buf)
		if first {
			if k := sniff(buf[:n]); !k.text || markOf(buf[:n]) != nil && markOf(buf[:n]) != utf8Mark {
				return r.refuse(k, h.size)
			}
		}
		c.add(buf[:n])
		switch {
		case errors.Is(err, io.EOF):
			t.seen.noteSum(path, sum(c.sum.Sum(nil)[:len(sum{})]))
			return c.answer(r, c.total())
		case err != nil:
			return t.fail(r.in.FilePath, err)
		case errors.Is(context.Cause(ctx), errSearchTime):
			return c.late(r, h.size)
		case ctx.Err() != nil:
			return t.fail(r.in.FilePath, ctx.Err())
		case c.full() && c.read > maxCounted:
			return c.answer(r, -1)
		}
	}
}

// late answers when the time is over: with the whole lines that were found
// until then, or with how far it came.
func (c *collector) late(r *reading, n int64) tool.Result {
	if !c.full() {
		c.kept = c.kept[:bytes.LastIndexByte(c.kept, '\n')+1]
		r.cut = true
	}
	if len(c.kept) == 0 {
		return tool.Fail(tool.CodeTimeout, "reading %s: the line at offset %d was not reached in %v: the first %s of %s have %s; use a command such as tail",
			r.path, r.in.Offset, searchTime, size(c.read), size(n), count(c.total(), "line"))
	}
	return c.answer(r, -1)
}

// A collector picks lines out of a stream.
type collector struct {
	skip, want int
	read       int64
	breaks     int  // line breaks seen
	open       bool // the last line has no line break yet
	kept       []byte
	sum        hash.Hash // SHA-256
}

func (c *collector) full() bool {
	return len(c.kept) >= maxKept || c.breaks >= c.skip+min(c.want, 1<<60)
}

func (c *collector) total() int {
	if c.open {
		return c.breaks + 1
	}
	return c.breaks
}

func (c *collector) add(b []byte) {
	_, _ = c.sum.Write(b) // cannot fail
	c.read += int64(len(b))
	for len(b) > 0 {
		if c.full() {
			c.breaks += bytes.Count(b, []byte{'\n'})
			c.open = b[len(b)-1] != '\n'
			return
		}
		n := bytes.IndexByte(b, '\n') + 1
		line := b[:n]
		if n == 0 {
			line = b
		}
		if c.breaks >= c.skip {
			c.kept = append(c.kept, line[:min(len(line), maxKept-len(c.kept))]...)
		}
		if c.open = n == 0; n > 0 {
			c.breaks++
		}
		b = b[len(line):]
	}
}

func (c *collector) answer(r *reading, total int) tool.Result {
	if len(c.kept) == 0 {
		return tool.Fail(tool.CodeFailed, "reading %s: offset %d is past its end: it has %s (offset counts from 0)", r.path, r.in.Offset, count(c.total(), "line"))
	}
	kept := c.kept
	if n := len(kept) - utf8.UTFMax; len(kept) == maxKept && validPrefix(kept[n:]) {
		for !utf8.Valid(kept[n:]) { // BUG-OT-01: no character is cut in two
			kept = kept[:len(kept)-1]
		}
	}
	s, enc := decode(kept)
	r.cut = r.cut || len(c.kept) >= maxKept
	return r.text(s, total, enc)
}

// count writes a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// size writes a number of bytes for a reader.
func size(n int64) string {
	switch {
	case n < 1<<10:
		return count(int(n), "byte")
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
