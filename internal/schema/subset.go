package schema

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The functions here reduce a tool's schema to what an API takes. What a model
// is told may become less precise that way: arguments are checked against the
// full schema. It becomes stricter in one case only, a property that some of
// the alternatives at the root describe and others leave open: it is told as
// it is described. A schema that needs no change is returned as the same
// bytes. What an API has no word for is said in a description.

// OpenAI reduces a schema to what OpenAI's APIs take as the parameters of a
// function: the root is an object without anyOf, oneOf, allOf, not, enum or
// const; every object has properties and every array items; no schema is a
// boolean. An object that says nothing of its properties may have any, in so
// many words: a server that writes arguments by a grammar would let it have none.
func OpenAI(raw json.RawMessage) (json.RawMessage, error) {
	return reduce(raw, "OpenAI", func(r *reducer, root *value) *value {
		root = r.rootObject(root)
		r.walk(root, 0, func(v *value) {
			r.unbool(v)
			r.modern(v)
			r.untuple(v)
			if has(v.get("type"), "array") && v.get("items") == nil {
				r.set(v, "items", object())
			}
			r.declare(v)
		})
		return root
	})
}

// Anthropic reduces a schema to what the Messages API takes as input_schema:
// the root is an object without anyOf, oneOf or allOf; draft 2020-12 throughout;
// the names of properties have letters, digits, _, . and -, at most 64. Other
// properties are told in the description of their object and may still be given.
func Anthropic(raw json.RawMessage) (json.RawMessage, error) {
	return reduce(raw, "Anthropic", func(r *reducer, root *value) *value {
		root = r.rootObject(root)
		r.drop(root, "$schema")
		r.walk(root, 0, func(v *value) {
			r.modern(v)
			r.nameable(v)
		})
		return root
	})
}

