package llm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

var (
	errSilent  = errors.New("silent")
	errTooMuch = errors.New("too much")
)

// A reason is what a person reads; it is found by what it wraps.
type reason struct {
	text string
	is   error
}

func (r *reason) Error() string        { return r.text }
func (r *reason) Is(target error) bool { return target == r.is }

// patience bounds how long comments alone count as an answer, in idle limits.
// Gateways send one every few seconds while a model waits for its turn, which
// may take minutes; one that is stuck sends them for ever.
const patience = 3

// watched is a transport that ends a request which falls silent, and an answer
// that grows without end.
type watched struct {
	base http.RoundTripper
	idle time.Duration
}

func (w *watched) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	silent := &reason{fmt.Sprintf("nothing came for %v", w.idle), errSilent}
	timer := time.AfterFunc(w.idle, func() { cancel(silent) })
	resp, err := w.base.RoundTrip(r.WithContext(ctx))
	if err != nil {
		timer.Stop()
		err = why(ctx, err)
		cancel(nil)
		return nil, err
	}
	timer.Stop()
	resp.Body = &watchedBody{body: resp.Body, ctx: ctx, cancel: cancel, timer: timer, idle: w.idle, left: MaxStream}
	return resp, nil
}

func (w *watched) CloseIdleConnections() {
	if c, ok := w.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// why prefers our own reason for a cancelled request to the transport's error.
func why(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errSilent) {
		return cause
	}
	return err
}

type watchedBody struct {
	body   io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	idle   time.Duration
	left   int64
	lines  lines
	waited time.Duration // for more than comments
}

// The clock runs only while somebody waits for bytes, so a slow reader is no
// silent server.
func (b *watchedBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.idle)
	start := time.Now()
	n, err := b.body.Read(p)
	b.timer.Stop()
	b.waited += time.Since(start)
	switch {
	case b.lines.say(p[:n]):
		b.waited = 0
	case b.waited > patience*b.idle && err == nil:
		return 0, &reason{fmt.Sprintf("nothing but signs of life came for %v", patience*b.idle), errSilent}
	}
	b.left -= int64(n)
	if b.left < 0 {
		return 0, &reason{fmt.Sprintf("the answer is longer than %d MiB", MaxStream>>20), errTooMuch}
	}
	if err != nil && err != io.EOF {
		err = why(b.ctx, err)
	}
	return n, err
}

// lines follows the lines of a stream of events, however it is cut.
type lines struct{ begun, comment bool }

// say reports whether something in p is neither white space nor a comment, which
// is a line that begins with a colon.
func (l *lines) say(p []byte) bool {
	says := false
	for len(p) > 0 {
		if !l.begun {
			l.begun, l.comment = true, p[0] == ':'
		}
		line, rest, ended := bytes.Cut(p, []byte("\n"))
		says = says || !l.comment && len(bytes.TrimSpace(line)) > 0
		l.begun, p = !ended, rest
	}
	return says
}

func (b *watchedBody) Close() error {
	b.timer.Stop()
	b.cancel(nil)
	return b.body.Close()
}
