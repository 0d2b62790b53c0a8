package schema

import (
	"errors"
)

// findLoop refuses a schema that would be applied to one value for ever.
func findLoop(root *node) error {
	const open, done = 1, 2
	state := map[*node]int{}
	var visit func(n *node) error
	visit = func(n *node) error {
		state[n] = open
		for _, next := range n.samePlace() {
			switch state[next] {
			case open:
				return errors.New("a $ref leads back to itself without going into a property or an item")
			case 0:
				if err := visit(next); err != nil {
					return err
				}
			}
		}
		state[n] = done
		return nil
	}
	pending := []*node{root}
	seen := map[*node]bool{root: true}
	for len(pending) > 0 {
		n := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if state[n] == 0 {
			if err := visit(n); err != nil {
				return err
			}
		}
		for _, next := range append(n.samePlace(), n.below()...) {
			if !seen[next] {
				seen[next] = true
				pending = append(pending, next)
			}
		}
	}
	return nil
}

// samePlace is the subschemas applied to the same value as n.
func (n *node) samePlace() []*node {
	out := append(append(append([]*node{}, n.allOf...), n.anyOf...), n.oneOf...)
	for _, sub := range []*node{n.ref, n.not, n.ifNode, n.thenNode, n.elseNode} {
		if sub != nil {
			out = append(out, sub)
		}
	}
	if n.object != nil {
		for _, d := range n.object.dependent {
			if d.node != nil {
				out = append(out, d.node)
			}
		}
	}
	return out
}

// below is the subschemas applied to parts of the value.
func (n *node) below() []*node {
	var out []*node
	add := func(subs ...*node) {
		for _, sub := range subs {
			if sub != nil {
				out = append(out, sub)
			}
		}
	}
	if r := n.array; r != nil {
		add(r.prefix...)
		add(r.items, r.contains, r.unevaluated)
	}
	if r := n.object; r != nil {
		for _, name := range r.names {
			add(r.properties[name])
		}
		for _, p := range r.patterns {
			add(p.node)
		}
		add(r.additional, r.nameRule, r.unevaluated)
	}
	return out
}
