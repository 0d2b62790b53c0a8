package app

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"capstan/internal/config"
	"capstan/internal/llm"
)

// collectSecrets collects what must not be shown or recorded: keys, passwords
// and secret headers of everything that is configured, also what this run does
// not use, since a command may print it. It ends no run: what cannot be read is
// told to whoever wants to use it.
func (s *Session) collectSecrets() {
	for _, f := range families() {
		s.secret(strings.TrimSpace(s.opt.Env(f.keyVar)))
		s.address(s.opt.Env(f.baseVar))
	}
	for i := range s.set.Providers {
		p := &s.set.Providers[i]
		if p.KeyEnv != "" {
			s.secret(strings.TrimSpace(s.opt.Env(p.KeyEnv)))
		}
		if p.KeyFile != "" {
			if key, err := s.keyFile(p); err == nil {
				s.secret(strings.TrimSpace(key))
			}
		}
		s.address(p.BaseURL)
		for _, h := range p.Headers {
			s.secretHeader(h)
		}
	}
	for _, h := range s.serverSecrets() {
		s.secretHeader(h)
	}
	for _, c := range s.servers.configs {
		s.address(c.URL)
	}
	for _, name := range s.hookVariables() {
		s.secret(strings.TrimSpace(s.opt.Env(name)))
	}
}

// withDefault is a variable of a server's configuration that has a default.
var withDefault = regexp.MustCompile(`(\$\{([^}:]*)):-([^}]*)\}`)

// serverSecrets are the headers of MCP servers, and what else of their
// configuration is called like a secret or takes its value from a variable that
// is. A default is a secret when it stands for something that is called like one.
func (s *Session) serverSecrets() []config.Header {
	var list []config.Header
	add := func(name, value string, always bool) {
		for _, m := range withDefault.FindAllStringSubmatch(value, -1) {
			if secretName.MatchString(name) || secretName.MatchString(m[2]) {
				list = append(list, config.Header{Name: "secret", Value: m[3]})
			}
		}
		value = withDefault.ReplaceAllString(value, "$1}")
		if always || secretName.MatchString(name) || secretName.MatchString(strings.Join(variable.FindAllString(value, -1), " ")) {
			list = append(list, config.Header{Name: name, Value: value})
		}
	}
	for _, c := range s.servers.configs {
		for name, value := range c.Headers {
			add(name, value, true)
		}
		for name, value := range c.Env {
			add(name, value, false)
		}
		for _, text := range append([]string{c.URL}, c.Args...) {
			add("", text, false)
		}
	}
	return list
}

// secret remembers a text that must not be shown or recorded.
func (s *Session) secret(text string) {
	if guarded(text) && !slices.Contains(s.secrets, text) {
		s.secrets = append(s.secrets, text)
		slices.SortFunc(s.secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	}
}

// guarded reports whether a text may be a secret. A short word is none: servers
// that need no key are given "ollama" or "lm-studio" for one, and a session with
// such a word taken out everywhere could not be gone on with.
func guarded(text string) bool {
	return len(text) >= 12 || len(text) >= 6 && strings.ContainsAny(text, "0123456789")
}

// address remembers what is secret in a base URL: its password, a token in place
// of one, the keys in its query.
func (s *Session) address(baseURL string) {
	for _, text := range llm.URLSecrets(baseURL) {
		s.secret(text)
	}
}

var (
	// secretName is what a header is called that holds a secret.
	secretName = regexp.MustCompile(`(?i)auth|key|token|secret|passw|pwd|credential|cookie|session|signature`)
	// plainName is a variable that says where and who somebody is: commands print
	// it all the time, and taken out of their output it would cost every path.
	plainName = regexp.MustCompile(`^(HOME|PWD|OLDPWD|PATH|USER|LOGNAME|SHELL|HOSTNAME|TMPDIR|LANG|TERM|XDG_.*|USERPROFILE|USERNAME|COMPUTERNAME|APPDATA|LOCALAPPDATA|TEMP|TMP)$`)
)

// secretHeader remembers what a header of the settings keeps secret: what its
// variables hold, for settings name a variable to keep its value out of the
// file, and of a header that is called so each word, since in "Bearer x" or
// "a=x; b=y" the x is what would be printed.
func (s *Session) secretHeader(h config.Header) {
	for _, ref := range variable.FindAllStringSubmatch(h.Value, -1) {
		if !plainName.MatchString(ref[1]) {
			s.secret(strings.TrimSpace(s.opt.Env(ref[1])))
		}
	}
	if !secretName.MatchString(h.Name) {
		return
	}
	value := variable.ReplaceAllStringFunc(h.Value, func(ref string) string {
		if name := ref[2 : len(ref)-1]; !plainName.MatchString(name) {
			return s.opt.Env(name)
		}
		return " "
	})
	for _, word := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t,;", r) }) {
		s.secret(word)
		if _, after, ok := strings.Cut(word, "="); ok {
			s.secret(strings.Trim(after, `"`))
		}
	}
}

