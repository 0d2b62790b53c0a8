package llm

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Kind says what went wrong with a request, in the words by which a caller
// decides what to do.
type Kind string

// The kinds of an Error.
const (
	ErrAuth        Kind = "auth"             // no key, a wrong one, or one that may not do this
	ErrQuota       Kind = "quota"            // the account is spent; waiting does not help
	ErrRateLimit   Kind = "rate_limit"       // too much at once; waiting helps
	ErrOverloaded  Kind = "overloaded"       // the provider fails or has no room; waiting helps
	ErrContext     Kind = "context_too_long" // the history has to be made shorter
	ErrTooLarge    Kind = "too_large"        // the request has too many bytes
	ErrNotFound    Kind = "not_found"        // no such model, or no API at this address
	ErrBadRequest  Kind = "bad_request"      // the API refuses what we sent
	ErrNetwork     Kind = "network"          // not reached, or the connection broke or fell silent
	ErrCertificate Kind = "certificate"      // reached, but TLS does not trust it
	ErrProtocol    Kind = "protocol"         // the answer is not what the API promises
	ErrCancelled   Kind = "cancelled"        // by the caller's context
)

// An Error is why a request failed. Its text says what to do, and never holds
// a key.
type Error struct {
	Kind     Kind
	Provider string // the name of the endpoint, to speak of
	Status   int    // of HTTP; 0 when there was none
	Code     string // the provider's own word for it
	Message  string // the provider's own text, cut to a few lines
	// RetryAfter is how long the provider asks to wait; 0 when it does not say.
	RetryAfter time.Duration
	What       string // what went wrong, where the kind does not say it well enough; the kind's own words when empty
	Advice     string // what to do; the kind's own when empty
	Err        error
}

// Error says who failed, how, and what to do.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Provider)
	b.WriteString(": ")
	b.WriteString(cmp.Or(e.What, e.Kind.say()))
	switch {
	case e.Status != 0 && e.Code != "":
		fmt.Fprintf(&b, " (HTTP %d, %s)", e.Status, e.Code)
	case e.Status != 0:
		fmt.Fprintf(&b, " (HTTP %d)", e.Status)
	case e.Code != "":
		fmt.Fprintf(&b, " (%s)", e.Code)
	}
	if e.Message != "" {
		b.WriteString(": ")
		b.WriteString(e.Message)
	}
	if advice := cmp.Or(e.Advice, e.Kind.advise()); advice != "" {
		b.WriteString("\n")
		b.WriteString(advice)
	}
	return b.String()
}

// Unwrap returns the cause, if there is one.
func (e *Error) Unwrap() error { return e.Err }

// Temporary reports whether the same request may succeed a little later.
func (e *Error) Temporary() bool {
	return e.Kind == ErrRateLimit || e.Kind == ErrOverloaded || e.Kind == ErrNetwork
}

// What of an error of kind network, when the endpoint was reached.
const (
	brokeOff   = "the connection broke off"
	fellSilent = "the endpoint fell silent"
)

// endless is the What of an error of kind protocol, when the answer is too long.
const endless = "the answer does not end"

// tryAgain is the advice for both.
const tryAgain = "try again; when it happens often, look at the server's log and at proxies in between"

func (k Kind) say() string {
	switch k {
	case ErrAuth:
		return "the key was not accepted"
	case ErrQuota:
		return "the account's quota is spent"
	case ErrRateLimit:
		return "rate limit reached"
	case ErrOverloaded:
		return "the provider is overloaded or failing"
	case ErrContext:
		return "the conversation is longer than the model's context"
	case ErrTooLarge:
		return "the request is too large"
	case ErrNotFound:
		return "the model or the address does not exist"
	case ErrBadRequest:
		return "the request was refused"
	case ErrNetwork:
		return "the endpoint could not be reached"
	case ErrCertificate:
		return "the endpoint's certificate is not trusted"
	case ErrProtocol:
		return "the answer cannot be understood"
	case ErrCancelled:
		return "cancelled"
	}
	return string(k)
}

func (k Kind) advise() string {
	switch k {
	case ErrAuth:
		return "check the API key, and that it may use this model"
	case ErrQuota:
		return "add credit or raise the limit with the provider, or use another model; waiting does not help"
	case ErrRateLimit:
		return "wait, or send fewer requests at a time"
	case ErrOverloaded:
		return "try again later, or use another model"
	case ErrContext:
		return "start a new session, or give the model less to read; for a local server, raise its context size"
	case ErrTooLarge:
		return "send smaller images or files, or start a new session"
	case ErrNotFound:
		return "check the model's name and the base URL (it usually ends in /v1)"
	case ErrNetwork:
		return "check the base URL, that the server runs, and the proxy settings"
	case ErrCertificate:
		return "check the base URL and the clock; a private authority has to be in the system's trust store (or in SSL_CERT_FILE)"
	case ErrProtocol:
		return "check that the base URL is an API of this family, and not a web page or a proxy's"
	}
	return ""
}
