package schema

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// The few edits of a schema's tree that reducing one needs. Each marks the
// schema as changed.

func object(members ...member) *value { return &value{kind: objectKind, members: members} }

func text(s string) *value { return &value{kind: stringKind, text: s} }

func list(words []string) *value {
	v := &value{kind: arrayKind}
	for _, w := range words {
		v.items = append(v.items, text(w))
	}
	return v
}

// anyOf is a schema for any of the schemas.
func anyOf(schemas []*value) *value {
	switch len(schemas) {
	case 0:
		return object()
	case 1:
		return schemas[0]
	}
	return object(member{"anyOf", &value{kind: arrayKind, items: schemas}})
}

// set gives v's member name a value, in its place when it has one.
func (r *reducer) set(v *value, name string, to *value) {
	r.changed = true
	v.index = nil
	for i := range v.members {
		if v.members[i].name == name {
			v.members = slices.Clone(v.members)
			v.members[i].value = to
			return
		}
	}
	v.members = append(slices.Clip(v.members), member{name, to})
}

func (r *reducer) drop(v *value, name string) {
	if v.get(name) == nil {
		return
	}
	r.changed = true
	v.index = nil
	kept := make([]member, 0, len(v.members))
	for _, m := range v.members {
		if m.name != name {
			kept = append(kept, m)
		}
	}
	v.members = kept
}

// maxNote bounds what is added to a description, in bytes.
const maxNote = 1000

// note adds a sentence to v's description.
func (r *reducer) note(v *value, s string) {
	if len(s) > maxNote {
		s = s[:maxNote]
		for !utf8.ValidString(s) {
			s = s[:len(s)-1]
		}
		s += "…"
	}
	if d := v.get("description"); d != nil && d.kind == stringKind && d.text != "" {
		s = d.text + " " + s
	}
	r.set(v, "description", text(s))
}

// stringsOf are the strings of an array.
func stringsOf(v *value) []string {
	if v == nil || v.kind != arrayKind {
		return nil
	}
	var out []string
	for _, item := range v.items {
		if item.kind == stringKind {
			out = append(out, item.text)
		}
	}
	return out
}

// has reports whether a type keyword names the type.
func has(t *value, name string) bool {
	return t != nil && (t.kind == stringKind && t.text == name || contains(stringsOf(t), name))
}

func contains(list []string, s string) bool { return slices.Contains(list, s) }

func keep(list, also []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return !contains(also, s) })
}

func without(list []string, s string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(t string) bool { return t == s })
}

// briefly says what schemas are, in a few words each.
func briefly(schemas []*value) string {
	var out []string
	for _, s := range schemas {
		t := s.get("type")
		switch {
		case t != nil && t.kind == stringKind:
			out = append(out, t.text)
		case t != nil:
			out = append(out, strings.Join(stringsOf(t), " or "))
		default:
			out = append(out, "any")
		}
	}
	return strings.Join(out, ", ")
}
