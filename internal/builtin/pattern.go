package builtin

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// A pattern is a regular expression with what makes looking for it quick.
type pattern struct {
	re       *regexp.Regexp // against one line
	whole    *regexp.Regexp // the same against many lines; nil when it would mean something else
	must     needle         // every match contains it; empty when nothing is known
	plain    bool           // it is the whole pattern
	anchored bool           // it says what lies before or behind a match
	piece    int            // how many bytes are matched in one go, so that a search can be ended between them
}

// A match in progress cannot be ended, and takes time in proportion to the text
// and to the size of the compiled pattern. So the larger the pattern, the
// smaller the pieces: about a second each at worst.
const (
	maxPattern = 10_000 // bytes
	maxWork    = 64 << 20
	minPiece   = 16 << 10
)

func newPattern(s string) (*pattern, error) {
	if s == "" {
		return nil, errors.New("the pattern is empty: it would match every line")
	}
	if len(s) > maxPattern {
		return nil, fmt.Errorf("the pattern has %d bytes; at most %d are allowed", len(s), maxPattern)
	}
	tree, err := syntax.Parse(s, syntax.Perl)
	var re, whole *regexp.Regexp
	if err == nil {
		re, err = regexp.Compile(s)
	}
	if err == nil && !strings.Contains(s, `\A`) && !strings.Contains(s, `\z`) && !strings.Contains(s, "(?-m") {
		whole, err = regexp.Compile("(?m)" + s)
	}
	if err != nil {
		return nil, fmt.Errorf("the pattern %q is not a regular expression that RE2 knows: %w%s", s, err, teach(err))
	}
	tree = tree.Simplify()
	p := &pattern{re: re, whole: whole, must: required(tree), piece: maxLine, anchored: anchored(tree)}
	if prog, err := syntax.Compile(tree); err == nil && len(prog.Inst) > 0 {
		p.piece = max(minPiece, min(maxLine, maxWork/len(prog.Inst)))
	}
	if strings.Contains(p.must.text, "\n") {
		return nil, fmt.Errorf("the pattern %q holds a line break, but lines are searched one by one: look for one of its lines", s)
	}
	p.plain = p.must.text == s && !p.must.fold && regexp.QuoteMeta(s) == s
	p.must.aim()
	return p, nil
}

// teach says what to write instead of what RE2 does not have.
func teach(err error) string {
	var e *syntax.Error
	if !errors.As(err, &e) {
		return ""
	}
	switch e.Code {
	case syntax.ErrInvalidPerlOp, syntax.ErrInvalidNamedCapture:
		return "; there is no lookahead or lookbehind: match more, and filter the lines in a program"
	case syntax.ErrInvalidEscape:
		return "; there are no back-references, and a backslash before a letter must be one of RE2's classes"
	case syntax.ErrMissingParen, syntax.ErrUnexpectedParen, syntax.ErrMissingBracket, syntax.ErrMissingRepeatArgument:
		return `; write \( \) \[ \* for the characters themselves`
	}
	return ""
}

func anchored(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	return slices.ContainsFunc(re.Sub, anchored)
}

// required returns the longest text that every match of a pattern contains.
func required(re *syntax.Regexp) needle {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return needle{text: string(re.Rune)}
		}
		return foldable(re.Rune)
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		var best needle
		for _, sub := range re.Sub {
			if n := required(sub); len(n.text) > len(best.text) {
				best = n
			}
		}
		return best
	}
	return needle{}
}

// foldable returns the longest run of a text in which ignoring case is a matter
// of ASCII alone. k and s are not: the Kelvin sign and the long s fold to them.
func foldable(text []rune) needle {
	best, run := "", ""
	for _, r := range text {
		if 'A' <= r && r <= 'Z' {
			r |= 0x20
		}
		if r < 0x80 && r != 'k' && r != 's' {
			run += string(r)
		} else {
			run = ""
		}
		if len(run) > len(best) {
			best = run
		}
	}
	return needle{text: best, fold: true}
}

// A needle is a text to be looked for.
type needle struct {
	text string // in lower case when fold is set
	fold bool   // ignoring case, of ASCII
	rare int    // index of the byte in text that is worth looking for first
	raw  []byte
}

// common is the letters of English and of programs, the most frequent first.
const common = " etaoinsrlhdcupmfgbywvkxjqz"

// aim makes the needle ready to be looked for.
func (n *needle) aim() {
	n.raw = []byte(n.text)
	best := -1
	for i, c := range n.raw {
		rank := strings.IndexByte(common, c)
		if rank < 0 {
			rank = len(common) / 2
		}
		if rank > best {
			best, n.rare = rank, i
		}
	}
}

// window is how far one look for the rare byte goes, so that its absence is
// not found out anew, to the end of the text, after each match.
const window = 4096

// index returns where the needle first occurs in b, or -1.
func (n *needle) index(b []byte) int {
	if !n.fold {
		return bytes.Index(b, n.raw)
	}
	low := n.raw[n.rare]
	up := low
	if 'a' <= low && low <= 'z' {
		up -= 0x20
	}
	for from := n.rare; from < len(b); from += window {
		part := b[from:min(from+window, len(b))]
		for at := 0; ; at++ {
			i, j := bytes.IndexByte(part[at:], low), -1
			if up != low {
				end := len(part)
				if i >= 0 {
					end = at + i
				}
				j = bytes.IndexByte(part[at:end], up)
			}
			if j >= 0 {
				i = j
			}
			if i < 0 {
				break
			}
			at += i
			start := from + at - n.rare
			if len(b)-start < len(n.raw) {
				return -1
			}
			if n.here(b[start:]) {
				return start
			}
		}
	}
	return -1
}

func (n *needle) here(b []byte) bool {
	for i, c := range n.raw {
		d := b[i]
		if 'A' <= d && d <= 'Z' {
			d |= 0x20
		}
		if c != d {
			return false
		}
	}
	return true
}

// find returns where the first line with a match begins in b, which ends at the
// end of a line, or -1. unix says that b has no carriage return.
func (p *pattern) find(b []byte, unix bool) int {
	for at := 0; at < len(b); {
		i := at
		switch {
		case p.must.text != "":
			j := p.must.index(b[at:])
			if j < 0 {
				return -1
			}
			i = at + j
		case p.whole != nil && unix:
			loc := p.whole.FindIndex(b[at:])
			if loc == nil {
				return -1
			}
			i = at + loc[0]
		}
		start := bytes.LastIndexByte(b[:i], '\n') + 1
		if start == len(b) {
			return -1 // behind the last line
		}
		line := lineAt(b, start)
		if p.plain || p.re.Match(bytes.TrimSuffix(line, []byte("\r"))) {
			return start
		}
		at = start + len(line) + 1
	}
	return -1
}

// lineAt returns the line that begins at i, without its line break.
func lineAt(b []byte, i int) []byte {
	if j := bytes.IndexByte(b[i:], '\n'); j >= 0 {
		return b[i : i+j]
	}
	return b[i:]
}
