package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	// listenLimit is how long a server may take to open the stream on which it
	// sends what nobody asked for. After that it does without (BUG-MC-18).
	listenLimit = 10 * time.Second
	// goodbyeLimit bounds the DELETE that ends a session.
	goodbyeLimit = time.Second
)

// web is the HTTP side of one connection: it adds the configured headers, talks
// to the configured host and no other, bounds what it reads, and notes how each
// request was refused, for the SDK's errors say little.
type web struct {
	server  string
	base    *url.URL
	headers map[string]string
	next    http.RoundTripper
	done    context.Context // ends with the connection
	listen  time.Duration   // listenLimit
	// sign adds a saved login to a request; nil when there can be none.
	sign func(life context.Context, req *http.Request) error
}

// httpFault is an answer that was a refusal.
type httpFault struct {
	status int
	text   string // what to tell
}

func (f *httpFault) Error() string { return f.text }

func newWeb(done context.Context, c *Config, listen time.Duration) (*web, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("url: %q is no http or https address", excerpt(redactURL(c.URL), 200))
	}
	for name, value := range c.Headers {
		if strings.ContainsAny(name, " \t\r\n:\x00") || name == "" || strings.ContainsAny(value, "\r\n\x00") {
			return nil, fmt.Errorf("headers: %q cannot be a header", excerpt(name, 100))
		}
	}
	next := http.DefaultTransport.(*http.Transport).Clone()
	return &web{server: c.Name, base: u, headers: c.Headers, next: next, done: done, listen: listen}, nil
}

// client is the HTTP client for the SDK's transports.
func (w *web) client() *http.Client {
	return &http.Client{Transport: w, CheckRedirect: w.redirect}
}

// redirect follows within the host. Elsewhere a server's keys and the model's
// data would go where the user never said.
func (w *web) redirect(req *http.Request, via []*http.Request) error {
	if len(via) > 5 {
		return errors.New("it redirects more than 5 times")
	}
	if err := w.own(req.URL); err != nil {
		return fmt.Errorf("it redirects to %s, %w", excerpt(redactURL(req.URL.String()), 200), err)
	}
	if via[0].Method != req.Method {
		return fmt.Errorf("it redirects to %s in a way that loses the request: set url to that", excerpt(redactURL(req.URL.String()), 200))
	}
	return nil
}

// own says whether an address is of the configured host. An upgrade to https
// there is fine.
func (w *web) own(u *url.URL) error {
	if strings.EqualFold(u.Hostname(), w.base.Hostname()) {
		if u.Scheme == w.base.Scheme && port(u) == port(w.base) {
			return nil
		}
		if w.base.Scheme == "http" && u.Scheme == "https" && w.base.Port() == "" && u.Port() == "" {
			return nil
		}
	}
	return errors.New("which is another host: it is not followed; if it is right, set url to it")
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// RoundTrip sends one request.
func (w *web) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := w.own(req.URL); err != nil {
		return nil, fmt.Errorf("it wants requests sent to %s, %w", excerpt(redactURL(req.URL.String()), 200), err)
	}
	ctx, cancel := context.WithCancel(req.Context())
	req = req.Clone(ctx)
	for name, value := range w.headers {
		if strings.EqualFold(name, "Host") {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
	if err := rename(req); err != nil {
		cancel()
		return nil, err
	}
	var limit *time.Timer
	listens := req.Method == http.MethodGet && req.Header.Get("Mcp-Protocol-Version") != ""
	switch {
	case req.Method == http.MethodDelete:
		limit = time.AfterFunc(goodbyeLimit, cancel)
	default:
		stop := context.AfterFunc(w.done, cancel)
		cancel = both(cancel, stop)
		if listens {
			limit = time.AfterFunc(w.listen, cancel)
		}
	}
	resp, err := w.send(req)
	if limit != nil && !limit.Stop() && listens && w.done.Err() == nil {
		if err == nil {
			resp.Body.Close()
		}
		cancel()
		return noStream(req), nil
	}
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &body{ReadCloser: resp.Body, done: cancel, left: maxMessage, stream: isStream(resp)}
	w.remember(req, resp)
	return resp, nil
}

// send signs a request and sends it.
func (w *web) send(req *http.Request) (*http.Response, error) {
	if w.sign != nil {
		if err := w.sign(w.done, req); err != nil {
			if req.Body != nil {
				req.Body.Close()
			}
			return nil, err
		}
	}
	if req.Method == http.MethodPost {
		leaves(req.Context())
	}
	return w.next.RoundTrip(req)
}

func both(cancel context.CancelFunc, stop func() bool) context.CancelFunc {
	return func() {
		stop()
		cancel()
	}
}

// noStream stands for a server that does not offer a stream.
func noStream(req *http.Request) *http.Response {
	return &http.Response{StatusCode: http.StatusMethodNotAllowed, Status: "405 Method Not Allowed", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, Request: req}
}

// rename gives a request its real method (see prefix).
func rename(req *http.Request) error {
	if req.Body == nil || req.GetBody == nil || req.Method != http.MethodPost {
		return nil
	}
	r, err := req.GetBody()
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if !bytes.Contains(raw[:min(len(raw), 200)], []byte(`"`+prefix)) {
		return nil
	}
	m, err := jsonrpc.DecodeMessage(raw)
	if err != nil {
		return fmt.Errorf("reading our own message: %w", err)
	}
	if raw, err = jsonrpc.EncodeMessage(outgoing(req.Context(), m)); err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	req.Body.Close()
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }
	if h := req.Header.Get("Mcp-Method"); h != "" {
		req.Header.Set("Mcp-Method", strings.TrimPrefix(h, prefix))
	}
	return nil
}

func isStream(resp *http.Response) bool {
	return strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
}

// body bounds what is read of an answer. A stream has no bound in all: the SDK
// bounds each event.
type body struct {
	io.ReadCloser
	done   context.CancelFunc
	left   int
	stream bool
}

func (b *body) Read(p []byte) (int, error) {
	if b.stream {
		return b.ReadCloser.Read(p)
	}
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func (b *body) Close() error {
	b.done() // first: what is left is not worth waiting for
	return b.ReadCloser.Close()
}

// remember notes what a refusal says with the request that was refused.
func (w *web) remember(req *http.Request, resp *http.Response) {
	if resp.StatusCode < 400 || req.Method == http.MethodDelete || req.Header.Get("Mcp-Protocol-Version") != "" && req.Method == http.MethodGet {
		return // the stream of a GET is optional, a goodbye needs no answer
	}
	text := fmt.Sprintf("it answers HTTP %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	head, _ := io.ReadAll(io.LimitReader(resp.Body, 2000))
	resp.Body = &body{ReadCloser: struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), resp.Body), resp.Body}, done: func() {}, left: maxMessage}
	if said := excerpt(head, 300); said != "" && !strings.HasPrefix(strings.TrimSpace(string(head)), "<") {
		text += ": " + said
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		text += fmt.Sprintf("; log in with `capstan mcp login %s`, or set headers", Word(w.server))
	case http.StatusForbidden:
		text += "; the key or login that it was given may not do this"
	case http.StatusNotFound:
		text += "; check its url"
	}
	refused(req.Context(), &httpFault{resp.StatusCode, text})
}

// redactURL leaves out what may be secret in an address.
func redactURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "(an address that cannot be read)"
	}
	query := ""
	if u.RawQuery != "" {
		query = "?…"
	}
	u.User, u.Fragment, u.RawQuery = nil, "", ""
	return u.String() + query
}
