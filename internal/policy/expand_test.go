package policy

import (
	"testing"
)

// What a wildcard matches when the command runs is judged when it is judged: files
// that lead out of the workspace, that a rule protects, and such whose names would
// be taken for options.
func TestWildcardOption(t *testing.T) {
	w := newWorld(t)
	w.put(t, "ws/opt/--files0-from=x.txt", "x")
	w.put(t, "ws/opt/a.txt", "x")
	o := w.options(Default)
	o.Dir = w.ws + "/opt"
	p, _, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]string{
		"sh wc *":       "ask",
		"sh wc *.txt":   "ask",
		"sh wc ./*":     "allow",
		"sh wc a*":      "allow",
		"sh cat *":      "allow", // no option of cat does more than show
		"sh cat ../*/x": "allow",
		"sh cat {a,b}":  "ask",
	} {
		if got := p.Decide(t.Context(), w.request(t, call)); decisions[got.Decision] != want {
			t.Errorf("%s: %s (%s), want %s", call, decisions[got.Decision], got.Reason, want)
		}
	}
}

// A directory with more names than are looked at asks.
func TestWildcardBound(t *testing.T) {
	w := newWorld(t)
	e := expansion{left: 1}
	if _, ok := e.below(w.ws, []string{"*"}); ok {
		t.Error("a directory that is too large was expanded")
	}
	e = expansion{left: maxListed}
	if got, ok := e.below(w.ws, []string{"s*", "m*"}); !ok || len(got) != 1 {
		t.Error(got, ok)
	}
}
