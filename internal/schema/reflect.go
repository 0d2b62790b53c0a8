package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Of returns the JSON Schema of the Go type T, for arguments that are decoded
// into it. See [For].
func Of[T any]() (json.RawMessage, error) { return For(reflect.TypeFor[T]()) }

// For returns the JSON Schema of t. The same type gives the same bytes.
//
// A struct is an object without other properties. The properties are its
// exported fields in their order, under their JSON names; a field without
// omitempty or omitzero is required. A pointer is its element, and null too
// unless the field is optional. The tag jsonschema:"…" is the description of a
// field, schema:"…" adds keywords, separated by semicolons:
//
//	Timeout int `json:"timeout,omitempty" jsonschema:"in milliseconds" schema:"minimum=1;maximum=600000;default=120000"`
//	Mode    string `json:"mode" schema:"enum=content|files|count"`
//
// They are minimum, maximum, minLength, maxLength, minItems, maxItems,
// pattern, format, default and enum (values separated by |). Types that JSON
// cannot hold, recursive types, tags that cannot be read and two fields with
// one name are errors.
func For(t reflect.Type) (json.RawMessage, error) {
	g := generator{}
	g.schema(t, nil, false)
	if g.err != nil {
		return nil, fmt.Errorf("making the schema of %v: %w", t, g.err)
	}
	return g.out, nil
}

type generator struct {
	out  []byte
	path []reflect.Type // the structs being written, to find recursion
	err  error
}

func (g *generator) fail(format string, args ...any) {
	if g.err == nil {
		g.err = fmt.Errorf(format, args...)
	}
}

// keyword starts a member of the object being written.
func (g *generator) keyword(name string) {
	if g.out[len(g.out)-1] != '{' {
		g.out = append(g.out, ',')
	}
	g.out = append(appendQuoted(g.out, name), ':')
}

func (g *generator) text(keyword, s string) {
	g.keyword(keyword)
	g.out = appendQuoted(g.out, s)
}

// schema writes the schema of t with the tags of the field that has it.
func (g *generator) schema(t reflect.Type, field *reflect.StructField, optional bool) {
	if g.err != nil {
		return
	}
	nullable := false
	for t.Kind() == reflect.Pointer {
		t, nullable = t.Elem(), !optional
	}
	g.out = append(g.out, '{')
	g.body(t, nullable)
	if field != nil {
		g.tags(t, field)
	}
	g.out = append(g.out, '}')
}

func (g *generator) typeIs(name string, nullable bool) {
	g.keyword("type")
	if nullable {
		g.out = append(appendQuoted(append(g.out, '['), name), `,"null"]`...)
		return
	}
	g.out = appendQuoted(g.out, name)
}

// special writes the types whose JSON form their kind does not tell.
func (g *generator) special(t reflect.Type, nullable bool) bool {
	switch t {
	case reflect.TypeFor[json.RawMessage]():
	case reflect.TypeFor[json.Number]():
		g.typeIs("number", nullable)
	case reflect.TypeFor[[]byte]():
		g.typeIs("string", nullable)
		g.text("contentEncoding", "base64")
	case reflect.TypeFor[time.Time]():
		g.typeIs("string", nullable)
		g.text("format", "date-time")
	default:
		return false
	}
	return true
}

func (g *generator) body(t reflect.Type, nullable bool) {
	if g.special(t, nullable) {
		return
	}
	switch t.Kind() {
	case reflect.Bool:
		g.typeIs("boolean", nullable)
	case reflect.String:
		g.typeIs("string", nullable)
	case reflect.Float32, reflect.Float64:
		g.typeIs("number", nullable)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		g.integer(t, nullable)
	case reflect.Slice, reflect.Array:
		g.typeIs("array", nullable)
		g.keyword("items")
		g.schema(t.Elem(), nil, false)
		if t.Kind() == reflect.Array {
			g.keyword("minItems")
			g.out = strconv.AppendInt(g.out, int64(t.Len()), 10)
			g.keyword("maxItems")
			g.out = strconv.AppendInt(g.out, int64(t.Len()), 10)
		}
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			g.fail("the keys of %v are not strings", t)
			return
		}
		g.typeIs("object", nullable)
		g.keyword("additionalProperties")
		g.schema(t.Elem(), nil, false)
	case reflect.Struct:
		g.object(t, nullable)
	case reflect.Interface:
	default:
		g.fail("JSON has no form for %v", t)
	}
}