// Redact returns text without the secrets that the session knows, nor the beginning
// of one where the text was cut, which "…" says.
func (s *Session) Redact(text string) string {
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, "[redacted]")
	}
	if len(s.secrets) == 0 || !strings.Contains(text, cutMark) {
		return text
	}
	pieces := strings.Split(text, cutMark)
	for i := range pieces[:len(pieces)-1] {
		pieces[i] = s.redactEnd(pieces[i])
	}
	return strings.Join(pieces, cutMark)
}

const (
	cutMark = "…"
	// telling is how much of a secret is too much to show, in bytes.
	telling = 4
)

// redactEnd takes away the beginning of a secret with which a text ends.
func (s *Session) redactEnd(text string) string {
	for _, secret := range s.secrets {
		for n := min(len(secret)-1, len(text)); n >= telling; n-- {
			if strings.HasSuffix(text, secret[:n]) {
				return text[:len(text)-n] + "[redacted]"
			}
		}
	}
	return text
}

// keyVariables are the variables of the environment that the settings take keys
// from, headers included. Commands do not get them: a model that looks at its
// environment would be shown them.
func (s *Session) keyVariables() []string {
	var names []string
	take := func(h config.Header) {
		for _, ref := range variable.FindAllStringSubmatch(h.Value, -1) {
			if !plainName.MatchString(ref[1]) {
				names = append(names, ref[1])
			}
		}
	}
	for _, h := range s.serverSecrets() {
		take(h)
	}
	names = append(names, s.hookVariables()...)
	for _, p := range s.set.Providers {
		if p.KeyEnv != "" {
			names = append(names, p.KeyEnv)
		}
		for _, h := range p.Headers {
			for _, ref := range variable.FindAllStringSubmatch(h.Value, -1) {
				names = append(names, ref[1])
			}
		}
	}
	return names
}

// A redactor takes secrets out of a text that comes in pieces, wherever they are
// cut. The zero redactor takes out nothing.
type redactor struct {
	secrets []string // the longest first
	held    string   // the end of the text, in which one may have begun
}

// push takes a piece and returns what can be shown of the text so far.
func (r *redactor) push(piece string) string {
	if len(r.secrets) == 0 {
		return piece
	}
	text := r.held + piece
	// What begins before here has ended by now, however long it is.
	sure := max(0, len(text)-len(r.secrets[0])+1)
	out, rest := r.until(text, sure)
	r.held = rest
	return out
}

// flush returns what is left at the end of the text.
func (r *redactor) flush() string {
	out, _ := r.until(r.held, len(r.held))
	r.held = ""
	return out
}

// until redacts what begins before a place, and returns what comes after it as it
// is. Of two secrets that begin together the longer counts.
func (r *redactor) until(text string, sure int) (out, rest string) {
	var b strings.Builder
	for at := 0; ; {
		first, secret := -1, ""
		for _, s := range r.secrets {
			if i := strings.Index(text[at:], s); i >= 0 && (first < 0 || at+i < first) {
				first, secret = at+i, s
			}
		}
		if first < 0 || first >= sure {
			sure = max(at, sure)
			b.WriteString(text[at:sure])
			return b.String(), text[sure:]
		}
		b.WriteString(text[at:first])
		b.WriteString("[redacted]")
		at = first + len(secret)
	}
}
