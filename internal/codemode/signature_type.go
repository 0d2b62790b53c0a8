package codemode

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxTypeDepth bounds how deep types nest, in place and through references.
	maxTypeDepth = 40
	// maxTypeNodes and maxTypeBytes bound one signature. Beyond them a type is
	// told by its kind alone. The largest real schema takes a third of this.
	maxTypeNodes = 6000
	maxTypeBytes = 96 << 10
	// maxSignature bounds the types of one signature as they are shown, with the
	// indentation that maxTypeBytes does not count.
	maxSignature = 2 * maxTypeBytes
	// maxNameBytes and maxLiteralBytes bound one name of a property and one
	// literal; a longer one is not shown.
	maxNameBytes    = 1 << 10
	maxLiteralBytes = 8 << 10
	// maxOneLine is the length up to which an object without comments stays on
	// one line.
	maxOneLine = 80
)

// maxTypeWords bounds the words of one type keyword; JSON Schema knows seven.
const maxTypeWords = 8

const nameTooLong = "/* a name too long to show: see the schema */"

// tsType is a type, and what else there is to say of it.
type tsType struct {
	text  string
	note  string // for a comment; safe there, on one line
	union bool   // has | or & outside of any bracket
}

// commented is the type with its note behind it.
func (t tsType) commented() string {
	if t.note == "" {
		return t.text
	}
	return t.text + " /* " + sealedNote(t.note) + " */"
}

// sealedNote makes sure that a note put together from safe pieces ends no comment.
func sealedNote(note string) string { return strings.ReplaceAll(note, "*/", `*\/`) }

// grouped is the type in brackets where an operator of its own needs them.
func (t tsType) grouped() string {
	if t.union {
		return "(" + t.text + ")"
	}
	return t.text
}

// typeWriter writes the types of one signature.
type typeWriter struct {
	doc      *jsonValue
	anchorOf map[string]*jsonValue
	targets  map[*jsonValue]string // what is referred to, and how
	refs     []*typeReference
	refOf    map[*jsonValue]int
	names    map[string]int // how many types have asked for it
	declared []string
	depth    int
	jumps    int
	nodes    int
	bytes    int
	brief    bool // descriptions are left out
	result   bool // what is written now is what a call returns
}

func newTypeWriter() *typeWriter {
	return &typeWriter{refOf: map[*jsonValue]int{}, names: map[string]int{}}
}

// document writes the type of a whole schema document.
func (w *typeWriter) document(raw json.RawMessage) tsType {
	root, err := parseOrdered(raw)
	if err != nil {
		return tsType{text: "unknown", note: "the schema is not readable"}
	}
	return w.root(root)
}

// root opens a document and writes its type.
func (w *typeWriter) root(root *jsonValue) tsType {
	w.open(root)
	return w.schema(root)
}

// open makes a document the one that references lead into.
func (w *typeWriter) open(root *jsonValue) {
	w.doc, w.anchorOf, w.targets = root, nil, map[*jsonValue]string{}
	w.findTargets(root)
}

// findTargets notes every schema that some $ref names.
func (w *typeWriter) findTargets(v *jsonValue) {
	if ref := refKeyword(v); ref != "" {
		if target := w.lookup(ref); target != nil && w.targets[target] == "" {
			w.targets[target] = ref
		}
	}
	for _, item := range v.items {
		w.findTargets(item)
	}
	for _, name := range v.names {
		w.findTargets(v.members[name])
	}
}

// refKeyword is the reference that a schema consists of, or "".
func refKeyword(v *jsonValue) string {
	for _, keyword := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if ref := v.str(keyword); ref != "" {
			return ref
		}
	}
	return ""
}

// schema writes the type of v, or the mark of what refers to it.
func (w *typeWriter) schema(v *jsonValue) tsType {
	if ref, ok := w.targets[v]; ok {
		if i, known := w.refOf[v]; !known || !w.refs[i].open || w.refs[i].entered {
			return w.reference(ref)
		}
		w.refs[w.refOf[v]].entered = true
	}
	t := w.inPlace(v)
	w.bytes += len(t.note)
	return t
}

