package main

import (
	"encoding/json"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxRounds bounds how many values are made of one schema, and maxIdle how many
// in a row that bring nothing new.
const (
	maxRounds = 600
	maxIdle   = 20
)

// A sampler makes values that a schema takes. It goes round until every enum
// gave each of its values, every union each of its forms, and every object was
// given once whole and once with no more than it needs.
type sampler struct {
	root    any
	choices map[string]*choice // by where in the schema
	open    map[string]int     // how often each place is being sampled: recursion
}

// A choice is a place of the schema with several ways on.
type choice struct{ used []int }

// A part is a subschema and where it is. Several parts together are one place
// of the value.
type part struct {
	at     string
	schema any
}

// samples returns values for schema. Not all of them need be valid: patterns and
// conditions are met by luck.
func samples(schema any) []any {
	s := &sampler{root: schema, choices: map[string]*choice{}, open: map[string]int{}}
	var out []any
	for idle, before := 0, -1; idle < maxIdle && len(out) < maxRounds; {
		if v, ok := s.value([]part{{"#", schema}}); ok {
			out = append(out, v)
		}
		now := s.unused("")
		if now == 0 && len(out) > 1 {
			break
		}
		if idle++; now != before {
			idle, before = 0, now
		}
	}
	return out
}

// unused counts the ways not yet taken, of the choices below a place.
func (s *sampler) unused(below string) (n int) {
	for at, c := range s.choices {
		if !strings.Contains(at, below) {
			continue
		}
		for _, used := range c.used {
			if used == 0 {
				n++
			}
		}
	}
	return n
}

// choose returns the ways on, the least used first.
func (s *sampler) choose(at string, ways int) []int {
	c := s.choices[at]
	if c == nil || len(c.used) != ways {
		c = &choice{make([]int, ways)}
		s.choices[at] = c
	}
	order := make([]int, ways)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return c.used[a] - c.used[b] })
	return order
}

func (s *sampler) take(at string, way int) { s.choices[at].used[way]++ }

// value makes a value that all parts take.
func (s *sampler) value(parts []part) (any, bool) {
	at := parts[0].at
	if s.open[at] >= 4 || len(s.open) > 60 {
		return nil, false
	}
	s.open[at]++
	defer func() {
		if s.open[at]--; s.open[at] == 0 {
			delete(s.open, at)
		}
	}()
	return s.flat(nil, parts, at)
}

// flat takes references and combinations apart, choosing among forms.
func (s *sampler) flat(done []map[string]any, todo []part, at string) (any, bool) {
	if len(todo) == 0 {
		return s.plain(done, at)
	}
	p, todo := todo[0], todo[1:]
	if p.schema == true {
		return s.flat(done, todo, at)
	}
	m, ok := p.schema.(map[string]any)
	if not, has := m["not"]; !ok || has && takesAll(not) || len(done) > 40 {
		return nil, false
	}
	if ref, _ := m["$ref"].(string); ref != "" {
		target, where, ok := s.lookup(ref)
		if !ok {
			return nil, false
		}
		todo = append(slices.Clone(todo), part{where, target})
	}
	for i, sub := range list(m["allOf"]) {
		todo = append(slices.Clone(todo), part{p.at + "/allOf/" + strconv.Itoa(i), sub})
	}
	marked := maps.Clone(m)
	marked["\x00at"] = p.at
	return s.forms(append(slices.Clone(done), marked), todo, p, []string{"anyOf", "oneOf"}, at)
}

// forms chooses one form of each union of p.
func (s *sampler) forms(done []map[string]any, todo []part, p part, unions []string, at string) (any, bool) {
	if len(unions) == 0 {
		return s.flat(done, todo, at)
	}
	m := p.schema.(map[string]any)
	all := list(m[unions[0]])
	if len(all) == 0 {
		return s.forms(done, todo, p, unions[1:], at)
	}
	where := p.at + "/" + unions[0]
	ways := s.choose(where, len(all))
	if s.choices[where].used[ways[0]] > 0 { // all were taken: on with what is not done
		done := map[int]bool{}
		for _, way := range ways {
			done[way] = s.unused(where+"/"+strconv.Itoa(way)) == 0
		}
		slices.SortStableFunc(ways, func(a, b int) int {
			switch {
			case done[a] == done[b]:
				return 0
			case done[b]:
				return -1
			}
			return 1
		})
	}
	for _, way := range ways {
		s.take(where, way)
		more := append(slices.Clone(todo), part{where + "/" + strconv.Itoa(way), all[way]})
		if v, ok := s.forms(done, more, p, unions[1:], at); ok {
			return v, true
		}
	}
	return nil, false
}

// lookup finds what a reference inside the document leads to.
func (s *sampler) lookup(ref string) (any, string, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, "", false
	}
	if plain, err := url.PathUnescape(pointer); err == nil {
		pointer = plain
	}
	v := s.root
	if pointer == "" {
		return v, "#", true
	}
	if pointer[0] != '/' {
		return nil, "", false
	}
	for _, step := range strings.Split(pointer[1:], "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch t := v.(type) {
		case map[string]any:
			v = t[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(t) {
				return nil, "", false
			}
			v = t[i]
		default:
			return nil, "", false
		}
	}
	return v, "#" + pointer, v != nil
}

