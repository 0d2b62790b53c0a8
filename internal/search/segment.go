package search

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds on one document.
const (
	maxName   = 256  // bytes of a name, title or server
	maxTokens = 4000 // terms of one field
	maxPiece  = 4096 // postings in a piece of memory
)

// Bounds on one source. Beyond them a document is found by its name alone. The
// largest real set, of 4,074 tools, has 24,403 terms and 120,056 postings.
const (
	maxSourceTerms = 64 << 10
	maxSourcePosts = 512 << 10
	maxSourceBytes = 16 << 20 // of text and schemas
)

// segment holds the documents of one source. It never changes.
type segment struct {
	source string
	docs   []entry
	terms  map[string]int32   // term → number
	posts  []posting          // by term number, then by document
	starts []int32            // by term number: where its postings begin; then the end
	names  map[string][]int32 // squashed names, registered and short → documents
	words  []string           // the terms of scripts with spaces, sorted
	pairs  map[int32][]impact // by document: its terms of scripts without spaces
}

// entry is what a hit needs of a document.
type entry struct {
	name      string
	full, own string  // squashed registered name and the server's own name
	words     float32 // terms of the name
	labels    []int32 // terms of name, title and server by number, in order
}

// posting says that a document has a term, and whether its name has. tf is what
// its occurrences count, over all fields, before saturation.
type posting struct {
	docName uint32
	tf      float32
}

func (p posting) doc() int32   { return int32(p.docName >> 1) }
func (p posting) inName() bool { return p.docName&1 != 0 }

// list is the postings of a term, by number.
func (s *segment) list(n int32) []posting { return s.posts[s.starts[n]:s.starts[n+1]] }

// impact is the same seen from the document.
type impact struct {
	term string
	tf   float32
}

// build makes the segment of one source.
func build(source string, docs []Document, w *weights) *segment {
	words() // so that no search pays for reading the lists
	b := builder{w: w, dec: jsontext.NewDecoder(bytes.NewReader(nil)), scan: scanner{known: map[string]token{}}, seg: &segment{
		source: source,
		docs:   make([]entry, 0, len(docs)),
		terms:  map[string]int32{},
		names:  make(map[string][]int32, len(docs)),
		pairs:  map[int32][]impact{},
	}}
	seen := make(map[string]bool, len(docs))
	for i := range docs {
		if d := &docs[i]; !seen[d.Name] {
			seen[d.Name] = true
			b.add(d)
		}
	}
	b.finish()
	return b.seg
}

// builder adds one document after another to a segment.
type builder struct {
	w    *weights
	seg  *segment
	scan scanner
	kind []kind   // by term number
	df   []int32  // by term number
	made [][]made // by document, in pieces that need not move when there are more
	dec  *jsontext.Decoder

	// The document at hand: its terms, and by term number where they stand in
	// counts, plus one.
	counts []count
	where  []int32

	labels []int32 // of all documents

	posts, bytes int // made and read until now
}

// made is a posting before it has its place.
type made struct {
	term int32
	posting
}

// count says how often a document has a term.
type count struct {
	term int32
	in   [fields]uint16
}

func (b *builder) add(d *Document) {
	if b.full() {
		d = &Document{Name: d.Name, Short: d.Short}
	}
	b.bytes += size(d)
	doc := int32(len(b.seg.docs))
	b.counts = b.counts[:0]
	var lengths [fields]float32
	for f, texts := range b.read(d) {
		lengths[f] = b.field(field(f), texts)
	}
	short := d.Short
	if short == "" {
		short = d.Name
	}
	e := entry{name: d.Name, full: squash(clip(d.Name, maxName)), own: squash(clip(short, maxName)), words: lengths[fieldName]}
	b.seg.docs = append(b.seg.docs, e)
	b.seg.names[e.full] = append(b.seg.names[e.full], doc)
	if e.own != e.full {
		b.seg.names[e.own] = append(b.seg.names[e.own], doc)
	}
	b.post(doc, &lengths)
	b.label(doc)
}

// full says that the source has had its share.
func (b *builder) full() bool {
	return len(b.kind) > maxSourceTerms || b.posts > maxSourcePosts || b.bytes > maxSourceBytes
}

