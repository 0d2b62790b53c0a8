package codemode

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// maxSchemaDepth bounds the nesting of a schema that is put into words.
const maxSchemaDepth = 256

// jsonValue is a JSON value with the members of objects in their order. A
// number is its spelling.
type jsonValue struct {
	kind    byte // one of { [ " 0 t n
	text    string
	truth   bool
	items   []*jsonValue
	names   []string
	members map[string]*jsonValue
}

// parseOrdered reads one JSON value. Of a name that occurs twice the last
// value counts: this is for display, compiling a schema refuses it.
func parseOrdered(raw []byte) (*jsonValue, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	v, err := readOrdered(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

func readOrdered(dec *json.Decoder, depth int) (*jsonValue, error) {
	if depth > maxSchemaDepth {
		return nil, errors.New("nested too deeply")
	}
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case nil:
		return &jsonValue{kind: 'n'}, nil
	case bool:
		return &jsonValue{kind: 't', truth: t}, nil
	case json.Number:
		return &jsonValue{kind: '0', text: t.String()}, nil
	case string:
		return &jsonValue{kind: '"', text: t}, nil
	}
	if token == json.Delim('[') {
		return readArray(dec, depth)
	}
	return readObject(dec, depth)
}

func readArray(dec *json.Decoder, depth int) (*jsonValue, error) {
	v := &jsonValue{kind: '['}
	for dec.More() {
		item, err := readOrdered(dec, depth+1)
		if err != nil {
			return nil, err
		}
		v.items = append(v.items, item)
	}
	_, err := dec.Token()
	return v, err
}

func readObject(dec *json.Decoder, depth int) (*jsonValue, error) {
	v := &jsonValue{kind: '{', members: map[string]*jsonValue{}}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string)
		item, err := readOrdered(dec, depth+1)
		if err != nil {
			return nil, err
		}
		if v.members[name] == nil {
			v.names = append(v.names, name)
		}
		v.members[name] = item
	}
	_, err := dec.Token()
	return v, err
}

// get returns the member called name if it is of this kind, else nil.
func (v *jsonValue) get(name string, kind byte) *jsonValue {
	if v == nil || v.kind != '{' {
		return nil
	}
	if m := v.members[name]; m != nil && m.kind == kind {
		return m
	}
	return nil
}

// has reports whether v is an object with a member called name.
func (v *jsonValue) has(name string) bool {
	return v != nil && v.kind == '{' && v.members[name] != nil
}

// str returns the text of a string member, or "".
func (v *jsonValue) str(name string) string {
	if m := v.get(name, '"'); m != nil {
		return m.text
	}
	return ""
}
