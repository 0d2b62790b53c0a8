package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"capstan/internal/schema"
	"capstan/internal/tool"
)

// A sample is a value with what the schema says of it.
type sample struct {
	value any
	valid bool
}

// A judged schema is one with samples.
type judged struct {
	samples []sample
	whole   int  // valid ones that also meet bounds, patterns and conditions
	empty   bool // the schema takes {}
}

// judge makes samples of a schema, and lets the validator say which are valid. It
// fails when the schema cannot be used or no valid value was found.
func judge(root any) (*judged, error) {
	whole, err := schema.Compile(encode(root))
	if err != nil {
		return nil, err
	}
	loose, err := schema.Compile(encode(structure(root)))
	if err != nil {
		return nil, fmt.Errorf("its structure: %w", err)
	}
	takes := func(s *schema.Schema, v any) bool {
		_, notes, err := s.Validate(encode(v))
		return err == nil && len(notes) == 0
	}
	j := &judged{empty: takes(whole, map[string]any{})}
	var valid []any
	for _, v := range samples(root) {
		if !takes(loose, v) {
			continue
		}
		if takes(whole, v) {
			j.whole++
		}
		valid = append(valid, v)
		j.samples = append(j.samples, sample{v, true})
	}
	if len(valid) == 0 {
		return nil, errNoneValid
	}
	seen := map[string]bool{}
	var changed []change
	for _, v := range valid {
		changed = append(changed, changes(v, seen)...)
	}
	for i := 0; i < len(changed); i += 1 + len(changed)/maxChanges {
		c := changed[i]
		ok := takes(loose, c.value)
		if !ok || c.less {
			j.samples = append(j.samples, sample{c.value, ok})
		}
	}
	return j, nil
}

// maxChanges bounds how many changed values are tried of one schema. Of more, some
// are left out evenly.
const maxChanges = 4000

var errNoneValid = errors.New("no valid value was found")

// A change is a value with one thing changed. One that is less stays as good as
// the schema says it is. Another one may be valid only because its object is open
// for names that the signature does not know, so only its faults count.
type change struct {
	value any
	less  bool
}

// strange are values to put where others were.
var strange = []any{
	"\u00b6 strange", json.Number("-98765.25"), true, false, nil, []any{}, []any{"\u00b6 strange"},
	map[string]any{}, map[string]any{"\u00b6 strange": "\u00b6"},
}

// changes makes values out of v: at each place that seen does not hold yet, other
// values, one member less, one more, one item less, one more.
func changes(v any, seen map[string]bool) []change {
	var out []change
	var walk func(at string, v any, with func(any) any)
	walk = func(at string, v any, with func(any) any) {
		key := at + fmt.Sprintf(" %T", v)
		first := !seen[key]
		seen[key] = true
		if first {
			for _, s := range strange {
				out = append(out, change{with(s), false})
			}
		}
		switch v := v.(type) {
		case map[string]any:
			names := slices.Sorted(maps.Keys(v))
			key += fmt.Sprint(names) // of another form, maybe
			for _, name := range names {
				without := maps.Clone(v)
				delete(without, name)
				if missing := key + " without " + name; !seen[missing] {
					seen[missing] = true
					out = append(out, change{with(without), true})
				}
				walk(key+"/"+name, v[name], func(other any) any {
					changed := maps.Clone(v)
					changed[name] = other
					return with(changed)
				})
			}
			if first {
				more := maps.Clone(v)
				more["\u00b6 strange"] = "\u00b6"
				out = append(out, change{with(more), false})
			}
		case []any:
			if first && len(v) > 0 {
				out = append(out, change{with(v[:len(v)-1]), true}, change{with(append(slices.Clone(v), map[string]any{"\u00b6 strange": "\u00b6"})), false})
			}
			for i, item := range v {
				walk(at+"/*"+strconv.Itoa(min(i, 2)), item, func(other any) any {
					changed := slices.Clone(v)
					changed[i] = other
					return with(changed)
				})
			}
		}
	}
	walk("", v, func(v any) any { return v })
	return out
}

// faults compares a type with what the schema says, and tells where they differ.
func (d *decl) faults(j *judged, satisfies func(any) bool) []string {
	var out []string
	for _, s := range j.samples {
		if satisfies(s.value) == s.valid {
			continue
		}
		verb := "takes"
		if s.valid {
			verb = "refuses"
		}
		out = append(out, fmt.Sprintf("the type %s %s", verb, excerpt(string(encode(s.value)))))
	}
	return out
}

func excerpt(s string) string {
	if len(s) > 300 {
		return strings.ToValidUTF8(s[:300], "") + "…"
	}
	return s
}

// A verdict is what was found of one tool.
type verdict struct {
	decl          *decl
	input, output *judged // nil where there is no schema that can be used
	unusable      error   // why the input schema cannot be used
	faults        []string
}

// check holds a tool's declaration against its schemas.
func check(spec tool.Spec, text string) *verdict {
	v := &verdict{}
	d, err := parseDecl(text)
	if err != nil {
		v.faults = append(v.faults, err.Error())
		return v
	}
	v.decl = d
	input := spec.Input
	if len(input) == 0 {
		input = []byte(`{"type":"object","properties":{}}`)
	}
	v.input, err = judgeRaw(input)
	if errors.Is(err, errNoneValid) {
		v.faults = append(v.faults, err.Error())
	} else {
		v.unusable = err
	}
	if v.input != nil && v.input.empty != (d.args == nil || d.optional) {
		v.faults = append(v.faults, fmt.Sprintf("whether {} is valid: %v in the schema, not so in the signature", v.input.empty))
	}
	if len(spec.Output) > 0 {
		v.output, err = judgeRaw(spec.Output)
		if err != nil {
			v.faults = append(v.faults, "output schema: "+err.Error())
		}
	}
	v.faults = append(v.faults, v.compare(d)...)
	for _, raw := range [][]byte{input, spec.Output} {
		if root, err := parse(raw); err == nil {
			v.faults = append(v.faults, unsaid(root, text)...)
		}
	}
	return v
}

func judgeRaw(raw []byte) (*judged, error) {
	root, err := parse(raw)
	if err != nil {
		return nil, err
	}
	return judge(root)
}

// compare is the faults of d by the samples at hand.
func (v *verdict) compare(d *decl) []string {
	var out []string
	if v.input != nil {
		out = d.faults(v.input, d.satisfies)
	}
	if v.output != nil {
		result := d.result
		if result == nil {
			result = &typ{op: opUnknown}
		}
		for _, f := range d.faults(v.output, func(x any) bool { return d.meets(x, result) }) {
			out = append(out, "result: "+f)
		}
	}
	return out
}
