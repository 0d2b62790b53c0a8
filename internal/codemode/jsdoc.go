package codemode

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"capstan/internal/msg"
)

const (
	// maxToolDoc and maxParamDoc bound, in bytes, what is shown of the
	// description of a tool and of one of its parameters. What the raw schema
	// says beyond that is told by tool_search.
	maxToolDoc  = 8 << 10
	maxParamDoc = 1 << 10
)

// docLines makes a description fit for a comment: its lines without trailing
// space, never two empty ones in a row.
func docLines(s string, limit int) string {
	var lines []string
	all := strings.Split(cutDoc(s, limit), "\n")
	indent := commonIndent(all[1:])
	for i, line := range all {
		if i > 0 {
			line = strings.TrimPrefix(line, indent)
		}
		line = strings.TrimRight(commentText(line), " ")
		if line == "" && (len(lines) == 0 || lines[len(lines)-1] == "") {
			continue
		}
		lines = append(lines, line)
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// commonIndent is the blanks that all lines with text start with.
func commonIndent(lines []string) string {
	indent, found := "", false
	for _, line := range lines {
		text := strings.TrimLeft(line, " \t")
		if text == "" {
			continue
		}
		blanks := line[:len(line)-len(text)]
		for found && !strings.HasPrefix(blanks, indent) {
			indent = indent[:len(indent)-1]
		}
		if !found {
			indent, found = blanks, true
		}
	}
	return indent
}

// docLine makes a description fit for a comment on one line.
func docLine(s string, limit int) string {
	return cutDoc(strings.Join(strings.Fields(commentText(cutDoc(s, 4*limit))), " "), limit)
}

// commentText makes foreign text harmless inside /* */ and inside a Markdown
// fence: no end of the comment, no fence, no invisible or reordering
// characters, no line breaks of JavaScript's own.
func commentText(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r' || r == 0x2028 || r == 0x2029 || r == 0x85:
			return ' '
		case msg.Invisible(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	s = strings.ReplaceAll(s, "```", "'''")
	s = strings.ReplaceAll(s, "*/", `*\/`)
	if strings.HasSuffix(s, "*") { // what follows could be the slash
		s += " "
	}
	return s
}

// cutDoc cuts s at a rune boundary, and says so.
func cutDoc(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}

// quoteTS writes s as a TypeScript string literal in which every character
// that could do harm is escaped.
func quoteTS(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '`' && strings.HasPrefix(s[i:], "```"):
			b.WriteString("\\u0060")
		case r == '*' && strings.HasPrefix(s[i:], "*/"): // the literal may stand in a comment
			b.WriteString("\\u002a")
		case msg.Invisible(r), r == 0x2028, r == 0x2029:
			if r > 0xffff {
				fmt.Fprintf(&b, `\u{%x}`, r)
			} else {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// propertyName writes a property name, quoted when it is no identifier.
// Reserved words need no quotes there.
func propertyName(name string) string {
	if isTSIdentifier(name) {
		return name
	}
	return quoteTS(name)
}

func isTSIdentifier(s string) bool {
	for i, r := range s {
		letter := r == '_' || r == '$' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}
