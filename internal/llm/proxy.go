package llm

import "net/http"

// unknownToProxy is the error of a proxy that wants a user and a password. What
// it says itself is left out: that is no word of the provider's, and may repeat
// what it was sent.
func (e *Endpoint) unknownToProxy() *Error {
	return &Error{Kind: ErrAuth, Provider: e.Name, Status: http.StatusProxyAuthRequired,
		What:   "the proxy, not the provider, wants a user and a password",
		Advice: "check those in HTTP_PROXY and HTTPS_PROXY (http://user:password@host:port, with what is special in them escaped), or name the host in NO_PROXY"}
}
