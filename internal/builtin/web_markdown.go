package builtin

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"capstan/internal/msg"
)

// The bounds of what is made of hostile HTML. Elements beyond them are read as
// if they were not there; their text stays.
const (
	maxContainers = 64   // lists, their items, quotes and headings in one another
	maxHref       = 2000 // bytes of a link's address
	maxTitle      = 300  // bytes
	maxTables     = 5000 // that are looked into before they are written
)

// A markdown makes Markdown of HTML in one pass over its tokens. There is no
// tree, so depth costs nothing, and every step is linear in what it reads: a
// page may be as broken or as hostile as it likes. Nothing is escaped, since
// the text is for reading and not for rendering.
type markdown struct {
	base  *url.URL
	based bool // base is the page's own word
	limit int  // of out, in bytes
	cut   bool
	title string

	src  string    // what is being read
	pos  int       // how far in src the tokenizer is
	left []stretch // of src, what is not read; those that are over are taken off

	out      []byte
	newlines int  // to be written before the next text: 1 ends the line, 2 the block
	space    bool // white space is to be written before the next text

	stack []container
	deep  int // containers beyond maxContainers
	spans []span
	code  *strings.Builder // text of an inline code element
	pre   *strings.Builder // text of a preformatted element
	lang  string           // of pre
	skip  string           // the element whose content is left out
	skips int              // how many of them are open
	table *table
	seen  int // tables
}

// A container is an element that begins lines with something.
type container struct {
	name        string
	first, rest string // at the beginning of its first line, of later ones
	begun       bool   // first was written
	n           int    // of ol: the next number
}

// A span is an inline element that has marks around its text. Its opening mark
// is written with its first text, and it is closed at the end of a block.
type span struct {
	kind        string
	open, close string
	count       int // how often the element is open in itself
	written     bool
}

// A table is a data table that is being written.
type table struct {
	rows, cells int
	open        bool // a row is
}

func newMarkdown(base *url.URL, limit int) *markdown { return &markdown{base: base, limit: limit} }

// convert reads a page. The only error is that of ctx.
func (m *markdown) convert(ctx context.Context, src string) error {
	m.src = src
	var err error
	if m.left, err = stretches(ctx, src); err != nil {
		return err
	}
	z := html.NewTokenizer(strings.NewReader(src))
	for n := 0; len(m.out) < m.limit; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		t, at := nextTag(z), m.pos
		m.pos += len(z.Raw())
		if t != html.ErrorToken && m.leftOut(at) {
			continue
		}
		switch t {
		case html.ErrorToken: // the end; a string has no other
			m.end()
			return nil
		case html.TextToken:
			if m.skip == "" {
				m.words([]byte(visible(string(z.Text()))))
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			m.start(z, t == html.SelfClosingTagToken)
		case html.EndTagToken:
			name, _ := z.TagName()
			m.finish(string(name))
		}
	}
	m.end()
	return nil
}

// leftOut says whether a place is in a stretch that is not read.
func (m *markdown) leftOut(at int) bool {
	for len(m.left) > 0 && m.left[0].to <= at {
		m.left = m.left[1:]
	}
	return len(m.left) > 0 && m.left[0].from <= at
}

// end writes what is still open, and cuts what is too much.
func (m *markdown) end() {
	m.endCode()
	m.endPre()
	m.closeSpans()
	m.endRow()
	if len(m.out) >= m.limit {
		m.out, m.cut = msg.WholeRunes(m.out[:m.limit]), true
	}
}

func (m *markdown) text() string { return string(m.out) }

// The elements by what they do to the text around them.
var (
	skipped = names("script style svg math iframe textarea noembed noframes") // but for fallback and what is concealed
	blocks  = names("p div section article header footer main aside nav figure figcaption address form fieldset legend details summary body html caption dialog center hgroup search menu")
	lists   = names("ul ol dl")
	// breakout are tags that no drawing or formula has in it.
	breakout = names("p div body table ul ol h1 h2 h3 h4 h5 h6 blockquote pre hr")
	// layout are elements that do not fit into a cell of a Markdown table.
	layout = names("table ul ol dl pre blockquote h1 h2 h3 h4 h5 h6 hr form")
	marks  = map[string]string{"b": "**", "strong": "**", "i": "*", "em": "*", "del": "~~", "s": "~~", "strike": "~~"}
	codes  = names("code kbd samp tt")
)

