package search

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds on one schema.
const (
	maxSchema = 1 << 20 // bytes read
	maxDepth  = 64      // levels of nesting; below, nothing is found
	maxParams = 1000    // strings taken for one field
	maxEnum   = 64      // bytes of an enum value: longer ones are no words
)

// read sorts the text of a document into fields.
func (b *builder) read(d *Document) [fields][]string {
	var parts [fields][]string
	short := d.Short
	if short == "" {
		short = d.Name
	}
	parts[fieldName] = []string{clip(short, maxName)}
	parts[fieldTitle] = []string{clip(d.Title, maxName)}
	parts[fieldServer] = []string{clip(d.Server, maxName)}
	lead, rest := sentence(d.Description)
	parts[fieldLead] = []string{lead, clip(d.Hint, maxText)}
	about, more := sentence(d.ServerDescription)
	parts[fieldRest] = []string{rest, about, more}
	w := walker{parts: &parts, dec: b.dec}
	w.dec.Reset(bytes.NewBuffer(d.Schema[:min(len(d.Schema), maxSchema)]), // a Buffer is not copied
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	w.schema(0)
	return parts
}

// sentence cuts text after its first sentence or line.
func sentence(text string) (lead, rest string) {
	text = strings.TrimSpace(clip(text, maxText))
	for i, r := range text {
		switch r {
		case '\n', '。', '！', '？':
			n := utf8.RuneLen(r)
			return text[:i+n], text[i+n:]
		case '.', '!', '?':
			if i+1 < len(text) && (text[i+1] == ' ' || text[i+1] == '\n') && i > 20 { // not at "e.g. "
				return text[:i+1], text[i+1:]
			}
		}
	}
	return text, ""
}

// walker reads a JSON Schema as a stream. It stops for good at the first error.
type walker struct {
	dec   *jsontext.Decoder
	parts *[fields][]string
	err   error
}

// schema reads one schema, which may also be a boolean or anything else.
func (w *walker) schema(depth int) {
	if w.err != nil {
		return
	}
	if depth > maxDepth || w.dec.PeekKind() != '{' {
		w.skip()
		return
	}
	w.token()
	for w.err == nil && w.dec.PeekKind() != '}' {
		w.keyword(w.token(), depth)
	}
	w.token()
}

// keyword reads the value of one keyword of a schema.
func (w *walker) keyword(name string, depth int) {
	switch name {
	case "properties", "patternProperties":
		w.schemas(depth, name == "properties")
	case "$defs", "definitions", "dependentSchemas":
		w.schemas(depth, false)
	case "items", "prefixItems", "additionalItems", "additionalProperties", "anyOf", "oneOf", "allOf", "if", "then", "else", "contains", "propertyNames":
		w.one(depth)
	case "description", "title":
		f := fieldParamText
		if depth == 0 {
			f = fieldRest
		}
		w.text(f, maxText)
	case "enum":
		w.enum()
	case "const":
		w.text(fieldEnum, maxEnum)
	default:
		w.skip()
	}
}

// schemas reads an object whose values are schemas.
func (w *walker) schemas(depth int, named bool) {
	if w.err != nil || w.dec.PeekKind() != '{' {
		w.skip()
		return
	}
	w.token()
	for w.err == nil && w.dec.PeekKind() != '}' {
		if name := w.token(); named {
			w.take(fieldParam, name)
		}
		w.schema(depth + 1)
	}
	w.token()
}

// one reads a schema or a list of them.
func (w *walker) one(depth int) {
	if w.err != nil || w.dec.PeekKind() != '[' {
		w.schema(depth + 1)
		return
	}
	w.token()
	for w.err == nil && w.dec.PeekKind() != ']' {
		w.schema(depth + 1)
	}
	w.token()
}

func (w *walker) enum() {
	if w.err != nil || w.dec.PeekKind() != '[' {
		w.skip()
		return
	}
	w.token()
	for w.err == nil && w.dec.PeekKind() != ']' {
		w.text(fieldEnum, maxEnum)
	}
	w.token()
}

// text takes a value if it is a string of at most limit bytes.
func (w *walker) text(f field, limit int) {
	if w.err != nil || w.dec.PeekKind() != '"' {
		w.skip()
		return
	}
	if s := w.token(); len(s) <= limit || limit == maxText {
		w.take(f, s)
	}
}

func (w *walker) take(f field, s string) {
	if s != "" && len(w.parts[f]) < maxParams {
		w.parts[f] = append(w.parts[f], s)
	}
}

// token reads one token and returns its text.
func (w *walker) token() string {
	if w.err != nil {
		return ""
	}
	t, err := w.dec.ReadToken()
	if w.err = err; err != nil {
		return ""
	}
	return t.String()
}

func (w *walker) skip() {
	if w.err == nil {
		w.err = w.dec.SkipValue()
	}
}
