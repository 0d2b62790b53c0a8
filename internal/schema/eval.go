package schema

import (
	"sort"
	"strconv"
	"strings"
	"time"
)

const (
	// baseSteps and stepsPerValue bound the work of one evaluation: subschemas
	// applied, in all and for each value of the arguments. Real schemas need
	// less than one percent of it.
	baseSteps     = 500_000
	stepsPerValue = 64
	// maxEvalDepth bounds how deep subschemas nest while they are applied.
	maxEvalDepth = 4096
)

// An evaluation applies a schema to one value. The first run only asks whether
// the value is valid; when it is not, a second one collects the faults.
type evaluation struct {
	schema    *Schema
	steps     int // left
	depth     int
	quiet     int // above 0: the answer alone is wanted
	path      []segment
	scope     []*resource // entered so far, for $dynamicRef
	spent     time.Duration
	stopped   string // why the value could not be checked; final
	stoppedAt string
	sink      *faultSink
}

// segment is one step of a path: a name, or an index when name is empty and
// index is 0 or more.
type segment struct {
	name  string
	index int
}

// evaluated is what subschemas have already looked at in one value.
type evaluated struct {
	props map[string]bool
	items map[int]bool
	all   bool // of the items
}

func (e *evaluated) prop(name string) {
	if e.props == nil {
		e.props = map[string]bool{}
	}
	e.props[name] = true
}

func (e *evaluated) item(i int) {
	if e.items == nil {
		e.items = map[int]bool{}
	}
	e.items[i] = true
}

func (e *evaluated) merge(o *evaluated) {
	for name := range o.props {
		e.prop(name)
	}
	for i := range o.items {
		e.item(i)
	}
	e.all = e.all || o.all
}

// newEvaluation is for a value of count parts.
func newEvaluation(s *Schema, count int) *evaluation {
	return &evaluation{schema: s, steps: baseSteps + stepsPerValue*count, quiet: 1}
}

// stop ends the evaluation: the value could not be checked.
func (e *evaluation) stop(why string) bool {
	if e.stopped == "" {
		e.stopped, e.stoppedAt = why, e.pointer()
	}
	return false
}

// check applies n to v. seen, when not nil, learns what was evaluated; after a
// false answer its content is of no use.
func (e *evaluation) check(n *node, v *value, seen *evaluated) bool {
	if n.always != 0 {
		if n.always < 0 {
			return e.reject(v, func() string { return "is not allowed here" })
		}
		return true
	}
	if e.stopped != "" {
		return false
	}
	if e.steps--; e.steps < 0 {
		return e.stop("it takes too many steps; the schema or the arguments are too complex")
	}
	if e.depth++; e.depth > maxEvalDepth {
		return e.stop("the schema refers to itself too deeply")
	}
	if e.schema.dynamic && (len(e.scope) == 0 || e.scope[len(e.scope)-1] != n.resource) {
		e.scope = append(e.scope, n.resource)
		defer func() { e.scope = e.scope[:len(e.scope)-1] }()
	}
	ok := e.apply(n, v, seen)
	e.depth--
	return ok && e.stopped == ""
}

func (e *evaluation) apply(n *node, v *value, seen *evaluated) bool {
	own := seen
	if n.unevals { // unevaluated… sees what this subschema evaluates, not its siblings
		own = &evaluated{}
	}
	// Nothing else is said of a value of the wrong type: it would be noise.
	if !e.checkType(n, v) {
		return false
	}
	ok := e.references(n, v, own)
	if ok || e.quiet == 0 {
		ok = e.scalar(n, v) && ok
	}
	if ok || e.quiet == 0 {
		ok = e.array(n, v, own) && ok
	}
	if ok || e.quiet == 0 {
		ok = e.object(n, v, own) && ok
	}
	if ok || e.quiet == 0 {
		ok = e.logic(n, v, own) && ok
	}
	if !ok && e.quiet > 0 || e.stopped != "" {
		return false
	}
	if !n.unevals {
		return ok
	}
	if ok = e.unevaluated(n, v, own) && ok; ok && seen != nil {
		seen.merge(own)
	}
	return ok
}

// checkType handles type, enum and const.
func (e *evaluation) checkType(n *node, v *value) bool {
	if n.types != 0 && !n.types.has(v) {
		return e.rejectType(n, v)
	}
	if n.enum != nil && !n.enum.has(v) {
		return e.reject(v, func() string { return n.enum.expected() + ", got " + v.describe() + n.enum.hint(v) })
	}
	return true
}

func (t typeSet) has(v *value) bool {
	switch v.kind {
	case nullKind:
		return t&nullType != 0
	case boolKind:
		return t&boolType != 0
	case stringKind:
		return t&stringType != 0
	case arrayKind:
		return t&arrayType != 0
	case objectKind:
		return t&objectType != 0
	}
	return t&numberType != 0 || t&integerType != 0 && parseDecimal(v.text).isInteger()
}

func (en *enum) has(v *value) bool {
	if v.kind == stringKind {
		return en.strings[v.text]
	}
	if len(en.others) == 0 || v.kind >= arrayKind && !en.compound {
		return false
	}
	return en.others[v.key()]
}

// key is the same for values that JSON Schema calls equal, and only for those.
func (v *value) key() string {
	var b strings.Builder
	v.writeKey(&b)
	return b.String()
}

