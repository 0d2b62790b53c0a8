package search

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxGuesses is how many words of the index an unknown one is taken for.
const maxGuesses = 3

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
		at, _ := slices.BinarySearch(s.words, text)
		for ; at < len(s.words) && strings.HasPrefix(s.words[at], text); at++ {
			best[s.words[at]] = guess{text: s.words[at]}
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

// misspelled collects the words within reach of text.
func (st *state) misspelled(text, head string, length int, best map[string]guess) {
	limit := 1
	if length >= 8 {
		limit = 2
	}
	var d distance
	for _, s := range st.segments {
		at, _ := slices.BinarySearch(s.words, head)
		for ; at < len(s.words) && strings.HasPrefix(s.words[at], head); at++ {
			w := s.words[at]
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
