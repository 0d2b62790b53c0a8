package llm

import (
	"net/url"
	"regexp"
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
	for _, v := range urlSecrets(e.BaseURL) {
		add(v)
		add(url.QueryEscape(v))
		add(url.PathEscape(v))
	}
	return out
}

// urlSecrets are the password of an address and those values of its query whose
// names say that they are secret. An address that cannot be parsed is searched
// all the same, because it is what an error shows.
func urlSecrets(address string) []string {
	var out []string
	address, _, _ = strings.Cut(address, "#")
	address, query, _ := strings.Cut(address, "?")
	if _, rest, ok := strings.Cut(address, "//"); ok {
		address = rest
	}
	if at := strings.LastIndexByte(address, '@'); at >= 0 {
		if _, password, ok := strings.Cut(address[:at], ":"); ok {
			out = append(out, password)
			if plain, err := url.PathUnescape(password); err == nil {
				out = append(out, plain)
			}
		}
	}
	for _, pair := range strings.Split(query, "&") {
		if name, value, _ := strings.Cut(pair, "="); secretName(name) {
			out = append(out, value)
			if plain, err := url.QueryUnescape(value); err == nil {
				out = append(out, plain)
			}
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
