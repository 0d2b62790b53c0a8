package builtin

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// A rule is one line of an ignore file, with git's meaning (gitignore(5)).
type rule struct {
	negate  bool // `!`: what it matches is not ignored
	dirOnly bool // a slash at its end: it matches directories only
	// A pattern with a slash inside matches the path from the ignore file's
	// directory, segment by segment; one without matches any last segment.
	segments []segment
	rooted   bool
	prefix   string // what a rooted path begins with, before segments
}

// A segment is a pattern between two slashes.
type segment struct {
	glob string
	kind segmentKind
}

type segmentKind int

const (
	wild    segmentKind = iota // needs matchSegment
	literal                    // glob is the name
	suffix                     // glob is `*` and what the name ends with
	deep                       // `**`: any number of segments, at the end at least one
)

// maxIgnoreFile is how much of an ignore file counts, in bytes.
const maxIgnoreFile = 1 << 20

// parseRules reads an ignore file. The last line comes first, since the last
// one that matches decides.
func parseRules(data []byte) []rule {
	data = bytes.TrimPrefix(data, []byte(utf8Mark.mark))
	lines := strings.Split(string(data), "\n")
	var rules []rule
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimSuffix(lines[i], "\r")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if r, ok := parseRule(trimSpaces(line)); ok {
			rules = append(rules, r)
		}
	}
	return rules
}

// trimSpaces takes the spaces off the end of a line, but for one that a
// backslash protects.
func trimSpaces(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			i++
		}
		end = min(i+1, len(line))
	}
	return line[:end]
}

func parseRule(p string) (r rule, ok bool) {
	p, r.negate = strings.CutPrefix(p, "!")
	p, r.dirOnly = strings.CutSuffix(p, "/")
	r.rooted = strings.Contains(p, "/")
	p = strings.TrimPrefix(p, "/")
	if p == "" {
		return rule{}, false
	}
	if !r.rooted {
		r.segments = []segment{newSegment(p)}
		if r.segments[0].kind == deep {
			r.segments[0] = segment{"*", wild}
		}
		return r, true
	}
	r.prefix, p = cutGlued(p)
	for _, s := range strings.Split(p, "/") {
		r.segments = append(r.segments, newSegment(s))
	}
	return r, true
}

