package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// maxCoercions bounds the places of one value where a coercion is tried.
const maxCoercions = 32

// Validate checks args, one JSON value, against s. It returns the canonical
// form of args (see Parse) and a note for each coercion that it took to make
// them valid.
//
// A coercion is tried only where the value as given fails, for its type alone,
// and kept only when nothing is wrong at that place afterwards. It loses
// nothing (ruling 14): a string that spells a JSON number, boolean, null,
// object or array becomes that value where the schema wants one. A number
// never becomes a string: real schemas refuse it, and a model that means a
// number should see so. No defaults are filled in.
//
// err is an *Invalid with every fault, in words for a model. Arguments that
// cannot be checked within the limits on steps and on the time of backtracking
// patterns are refused, with Unchecked set.
func (s *Schema) Validate(args json.RawMessage) (canonical json.RawMessage, notes []string, err error) {
	v, count, fault := parse(args)
	if fault != nil {
		return nil, nil, &Invalid{Faults: []Fault{*fault}}
	}
	first := newEvaluation(s, count)
	if !first.check(s.root, v, nil) {
		if first.stopped != "" { // a second run would stop as well, and take as long
			return nil, nil, first.unchecked()
		}
		if v, notes, err = s.mend(v, count); err != nil {
			return nil, nil, err
		}
	}
	return v.append(make([]byte, 0, len(args))), notes, nil
}

// faults applies s to v and collects what is wrong.
func (s *Schema) faults(v *value, count int) (*faultSink, error) {
	e := newEvaluation(s, count)
	e.quiet, e.sink = 0, &faultSink{}
	ok := e.check(s.root, v, nil)
	if e.stopped != "" {
		return nil, e.unchecked()
	}
	if !ok && len(e.sink.faults) == 0 { // never let through what was not explained
		e.sink.add(func() found { return found{Fault: Fault{Message: "does not match the schema"}} })
	}
	return e.sink, nil
}

func (e *evaluation) unchecked() *Invalid {
	return &Invalid{Faults: []Fault{{Path: e.stoppedAt, Message: "could not be checked: " + e.stopped}}, Unchecked: true}
}

// mend tries the coercions, and reports what is wrong when they don't help.
func (s *Schema) mend(v *value, count int) (*value, []string, error) {
	sink, err := s.faults(v, count)
	if err != nil {
		return nil, nil, err
	}
	var notes []string
	for tries, i := 0, 0; i < len(sink.faults) && tries < maxCoercions; i++ {
		f := sink.faults[i]
		replacement, parts := f.coerced()
		if replacement == nil {
			continue
		}
		tries++
		count += parts
		before := *f.value
		*f.value = *replacement
		after, err := s.faults(v, count)
		if err != nil || after.touches(f.Path) {
			*f.value = before
			continue
		}
		notes = append(notes, fmt.Sprintf("%s: the string %s was taken as %s", orRoot(f.Path), clip(before.String(), 80), replacement.describe()))
		sink, i = after, -1
	}
	if len(sink.faults) == 0 {
		return v, notes, nil
	}
	return nil, nil, sink.invalid()
}

func orRoot(path string) string {
	if path == "" {
		return "arguments"
	}
	return path
}

// touches reports whether a fault lies at path or below it.
func (s *faultSink) touches(path string) bool {
	return slices.ContainsFunc(s.faults, func(f found) bool {
		return f.Path == path || strings.HasPrefix(f.Path, path+"/")
	})
}

// coerced is the value that f.value spells, when its type would do; else nil.
// parts is how many values it consists of.
func (f *found) coerced() (v *value, parts int) {
	if f.value == nil || f.value.kind != stringKind {
		return nil, 0
	}
	v, parts, fault := parse([]byte(f.value.text))
	if fault != nil || !f.want.has(v) {
		return nil, 0
	}
	return v, parts
}

func (s *faultSink) invalid() *Invalid {
	out := &Invalid{More: s.more}
	slices.SortStableFunc(s.faults, func(a, b found) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
	for _, f := range s.faults {
		out.Faults = append(out.Faults, f.Fault)
	}
	out.Faults = slices.Compact(out.Faults)
	return out
}
