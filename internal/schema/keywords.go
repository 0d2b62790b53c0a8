package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// keywords compiles one subschema.
type keywords struct {
	*compiler
	value *value
	node  *node
	at    string // JSON Pointer of the subschema, for errors
}

func (k *keywords) fail(keyword, format string, args ...any) {
	if k.err == nil {
		k.err = fmt.Errorf("%s: %s", clip(k.at+"/"+keyword, 300), fmt.Sprintf(format, args...))
	}
}

func (k *keywords) compile() {
	if k.value.kind == boolKind {
		k.node.always = -1
		if k.value.boolean {
			k.node.always = 1
		}
		return
	}
	if k.value.kind != objectKind {
		k.fail("", "a schema must be an object or a boolean, not %s", k.value.describe())
		return
	}
	k.references()
	if k.node.resource.dialect.draft7 && k.node.ref != nil {
		return // draft-07: nothing beside $ref counts
	}
	if k.node.resource.dialect.assertions {
		k.typeAndEnum()
		k.numbers()
	}
	k.strings()
	k.arrays()
	k.objects()
	k.logic()
}

func (k *keywords) references() {
	if v := k.value.get("$ref"); v != nil {
		k.node.ref = k.reference("$ref", v)
	}
	if v := k.value.get("$recursiveRef"); v != nil && k.node.ref == nil {
		k.node.ref = k.reference("$recursiveRef", v)
	}
	v := k.value.get("$dynamicRef")
	if v == nil || k.node.resource.dialect.draft7 {
		return
	}
	if k.node.dynRef = k.reference("$dynamicRef", v); k.node.dynRef == nil {
		return
	}
	_, name, _ := strings.Cut(v.text, "#")
	if k.node.dynRef.resource.dynamic[name] != nil {
		k.node.dynName = name
		k.dynamic = true
	}
}

func (k *keywords) reference(keyword string, v *value) *node {
	if v.kind != stringKind {
		k.fail(keyword, "must be a string, not %s", v.describe())
		return nil
	}
	if k.node.resource == k.whole && strings.HasPrefix(v.text, "#") && !slices.Contains(k.inner, v.text) {
		k.inner = append(k.inner, v.text)
	}
	target, r, err := k.library.resolve(v.text, k.node.resource)
	if err != nil {
		k.fail(keyword, "%v", err)
		return nil
	}
	return k.enqueue(target, r, k.at+"/"+keyword)
}

func (k *keywords) typeAndEnum() {
	if v := k.value.get("type"); v != nil {
		k.types(v)
	}
	if v := k.value.get("enum"); v != nil {
		if v.kind != arrayKind {
			k.fail("enum", "must be an array, not %s", v.describe())
			return
		}
		k.node.enum = newEnum(v.items, false)
	}
	if v := k.value.get("const"); v != nil {
		e := newEnum([]*value{v}, true)
		if k.node.enum != nil { // both: as if one were in an allOf
			k.node.allOf = append(k.node.allOf, &node{resource: k.node.resource, enum: e})
			return
		}
		k.node.enum = e
	}
}

func (k *keywords) types(v *value) {
	list := []*value{v}
	if v.kind == arrayKind {
		list = v.items
	}
	for _, t := range list {
		bit := typeSet(0)
		for _, known := range typeNames {
			if t.kind == stringKind && t.text == known.name {
				bit = known.bit
			}
		}
		if bit == 0 {
			k.fail("type", "must be one of string, integer, number, boolean, object, array, null, or a list of them, not %s", t.describe())
			return
		}
		k.node.types |= bit
	}
	if len(list) == 0 {
		k.node.always = -1
	}
}

func newEnum(values []*value, only bool) *enum {
	e := &enum{strings: map[string]bool{}, others: map[string]bool{}, only: only}
	var shown strings.Builder
	for i, v := range values {
		if v.kind == stringKind {
			e.strings[v.text] = true
		} else {
			e.others[v.key()] = true
			e.compound = e.compound || v.kind >= arrayKind
		}
		if i > 0 && shown.Len() < 400 {
			shown.WriteString(", ")
		}
		if shown.Len() < 400 {
			shown.WriteString(clip(v.String(), 80))
		} else if !strings.HasSuffix(shown.String(), "…") {
			shown.WriteString(", …")
		}
	}
	e.shown = shown.String()
	return e
}

