package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"

	"github.com/dlclark/regexp2"
)

const (
	// matchLimit bounds the time that backtracking patterns take: each match,
	// and all matches of one validation together.
	matchLimit = 100 * time.Millisecond
	// maxPattern bounds the length of a pattern in bytes.
	maxPattern = 16 << 10
	// maxBacktrack bounds the text given to the backtracking engine in bytes.
	maxBacktrack = 1 << 20
	// maxPatterns bounds what the patterns of one schema take when compiled, in
	// bytes as cost counts them. The largest real schema takes a 24th of this.
	maxPatterns = 1 << 20
	// patternBytes, instBytes and textBytes are about what one pattern takes
	// before its first instruction, one instruction of RE2, and one byte of a
	// pattern for the backtracking engine.
	patternBytes = 1 << 10
	instBytes    = 64
	textBytes    = 128
)

var errUnchecked = errors.New("the pattern takes too long on this text")

// pattern is one ECMA-262 regular expression. RE2 runs it in linear time where
// it can express it; what it refuses (look-around, back references) goes to a
// backtracking engine with a time limit.
type pattern struct {
	source string
	linear *regexp.Regexp
	slow   *regexp2.Regexp
}

// patterns compiles the patterns of one schema, each once, as long as all of
// them together stay below maxPatterns: a few bytes of a pattern can stand for
// thousands of instructions.
type patterns struct {
	known map[string]*pattern
	spent int // bytes
}

func (ps *patterns) compile(source string) (*pattern, error) {
	if p := ps.known[source]; p != nil {
		return p, nil
	}
	p, err := ps.make(source)
	if err != nil {
		return nil, err
	}
	if ps.known == nil {
		ps.known = map[string]*pattern{}
	}
	ps.known[source] = p
	return p, nil
}

// spend takes n bytes for the pattern source, or says that there are not as many left.
func (ps *patterns) spend(source string, n int) error {
	if ps.spent += n + patternBytes; ps.spent > maxPatterns {
		return fmt.Errorf("pattern %q: with it, the patterns of this schema take more than %d bytes when compiled; use fewer of them, or smaller repetitions", clip(source, 80), maxPatterns)
	}
	return nil
}

func (ps *patterns) make(source string) (*pattern, error) {
	if len(source) > maxPattern {
		return nil, fmt.Errorf("pattern is longer than %d bytes", maxPattern)
	}
	p := &pattern{source: source}
	text, err := translate(source, re2)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", clip(source, 80), err)
	}
	if tree, err := syntax.Parse(text, syntax.Perl); err == nil {
		if err := ps.spend(source, cost(tree)); err != nil {
			return nil, err
		}
		if p.linear, err = regexp.Compile(text); err == nil {
			return p, nil
		}
	}
	if text, err = translate(source, backtracking); err != nil {
		return nil, fmt.Errorf("pattern %q: %w", clip(source, 80), err)
	}
	if err = ps.spend(source, textBytes*len(source)); err != nil {
		return nil, err
	}
	if p.slow, err = regexp2.Compile(text, regexp2.None); err != nil {
		return nil, fmt.Errorf("pattern %q is no regular expression that can be used: %w", clip(source, 80), err)
	}
	p.slow.MatchTimeout = matchLimit
	return p, nil
}

// cost is about what RE2 needs for an expression, in bytes. What is repeated is
// there as often as it may occur, which the parser limits to 1,000 times.
func cost(re *syntax.Regexp) int {
	n := instBytes + 4*len(re.Rune)
	if re.Op == syntax.OpLiteral {
		n = (instBytes + 4) * len(re.Rune)
	}
	for _, sub := range re.Sub {
		n += cost(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min+1, re.Max, 1)
	}
	return n
}

// match reports whether s contains a match. spent is the time that this
// validation has used on backtracking; it grows, and ends in errUnchecked.
func (p *pattern) match(s string, spent *time.Duration) (bool, error) {
	if p.linear != nil {
		return p.linear.MatchString(s), nil
	}
	if *spent >= matchLimit || len(s) > maxBacktrack {
		return false, errUnchecked
	}
	start := time.Now()
	ok, err := p.slow.MatchString(s)
	*spent += time.Since(start)
	if err != nil {
		return false, errUnchecked
	}
	return ok, nil
}

// dialect of a translated pattern.
type regexpDialect int

const (
	re2 regexpDialect = iota
	backtracking
)

// A set is a sorted list of inclusive ranges of code points.
type set [][2]rune

var (
	digits = set{{'0', '9'}}
	words  = set{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}
	spaces = set{{0x09, 0x0d}, {' ', ' '}, {0xa0, 0xa0}, {0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}}
	breaks = set{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}
)

func (s set) complement() set {
	var out set
	next := rune(0)
	for _, r := range s {
		if r[0] > next {
			out = append(out, [2]rune{next, r[0] - 1})
		}
		next = r[1] + 1
	}
	return append(out, [2]rune{next, 0x10ffff})
}

