package agent

import "strings"

// An importRef is a reference like @docs/style.md in a memory file.
type importRef struct {
	path string
	line int // counts from 1
}

// explicit says whether a reference can hardly be anything but a file. Others,
// @alice and @types/node say, name one only if there is one.
func (i importRef) explicit() bool {
	return document(i.path) || strings.HasPrefix(i.path, "/") || strings.HasPrefix(i.path, "~/") ||
		strings.HasPrefix(i.path, "./") || strings.HasPrefix(i.path, "../")
}

// findImports returns the references of a Markdown text, in its order: an @ at
// the beginning of a word, then a path up to white space (`\ ` is a space in
// it). What stands in a code span or a fenced block is an example and none.
func findImports(text string) []importRef {
	var found []importRef
	var fence string    // what closes the block that is open
	var para []string   // the lines of the paragraph so far
	var first, line int // its first line, and the current one
	flush := func() {
		found = append(found, spanImports(strings.Join(para, "\n"), first)...)
		para = para[:0]
	}
	for s := range strings.SplitSeq(text, "\n") {
		line++
		mark := fenceMark(s)
		switch {
		case fence != "":
			if strings.HasPrefix(mark, fence) && strings.TrimSpace(s) == mark {
				fence = ""
			}
		case mark != "" && !(mark[0] == '`' && strings.Contains(strings.TrimLeft(strings.TrimSpace(s), "`"), "`")):
			flush()
			fence = mark
		case strings.TrimSpace(s) == "":
			flush()
		default:
			if len(para) == 0 {
				first = line
			}
			para = append(para, s)
		}
	}
	flush()
	return found
}

// fenceMark returns the run of three or more backticks or tildes that a line
// begins with.
func fenceMark(s string) string {
	s = strings.TrimLeft(s, " \t>")
	for _, c := range []string{"`", "~"} {
		if n := len(s) - len(strings.TrimLeft(s, c)); n >= 3 {
			return s[:n]
		}
	}
	return ""
}

// spanImports returns the references of one paragraph, outside of its code
// spans.
func spanImports(s string, line int) []importRef {
	var found []importRef
	start := true // of a word
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '`':
			end := spanEnd(s, i)
			line += strings.Count(s[i:end], "\n")
			i, start = end, false
			continue
		case c == '@' && start:
			path, n := importPath(s[i+1:])
			if path != "" {
				found = append(found, importRef{path, line})
			}
			i, start = i+1+n, false
			continue
		case c == '\n':
			line++
			start = true
		default:
			start = c == ' ' || c == '\t' || c == '('
		}
		i++
	}
	return found
}

// spanEnd returns where the code span that begins at i ends. Backticks without
// their like are text.
func spanEnd(s string, i int) int {
	run := len(s) - i - len(strings.TrimLeft(s[i:], "`"))
	for at := i + run; ; {
		j := strings.IndexByte(s[at:], '`')
		if j < 0 {
			return i + run
		}
		at += j
		n := len(s) - at - len(strings.TrimLeft(s[at:], "`"))
		if at += n; n == run {
			return at
		}
	}
}

// importPath reads a path up to white space or a backtick, without the
// punctuation of the sentence around it, and returns how much it read.
func importPath(s string) (string, int) {
	var b strings.Builder
	n := 0
	for ; n < len(s); n++ {
		c := s[n]
		if c == '\\' && n+1 < len(s) && s[n+1] == ' ' {
			n++
			b.WriteByte(' ')
			continue
		}
		if c <= ' ' || c == '`' || c == '@' {
			break
		}
		b.WriteByte(c)
	}
	return strings.TrimRight(b.String(), ".,;:!?)]}>'\"*_"), n
}
