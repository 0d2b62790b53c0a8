package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds the nesting of arguments and of schemas.
const maxDepth = 256

type kind uint8

const (
	nullKind kind = iota
	boolKind
	numberKind
	stringKind
	arrayKind
	objectKind
)

// value is one JSON value. Numbers keep the text they came with, objects the
// order of their members.
type value struct {
	kind    kind
	boolean bool
	text    string // of a string, its characters; of a number, its spelling
	items   []*value
	members []member
	index   map[string]int // members by name; made on first use, for big objects only
}

type member struct {
	name string
	*value
}

// indexFrom is the number of members from which an object is looked up by map.
const indexFrom = 12

// get returns the member called name, or nil.
func (v *value) get(name string) *value {
	if v.kind != objectKind {
		return nil
	}
	if len(v.members) < indexFrom {
		for i := range v.members {
			if v.members[i].name == name {
				return v.members[i].value
			}
		}
		return nil
	}
	if v.index == nil {
		v.index = make(map[string]int, len(v.members))
		for i, m := range v.members {
			v.index[m.name] = i
		}
	}
	if i, ok := v.index[name]; ok {
		return v.members[i].value
	}
	return nil
}

// parser reads exactly one JSON value.
type parser struct {
	dec   *jsontext.Decoder
	count int
}

// parse reads raw into a tree. Its errors are Faults.
func parse(raw []byte) (*value, int, *Fault) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, 0, &Fault{Message: "nothing was given; give one JSON value ({} when there are no arguments)"}
	}
	p := parser{dec: jsontext.NewDecoder(bytes.NewReader(raw))}
	v, err := p.value()
	if err != nil {
		return nil, 0, parseFault(raw, err)
	}
	if _, err := p.dec.ReadToken(); err == nil {
		return nil, 0, &Fault{Message: fmt.Sprintf("more than one JSON value was given (the second ends at byte %d); give exactly one", p.dec.InputOffset())}
	} else if !errors.Is(err, io.EOF) {
		return nil, 0, parseFault(raw, err)
	}
	return v, p.count, nil
}

func (p *parser) value() (*value, error) {
	tok, err := p.dec.ReadToken()
	if err != nil {
		return nil, err
	}
	return p.rest(tok)
}

// rest reads the value that starts with tok.
func (p *parser) rest(tok jsontext.Token) (*value, error) {
	p.count++
	switch tok.Kind() {
	case jsontext.KindNull:
		return &value{kind: nullKind}, nil
	case jsontext.KindTrue, jsontext.KindFalse:
		return &value{kind: boolKind, boolean: tok.Bool()}, nil
	case jsontext.KindString:
		return &value{kind: stringKind, text: tok.String()}, nil
	case jsontext.KindNumber:
		v := &value{kind: numberKind, text: tok.String()}
		if !numberInRange(v.text) {
			return nil, p.fault("the exponent of this number is out of any useful range")
		}
		return v, nil
	}
	if p.dec.StackDepth() > maxDepth {
		return nil, p.fault(fmt.Sprintf("nested deeper than %d levels", maxDepth))
	}
	if tok.Kind() == jsontext.KindBeginArray {
		return p.array()
	}
	return p.object()
}

func (p *parser) array() (*value, error) {
	v := &value{kind: arrayKind}
	for p.dec.PeekKind() != jsontext.KindEndArray {
		item, err := p.value()
		if err != nil {
			return nil, err
		}
		v.items = append(v.items, item)
	}
	_, err := p.dec.ReadToken()
	return v, err
}

func (p *parser) object() (*value, error) {
	v := &value{kind: objectKind}
	for p.dec.PeekKind() != jsontext.KindEndObject {
		tok, err := p.dec.ReadToken()
		if err != nil {
			return nil, err
		}
		name := tok.String()
		item, err := p.value()
		if err != nil {
			return nil, err
		}
		v.members = append(v.members, member{name, item})
	}
	_, err := p.dec.ReadToken()
	return v, err
}

func (p *parser) fault(message string) error {
	return &Fault{Path: string(p.dec.StackPointer()), Message: message}
}

// parseFault turns what the decoder found into a Fault that says where.
func parseFault(raw []byte, err error) *Fault {
	var fault *Fault
	if errors.As(err, &fault) {
		return fault
	}
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return &Fault{Message: "not valid JSON: " + err.Error()}
	}
	path := string(syntax.JSONPointer)
	switch {
	case errors.Is(syntax.Err, jsontext.ErrDuplicateName):
		return &Fault{Path: path, Message: "this name occurs more than once in its object; give each name once"}
	case errors.Is(syntax.Err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &Fault{Path: path, Message: fmt.Sprintf("not valid JSON: it ends in the middle of a value (after %d bytes); give it whole", len(raw))}
	}
	reason := "syntax error"
	if syntax.Err != nil {
		reason = strings.TrimPrefix(syntax.Err.Error(), "jsontext: ")
	}
	return &Fault{Path: path, Message: fmt.Sprintf("not valid JSON at byte %d%s: %s", syntax.ByteOffset, near(raw, int(syntax.ByteOffset)), reason)}
}

// near quotes a few characters of raw from offset on.
func near(raw []byte, offset int) string {
	if offset < 0 || offset >= len(raw) {
		return ""
	}
	rest := raw[offset:]
	if len(rest) > 20 {
		rest = rest[:20]
	}
	return ", at " + strconv.QuoteToASCII(strings.ToValidUTF8(string(rest), "\uFFFD"))
}

// Parse reads exactly one JSON value, strictly and without loss, and returns
// its canonical form: no white space between tokens, strings in one spelling,
// every number spelled as it came, members in the order they came. Parsing the
// canonical form gives the same bytes again.
//
// Refused, with an *Invalid that says where: empty input, anything but valid
// UTF-8, a name that occurs twice in an object, unpaired surrogates, more than
// one value, nesting deeper than 256, an exponent of more than 15 digits. Empty
// input is not read as {}: an argument is never guessed into existence
// (ruling 14). null is a value like any other.
func Parse(raw []byte) ([]byte, error) {
	v, _, fault := parse(raw)
	if fault != nil {
		return nil, &Invalid{Faults: []Fault{*fault}}
	}
	return v.append(make([]byte, 0, len(raw))), nil
}

// append writes the canonical form of v.
func (v *value) append(dst []byte) []byte {
	switch v.kind {
	case nullKind:
		return append(dst, "null"...)
	case boolKind:
		return strconv.AppendBool(dst, v.boolean)
	case numberKind:
		return append(dst, v.text...)
	case stringKind:
		return appendQuoted(dst, v.text)
	case arrayKind:
		dst = append(dst, '[')
		for i, item := range v.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.append(dst)
		}
		return append(dst, ']')
	}
	dst = append(dst, '{')
	for i, m := range v.members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendQuoted(dst, m.name), ':')
		dst = m.append(dst)
	}
	return append(dst, '}')
}

func appendQuoted(dst []byte, s string) []byte {
	quoted, err := jsontext.AppendQuote(dst, s)
	if err != nil { // only for text that is not UTF-8, which parse has refused
		panic("schema: quoting parsed text: " + err.Error())
	}
	return quoted
}

func (v *value) String() string { return string(v.append(nil)) }

// runes is the length of a string as JSON Schema counts it.
func (v *value) runes() int { return utf8.RuneCountInString(v.text) }
