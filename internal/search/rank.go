package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
)

// maxHits bounds what one search returns.
const maxHits = 200

// Hit is a document found.
type Hit struct {
	Name string
	// Exact says that the query is this tool's name, registered or short, but
	// for case and separators.
	Exact bool
	// Score says how well a hit fits within one search; it has no unit and no
	// upper bound. Hits found by name, and those for another sentence of a long
	// message, may stand before others of a higher score.
	Score float64
}

// Search returns at most limit hits (at most 200), the best first. keep says
// which names may be shown; nil keeps all.
//
// A name that equals the query but for case and separators is always first, the
// registered name before the short one, then come names that begin with it if
// it is no word of its own. A word written as +word has to be in every hit, in
// any field. Words that no document has are taken for misspelled or cut ones.
// Of a message of several sentences each one gets hits. Equal scores are in
// order of names.
func (x *Index) Search(text string, limit int, keep func(name string) bool) []Hit {
	st := x.state.Load()
	limit = min(limit, maxHits)
	if st == nil || limit <= 0 {
		return nil
	}
	w := x.tuning()
	r := ranker{st: st, w: w, q: parse(text, w), scratch: borrow(st.docs)}
	defer pool.Put(r.scratch)
	r.resolve()
	for i := range r.q.terms {
		r.score(&r.q.terms[i], r.q.terms[i].of == i)
	}
	r.byName()
	r.require()
	if r.pairs && w.feedback > 0 {
		for _, t := range r.feedback(keep) {
			r.score(&t, false)
		}
	}
	return r.best(limit, keep)
}

// ranker is one search. Documents are numbered across segments.
type ranker struct {
	st *state
	w  *weights
	q  query
	*scratch
	pairs bool // the query has terms of a script without spaces
}

// scratch is the memory of one search, by document.
type scratch struct {
	scores []float32
	inName []uint16 // words of the query in the name
	tier   []uint8
	slot   []uint8 // place among the candidates, plus one
}

// Tiers: a better one comes first whatever the score.
const (
	tierNone   = iota // not to be shown
	tierScore         // by words
	tierPrefix        // the name begins with the query
	tierOwn           // the query is the short name
	tierFull          // the query is the registered name
)

var pool = sync.Pool{New: func() any { return new(scratch) }}

func borrow(docs int) *scratch {
	s := pool.Get().(*scratch)
	if cap(s.scores) < docs {
		*s = scratch{make([]float32, docs), make([]uint16, docs), make([]uint8, docs), make([]uint8, docs)}
	}
	s.scores, s.inName, s.tier, s.slot = s.scores[:docs], s.inName[:docs], s.tier[:docs], s.slot[:docs]
	clear(s.slot)
	clear(s.scores)
	clear(s.inName)
	for i := range s.tier {
		s.tier[i] = tierScore
	}
	return s
}

// df is the number of documents with a term.
func (st *state) df(term string) int {
	n := 0
	for _, s := range st.segments {
		if t, ok := s.terms[term]; ok {
			n += len(s.list(t))
		}
	}
	return n
}

func (r *ranker) idf(df int) float32 {
	n := float64(df)
	return float32(math.Log1p((float64(r.st.docs) - n + 0.5) / (n + 0.5)))
}

// find looks a term up in all segments.
func (r *ranker) find(t *term) {
	base := int32(0)
	for _, s := range r.st.segments {
		if n, ok := s.terms[t.text]; ok {
			list := s.list(n)
			t.found = append(t.found, postings{base, list})
			t.df += len(list)
		}
		base += int32(len(s.docs))
	}
}

// resolve looks the terms up and adds what unknown words may have meant.
func (r *ranker) resolve() {
	tried := 0
	for i, n := 0, len(r.q.terms); i < n; i++ {
		t := &r.q.terms[i]
		r.find(t)
		if t.kind == pair && t.df > 0 {
			r.pairs = true
		}
		if t.of != i {
			continue
		}
		if t.kind == word && t.df == 0 && r.q.words <= r.w.brief && tried < maxNear {
			tried++
			for _, text := range r.st.near(t.text) {
				guess := term{text: text, weight: r.q.terms[i].weight * r.w.near, of: -1}
				r.find(&guess)
				r.q.terms = append(r.q.terms, guess)
			}
		}
	}
}

// score adds what one term is worth to the documents that have it.
func (r *ranker) score(t *term, own bool) {
	if t.df == 0 {
		return
	}
	own = own && t.kind != single
	worth := r.worth(t)
	for _, f := range t.found {
		for _, p := range f.list {
			doc := f.base + p.doc()
			r.scores[doc] += worth * (r.w.k1 + 1) * p.tf / (p.tf + r.w.k1)
			if own && p.inName() {
				r.inName[doc]++
			}
		}
	}
}

// worth is what a term is worth at most, but for saturation.
func (r *ranker) worth(t *term) float32 {
	idf := r.idf(t.df)
	if t.of >= 0 { // a rare synonym is worth no more than the word itself
		if of := r.q.terms[t.of].df; of > 0 {
			idf = min(idf, r.idf(of))
		}
	}
	return t.weight * idf
}

// prefixFactor is what a name that begins with the query, which is a word, counts
// more; namedBonus is more than words usually bring: a tool's name among other
// words is meant.
const (
	prefixFactor = 1.5
	namedBonus   = 30
)

