package llm

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"strings"
)

// Answer is what every family's Stream does once it has encoded its request:
// it warns of the names that had to change, once, and makes the request with
// once, again while that can help.
func (e *Endpoint) Answer(ctx context.Context, names *Names, once func() iter.Seq2[Event, error]) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for _, w := range names.Warnings() {
			if e.First(w) && !yield(Warning{Text: w}, nil) {
				return
			}
		}
		for event, err := range e.Repeat(ctx, once) {
			if !yield(event, err) {
				return
			}
		}
	}
}

// An Emitter hands the events of one answer to a loop that may end at any of
// them. After the end of the loop, or an error, it hands out nothing.
type Emitter struct {
	yield   func(Event, error) bool
	stopped bool
	ended   bool
}

// NewEmitter returns an Emitter for a loop's yield.
func NewEmitter(yield func(Event, error) bool) *Emitter { return &Emitter{yield: yield} }

// Emit passes an event on and reports whether more are wanted.
func (m *Emitter) Emit(e Event) bool {
	if _, ok := e.(Done); ok && !m.stopped {
		m.ended = true
	}
	if !m.stopped && !m.yield(e, nil) {
		m.stopped = true
	}
	return !m.stopped
}

// Fail ends the answer with an error.
func (m *Emitter) Fail(err error) {
	if !m.stopped {
		m.stopped = true
		m.yield(nil, err)
	}
}

// Stopped reports whether nothing more is wanted.
func (m *Emitter) Stopped() bool { return m.stopped }

// Ended reports whether Done was handed out.
func (m *Emitter) Ended() bool { return m.ended }

// Streamed looks at how an answer begins: servers send errors as JSON under the
// type of a stream, streams under that of JSON, and proxies pages and lines of
// text. What begins with no field of a server-sent event is none.
func Streamed(body *bufio.Reader) bool {
	for {
		c, err := body.ReadByte()
		switch {
		case err != nil:
			return true // which will find the same error
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			continue
		}
		_ = body.UnreadByte()      // cannot fail after ReadByte
		if c == ':' || c == 0xEF { // a comment, the mark of UTF-8
			return true
		}
		start, _ := body.Peek(len("event:")) // what there is of it
		for _, field := range []string{"data:", "event:", "retry:", "id:"} {
			if n := min(len(start), len(field)); string(start[:n]) == field[:n] { // or cut off within it
				return true
			}
		}
		return false
	}
}

// MediaType names the type of an answer, for an error.
func MediaType(resp *http.Response) string {
	t, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return "something else"
	}
	return t
}

// Whole reads an answer that is not streamed, though that was asked for: JSON
// of at most limit bytes. A page of HTML is an error that says so.
func (e *Endpoint) Whole(ctx context.Context, body io.Reader, kind string, limit int) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(body, int64(limit)+1))
	switch {
	case err != nil:
		return nil, e.Failure(ctx, err)
	case len(raw) > limit:
		return nil, e.TooLong(limit)
	case !json.Valid(raw):
		text := e.Refusal(http.StatusOK, nil, raw) // reads pages of HTML
		return nil, e.ProtocolError("instead of an answer came %s: %s", kind, text.Message)
	}
	return raw, nil
}

// TooLong is the error of an answer of more than limit bytes.
func (e *Endpoint) TooLong(limit int) *Error {
	err := e.ProtocolError("the answer is longer than %d MiB", limit>>20)
	err.What, err.Advice = endless, "the model repeats itself, most likely: ask for less at a time, lower the server's limit of output tokens, or use another model"
	return err
}

// Excerpt is the beginning of what a server sent, quoted and without secrets,
// for an error.
func (e *Endpoint) Excerpt(raw []byte) string {
	const most, margin = 200, 8 << 10 // a secret that is cut must still be known
	s := e.Redact(string(raw[:min(len(raw), margin)]))
	cut := len(s) > most
	s = strings.TrimSpace(strings.ToValidUTF8(s[:min(len(s), most)], "\uFFFD"))
	if cut {
		s += "…"
	}
	return fmt.Sprintf("%q", s)
}
