package codemode

import (
	"slices"
	"strconv"
	"strings"
)

// object writes an object type: required properties first, then the optional
// ones, then what other names may hold.
func (w *typeWriter) object(v *jsonValue) tsType {
	required, demanded := requiredOf(v)
	var first, rest []string
	properties := v.get("properties", '{')
	if properties != nil {
		for i, name := range properties.names {
			if w.bytes > maxTypeBytes {
				rest = append(rest, "/* "+strconv.Itoa(len(properties.names)-i)+" more: see the schema */")
				break
			}
			if len(name) > maxNameBytes {
				rest = append(rest, nameTooLong)
				continue
			}
			line := w.property(name, properties.members[name], demanded[name])
			if demanded[name] {
				first = append(first, line)
			} else {
				rest = append(rest, line)
			}
		}
	}
	for _, name := range required { // demanded, but nowhere described
		if properties != nil && properties.members[name] != nil {
			continue
		}
		if w.bytes > maxTypeBytes {
			rest = append(rest, "/* more is required: see the schema */")
			break
		}
		if len(name) > maxNameBytes {
			rest = append(rest, nameTooLong)
			continue
		}
		line := propertyName(name) + ": unknown"
		w.bytes += len(line)
		first = append(first, line)
	}
	lines := append(first, rest...)
	index, key := w.index(v)
	switch {
	case len(lines) > 0 && index.text != "":
		lines = append(lines, jsdocComment(key, index.note)+"[key: string]: "+index.text)
	case index.text != "":
		return tsType{text: "Record<string, " + index.text + ">", note: joinNotes("", index.note, oneNote(key))}
	case len(lines) == 0 && closedObject(v):
		return tsType{text: "{}"}
	case len(lines) == 0:
		return tsType{text: "object"}
	}
	return tsType{text: objectLayout(lines)}
}

