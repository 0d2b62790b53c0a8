package builtin

import (
	"strings"

	"golang.org/x/net/html"
)

// inPre reads a start tag in preformatted text, where only line breaks and the
// language matter.
func (m *markdown) inPre(z *html.Tokenizer, name string) {
	switch {
	case name == "br":
		m.pre.WriteByte('\n')
	case name == "code" && m.lang == "":
		m.lang = language(attributes(z, "class")["class"])
	case (blocks[name] || name == "tr" || name == "li") && m.pre.Len() > 0:
		if !strings.HasSuffix(m.pre.String(), "\n") { // a line of its own, as some highlighters make
			m.pre.WriteByte('\n')
		}
	}
}

// language finds the name of a language in the classes of a code block.
func language(class string) string {
	for _, c := range strings.Fields(class) {
		for _, prefix := range []string{"language-", "lang-", "highlight-source-"} {
			if name, ok := strings.CutPrefix(c, prefix); ok && name != "" && len(name) <= 30 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+#-_.") == "" {
				return name
			}
		}
	}
	return ""
}

// endPre writes preformatted text as a fenced block.
func (m *markdown) endPre() {
	if m.pre == nil {
		return
	}
	s := strings.ReplaceAll(strings.ReplaceAll(m.pre.String(), "\r\n", "\n"), "\r", "\n")
	s = strings.TrimRight(strings.TrimPrefix(s, "\n"), " \t\n") // HTML leaves the first line break out
	m.pre = nil
	if s == "" {
		return
	}
	fence := strings.Repeat("`", max(3, longestRun(s)+1))
	m.block(2)
	m.write(fence + m.lang)
	for line := range strings.SplitSeq(s, "\n") {
		if len(m.out) >= m.limit {
			return
		}
		m.newlines = 1
		m.write(line)
	}
	m.newlines = 1
	m.write(fence)
	m.block(2)
}

// tableTag reads the start tag of a table or of a part of one. A table of data
// becomes one of Markdown; of a table that only arranges things, each row is a
// line.
func (m *markdown) tableTag(name string) {
	if name == "table" {
		m.endRow()
		m.table = nil
		m.block(2)
		if m.seen++; m.seen <= maxTables && m.isData() {
			m.table = &table{}
		}
		return
	}
	switch t := m.table; {
	case t == nil && name == "tr":
		m.block(1)
	case t == nil:
		m.endInline()
		m.space = true
	case name == "tr":
		m.endRow()
	case !t.open:
		m.endInline()
		if t.rows > 0 || m.newlines == 0 && len(m.out) > 0 {
			m.newlines = 1
		}
		m.write("|")
		m.newlines, m.space, t.open, t.cells = 0, true, true, 1
	default:
		m.endInline()
		m.out = append(m.out, " |"...)
		m.space = true
		t.cells++
	}
}

// endRow ends the open row, and writes the line that Markdown wants below the
// first one.
func (m *markdown) endRow() {
	t := m.table
	if t == nil || !t.open {
		return
	}
	m.endInline()
	m.out = append(m.out, " |"...)
	if t.rows == 0 {
		m.newlines = 1
		m.write("|" + strings.Repeat(" --- |", t.cells))
	}
	t.open = false
	t.rows++
	m.newlines, m.space = 1, false
}

// isData looks ahead in the table that begins here: one of data has a row of
// several cells and nothing in them that needs lines of its own. The look ends
// at the next table, so that no part of a page is looked at more than once.
func (m *markdown) isData() bool {
	z := html.NewTokenizer(strings.NewReader(m.src[min(m.pos, len(m.src)):]))
	cells, wide := 0, false
	for {
		switch nextTag(z) {
		case html.ErrorToken:
			return false // it does not end
		case html.EndTagToken:
			if name, _ := z.TagName(); string(name) == "table" {
				return wide
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			name, _ := z.TagName()
			switch n := string(name); {
			case layout[n]:
				return false
			case n == "tr":
				cells = 0
			case n == "td" || n == "th":
				cells++
				wide = wide || cells > 1
			}
		}
	}
}
