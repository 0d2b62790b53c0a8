package main

import (
	"encoding/json"
	"slices"
)

// structure is what a type can say of a schema: all but the bounds, patterns,
// formats and conditions, which a signature tells in words. What the whole
// schema takes, its structure takes too, since nothing here is negated.
func structure(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	if not, has := m["not"]; has && takesAll(not) {
		return false
	}
	out := map[string]any{}
	for name, value := range m {
		if kept := structureOf(m, name, value); kept != nil {
			if name == "oneOf" {
				name = "anyOf" // with looser forms, more than one may fit
				if m["anyOf"] != nil {
					out["allOf"] = append(list(out["allOf"]), map[string]any{"anyOf": kept})
					continue
				}
			}
			if name == "allOf" {
				kept = append(list(out["allOf"]), list(kept)...)
			}
			out[name] = kept
		}
	}
	if c, ok := m["const"]; ok && c == nil {
		out["enum"] = []any{nil}
	}
	if !slices.ContainsFunc([]string{"type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf"}, func(k string) bool { _, has := m[k]; return has }) {
		if kinds := spokenOf(m); len(kinds) > 0 {
			types := []any{}
			for _, k := range kinds {
				types = append(types, k)
			}
			out["type"] = types
		}
	}
	return out
}

// structureOf is what stays of one keyword; nil when nothing does.
func structureOf(m map[string]any, name string, value any) any {
	switch name {
	case "type":
		return looseType(value)
	case "required", "enum", "const", "$ref", "$schema", "$id", "$anchor":
		if name == "const" && value == nil {
			return nil // not to be told from none; see structure
		}
		return value
	case "properties", "patternProperties", "$defs", "definitions":
		group, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		out := map[string]any{}
		for key, sub := range group {
			out[key] = structure(sub)
		}
		return out
	case "additionalProperties", "additionalItems", "unevaluatedProperties":
		if value == false && m["patternProperties"] != nil {
			return nil // which names there may be is told in words
		}
		return structure(value)
	case "items", "prefixItems", "allOf", "anyOf", "oneOf":
		forms, many := value.([]any)
		if !many {
			return structure(value)
		}
		if (name == "anyOf" || name == "oneOf") && slices.ContainsFunc(forms, needsOnly) && !slices.ContainsFunc(forms, func(f any) bool { return !needsOnly(f) }) {
			return nil // told in words
		}
		out := []any{}
		for _, sub := range forms {
			out = append(out, structure(sub))
		}
		return out
	case "minItems", "maxItems":
		_, tuple := m["items"].([]any)
		if _, prefix := m["prefixItems"].([]any); prefix || tuple {
			return value
		}
	}
	return nil
}

func list(v any) []any { l, _ := v.([]any); return l }

func takesAll(v any) bool {
	m, ok := v.(map[string]any)
	return v == true || ok && len(m) == 0
}

// needsOnly says whether a form does nothing but require names.
func needsOnly(form any) bool {
	m, ok := form.(map[string]any)
	if !ok || m["required"] == nil {
		return false
	}
	for name := range m {
		if !slices.Contains([]string{"required", "type", "title", "description"}, name) {
			return false
		}
	}
	return true
}

// looseType says number for integer: TypeScript has one type for both.
func looseType(v any) any {
	if names, many := v.([]any); many {
		out := []any{}
		for _, n := range names {
			if n = looseType(n); !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
		return out
	}
	if v == "integer" {
		return "number"
	}
	return v
}

// encode writes a value that was read from JSON.
func encode(v any) json.RawMessage {
	b, _ := json.Marshal(v) // it came from JSON: cannot fail
	return b
}
