package main

import (
	"fmt"
	"slices"
)

// A mutant is one way to make a signature say less, or something else, than its
// schema. apply and undo change the type in place.
type mutant struct {
	what        string
	apply, undo func()
}

// mutants lists what can be lost of a declaration: the type of a property, an
// item or a map, one value of an enum, one optional mark. What loses nothing is
// none: a type that takes everything already, a value that another form takes.
func mutants(d *decl) []mutant {
	var out []mutant
	change := func(what string, t *typ, to typ) {
		was := *t
		out = append(out, mutant{what, func() { *t = to }, func() { *t = was }})
	}
	lose := func(what string, t *typ) {
		if t.op != opNever && slices.ContainsFunc(strange, func(v any) bool { return !d.meets(v, t) }) {
			change(what+" is unknown", t, typ{op: opUnknown})
		}
	}
	seen := map[*typ]bool{}
	var walk func(t *typ)
	walk = func(t *typ) {
		if t == nil || seen[t] {
			return
		}
		seen[t] = true
		for i := range t.members {
			m := &t.members[i]
			lose(m.name, m.typ)
			out = append(out, mutant{"the optional mark of " + m.name,
				func() { m.optional = !m.optional }, func() { m.optional = !m.optional }})
			walk(m.typ)
		}
		if t.index != nil {
			lose("an index", t.index)
			walk(t.index)
		}
		if t.op == opUnion {
			for i, one := range t.of {
				less := *t
				less.of = append(append([]*typ{}, t.of[:i]...), t.of[i+1:]...)
				if (one.op == opLiteral || one.op == opNull) && !d.meets(one.value, &less) {
					change(fmt.Sprintf("value %v of an enum", one.value), t, less)
				}
			}
		}
		if t.op == opArray {
			lose("an item", t.of[0])
		}
		for _, one := range t.of {
			walk(one)
		}
		walk(t.rest)
	}
	walk(d.args)
	walk(d.result)
	for _, t := range d.named {
		walk(t)
	}
	return out
}

// survivors applies each mutant in turn, and returns how many there are and those
// that no sample gives away.
func (v *verdict) survivors() (n int, alive []string) {
	all := mutants(v.decl)
	for _, m := range all {
		m.apply()
		if v.agrees(v.decl) {
			alive = append(alive, m.what)
		}
		m.undo()
	}
	return len(all), alive
}

// agrees says whether compare finds nothing; it stops at the first fault.
func (v *verdict) agrees(d *decl) bool {
	if v.input != nil {
		for _, s := range v.input.samples {
			if d.satisfies(s.value) != s.valid {
				return false
			}
		}
	}
	if v.output != nil && d.result != nil {
		for _, s := range v.output.samples {
			if d.meets(s.value, d.result) != s.valid {
				return false
			}
		}
	}
	return true
}
