package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"

	strict "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// lenient is how answers of servers are read: names are matched exactly, of a
// name given twice the last counts, and what is no UTF-8 is replaced.
var lenient = strict.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// errKind says that JSON is of another kind than it should be.
var errKind = errors.New("it is of another kind")

// elements hands on the elements of a list, one after the other, until take
// returns false: what a list costs is up to its reader, not to its length. Null
// and what is not there have none; what is left of a list that is not read to its
// end may be anything.
func elements(list json.RawMessage, take func(json.RawMessage) bool) error {
	if missing(list) {
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(list), lenient)
	if t, err := d.ReadToken(); err != nil || t.Kind() != '[' {
		return errors.Join(errKind, err)
	}
	for d.PeekKind() != ']' {
		v, err := d.ReadValue()
		if err != nil {
			return err
		}
		if !take(bytes.Clone(v)) {
			return nil
		}
	}
	_, err := d.ReadToken()
	return err
}

// decodeAll decodes the elements of a list, at most limit of them, until ctx ends;
// more says that there are more.
func decodeAll[T any](ctx context.Context, list json.RawMessage, limit int) (all []T, more bool, err error) {
	var fault error
	err = elements(list, func(raw json.RawMessage) bool {
		if more = len(all) == limit; more {
			return false
		}
		var one T
		if fault = ctx.Err(); fault == nil {
			fault = strict.Unmarshal(raw, &one, lenient)
		}
		all = append(all, one)
		return fault == nil
	})
	if err = cmp.Or(err, fault); err != nil {
		return nil, false, err
	}
	return all, more, nil
}

// entries hands on the members of an object, one after the other, until take
// returns false. A value is only there until take returns.
func entries(object json.RawMessage, take func(name string, value json.RawMessage) bool) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(object), lenient)
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return errors.Join(errKind, err)
	}
	for d.PeekKind() != '}' {
		t, err := d.ReadToken()
		if err != nil {
			return err
		}
		name := t.String()
		v, err := d.ReadValue()
		if err != nil {
			return err
		}
		if !take(name, json.RawMessage(v)) {
			return nil
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return errors.Join(errKind, err)
	}
	return nil
}

// members returns the values of an object's members with these names; nil for
// those that it does not have. Others cost nothing but being passed over.
func members(object json.RawMessage, names ...string) ([]json.RawMessage, error) {
	values := make([]json.RawMessage, len(names))
	err := entries(object, func(name string, v json.RawMessage) bool {
		for i := range names {
			if names[i] == name {
				values[i] = bytes.Clone(v)
			}
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	return values, nil
}
