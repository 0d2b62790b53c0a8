package hook

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/dlclark/regexp2"
)

// A matcher says for what an event's hooks run: a tool's name, or for other events
// the word that docs/hooks.md names. It is Claude Code's: nothing and * are all;
// letters, digits, _, - and spaces with | or , between are a list of names; all
// else is a regular expression that may match anywhere.
type matcher struct {
	all   bool
	words []string
	expr  *regexp.Regexp
	// slow is an expression that only a backtracking engine takes, a look-ahead for
	// example.
	slow *regexp2.Regexp
}

// maxMatching is how long a backtracking matcher may take for one name.
const maxMatching = 100 * time.Millisecond

func parseMatcher(text string) (matcher, error) {
	text = strings.TrimSpace(text)
	if text == "" || text == "*" || text == ".*" {
		return matcher{all: true}, nil
	}
	if len(text) > 10_000 {
		return matcher{}, fmt.Errorf("the matcher has %d bytes; it may have 10,000", len(text))
	}
	if strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-|, ") == "" {
		var words []string
		for _, w := range strings.FieldsFunc(text, func(r rune) bool { return r == '|' || r == ',' }) {
			if w = strings.TrimSpace(w); w != "" {
				words = append(words, w)
			}
		}
		if words == nil {
			return matcher{}, fmt.Errorf("the matcher %q names nothing", text)
		}
		return matcher{words: words}, nil
	}
	if strings.HasPrefix(text, "*") || strings.HasSuffix(text, "_*") { // mcp__* is written a lot, and as an expression says less than is meant
		text = "^" + strings.ReplaceAll(regexp.QuoteMeta(text), `\*`, ".*") + "$"
	}
	expr, err := regexp.Compile(text)
	if err == nil {
		return matcher{expr: expr}, nil
	}
	slow, slowErr := regexp2.Compile(text, regexp2.ECMAScript)
	if slowErr != nil {
		return matcher{}, fmt.Errorf("the matcher %q is no regular expression: %w", text, err)
	}
	slow.MatchTimeout = maxMatching
	return matcher{slow: slow}, nil
}

// word says whether a matcher takes a word of an event that is not about a tool.
func (m *matcher) word(w string) bool {
	if m.all || m.match(w) {
		return true
	}
	for _, have := range m.words {
		if have == w {
			return true
		}
	}
	return false
}

// tool says whether a matcher takes a tool, and whose names it spoke. A matcher
// that takes every tool speaks Claude Code's.
func (m *matcher) tool(canonical string) (dialect, bool) {
	if m.all {
		return claude, true
	}
	for _, w := range m.words {
		if d, ok := called(w, canonical); ok {
			return d, true
		}
	}
	if m.match(claude.name(canonical)) {
		return claude, true
	}
	// An expression that looks ahead may say what a name is not, so it is asked
	// about one name only.
	if m.slow == nil && m.match(canonical) {
		return own, true
	}
	return claude, false
}

// match asks the expression. One that takes too long counts as a match: the hook
// may be there to forbid something.
func (m *matcher) match(s string) bool {
	switch {
	case m.expr != nil:
		return m.expr.MatchString(s)
	case m.slow != nil:
		ok, err := m.slow.MatchString(s)
		return ok || err != nil
	}
	return false
}
