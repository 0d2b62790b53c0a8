package builtin

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"capstan/internal/msg"
	"capstan/internal/tool"
)

// How many lines of a listing a reader gets. A model's stay under the budget
// that sched sets for a result.
const (
	modelLines   = 1000
	programLines = 50000
)

// A listing gathers lines of output until its reader has enough, and counts
// the rest.
type listing struct {
	b          strings.Builder
	lines      int
	maxLines   int
	chars, max int
	rest       int // entries that had no room
	notes      []string
}

func newListing(src tool.Source) *listing {
	if src == tool.FromProgram {
		return &listing{maxLines: programLines, max: 8 << 20}
	}
	return &listing{maxLines: modelLines, max: pageChars}
}

// full says whether there is room for no further line.
func (l *listing) full() bool { return l.lines >= l.maxLines || l.chars >= l.max }

func (l *listing) add(line string) {
	l.lines++
	l.chars += utf8.RuneCountInString(line) + 1
	l.b.WriteString(line)
	l.b.WriteByte('\n')
}

func (l *listing) note(format string, a ...any) {
	l.notes = append(l.notes, fmt.Sprintf(format, a...))
}

// hidden notes what ignore files kept out of sight.
func (l *listing) hidden(w *walk) {
	if w.ignored > 0 {
		l.note("%s ignored (%s, %s); name a path to look there", count(w.ignored, "path"), gitIgnore, ownIgnore)
	}
}

// result returns the lines, the notes in brackets after them, and the value.
func (l *listing) result(data any) tool.Result {
	if l.rest > 0 {
		l.note("%d more not shown: narrow the search", l.rest)
	}
	out := tool.Text(l.b.String())
	if len(l.notes) > 0 {
		note := msg.TextPart("[" + strings.Join(l.notes, "; ") + "]")
		if out.Parts = append(out.Parts, note); l.b.Len() == 0 {
			out.Parts = out.Parts[1:]
		}
	}
	out.Data, _ = json.Marshal(data) // names and numbers cannot fail
	return out
}

// quoteName makes a file's name safe to print: one that holds a line break or
// another control character is quoted.
func quoteName(name string) string {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return strconv.Quote(name)
	}
	return name
}