// translator rewrites an ECMA-262 pattern for an engine whose escapes mean
// something else.
type translator struct {
	in      string
	pos     int
	out     strings.Builder
	dialect regexpDialect
	inClass bool
}

// translate gives source the meaning it has in ECMA-262: \d and \w are ASCII,
// \s is every Unicode space, $ is the very end, and . ends at the four line
// breaks of JavaScript. The \A, \Z and \z of Python's schemas are taken as the
// anchors their authors meant.
func translate(source string, dialect regexpDialect) (string, error) {
	t := translator{in: source, dialect: dialect}
	for t.pos < len(t.in) {
		if err := t.step(); err != nil {
			return "", err
		}
	}
	return t.out.String(), nil
}

func (t *translator) step() error {
	c := t.in[t.pos]
	switch {
	case c == '\\':
		return t.escape()
	case t.inClass && c == ']':
		t.inClass = false
	case t.inClass && c == '[':
		t.out.WriteByte('\\')
	case t.inClass:
	case c == '[':
		return t.class()
	case c == '.':
		t.pos++
		t.writeClass(breaks.complement())
		return nil
	case c == '$':
		t.pos++
		t.writeEnd()
		return nil
	case c == '(' && strings.HasPrefix(t.in[t.pos:], "(?#"):
		return errors.New("(?# is no group of ECMA-262")
	}
	t.out.WriteByte(c)
	t.pos++
	return nil
}

// class writes the head of a character class. [] matches nothing, [^] anything.
func (t *translator) class() error {
	rest := t.in[t.pos:]
	switch {
	case strings.HasPrefix(rest, "[^]"):
		t.pos += 3
		t.writeClass(set{{0, 0x10ffff}})
	case strings.HasPrefix(rest, "[]"):
		t.pos += 2
		if t.dialect == backtracking {
			t.out.WriteString("(?!)")
		} else {
			t.out.WriteString(`[^\x00-\x{10FFFF}]`)
		}
	case strings.HasPrefix(rest, "[^"):
		t.pos, t.inClass = t.pos+2, true
		t.out.WriteString("[^")
	default:
		t.pos, t.inClass = t.pos+1, true
		t.out.WriteByte('[')
	}
	return nil
}

func (t *translator) escape() error {
	if t.pos+1 >= len(t.in) {
		return errors.New("ends in a lone backslash")
	}
	c := t.in[t.pos+1]
	t.pos += 2
	switch c {
	case 'd':
		t.writeSet(digits)
	case 'D':
		t.writeSet(digits.complement())
	case 'w':
		t.writeSet(words)
	case 'W':
		t.writeSet(words.complement())
	case 's':
		t.writeSet(spaces)
	case 'S':
		t.writeSet(spaces.complement())
	case 't':
		t.writeRune('\t')
	case 'n':
		t.writeRune('\n')
	case 'r':
		t.writeRune('\r')
	case 'v':
		t.writeRune('\v')
	case 'f':
		t.writeRune('\f')
	case 'b', 'B':
		t.boundary(c)
	case 'A', 'Z', 'z':
		return t.anchor(c)
	case 'c':
		return t.control()
	case 'x':
		return t.hex(2)
	case 'u':
		return t.unicode()
	case 'p', 'P':
		return t.property(c)
	case 'k':
		t.out.WriteString(`\k`)
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return t.number(c)
	default:
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return fmt.Errorf(`\%c is no escape of ECMA-262`, c)
		}
		if c >= 0x80 { // an escaped character beyond ASCII stands for itself
			t.out.WriteByte(c)
			return nil
		}
		t.writeRune(rune(c))
	}
	return nil
}

func (t *translator) anchor(c byte) error {
	switch {
	case t.inClass:
		return fmt.Errorf(`\%c is no escape of ECMA-262`, c)
	case c == 'A':
		t.out.WriteByte('^')
	default:
		t.writeEnd()
	}
	return nil
}

// writeEnd writes the anchor for the very end of the text.
func (t *translator) writeEnd() {
	if t.dialect == backtracking {
		t.out.WriteString(`(?![\s\S])`)
		return
	}
	t.out.WriteByte('$')
}

