package llm

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"
)

// How failed requests are repeated.
const (
	DefaultRetries = 5
	firstWait      = 500 * time.Millisecond // doubled each time
	longestWait    = 30 * time.Second
	// longestAsked is the longest wait that a provider may ask for. Beyond it
	// a person should decide.
	longestAsked = 2 * time.Minute
	// longestMore is the most that is added to a wait that was asked for.
	longestMore = time.Second
)

// Repeat yields the events of once, which makes one request, and makes it again
// when it fails in a way that waiting mends. It does not once a Call was
// yielded. Errors that are no *Error become one. A stream that ends without
// Done is an error too.
//
// It waits as long as the provider asks to, up to 2 minutes, and a random part
// of up to a tenth or a second more: whoever was told the same must not come
// back at the same moment. Else it waits from half a second on, doubling, up to
// 30 seconds, less a random part of up to a half.
func (e *Endpoint) Repeat(ctx context.Context, once func() iter.Seq2[Event, error]) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for attempt := 1; ; attempt++ {
			again, failure, stopped := e.attempt(ctx, once(), yield)
			if stopped {
				return
			}
			if failure == nil { // Done was yielded
				return
			}
			wait, ok := e.wait(attempt, failure)
			if !again || !ok {
				yield(nil, failure)
				return
			}
			if !yield(Retry{Attempt: attempt + 1, After: wait, Err: failure}, nil) {
				return
			}
			if err := sleep(ctx, wait); err != nil {
				yield(nil, e.Failure(ctx, err))
				return
			}
		}
	}
}

// attempt passes one request's events on. stopped means that the caller wants
// no more; again, that nothing speaks against repeating it.
func (e *Endpoint) attempt(ctx context.Context, events iter.Seq2[Event, error], yield func(Event, error) bool) (again bool, failure *Error, stopped bool) {
	again = true
	for event, err := range events {
		if err != nil {
			return again, e.Failure(ctx, err), false
		}
		if _, ok := event.(Call); ok {
			again = false
		}
		if !yield(event, nil) {
			return false, nil, true
		}
		if _, ok := event.(Done); ok {
			return false, nil, false
		}
	}
	return again, e.Cut(), false
}

// Cut is the error of a stream that ended before its answer did.
func (e *Endpoint) Cut() *Error {
	return &Error{Kind: ErrNetwork, Provider: e.Name, What: brokeOff,
		Message: "the stream ended in the middle of the answer", Advice: tryAgain}
}

// wait is how long to wait before the request after this attempt, if there
// should be one.
func (e *Endpoint) wait(attempt int, failure *Error) (time.Duration, bool) {
	retries := e.Retries
	if retries == 0 {
		retries = DefaultRetries
	}
	if attempt > retries || !failure.Temporary() {
		return 0, false
	}
	if asked := failure.RetryAfter; asked > 0 {
		if asked > longestAsked {
			failure.Advice = fmt.Sprintf("the provider asks to wait %v; try again then, or use another model", asked.Round(time.Second))
			return 0, false
		}
		return asked + rand.N(min(asked/10, longestMore)+1), true
	}
	wait := min(firstWait<<min(attempt-1, 10), longestWait)
	return wait - rand.N(wait/2), true
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
