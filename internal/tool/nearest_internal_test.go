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

// The names of other products are spelt as they are looked up, and each stands
// for one tool.
func TestDialects(t *testing.T) {
	seen := map[string]string{}
	for ours, names := range dialects {
		for _, n := range names {
			if fold(n) != n {
				t.Errorf("%s is looked up as %s", n, fold(n))
			}
			if other, ok := seen[n]; ok {
				t.Errorf("%s is %s and %s", n, ours, other)
			}
			seen[n] = ours
		}
	}
	for name, tools := range ruleNames {
		if other, ok := seen[fold(name)]; ok {
			t.Errorf("%s is %s and %s", name, tools[0], other)
		}
	}
}
