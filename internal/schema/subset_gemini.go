package schema

import (
	"encoding/json"
	"fmt"
	"strings"
)

// maxInlined bounds the schemas that a Gemini schema has after its references
// are replaced by what they point to.
const maxInlined = 2000

// Gemini reduces a schema to the Schema object of generateContent: no
// references, no combinations but anyOf, no constants, maps, tuples or lists of
// types, and enums of strings only. Recursion is cut where it comes back to
// itself. The root is an object, which may have no properties.
func Gemini(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 {
		return json.RawMessage(`{"type":"object"}`), nil
	}
	return reduce(raw, "Gemini", func(r *reducer, root *value) *value {
		g := gemini{reducer: r, open: map[string]bool{}}
		before := root.String()
		out := g.convert(r.rootObject(root), 0)
		r.changed = out.String() != before
		return out
	})
}

type gemini struct {
	*reducer
	open map[string]bool // references being replaced
}

// The keywords that are taken as they are.
var geminiKept = map[string]kind{
	"title": stringKind, "description": stringKind,
	"minItems": numberKind, "maxItems": numberKind, "minLength": numberKind, "maxLength": numberKind,
	"minimum": numberKind, "maximum": numberKind, "minProperties": numberKind, "maxProperties": numberKind,
	"pattern": stringKind,
}

// Keywords that have no word there, and are told in the description.
var geminiTold = []string{"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems", "default", "patternProperties", "not", "contains"}

func (g *gemini) convert(v *value, depth int) *value {
	g.nodes++
	if g.nodes > maxInlined || depth > 32 {
		return object(member{"type", text("object")}, member{"description", text("(deeper than shown)")})
	}
	if v.kind != objectKind {
		return object(member{"type", text("string")}, member{"description", text("Any JSON value.")})
	}
	if ref := v.get("$ref"); ref != nil && ref.kind == stringKind {
		if g.open[ref.text] || g.lookup(ref.text) == nil {
			name := ref.text[strings.LastIndexByte(ref.text, '/')+1:]
			return object(member{"type", text("object")}, member{"description", text("Again a " + name + ", as above.")})
		}
		g.open[ref.text] = true
		defer delete(g.open, ref.text)
		v = g.follow(v)
	}
	if all := v.get("allOf"); all != nil && all.kind == arrayKind {
		v = g.join(v, all, depth)
	}
	out := object()
	for _, m := range v.members {
		if k, ok := geminiKept[m.name]; ok && m.kind == k {
			out.members = append(out.members, m)
		}
	}
	if f := v.get("format"); f != nil && f.kind == stringKind {
		g.set(out, "format", f)
	}
	g.types(out, v, depth)
	g.children(out, v, depth)
	g.alternatives(out, v, depth)
	for _, k := range geminiTold {
		if x := v.get(k); x != nil {
			g.note(out, fmt.Sprintf("(%s: %s)", k, x.String()))
		}
	}
	g.fit(out)
	return out
}

var geminiTypes = []string{"string", "number", "integer", "boolean", "array", "object", "null"}

// geminiFormats are the formats that the API knows for each type.
var geminiFormats = map[string][]string{"string": {"date-time", "enum"}, "number": {"float", "double"}, "integer": {"int32", "int64"}}

// fit takes out what the API refuses with the type that the schema has:
// "only allowed for ARRAY type". What a model can make use of is told.
func (g *gemini) fit(out *value) {
	t := ""
	if x := out.get("type"); x != nil {
		t = x.text
	}
	if t != "array" {
		g.drop(out, "items")
	}
	if t != "object" {
		g.drop(out, "properties")
		g.drop(out, "required")
	}
	if e := out.get("enum"); e != nil && t != "string" {
		g.drop(out, "enum")
		g.note(out, "(one of: "+e.String()+")")
	}
	if f := out.get("format"); f != nil && !contains(geminiFormats[t], f.text) {
		g.drop(out, "format")
		g.note(out, "(format: "+f.text+")")
	}
}

// join merges the members of allOf into a copy of v.
func (g *gemini) join(v, all *value, depth int) *value {
	out := object()
	out.members = append(out.members, v.members...)
	g.drop(out, "allOf")
	if p := out.get("properties"); p != nil && p.kind == objectKind {
		own := object() // what is merged into it must not show elsewhere
		own.members = append(own.members, p.members...)
		g.set(out, "properties", own)
	}
	if depth > 32 {
		return out
	}
	for _, item := range all.items {
		if g.merges++; g.merges > maxMerges {
			break
		}
		s := g.follow(item)
		if s.kind != objectKind {
			continue
		}
		if inner := s.get("allOf"); inner != nil && inner.kind == arrayKind {
			s = g.join(s, inner, depth+1)
		}
		g.mergeProperties(out, s)
		g.require(out, stringsOf(s.get("required")))
		for _, m := range s.members {
			if m.name != "$ref" && out.get(m.name) == nil {
				g.set(out, m.name, m.value)
			}
		}
	}
	return out
}