// cutGlued splits a pattern whose first wildcard is a `**` that ends a segment
// but does not begin it, as in `a/foo**/b`. Other than its manual says, git
// compares what comes before and then lets the stars go over slashes.
func cutGlued(p string) (prefix, rest string) {
	i := strings.IndexAny(p, `*?[\`)
	if i <= 0 || p[i-1] == '/' || !strings.HasPrefix(p[i:], "**") {
		return "", p
	}
	if after := strings.TrimLeft(p[i:], "*"); after != "" && after[0] != '/' {
		return "", p
	}
	return p[:i], p[i:]
}

func newSegment(p string) segment {
	rest, star := strings.CutPrefix(p, "*")
	switch {
	case len(p) >= 2 && strings.Trim(p, "*") == "":
		return segment{p, deep}
	case !strings.ContainsAny(p, `*?[\`):
		return segment{p, literal}
	case star && rest != "" && !strings.ContainsAny(rest, `*?[\`):
		return segment{rest, suffix}
	}
	return segment{p, wild}
}

func (s segment) match(name string) bool {
	switch s.kind {
	case literal:
		return s.glob == name
	case suffix:
		return strings.HasSuffix(name, s.glob)
	case deep:
		return true
	}
	return matchSegment(s.glob, name)
}

// match says whether the rule is about a path, given relative to the ignore
// file's directory and with slashes.
func (r *rule) match(rel string, dir bool) bool {
	if r.dirOnly && !dir {
		return false
	}
	if !r.rooted {
		return r.segments[0].match(rel[strings.LastIndexByte(rel, '/')+1:])
	}
	rel, ok := strings.CutPrefix(rel, r.prefix)
	return ok && matchPath(r.segments, rel)
}

// matchPath matches segments against a path. Only the last `**` before the
// point of failure is ever tried anew, so a hostile pattern costs no more than
// its length times the path's.
func matchPath(pattern []segment, rel string) bool {
	path := strings.Split(rel, "/")
	p, n := 0, 0
	retryP, retryN := -1, 0
	for n < len(path) {
		switch {
		case p < len(pattern) && pattern[p].kind == deep:
			if p == len(pattern)-1 {
				return true // the rest, at least one segment
			}
			retryP, retryN = p, n
			p++
		case p < len(pattern) && pattern[p].match(path[n]):
			p, n = p+1, n+1
		case retryP >= 0:
			retryN++
			p, n = retryP+1, retryN
		default:
			return false
		}
	}
	return p == len(pattern)
}

// matchSegment matches one pattern against one name: `*`, `?`, brackets and
// backslashes. As in matchPath only the last star is tried anew.
func matchSegment(p, name string) bool {
	pi, ni := 0, 0
	retryP, retryN := -1, 0
	for {
		if pi < len(p) && p[pi] == '*' {
			retryP, retryN = pi+1, ni
			pi++
			continue
		}
		if ni == len(name) {
			return pi == len(p)
		}
		step, width, ok := 0, 0, false
		if pi < len(p) {
			step, width, ok = matchOne(p[pi:], name[ni:])
			if step == 0 {
				return false // a bracket or backslash that does not end: it matches nothing
			}
		}
		switch {
		case ok:
			pi, ni = pi+step, ni+width
		case retryP >= 0:
			_, w := utf8.DecodeRuneInString(name[retryN:])
			retryN += w
			pi, ni = retryP, retryN
		default:
			return false
		}
	}
}

// matchOne matches the first element of a pattern, which is no star, against
// the first character of a name. It returns how much of both that was; step is
// 0 when the pattern is broken.
func matchOne(p, name string) (step, width int, ok bool) {
	c, width := utf8.DecodeRuneInString(name)
	switch p[0] {
	case '?':
		return 1, width, true
	case '[':
		step, ok = matchBracket(p, c)
		return step, width, ok
	case '\\':
		if len(p) == 1 {
			return 0, 0, false
		}
		want, n := utf8.DecodeRuneInString(p[1:])
		return n + 1, width, c == want
	}
	want, n := utf8.DecodeRuneInString(p)
	return n, width, c == want && strings.HasPrefix(name, p[:n])
}

// matchBracket matches `[…]`; step is its length, 0 when it does not end.
func matchBracket(p string, c rune) (step int, ok bool) {
	i, negate := 1, false
	if i < len(p) && (p[i] == '!' || p[i] == '^') {
		i, negate = i+1, true
	}
	for first := true; ; first = false {
		if i >= len(p) {
			return 0, false
		}
		if p[i] == ']' && !first {
			return i + 1, ok != negate
		}
		if strings.HasPrefix(p[i:], "[:") {
			name, rest, found := strings.Cut(p[i+2:], ":]")
			if found && !strings.Contains(name, "]") {
				in, known := classHas(name, c)
				if !known {
					return 0, false
				}
				ok = ok || in
				i = len(p) - len(rest)
				continue
			}
		}
		lo, n := bracketRune(p[i:])
		if n == 0 {
			return 0, false
		}
		i += n
		hi := lo
		if i+1 < len(p) && p[i] == '-' && p[i+1] != ']' {
			hi, n = bracketRune(p[i+1:])
			if n == 0 {
				return 0, false
			}
			i += n + 1
		}
		ok = ok || lo <= c && c <= hi
	}
}

func bracketRune(p string) (r rune, n int) {
	if p[0] != '\\' {
		return utf8.DecodeRuneInString(p)
	}
	if len(p) == 1 {
		return 0, 0
	}
	r, n = utf8.DecodeRuneInString(p[1:])
	return r, n + 1
}

// classHas says whether a POSIX class has a character. As in git they are of
// ASCII alone.
func classHas(name string, c rune) (in, known bool) {
	lower, upper := 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z'
	digit := '0' <= c && c <= '9'
	switch name {
	case "alnum":
		return lower || upper || digit, true
	case "alpha":
		return lower || upper, true
	case "blank":
		return c == ' ' || c == '\t', true
	case "cntrl":
		return c < ' ' || c == 0x7f, true
	case "digit":
		return digit, true
	case "graph":
		return '!' <= c && c <= '~', true
	case "lower":
		return lower, true
	case "print":
		return ' ' <= c && c <= '~', true
	case "punct":
		return '!' <= c && c <= '~' && !lower && !upper && !digit, true
	case "space":
		return c == ' ' || '\t' <= c && c <= '\r', true
	case "upper":
		return upper, true
	case "xdigit":
		return digit || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F', true
	}
	return false, false
}
