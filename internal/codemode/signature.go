package codemode

import (
	"encoding/json"
	"slices"
	"strings"
)

// signature returns the declaration of one binding for a model: the tool's
// description as a JSDoc comment, and a method that is a member of
// `declare const tools: { … }`:
//
//	/** Reads a file. */
//	read_file(args: {
//	 /** absolute */ file_path: string
//	 /** int, >=0 */ offset?: number
//	}): Promise<Result>
//
// args is optional when nothing in it is required, and left out when there is
// nothing to give. An output schema is the type argument of Result. Types that
// are recursive, or long and used more than once, are type parameters with a
// constraint, which is where a declaration of one member can name a type:
// `f<Node extends {kids?: Node[]}>(args: Node)`.
//
// The same bytes give the same text; required properties come first, otherwise
// the schema's order is kept (S0-089, S0-095). The text is valid TypeScript
// whatever the schema and the descriptions hold, and bounded: beyond
// maxSignature, types are left out. A schema that is not JSON is said to be
// unreadable.
func signature(jsName, description string, input, output json.RawMessage) string {
	return newTypeWriter().signature(jsName, description, input, output)
}

// briefSignature is the signature without any description, for a reader who has
// the schema beside it.
func briefSignature(jsName string, input, output json.RawMessage) string {
	w := newTypeWriter()
	w.brief = true
	return w.signature(jsName, "", input, output)
}

func (w *typeWriter) signature(jsName, description string, input, output json.RawMessage) string {
	args := w.arguments(input)
	result := "Promise<Result"
	if w.result = true; len(output) > 0 {
		if t := w.document(output); t.text != "unknown" {
			result += "<" + t.commented() + ">"
		}
	}
	result += ">"
	expanded := w.resolve(args + "\x01" + result)
	args, result, _ = strings.Cut(expanded, "\x01")
	params := w.parameters()
	if len(params)+len(args)+len(result) > maxSignature {
		params, result = "", "Promise<Result>"
		if head, _, some := strings.Cut(args, ": "); some {
			args = head + ": object /* see the schema */"
		}
	}

	var b strings.Builder
	if doc := docLines(description, maxToolDoc); doc != "" {
		b.WriteString("/** " + doc + " */\n")
	}
	b.WriteString(propertyName(jsName) + params + "(" + args + "): " + result)
	return b.String()
}

// arguments writes the parameter list for an input schema.
func (w *typeWriter) arguments(input json.RawMessage) string {
	if len(input) == 0 {
		return ""
	}
	root, err := parseOrdered(input)
	if err != nil {
		return "args: unknown /* the schema is not readable */"
	}
	if root.kind == 'n' || takesNothing(root) {
		return ""
	}
	t := w.root(root)
	head := "args: "
	if steps := maxTypeNodes; w.takesEmpty(root, &steps) {
		head = "args?: "
	}
	return head + t.commented()
}

// takesNothing reports whether a schema is an object without any property.
func takesNothing(root *jsonValue) bool {
	if root.kind != '{' || root.str("type") != "object" {
		return false
	}
	for _, name := range root.names {
		switch name {
		case "type", "$schema", "title", "description", "required", "$defs", "definitions", "$id", "$comment":
		case "properties":
			if p := root.get("properties", '{'); p == nil || len(p.names) > 0 {
				return false
			}
		case "additionalProperties":
			if p := root.get(name, 't'); p == nil || p.truth {
				return false
			}
		default:
			return false
		}
	}
	r := root.get("required", '[')
	return r == nil || len(r.items) == 0
}

// takesEmpty reports whether v takes {}, as far as required lists, references and
// combinations say. It looks at steps schemas at most; what is beyond takes
// something.
func (w *typeWriter) takesEmpty(v *jsonValue, steps *int) bool {
	if v == nil || v.kind != '{' {
		return v != nil && v.truth
	}
	if *steps--; *steps < 0 {
		return false
	}
	if types := typesOf(v); v.has("type") && !slices.Contains(types, "object") {
		return false
	}
	if r := v.get("required", '['); r != nil && len(r.items) > 0 {
		return false
	}
	for _, keyword := range []string{"enum", "const", "not", "if", "minProperties"} {
		if v.has(keyword) {
			return false
		}
	}
	if ref := refKeyword(v); ref != "" && !w.takesEmpty(w.lookup(ref), steps) {
		return false
	}
	for _, group := range []struct {
		keyword     string
		least, most int // forms that have to take it; -1 is all
	}{{"allOf", -1, -1}, {"anyOf", 1, -1}, {"oneOf", 1, 1}} {
		list := v.get(group.keyword, '[')
		if list == nil {
			continue
		}
		n := 0
		for _, form := range list.items {
			if w.takesEmpty(form, steps) {
				n++
			}
		}
		if n < group.least || group.least < 0 && n < len(list.items) || group.most > 0 && n > group.most {
			return false
		}
	}
	return true
}