func (w *typeWriter) inPlace(v *jsonValue) tsType {
	switch {
	case v.kind == 't' && !v.truth, excludesAll(v.members["not"]):
		return tsType{text: "never"}
	case v.kind != '{':
		return tsType{text: "unknown"}
	}
	if w.nodes++; w.nodes > maxTypeNodes || w.bytes > maxTypeBytes || w.depth > maxTypeDepth {
		return tsType{text: kindOnly(v)}
	}
	w.depth++
	defer func() { w.depth-- }()
	notes := constraintNotes(v, !w.result)
	parts, needs := w.parts(v)
	notes = append(notes, needs...)
	t := intersectTypes(parts)
	if n := v.get("nullable", 't'); n != nil && n.truth && t.text != "unknown" {
		t = uniteTypes([]tsType{t, {text: "null"}})
	}
	doc := ""
	if !w.brief {
		doc = docLine(v.str("description"), maxParamDoc)
	}
	t.note = joinNotes(doc, t.note, notes)
	return t
}

// excludesAll reports whether a not leaves nothing: generators write "not {}"
// for a value that can't be given.
func excludesAll(not *jsonValue) bool {
	return not != nil && (not.kind == '{' && len(not.names) == 0 || not.kind == 't' && not.truth)
}

// joinNotes puts the description and the constraints into one note.
func joinNotes(description, inner string, constraints []string) string {
	if inner != "" {
		constraints = append(constraints, inner)
	}
	terms := strings.Join(constraints, ", ")
	switch {
	case description == "":
		return terms
	case terms == "":
		return description
	}
	return description + " (" + terms + ")"
}

// kindOnly is the type of a schema for which there is no room.
func kindOnly(v *jsonValue) string {
	switch v.str("type") {
	case "string", "number", "boolean", "null":
		return v.str("type")
	case "integer":
		return "number"
	case "array":
		return "unknown[]"
	case "object":
		return "object"
	}
	return "unknown /* see the schema */"
}

// parts writes what v demands, each part to hold together with the others, and
// what is to be said of it in words.
func (w *typeWriter) parts(v *jsonValue) (parts []tsType, needs []string) {
	if ref := refKeyword(v); ref != "" {
		parts = append(parts, w.reference(ref))
	}
	bare := false
	switch {
	case v.has("const"):
		parts = append(parts, tsType{text: w.literal(v.members["const"])})
	case v.get("enum", '[') != nil:
		parts = append(parts, w.enum(v.get("enum", '[').items))
	default:
		var own tsType
		if own, bare = w.typed(v); own.text != "" {
			parts = append(parts, own)
		}
	}
	first := len(parts)
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if list := v.get(keyword, '['); list != nil {
			union, required := w.forms(v, list.items)
			if union.text != "" {
				parts = append(parts, union)
			}
			if len(required) > 0 {
				needs = append(needs, "needs "+strings.Join(required, " | "))
			}
		}
	}
	if list := v.get("allOf", '['); list != nil {
		shut := slices.ContainsFunc(list.items, closed)
		for _, sub := range list.items {
			switch {
			case shut && anyObject(sub):
				// it would open what another part closes
			case onlyRequired(sub) == "":
				parts = append(parts, w.schema(sub))
			case !v.has("properties") && w.bytes <= maxTypeBytes: // else the object has them
				parts = append(parts, w.object(sub))
			}
		}
	}
	// The forms say it more exactly than a bare type does.
	if bare && len(parts) > first && slices.ContainsFunc(parts[first:], func(t tsType) bool { return t.text != "unknown" }) {
		parts = slices.Delete(parts, first-1, first)
	}
	return parts, needs
}

