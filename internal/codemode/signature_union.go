package codemode

import (
	"slices"
	"strings"
)

// forms writes the union of an anyOf or oneOf. Where all forms only list required
// names, that is told in words; beside other forms, such a one is a type, for the
// union without it would say too much.
func (w *typeWriter) forms(parent *jsonValue, list []*jsonValue) (union tsType, required []string) {
	inWords := !slices.ContainsFunc(list, func(form *jsonValue) bool { return onlyRequired(form) == "" })
	var types []tsType
	for _, form := range list {
		if names := onlyRequired(form); names != "" && !inWords {
			types = append(types, w.object(form))
			continue
		} else if inWords {
			if w.bytes <= maxTypeBytes {
				w.bytes += len(names)
				required = append(required, names)
			}
			continue
		}
		form = inheritType(form, parent)
		t := w.schema(form)
		// A note belongs to its member of the union.
		types = append(types, tsType{text: t.commented(), union: t.union})
	}
	if len(types) == 0 {
		if len(required) > 0 {
			return tsType{}, required
		}
		return tsType{text: "never"}, nil
	}
	return uniteTypes(types), required
}

// maxNeedBytes bounds the names of one need.
const maxNeedBytes = 1 << 10

// onlyRequired is the names that a schema requires, when it says nothing else.
func onlyRequired(v *jsonValue) string {
	list := v.get("required", '[')
	if list == nil || len(list.items) == 0 {
		return ""
	}
	for _, name := range v.names {
		if !slices.Contains([]string{"required", "type", "title", "description"}, name) {
			return ""
		}
	}
	var names []string
	size := 0
	for _, item := range list.items {
		if size > maxNeedBytes {
			names = append(names, "…")
			break
		}
		names = append(names, docLine(item.text, 80))
		size += len(names[len(names)-1])
	}
	return strings.Join(names, " & ")
}

// inheritType gives a form without a type the type of the schema around it, which
// holds for it as well.
func inheritType(form, parent *jsonValue) *jsonValue {
	types := parent.members["type"]
	if types == nil || form.kind != '{' || len(form.names) == 0 || refKeyword(form) != "" || len(impliedTypes(form)) > 0 {
		return form
	}
	for _, name := range []string{"type", "enum", "const", "anyOf", "oneOf", "allOf"} {
		if form.has(name) {
			return form
		}
	}
	out := &jsonValue{kind: '{', names: append(slices.Clone(form.names), "type"), members: map[string]*jsonValue{"type": types}}
	for _, name := range form.names {
		out.members[name] = form.members[name]
	}
	return out
}

// uniteTypes writes a union, each member once and null last.
func uniteTypes(types []tsType) tsType {
	if len(types) > 1 { // never adds nothing to a union
		some := slices.DeleteFunc(slices.Clone(types), func(t tsType) bool { return t.text == "never" })
		if types = some; len(some) == 0 {
			return tsType{text: "never"}
		}
	}
	var texts []string
	note := ""
	null := false
	seen := map[string]bool{}
	for _, t := range types {
		if note == "" {
			note = t.note
		}
		switch {
		case t.text == "null":
			null = true
		case !seen[t.text]:
			seen[t.text] = true
			texts = append(texts, t.text)
		}
	}
	if null {
		texts = append(texts, "null")
	}
	if len(texts) == 1 {
		return tsType{text: texts[0], note: note, union: types[0].union}
	}
	return tsType{text: strings.Join(texts, " | "), note: note, union: true}
}

// intersectTypes writes an intersection; what says nothing is left out.
func intersectTypes(types []tsType) tsType {
	var kept []tsType
	var notes []string
	seen := map[string]bool{"unknown": true}
	for _, t := range types {
		if t.note != "" {
			notes = append(notes, t.note)
		}
		if !seen[t.text] {
			seen[t.text] = true
			kept = append(kept, t)
		}
	}
	note := strings.Join(notes, ", ")
	switch len(kept) {
	case 0:
		return tsType{text: "unknown", note: note}
	case 1:
		return tsType{text: kept[0].text, note: note, union: kept[0].union}
	}
	texts := make([]string, len(kept))
	for i, t := range kept {
		texts[i] = t.grouped()
	}
	return tsType{text: strings.Join(texts, " & "), note: note, union: true}
}
