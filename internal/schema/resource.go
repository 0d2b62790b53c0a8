package schema

import (
	"embed"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

//go:embed metaschema/*.json
var metaFS embed.FS

// rootURI is the base of a schema that gives itself no $id.
const rootURI = "mem:///schema"

// dialect is how the keywords of one resource are read.
type dialect struct {
	draft7     bool // draft-07 and older: $ref hides its siblings
	assertions bool // false when $schema names a vocabulary without validation
}

// A resource is a schema with a URI of its own.
type resource struct {
	uri     *url.URL
	root    *value
	dialect dialect
	anchors map[string]*value
	dynamic map[string]*value // the anchors that $dynamicAnchor made
	nodes   map[string]*node  // compiled dynamic anchors
}

// library finds what a reference names. It knows the schema itself, the
// embedded meta-schemas and what a test adds; it never loads anything else.
type library struct {
	byURI  map[string]*resource
	byRoot map[*value]*resource // the resource that each known subschema lies in
	extra  map[string][]byte    // documents that tests add, by URI
}

func newLibrary(extra map[string][]byte) *library {
	return &library{byURI: map[string]*resource{}, byRoot: map[*value]*resource{}, extra: extra}
}

// The keywords that hold subschemas, by form.
var (
	schemaKeywords = []string{"not", "if", "then", "else", "additionalProperties", "propertyNames", "contains", "items", "additionalItems", "unevaluatedItems", "unevaluatedProperties", "contentSchema"}
	listKeywords   = []string{"allOf", "anyOf", "oneOf", "prefixItems", "items"}
	mapKeywords    = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)

// add registers a document and every resource inside it. inherited is its
// dialect when it names none.
func (l *library) add(uri string, doc *value, inherited dialect) (*resource, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return nil, fmt.Errorf("base URI %q: %w", uri, err)
	}
	d, err := l.dialectOf(doc, inherited)
	if err != nil {
		return nil, err
	}
	r := &resource{uri: u, root: doc, dialect: d, anchors: map[string]*value{}, dynamic: map[string]*value{}}
	l.byURI[uri] = r
	if err := l.register(doc, r); err != nil {
		return nil, err
	}
	return l.byRoot[doc], nil
}

// dialectOf reads $schema.
func (l *library) dialectOf(v *value, inherited dialect) (dialect, error) {
	s := v.get("$schema")
	if s == nil {
		return inherited, nil
	}
	if s.kind != stringKind {
		return inherited, errors.New("$schema must be a string")
	}
	uri := strings.TrimSuffix(s.text, "#")
	switch strings.TrimPrefix(strings.TrimPrefix(uri, "http://"), "https://") {
	case "json-schema.org/draft-07/schema", "json-schema.org/draft-06/schema", "json-schema.org/draft-04/schema":
		return dialect{draft7: true, assertions: true}, nil
	case "json-schema.org/draft/2020-12/schema", "json-schema.org/draft/2019-09/schema", "json-schema.org/schema", "":
		return dialect{assertions: true}, nil
	}
	raw, ok := l.extra[uri]
	if !ok {
		return inherited, fmt.Errorf("$schema names an unknown dialect %q (known: https://json-schema.org/draft/2020-12/schema and http://json-schema.org/draft-07/schema#)", clip(uri, 200))
	}
	meta, _, fault := parse(raw)
	if fault != nil {
		return inherited, fault
	}
	d := dialect{assertions: true}
	if vocabulary := meta.get("$vocabulary"); vocabulary != nil {
		d.assertions = vocabulary.get("https://json-schema.org/draft/2020-12/vocab/validation") != nil
	}
	return d, nil
}

// register notes the resource of v and of every subschema below it.
func (l *library) register(v *value, r *resource) error {
	if v.kind != objectKind {
		l.byRoot[v] = r
		return nil
	}
	hidden := r.dialect.draft7 && v.get("$ref") != nil
	if !hidden {
		inner, err := l.identify(v, r)
		if err != nil {
			return err
		}
		r = inner
	}
	l.byRoot[v] = r
	return subschemas(v, func(sub *value) error { return l.register(sub, r) })
}

// identify handles $id and the anchors of v.
func (l *library) identify(v *value, r *resource) (*resource, error) {
	id := v.get("$id")
	if id == nil && r.dialect.draft7 {
		if old := v.get("id"); old != nil && v == r.root {
			id = old
		}
	}
	if id != nil && id.kind == stringKind {
		base, fragment, _ := strings.Cut(id.text, "#")
		if base != "" {
			var err error
			if r, err = l.embed(v, r, base); err != nil {
				return nil, err
			}
		}
		if fragment != "" && r.dialect.draft7 {
			r.anchors[fragment] = v
		}
	}
	if !r.dialect.draft7 {
		if a := v.get("$anchor"); a != nil && a.kind == stringKind {
			r.anchors[a.text] = v
		}
		if a := v.get("$dynamicAnchor"); a != nil && a.kind == stringKind {
			r.anchors[a.text], r.dynamic[a.text] = v, v
		}
	}
	return r, nil
}

