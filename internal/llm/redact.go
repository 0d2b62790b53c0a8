package llm

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

const redacted = "[redacted]"

// keys matches what the known providers' keys look like.
var keys = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(sk-[A-Za-z0-9_*-]{8,}|AIza[A-Za-z0-9_-]{20,}|gsk_[A-Za-z0-9]{16,}|xai-[A-Za-z0-9]{16,}|(?i:bearer)\s+[A-Za-z0-9._~+/=-]{8,})`)
})

// Redact returns s without the endpoint's key, the secrets in its headers and in
// its base URL, and whatever looks like a provider's key.
func (e *Endpoint) Redact(s string) string {
	for _, secret := range e.secrets() {
		s = strings.ReplaceAll(s, secret, redacted)
	}
	return keys().ReplaceAllString(s, redacted)
}

// secrets are the values that must not show. Very short ones are left: they are
// no keys, and replacing them would make texts unreadable.
func (e *Endpoint) secrets() []string {
	var out []string
	add := func(v string) {
		if len(v) >= 6 {
			out = append(out, v)
		}
	}
	add(e.Key)
	for name, values := range e.Header {
		if !secretName(name) {
			continue
		}
		for _, v := range values {
			add(v)
			if _, token, ok := strings.Cut(v, " "); ok { // "Bearer …"
				add(token)
			}
		}
	}
	for _, v := range URLSecrets(e.BaseURL) {
		add(v)
	}
	return out
}

// URLSecrets returns what is secret in an address: the password, or the user's
// name where a token stands in its place without one, and those values of the
// query whose names say so; each as it is written, decoded, and escaped as in
// other addresses. An address that cannot be parsed is searched all the same,
// because it is what an error shows.
func URLSecrets(address string) []string {
	var out []string
	add := func(written string, decode func(string) (string, error)) {
		plain, err := decode(written)
		if err != nil {
			plain = written
		}
		for _, v := range []string{written, plain, url.QueryEscape(plain), url.PathEscape(plain)} {
			if v != "" && !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	address, _, _ = strings.Cut(address, "#")
	address, query, _ := strings.Cut(address, "?")
	if _, rest, ok := strings.Cut(address, "//"); ok {
		address = rest
	}
	if at := strings.LastIndexByte(address, '@'); at >= 0 {
		user, password, _ := strings.Cut(address[:at], ":")
		if password == "" {
			password = user
		}
		add(password, url.PathUnescape)
	}
	for _, pair := range strings.Split(query, "&") {
		if name, value, _ := strings.Cut(pair, "="); secretName(name) {
			add(value, url.QueryUnescape)
		}
	}
	return out
}

// secretName reports whether a header or a member of a query of that name holds
// a secret.
func secretName(name string) bool {
	name = strings.ToLower(name)
	for _, w := range []string{"auth", "key", "token", "secret", "cookie", "password", "sig"} {
		if strings.Contains(name, w) {
			return true
		}
	}
	return false
}
