package builtin

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
)

// inline reads the start tag of an element within a line.
func (m *markdown) inline(z *html.Tokenizer, name string) {
	switch {
	case name == "a":
		m.finishSpan("a")
		if href := m.href(attributes(z, "href")["href"]); href != "" {
			m.spans = append(m.spans, span{kind: "a", open: "[", close: "](" + href + ")", count: 1})
		}
	case marks[name] != "":
		mark := marks[name]
		for i := range m.spans {
			if m.spans[i].kind == mark {
				m.spans[i].count++
				return
			}
		}
		m.spans = append(m.spans, span{kind: mark, open: mark, close: mark, count: 1})
	case codes[name]:
		if m.code == nil {
			m.code = &strings.Builder{}
		}
	case name == "img":
		a := attributes(z, "alt", "src")
		alt := strings.Join(strings.Fields(visible(a["alt"])), " ")
		if src := m.href(a["src"]); alt != "" && src != "" {
			m.word("![" + alt + "](" + src + ")")
		} else if alt != "" {
			m.word(alt)
		}
	}
}

// href makes the address of a link absolute, or returns "" for one that leads
// nowhere else.
func (m *markdown) href(ref string) string {
	ref = strings.TrimSpace(ref)
	if ref == "" || ref[0] == '#' || len(ref) > maxHref {
		return ""
	}
	u, err := m.base.Parse(ref)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" {
		return ""
	}
	s := u.String()
	if len(s) > maxHref || strings.ContainsAny(s, " \t\r\n\f<>") || strings.ContainsFunc(s, unseen) {
		return ""
	}
	return strings.NewReplacer("(", "%28", ")", "%29", "|", "%7C").Replace(s)
}

// words takes text in which white space means only that words end.
func (m *markdown) words(b []byte) {
	if m.pre != nil {
		m.pre.Write(b)
		return
	}
	for len(b) > 0 {
		n := bytes.IndexAny(b, " \t\n\r\f")
		if n < 0 {
			n = len(b)
		}
		if n > 0 {
			m.take(string(b[:n]))
		}
		if b = b[n:]; len(b) > 0 {
			b = bytes.TrimLeft(b, " \t\n\r\f")
			m.gap()
		}
	}
}

func (m *markdown) take(word string) {
	if m.table != nil && m.table.open {
		word = strings.ReplaceAll(word, "|", `\|`)
	}
	if m.code != nil {
		m.code.WriteString(word)
		return
	}
	m.word(word)
}

func (m *markdown) gap() {
	if m.code == nil {
		m.space = true
	} else if s := m.code.String(); s != "" && !strings.HasSuffix(s, " ") {
		m.code.WriteByte(' ')
	}
}

// word writes text, after what has to come before it.
func (m *markdown) word(s string) {
	if m.newlines > 0 || len(m.out) == 0 {
		m.line()
	} else if m.space {
		m.out = append(m.out, ' ')
	}
	m.space = false
	for i := range m.spans {
		if sp := &m.spans[i]; !sp.written {
			m.out = append(m.out, sp.open...)
			sp.written = true
		}
	}
	m.out = append(m.out, s...)
}

// closeSpans writes the closing marks of what is open. A link ends there; marks
// of emphasis begin anew with the next text.
func (m *markdown) closeSpans() {
	keep := m.spans[:0]
	for i := len(m.spans) - 1; i >= 0; i-- {
		if m.spans[i].written {
			m.out = append(m.out, m.spans[i].close...)
		}
	}
	for _, s := range m.spans {
		if s.kind == "a" && s.written {
			continue
		}
		s.written = false
		keep = append(keep, s)
	}
	m.spans = keep
}

// finishSpan ends one kind of span. Those that began in it are closed, and open
// anew with the next text.
func (m *markdown) finishSpan(kind string) {
	for i := range m.spans {
		s := &m.spans[i]
		if s.kind != kind {
			continue
		}
		if s.count--; s.count > 0 {
			return
		}
		m.endCode()
		for j := len(m.spans) - 1; j >= i; j-- {
			if sp := &m.spans[j]; sp.written {
				m.out = append(m.out, sp.close...)
				sp.written = false
			}
		}
		m.spans = append(m.spans[:i], m.spans[i+1:]...)
		return
	}
}

func (m *markdown) endInline() {
	m.endCode()
	m.closeSpans()
}

// endCode writes inline code, in as many backticks as it needs.
func (m *markdown) endCode() {
	if m.code == nil {
		return
	}
	s := strings.TrimSpace(m.code.String())
	m.code = nil
	if s == "" {
		return
	}
	fence := strings.Repeat("`", longestRun(s)+1)
	if s[0] == '`' || s[len(s)-1] == '`' {
		s = " " + s + " "
	}
	m.word(fence + s + fence)
}

// longestRun is the length of the longest run of backticks.
func longestRun(s string) int {
	best, run := 0, 0
	for i := range len(s) {
		if s[i] != '`' {
			run = 0
			continue
		}
		run++
		best = max(best, run)
	}
	return best
}