func reduce(raw json.RawMessage, api string, change func(*reducer, *value) *value) (json.RawMessage, error) {
	if len(raw) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`), nil
	}
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("reducing schema for %s: %d bytes are more than the %d allowed", api, len(raw), maxSchema)
	}
	doc, _, fault := parse(raw)
	if fault != nil {
		return nil, fmt.Errorf("reducing schema for %s: %w", api, fault)
	}
	r := &reducer{doc: doc, seen: map[*value]bool{}}
	out := change(r, doc)
	if !r.changed {
		return raw, nil
	}
	return out.append(nil), nil
}

type reducer struct {
	doc     *value // the whole schema, which references point into
	seen    map[*value]bool
	changed bool
	nodes   int // made by inlining, for Gemini
	merges  int // of combined schemas
}

// maxMerges bounds the schemas that are merged into others: references can
// make a few lines combine without end.
const maxMerges = 256

// rootObject returns a root that is an object with properties, with the
// alternatives of anyOf, oneOf and allOf merged into it.
func (r *reducer) rootObject(root *value) *value {
	root = r.follow(root)
	if root.kind != objectKind { // true, or false, which nothing can satisfy
		r.changed = true
		return object(member{"type", text("object")}, member{"properties", object()})
	}
	for _, k := range []string{"allOf", "anyOf", "oneOf"} {
		if list := root.get(k); list != nil {
			r.drop(root, k)
			r.mergeAll(root, k, list, 0)
		}
	}
	for _, k := range []string{"not", "enum", "const", "if", "then", "else"} {
		r.drop(root, k)
	}
	if t := root.get("type"); t == nil || t.kind != stringKind || t.text != "object" {
		r.set(root, "type", text("object"))
	}
	if p := root.get("properties"); p == nil || p.kind != objectKind {
		r.set(root, "properties", object())
	}
	return root
}

// mergeAll merges the schemas of a combining keyword into into: all their
// properties; as required what every alternative requires (allOf: what any
// does). What each set of arguments is gets told.
func (r *reducer) mergeAll(into *value, keyword string, list *value, depth int) {
	if list.kind != arrayKind || depth > 16 {
		return
	}
	var common []string
	var sets []string
	for i, item := range list.items {
		if r.merges++; r.merges > maxMerges {
			return
		}
		s := r.follow(item)
		if s.kind != objectKind {
			common = nil
			continue
		}
		for _, k := range []string{"allOf", "anyOf", "oneOf"} {
			if inner := s.get(k); inner != nil {
				r.drop(s, k)
				r.mergeAll(s, k, inner, depth+1)
			}
		}
		r.mergeProperties(into, s)
		if d := s.get("additionalProperties"); d != nil && into.get("additionalProperties") == nil && keyword == "allOf" && d.kind != boolKind {
			r.set(into, "additionalProperties", d)
		}
		need := stringsOf(s.get("required"))
		sets = append(sets, "("+strings.Join(need, ", ")+")")
		switch {
		case keyword == "allOf", i == 0:
			common = append(common, need...)
		default:
			common = keep(common, need)
		}
	}
	r.require(into, common)
	if keyword != "allOf" && len(sets) > 1 {
		r.note(into, "Give the arguments of one of these sets: "+strings.Join(sets, ", ")+".")
	}
}

// mergeProperties adds the properties of s. One that both have may be either.
func (r *reducer) mergeProperties(into, s *value) {
	from := s.get("properties")
	if from == nil || from.kind != objectKind {
		return
	}
	props := into.get("properties")
	if props == nil || props.kind != objectKind {
		props = object()
		r.set(into, "properties", props)
	}
	for _, m := range from.members {
		old := props.get(m.name)
		switch {
		case old == nil:
			r.set(props, m.name, m.value)
		case old.String() == m.value.String():
		case old.get("anyOf") != nil && len(old.members) == 1:
			r.changed = true
			old.get("anyOf").items = append(old.get("anyOf").items, m.value)
		default:
			r.set(props, m.name, object(member{"anyOf", &value{kind: arrayKind, items: []*value{old, m.value}}}))
		}
	}
}

// require adds names to what v requires.
func (r *reducer) require(v *value, names []string) {
	have := stringsOf(v.get("required"))
	n := len(have)
	for _, name := range names {
		if !contains(have, name) {
			have = append(have, name)
		}
	}
	if len(have) > n {
		r.set(v, "required", list(have))
	}
}

// follow resolves a local reference of v into a copy that holds the target's
// members and those beside the reference. What does not resolve stays.
func (r *reducer) follow(v *value) *value {
	for range 16 {
		ref := v.get("$ref")
		if ref == nil || ref.kind != stringKind {
			return v
		}
		target := r.lookup(ref.text)
		if target == nil || target.kind != objectKind {
			return v
		}
		out := object()
		for _, m := range v.members {
			if m.name != "$ref" {
				out.members = append(out.members, m)
			}
		}
		for _, m := range target.members {
			if out.get(m.name) == nil {
				out.members = append(out.members, m)
			}
		}
		r.changed = true
		v = out
	}
	return v
}

// lookup finds what a reference of this document points to; nil when it is of
// another form.
func (r *reducer) lookup(ref string) *value {
	if ref == "#" {
		return r.doc
	}
	rest, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	v := r.doc
	for _, name := range strings.Split(rest, "/") {
		name = strings.NewReplacer("~1", "/", "~0", "~", "%25", "%", "%24", "$").Replace(name)
		if v = v.get(name); v == nil {
			return nil
		}
	}
	return v
}

// Where schemas lie in a schema.
var (
	oneSchema  = []string{"items", "additionalItems", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties"}
	manyByName = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
	manyInList = []string{"anyOf", "oneOf", "allOf", "prefixItems", "items"}
)

// walk calls f for v and each schema in it, outside first, each once.
func (r *reducer) walk(v *value, depth int, f func(*value)) {
	if v == nil || r.seen[v] || depth > maxDepth || v.kind != objectKind && v.kind != boolKind {
		return
	}
	r.seen[v] = true
	f(v)
	for _, k := range oneSchema {
		r.walk(v.get(k), depth+1, f)
	}
	for _, k := range manyByName {
		if group := v.get(k); group != nil && group.kind == objectKind {
			for _, m := range group.members {
				r.walk(m.value, depth+1, f)
			}
		}
	}
	for _, k := range manyInList {
		if group := v.get(k); group != nil && group.kind == arrayKind {
			for _, item := range group.items {
				r.walk(item, depth+1, f)
			}
		}
	}
}

// unbool makes the boolean schemas that v has for properties, items and
// alternatives objects. additionalProperties may be a boolean everywhere.
func (r *reducer) unbool(v *value) {
	fix := func(s *value) {
		if s != nil && s.kind == boolKind {
			r.changed = true
			if was := s.boolean; was {
				*s = *object()
			} else {
				*s = *object(member{"not", object()})
			}
		}
	}
	fix(v.get("items"))
	if p := v.get("properties"); p != nil && p.kind == objectKind {
		for _, m := range p.members {
			fix(m.value)
		}
	}
	for _, k := range []string{"anyOf", "oneOf", "allOf"} {
		if l := v.get(k); l != nil && l.kind == arrayKind {
			for _, item := range l.items {
				fix(item)
			}
		}
	}
}

// declare gives an object that has none its properties, and its freedom.
func (r *reducer) declare(v *value) {
	if !has(v.get("type"), "object") || v.get("properties") != nil {
		return
	}
	r.set(v, "properties", object())
	for _, k := range []string{"additionalProperties", "patternProperties", "unevaluatedProperties", "$ref", "anyOf", "oneOf", "allOf"} {
		if v.get(k) != nil {
			return
		}
	}
	r.set(v, "additionalProperties", &value{kind: boolKind, boolean: true})
}

// untuple gives an array with a schema for each place one for all of them.
func (r *reducer) untuple(v *value) {
	list := v.get("prefixItems")
	if items := v.get("items"); items != nil && items.kind == arrayKind {
		list = items
	}
	if list == nil || list.kind != arrayKind {
		return
	}
	if rest := v.get("items"); rest != nil && rest.kind == objectKind {
		list.items = append(list.items, rest)
	}
	r.drop(v, "prefixItems")
	r.drop(v, "additionalItems")
	r.set(v, "items", anyOf(list.items))
	r.note(v, fmt.Sprintf("By place: %s.", briefly(list.items)))
}

// modern turns what older drafts spell otherwise into draft 2020-12.
func (r *reducer) modern(v *value) {
	if items := v.get("items"); items != nil && items.kind == arrayKind {
		r.drop(v, "items")
		r.set(v, "prefixItems", items)
		if rest := v.get("additionalItems"); rest != nil {
			r.set(v, "items", rest)
		}
	}
	r.drop(v, "additionalItems")
	for _, k := range [][2]string{{"exclusiveMinimum", "minimum"}, {"exclusiveMaximum", "maximum"}} {
		x := v.get(k[0])
		if x == nil || x.kind != boolKind {
			continue
		}
		bound := v.get(k[1])
		r.drop(v, k[0])
		if x.boolean && bound != nil {
			r.drop(v, k[1])
			r.set(v, k[0], bound)
		}
	}
	if d := v.get("required"); d != nil && d.kind != arrayKind { // draft-03 wrote true
		r.drop(v, "required")
	}
}

// nameable moves properties whose names the API refuses into the description.
func (r *reducer) nameable(v *value) {
	props := v.get("properties")
	if props == nil || props.kind != objectKind {
		return
	}
	required := stringsOf(v.get("required"))
	for _, m := range append([]member(nil), props.members...) {
		if nameOK(m.name) {
			continue
		}
		r.drop(props, m.name)
		must := ""
		if contains(required, m.name) {
			must = "required "
			r.set(v, "required", list(without(required, m.name)))
			required = without(required, m.name)
		}
		r.note(v, fmt.Sprintf("There is also a %sproperty %q: %s.", must, m.name, m.value.String()))
		if a := v.get("additionalProperties"); a != nil {
			r.drop(v, "additionalProperties")
		}
	}
}

func nameOK(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !(c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("_.-", c) >= 0) {
			return false
		}
	}
	return true
}
