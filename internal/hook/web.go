package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// variable is one in a header: $NAME or ${NAME}.
var variable = regexp.MustCompile(`\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})`)

func varName(ref []string) string { return ref[1] + ref[2] }

// headerName reports whether a header may be set by a setting.
func headerName(s string) bool {
	switch http.CanonicalHeaderKey(s) {
	case "", "Host", "Content-Length", "Transfer-Encoding", "Connection":
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

// web is what asks HTTP hooks.
type web struct{ client *http.Client }

// errElsewhere refuses a redirect that would take what a hook is told to where
// nobody said it may go.
var errElsewhere = errors.New("it redirects to another host, which is not followed: write that address into the settings")

func newWeb() *web {
	return &web{&http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10, MaxIdleConnsPerHost: maxRunning, IdleConnTimeout: 30 * time.Second},
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			first := via[0].URL
			switch {
			case next.URL.Scheme != first.Scheme || next.URL.Host != first.Host:
				return errElsewhere
			case next.Method != http.MethodPost:
				return errors.New("it redirects in a way that drops the request (want 307 or 308)")
			case len(via) > 3:
				return errors.New("it redirects more than three times")
			}
			return nil
		},
	}}
}

func (w *web) close() { w.client.CloseIdleConnections() }

// post asks an HTTP hook: the payload is the body, and the body of a 2xx answer
// is what a command would have printed. Other statuses block nothing.
func (d *Dispatcher) post(ctx context.Context, h *handler, in []byte) reply {
	ctx, stop := context.WithTimeoutCause(ctx, h.timeout, fmt.Errorf("it did not answer within %v", h.timeout))
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(in))
	if err != nil {
		return reply{err: fmt.Errorf("asking it: %w", err)}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "capstan-hook")
	for name, value := range h.headers {
		value = d.expand(h, value)
		if strings.ContainsAny(value, "\r\n\x00") {
			return reply{err: fmt.Errorf("the header %s has a line break in the value of a variable", name)}
		}
		req.Header.Set(name, value)
	}
	resp, err := d.web.client.Do(req)
	if err != nil {
		return reply{err: d.plain(ctx, err)}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxOutput+1))
	switch {
	case err != nil:
		return reply{err: d.plain(ctx, err)}
	case len(body) > maxOutput:
		return reply{err: fmt.Errorf("its answer has more than %d bytes", maxOutput)}
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return reply{err: fmt.Errorf("it answered with status %d: %s", resp.StatusCode, short(string(body)))}
	}
	return understand(h.event, strings.ToValidUTF8(string(body), "\ufffd"))
}

// plain is an error without the address, which may hold a secret, and with the
// reason for an end.
func (d *Dispatcher) plain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return fmt.Errorf("asking it: %w", err)
}

// expand puts variables into a header: those that the hook's list allows; others
// are empty.
func (d *Dispatcher) expand(h *handler, s string) string {
	return variable.ReplaceAllStringFunc(s, func(ref string) string {
		name := varName(variable.FindStringSubmatch(ref))
		if d.opt.Env == nil || !slices.Contains(h.allowed, name) {
			return ""
		}
		return d.opt.Env(name)
	})
}