func (t *translator) boundary(c byte) {
	switch {
	case t.inClass && c == 'b':
		t.writeRune('\b')
	case t.dialect == re2:
		t.out.WriteString(`\` + string(c))
	case c == 'b':
		t.out.WriteString(`(?:(?<=[0-9A-Z_a-z])(?![0-9A-Z_a-z])|(?<![0-9A-Z_a-z])(?=[0-9A-Z_a-z]))`)
	default:
		t.out.WriteString(`(?:(?<=[0-9A-Z_a-z])(?=[0-9A-Z_a-z])|(?<![0-9A-Z_a-z])(?![0-9A-Z_a-z]))`)
	}
}

func (t *translator) control() error {
	if t.pos >= len(t.in) || t.in[t.pos]|0x20 < 'a' || t.in[t.pos]|0x20 > 'z' {
		return errors.New(`\c must be followed by a letter`)
	}
	t.writeRune(rune(t.in[t.pos] & 0x1f))
	t.pos++
	return nil
}

// number writes \0, or a back reference, which only one engine has.
func (t *translator) number(c byte) error {
	switch {
	case c == '0':
		t.writeRune(0)
	case t.inClass:
		return fmt.Errorf(`\%c has no meaning in a character class`, c)
	default:
		t.out.WriteString(`\` + string(c))
	}
	return nil
}

func (t *translator) hex(n int) error {
	r, ok := t.digits(n)
	if !ok {
		return fmt.Errorf(`\%c must be followed by %d hexadecimal digits`, t.in[t.pos-1], n)
	}
	t.writeRune(r)
	return nil
}

// digits reads n hexadecimal digits.
func (t *translator) digits(n int) (rune, bool) {
	if t.pos+n > len(t.in) {
		return 0, false
	}
	r, err := strconv.ParseUint(t.in[t.pos:t.pos+n], 16, 32)
	if err != nil {
		return 0, false
	}
	t.pos += n
	return rune(r), true
}

// unicode reads \uXXXX, a pair of surrogates, or \u{X…}.
func (t *translator) unicode() error {
	if rest, ok := strings.CutPrefix(t.in[t.pos:], "{"); ok {
		digits, _, found := strings.Cut(rest, "}")
		r, err := strconv.ParseUint(digits, 16, 32)
		if !found || err != nil || r > 0x10ffff {
			return errors.New(`\u{ must hold a code point`)
		}
		t.pos += len(digits) + 2
		t.writeRune(rune(r))
		return nil
	}
	r, ok := t.digits(4)
	if !ok {
		return errors.New(`\u must be followed by 4 hexadecimal digits`)
	}
	if utf16.IsSurrogate(r) {
		if !strings.HasPrefix(t.in[t.pos:], `\u`) {
			return errors.New(`\u holds half of a surrogate pair`)
		}
		t.pos += 2
		low, ok := t.digits(4)
		if r = utf16.DecodeRune(r, low); !ok || r == 0xfffd {
			return errors.New(`\u holds half of a surrogate pair`)
		}
	}
	t.writeRune(r)
	return nil
}

// property writes \p{…} in the one spelling that both engines know.
func (t *translator) property(c byte) error {
	rest, ok := strings.CutPrefix(t.in[t.pos:], "{")
	name, _, found := strings.Cut(rest, "}")
	if !ok || !found {
		return fmt.Errorf(`\%c must be followed by a property in braces`, c)
	}
	t.pos += len(name) + 2
	for _, prefix := range []string{"Script=", "sc=", "Script_Extensions=", "scx=", "General_Category=", "gc="} {
		name = strings.TrimPrefix(name, prefix)
	}
	if short, ok := categories()[name]; ok {
		name = short
	}
	t.out.WriteString(`\` + string(c) + "{" + name + "}")
	return nil
}

// categories maps the long names of general categories to the short ones.
var categories = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"Letter": "L", "Lowercase_Letter": "Ll", "Uppercase_Letter": "Lu", "Titlecase_Letter": "Lt", "Modifier_Letter": "Lm", "Other_Letter": "Lo",
		"Mark": "M", "Nonspacing_Mark": "Mn", "Spacing_Mark": "Mc", "Enclosing_Mark": "Me",
		"Number": "N", "Decimal_Number": "Nd", "digit": "Nd", "Letter_Number": "Nl", "Other_Number": "No",
		"Punctuation": "P", "punct": "P", "Dash_Punctuation": "Pd", "Open_Punctuation": "Ps", "Close_Punctuation": "Pe",
		"Symbol": "S", "Math_Symbol": "Sm", "Currency_Symbol": "Sc", "Modifier_Symbol": "Sk", "Other_Symbol": "So",
		"Separator": "Z", "Space_Separator": "Zs", "Line_Separator": "Zl", "Paragraph_Separator": "Zp",
		"Other": "C", "Control": "Cc", "Format": "Cf", "Private_Use": "Co",
	}
})

// writeSet writes s as a class, or as part of the class that is open.
func (t *translator) writeSet(s set) {
	if !t.inClass {
		t.writeClass(s)
		return
	}
	t.writeRanges(s)
}

func (t *translator) writeClass(s set) {
	t.out.WriteByte('[')
	t.writeRanges(s)
	t.out.WriteByte(']')
}

func (t *translator) writeRanges(s set) {
	for _, r := range s {
		t.writeRune(r[0])
		if r[1] != r[0] {
			t.out.WriteByte('-')
			t.writeRune(r[1])
		}
	}
}

// writeRune writes r so that it stands for itself.
func (t *translator) writeRune(r rune) {
	switch {
	case t.dialect == re2:
		fmt.Fprintf(&t.out, `\x{%X}`, r)
	case r < 0x10000:
		fmt.Fprintf(&t.out, `\u%04X`, r)
	default:
		t.out.WriteRune(r)
	}
}

// clip shortens s for a message.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