func (v *value) writeKey(b *strings.Builder) {
	switch v.kind {
	case numberKind:
		b.WriteString(parseDecimal(v.text).key())
	case arrayKind:
		b.WriteByte('[')
		for _, item := range v.items {
			item.writeKey(b)
			b.WriteByte(',')
		}
		b.WriteByte(']')
	case objectKind:
		sorted := make([]member, len(v.members))
		copy(sorted, v.members)
		sort.Slice(sorted, func(i, j int) bool { return sorted[i].name < sorted[j].name })
		b.WriteByte('{')
		for _, m := range sorted {
			b.WriteString(strconv.Quote(m.name))
			b.WriteByte(':')
			m.writeKey(b)
			b.WriteByte(',')
		}
		b.WriteByte('}')
	case stringKind:
		b.WriteString(strconv.Quote(v.text))
	default:
		b.Write(v.append(nil))
	}
}

func (e *evaluation) references(n *node, v *value, seen *evaluated) bool {
	ok := true
	if n.ref != nil {
		ok = e.check(n.ref, v, seen)
	}
	if n.dynRef != nil && (ok || e.quiet == 0) {
		target := n.dynRef
		if n.dynName != "" {
			for _, r := range e.scope { // the outermost wins
				if outer := r.nodes[n.dynName]; outer != nil {
					target = outer
					break
				}
			}
		}
		ok = e.check(target, v, seen) && ok
	}
	return ok
}

func (e *evaluation) scalar(n *node, v *value) bool {
	switch {
	case v.kind == numberKind && n.number != nil:
		return e.number(n.number, v)
	case v.kind == stringKind && n.str != nil:
		return e.string(n.str, v)
	}
	return true
}

func (e *evaluation) number(r *numberRules, v *value) bool {
	d := parseDecimal(v.text)
	ok := true
	bound := func(b *bound, holds bool, words string) {
		if b != nil && !holds {
			ok = e.reject(v, func() string { return "must be " + words + b.text + ", got " + v.describe() })
		}
	}
	bound(r.min, r.min == nil || d.compare(r.min.decimal) >= 0, "at least ")
	bound(r.max, r.max == nil || d.compare(r.max.decimal) <= 0, "at most ")
	bound(r.exMin, r.exMin == nil || d.compare(r.exMin.decimal) > 0, "greater than ")
	bound(r.exMax, r.exMax == nil || d.compare(r.exMax.decimal) < 0, "less than ")
	if r.multiple != nil {
		yes, known := d.multipleOf(r.multiple.decimal)
		if !known {
			return e.stop("a number has too many digits for multipleOf")
		}
		bound(r.multiple, yes, "a multiple of ")
	}
	return ok
}

func (e *evaluation) string(r *stringRules, v *value) bool {
	ok := true
	if r.min > 0 || r.max >= 0 {
		length := v.runes()
		if length < r.min {
			ok = e.reject(v, func() string {
				return "must have at least " + plural(r.min, "character") + ", got " + plural(length, "character")
			})
		}
		if r.max >= 0 && length > r.max {
			ok = e.reject(v, func() string {
				return "must have at most " + plural(r.max, "character") + ", got " + plural(length, "character")
			})
		}
	}
	if r.pattern == nil {
		return ok
	}
	if !e.match(r.pattern, v.text) {
		ok = e.stopped == "" && e.reject(v, func() string {
			return "must match the pattern " + clip(r.pattern.source, 200) + ", got " + v.describe()
		})
	}
	return ok
}

func (e *evaluation) match(p *pattern, s string) bool {
	ok, err := p.match(s, &e.spent)
	if err != nil {
		return e.stop("the pattern " + clip(p.source, 200) + " takes too long on this text")
	}
	return ok
}

// logic handles the combining keywords.
func (e *evaluation) logic(n *node, v *value, seen *evaluated) bool {
	ok := true
	for _, sub := range n.allOf {
		if !e.check(sub, v, seen) {
			if ok = false; e.quiet > 0 {
				return false
			}
		}
	}
	if n.anyOf != nil && !e.anyOf(n, v, seen) {
		ok = false
	}
	if n.oneOf != nil && (ok || e.quiet == 0) && !e.oneOf(n, v, seen) {
		ok = false
	}
	if n.not != nil && e.holds(n.not, v, nil) {
		ok = e.reject(v, func() string { return "must not be" + n.not.negated() + ", got " + v.describe() })
	}
	if n.ifNode != nil && (ok || e.quiet == 0) {
		branch := n.elseNode
		if e.holds(n.ifNode, v, seen) {
			branch = n.thenNode
		}
		if branch != nil && !e.check(branch, v, seen) {
			ok = false
		}
	}
	return ok && e.stopped == ""
}

// holds asks whether n accepts v; nothing is reported, and seen learns from
// success only.
func (e *evaluation) holds(n *node, v *value, seen *evaluated) bool {
	e.quiet++
	defer func() { e.quiet-- }()
	if seen == nil {
		return e.check(n, v, nil)
	}
	var own evaluated
	if !e.check(n, v, &own) {
		return false
	}
	seen.merge(&own)
	return true
}

func (e *evaluation) anyOf(n *node, v *value, seen *evaluated) bool {
	ok := false
	for _, sub := range n.anyOf {
		if e.holds(sub, v, seen) {
			if ok = true; seen == nil {
				return true
			}
		}
	}
	return ok || e.noBranch(n.anyOf, v)
}

func (e *evaluation) oneOf(n *node, v *value, seen *evaluated) bool {
	matched := 0
	for _, sub := range n.oneOf {
		if e.holds(sub, v, seen) {
			matched++
		}
	}
	switch {
	case matched == 1:
		return true
	case matched == 0:
		return e.noBranch(n.oneOf, v)
	}
	return e.reject(v, func() string {
		return "fits " + strconv.Itoa(matched) + " of " + strconv.Itoa(len(n.oneOf)) + " forms of which exactly one must fit: " + describeForms(n.oneOf)
	})
}
