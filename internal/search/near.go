package search

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxGuesses is how many words of the index an unknown one is taken for.
	maxGuesses = 3
	// maxLooked and maxBegun bound the words of one source that an unknown one is
	// compared with, and those that begin with it; maxCandidates is for all
	// sources. Real ones stay below half of them.
	maxLooked     = 8 << 10
	maxBegun      = 1 << 10
	maxCandidates = 4 << 10
)

// guess is a word that may have been meant.
type guess struct {
	text     string
	distance int
	df       int
}

// near returns the words of the index that an unknown one may have meant: those
// it is the beginning of, else those one mistake away (two in words of eight
// letters and more) with the same first letter.
func (st *state) near(text string) []string {
	length := utf8.RuneCountInString(text)
	if length < 3 {
		return nil
	}
	best := map[string]guess{}
	first, _ := utf8.DecodeRuneInString(text)
	head := string(first)
	for _, s := range st.segments {
		for _, w := range from(s.words, text, maxBegun) {
			if !strings.HasPrefix(w, text) || len(best) == maxCandidates {
				break
			}
			best[w] = guess{text: w}
		}
	}
	if len(best) == 0 && length >= 4 {
		st.misspelled(text, head, length, best)
	}
	guesses := make([]guess, 0, len(best))
	for _, g := range best {
		g.df = st.df(g.text)
		guesses = append(guesses, g)
	}
	slices.SortFunc(guesses, func(a, b guess) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(b.df, a.df), cmp.Compare(a.text, b.text))
	})
	var out []string
	for _, g := range guesses[:min(len(guesses), maxGuesses)] {
		out = append(out, g.text)
	}
	return out
}

// from is at most n of the sorted words, from the first that is not before text.
func from(sorted []string, text string, n int) []string {
	at, _ := slices.BinarySearch(sorted, text)
	return sorted[at:min(len(sorted), at+n)]
}

// misspelled collects the words within reach of text.
func (st *state) misspelled(text, head string, length int, best map[string]guess) {
	limit := 1
	if length >= 8 {
		limit = 2
	}
	var d distance
	for _, s := range st.segments {
		for _, w := range from(s.words, head, maxLooked) {
			if !strings.HasPrefix(w, head) || len(best) == maxCandidates {
				break
			}
			if _, done := best[w]; done || len(w) > len(text)+limit*utf8.UTFMax || len(text) > len(w)+limit*utf8.UTFMax {
				continue
			}
			if n := d.between(text, w, limit); n <= limit {
				best[w] = guess{text: w, distance: n}
			}
		}
	}
}

// distance counts the mistakes between two words: a letter too much, missing or
// wrong, or two swapped. It is reused to keep allocations few.
type distance struct {
	a, b []rune
	rows [3][]int
}

// between is the distance, or limit+1 if it is more.
func (d *distance) between(a, b string, limit int) int {
	d.a, d.b = appendRunes(d.a[:0], a), appendRunes(d.b[:0], b)
	if n := len(d.a) - len(d.b); n > limit || -n > limit {
		return limit + 1
	}
	for i := range d.rows {
		d.rows[i] = slices.Grow(d.rows[i][:0], len(d.b)+1)[:len(d.b)+1]
	}
	two, one, row := d.rows[0], d.rows[1], d.rows[2]
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(d.a); i++ {
		two, one, row = one, row, two
		row[0] = i
		least := i
		for j := 1; j <= len(d.b); j++ {
			wrong := 0
			if d.a[i-1] != d.b[j-1] {
				wrong = 1
			}
			row[j] = min(one[j]+1, row[j-1]+1, one[j-1]+wrong)
			if i > 1 && j > 1 && d.a[i-1] == d.b[j-2] && d.a[i-2] == d.b[j-1] {
				row[j] = min(row[j], two[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least > limit {
			return limit + 1
		}
	}
	return min(row[len(d.b)], limit+1)
}

func appendRunes(to []rune, s string) []rune {
	for _, r := range s {
		to = append(to, r)
	}
	return to
}