// typed writes what type and the keywords for objects and arrays say. bare
// means that it was the word type alone.
func (w *typeWriter) typed(v *jsonValue) (t tsType, bare bool) {
	types := typesOf(v)
	structure := slices.ContainsFunc(v.names, func(name string) bool {
		return slices.Contains([]string{"properties", "patternProperties", "additionalProperties", "items", "prefixItems", "required"}, name)
	})
	if len(types) == 0 {
		types = impliedTypes(v)
	}
	var union []tsType
	for _, name := range types {
		switch name {
		case "object":
			union = append(union, w.object(v))
		case "array":
			union = append(union, w.array(v))
		case "integer", "number":
			union = append(union, tsType{text: "number"})
		case "string", "boolean", "null":
			union = append(union, tsType{text: name})
		}
	}
	if len(union) == 0 {
		return tsType{}, false
	}
	return uniteTypes(union), !structure
}

// typesOf is the types that a schema lists, null last.
func typesOf(v *jsonValue) []string {
	t := v.members["type"]
	if t == nil {
		return nil
	}
	list := []*jsonValue{t}
	if t.kind == '[' {
		list = t.items
	}
	var types []string
	null := false
	for _, item := range list {
		switch {
		case item.kind != '"':
		case item.text == "null":
			null = true
		case len(types) < maxTypeWords && !slices.Contains(types, item.text):
			types = append(types, item.text)
		}
	}
	if null {
		types = append(types, "null")
	}
	return types
}

// impliedTypes is the types that the other keywords of a schema speak of.
func impliedTypes(v *jsonValue) []string {
	var types []string
	for _, implied := range []struct {
		kind     string
		keywords []string
	}{
		{"object", []string{"properties", "patternProperties", "additionalProperties"}},
		{"array", []string{"items", "prefixItems"}},
		{"string", []string{"pattern", "minLength", "maxLength", "contentEncoding", "format"}},
		{"number", []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
	} {
		if slices.ContainsFunc(implied.keywords, v.has) {
			types = append(types, implied.kind)
		}
	}
	return types
}

// enum writes a union of literals. No value is never.
func (w *typeWriter) enum(values []*jsonValue) tsType {
	var union []tsType
	for _, v := range values {
		text := w.literal(v)
		union = append(union, tsType{text: text})
		if w.bytes > maxTypeBytes {
			union = append(union, tsType{text: "unknown /* more values: see the schema */"})
			break
		}
	}
	if len(union) == 0 {
		return tsType{text: "never"}
	}
	return uniteTypes(union)
}

// literal is literalType for a value of any length.
func (w *typeWriter) literal(v *jsonValue) string {
	var b strings.Builder
	writeLiteral(&b, v, 0)
	text := b.String()
	if len(text) > maxLiteralBytes {
		text = "unknown /* a value too long to show: see the schema */"
	}
	w.bytes += len(text)
	return text
}

// writeLiteral writes the type that has v as its only value. What is longer than
// maxLiteralBytes is written up to some place beyond that.
func writeLiteral(b *strings.Builder, v *jsonValue, depth int) {
	if b.Len() > maxLiteralBytes {
		return
	}
	if depth > maxTypeDepth {
		b.WriteString("unknown")
		return
	}
	switch v.kind {
	case 'n':
		b.WriteString("null")
	case 't':
		b.WriteString(strconv.FormatBool(v.truth))
	case '"':
		b.WriteString(quoteTS(cutDoc(v.text, maxLiteralBytes)))
	case '0':
		b.WriteString(v.text)
	case '[':
		b.WriteByte('[')
		for i, item := range v.items {
			if b.Len() > maxLiteralBytes {
				return
			}
			if i > 0 {
				b.WriteString(", ")
			}
			writeLiteral(b, item, depth+1)
		}
		b.WriteByte(']')
	case '{':
		b.WriteByte('{')
		for i, name := range v.names {
			if b.Len() > maxLiteralBytes {
				return
			}
			if i > 0 {
				b.WriteString("; ")
			}
			b.WriteString(propertyName(cutDoc(name, maxLiteralBytes)) + ": ")
			writeLiteral(b, v.members[name], depth+1)
		}
		b.WriteByte('}')
	}
}
