package main

import (
	"encoding/json"
	"slices"
	"strconv"
)

// satisfies says whether arguments can be given to a tool that is declared so:
// whether TypeScript would take them as a literal. A name that no type knows is
// refused there, and so it is here.
func (d *decl) satisfies(args any) bool {
	if d.args == nil {
		m, ok := args.(map[string]any)
		return ok && len(m) == 0
	}
	return d.meets(args, d.args)
}

// meets says whether v is a t.
func (d *decl) meets(v any, t ...*typ) bool {
	c := &comparison{named: d.named, left: 200_000}
	return c.all(v, t)
}

type comparison struct {
	named map[string]*typ
	left  int // steps
}

// all says whether v is of all these types together. What is no plain type among
// them is taken apart first.
func (c *comparison) all(v any, types []*typ) bool {
	if c.left--; c.left < 0 {
		return false
	}
	for i, t := range types {
		others := func(more ...*typ) []*typ {
			return slices.Concat(types[:i], more, types[i+1:])
		}
		switch t.op {
		case opUnknown:
			return c.all(v, others())
		case opNever:
			return false
		case opName:
			target := c.named[t.name]
			return target != nil && c.all(v, others(target))
		case opAnd:
			return c.all(v, others(t.of...))
		case opUnion:
			return slices.ContainsFunc(t.of, func(one *typ) bool { return c.all(v, others(one)) })
		}
	}
	switch v := v.(type) {
	case map[string]any:
		return len(types) == 0 || c.object(v, types)
	case []any:
		return c.array(v, types)
	}
	return !slices.ContainsFunc(types, func(t *typ) bool { return !scalar(v, t) })
}

// scalar says whether v, no object and no array, is a t.
func scalar(v any, t *typ) bool {
	switch v := v.(type) {
	case nil:
		return t.op == opNull
	case string:
		return t.op == opString || t.op == opLiteral && t.value == v
	case bool:
		return t.op == opBoolean || t.op == opLiteral && t.value == v
	case json.Number:
		if t.op == opLiteral {
			n, ok := t.value.(json.Number)
			return ok && sameNumber(n, v)
		}
		return t.op == opNumber
	}
	return false
}

func sameNumber(a, b json.Number) bool {
	x, errX := strconv.ParseFloat(string(a), 64)
	y, errY := strconv.ParseFloat(string(b), 64)
	return a == b || errX == nil && errY == nil && x == y
}

// object checks an object against plain types. Each member is of all types that
// they give it; one of which none says anything is one too many.
func (c *comparison) object(v map[string]any, types []*typ) bool {
	open := true
	for _, t := range types {
		switch t.op {
		case opAny:
		case opObject:
			open = false
			for _, m := range t.members {
				if _, given := v[m.name]; !given && !m.optional {
					return false
				}
			}
		default:
			return false
		}
	}
	for name, value := range v {
		var said []*typ
		for _, t := range types {
			if i := slices.IndexFunc(t.members, func(m member) bool { return m.name == name }); i >= 0 {
				said = append(said, t.members[i].typ)
			} else if t.index != nil {
				said = append(said, t.index)
			}
		}
		if len(said) == 0 && !open || !c.all(value, said) {
			return false
		}
	}
	return true
}

func (c *comparison) array(v []any, types []*typ) bool {
	for _, t := range types {
		switch t.op {
		case opArray:
		case opTuple:
			if len(v) < t.least || len(v) > len(t.of) && t.rest == nil {
				return false
			}
		default:
			return false
		}
	}
	for i, item := range v {
		var said []*typ
		for _, t := range types {
			switch {
			case t.op == opArray:
				said = append(said, t.of[0])
			case i < len(t.of):
				said = append(said, t.of[i])
			default:
				said = append(said, t.rest)
			}
		}
		if !c.all(item, said) {
			return false
		}
	}
	return true
}
