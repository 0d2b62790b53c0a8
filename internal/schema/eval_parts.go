package schema

import (
	"strconv"
)

func (e *evaluation) push(s segment) { e.path = append(e.path, s) }
func (e *evaluation) pop()           { e.path = e.path[:len(e.path)-1] }

func (e *evaluation) array(n *node, v *value, seen *evaluated) bool {
	r := n.array
	if r == nil || v.kind != arrayKind {
		return true
	}
	ok := e.arraySize(r, v)
	for i, item := range v.items {
		if !ok && e.quiet > 0 {
			return false
		}
		sub := r.items
		if i < len(r.prefix) {
			sub = r.prefix[i]
		}
		if sub == nil {
			continue
		}
		if e.push(segment{index: i}); !e.check(sub, item, nil) {
			ok = false
		}
		e.pop()
		if seen != nil {
			seen.item(i)
		}
	}
	if seen != nil && r.items != nil {
		seen.all = true
	}
	if r.contains != nil && (ok || e.quiet == 0) && !e.contains(n, v, seen) {
		ok = false
	}
	return ok
}

func (e *evaluation) arraySize(r *arrayRules, v *value) bool {
	ok := true
	if len(v.items) < r.min {
		ok = e.reject(v, func() string {
			return "must have at least " + plural(r.min, "item") + ", got " + strconv.Itoa(len(v.items))
		})
	}
	if r.max >= 0 && len(v.items) > r.max {
		ok = e.reject(v, func() string {
			return "must have at most " + plural(r.max, "item") + ", got " + strconv.Itoa(len(v.items))
		})
	}
	if r.unique && len(v.items) > 1 {
		first := make(map[string]int, len(v.items))
		for i, item := range v.items {
			key := item.key()
			if j, twice := first[key]; twice {
				return e.reject(v, func() string {
					return "must not have equal items, but items " + strconv.Itoa(j) + " and " + strconv.Itoa(i) + " are both " + clip(item.String(), 80)
				})
			}
			first[key] = i
		}
	}
	return ok
}

func (e *evaluation) contains(n *node, v *value, seen *evaluated) bool {
	r, found := n.array, 0
	for i, item := range v.items {
		if e.holds(r.contains, item, nil) {
			found++
			if seen != nil && !n.resource.dialect.draft7 {
				seen.item(i)
			}
		}
	}
	if found < r.minContains {
		return e.reject(v, func() string {
			return "must have at least " + plural(r.minContains, "item") + " that is " + r.contains.expected() + ", has " + strconv.Itoa(found)
		})
	}
	if r.maxContains >= 0 && found > r.maxContains {
		return e.reject(v, func() string {
			return "must have at most " + plural(r.maxContains, "item") + " that is " + r.contains.expected() + ", has " + strconv.Itoa(found)
		})
	}
	return true
}

func (e *evaluation) object(n *node, v *value, seen *evaluated) bool {
	r := n.object
	if r == nil || v.kind != objectKind {
		return true
	}
	ok := e.objectSize(r, v)
	for _, name := range r.required {
		if v.get(name) == nil {
			ok = e.rejectMissing(r, name)
		}
	}
	for _, m := range v.members {
		if !ok && e.quiet > 0 {
			return false
		}
		if !e.member(r, m, seen) {
			ok = false
		}
	}
	for _, d := range r.dependent {
		if v.get(d.on) == nil {
			continue
		}
		for _, name := range d.required {
			if v.get(name) == nil {
				ok = e.rejectAt(segment{name: name, index: -1}, "is required when "+strconv.Quote(d.on)+" is given")
			}
		}
		if d.node != nil && !e.check(d.node, v, seen) {
			ok = false
		}
	}
	return ok
}

func (e *evaluation) objectSize(r *objectRules, v *value) bool {
	ok := true
	if len(v.members) < r.min {
		ok = e.reject(v, func() string {
			return "must have at least " + plural(r.min, "property") + ", got " + strconv.Itoa(len(v.members))
		})
	}
	if r.max >= 0 && len(v.members) > r.max {
		ok = e.reject(v, func() string {
			return "must have at most " + plural(r.max, "property") + ", got " + strconv.Itoa(len(v.members))
		})
	}
	return ok
}

// member applies the rules for one member of an object.
func (e *evaluation) member(r *objectRules, m member, seen *evaluated) bool {
	ok, matched := true, false
	e.push(segment{name: m.name, index: -1})
	defer e.pop()
	if r.nameRule != nil && !e.name(r, m) {
		ok = false
	}
	if sub := r.properties[m.name]; sub != nil {
		matched = true
		ok = e.check(sub, m.value, nil) && ok
	}
	for _, p := range r.patterns {
		if e.match(p.pattern, m.name) {
			matched = true
			ok = e.check(p.node, m.value, nil) && ok
		}
	}
	if !matched && r.additional != nil {
		matched = true
		if r.additional.always < 0 {
			ok = e.reject(m.value, func() string { return r.unknown(m.name) })
		} else {
			ok = e.check(r.additional, m.value, nil) && ok
		}
	}
	if matched && seen != nil {
		seen.prop(m.name)
	}
	return ok && e.stopped == ""
}

func (e *evaluation) name(r *objectRules, m member) bool {
	if e.holds(r.nameRule, &value{kind: stringKind, text: m.name}, nil) {
		return true
	}
	return e.reject(m.value, func() string { return "this property name is not allowed; names must be " + r.nameRule.expected() })
}

func (e *evaluation) unevaluated(n *node, v *value, seen *evaluated) bool {
	ok := true
	if r := n.object; r != nil && r.unevaluated != nil && v.kind == objectKind {
		for _, m := range v.members {
			if seen.props[m.name] {
				continue
			}
			e.push(segment{name: m.name, index: -1})
			if r.unevaluated.always < 0 {
				ok = e.reject(m.value, func() string { return r.unknown(m.name) })
			} else {
				ok = e.check(r.unevaluated, m.value, nil) && ok
			}
			e.pop()
			seen.prop(m.name)
		}
	}
	if r := n.array; r != nil && r.unevaluated != nil && v.kind == arrayKind && !seen.all {
		for i, item := range v.items {
			if seen.items[i] {
				continue
			}
			e.push(segment{index: i})
			ok = e.check(r.unevaluated, item, nil) && ok
			e.pop()
		}
		seen.all = true
	}
	return ok
}
