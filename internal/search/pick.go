package search

import "slices"

// Bounds on picking.
const (
	maxPool    = 60 // candidates that are picked from
	maxClauses = 16 // told apart; the last has all after it
)

// pick is the best hits, in order.
//
// A long query of several sentences often asks for several tools. Ranked by the
// sum of its words, tools for the same sentence fill the list. So each hit is
// picked for itself: words that an earlier hit has count less, the sentence that
// fits a candidate best counts more, and an earlier hit carries its kin along,
// which are tools of the same source that are labelled alike.
func (r *ranker) pick(limit int, keep func(string) bool) []candidate {
	if r.q.clauses < 2 || r.q.words < r.w.long {
		return r.top(limit, keep)
	}
	all := r.top(max(limit, maxPool), keep)
	n := min(len(all), maxPool)
	p := newPicker(r, all[:n])
	var out []candidate
	for len(out) < min(limit, n) {
		out = append(out, p.next())
	}
	if limit > n {
		out = append(out, all[n:]...) // further down, who is first matters less
	}
	return out
}

// picker knows what each candidate has of each word of the query. A word stands
// for its synonyms too.
type picker struct {
	r      *ranker
	pool   []candidate
	picked []bool
	words  int
	has    []float32 // by candidate and word: what the word brought
	most   []float32 // by word: what it brings at most
	left   []float32 // by word: the share that still counts
	sum    []float32 // by candidate: what all words brought
	kin    []float32 // by candidate: what an earlier hit that is akin brings
	labels [][]label // by candidate
}

// label is a term of a candidate's name, title or server. Its rarity is a whole
// number, so that sums of them do not depend on the order of documents.
type label struct{ term, rarity int32 }

func newPicker(r *ranker, pool []candidate) *picker {
	n, words := len(pool), len(r.q.terms)
	p := &picker{
		r: r, pool: pool, picked: make([]bool, n), words: words,
		has: make([]float32, n*words), most: make([]float32, words), left: make([]float32, words),
		sum: make([]float32, n), kin: make([]float32, n), labels: make([][]label, n),
	}
	for i, c := range pool {
		r.slot[c.doc] = uint8(i + 1)
		for _, t := range c.seg.docs[c.local].labels {
			p.labels[i] = append(p.labels[i], label{t, int32(256 * r.idf(len(c.seg.list(t))))})
		}
	}
	for i := range r.q.terms {
		p.left[i] = 1
		p.read(i)
	}
	return p
}

// read adds what a term of the query brought to the candidates.
func (p *picker) read(i int) {
	t, word := &p.r.q.terms[i], i
	if t.df == 0 {
		return
	}
	if t.of >= 0 {
		word = t.of
	}
	worth := p.r.worth(t) * (p.r.w.k1 + 1)
	p.most[word] = max(p.most[word], worth)
	for _, f := range t.found {
		for _, post := range f.list {
			if at := int(p.r.slot[f.base+post.doc()]) - 1; at >= 0 {
				v := worth * post.tf / (post.tf + p.r.w.k1)
				p.has[at*p.words+word] += v
				p.sum[at] += v
			}
		}
	}
}

// next takes the best candidate that is left, of the best tier that is left.
func (p *picker) next() candidate {
	at, best := -1, float32(0)
	for i, c := range p.pool {
		if p.picked[i] {
			continue
		}
		if at >= 0 && c.tier < p.pool[at].tier {
			break
		}
		if s := p.score(i); at < 0 || s > best {
			at, best = i, s
		}
	}
	p.take(at)
	return p.pool[at]
}

// score is a candidate's own, less what earlier hits took of it, and its kin's.
func (p *picker) score(i int) float32 {
	var clauses [maxClauses]float32
	sum := float32(0)
	for word, v := range p.has[i*p.words:][:p.words] {
		if v == 0 {
			continue
		}
		v *= p.left[word]
		sum += v
		for c, in := 0, p.r.q.terms[word].in; in != 0; c, in = c+1, in>>1 {
			if in&1 != 0 {
				clauses[c] += v
			}
		}
	}
	own := p.pool[i].score
	if p.sum[i] > 0 { // else found by its name alone
		own *= (sum + p.r.w.clause*slices.Max(clauses[:])) / (1 + p.r.w.clause) / p.sum[i]
	}
	return own + p.kin[i]
}

// enough is the share of what a word brings at most from which on a hit has all
// of it.
const enough = 1.0 / 3

// take makes a candidate a hit.
func (p *picker) take(i int) {
	p.picked[i] = true
	hit := p.pool[i]
	for word, v := range p.has[i*p.words:][:p.words] {
		if v > 0 {
			p.left[word] = min(p.left[word], 1-p.r.w.taken*min(1, v/p.most[word]/enough))
		}
	}
	for j, c := range p.pool {
		if !p.picked[j] && c.seg == hit.seg {
			p.kin[j] = max(p.kin[j], p.r.w.kin*hit.score*akin(p.labels[i], p.labels[j]))
		}
	}
}

// akin is the share of the labels of two documents of a source that both have,
// from 0 to 1. Rare ones count more.
func akin(a, b []label) float32 {
	var both, all int32
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].term < b[0].term:
			all, a = all+a[0].rarity, a[1:]
		case len(a) == 0 || b[0].term < a[0].term:
			all, b = all+b[0].rarity, b[1:]
		default:
			both, all = both+a[0].rarity, all+a[0].rarity
			a, b = a[1:], b[1:]
		}
	}
	return float32(both) / float32(max(all, 1))
}