func (k *keywords) numbers() {
	var r numberRules
	r.min, r.max = k.bound("minimum"), k.bound("maximum")
	r.exMin, r.min = k.exclusive("exclusiveMinimum", r.min)
	r.exMax, r.max = k.exclusive("exclusiveMaximum", r.max)
	r.multiple = k.bound("multipleOf")
	if r.multiple != nil && r.multiple.sign() <= 0 {
		k.fail("multipleOf", "must be greater than 0, not %s", r.multiple.text)
	}
	if r != (numberRules{}) {
		k.node.number = &r
	}
}

func (k *keywords) bound(keyword string) *bound {
	v := k.value.get(keyword)
	if v == nil {
		return nil
	}
	if v.kind != numberKind {
		k.fail(keyword, "must be a number, not %s", v.describe())
		return nil
	}
	return &bound{parseDecimal(v.text), v.text}
}

// exclusive reads an exclusive bound. Draft-04 wrote it as a boolean beside the
// inclusive one; servers still do, whatever they declare, and mean just that.
func (k *keywords) exclusive(keyword string, inclusive *bound) (exclusive, left *bound) {
	if v := k.value.get(keyword); v != nil && v.kind == boolKind {
		if v.boolean {
			return inclusive, nil
		}
		return nil, inclusive
	}
	return k.bound(keyword), inclusive
}

// count reads a keyword that holds a count; absent is given when there is none.
func (k *keywords) count(keyword string, absent int) int {
	v := k.value.get(keyword)
	if v == nil || !k.node.resource.dialect.assertions {
		return absent
	}
	if v.kind == numberKind {
		d := parseDecimal(v.text)
		if d.isInteger() && !d.negative {
			if d.exp > 15 {
				return 1 << 53 // more than anything can have
			}
			n, _ := strconv.Atoi(d.digits + strings.Repeat("0", int(d.exp)-len(d.digits)))
			return n
		}
	}
	k.fail(keyword, "must be an integer of 0 or more, not %s", v.describe())
	return absent
}

func (k *keywords) strings() {
	r := stringRules{min: k.count("minLength", -1), max: k.count("maxLength", -1)}
	if v := k.value.get("pattern"); v != nil && k.node.resource.dialect.assertions {
		r.pattern = k.pattern("pattern", v)
	}
	if r != (stringRules{min: -1, max: -1}) {
		k.node.str = &r
	}
}

func (k *keywords) pattern(keyword string, v *value) *pattern {
	if v.kind != stringKind {
		k.fail(keyword, "must be a string, not %s", v.describe())
		return nil
	}
	p, err := k.compiler.patterns.compile(v.text)
	if err != nil {
		k.fail(keyword, "%v", err)
	}
	return p
}

func (k *keywords) arrays() {
	r := arrayRules{min: k.count("minItems", -1), max: k.count("maxItems", -1), minContains: 1, maxContains: -1}
	r.unique = k.flag("uniqueItems")
	items := k.value.get("items")
	switch {
	case items != nil && items.kind == arrayKind: // the tuple of draft-07, understood everywhere
		r.prefix = k.list("items")
		r.items = k.sub("additionalItems")
	default:
		r.items = k.sub("items")
		if !k.node.resource.dialect.draft7 {
			r.prefix = k.list("prefixItems")
		}
	}
	if r.contains = k.sub("contains"); r.contains != nil && !k.node.resource.dialect.draft7 {
		r.minContains, r.maxContains = k.count("minContains", 1), k.count("maxContains", -1)
	}
	if !k.node.resource.dialect.draft7 {
		if r.unevaluated = k.sub("unevaluatedItems"); r.unevaluated != nil {
			k.node.unevals = true
		}
	}
	if r.min >= 0 || r.max >= 0 || r.unique || r.prefix != nil || r.items != nil || r.contains != nil || r.unevaluated != nil {
		k.node.array = &r
	}
}

func (k *keywords) flag(keyword string) bool {
	v := k.value.get(keyword)
	if v == nil || !k.node.resource.dialect.assertions {
		return false
	}
	if v.kind != boolKind {
		k.fail(keyword, "must be true or false, not %s", v.describe())
	}
	return v.boolean
}

