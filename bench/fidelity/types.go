package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// op says what a typ is.
type op string

const (
	opUnknown op = "unknown"
	opNever   op = "never"
	opString  op = "string"
	opNumber  op = "number"
	opBoolean op = "boolean"
	opNull    op = "null"
	opAny     op = "object"  // any object
	opLiteral op = "literal" // one value
	opUnion   op = "|"
	opAnd     op = "&"
	opArray   op = "[]"
	opTuple   op = "[,]"
	opObject  op = "{}" // an object with members
	opName    op = "name"
)

// A typ is one TypeScript type.
type typ struct {
	op      op
	of      []*typ // members of a union or an intersection, element of an array, elements of a tuple
	least   int    // elements that a tuple must have
	rest    *typ   // of a tuple's further elements; nil when there are none
	value   any    // of a literal: string, bool or json.Number
	name    string
	members []member
	index   *typ // of members without a name of their own; nil when there are none
}

type member struct {
	name     string
	optional bool
	typ      *typ
}

// A decl is the declaration of one tool.
type decl struct {
	name     string
	args     *typ // nil when the tool takes none
	optional bool // the argument may be left out
	result   *typ // nil when nothing is said of it
	named    map[string]*typ
}

// parseDecl reads a declaration as codemode writes it: the part of TypeScript
// that types of JSON need, by a parser of its own.
func parseDecl(src string) (d *decl, err error) {
	p := &parser{src: src}
	defer func() {
		if e := recover(); e != nil {
			fault, ok := e.(syntaxFault)
			if !ok {
				panic(e)
			}
			d, err = nil, fmt.Errorf("at byte %d, before %.60q: %s", p.pos, src[p.pos:], string(fault))
		}
	}()
	d = &decl{named: map[string]*typ{}}
	d.name = p.memberName()
	p.parameters(d)
	p.expect("(")
	if !p.accept(")") {
		p.word("args")
		d.optional = p.accept("?")
		p.expect(":")
		d.args = p.union()
		p.expect(")")
	}
	p.expect(":")
	p.word("Promise")
	p.expect("<")
	p.word("Result")
	if p.accept("<") {
		d.result = p.union()
		p.expect(">")
	}
	p.expect(">")
	if p.space(); p.pos != len(p.src) {
		p.fail("something follows the declaration")
	}
	return d, nil
}

// parameters reads the type parameters, whose constraints name types.
func (p *parser) parameters(d *decl) {
	if !p.accept("<") {
		return
	}
	for {
		name := p.identifier()
		p.word("extends")
		if d.named[name] != nil {
			p.fail(name + " is declared twice")
		}
		if d.named[name] = p.union(); !p.accept(",") {
			break
		}
	}
	p.expect(">")
}

type syntaxFault string

type parser struct {
	src   string
	pos   int
	end   int // of the last token
	depth int
}

func (p *parser) fail(text string) { panic(syntaxFault(text)) }

// space skips blanks and comments.
func (p *parser) space() {
	for p.pos < len(p.src) {
		switch c := p.src[p.pos]; {
		case c == ' ' || c == '\n':
			p.pos++
		case strings.HasPrefix(p.src[p.pos:], "/*"):
			end := strings.Index(p.src[p.pos+2:], "*/")
			if end < 0 {
				p.fail("a comment does not end")
			}
			p.pos += 2 + end + 2
		default:
			return
		}
	}
}

// took notes that a token ends here.
func (p *parser) took() { p.end = p.pos }

// newline reports whether a line ends before the next token.
func (p *parser) newline() bool {
	p.space()
	return strings.Contains(p.src[p.end:p.pos], "\n")
}

func (p *parser) accept(s string) bool {
	p.space()
	if !strings.HasPrefix(p.src[p.pos:], s) {
		return false
	}
	p.pos += len(s)
	p.took()
	return true
}

func (p *parser) expect(s string) {
	if !p.accept(s) {
		p.fail("expected " + s)
	}
}

func (p *parser) word(w string) {
	if got := p.identifier(); got != w {
		p.fail("expected " + w + ", not " + got)
	}
}