// embed makes the resource that a $id starts.
func (l *library) embed(v *value, r *resource, id string) (*resource, error) {
	u, err := resolveURI(r.uri, id)
	if err != nil {
		return nil, fmt.Errorf("$id %q: %w", clip(id, 200), err)
	}
	if v == r.root {
		r.uri = u
		l.byURI[u.String()] = r
		return r, nil
	}
	if _, taken := l.byURI[u.String()]; taken {
		return nil, fmt.Errorf("$id %q is given to two schemas", clip(id, 200))
	}
	d, err := l.dialectOf(v, r.dialect)
	if err != nil {
		return nil, err
	}
	inner := &resource{uri: u, root: v, dialect: d, anchors: map[string]*value{}, dynamic: map[string]*value{}}
	l.byURI[u.String()] = inner
	return inner, nil
}

// subschemas calls f for each direct subschema of v.
func subschemas(v *value, f func(*value) error) error {
	for _, keyword := range schemaKeywords {
		if sub := v.get(keyword); sub != nil && (sub.kind == objectKind || sub.kind == boolKind) {
			if err := f(sub); err != nil {
				return err
			}
		}
	}
	for _, keyword := range listKeywords {
		list := v.get(keyword)
		if list == nil || list.kind != arrayKind {
			continue
		}
		for _, sub := range list.items {
			if err := f(sub); err != nil {
				return err
			}
		}
	}
	for _, keyword := range mapKeywords {
		group := v.get(keyword)
		if group == nil || group.kind != objectKind {
			continue
		}
		for _, m := range group.members {
			if err := f(m.value); err != nil {
				return err
			}
		}
	}
	return nil
}

// resolve finds the schema that ref names from inside r, and its resource.
func (l *library) resolve(ref string, r *resource) (*value, *resource, error) {
	base, fragment, _ := strings.Cut(ref, "#")
	if base != "" {
		u, err := resolveURI(r.uri, base)
		if err != nil {
			return nil, nil, fmt.Errorf("$ref %q: %w", clip(ref, 200), err)
		}
		if r, err = l.find(u.String(), r.dialect); err != nil {
			return nil, nil, fmt.Errorf("$ref %q: %w", clip(ref, 200), err)
		}
	}
	if plain, err := url.PathUnescape(fragment); err == nil {
		fragment = plain
	}
	var v *value
	switch {
	case fragment == "":
		v = r.root
	case fragment[0] == '/':
		var err error
		if v, r, err = l.pointer(fragment, r); err != nil {
			return nil, nil, fmt.Errorf("$ref %q: %w", clip(ref, 200), err)
		}
	default:
		if v = r.anchors[fragment]; v == nil {
			return nil, nil, fmt.Errorf("$ref %q: no $anchor of that name in the schema", clip(ref, 200))
		}
	}
	if v.kind != objectKind && v.kind != boolKind {
		return nil, nil, fmt.Errorf("$ref %q: what it points at is no schema", clip(ref, 200))
	}
	if known := l.byRoot[v]; known != nil {
		return v, known, nil
	}
	// A schema at a place that no keyword gives: it belongs where it lies.
	if err := l.register(v, r); err != nil {
		return nil, nil, err
	}
	return v, l.byRoot[v], nil
}

// find returns the resource with this URI, read like its referrer unless it
// says otherwise.
func (l *library) find(uri string, inherited dialect) (*resource, error) {
	if r := l.byURI[uri]; r != nil {
		return r, nil
	}
	raw, ok := l.extra[uri]
	if !ok {
		raw, ok = metaschema(uri)
	}
	if !ok {
		return nil, errors.New("it names another document, and none is ever loaded; put the definition into $defs")
	}
	doc, _, fault := parse(raw)
	if fault != nil {
		return nil, fault
	}
	return l.add(uri, doc, inherited)
}

// metaschema returns the embedded document with this URI.
func metaschema(uri string) ([]byte, bool) {
	name := ""
	rest := strings.TrimPrefix(strings.TrimPrefix(uri, "http://"), "https://")
	switch {
	case rest == "json-schema.org/draft-07/schema":
		name = "draft-07-schema"
	case rest == "json-schema.org/draft/2020-12/schema":
		name = "2020-12-schema"
	case strings.HasPrefix(rest, "json-schema.org/draft/2020-12/meta/"):
		name = "2020-12-" + strings.TrimPrefix(rest, "json-schema.org/draft/2020-12/meta/")
	default:
		return nil, false
	}
	raw, err := metaFS.ReadFile("metaschema/" + name + ".json")
	return raw, err == nil
}

// pointer follows a JSON Pointer from the root of r.
func (l *library) pointer(pointer string, r *resource) (*value, *resource, error) {
	v := r.root
	for _, token := range strings.Split(pointer[1:], "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		var next *value
		switch v.kind {
		case objectKind:
			next = v.get(token)
		case arrayKind:
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(v.items) {
				next = v.items[i]
			}
		}
		if next == nil {
			return nil, nil, fmt.Errorf("the schema has nothing at %s", clip(strconv.Quote(pointer), 200))
		}
		v = next
		if known := l.byRoot[v]; known != nil {
			r = known
		}
	}
	return v, r, nil
}

func resolveURI(base *url.URL, ref string) (*url.URL, error) {
	u, err := url.Parse(ref)
	if err != nil {
		return nil, err
	}
	u = base.ResolveReference(u)
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}