func names(list string) map[string]bool {
	set := map[string]bool{}
	for _, n := range strings.Fields(list) {
		set[n] = true
	}
	return set
}

// attributes reads those of the current tag that are asked for.
func attributes(z *html.Tokenizer, want ...string) map[string]string {
	got := map[string]string{}
	for more := true; more; {
		var k, v []byte
		k, v, more = z.TagAttr()
		for _, w := range want {
			if _, twice := got[w]; string(k) == w && !twice { // the first one counts
				got[w] = string(v)
			}
		}
	}
	return got
}

// start reads a start tag.
func (m *markdown) start(z *html.Tokenizer, closed bool) {
	raw, _ := z.TagName()
	name := string(raw)
	if m.skip != "" {
		if foreign := m.skip == "svg" || m.skip == "math"; !foreign || !breakout[name] {
			if name == m.skip && !closed {
				m.skips++
			}
			return
		}
		m.skip = ""
	}
	switch {
	case skipped[name]:
		if !closed || name != "svg" && name != "math" { // HTML's own elements do not close themselves
			m.skip, m.skips = name, 1
		}
	case name == "title":
		m.readTitle(z)
	case name == "base":
		if ref := attributes(z, "href")["href"]; ref != "" && !m.based && len(ref) <= maxHref {
			if u, err := m.base.Parse(ref); err == nil {
				m.base, m.based = u, true // the first one counts
			}
		}
	case m.pre != nil && name != "pre":
		m.inPre(z, name)
	case blocks[name]:
		m.block(2)
	case name == "br":
		m.lineBreak()
	case name == "hr":
		m.block(2)
		m.write("---")
		m.block(2)
	case name == "pre":
		m.block(2)
		m.endPre()
		m.pre, m.lang = &strings.Builder{}, language(attributes(z, "class")["class"])
	case name == "blockquote":
		m.block(2)
		m.push(container{name: name, first: "> ", rest: "> "})
	case lists[name]:
		m.list(z, name)
	case name == "li", name == "dd", name == "dt":
		m.item(name)
	case len(name) == 2 && name[0] == 'h' && name[1] >= '1' && name[1] <= '6':
		m.pop(heading)
		m.block(2)
		m.push(container{name: name, first: strings.Repeat("#", int(name[1]-'0')) + " "})
	case name == "table" || name == "tr" || name == "td" || name == "th":
		m.tableTag(name)
	default:
		m.inline(z, name)
	}
}

func (m *markdown) readTitle(z *html.Tokenizer) {
	if z.Next() != html.TextToken {
		m.pos += len(z.Raw())
		return
	}
	m.pos += len(z.Raw())
	if m.title == "" {
		title := strings.Join(strings.Fields(visible(string(z.Text()))), " ")
		m.title = strings.ToValidUTF8(title[:min(len(title), maxTitle)], "")
	}
}

// finish reads an end tag.
func (m *markdown) finish(name string) {
	if m.skip != "" {
		if name == m.skip {
			if m.skips--; m.skips == 0 {
				m.skip = ""
			}
		}
		return
	}
	switch {
	case name == "pre":
		m.endPre()
	case m.pre != nil:
	case name == "br": // as browsers take it
		m.lineBreak()
	case blocks[name]:
		m.block(2)
	case name == "blockquote", name == "li", name == "dd":
		m.pop(func(c *container) bool { return c.name == name })
		m.block(1)
	case lists[name]:
		m.pop(func(c *container) bool { return c.name == name })
		m.block(m.between())
	case len(name) == 2 && name[0] == 'h' && name[1] >= '1' && name[1] <= '6':
		m.pop(heading)
		m.block(2)
	case name == "tr":
		m.endRow()
	case name == "table":
		m.endRow()
		m.table = nil
		m.block(2)
	case codes[name]:
		m.endCode()
	case name == "a":
		m.finishSpan("a")
	case marks[name] != "":
		m.finishSpan(marks[name])
	}
}

