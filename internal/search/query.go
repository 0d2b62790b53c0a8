package search

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds on one query.
const (
	maxQuery  = 4 << 10 // bytes read
	maxTerms  = 256     // different terms, with all that is added to them
	maxQuotes = 200     // bytes between two quotes
	maxNear   = 4       // unknown words that spellings are looked for
	maxNamed  = 64      // words that look like names
	// maxRequired bounds the words with a plus; further ones count like others.
	maxRequired = 32
)

// Select parses the form `select:A,B`, which asks for tools by name instead of
// searching. It returns the names as written, without quotes and repetitions,
// and whether the query has that form; looking them up is the caller's, who
// knows the names in scope.
func Select(query string) (names []string, ok bool) {
	const prefix = "select:"
	query = strings.TrimSpace(query)
	if len(query) < len(prefix) || !strings.EqualFold(query[:len(prefix)], prefix) {
		return nil, false
	}
	for name := range strings.SplitSeq(query[len(prefix):], ",") {
		name = strings.TrimSpace(strings.Trim(strings.TrimSpace(name), "\"'`"))
		if name != "" {
			names = appendNew(names, name)
		}
		if len(names) == maxTerms {
			break
		}
	}
	return names, true
}

// query is what a text asks for.
type query struct {
	terms    []term
	required []string // every hit has all of these
	key      string   // the whole query as a name
	named    []string // words that look like names, as names
	words    int      // words between blanks
	clauses  int      // sentences with a word in them
}

// term is one thing to look up.
type term struct {
	text   string
	kind   kind
	weight float32
	// of is the word it was made from, by number, or -1; it is its own for words
	// of the query, which alone say how much of the query a tool covers.
	of int
	// in are the clauses that have the word, a bit for each; the last bit is for
	// all after it.
	in uint16

	found []postings // filled by ranker.find
	df    int        // documents that have it
}

// postings are a term's in one segment, whose documents begin at base.
type postings struct {
	base int32
	list []posting
}

// parse reads a query.
func parse(text string, w *weights) query {
	text = strings.TrimSpace(strings.ToValidUTF8(clip(text, maxQuery), " "))
	p := parser{w: w, seen: map[string]int{}}
	p.q.key = squash(text)
	p.q.words = len(strings.Fields(text))
	for len(text) > 0 {
		before, inside, after := quotation(text)
		p.span(before, false)
		p.span(inside, true)
		text = after
	}
	if p.begun {
		p.q.clauses++
	}
	p.weigh()
	return p.q
}

// parser collects terms.
type parser struct {
	w     *weights
	q     query
	scan  scanner
	seen  map[string]int // term → place in list
	list  []mention
	next  []string // joined neighbours
	begun bool     // the clause has a word
}

// mention is a term and how often the query has it.
type mention struct {
	text          string
	kind          kind
	stop          bool
	plain, quoted int
	in            uint16
}

// span reads text that is in quotes or is not.
func (p *parser) span(text string, quoted bool) {
	before := "" // the last word, if nothing was left out since
	for f := range strings.FieldsSeq(text) {
		must := false
		if rest, ok := strings.CutPrefix(f, "+"); ok && startsWord(rest) {
			f, must = rest, true
		}
		p.scan.out = p.scan.out[:0]
		p.scan.scan(f)
		if name := squash(f); len(name) > 5 && len(p.scan.out) > 1 && len(p.q.named) < maxNamed {
			p.q.named = appendNew(p.q.named, name)
		}
		for _, t := range p.scan.out {
			p.mention(t, quoted)
			if must && t.kind != whole && !(t.kind == single && len(p.scan.out) > 1) && len(p.q.required) < maxRequired {
				p.q.required = appendNew(p.q.required, t.term)
			}
			if t.kind != word || words().stop[t.plain] {
				before = ""
				continue
			}
			if before != "" {
				p.next = append(p.next, stem(before+t.plain))
			}
			before = t.plain
		}
		if p.begun = p.begun || len(p.scan.out) > 0; p.begun && endsClause(f) {
			p.q.clauses++
			p.begun = false
		}
	}
}

// endsClause says that a word is the last of a sentence. Brackets and quotes may
// follow the sign.
func endsClause(word string) bool {
	word = strings.TrimRight(word, "\"'”’»)]*_")
	r, _ := utf8.DecodeLastRuneInString(word)
	return strings.ContainsRune(".?!;。？！", r)
}

func (p *parser) mention(t token, quoted bool) {
	at, ok := p.seen[t.term]
	if !ok {
		if len(p.list) == maxTerms {
			return
		}
		at = len(p.list)
		p.seen[t.term] = at
		p.list = append(p.list, mention{text: t.term, kind: t.kind, stop: words().stop[t.plain]})
	}
	p.list[at].in |= 1 << min(p.q.clauses, maxClauses-1)
	if quoted {
		p.list[at].quoted++
	} else {
		p.list[at].plain++
	}
}

// weigh turns mentions into terms: those of the query, then what is added.
func (p *parser) weigh() {
	if !slices.ContainsFunc(p.list, func(m mention) bool { return !m.stop }) {
		for i := range p.list {
			p.list[i].stop = false // nothing but stop words: they are what is asked for
		}
	}
	quotedOnly := !slices.ContainsFunc(p.list, func(m mention) bool { return m.plain > 0 && !m.stop })
	for _, m := range p.list {
		if m.stop && !slices.Contains(p.q.required, m.text) {
			continue
		}
		n, in := float32(m.plain+m.quoted), float32(1)
		if m.plain == 0 && !quotedOnly {
			in = p.w.quoted
		}
		if m.kind == single {
			in *= p.w.single
		}
		p.q.terms = append(p.q.terms, term{text: m.text, kind: m.kind, weight: in * (1 + p.w.repeats) * n / (n + p.w.repeats), of: len(p.q.terms), in: m.in})
	}
	for of, t := range p.q.terms {
		if t.kind == word && t.weight > p.w.quoted {
			for _, s := range words().group[t.text] {
				p.add(term{text: s, weight: t.weight * p.w.synonym, of: of})
			}
		}
	}
	for _, text := range p.next {
		p.add(term{text: text, kind: whole, weight: p.w.joined, of: -1})
	}
}

// add appends a term that the query does not have itself.
func (p *parser) add(t term) {
	if _, own := p.seen[t.text]; own || len(p.q.terms) >= maxTerms {
		return
	}
	p.seen[t.text] = 0
	p.q.terms = append(p.q.terms, t)
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

func startsWord(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return classify(r) != classNone
}

// quotation finds the first text in quotes. An apostrophe inside a word is none.
func quotation(text string) (before, inside, after string) {
	last := ' '
	for i, r := range text {
		end := closing(r)
		free := !unicode.IsLetter(last) && !unicode.IsDigit(last) || r >= utf8.RuneSelf
		last = r
		if end == 0 || !free {
			continue
		}
		from := i + utf8.RuneLen(r)
		for j, c := range clip(text[from:], maxQuotes) {
			to := from + j
			rest := text[to+utf8.RuneLen(c):]
			if c == end && (!startsWord(rest) || r >= utf8.RuneSelf) {
				return text[:i], text[from:to], rest
			}
		}
	}
	return text, "", ""
}

// closing is the quote that ends what r begins, or 0.
func closing(r rune) rune {
	switch r {
	case '"', '\'', '`':
		return r
	case '“':
		return '”'
	case '‘':
		return '’'
	case '«':
		return '»'
	case '「':
		return '」'
	case '『':
		return '』'
	case '《':
		return '》'
	}
	return 0
}
