package llm

import (
	"net/http"
	"regexp"
	"strings"
	"sync"
)

const redacted = "[redacted]"

// keys matches what the known providers' keys look like.
var keys = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(sk-[A-Za-z0-9_*-]{8,}|AIza[A-Za-z0-9_-]{20,}|gsk_[A-Za-z0-9]{16,}|xai-[A-Za-z0-9]{16,}|(?i:bearer)\s+[A-Za-z0-9._~+/=-]{8,})`)
})

// Redact returns s without the endpoint's key, the secrets in its headers, and
// whatever looks like a provider's key.
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
		if !secretHeader(name) {
			continue
		}
		for _, v := range values {
			add(v)
			if _, token, ok := strings.Cut(v, " "); ok { // "Bearer …"
				add(token)
			}
		}
	}
	return out
}

func secretHeader(name string) bool {
	name = strings.ToLower(http.CanonicalHeaderKey(name))
	for _, w := range []string{"auth", "key", "token", "secret", "cookie"} {
		if strings.Contains(name, w) {
			return true
		}
	}
	return false
}