func (k *keywords) objects() {
	r := objectRules{min: k.count("minProperties", -1), max: k.count("maxProperties", -1)}
	if v := k.value.get("required"); v != nil && k.node.resource.dialect.assertions {
		r.required = k.nameList("required", v)
	}
	k.each("properties", func(name string, n *node) {
		if r.properties == nil {
			r.properties = map[string]*node{}
		}
		r.properties[name] = n
		r.names = append(r.names, name)
	})
	k.each("patternProperties", func(source string, n *node) {
		if p := k.pattern("patternProperties", &value{kind: stringKind, text: source}); p != nil {
			r.patterns = append(r.patterns, patternRule{p, n})
		}
	})
	r.additional = k.sub("additionalProperties")
	r.nameRule = k.sub("propertyNames")
	k.dependencies(&r)
	if !k.node.resource.dialect.draft7 {
		if r.unevaluated = k.sub("unevaluatedProperties"); r.unevaluated != nil {
			k.node.unevals = true
		}
	}
	if r.min >= 0 || r.max >= 0 || r.required != nil || r.properties != nil || r.patterns != nil || r.additional != nil ||
		r.nameRule != nil || r.dependent != nil || r.unevaluated != nil {
		k.node.object = &r
	}
}

func (k *keywords) dependencies(r *objectRules) {
	k.each("dependentSchemas", func(on string, n *node) { r.dependent = append(r.dependent, dependency{on: on, node: n}) })
	for _, keyword := range []string{"dependentRequired", "dependencies"} {
		v := k.value.get(keyword)
		if v == nil || keyword == "dependentRequired" && (k.node.resource.dialect.draft7 || !k.node.resource.dialect.assertions) {
			continue
		}
		if v.kind != objectKind {
			k.fail(keyword, "must be an object, not %s", v.describe())
			return
		}
		for _, m := range v.members {
			switch {
			case m.kind == arrayKind:
				r.dependent = append(r.dependent, dependency{on: m.name, required: k.nameList(keyword, m.value)})
			case keyword == "dependencies":
				r.dependent = append(r.dependent, dependency{on: m.name, node: k.enqueue(m.value, k.node.resource, k.at+"/dependencies/"+m.name)})
			default:
				k.fail(keyword, "must hold lists of names, not %s", m.describe())
			}
		}
	}
}

func (k *keywords) nameList(keyword string, v *value) []string {
	if v.kind != arrayKind {
		k.fail(keyword, "must be a list of names, not %s", v.describe())
		return nil
	}
	var names []string
	for _, item := range v.items {
		if item.kind != stringKind {
			k.fail(keyword, "must be a list of names, but has %s", item.describe())
			return nil
		}
		names = append(names, item.text)
	}
	return names
}

// each calls f with every member of a keyword that maps names to schemas.
func (k *keywords) each(keyword string, f func(string, *node)) {
	if keyword == "dependentSchemas" && k.node.resource.dialect.draft7 {
		return
	}
	v := k.value.get(keyword)
	if v == nil {
		return
	}
	if v.kind != objectKind {
		k.fail(keyword, "must be an object, not %s", v.describe())
		return
	}
	for _, m := range v.members {
		f(m.name, k.enqueue(m.value, k.node.resource, k.at+"/"+keyword+"/"+m.name))
	}
}

// sub compiles a keyword that holds one schema.
func (k *keywords) sub(keyword string) *node {
	v := k.value.get(keyword)
	if v == nil {
		return nil
	}
	return k.enqueue(v, k.node.resource, k.at+"/"+keyword)
}

// list compiles a keyword that holds a list of schemas.
func (k *keywords) list(keyword string) []*node {
	v := k.value.get(keyword)
	if v == nil {
		return nil
	}
	if v.kind != arrayKind {
		k.fail(keyword, "must be a list of schemas, not %s", v.describe())
		return nil
	}
	nodes := make([]*node, 0, len(v.items))
	for i, item := range v.items {
		nodes = append(nodes, k.enqueue(item, k.node.resource, k.at+"/"+keyword+"/"+strconv.Itoa(i)))
	}
	return nodes
}

func (k *keywords) logic() {
	k.node.allOf = append(k.node.allOf, k.list("allOf")...)
	k.node.anyOf = k.list("anyOf")
	k.node.oneOf = k.list("oneOf")
	k.node.not = k.sub("not")
	if k.node.ifNode = k.sub("if"); k.node.ifNode != nil {
		k.node.thenNode, k.node.elseNode = k.sub("then"), k.sub("else")
	}
}
