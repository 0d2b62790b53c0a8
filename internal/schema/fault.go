package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxFaults bounds the faults of one value that are kept. There can be one for
// each of a million items.
const maxFaults = 100

// Fault is one thing that is wrong with a value.
type Fault struct {
	Path    string // JSON Pointer into the value; empty for the value itself
	Message string // what was expected and what was given, for a model to read
}

// Error is the path and the message in one line.
func (f *Fault) Error() string {
	if f.Path == "" {
		return f.Message
	}
	return f.Path + ": " + f.Message
}

// Invalid lists everything that is wrong with a value, ordered by path.
type Invalid struct {
	Faults    []Fault
	More      int  // faults beyond the first 100
	Unchecked bool // the value could not be checked within the limits; the last fault says why
}

// Error lists every fault, one on each line when there are several.
func (i *Invalid) Error() string {
	var b strings.Builder
	for n := range i.Faults {
		if n > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(i.Faults[n].Error())
	}
	if i.More > 0 {
		fmt.Fprintf(&b, "\nand %d more", i.More)
	}
	return b.String()
}

// faultSink collects the faults of one evaluation.
type faultSink struct {
	faults []found
	more   int
}

// found is a fault with what a coercion needs to know.
type found struct {
	Fault
	value *value
	want  typeSet // the types that would do; 0 when the type is not the trouble
}

// add notes what make returns, unless there are enough faults already.
func (s *faultSink) add(make func() found) {
	if len(s.faults) >= maxFaults {
		s.more++
		return
	}
	f := make()
	if !slices.ContainsFunc(s.faults, func(g found) bool { return g.Fault == f.Fault && g.value == f.value }) {
		s.faults = append(s.faults, f)
	}
}

// reject notes a fault at the current path and answers false.
func (e *evaluation) reject(v *value, message func() string) bool {
	if e.quiet == 0 && e.stopped == "" {
		e.sink.add(func() found { return found{Fault: Fault{e.pointer(), message()}, value: v} })
	}
	return false
}

// rejectAt notes a fault of something that is not there.
func (e *evaluation) rejectAt(at segment, message string) bool {
	if e.quiet == 0 && e.stopped == "" {
		e.push(at)
		e.sink.add(func() found { return found{Fault: Fault{e.pointer(), message}} })
		e.pop()
	}
	return false
}

func (e *evaluation) rejectType(n *node, v *value) bool {
	if e.quiet == 0 && e.stopped == "" {
		e.sink.add(func() found {
			return found{Fault{e.pointer(), "must be " + n.expected() + ", got " + v.describe()}, v, n.types}
		})
	}
	return false
}

func (e *evaluation) rejectMissing(r *objectRules, name string) bool {
	if e.quiet > 0 {
		return false
	}
	message := "is required but missing"
	if sub := r.properties[name]; sub != nil {
		if words := sub.expected(); words != anything {
			message += " (" + words + ")"
		}
	}
	return e.rejectAt(segment{name: name, index: -1}, message)
}

// noBranch reports a value that fits none of the forms of an anyOf or oneOf.
// When the type of the value, or a constant in it, singles out one form, that
// form's own faults are the ones to mend.
func (e *evaluation) noBranch(forms []*node, v *value) bool {
	if e.quiet > 0 || e.stopped != "" {
		return false
	}
	var likely []*node
	for _, form := range forms {
		if form.mayBe(v, 8) {
			likely = append(likely, form)
		}
	}
	if len(likely) == 1 {
		return e.check(likely[0], v, nil)
	}
	want := typeSet(0)
	for _, form := range forms {
		want |= form.typesOf(8)
	}
	if want.has(v) {
		want = 0
	}
	e.sink.add(func() found {
		return found{Fault{e.pointer(), "must be " + describeForms(forms) + ", got " + v.describe()}, v, want}
	})
	return false
}

// typesOf is the types that n lists, through references.
func (n *node) typesOf(depth int) typeSet {
	if n.types == 0 && n.ref != nil && depth > 0 {
		return n.ref.typesOf(depth - 1)
	}
	return n.types
}

// mayBe reports whether v has the type of n and agrees with the constants that
// n demands of its properties.
func (n *node) mayBe(v *value, depth int) bool {
	if n.always < 0 || n.types != 0 && !n.types.has(v) || n.enum != nil && !n.enum.has(v) {
		return false
	}
	if n.object != nil && v.kind == objectKind {
		for _, name := range n.object.names {
			sub, given := n.object.properties[name], v.get(name)
			if given != nil && sub.enum != nil && !sub.enum.has(given) {
				return false
			}
		}
	}
	return n.ref == nil || depth == 0 || n.ref.mayBe(v, depth-1)
}

// pointer is the current path as a JSON Pointer.
func (e *evaluation) pointer() string {
	var b strings.Builder
	for _, s := range e.path {
		b.WriteByte('/')
		if s.index >= 0 {
			b.WriteString(strconv.Itoa(s.index))
			continue
		}
		b.WriteString(escapeToken(s.name))
	}
	return b.String()
}

func escapeToken(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
