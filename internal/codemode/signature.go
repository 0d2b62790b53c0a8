package codemode

import (
	"encoding/json"
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
// whatever the schema and the descriptions hold, and bounded. A schema that is
// not JSON is said to be unreadable.
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

	var b strings.Builder
	if doc := docLines(description, maxToolDoc); doc != "" {
		b.WriteString("/** " + doc + " */\n")
	}
	b.WriteString(propertyName(jsName) + w.parameters() + "(" + args + "): " + result)
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
	if optionalArguments(root) {
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

// optionalArguments reports whether {} satisfies the root as far as its
// required lists say.
func optionalArguments(root *jsonValue) bool {
	if root.kind == 't' {
		return root.truth
	}
	if t := root.members["type"]; t != nil && t.text != "object" {
		return false
	}
	if r := root.get("required", '['); r != nil && len(r.items) > 0 {
		return false
	}
	for _, name := range []string{"allOf", "anyOf", "oneOf", "$ref", "enum", "const", "not", "if", "minProperties"} {
		if root.has(name) {
			return false
		}
	}
	return true
}
