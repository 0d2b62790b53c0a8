package llm

import (
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
}

// The clock runs only while somebody waits for bytes, so a slow reader is no
// silent server.
func (b *watchedBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.idle)
	n, err := b.body.Read(p)
	b.timer.Stop()
	b.left -= int64(n)
	if b.left < 0 {
		return 0, &reason{fmt.Sprintf("the answer is longer than %d MiB", MaxStream>>20), errTooMuch}
	}
	if err != nil && err != io.EOF {
		err = why(b.ctx, err)
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.timer.Stop()
	b.cancel(nil)
	return b.body.Close()
}