// plain makes a value of schemas without references and combinations.
func (s *sampler) plain(all []map[string]any, at string) (any, bool) {
	for _, m := range all {
		if c, ok := m["const"]; ok {
			return c, true
		}
	}
	for _, m := range all {
		if values, ok := m["enum"].([]any); ok {
			if len(values) == 0 {
				return nil, false
			}
			where := m["\x00at"].(string) + "/enum"
			way := s.choose(where, len(values))[0]
			s.take(where, way)
			return values[way], true
		}
	}
	again := s.open[at] > 1 // inside of itself
	at = ""                 // a place of its own for each choice of forms
	for _, m := range all {
		at += m["\x00at"].(string) + " "
	}
	types := kinds(all)
	if len(types) == 0 {
		return nil, false
	}
	where := at + "/type"
	for _, way := range s.choose(where, len(types)) {
		s.take(where, way)
		if v, ok := s.ofKind(types[way], all, at, again); ok {
			return v, true
		}
	}
	return nil, false
}

// kinds is the types that all schemas allow, or what their keywords speak of.
func kinds(all []map[string]any) []string {
	var common []string
	said := false
	for _, m := range all {
		var own []string
		switch t := m["type"].(type) {
		case string:
			own = []string{t}
		case []any:
			for _, one := range t {
				name, _ := one.(string)
				own = append(own, name)
			}
		default:
			continue
		}
		if !said {
			said, common = true, own
			continue
		}
		common = slices.DeleteFunc(common, func(k string) bool { return !slices.Contains(own, k) })
	}
	if said {
		return common
	}
	for _, m := range all {
		if k := spokenOf(m); len(k) > 0 {
			return k
		}
	}
	return []string{"string"}
}

