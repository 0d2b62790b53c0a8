package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// explain makes an error of the SDK one that says what happened: how the
// process ended and what it wrote to stderr, or how HTTP refused.
func (c *conn) explain(ctx context.Context, err error) error {
	var login loginError
	var fault *httpFault
	var said *rpcError
	if cause := context.Cause(ctx); cause != nil {
		err = cause
		if errors.Is(cause, context.Canceled) {
			return cause
		}
	} else if errors.As(err, &login) {
		return login
	} else if errors.As(err, &fault) {
		return fault
	} else if errors.As(err, &said) {
		return c.scrub(said)
	}
	// The SDK puts the name under which it knows our method in front.
	for _, verb := range []string{"calling", "sending"} {
		if inner := errors.Unwrap(err); inner != nil && strings.HasPrefix(err.Error(), verb+` "`+prefix) {
			err = inner
		}
	}
	var rpc *jsonrpc.Error
	var web *url.Error
	switch {
	case c.child == nil && (strings.Contains(err.Error(), "request terminated without response") || strings.Contains(err.Error(), io.ErrUnexpectedEOF.Error())):
		err, rpc = errCut, nil
	case errors.As(err, &rpc) && rpc.Message != rejected:
		err = fmt.Errorf("%w", &rpcError{rpc.Code, excerpt(rpc.Message, 2000), rpc})
	case errors.As(err, &web):
		err, rpc = web.Err, nil
	case gone(err):
		rpc = nil
		if c.child != nil {
			err = errors.New(c.howItEnded())
		} else if errors.Is(err, io.EOF) {
			err = errCut
		}
		c.lost.Store(true)
		err = &lostError{err}
	}
	if said := c.stderr.text(); said != "" && rpc == nil {
		err = fmt.Errorf("%w; its stderr ends with:\n%s", err, said)
	}
	return c.scrub(err)
}

// scrub takes what may be a key in the server's address out of an error.
func (c *conn) scrub(err error) error {
	if shown := redactURL(c.cfg.URL); c.cfg.URL != "" && shown != c.cfg.URL && strings.Contains(err.Error(), c.cfg.URL) {
		return &scrubbed{strings.ReplaceAll(err.Error(), c.cfg.URL, shown), err}
	}
	return err
}

// scrubbed is an error with another text.
type scrubbed struct {
	text string
	err  error
}

func (e *scrubbed) Error() string { return e.text }
func (e *scrubbed) Unwrap() error { return e.err }

// rejected is the message of the SDK's own error for a request that did not
// leave, which looks like one of the server's.
const rejected = "rejected by transport"

// rpcError is what a server answered instead of a result. The code is 0 when the
// SDK took it for one of its own.
type rpcError struct {
	code    int64
	message string
	wire    *jsonrpc.Error // may be nil
}

func (e *rpcError) Error() string {
	if e.code == 0 {
		return e.message
	}
	return fmt.Sprintf("%s (code %d)", e.message, e.code)
}

func (e *rpcError) Unwrap() error {
	if e.wire == nil {
		return nil
	}
	return e.wire
}

// errCut is an answer of a remote server that ended before its end.
var errCut = errors.New("the connection broke before the answer was there")

// A lostError is a connection that ended while something was asked.
type lostError struct{ error }

func (e *lostError) Unwrap() error { return e.error }

// gone says whether an error means that the connection is no more.
func gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, sdk.ErrConnectionClosed) ||
		errors.Is(err, sdk.ErrSessionMissing) || strings.Contains(err.Error(), "file already closed") || strings.Contains(err.Error(), "broken pipe")
}

// howItEnded says how the process ended. It may be about to.
func (c *conn) howItEnded() string {
	select {
	case <-c.child.Done():
	case <-time.After(2 * time.Second):
		return "it closed its stdout"
	}
	switch res, _ := c.child.End(); {
	case res.Signal != "":
		return "it was ended by " + res.Signal
	default:
		return fmt.Sprintf("it ended with exit status %d", res.ExitCode)
	}
}

// A tail keeps the end of what a server writes to stderr. It keeps more than it
// shows: what is kept may begin inside of a secret, the rest of which nobody would
// know for one.
type tail struct {
	redact func(string) string

	mu  sync.Mutex
	buf []byte
	cut bool // something was written before buf
}

func (t *tail) write(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if len(t.buf) > 4*stderrTail {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-2*stderrTail:]...)
		t.cut = true
	}
}

// text is the end without secrets, whole lines as far as it goes. Of a text that
// was cut the first stderrTail bytes are not shown, however much shorter it is
// without its secrets: the rest of a secret can only be there.
func (t *tail) text() string {
	t.mu.Lock()
	s, wasCut := string(t.buf), t.cut
	t.mu.Unlock()
	s = t.redact(s)
	from := max(0, len(s)-stderrTail)
	if wasCut {
		from = min(len(s), max(from, stderrTail))
	}
	s = clean(s[from:])
	if _, rest, ok := strings.Cut(s, "\n"); ok && from > 0 {
		s = rest
	}
	if s = strings.TrimSpace(s); s == "" && wasCut {
		return "…"
	}
	return s
}