func heading(c *container) bool { return c.name[0] == 'h' }

func isList(c *container) bool { return lists[c.name] }

// push opens a container, and pop closes the innermost one that f is true for,
// with all in it.
func (m *markdown) push(c container) {
	if len(m.stack) == maxContainers {
		m.deep++
		return
	}
	m.stack = append(m.stack, c)
}

func (m *markdown) pop(f func(*container) bool) {
	for i := len(m.stack) - 1; i >= 0; i-- {
		if f(&m.stack[i]) {
			if m.deep > 0 { // which of them it was does not matter
				m.deep--
				return
			}
			m.endInline()
			m.stack = m.stack[:i]
			return
		}
	}
}

// between is how much space there is around a list: none inside another one.
func (m *markdown) between() int {
	for i := range m.stack {
		if isList(&m.stack[i]) {
			return 1
		}
	}
	return 2
}

func (m *markdown) list(z *html.Tokenizer, name string) {
	m.block(m.between())
	c := container{name: name, n: 1}
	if n, err := strconv.Atoi(attributes(z, "start")["start"]); err == nil && n >= 0 && n < 1e9 {
		c.n = n
	}
	m.push(c)
}

// item begins an item of a list, and ends the one before it.
func (m *markdown) item(name string) {
	var in *container // the list that it is an item of
	for i := len(m.stack) - 1; i >= 0 && in == nil && m.deep == 0; i-- {
		switch c := &m.stack[i]; c.name {
		case "ul", "ol", "dl":
			in = c
		case "li", "dd":
			m.endInline()
			m.stack = m.stack[:i]
		}
	}
	m.block(1)
	mark := "- "
	switch {
	case name == "dt":
		return // the text that the next dd explains
	case name == "dd":
		mark = ": "
	case in != nil && in.name == "ol":
		mark = strconv.Itoa(in.n) + ". "
		in.n++
	}
	m.push(container{name: name, first: mark, rest: strings.Repeat(" ", len(mark))})
}

// block ends the line, and the block with n 2.
func (m *markdown) block(n int) {
	if m.pre != nil {
		return
	}
	m.endInline()
	m.space = true
	if m.table != nil && m.table.open || len(m.out) == 0 {
		return
	}
	if top := len(m.stack) - 1; top >= 0 && m.stack[top].first != "" && !m.stack[top].begun && m.newlines > 0 {
		return // its mark waits for text on this line
	}
	m.newlines = max(m.newlines, n)
}

// lineBreak ends the line within a block, where there can be one.
func (m *markdown) lineBreak() {
	top := len(m.stack) - 1
	if m.table != nil && m.table.open || top >= 0 && heading(&m.stack[top]) {
		m.space = true
		return
	}
	m.block(min(m.newlines+1, 2))
}

// write writes text on a line of its own.
func (m *markdown) write(s string) {
	m.line()
	m.out = append(m.out, s...)
}

// line begins a line.
func (m *markdown) line() {
	for ; m.newlines > 0; m.newlines-- {
		m.out = append(m.out, '\n')
		if m.newlines > 1 {
			m.out = append(m.out, strings.TrimRight(m.prefix(false), " ")...)
		}
	}
	m.out = append(m.out, m.prefix(true)...)
	m.space = false
}

// prefix is what a line begins with. With begin it is one of text, on which the
// marks are written that are still to come.
func (m *markdown) prefix(begin bool) string {
	if len(m.stack) == 0 {
		return ""
	}
	var b strings.Builder
	for i := range m.stack {
		c := &m.stack[i]
		if !begin && !c.begun {
			break // an empty line before it is not in it
		}
		if begin && !c.begun {
			b.WriteString(c.first)
			c.begun = true
		} else {
			b.WriteString(c.rest)
		}
	}
	return b.String()
}