// size is about how many bytes of a document are read.
func size(d *Document) int {
	return min(len(d.Description), maxText) + min(len(d.ServerDescription), maxText) + min(len(d.Hint), maxText) + min(len(d.Schema), maxSchema)
}

// field counts the terms of the texts of one field and returns how many words
// they are.
func (b *builder) field(f field, texts []string) float32 {
	words, taken := 0, 0
	for _, text := range texts {
		b.scan.out = b.scan.out[:0]
		b.scan.scan(clip(text, maxText))
		before := ""
		for _, t := range b.scan.out {
			if taken++; taken > maxTokens {
				return float32(words)
			}
			b.count(t, f)
			if t.kind == word || t.kind == pair {
				words++
			}
			if f > fieldLead || t.kind != word {
				continue
			}
			if before != "" && len(before)+len(t.plain) <= maxWord { // file_system is found as filesystem
				b.count(b.scan.joined(before, t.plain), f)
			}
			before = t.plain
		}
	}
	return float32(words)
}

// count adds one occurrence of a term.
func (b *builder) count(t token, f field) {
	n := b.number(t)
	at := b.where[n]
	if at == 0 {
		b.counts = append(b.counts, count{term: n})
		at = int32(len(b.counts))
		b.where[n] = at
	}
	if in := &b.counts[at-1].in[f]; *in < maxTokens {
		*in++
	}
}

// number is that of a term, new or known.
func (b *builder) number(t token) int32 {
	if t.number != nil && *t.number > 0 {
		return *t.number - 1
	}
	n, ok := b.seg.terms[t.term]
	if !ok {
		n = int32(len(b.kind))
		b.seg.terms[strings.Clone(t.term)] = n // not a part of the description, which would be kept whole
		b.kind = append(b.kind, t.kind)
		b.df = append(b.df, 0)
		b.where = append(b.where, 0)
	}
	if t.number != nil {
		*t.number = n + 1
	}
	return n
}

// post turns the counts of a document into postings.
func (b *builder) post(doc int32, lengths *[fields]float32) {
	var scale, unbroken [fields]float32
	for f := range scale {
		norm := 1 - b.w.b + b.w.b*lengths[f]/b.w.typical[f]
		scale[f] = b.w.field[f] / norm
		unbroken[f] = b.w.unbroken[f] / norm
	}
	b.posts += len(b.counts)
	for _, c := range b.counts {
		b.where[c.term] = 0
		b.df[c.term]++
		by, p := &scale, posting{docName: uint32(doc) << 1}
		if k := b.kind[c.term]; k == pair || k == single {
			by = &unbroken
		}
		for f, n := range c.in {
			p.tf += by[f] * float32(n)
		}
		if c.in[fieldName] > 0 {
			p.docName |= 1
		}
		last := len(b.made) - 1
		if last < 0 || len(b.made[last]) == cap(b.made[last]) {
			b.made = append(b.made, make([]made, 0, min(64*cap(b.seg.docs), maxPiece)))
			last++
		}
		b.made[last] = append(b.made[last], made{c.term, p})
	}
}

// label keeps what tells the kin of a document.
func (b *builder) label(doc int32) {
	from := len(b.labels)
	for _, c := range b.counts {
		if k := b.kind[c.term]; k == word && c.in[fieldName]+c.in[fieldTitle]+c.in[fieldServer] > 0 {
			b.labels = append(b.labels, c.term)
		}
	}
	own := b.labels[from:len(b.labels):len(b.labels)]
	slices.Sort(own)
	b.seg.docs[doc].labels = own
}

// finish sorts the postings by term and makes what needs all terms.
func (b *builder) finish() {
	s := b.seg
	s.starts = make([]int32, len(b.df)+1)
	for n, df := range b.df {
		s.starts[n+1] = s.starts[n] + df
	}
	s.posts = make([]posting, s.starts[len(b.df)])
	next := slices.Clone(s.starts)
	for _, piece := range b.made {
		for _, m := range piece {
			s.posts[next[m.term]] = m.posting
			next[m.term]++
		}
	}
	for term, n := range s.terms {
		switch b.kind[n] {
		case word, whole:
			s.words = append(s.words, term)
		case pair:
			for _, p := range s.list(n) {
				s.pairs[p.doc()] = append(s.pairs[p.doc()], impact{term, p.tf})
			}
		}
	}
	slices.Sort(s.words)
}
