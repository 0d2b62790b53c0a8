package session

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
)

// Redacted stands where a secret stood.
const Redacted = "[redacted]"

// A pattern finds keys of one shape. The marks are literals of which any match
// holds one: without them the expression is not tried.
type pattern struct {
	marks []string
	expr  *regexp.Regexp
	// group is what is replaced; 0 is the whole match.
	group int
	// digit: the match must hold a digit, which tells a key from words joined
	// by hyphens.
	digit bool
}

// patterns are the shapes of keys that announce themselves. They are compiled
// when the first line is written and not at start.
var patterns = sync.OnceValue(func() []pattern {
	p := func(expr string, group int, digit bool, marks ...string) pattern {
		return pattern{marks, regexp.MustCompile(expr), group, digit}
	}
	// A key begins where no letter, digit, - or _ stands before it: what a
	// provider keeps encrypted is base64 of any length, and holds everything.
	key := func(expr string, digit bool, marks ...string) pattern {
		return p(`(?:^|[^A-Za-z0-9_-])(`+expr+`)`, 1, digit, marks...)
	}
	return []pattern{
		key(`(?:sk|rk|pk)[-_][A-Za-z0-9_-]{20,}`, true, "sk-", "sk_", "rk-", "rk_", "pk-", "pk_"), // OpenAI, Anthropic, DeepSeek, OpenRouter, Stripe
		key(`AIza[0-9A-Za-z_-]{30,}`, false, "AIza"),                                              // Google
		key(`(?:xai|gsk|hf|npm|nvapi|r8|dop_v1|pypi)[-_][A-Za-z0-9_-]{24,}`, true, "xai-", "gsk_", "hf_", "npm_", "nvapi-", "r8_", "dop_v1_", "pypi-"),
		key(`gh[opusr]_[A-Za-z0-9]{30,}`, false, "gho_", "ghp_", "ghu_", "ghs_", "ghr_"),
		key(`github_pat_[A-Za-z0-9_]{22,}`, false, "github_pat_"),
		key(`glpat-[A-Za-z0-9_-]{20,}`, false, "glpat-"),
		key(`x(?:ox[abeprs]|app)-[A-Za-z0-9-]{10,}`, true, "xox", "xapp-"), // Slack
		p(`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`, 0, false, "AKIA", "ASIA"),       // AWS
		p(`(?i)\baws_?secret_?access_?key["']?\s*[=:]\s*["']?([A-Za-z0-9/+]{40})`, 1, false, "ecret", "ECRET"),
		key(`eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`, false, "eyJ"), // JSON web token
		p(`(?i)\bbearer\s+([A-Za-z0-9._~+/-]{20,}=*)`, 1, true, "earer", "EARER"),
		p(`\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s:/@"'`+"`"+`<>,\\]*:([^\s:/@"'`+"`"+`<>,\\]+)@`, 1, false, "://"),
		p(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`, 0, false, "PRIVATE KEY-----"),
	}
})

// redactKeys replaces keys of known shapes.
func redactKeys(s string) string {
	for _, p := range patterns() {
		if p.possible(s) {
			s = p.replace(s)
		}
	}
	return s
}

func (p pattern) possible(s string) bool {
	for _, m := range p.marks {
		if strings.Contains(s, m) {
			return true
		}
	}
	return false
}

func (p pattern) replace(s string) string {
	var b strings.Builder
	at := 0
	for _, m := range p.expr.FindAllStringSubmatchIndex(s, -1) {
		from, to := m[2*p.group], m[2*p.group+1]
		if p.digit && !strings.ContainsAny(s[from:to], "0123456789") {
			continue
		}
		b.WriteString(s[at:from])
		b.WriteString(Redacted)
		at = to
	}
	if at == 0 {
		return s
	}
	b.WriteString(s[at:])
	return b.String()
}

// A cleaner takes secrets out of a text: all of them, or, where shapes would say
// nothing, those that are known.
type cleaner struct{ known func(string) string }

func (c cleaner) all(s string) string { return redactKeys(c.known(s)) }

// redactLine takes the secrets out of every string of a line of JSON, names included, and
// leaves everything else as it is: the order of names and the digits of
// numbers. The strings are decoded first, so that a secret with a quotation
// mark or a backslash in it is seen as the redactor knows it. A string that
// holds JSON itself, as the arguments of a call do, is taken apart too; over it as a
// whole no shape is looked for, because one that reaches from one string into the
// next is none.
func redactLine(line []byte, c cleaner) []byte { return redactJSON(line, c, 3) }

func redactJSON(line []byte, c cleaner, depth int) []byte {
	var out []byte
	done := 0 // what of line is in out already
	for i := 0; i < len(line); i++ {
		if line[i] != '"' {
			continue
		}
		end := stringEnd(line, i)
		if s, changed := redactString(line[i:end], c, depth); changed {
			out = append(append(out, line[done:i]...), s...)
			done = end
		}
		i = end - 1
	}
	if done == 0 {
		return line
	}
	return append(out, line[done:]...)
}

// stringEnd returns the end of the JSON string that begins at i.
func stringEnd(line []byte, i int) int {
	for i++; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(line)
}

func redactString(quoted []byte, c cleaner, depth int) ([]byte, bool) {
	var s string
	if bytes.IndexByte(quoted, '\\') < 0 {
		s = string(quoted[1 : len(quoted)-1])
	} else if json.Unmarshal(quoted, &s) != nil {
		return quoted, false
	}
	var clean string
	if t := []byte(s); depth > 0 && len(t) > 0 && (t[0] == '{' || t[0] == '[') && json.Valid(t) {
		clean = c.known(string(redactJSON(t, c, depth-1)))
	} else {
		clean = c.all(s)
	}
	if clean == s {
		return quoted, false
	}
	q, err := encode(clean)
	return q, err == nil
}
