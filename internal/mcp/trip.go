package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A trip is what the transport saw of one request: whether it left, and how HTTP
// refused it. The SDK's errors do not say either. It tells its own failures apart
// by JSON-RPC codes alone, and a server may answer with the same codes, so what
// looks like a connection that was over may be an answer; and a session that one
// request finds forgotten fails all that are open, which may have been run.
type trip struct {
	mu    sync.Mutex
	left  bool
	fault *httpFault // of the last attempt
}

type tripKey struct{}

// withTrip gives a request's context a trip of its own, so that what happens to
// one request is not told of another.
func withTrip(ctx context.Context) (context.Context, *trip) {
	t := &trip{}
	return context.WithValue(ctx, tripKey{}, t), t
}

// leaves notes that the request of ctx is being sent.
func leaves(ctx context.Context) {
	if t, ok := ctx.Value(tripKey{}).(*trip); ok {
		t.mu.Lock()
		t.left, t.fault = true, nil
		t.mu.Unlock()
	}
}

// refused notes that HTTP refused the request of ctx.
func refused(ctx context.Context, f *httpFault) {
	if t, ok := ctx.Value(tripKey{}).(*trip); ok {
		t.mu.Lock()
		t.fault = f
		t.mu.Unlock()
	}
}

// refusal is how HTTP refused the request; nil when it did not.
func (t *trip) refusal() *httpFault {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fault
}

// judge says of the SDK's error for a request what it means: an [*unsentError],
// a refusal by HTTP, an answer of the server, or what it was.
func (t *trip) judge(err error) error {
	if err == nil {
		return nil
	}
	t.mu.Lock()
	left, fault := t.left, t.fault
	t.mu.Unlock()
	over, forgotten := errors.Is(err, sdk.ErrConnectionClosed), errors.Is(err, sdk.ErrSessionMissing)
	switch {
	case (over || forgotten) && !left, forgotten && fault != nil && fault.status == http.StatusNotFound:
		return &unsentError{err}
	case fault != nil:
		return fmt.Errorf("%w: %w", fault, err)
	case over:
		_, said, _ := strings.Cut(err.Error(), `": `) // after the method
		return &rpcError{message: excerpt(said, 2000)}
	}
	return err
}

// An unsentError is of a request that surely was not run: the connection was over
// before it left, or the server answered that it does not know the session.
type unsentError struct{ error }

func (e *unsentError) Unwrap() error { return e.error }

// unsent says whether a failed request surely did not reach the server's tools.
func unsent(err error) bool {
	var u *unsentError
	return errors.As(err, &u)
}
