package builtin

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// maxOpen bounds the elements that are open in one another and looked at. Start
// tags beyond it are passed over, so what is hidden may end too early.
const maxOpen = 1 << 16

// A stretch is a part of a page that is not read, from the beginning of a tag
// to where its element ends.
type stretch struct{ from, to int }

// The elements that hold what is not for reading, unless they are never closed:
// then what follows them is the page.
var fallback = names("object canvas video audio select template")

// The elements without an end tag, and those whose end tag may be left out.
var (
	void     = names("area base br col embed hr img input link meta param source track wbr")
	optional = names("p li dt dd tr td th thead tbody tfoot option optgroup")
)

// implied says which elements the start tag of another one ends.
var implied = func() map[string]map[string]bool {
	p, item, term := names("p"), names("li p"), names("dt dd p")
	cell, row, part := names("td th p"), names("td th tr p"), names("td th tr thead tbody tfoot p")
	out := map[string]map[string]bool{
		"li": item, "dt": term, "dd": term, "td": cell, "th": cell, "tr": row, "thead": part, "tbody": part, "tfoot": part,
		"option": names("option"), "optgroup": names("option optgroup"),
	}
	for _, set := range []map[string]bool{blocks, layout} {
		for name := range maps.Keys(set) {
			if name != "caption" && name != "body" && name != "html" {
				out[name] = p
			}
		}
	}
	return out
}()

// nextTag is z.Next, but for the content of noscript: no script is run here, so
// it is part of the page.
func nextTag(z *html.Tokenizer) html.TokenType {
	t := z.Next()
	if t == html.StartTagToken {
		const name = "noscript"
		if raw := z.Raw(); len(raw) > len(name) && bytes.EqualFold(raw[1:1+len(name)], []byte(name)) {
			z.NextIsNotRawText()
		}
	}
	return t
}

// An outline finds the stretches of a page in one pass over its tags. What is
// open is on a stack, so an end tag that is missing hides no more than up to the
// end of the element around it, and nothing when it may not be missing.
type outline struct {
	open    []opened
	count   map[string]int // of open, by name
	foreign int            // of open: svg and math
	found   []stretch
}

// An opened is an element that has begun.
type opened struct {
	name   string
	at     int
	hidden bool // nothing of it is read
}

// stretches returns what is not read of a page, by where it begins. The only
// error is that of ctx.
func stretches(ctx context.Context, src string) ([]stretch, error) {
	o := &outline{count: map[string]int{}}
	z := html.NewTokenizer(strings.NewReader(src))
	for n, pos := 0, 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		t, at := nextTag(z), pos
		pos += len(z.Raw())
		switch t {
		case html.ErrorToken: // the end
			o.pop(0, len(src))
			slices.SortFunc(o.found, func(a, b stretch) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
			return o.found, nil
		case html.StartTagToken, html.SelfClosingTagToken:
			o.start(z, at, pos, t == html.SelfClosingTagToken)
		case html.EndTagToken:
			name, _ := z.TagName()
			o.finish(string(name), at, pos)
		}
	}
}

func (o *outline) start(z *html.Tokenizer, at, after int, closed bool) {
	raw, more := z.TagName()
	name := string(raw)
	hidden := fallback[name] || more && concealed(name, attributes(z, "hidden", "aria-hidden", "style"))
	drawing := name == "svg" || name == "math"
	if void[name] || closed && (drawing || o.foreign > 0) { // HTML's own elements do not close themselves
		if hidden {
			o.found = append(o.found, stretch{at, after})
		}
		return
	}
	o.imply(name, at)
	if len(o.open) == maxOpen {
		return
	}
	o.open = append(o.open, opened{name, at, hidden})
	o.count[name]++
	if drawing {
		o.foreign++
	}
}

// imply ends what the start of an element ends, within the innermost block. It
// looks at the innermost elements only: more of them are no page's own doing.
func (o *outline) imply(name string, at int) {
	ends := implied[name]
	from := len(o.open)
	for i := len(o.open) - 1; i >= max(0, len(o.open)-16) && ends != nil; i-- {
		switch in := o.open[i].name; {
		case ends[in]:
			from = i
		case implied[in] != nil || in == "object" || in == "button":
			ends = nil
		}
	}
	o.pop(from, at)
}

// finish ends the innermost element of a name. Elements in it whose end tag may
// be left out end there too.
func (o *outline) finish(name string, at, after int) {
	if o.count[name] == 0 {
		return
	}
	i := len(o.open) - 1
	for o.open[i].name != name {
		i--
	}
	if e := o.open[i]; e.hidden {
		o.found = append(o.found, stretch{e.at, after})
		o.open[i].hidden = false
	}
	o.pop(i, at)
}

// pop takes the elements from the i-th on off the stack; they end at a place.
func (o *outline) pop(i, at int) {
	for _, e := range o.open[i:] {
		if e.hidden && optional[e.name] {
			o.found = append(o.found, stretch{e.at, at})
		}
		if o.count[e.name]--; o.count[e.name] == 0 {
			delete(o.count, e.name) // names are the page's own
		}
		if e.name == "svg" || e.name == "math" {
			o.foreign--
		}
	}
	o.open = o.open[:i]
}

// concealed says whether an element's own attributes keep it from readers. A
// whole page is not taken for hidden: scripts show it, which are not run. Nor is
// a picture that is hidden from screen readers alone: its text is all that is
// read of it here.
func concealed(name string, a map[string]string) bool {
	if name == "html" || name == "body" {
		return false
	}
	if v, ok := a["hidden"]; ok && !strings.EqualFold(v, "until-found") {
		return true
	}
	if name != "img" && strings.EqualFold(strings.TrimSpace(a["aria-hidden"]), "true") {
		return true
	}
	none := false
	for d := range strings.SplitSeq(a["style"], ";") {
		property, value, _ := strings.Cut(d, ":")
		if strings.EqualFold(strings.TrimSpace(property), "display") {
			value, _, _ = strings.Cut(value, "!")
			none = strings.EqualFold(strings.TrimSpace(value), "none") // the last one counts
		}
	}
	return none
}

// unseen says whether a character changes how others are shown, or hides in
// them: control characters, those of writing direction, and tags. None of them
// is anything that a page says.
func unseen(r rune) bool {
	switch {
	case r == '\t' || r == '\n' || r == '\r' || r == '\f':
		return false
	case r < ' ', r >= 0x7f && r <= 0x9f:
		return true
	}
	return r == 0x061c || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r >= 0xe0000 && r <= 0xe007f
}

// visible returns a text without what is unseen.
func visible(s string) string {
	if !strings.ContainsFunc(s, unseen) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unseen(r) {
			return -1
		}
		return r
	}, s)
}
