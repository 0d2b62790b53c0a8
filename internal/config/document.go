package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// A document is one settings file: JSON with comments and trailing commas.
type document struct {
	layer, file string
	src         []byte
	warnings    []Warning
	faults      []error
	rules       int // of permissions, so far
	// How many warnings and faults there are beyond maxReports.
	moreWarnings, moreFaults int
	last                     mark // where position was last
}

// A mark is an offset with its line and column, both from 0.
type mark struct{ at, line, column int }

const (
	// maxRules bounds the rules of one file: each is parsed, and compared with
	// every call, also those of a folder that nobody trusts.
	maxRules = 2000
	// maxReports bounds the warnings about one file, and its faults.
	maxReports = 20
)

// maxDepth bounds how deep a file may nest, for parsers recurse.
const maxDepth = 100

// parse returns the root, or nil when the file is empty or no JSON object.
func (d *document) parse() *hujson.Value {
	d.src = bytes.TrimPrefix(d.src, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(d.src)) == 0 {
		return nil
	}
	if !utf8.Valid(d.src) {
		at := 0
		for at < len(d.src) {
			if r, n := utf8.DecodeRune(d.src[at:]); r == utf8.RuneError && n == 1 {
				break
			} else {
				at += n
			}
		}
		d.fault(at, "the file is not UTF-8: save it in that encoding")
		return nil
	}
	if at := tooDeep(d.src); at >= 0 {
		d.fault(at, "more than %d objects and lists inside each other", maxDepth)
		return nil
	}
	root, err := hujson.Parse(d.src)
	if err != nil {
		at, text := d.syntax(err)
		d.fault(at, "%s", text)
		return nil
	}
	if _, ok := root.Value.(*hujson.Object); !ok {
		d.fault(root.StartOffset, "expected an object, found %s", kindOf(&root))
		return nil
	}
	before := len(d.faults)
	d.duplicates(&root)
	if len(d.faults) > before {
		return nil
	}
	return &root
}

var syntaxError = regexp.MustCompile(`(?s)^hujson: line (\d+), column (\d+): (.*)$`)

// syntax takes the position out of a parser's error.
func (d *document) syntax(err error) (at int, text string) {
	m := syntaxError.FindStringSubmatch(err.Error())
	if m == nil {
		return 0, plain(err.Error())
	}
	line, _ := strconv.Atoi(m[1])
	column, _ := strconv.Atoi(m[2])
	for ; line > 1; line-- {
		at += bytes.IndexByte(d.src[at:], '\n') + 1
	}
	return min(at+column-1, len(d.src)), plain(m[3])
}

// tooDeep returns where nesting exceeds maxDepth, or -1. Brackets in strings
// and comments do not count.
func tooDeep(src []byte) int {
	depth := 0
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '"':
			for i++; i < len(src) && src[i] != '"'; i++ {
				if src[i] == '\\' {
					i++
				}
			}
		case '/':
			rest := src[i:]
			if bytes.HasPrefix(rest, []byte("//")) {
				if n := bytes.IndexByte(rest, '\n'); n >= 0 {
					i += n
				} else {
					return -1
				}
			} else if bytes.HasPrefix(rest, []byte("/*")) {
				if n := bytes.Index(rest[2:], []byte("*/")); n >= 0 {
					i += n + 3
				} else {
					return -1
				}
			}
		case '[', '{':
			if depth++; depth > maxDepth {
				return i
			}
		case ']', '}':
			depth--
		}
	}
	return -1
}

// duplicates refuses a name that an object has twice: of two deny lists one
// would be lost.
func (d *document) duplicates(v *hujson.Value) {
	switch t := v.Value.(type) {
	case *hujson.Object:
		seen := map[string]int{}
		for i := range t.Members {
			m := &t.Members[i]
			name := nameOf(m)
			if first, ok := seen[name]; ok {
				d.twice(name, first, m.Name.StartOffset)
			} else {
				seen[name] = m.Name.StartOffset
			}
			d.duplicates(&m.Value)
		}
	case *hujson.Array:
		for i := range t.Elements {
			d.duplicates(&t.Elements[i])
		}
	}
}

func (d *document) twice(name string, first, second int) {
	line, column := 0, 0
	if len(d.faults) < maxReports { // else nobody will read it
		line, column = d.position(first)
	}
	d.fault(second, "%s is there twice (first at %d:%d): keep one", show(name), line, column)
}

func nameOf(m *hujson.ObjectMember) string { return m.Name.Value.(hujson.Literal).String() }