func oneNote(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// requiredOf is the names that a schema requires, each once, in its order and
// as a set; also those that a part of its allOf does nothing but require.
func requiredOf(v *jsonValue) (names []string, set map[string]bool) {
	set = map[string]bool{}
	demand := func(v *jsonValue) {
		list := v.get("required", '[')
		if list == nil {
			return
		}
		for _, item := range list.items {
			if item.kind == '"' && !set[item.text] {
				set[item.text] = true
				names = append(names, item.text)
			}
		}
	}
	demand(v)
	if all := v.get("allOf", '['); all != nil {
		for _, sub := range all.items {
			if onlyRequired(sub) != "" {
				demand(sub)
			}
		}
	}
	return names, set
}

// closedObject reports whether no property beyond the named ones is allowed.
func closedObject(v *jsonValue) bool {
	for _, keyword := range []string{"additionalProperties", "unevaluatedProperties"} {
		if a := v.get(keyword, 't'); a != nil && !a.truth {
			return true
		}
	}
	return false
}

// anyObject reports whether v says no more than that a value is an object.
func anyObject(v *jsonValue) bool {
	a := v.members["additionalProperties"]
	if v.str("type") != "object" || a == nil || a.kind == '{' && len(a.names) > 0 || a.kind == 't' && !a.truth {
		return false
	}
	return !slices.ContainsFunc(v.names, func(name string) bool {
		return !slices.Contains([]string{"type", "additionalProperties", "title", "description"}, name)
	})
}

// closed reports whether v takes objects only, with none but the names that it
// lists: itself, or in each form of a union.
func closed(v *jsonValue) bool {
	if v.str("type") == "object" && closedObject(v) {
		return true
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		forms := v.get(keyword, '[')
		if forms != nil && len(forms.items) > 0 && !slices.ContainsFunc(forms.items, func(form *jsonValue) bool {
			return form.str("type") != "object" || !closedObject(form)
		}) {
			return true
		}
	}
	return false
}

// property writes one property with its comment before it.
func (w *typeWriter) property(name string, schema *jsonValue, required bool) string {
	t := w.schema(schema)
	mark := "?: "
	if required {
		mark = ": "
	}
	key := propertyName(name)
	w.bytes += len(key) + 10
	return jsdocComment("", t.note) + key + mark + t.text
}

// jsdocComment is a JSDoc comment of what there is to say.
func jsdocComment(parts ...string) string {
	text := strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
	if text == "" {
		return ""
	}
	return "/** " + sealedNote(text) + " */ "
}

// index is the type of the properties that have no name of their own, and what
// is said of their names.
func (w *typeWriter) index(v *jsonValue) (t tsType, key string) {
	var types []tsType
	var keys []string
	if patterns := v.get("patternProperties", '{'); patterns != nil {
		for _, pattern := range patterns.names {
			if p := patterns.members[pattern]; p.kind == '{' || p.truth {
				if w.bytes > maxTypeBytes {
					keys = append(keys, "…")
					break
				}
				types = append(types, w.schema(p))
				keys = append(keys, "/"+docLine(pattern, 120)+"/")
				w.bytes += len(keys[len(keys)-1])
			}
		}
	}
	if a := v.members["additionalProperties"]; a != nil && (a.kind == '{' || a.kind == 't' && a.truth) {
		types = append(types, w.schema(a))
		if len(keys) > 0 {
			keys = append(keys, "others")
		}
	}
	if len(types) == 0 {
		return tsType{}, ""
	}
	if len(keys) > 0 {
		key = "keys " + strings.Join(keys, ", ")
	}
	return uniteTypes(types), key
}

// objectLayout writes the members of an object type on one line or one on each.
func objectLayout(lines []string) string {
	one := "{" + strings.Join(lines, "; ") + "}"
	if len(one) <= maxOneLine && (len(lines) == 1 || !strings.Contains(one, "/*")) && !strings.Contains(one, "\n") {
		return one
	}
	return "{\n " + strings.ReplaceAll(strings.Join(lines, "\n"), "\n", "\n ") + "\n}"
}

// array writes an array or tuple type.
func (w *typeWriter) array(v *jsonValue) tsType {
	prefix, rest := v.get("prefixItems", '['), v.members["items"]
	if list := v.get("items", '['); list != nil {
		prefix, rest = list, v.members["additionalItems"]
	}
	if prefix != nil && len(prefix.items) > 0 {
		return w.tuple(v, prefix.items, rest)
	}
	if rest == nil {
		return tsType{text: "unknown[]"}
	}
	item := w.schema(rest)
	text := item.grouped() + "[]"
	note := item.note
	if note != "" {
		note = "each: " + note
	}
	return tsType{text: text, note: note}
}

func (w *typeWriter) tuple(v *jsonValue, prefix []*jsonValue, rest *jsonValue) tsType {
	minimum := countKeyword(v, "minItems", 0)
	var parts []string
	for i, item := range prefix {
		t := w.schema(item)
		if i >= minimum {
			t.text = t.grouped() + "?"
		}
		text := t.commented()
		parts = append(parts, text)
		if w.bytes += len(text); w.bytes > maxTypeBytes && i+1 < len(prefix) {
			return tsType{text: "[" + strings.Join(parts, ", ") + ", ...unknown[] /* more: see the schema */]"}
		}
	}
	open := rest == nil || rest.kind != 't' || rest.truth
	if open && countKeyword(v, "maxItems", len(prefix)+1) > len(prefix) {
		t := tsType{text: "unknown"}
		if rest != nil {
			t = w.schema(rest)
		}
		parts = append(parts, "..."+t.grouped()+"[]")
	}
	return tsType{text: "[" + strings.Join(parts, ", ") + "]"}
}

// countKeyword reads a keyword that holds a small count.
func countKeyword(v *jsonValue, keyword string, absent int) int {
	if m := v.get(keyword, '0'); m != nil {
		if n, err := strconv.Atoi(m.text); err == nil {
			return n
		}
	}
	return absent
}
