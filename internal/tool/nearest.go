package tool

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// nearest returns up to three of the names that a caller may have meant, best
// first. Names that share nothing with the wanted one are not offered.
func nearest(want string, names []string) []string {
	if len(want) > maxNear {
		want = want[:maxNear]
	}
	want = strings.ToLower(want)
	type hit struct {
		name string
		dist int
	}
	var hits []hit
	for _, n := range names {
		low := strings.ToLower(n)
		d := distance(want, low)
		switch {
		case want != "" && (strings.Contains(low, want) || strings.Contains(want, low)):
			d = min(d, 1)
		case d > max(2, len(want)/3), d >= max(len(want), len(low)):
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

// maxNear bounds the work that a made-up name can cause.
const maxNear = 80

// distance is the number of single-byte edits between two names, or more than
// is of use as soon as that is certain.
func distance(a, b string) int {
	limit := max(2, len(a)/3)
	if gap := len(a) - len(b); gap > limit || -gap > limit {
		return limit + 1
	}
	var space [2 * maxNear]int
	row := space[:0]
	for j := range len(b) + 1 {
		row = append(row, j)
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		least := row[0]
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
			least = min(least, cost)
		}
		if least > limit {
			return limit + 1
		}
	}
	return row[len(b)]
}

// clip shortens a name that somebody made up, for a message.
func clip(s string) string {
	if len(s) <= maxNear {
		return s
	}
	cut := maxNear
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