// position turns an offset into line and column. It goes on from where it was
// last, for the places of a file are mostly asked for in their order.
func (d *document) position(at int) (line, column int) {
	at = min(at, len(d.src))
	if at < d.last.at {
		d.last = mark{}
	}
	part, m := d.src[d.last.at:at], d.last
	if n := bytes.Count(part, []byte("\n")); n > 0 {
		m.line, m.column = m.line+n, 0
		part = part[bytes.LastIndexByte(part, '\n')+1:]
	}
	m.column += utf8.RuneCount(part)
	m.at = at
	d.last = m
	return m.line + 1, m.column + 1
}

func (d *document) origin(at int) Origin {
	line, column := d.position(at)
	return Origin{d.layer, d.file, line, column}
}

func (d *document) fault(at int, format string, a ...any) {
	if len(d.faults) == maxReports {
		d.moreFaults++
		return
	}
	d.faults = append(d.faults, fmt.Errorf("%s: %s", d.origin(at).position(), fmt.Sprintf(format, a...)))
}

func (d *document) warn(at int, format string, a ...any) {
	if len(d.warnings) == maxReports {
		d.moreWarnings++
		return
	}
	d.warnings = append(d.warnings, Warning{d.origin(at), fmt.Sprintf(format, a...)})
}

// fold adds how many warnings and faults are not reported.
func (d *document) fold() {
	if d.moreWarnings > 0 {
		d.warnings = append(d.warnings, Warning{d.origin(0), fmt.Sprintf("and %d more warnings about this file", d.moreWarnings)})
	}
	if d.moreFaults > 0 {
		d.faults = append(d.faults, fmt.Errorf("%s: and %d more faults in this file", d.origin(0).position(), d.moreFaults))
	}
}

// expect reports a value of the wrong type.
func (d *document) expect(v *hujson.Value, path, want string) {
	d.fault(v.StartOffset, "%s: expected %s, found %s", path, want, kindOf(v))
}

func kindOf(v *hujson.Value) string {
	switch v.Value.Kind() {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "the string " + show(v.Value.(hujson.Literal).String())
	case '0':
		return "the number " + plain(string(v.Value.(hujson.Literal)))
	}
	return string(v.Value.(hujson.Literal))
}

func (d *document) text(v *hujson.Value, path, want string) (string, bool) {
	if v.Value.Kind() != '"' {
		d.expect(v, path, want)
		return "", false
	}
	return v.Value.(hujson.Literal).String(), true
}

func (d *document) boolean(v *hujson.Value, path string) (value, ok bool) {
	if k := v.Value.Kind(); k != 't' && k != 'f' {
		d.expect(v, path, "true or false")
		return false, false
	}
	return v.Value.(hujson.Literal).Bool(), true
}

// texts reads a list of strings and calls f for each, with its offset; it
// reports every one that is none.
func (d *document) texts(v *hujson.Value, path string, f func(s string, at int)) {
	list, ok := v.Value.(*hujson.Array)
	if !ok {
		d.expect(v, path, "a list of strings")
		return
	}
	for i := range list.Elements {
		e := &list.Elements[i]
		if s, ok := d.text(e, fmt.Sprintf("%s[%d]", path, i), "a string"); ok {
			f(s, e.StartOffset)
		}
	}
}

// members calls f for each member of an object.
func (d *document) members(v *hujson.Value, path string, f func(name string, at int, v *hujson.Value)) {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		d.expect(v, path, "an object")
		return
	}
	for i := range object.Members {
		m := &object.Members[i]
		f(nameOf(m), m.Name.StartOffset, &m.Value)
	}
}

// standard returns a value as JSON without comments and trailing commas.
func standard(v *hujson.Value) json.RawMessage {
	c := v.Clone()
	c.Minimize()
	return json.RawMessage(bytes.TrimSpace(c.Pack()))
}

// show quotes a name or value for a message, short and with nothing hidden.
func show(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strconv.Quote(s)
}

// plain is show for a text that is left as it is when nothing is wrong with it.
func plain(s string) string {
	if len(s) > 200 || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }) {
		return show(s)
	}
	return s
}

// nearest returns the known key that was probably meant, or "".
func nearest(want string, known []string) string {
	best, dist := "", 1+len(want)/3
	for _, k := range known {
		if len(want) > 2 && strings.HasPrefix(strings.ToLower(k), strings.ToLower(want)) {
			return k
		}
		if d := distance(strings.ToLower(want), strings.ToLower(k)); d <= dist && (best == "" || d < dist) {
			best, dist = k, d
		}
	}
	return best
}

// distance counts the single-byte edits between two short names.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
