package anthropic

import (
	"encoding/json"
	"slices"
	"strings"
)

// The API takes a subset of JSON Schema as the form of an answer: objects are
// closed, nothing is recursive, and there are no bounds on numbers, lengths and
// counts. A keyword that is left out here is said in the description; whoever
// reads the answer checks it against the full schema.

// dropped are the keywords that the API refuses and that only narrow.
var dropped = []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
	"pattern", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "format", "default", "examples"}

// taken are the keywords that are left as they are, or looked into.
var taken = []string{"type", "properties", "required", "items", "enum", "const", "anyOf", "allOf", "$ref", "$defs", "definitions",
	"title", "description", "additionalProperties", "$schema", "$id", "$comment"}

// maxDepth bounds a schema that is looked into.
const maxDepth = 100

// strict reduces a schema. ok is false when the API has no words for what it
// says: maps, recursion, references elsewhere, anything but an object.
func strict(raw json.RawMessage) (_ json.RawMessage, ok bool) {
	var root map[string]any
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	if dec.Decode(&root) != nil || root["type"] != "object" {
		return nil, false
	}
	if r := (refs{root, map[string]bool{}}); !reduce(root, 0) || !r.lead(root) {
		return nil, false
	}
	delete(root, "$schema")
	return encodeRaw(root), true
}

func reduce(s map[string]any, depth int) bool {
	if depth > maxDepth {
		return false
	}
	if one, is := s["oneOf"]; is && s["anyOf"] == nil {
		s["anyOf"] = one
		delete(s, "oneOf")
	}
	var said []string
	for _, k := range dropped {
		if v, is := s[k]; is {
			said = append(said, k+": "+string(encodeRaw(v)))
			delete(s, k)
		}
	}
	if len(said) > 0 {
		old, _ := s["description"].(string)
		s["description"] = strings.TrimSpace(old + " (" + strings.Join(said, ", ") + ")")
	}
	for k := range s {
		if !slices.Contains(taken, k) {
			return false
		}
	}
	if !closes(s) {
		return false
	}
	return all(inner(s), func(v any) bool {
		m, is := v.(map[string]any)
		return is && reduce(m, depth+1)
	})
}

// closes says of an object that it has no other properties. A map, whose
// properties nobody names, cannot be closed.
func closes(s map[string]any) bool {
	types, _ := s["type"].([]any)
	if s["type"] != "object" && !slices.Contains(types, any("object")) && s["properties"] == nil {
		return true
	}
	switch more, is := s["additionalProperties"]; {
	case is && more != false && more != true:
		return false
	case s["properties"] == nil && more != false:
		return false
	}
	s["additionalProperties"] = false
	return true
}

// inner are the schemas right inside one.
func inner(s map[string]any) []any {
	var out []any
	for _, k := range []string{"properties", "$defs", "definitions"} {
		if group, is := s[k].(map[string]any); is {
			for _, v := range group {
				out = append(out, v)
			}
		} else if s[k] != nil {
			out = append(out, s[k])
		}
	}
	for _, k := range []string{"anyOf", "allOf"} {
		if list, is := s[k].([]any); is {
			out = append(out, list...)
		}
	}
	if s["items"] != nil {
		out = append(out, s["items"])
	}
	return out
}

func all(list []any, f func(any) bool) bool {
	return !slices.ContainsFunc(list, func(v any) bool { return !f(v) })
}

// refs follows the references of a schema. A definition is followed once.
type refs struct {
	root map[string]any
	seen map[string]bool // false while it is followed
}

// lead reports whether all references in s lead to a definition at the root,
// and none to itself.
func (r *refs) lead(s map[string]any) bool {
	if ref, is := s["$ref"].(string); is {
		group, name, _ := strings.Cut(strings.TrimPrefix(ref, "#/"), "/")
		defs, _ := r.root[group].(map[string]any)
		def, _ := defs[name].(map[string]any)
		done, met := r.seen[ref]
		switch {
		case group != "$defs" && group != "definitions", def == nil, met && !done:
			return false
		case !met:
			r.seen[ref] = false
			if !r.lead(def) {
				return false
			}
			r.seen[ref] = true
		}
	}
	return all(inner(s), func(v any) bool {
		m, is := v.(map[string]any)
		return is && r.lead(m)
	})
}
