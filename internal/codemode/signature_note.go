package codemode

import (
	"slices"
	"strings"
)

// maxNoteJSON bounds the JSON that is shown in a comment.
const maxNoteJSON = 160

// constraintNotes is what a schema demands beyond a TypeScript type, in few
// words. That a number is whole is of use to who writes it, not to who reads it.
func constraintNotes(v *jsonValue, written bool) []string {
	var out []string
	add := func(s string) { out = append(out, s) }
	if written && slices.Contains(typesOf(v), "integer") && !v.has("enum") && !v.has("const") {
		add("int")
	}
	for _, keyword := range []string{"format", "contentEncoding", "contentMediaType"} {
		if s := v.str(keyword); s != "" {
			add(docLine(s, 60))
		}
	}
	out = append(out, boundNotes(v)...)
	if p := v.str("pattern"); p != "" {
		add("/" + docLine(p, maxNoteJSON) + "/")
	}
	for _, keyword := range []string{"uniqueItems", "deprecated", "readOnly"} {
		if f := v.get(keyword, 't'); f != nil && f.truth {
			add(map[string]string{"uniqueItems": "unique", "deprecated": "deprecated", "readOnly": "read-only"}[keyword])
		}
	}
	out = append(out, conditionNotes(v)...)
	if v.has("default") {
		add("default " + noteJSON(v.members["default"]))
	}
	return out
}

// boundNotes is the limits on numbers, lengths and counts.
func boundNotes(v *jsonValue) []string {
	var out []string
	for _, b := range []struct{ keyword, sign, flag string }{
		{"minimum", ">=", "exclusiveMinimum"}, {"exclusiveMinimum", ">", ""},
		{"maximum", "<=", "exclusiveMaximum"}, {"exclusiveMaximum", "<", ""},
	} {
		limit := v.get(b.keyword, '0')
		if limit == nil || strings.HasSuffix(limit.text, "9007199254740991") {
			continue // the bound of every JavaScript integer says nothing
		}
		sign := b.sign
		if flag := v.get(b.flag, 't'); flag != nil && flag.truth { // draft-04
			sign = sign[:1]
		}
		out = append(out, sign+docLine(limit.text, 40))
	}
	if m := v.get("multipleOf", '0'); m != nil {
		out = append(out, "multiple of "+docLine(m.text, 40))
	}
	for _, r := range [][3]string{{"minLength", "maxLength", "chars"}, {"minItems", "maxItems", "items"}, {"minProperties", "maxProperties", "properties"}} {
		low, high := v.get(r[0], '0'), v.get(r[1], '0')
		switch {
		case r[2] == "items" && (v.has("prefixItems") || v.get("items", '[') != nil): // the tuple shows it
		case low != nil && high != nil && low.text == high.text:
			out = append(out, docLine(low.text, 40)+" "+r[2])
		case low != nil && high != nil:
			out = append(out, docLine(low.text, 40)+".."+docLine(high.text, 40)+" "+r[2])
		case low != nil && low.text != "0":
			out = append(out, ">="+docLine(low.text, 40)+" "+r[2])
		case high != nil:
			out = append(out, "<="+docLine(high.text, 40)+" "+r[2])
		}
	}
	return out
}

// conditionNotes is the keywords that no type can express.
func conditionNotes(v *jsonValue) []string {
	var out []string
	for _, keyword := range []string{"not", "contains"} {
		if m := v.members[keyword]; m != nil {
			out = append(out, keyword+" "+noteJSON(m))
		}
	}
	if n := v.members["propertyNames"]; n != nil {
		out = append(out, "keys "+noteJSON(n))
	}
	if v.has("if") {
		s := "if " + noteJSON(v.members["if"])
		for _, branch := range []string{"then", "else"} {
			if v.has(branch) {
				s += " " + branch + " " + noteJSON(v.members[branch])
			}
		}
		out = append(out, s)
	}
	for _, keyword := range []string{"dependentRequired", "dependencies", "dependentSchemas"} {
		d := v.get(keyword, '{')
		if d == nil {
			continue
		}
		for i, name := range d.names {
			if i == 10 {
				out = append(out, "…")
				break
			}
			needed := d.members[name]
			text := noteJSON(needed)
			if needed.kind == '[' {
				text = onlyRequired(&jsonValue{kind: '{', names: []string{"required"}, members: map[string]*jsonValue{"required": needed}})
			}
			if text != "" {
				out = append(out, docLine(name, 80)+" needs "+text)
			}
		}
	}
	return out
}

// noteJSON writes v as JSON for a comment, without descriptions, cut when long.
// Blanks in a value are the value's own.
func noteJSON(v *jsonValue) string {
	var b strings.Builder
	writeNoteJSON(&b, v)
	return cutDoc(commentText(cutDoc(b.String(), 4*maxNoteJSON)), maxNoteJSON)
}

func writeNoteJSON(b *strings.Builder, v *jsonValue) {
	switch {
	case b.Len() > 4*maxNoteJSON:
	case v.kind == '[':
		b.WriteByte('[')
		for i, item := range v.items {
			if b.Len() > 4*maxNoteJSON {
				return
			}
			if i > 0 {
				b.WriteByte(',')
			}
			writeNoteJSON(b, item)
		}
		b.WriteByte(']')
	case v.kind == '{':
		b.WriteByte('{')
		sep := ""
		for _, name := range v.names {
			if b.Len() > 4*maxNoteJSON {
				return
			}
			if name == "description" && v.members[name].kind == '"' {
				continue
			}
			b.WriteString(sep + propertyName(cutDoc(name, 4*maxNoteJSON)) + ":")
			writeNoteJSON(b, v.members[name])
			sep = ","
		}
		b.WriteByte('}')
	default:
		writeLiteral(b, v, 0)
	}
}