// integer writes the bounds of the sized types, so that what passes the schema
// can be decoded. int and int64 are left open for the reader's sake.
func (g *generator) integer(t reflect.Type, nullable bool) {
	g.typeIs("integer", nullable)
	bits := t.Bits()
	if t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uint64 {
		g.keyword("minimum")
		g.out = append(g.out, '0')
		if bits < 64 {
			g.keyword("maximum")
			g.out = strconv.AppendUint(g.out, 1<<bits-1, 10)
		}
		return
	}
	if bits < 64 {
		g.keyword("minimum")
		g.out = strconv.AppendInt(g.out, -1<<(bits-1), 10)
		g.keyword("maximum")
		g.out = strconv.AppendInt(g.out, 1<<(bits-1)-1, 10)
	}
}

func (g *generator) object(t reflect.Type, nullable bool) {
	if slices.Contains(g.path, t) {
		g.fail("%v contains itself", t)
		return
	}
	g.path = append(g.path, t)
	defer func() { g.path = g.path[:len(g.path)-1] }()
	g.typeIs("object", nullable)
	g.keyword("properties")
	g.out = append(g.out, '{')
	var required []string
	var seen []string
	for _, f := range jsonFields(t) {
		name, optional := jsonName(f)
		if slices.Contains(seen, name) {
			g.fail("two fields of %v are called %q", t, name)
		}
		seen = append(seen, name)
		g.keyword(name)
		g.schema(f.Type, &f, optional)
		if !optional {
			required = append(required, name)
		}
	}
	g.out = append(g.out, '}')
	if len(required) > 0 {
		g.keyword("required")
		g.out = append(g.out, '[')
		for i, name := range required {
			if i > 0 {
				g.out = append(g.out, ',')
			}
			g.out = appendQuoted(g.out, name)
		}
		g.out = append(g.out, ']')
	}
	g.keyword("additionalProperties")
	g.out = append(g.out, "false"...)
}

// jsonFields is the fields that encoding/json reads, with those of embedded
// structs in their place.
func jsonFields(t reflect.Type) []reflect.StructField {
	var fields []reflect.StructField
	var named [][]int // embedded structs that are a property of their own
	for _, f := range reflect.VisibleFields(t) {
		inside := slices.ContainsFunc(named, func(index []int) bool {
			return len(f.Index) > len(index) && slices.Equal(f.Index[:len(index)], index)
		})
		tag := f.Tag.Get("json")
		if inside || tag == "-" {
			continue
		}
		embedded := f.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		if f.Anonymous && embedded.Kind() == reflect.Struct {
			if name, _, _ := strings.Cut(tag, ","); name == "" {
				continue // its fields come next
			}
			named = append(named, f.Index)
		}
		if f.IsExported() {
			fields = append(fields, f)
		}
	}
	return fields
}

// jsonName is the name of a field in JSON, and whether it may be left out.
func jsonName(f reflect.StructField) (name string, optional bool) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		name = f.Name
	}
	for option := range strings.SplitSeq(options, ",") {
		optional = optional || option == "omitempty" || option == "omitzero"
	}
	return name, optional
}

// tags writes the keywords that the tags of a field give.
func (g *generator) tags(t reflect.Type, f *reflect.StructField) {
	if description := f.Tag.Get("jsonschema"); description != "" {
		g.text("description", description)
	}
	tag := f.Tag.Get("schema")
	if tag == "" {
		return
	}
	for part := range strings.SplitSeq(tag, ";") {
		keyword, v, ok := strings.Cut(part, "=")
		switch {
		case !ok:
			g.fail("field %s: schema tag %q is not keyword=value", f.Name, part)
		case keyword == "pattern", keyword == "format":
			g.text(keyword, v)
		case keyword == "enum":
			g.enum(t, f, v)
		case keyword == "default":
			g.keyword(keyword)
			g.literal(t, f, v)
		case slices.Contains([]string{"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"}, keyword):
			g.keyword(keyword)
			if !json.Valid([]byte(v)) {
				g.fail("field %s: %s=%s is no number", f.Name, keyword, v)
			}
			g.out = append(g.out, v...)
		default:
			g.fail("field %s: schema tag has unknown keyword %q", f.Name, keyword)
		}
	}
}

func (g *generator) enum(t reflect.Type, f *reflect.StructField, values string) {
	g.keyword("enum")
	g.out = append(g.out, '[')
	for i, v := range strings.Split(values, "|") {
		if i > 0 {
			g.out = append(g.out, ',')
		}
		g.literal(t, f, v)
	}
	g.out = append(g.out, ']')
}

// literal writes v as a value of t: as it stands for a string, else as JSON.
func (g *generator) literal(t reflect.Type, f *reflect.StructField, v string) {
	if t.Kind() == reflect.String {
		g.out = appendQuoted(g.out, v)
		return
	}
	if !json.Valid([]byte(v)) {
		g.fail("field %s: schema tag has %q, which is not JSON", f.Name, v)
	}
	g.out = append(g.out, v...)
}