// types writes one type, nullable, and enums of strings.
func (g *gemini) types(out, v *value, depth int) {
	var names []string
	if t := v.get("type"); t != nil && t.kind == stringKind {
		names = []string{t.text}
	} else {
		names = stringsOf(t)
	}
	names = keep(names, geminiTypes) // a schema that names another one is not refused for it
	if c := v.get("const"); c != nil {
		g.enum(out, []*value{c}, &names)
	}
	if e := v.get("enum"); e != nil && e.kind == arrayKind {
		g.enum(out, e.items, &names)
	}
	if contains(names, "null") {
		names = without(names, "null")
		g.set(out, "nullable", &value{kind: boolKind, boolean: true})
	}
	combined := v.get("anyOf") != nil || v.get("oneOf") != nil
	switch {
	case len(names) == 1:
		g.set(out, "type", text(names[0]))
	case len(names) > 1 && !combined:
		alternatives := &value{kind: arrayKind}
		for _, n := range names {
			one := object(member{"type", text(n)})
			if n == "array" || n == "object" {
				g.children(one, v, depth)
				g.fit(one)
			}
			alternatives.items = append(alternatives.items, one)
		}
		g.set(out, "anyOf", alternatives)
	case len(names) == 0:
		if t := guess(v); !combined || t == "object" || t == "array" {
			g.set(out, "type", text(t))
		}
	}
}

// guess is the type that the other keywords speak of.
func guess(v *value) string {
	switch {
	case v.get("properties") != nil || v.get("additionalProperties") != nil || v.get("required") != nil:
		return "object"
	case v.get("items") != nil || v.get("prefixItems") != nil:
		return "array"
	case v.get("minimum") != nil || v.get("maximum") != nil:
		return "number"
	}
	return "string"
}

// enum writes an enum when all values are strings, else tells them.
func (g *gemini) enum(out *value, values []*value, names *[]string) {
	var all []string
	for _, x := range values {
		switch x.kind {
		case stringKind:
			if x.text != "" { // refused in an enum
				all = append(all, x.text)
			}
		case nullKind:
			if !contains(*names, "null") {
				*names = append(*names, "null")
			}
		default:
			g.note(out, "(one of: "+(&value{kind: arrayKind, items: values}).String()+")")
			if len(without(*names, "null")) == 0 {
				*names = append(*names, map[kind]string{boolKind: "boolean", numberKind: "number", arrayKind: "array", objectKind: "object"}[x.kind])
			}
			return
		}
	}
	if len(all) == 0 {
		return
	}
	if len(without(*names, "null")) == 0 {
		*names = append(*names, "string")
	}
	g.set(out, "enum", list(all))
}

// children writes properties, required and items.
func (g *gemini) children(out, v *value, depth int) {
	if p := v.get("properties"); p != nil && p.kind == objectKind && len(p.members) > 0 {
		props := object()
		for _, m := range p.members {
			props.members = append(props.members, member{m.name, g.convert(m.value, depth+1)})
		}
		g.set(out, "properties", props)
		if need := keep(stringsOf(v.get("required")), memberNames(props)); len(need) > 0 {
			g.set(out, "required", list(need))
		}
	}
	if more := v.get("additionalProperties"); more != nil && more.kind == objectKind {
		g.note(out, "(any other property: "+more.String()+")")
	}
	if !has(v.get("type"), "array") && v.get("items") == nil && v.get("prefixItems") == nil {
		return
	}
	g.untupleInto(out, v, depth)
}

func (g *gemini) untupleInto(out, v *value, depth int) {
	copied := object()
	copied.members = append(copied.members, v.members...)
	g.untuple(copied)
	items := copied.get("items")
	if items == nil {
		items = object()
	}
	g.set(out, "items", g.convert(items, depth+1))
	if d := copied.get("description"); d != nil {
		g.set(out, "description", d)
	}
}

// alternatives writes anyOf and oneOf as anyOf, and null among them as nullable.
func (g *gemini) alternatives(out, v *value, depth int) {
	var items []*value
	for _, k := range []string{"anyOf", "oneOf"} {
		if l := v.get(k); l != nil && l.kind == arrayKind {
			items = append(items, l.items...)
		}
	}
	var kept []*value
	for _, item := range items {
		if t := item.get("type"); t != nil && t.kind == stringKind && t.text == "null" {
			g.set(out, "nullable", &value{kind: boolKind, boolean: true})
			continue
		}
		kept = append(kept, g.convert(item, depth+1))
	}
	switch {
	case len(kept) == 1 && out.get("type") == nil:
		for _, m := range kept[0].members {
			if out.get(m.name) == nil {
				g.set(out, m.name, m.value)
			}
		}
	case len(kept) > 0 && out.get("anyOf") == nil:
		g.set(out, "anyOf", &value{kind: arrayKind, items: kept})
	}
}

func memberNames(v *value) []string {
	var out []string
	for _, m := range v.members {
		out = append(out, m.name)
	}
	return out
}