func letter(c byte) bool {
	return c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
func digit(c byte) bool { return c >= '0' && c <= '9' }

func (p *parser) identifier() string {
	p.space()
	start := p.pos
	for p.pos < len(p.src) && (letter(p.src[p.pos]) || p.pos > start && digit(p.src[p.pos])) {
		p.pos++
	}
	if p.pos == start {
		p.fail("expected a name")
	}
	p.took()
	return p.src[start:p.pos]
}

func (p *parser) memberName() string {
	if p.space(); p.pos < len(p.src) && p.src[p.pos] == '"' {
		return p.text()
	}
	return p.identifier()
}

// text reads a string literal.
func (p *parser) text() string {
	var b strings.Builder
	for p.pos++; ; {
		if p.pos >= len(p.src) || p.src[p.pos] == '\n' {
			p.fail("a string does not end")
		}
		switch c := p.src[p.pos]; c {
		case '"':
			p.pos++
			p.took()
			return b.String()
		case '\\':
			p.escape(&b)
		default:
			r, n := utf8.DecodeRuneInString(p.src[p.pos:])
			b.WriteRune(r)
			p.pos += n
		}
	}
}

func (p *parser) escape(b *strings.Builder) {
	rest := p.src[p.pos+1:]
	switch {
	case strings.HasPrefix(rest, `"`), strings.HasPrefix(rest, `\`):
		b.WriteByte(rest[0])
		p.pos += 2
	case strings.HasPrefix(rest, "n"):
		b.WriteByte('\n')
		p.pos += 2
	case strings.HasPrefix(rest, "u{"):
		hex, _, ok := strings.Cut(rest[2:], "}")
		n, err := strconv.ParseUint(hex, 16, 21)
		if !ok || err != nil {
			p.fail("an escape cannot be read")
		}
		b.WriteRune(rune(n))
		p.pos += len(hex) + 4
	case strings.HasPrefix(rest, "u") && len(rest) >= 5:
		n, err := strconv.ParseUint(rest[1:5], 16, 16)
		if err != nil {
			p.fail("an escape cannot be read")
		}
		b.WriteRune(rune(n))
		p.pos += 6
	default:
		p.fail("unknown escape")
	}
}

func (p *parser) union() *typ { return p.list("|", opUnion, p.intersection) }

func (p *parser) intersection() *typ { return p.list("&", opAnd, p.postfix) }

func (p *parser) list(sign string, o op, part func() *typ) *typ {
	t := part()
	if !p.accept(sign) {
		return t
	}
	all := &typ{op: o, of: []*typ{t}}
	for {
		all.of = append(all.of, part())
		if !p.accept(sign) {
			return all
		}
	}
}

func (p *parser) postfix() *typ {
	t := p.primary()
	for !p.newline() && p.accept("[") {
		p.expect("]")
		t = &typ{op: opArray, of: []*typ{t}}
	}
	return t
}

func (p *parser) primary() *typ {
	if p.depth++; p.depth > 500 {
		p.fail("nested too deeply")
	}
	defer func() { p.depth-- }()
	switch {
	case p.accept("("):
		t := p.union()
		p.expect(")")
		return t
	case p.accept("{"):
		return p.object()
	case p.accept("["):
		return p.tuple()
	}
	switch c := (p.src + " ")[p.pos]; {
	case c == '"':
		return &typ{op: opLiteral, value: p.text()}
	case c == '-' || digit(c):
		start := p.pos
		for p.pos < len(p.src) && strings.IndexByte("+-.eE0123456789", p.src[p.pos]) >= 0 {
			p.pos++
		}
		p.took()
		return &typ{op: opLiteral, value: json.Number(p.src[start:p.pos])}
	}
	switch name := p.identifier(); name {
	case "unknown", "never", "string", "number", "boolean", "null", "object":
		return &typ{op: op(name)}
	case "true", "false":
		return &typ{op: opLiteral, value: name == "true"}
	case "Record":
		p.expect("<")
		p.word("string")
		p.expect(",")
		t := &typ{op: opObject, index: p.union()}
		p.expect(">")
		return t
	default:
		return &typ{op: opName, name: name}
	}
}

// object reads the members after {. A line's end separates two members, too.
func (p *parser) object() *typ {
	t := &typ{op: opObject}
	for !p.accept("}") {
		if p.accept("[") {
			p.identifier()
			p.expect(":")
			p.word("string")
			p.expect("]")
			p.expect(":")
			if t.index != nil {
				p.fail("a second index signature")
			}
			t.index = p.union()
		} else {
			m := member{name: p.memberName(), optional: p.accept("?")}
			p.expect(":")
			m.typ = p.union()
			t.members = append(t.members, m)
		}
		if newline := p.newline(); !p.accept(";") && !newline && !strings.HasPrefix(p.src[p.pos:], "}") {
			p.fail("expected ; or }")
		}
	}
	return t
}

func (p *parser) tuple() *typ {
	t := &typ{op: opTuple}
	for !p.accept("]") {
		if p.accept("...") {
			all := p.union()
			if all.op != opArray {
				p.fail("the rest is no array")
			}
			t.rest = all.of[0]
			p.expect("]")
			return t
		}
		t.of = append(t.of, p.union())
		if !p.accept("?") {
			if t.least < len(t.of)-1 {
				p.fail("a required element follows an optional one")
			}
			t.least = len(t.of)
		}
		if !p.accept(",") {
			p.expect("]")
			return t
		}
	}
	return t
}
