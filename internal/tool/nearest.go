package tool

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Nearest returns up to three of the names that a caller may have meant, best
// first. Names that share nothing with the wanted one are not offered.
func Nearest(want string, names []string) []string {
	want = want[:min(len(want), maxNear)]
	want = strings.ToLower(want)
	want = want[:min(len(want), maxNear)] // some letters are longer in lower case
	pattern, limit := newPattern(want), max(2, len(want)/3)
	type hit struct {
		name string
		dist int
	}
	var hits []hit
	for _, n := range names {
		low := strings.ToLower(n)
		d := pattern.distance(low)
		switch {
		case want != "" && (strings.Contains(low, want) || strings.Contains(want, low)):
			d = min(d, 1)
		case d > limit, d >= max(len(want), len(low)):
			continue
		}
		hits = append(hits, hit{n, d})
	}
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Or(cmp.Compare(a.dist, b.dist), cmp.Compare(a.name, b.name)) })
	var out []string
	for _, h := range hits[:min(3, len(hits))] {
		out = append(out, h.name)
	}
	return out
}

// maxNear bounds the work that a made-up name can cause, and is the most that a
// pattern compares.
const maxNear = 64

// pattern is a name of up to maxNear bytes, made ready to be compared with ten
// thousand others: for each byte, the set of places where it stands (the
// bit-parallel edit distance of Myers, 1999).
type pattern struct {
	at  [256]uint64
	len int
}

func newPattern(s string) *pattern {
	p := &pattern{len: len(s)}
	for i := range len(s) {
		p.at[s[i]] |= 1 << i
	}
	return p
}

// distance is the number of single-byte edits between the pattern and a name.
// It costs one step for each byte of the name.
func (p *pattern) distance(name string) int {
	if p.len == 0 {
		return len(name)
	}
	up, down, score, last := ^uint64(0), uint64(0), p.len, uint64(1)<<(p.len-1)
	for i := range len(name) {
		equal := p.at[name[i]]
		vertical := equal | down
		horizontal := (((equal & up) + up) ^ up) | equal
		more, less := down|^(horizontal|up), up&horizontal
		if more&last != 0 {
			score++
		}
		if less&last != 0 {
			score--
		}
		more, less = more<<1|1, less<<1
		up, down = less|^(vertical|more), more&vertical
	}
	return score
}

// maxShown is how much of a made-up name a message repeats, in bytes.
const maxShown = 80

// clip shortens a name that somebody made up, for a message.
func clip(s string) string {
	if len(s) <= maxShown {
		return s
	}
	cut := maxShown
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

func join(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