// byName adds what names tell: exact ones, prefixes, names among other words, and
// how much of the name is in the query.
func (r *ranker) byName() {
	prefix := len(r.q.key) >= 3 && r.q.words <= 3
	first := prefix && (r.q.words == 1 && len(r.q.named) > 0 || !r.known())
	base := 0
	for _, s := range r.st.segments {
		for i := range s.docs {
			doc, d := base+i, &s.docs[i]
			if r.inName[doc] > 0 {
				r.scores[doc] *= 1 + r.w.cover*float32(r.inName[doc])/d.words
			}
			switch {
			case first && (strings.HasPrefix(d.own, r.q.key) || strings.HasPrefix(d.full, r.q.key)):
				r.tier[doc] = tierPrefix
			case prefix && strings.HasPrefix(d.own, r.q.key):
				r.scores[doc] *= prefixFactor
			}
		}
		r.exact(s, base)
		base += len(s.docs)
	}
}

// exact finds the names of one segment, whose documents begin at base.
func (r *ranker) exact(s *segment, base int) {
	for _, name := range r.q.named {
		for _, doc := range s.names[name] {
			r.scores[base+int(doc)] += namedBonus
		}
	}
	if r.q.key == "" { // a name of signs alone
		return
	}
	for _, doc := range s.names[r.q.key] {
		r.tier[base+int(doc)] = tierOwn
		if s.docs[doc].full == r.q.key {
			r.tier[base+int(doc)] = tierFull
		}
	}
}

// known says that every word of the query is one of the index.
func (r *ranker) known() bool {
	for i, t := range r.q.terms {
		if t.of == i && t.df == 0 {
			return false
		}
	}
	return true
}

// require drops the documents without a required word.
func (r *ranker) require() {
	for _, must := range r.q.required {
		at := slices.IndexFunc(r.q.terms, func(t term) bool { return t.text == must })
		has := make([]bool, r.st.docs)
		if at >= 0 {
			for _, f := range r.q.terms[at].found {
				for _, p := range f.list {
					has[f.base+p.doc()] = true
				}
			}
		}
		for doc, ok := range has {
			if !ok {
				r.tier[doc] = tierNone
			}
		}
	}
}

// feedback returns the terms that the best hits have in common beside the
// query's.
func (r *ranker) feedback(keep func(string) bool) []term {
	has := map[string]bool{}
	for _, t := range r.q.terms {
		has[t.text] = true
	}
	sum := map[string]float32{}
	for _, c := range r.top(r.w.tops, keep) {
		for _, p := range c.seg.pairs[c.local] {
			if !has[p.term] {
				sum[p.term] += c.score * p.tf / (p.tf + r.w.k1)
			}
		}
	}
	found := make([]term, 0, len(sum))
	for text, v := range sum {
		if v <= 0 {
			continue
		}
		t := term{text: text, kind: pair, of: -1}
		r.find(&t)
		t.weight = v * r.idf(t.df)
		found = append(found, t)
	}
	slices.SortFunc(found, func(a, b term) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.text, b.text))
	})
	found = found[:min(len(found), r.w.given)]
	for i := len(found) - 1; i >= 0; i-- { // the first last: the others are measured by it
		found[i].weight *= r.w.feedback / found[0].weight
	}
	return found
}

// candidate is a document in the running.
type candidate struct {
	seg   *segment
	doc   int32 // number across segments
	local int32
	tier  uint8
	score float32
}

func (c candidate) name() string { return c.seg.docs[c.local].name }

func (a candidate) compare(b candidate) int {
	if a.tier != b.tier {
		return cmp.Compare(b.tier, a.tier)
	}
	if a.score != b.score {
		return cmp.Compare(b.score, a.score)
	}
	return cmp.Compare(a.name(), b.name())
}

// top is the best n documents, in order, each name once.
func (r *ranker) top(n int, keep func(string) bool) []candidate {
	out := make([]candidate, 0, n+1)
	base := 0
	for _, s := range r.st.segments {
		for i := range s.docs {
			c := candidate{s, int32(base + i), int32(i), r.tier[base+i], r.scores[base+i]}
			if c.tier == tierNone || c.tier == tierScore && c.score <= 0 || len(out) == n && c.tier < out[n-1].tier {
				continue
			}
			if len(out) == n && c.compare(out[n-1]) >= 0 || keep != nil && !keep(c.name()) {
				continue
			}
			out = insert(out, c, n)
		}
		base += len(s.docs)
	}
	return out
}

// insert puts c into its place among the best n, instead of a worse one of the
// same name.
func insert(out []candidate, c candidate, n int) []candidate {
	for i := range out {
		if out[i].seg == c.seg || out[i].name() != c.name() { // a segment has each name once
			continue
		}
		if out[i].compare(c) <= 0 {
			return out
		}
		out = slices.Delete(out, i, i+1)
		break
	}
	at, _ := slices.BinarySearchFunc(out, c, candidate.compare)
	out = slices.Insert(out, at, c)
	return out[:min(len(out), n)]
}

func (r *ranker) best(limit int, keep func(string) bool) []Hit {
	var hits []Hit
	for _, c := range r.pick(limit, keep) {
		hits = append(hits, Hit{Name: c.name(), Exact: c.tier >= tierOwn, Score: float64(c.score)})
	}
	return hits
}