// spokenOf is the types that a schema has keywords for. One that names no type
// means these: so people write schemas, and so a signature reads them.
func spokenOf(m map[string]any) []string {
	var out []string
	for _, k := range []struct {
		kind     string
		keywords []string
	}{
		{"object", []string{"properties", "patternProperties", "additionalProperties"}},
		{"array", []string{"items", "prefixItems"}},
		{"string", []string{"pattern", "minLength", "maxLength", "contentEncoding", "format"}},
		{"number", []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
	} {
		if slices.ContainsFunc(k.keywords, func(name string) bool { return m[name] != nil }) {
			out = append(out, k.kind)
		}
	}
	return out
}

func (s *sampler) ofKind(kind string, all []map[string]any, at string, again bool) (any, bool) {
	switch kind {
	case "null":
		return nil, true
	case "boolean":
		way := s.choose(at+"/boolean", 2)[0]
		s.take(at+"/boolean", way)
		return way == 0, true
	case "number", "integer":
		return number(kind, all), true
	case "string":
		return text(all), true
	case "array":
		return s.array(all, at)
	case "object":
		return s.object(all, at, again)
	}
	return nil, false
}

// bound is the largest or smallest of a keyword's numbers.
func bound(all []map[string]any, keyword string, pick func(a, b float64) float64) (float64, bool) {
	out, found := 0.0, false
	for _, m := range all {
		n, ok := m[keyword].(json.Number)
		if !ok {
			continue
		}
		f, err := n.Float64()
		if err != nil {
			continue
		}
		if !found {
			out, found = f, true
		} else {
			out = pick(out, f)
		}
	}
	return out, found
}

func number(kind string, all []map[string]any) any {
	low, hasLow := bound(all, "minimum", math.Max)
	if f, ok := bound(all, "exclusiveMinimum", math.Max); ok && (!hasLow || f >= low) {
		low, hasLow = f+1, true
	}
	high, hasHigh := bound(all, "maximum", math.Min)
	if f, ok := bound(all, "exclusiveMaximum", math.Min); ok && (!hasHigh || f <= high) {
		high, hasHigh = f-1, true
	}
	v := 1.5
	switch {
	case hasLow && hasHigh && kind == "number":
		v = (low + high) / 2
	case hasLow:
		v = low
	case hasHigh:
		v = high
	}
	if kind == "integer" {
		v = math.Ceil(v)
	}
	if step, ok := bound(all, "multipleOf", math.Max); ok && step > 0 {
		v = math.Ceil(v/step) * step
	}
	return json.Number(strconv.FormatFloat(v, 'f', -1, 64))
}

// examples are strings for formats and for patterns that are hard to invert.
var examples = map[string]string{
	"date-time": "2026-01-02T03:04:05Z", "date": "2026-01-02", "time": "03:04:05Z", "email": "ann@example.com",
	"uri": "https://example.com/a", "url": "https://example.com/a", "uuid": "123e4567-e89b-42d3-a456-426614174000",
	"ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "hostname": "example.com", "byte": "YQ==", "binary": "a",
}

func text(all []map[string]any) string {
	low, _ := bound(all, "minLength", math.Max)
	v := "some text"
	for _, m := range all {
		if p, ok := m["pattern"].(string); ok {
			v = matching(p)
			break
		}
		if f, ok := m["format"].(string); ok && examples[f] != "" {
			v = examples[f]
		}
	}
	for float64(len(v)) < low && low < 1<<20 {
		v += "x"
	}
	if high, ok := bound(all, "maxLength", math.Min); ok && float64(len(v)) > high && high >= 0 {
		v = v[:int(high)]
	}
	return v
}

// object makes an object: the first time with all it can have, the second time
// with what it must have, then again with all.
func (s *sampler) object(all []map[string]any, at string, again bool) (any, bool) {
	properties, required := map[string][]part{}, map[string]bool{}
	for _, m := range all {
		group, _ := m["properties"].(map[string]any)
		for name, sub := range group {
			properties[name] = append(properties[name], part{m["\x00at"].(string) + "/properties/" + name, sub})
		}
		for _, name := range list(m["required"]) {
			if name, ok := name.(string); ok {
				required[name] = true
			}
		}
	}
	way := s.choose(at+"/object", 2)[0]
	if c := s.choices[at+"/object"]; c.used[1] > 0 {
		way = 0
	}
	if again {
		way = 1
	} else {
		s.take(at+"/object", way)
	}
	out := map[string]any{}
	for name := range required {
		if _, described := properties[name]; !described {
			properties[name] = []part{{at + "/required/" + name, true}}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if way == 1 && !required[name] {
			continue
		}
		v, ok := s.value(properties[name])
		if !ok && required[name] {
			return nil, false
		}
		if ok {
			out[name] = v
		}
	}
	if least, _ := bound(all, "minProperties", math.Max); way == 0 || float64(len(out)) < least {
		s.further(out, all, properties)
	}
	return out, true
}

// further adds members that have no name of their own in the schema.
func (s *sampler) further(out map[string]any, all []map[string]any, named map[string][]part) {
	if len(all) > 1 && slices.ContainsFunc(all, func(m map[string]any) bool { return m["additionalProperties"] == false }) {
		return
	}
	for _, m := range all {
		at := m["\x00at"].(string)
		patterns, _ := m["patternProperties"].(map[string]any)
		for _, p := range slices.Sorted(maps.Keys(patterns)) {
			key := matching(p)
			if _, taken := named[key]; taken {
				continue
			}
			if v, ok := s.value([]part{{at + "/patternProperties/" + p, patterns[p]}}); ok {
				out[key] = v
			}
		}
		more, given := m["additionalProperties"]
		if !given || more == false {
			continue
		}
		key := "further"
		if names, ok := m["propertyNames"].(map[string]any); ok {
			if allowed := list(names["enum"]); len(allowed) > 0 {
				key, _ = allowed[0].(string)
			} else {
				key = text([]map[string]any{names})
			}
		}
		if _, taken := named[key]; taken {
			continue
		}
		if v, ok := s.value([]part{{at + "/additionalProperties", more}}); ok {
			out[key] = v
		}
	}
}

func (s *sampler) array(all []map[string]any, at string) (any, bool) {
	var fixed []part
	rest, first := []part{}, []part{}
	for _, m := range all {
		where := m["\x00at"].(string)
		prefix, more, moreAt := list(m["prefixItems"]), m["items"], where+"/items"
		if l, ok := m["items"].([]any); ok {
			prefix, more, moreAt = l, m["additionalItems"], where+"/additionalItems"
		}
		if len(fixed) == 0 {
			for i, sub := range prefix {
				fixed = append(fixed, part{where + "/prefix/" + strconv.Itoa(i), sub})
			}
		}
		if more != nil {
			rest = append(rest, part{moreAt, more})
		}
		if c, ok := m["contains"]; ok {
			first = append(first, part{where + "/contains", c})
		}
	}
	least, _ := bound(all, "minItems", math.Max)
	most, bounded := bound(all, "maxItems", math.Min)
	if !bounded {
		most = max(least, float64(len(fixed))) + 1
	}
	if len(first) > 0 && !bounded {
		most++
	}
	out := []any{}
	for i := 0; float64(i) < most && i < 100; i++ {
		next := rest
		if i < len(fixed) {
			next = fixed[i : i+1]
		} else if i == 0 && len(first) > 0 {
			next = slices.Concat(rest, first)
		} else if len(rest) == 0 && (len(fixed) > 0 && float64(i) >= least) {
			break
		} else if len(rest) == 0 {
			next = []part{{at + "/items", true}}
		}
		v, ok := s.value(next)
		if !ok {
			if float64(i) < least {
				return nil, false
			}
			break
		}
		if float64(i) >= least && i >= len(fixed) && i > 0 && slices.ContainsFunc(out, func(o any) bool { return string(encode(o)) == string(encode(v)) }) {
			break // it may have to be unique
		}
		out = append(out, v)
	}
	return out, true
}

// matching is a string that a pattern matches, or a guess.
func matching(pattern string) string {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return "a1"
	}
	for _, candidate := range []string{"some text", "a", "1", "x-a", "2026-01-02", "#aabbcc", "abc-123", "https://example.com/a", "03:04", "a@b.co"} {
		if re.MatchString(candidate) {
			return candidate
		}
	}
	return invert(pattern)
}
