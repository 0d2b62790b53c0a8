package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

// Bounds of what is shown, in lines of a text: at first, and when the person
// asks for all of it.
const (
	short = 40
	whole = 20_000
)

// A page writes one question. Every line that holds something of the call
// begins with its margin, also where a long line is continued, so that no
// content can look like the question itself.
type page struct {
	width int
	color bool
	diff  string
	b     strings.Builder
	cut   bool
}

const (
	margin = "  | "
	indent = "  "
)

// question writes the question with at most limit lines of each text, and says
// whether something was left out.
func (p *page) question(q *sched.Question, limit int) (text string, cut bool) {
	p.begin()
	p.b.WriteString("\n--- Approval needed ---\n")
	p.body(q, limit)
	return p.b.String(), p.cut
}

func (p *page) begin() {
	p.b.Reset()
	p.cut = false
}

// body is what there is to know about the call.
func (p *page) body(q *sched.Question, limit int) {
	p.line("", title(q), "")
	if claims := q.Entry.Spec().Claims; len(claims) > 0 {
		p.line("", "Its server says: "+strings.Join(claims, "; "), "")
	}
	p.line("", "Why: "+orNone(q.Verdict.Reason), "")
	p.arguments(q.Call.Args, limit)
	if p.diff != "" {
		p.b.WriteString("Change:\n")
		p.block(p.diff, limit, p.paint)
	}
}

// title is the tool's true name, what people call it, and who calls.
func title(q *sched.Question) string {
	spec := q.Entry.Spec()
	s := "Tool: " + q.Call.Name
	if spec.Title != "" && spec.Title != q.Call.Name {
		s += " (" + spec.Title + ")"
	}
	if spec.Server != "" {
		s += ", of the MCP server " + spec.Server
	}
	if q.Call.Agent != "" {
		s += ", of the subagent " + q.Call.Agent
	}
	if q.Call.Source == tool.FromProgram {
		s += ", called by a program"
		if q.Call.ParentID != "" {
			s += " (" + q.Call.ParentID + ")"
		}
	} else if q.Call.ParentID != "" {
		s += ", called under " + q.Call.ParentID
	}
	return s
}

func orNone(s string) string {
	if s == "" {
		return "no reason was given"
	}
	return s
}

// arguments writes the canonical arguments, one after the other. Strings are
// shown as text, everything else as JSON.
func (p *page) arguments(args json.RawMessage, limit int) {
	members, ok := object(args)
	if !ok {
		p.b.WriteString("Arguments:\n")
		p.block(string(args), limit, nil)
		return
	}
	for _, m := range members {
		var s string
		if len(m.value) == 0 || m.value[0] != '"' || json.Unmarshal(m.value, &s) != nil {
			s = string(m.value)
		}
		if !strings.Contains(s, "\n") && len(s) < p.width-len(m.name)-len(indent)-2 {
			p.line(indent, m.name+": "+s, "")
			continue
		}
		p.line(indent, m.name+":", "")
		p.block(s, limit, nil)
	}
}

type member struct {
	name  string
	value json.RawMessage
}

// object takes an object apart in its own order, digits untouched.
func object(raw json.RawMessage) ([]member, bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	var out []member
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		var m member
		if err != nil || !ok || dec.Decode(&m.value) != nil {
			return nil, false
		}
		m.name = name
		out = append(out, m)
	}
	return out, true
}

// block writes a text of several lines behind the margin. Of a long one it
// leaves out the middle, and says so.
func (p *page) block(text string, limit int, paint func(string) string) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	head, tail := len(lines), len(lines)
	if len(lines) > limit {
		head, tail = limit*2/3, len(lines)-limit/3
		p.cut = true
	}
	for i, line := range lines {
		switch {
		case i == head:
			fmt.Fprintf(&p.b, "  ... %d more lines ...\n", tail-head)
		case i < head || i >= tail:
			color := ""
			if paint != nil {
				color = paint(line)
			}
			p.line(margin, p.clip(line, limit), color)
		}
	}
}

// maxLine bounds one line, in bytes, while not all is shown.
const maxLine = 2000

func (p *page) clip(s string, limit int) string {
	if limit == whole || len(s) <= maxLine {
		return s
	}
	p.cut = true
	head, tail := maxLine*2/3, len(s)-maxLine/3
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + fmt.Sprintf(" ... %d more bytes ... ", tail-head) + s[tail:]
}

// line writes one line, folded to the width, each part behind the prefix.
func (p *page) line(prefix, s, color string) {
	reset := ""
	if color != "" {
		reset = "\x1b[0m"
	}
	room := max(p.width-1-len(prefix), 10)
	p.b.WriteString(prefix + color)
	used := 0
	for _, unit := range visible(s) {
		if used+unit.cells > room && used > 0 {
			if prefix == "" {
				prefix = indent
				room -= len(indent)
			}
			p.b.WriteString(reset + "\n" + prefix + color)
			used = 0
		}
		p.b.WriteString(unit.text)
		used += unit.cells
	}
	p.b.WriteString(reset + "\n")
}

// paint is the colour of a line of a diff.
func (p *page) paint(line string) string {
	switch {
	case !p.color:
		return ""
	case strings.HasPrefix(line, "+"):
		return "\x1b[32m"
	case strings.HasPrefix(line, "-"):
		return "\x1b[31m"
	case strings.HasPrefix(line, "@@"):
		return "\x1b[36m"
	}
	return ""
}

// A unit is a character as it is shown, with at most so many cells.
type unit struct {
	text  string
	cells int
}

// maxMarks is how many combining marks may follow each other: more only paint
// over other lines.
const maxMarks = 3

// visible spells out whatever would act on the terminal or would not be seen:
// control characters, characters that turn the direction of text, zero-width
// and blank ones, bytes that are no UTF-8.
func visible(s string) []unit {
	out := make([]unit, 0, len(s))
	marks := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		mark := unicode.In(r, unicode.Mn, unicode.Me)
		if mark {
			marks++
		} else {
			marks = 0
		}
		text := s[i : i+n]
		switch {
		case r == '\t':
			text = "    "
		case r == utf8.RuneError && n == 1:
			text = fmt.Sprintf(`\x%02x`, s[i])
		case r == '\n':
			text = `\n`
		case r == '\r':
			text = `\r`
		case r == 0x1b:
			text = `\e`
		case hidden(r) || marks > maxMarks:
			text = fmt.Sprintf(`\u{%x}`, r)
		}
		u := unit{text, len(text)}
		if text == s[i:i+n] {
			u.cells = 1
			if mark {
				u.cells = 0
			} else if r >= 0x1100 { // what may be two cells wide
				u.cells = 2
			}
		}
		out = append(out, u)
		i += n
	}
	return out
}

// hidden says whether a character is not seen, or not seen for what it is.
func hidden(r rune) bool {
	switch r {
	case ' ', 0xfe0e, 0xfe0f: // the latter choose between text and emoji
		return false
	case 0x034f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2800, 0x3164, 0xffa0, 0xfffc: // letters and marks without a shape
		return true
	}
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Variation_Selector)
}
