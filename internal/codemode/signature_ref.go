package codemode

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// maxInlineRepeat is the length up to which a type that is used more than once
// is repeated instead of named.
const maxInlineRepeat = 48

// A typeReference is a schema that some $ref names. Where it is used a mark stands
// in the text until all is written: only then is it known whether the type is
// repeated in place or gets a name.
type typeReference struct {
	name    string // proposed
	text    string // the type, with marks
	uses    int
	open    bool // being written
	entered bool // its own schema is being written, not a second use of it
	loops   bool // it contains itself
	final   string
	done    bool
	named   string // the name it got
}

// refMark is what stands for reference number i.
func refMark(i int) string { return "\x02" + strconv.Itoa(i) + "\x03" }

// lookup finds what a $ref names inside the document; nil when it is not there.
func (w *typeWriter) lookup(ref string) *jsonValue {
	base, fragment, _ := strings.Cut(ref, "#")
	if base != "" && base != strings.TrimSuffix(w.doc.str("$id"), "#") {
		return w.anchors()[base]
	}
	if plain, err := url.PathUnescape(fragment); err == nil {
		fragment = plain
	}
	if fragment == "" {
		return w.doc
	}
	if fragment[0] != '/' {
		return w.anchors()["#"+fragment]
	}
	v := w.doc
	for _, token := range strings.Split(fragment[1:], "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch v.kind {
		case '{':
			v = v.members[token]
		case '[':
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v.items) {
				return nil
			}
			v = v.items[i]
		default:
			return nil
		}
		if v == nil {
			return nil
		}
	}
	return v
}

// anchors is the subschemas of the document by $anchor ("#name") and $id.
func (w *typeWriter) anchors() map[string]*jsonValue {
	if w.anchorOf != nil {
		return w.anchorOf
	}
	w.anchorOf = map[string]*jsonValue{}
	var visit func(v *jsonValue)
	visit = func(v *jsonValue) {
		for _, keyword := range []string{"$anchor", "$dynamicAnchor"} {
			if a := v.str(keyword); a != "" {
				w.anchorOf["#"+a] = v
			}
		}
		if id := v.str("$id"); id != "" {
			w.anchorOf[id] = v
		}
		for _, item := range v.items {
			visit(item)
		}
		for _, name := range v.names {
			visit(v.members[name])
		}
	}
	visit(w.doc)
	return w.anchorOf
}

// reference writes the type that ref names, once, and returns its mark.
func (w *typeWriter) reference(ref string) tsType {
	target := w.lookup(ref)
	if target == nil {
		return tsType{text: "unknown", note: "$ref " + docLine(ref, 120)}
	}
	i, known := w.refOf[target]
	if !known {
		i = len(w.refs)
		r := &typeReference{name: typeName(ref, target), open: true}
		w.refs = append(w.refs, r)
		w.refOf[target] = i
		depth := w.depth
		w.depth = 0 // it may be written on its own
		w.jumps++
		if w.jumps > maxTypeDepth {
			r.text = kindOnly(target)
		} else {
			t := w.schema(target)
			r.text = tsType{text: t.grouped(), note: t.note}.commented()
		}
		w.jumps--
		w.depth, r.open = depth, false
	}
	r := w.refs[i]
	r.uses++
	if r.open {
		r.loops = true
	}
	return tsType{text: refMark(i)}
}

// typeName proposes a name for the type that ref names.
func typeName(ref string, target *jsonValue) string {
	name := ref[strings.LastIndexAny(ref, "/#")+1:]
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	if name == "" {
		if name = target.str("title"); name == "" {
			name = "Self"
		}
	}
	name = strings.Map(func(r rune) rune {
		if r < 128 && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, cutDoc(name, 40))
	name = strings.Trim(name, "_")
	if name == "" || unicode.IsDigit(rune(name[0])) {
		name = "T" + name
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// takenTypeNames is the type names that mean something already.
var takenTypeNames = []string{"Result", "Promise", "Record", "Array", "Object", "String", "Number", "Boolean", "Function", "Date", "Symbol", "BigInt"}

// resolve replaces the marks in text, and names the types that need it.
func (w *typeWriter) resolve(text string) string {
	for _, r := range w.refs {
		if r.loops {
			w.nameReference(r)
		}
	}
	out := w.expand(text)
	for more := true; more; { // declaring one may name others
		more = false
		for _, r := range w.refs {
			if r.named != "" && !r.done {
				r.done, more = true, true
				if r.final = w.expand(r.text); r.final == r.named { // it says nothing but itself
					r.final = "unknown"
				}
			}
		}
	}
	for _, r := range w.refs {
		if r.named != "" {
			w.declared = append(w.declared, r.named+" extends "+r.final)
		}
	}
	return out
}

func (w *typeWriter) nameReference(r *typeReference) {
	name := r.name
	for slices.Contains(takenTypeNames, name) || w.names[name] > 0 {
		w.names[r.name] = max(w.names[r.name], 1) + 1
		name = r.name + strconv.Itoa(w.names[r.name])
	}
	w.names[name]++
	r.named = name
}

// expand replaces the marks in text. It ends because what contains itself has
// a name, and stays small because what is repeated is short and no more is put
// in place once there are maxTypeBytes: what refers to what is indented with
// each step, which nobody has counted.
func (w *typeWriter) expand(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "\x02")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		number, after, _ := strings.Cut(rest, "\x03")
		i, _ := strconv.Atoi(number)
		if used := w.use(w.refs[i], b.String()); b.Len()+len(used) <= maxTypeBytes {
			b.WriteString(used)
		} else {
			b.WriteString("unknown /* see the schema */")
		}
		text = after
	}
}

// use is what stands for r after the text before.
func (w *typeWriter) use(r *typeReference, before string) string {
	if r.named != "" {
		return r.named
	}
	if !r.done {
		r.done = true
		r.final = w.expand(r.text)
		if r.uses > 1 && len(r.final) > maxInlineRepeat {
			w.nameReference(r)
			return r.named
		}
	}
	line := before[strings.LastIndexByte(before, '\n')+1:]
	indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
	return strings.ReplaceAll(r.final, "\n", "\n"+indent)
}

// parameters is the declarations of the names as type parameters.
func (w *typeWriter) parameters() string {
	if len(w.declared) == 0 {
		return ""
	}
	return "<" + strings.Join(w.declared, ", ") + ">"
}
