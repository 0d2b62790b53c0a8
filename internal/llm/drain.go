package llm

import (
	"io"
	"net/http"
	"time"
)

// What is read of an answer after its last event.
const (
	maxRest  = 4 << 10 // bytes
	restTime = 50 * time.Millisecond
)

// Drain reads what is left of an answer whose last event has come, so that the
// next request can use its connection: over HTTP/1.1 one that is closed before
// its end takes the connection with it. That is a few bytes, which come with the
// last event. A server that sends more, or does not end the answer, is not
// waited for: closing costs a connection then, as it must.
func Drain(resp *http.Response) {
	b, ok := resp.Body.(*watchedBody)
	if !ok {
		return
	}
	stop := time.AfterFunc(restTime, func() { b.cancel(nil) })
	defer stop.Stop()
	_, _ = io.CopyN(io.Discard, b, maxRest) // whatever is wrong now, the answer is whole
}
