package tool

import (
	"math/rand/v2"
	"testing"
)

// The fast distance is the distance by definition.
func TestDistance(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	name := func(most int) string {
		b := make([]byte, rnd.IntN(most+1))
		for i := range b {
			b[i] = "abc_\xff"[rnd.IntN(5)]
		}
		return string(b)
	}
	for range 4_000 {
		a, b := name(maxNear), name(90)
		if got, want := newPattern(a).distance(b), edits(a, b); got != want {
			t.Fatalf("%q and %q: %d, want %d", a, b, got, want)
		}
	}
}

func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
