package llm

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// The limits of one answer. They bound memory and time, and are far above what
// any model writes.
const (
	MaxStream = 256 << 20 // bytes on the wire
	MaxAnswer = 32 << 20  // bytes of text, reasoning and arguments together
	MaxFrame  = 16 << 20  // bytes of one event of a stream
)

// DefaultIdle is how long an endpoint may be silent: before the first byte of
// its answer and between any two. A local server reads a long prompt in that
// time.
const DefaultIdle = 5 * time.Minute

// An Endpoint is where and how a provider is reached. Its fields are set up once
// and then only read; its methods may be used by several goroutines.
type Endpoint struct {
	Name    string // to speak of in errors, "openai" say
	BaseURL string // with the version (…/v1) where the family does not add it; a query in it is kept
	Key     string // secret; empty is fine where the server asks for none
	// Header is added to every request, over what the family sets itself.
	Header http.Header
	Idle   time.Duration // 0 means DefaultIdle
	// Retries bounds how often a failed request is repeated: 0 means
	// DefaultRetries, negative never.
	Retries int
	// Transport, when not nil, replaces the usual one, which takes proxies from
	// HTTPS_PROXY, HTTP_PROXY and NO_PROXY.
	Transport http.RoundTripper

	once   sync.Once
	client *http.Client
	told   sync.Map // what was warned of already
}

// First reports whether what is asked for the first time, so that a person is
// warned of one thing once.
func (e *Endpoint) First(what string) bool {
	_, told := e.told.LoadOrStore(what, true)
	return !told
}

// Client returns the HTTP client of the endpoint, for a family whose requests
// a library makes. It ends a request that falls silent or grows beyond
// MaxStream, and follows no redirect: a key must not travel to another host.
func (e *Endpoint) Client() *http.Client {
	e.once.Do(func() {
		base := e.Transport
		if base == nil {
			base = &http.Transport{
				Proxy:               http.ProxyFromEnvironment,
				DialContext:         (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
				TLSHandshakeTimeout: 15 * time.Second,
				IdleConnTimeout:     90 * time.Second,
				MaxIdleConnsPerHost: 4,
				ForceAttemptHTTP2:   true,
				OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
					if resp.StatusCode == http.StatusProxyAuthRequired {
						return e.unknownToProxy()
					}
					return nil
				},
			}
		}
		idle := e.Idle
		if idle == 0 {
			idle = DefaultIdle
		}
		e.client = &http.Client{
			Transport:     &watched{base: base, idle: idle},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	})
	return e.client
}

// Close closes the connections that are kept for later requests.
func (e *Endpoint) Close() { e.Client().CloseIdleConnections() }

// URL returns the address of path under the base URL. A query in path is added
// to the base URL's own.
func (e *Endpoint) URL(path string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(e.BaseURL))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", &Error{Kind: ErrNotFound, Provider: e.Name,
			Message: fmt.Sprintf("the base URL %q is not an http or https address", e.Redact(e.BaseURL)),
			Advice:  "give it as https://host/v1"}
	}
	path, query, _ := strings.Cut(path, "?")
	u.Path = strings.TrimRight(u.Path, "/") + path
	u.RawQuery = strings.Trim(u.RawQuery+"&"+query, "&")
	return u.String(), nil
}

// Do sends body, or a GET when it is nil, and returns an answer of status 2xx
// whose body the caller closes. Every error is an *Error.
func (e *Endpoint) Do(ctx context.Context, path string, body []byte, header http.Header) (*http.Response, error) {
	address, err := e.URL(path)
	if err != nil {
		return nil, err
	}
	method, reader := http.MethodGet, io.Reader(nil)
	if body != nil {
		method, reader = http.MethodPost, bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, reader)
	if err != nil {
		return nil, e.Failure(ctx, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", "capstan")
	for _, h := range []http.Header{header, e.Header} {
		for k, v := range h {
			req.Header[http.CanonicalHeaderKey(k)] = v
		}
	}
	resp, err := e.Client().Do(req)
	if err != nil {
		return nil, e.Failure(ctx, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what came is enough
		return nil, e.Refusal(resp.StatusCode, resp.Header, text)
	}
	return resp, nil
}

// Failure says what an error of the transport, or of reading its answer, means.
// ctx is the caller's.
func (e *Endpoint) Failure(ctx context.Context, err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	out := &Error{Kind: ErrNetwork, Provider: e.Name, Message: e.Redact(plain(err).Error()), Err: err}
	var (
		record    tls.RecordHeaderError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		verify    *tls.CertificateVerificationError
		dns       *net.DNSError
		ours      *reason
	)
	switch {
	case ctx.Err() != nil:
		out.Kind, out.Message, out.Err = ErrCancelled, "", context.Cause(ctx)
	case errors.As(err, &ours) && ours.is == errTooMuch:
		out.Kind, out.What, out.Message, out.Advice = ErrProtocol, endless, ours.text, "the server does not stop; lower the limit of tokens or use another model"
	case ours != nil:
		out.What, out.Message, out.Advice = fellSilent, ours.text, "the server may be overloaded or stuck; the idle limit can be raised for this provider"
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		out.Kind, out.What = ErrNotFound, ErrNetwork.say() // trying again does not help
		out.Message, out.Advice = "the server does not speak TLS at this address", "use http:// for it, or another port"
	case errors.As(err, &authority), errors.As(err, &host), errors.As(err, &invalid), errors.As(err, &verify):
		out.Kind = ErrCertificate
	case errors.As(err, &dns) && dns.IsNotFound:
		out.Kind = ErrNotFound
		out.Advice = "check the host name in the base URL"
	case unreached(err):
	default:
		out.What, out.Advice = brokeOff, tryAgain
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			out.Message = "it was closed in the middle of the answer"
			if asking(err) {
				out.Message = "it was closed without an answer"
			}
		}
	}
	return out
}

// asking reports whether an error came before there was an answer.
func asking(err error) bool {
	var u *url.Error
	return errors.As(err, &u)
}

// unreached reports whether an error of the network came before there was a
// connection.
func unreached(err error) bool {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case !asking(err):
		return false
	case errors.As(err, &dns):
		return true
	case errors.As(err, &op):
		return op.Op != "read" && op.Op != "write" // dial, proxyconnect
	}
	var timer interface{ Timeout() bool }
	return errors.As(plain(err), &timer) && timer.Timeout() // of the TLS handshake
}

// plain is err without the address of the request, which may hold a key.
func plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// ProtocolError says that an answer broke the rules of its API.
func (e *Endpoint) ProtocolError(format string, a ...any) *Error {
	for i := range a {
		a[i] = typeless(a[i])
	}
	return &Error{Kind: ErrProtocol, Provider: e.Name, Message: e.clean(fmt.Sprintf(format, a...))}
}

// typeless says of a value of the wrong type what and where it is, without the
// type that a program wanted it to be.
func typeless(v any) any {
	err, _ := v.(error)
	e, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case !ok:
		return v
	case e.Field == "":
		return "the " + e.Value + " should be something else"
	}
	return fmt.Sprintf("in %s, the %s should be something else", e.Field, e.Value)
}
