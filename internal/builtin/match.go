package builtin

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// An editor replaces one text by another in the text of a file. It finds the
// old text exactly, else but for line ends, else but for one layer of escapes;
// it never guesses beyond that.
type editor struct {
	text     string
	old, new string
	all      bool
	notes    []string
}

// maxCount is how far occurrences are counted.
const maxCount = 1000

// edits returns what to replace, in order and without overlap. The error tells
// a model what it needs for a next try.
func (e *editor) edits() ([]udiff.Edit, error) {
	if e.old == e.new {
		return nil, errSame
	}
	crlf := uniformCRLF(e.text)
	m := e.exactly()
	if len(m.at) == 0 || e.all && strings.Contains(e.old, "\n") {
		if loose := e.butLineEnds(); len(loose.at) > 0 {
			m = loose
		}
	}
	if len(m.at) == 0 && !e.all {
		if un, ok := e.unescaped(); ok {
			e.old, e.new = un.old, un.new
			e.notes = append(e.notes, "old_string and new_string were unescaped once, because the file holds the text only like that")
			if m = e.exactly(); len(m.at) == 0 {
				m = e.butLineEnds()
			}
		}
	}
	switch {
	case len(m.at) == 0:
		return nil, e.notFound()
	case len(m.at) > 1 && !e.all:
		return nil, e.ambiguous(m)
	}
	var out []udiff.Edit
	end := 0
	for _, at := range m.at {
		if at < end {
			continue // overlaps the one before
		}
		end = at + len(m.old)
		ed := m.replace(at, e.new)
		if crlf && bareLF(ed.New) {
			ed.New = strings.ReplaceAll(ed.New, "\n", "\r\n")
			e.note("line ends written as CRLF, like the file's others")
		}
		if e.text[ed.Start:ed.End] != ed.New {
			out = append(out, ed)
		}
	}
	if len(out) == 0 {
		return nil, errSame
	}
	return out, nil
}

var errSame = errors.New("old_string and new_string are the same, so nothing would change")

func (e *editor) note(s string) {
	if !slices.Contains(e.notes, s) {
		e.notes = append(e.notes, s)
	}
}

// matches is where a text was found.
type matches struct {
	old  string
	at   []int // in text, ascending; overlapping ones too (BUG-ED-11)
	text string
	crs  []int  // when not nil, text lacks the carriage returns before the line feeds at these places
	eol  string // how the file ends its lines, when text does not show it
}

func (e *editor) exactly() matches {
	return matches{old: e.old, text: e.text, at: e.find(e.text, e.old)}
}

// find returns where old occurs. Overlapping occurrences count unless all are
// to be replaced, when the next one is sought behind the last.
func (e *editor) find(text, old string) []int {
	var at []int
	step := 1
	if e.all {
		step = len(old)
	}
	for from := 0; old != "" && (e.all || len(at) < maxCount); {
		i := strings.Index(text[from:], old)
		if i < 0 {
			break
		}
		at = append(at, from+i)
		from += i + step
	}
	return at
}

// butLineEnds finds the text with every CRLF read as LF, in both.
func (e *editor) butLineEnds() matches {
	if !strings.Contains(e.text, "\r\n") && !strings.Contains(e.old, "\r\n") {
		return matches{}
	}
	m := matches{old: unixEnds(e.old), text: unixEnds(e.text), eol: "\n", crs: []int{}}
	for i := 0; ; {
		j := strings.Index(e.text[i:], "\r\n")
		if j < 0 {
			break
		}
		i += j + 2
		m.crs = append(m.crs, i-2-len(m.crs))
	}
	if len(m.crs) > 0 {
		m.eol = "\r\n"
	}
	m.at = e.find(m.text, m.old)
	return m
}

func unixEnds(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// raw maps a place in text to the file's own. A place before a line feed is
// before its carriage return.
func (m *matches) raw(i int) int {
	n, _ := slices.BinarySearch(m.crs, i)
	return i + n
}

// replace returns the edit of one occurrence. Where line ends were overlooked,
// only what differs between the old text and the new one is touched, so that
// every other byte stays what it is (BUG-ED-03).
func (m *matches) replace(at int, with string) udiff.Edit {
	if m.crs == nil {
		return udiff.Edit{Start: at, End: at + len(m.old), New: with}
	}
	with = unixEnds(with)
	head := 0
	for head < len(m.old) && head < len(with) && m.old[head] == with[head] {
		head++
	}
	tail := 0
	for tail < len(m.old)-head && tail < len(with)-head && m.old[len(m.old)-1-tail] == with[len(with)-1-tail] {
		tail++
	}
	middle := with[head : len(with)-tail]
	start, end := m.raw(at+head), m.raw(at+len(m.old)-tail)
	return udiff.Edit{Start: start, End: end, New: strings.ReplaceAll(middle, "\n", m.ending(at))}
}

// ending is how lines end where new ones are put: as the first one of the
// occurrence does, or else the file's first.
func (m *matches) ending(at int) string {
	i := strings.IndexByte(m.text[at:at+len(m.old)], '\n')
	if i < 0 {
		return m.eol
	}
	if _, is := slices.BinarySearch(m.crs, at+i); is {
		return "\r\n"
	}
	return "\n"
}

// unescaped is the editor for arguments that were escaped once too often: a
// backslash and an n where a line break was meant. It counts only when the text
// as given is absent and the unescaped one occurs exactly once (BUG-ED-08).
func (e *editor) unescaped() (*editor, bool) {
	un := &editor{text: e.text, old: unescape(e.old), new: unescape(e.new)}
	if un.old == e.old || un.old == un.new {
		return nil, false
	}
	n := len(un.exactly().at)
	if n == 0 {
		n = len(un.butLineEnds().at)
	}
	return un, n == 1
}

var unescaper = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r", `\t`, "\t", `\"`, `"`, `\'`, `'`, "\\`", "`")

func unescape(s string) string { return unescaper.Replace(s) }

// ambiguous says how often and where a text was found.
func (e *editor) ambiguous(m matches) error {
	var lines []string
	line, from := 1, 0
	for _, at := range m.at[:min(len(m.at), 20)] {
		line += strings.Count(m.text[from:at], "\n")
		from = at
		lines = append(lines, fmt.Sprint(line))
	}
	if len(m.at) > len(lines) {
		lines = append(lines, "…")
	}
	n := fmt.Sprint(len(m.at))
	if len(m.at) == maxCount {
		n += " or more"
	}
	return fmt.Errorf("old_string occurs %s times, at lines %s: add lines around it until it is unique, or set replace_all", n, strings.Join(lines, ", "))
}
