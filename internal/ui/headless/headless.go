// Package headless shows the runs of an agent to programs and scripts: as the
// text of the answer, as one JSON object, or as a stream of JSON lines in the
// shapes that clients of Claude Code and of qwen-code read (docs/headless.md).
// It reads prompts in the same shapes.
//
// A client that says so is asked, over the same stream, about the calls that need
// an answer (permit.go). It decides nothing itself: which calls run, and which
// have to be asked about, package policy says. Diagnostics and exit codes are the
// command line's.
package headless

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"unicode/utf8"

	"capstan/internal/agent"
)

// Format is how a run is shown.
type Format string

// The formats.
const (
	Text   Format = "text"        // the text of the last answer, at the end
	JSON   Format = "json"        // one object, at the end
	Stream Format = "stream-json" // a line for each thing that happens
)

// ParseFormat reads a format as --output-format spells it.
func ParseFormat(s string) (Format, error) {
	switch f := Format(s); f {
	case Text, JSON, Stream:
		return f, nil
	}
	return "", fmt.Errorf("unknown format %q: want text, json or stream-json", s)
}

// Options say what to write where.
type Options struct {
	Out    io.Writer
	Format Format
	// Partial adds the pieces of an answer as they arrive, in Stream.
	Partial bool
	// Failed is called once, with the first error of Out: nobody reads any
	// more, so the run may as well end.
	Failed func(error)

	Session Session
}

// Session is what the output tells of the session.
type Session struct {
	ID           string
	Dir          string
	Model        string // FAMILY/NAME
	Mode         string // direct, code or both
	ApprovalMode string // as --approval-mode spells it
	Version      string // of Capstan
	Structured   bool   // the answer has to fit a schema
	// Tools returns the names that the model may call directly.
	Tools func() []string
	// Skills returns the names of the skills that it may load.
	Skills func() []string
	// Agents returns the names of the kinds of subagents that it may start.
	Agents func() []string
	// Servers are the configured MCP servers as they are when it begins.
	Servers func() []Server
}

// A Server is an MCP server: connected, pending or failed.
type Server struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

// A Writer shows runs. Its methods may be called from several goroutines; what
// they write never mixes. Once Out has failed nothing more is written.
type Writer struct {
	opt Options

	maxWaiting int // maxWaiting but in tests

	mu      sync.Mutex
	err     error
	asked   func()
	partial partial
	nested  map[string]bool // ids of nested calls that were shown and have no result yet

	open     map[string]chan reply // what the client was asked, by request_id
	requests int                   // asked so far
	deaf     bool                  // no answer can come any more
}

// New returns a Writer.
func New(o Options) *Writer {
	return &Writer{opt: o, maxWaiting: maxWaiting, nested: map[string]bool{}}
}

// Describe sets what the output tells of the session, once that is known. Until
// then a result says only what it can.
func (w *Writer) Describe(s Session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opt.Session = s
}

// Err returns the first error of the output.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Begin says that a run begins.
func (w *Writer) Begin() {
	if w.opt.Format == Stream {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.init()
	}
}

// Event shows what happens in a run. It is agent.Options.Emit.
func (w *Writer) Event(e agent.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := e.(agent.Asked); ok && w.asked != nil {
		w.asked()
	}
	if w.opt.Format != Stream {
		return
	}
	switch e := e.(type) {
	case agent.Asked:
		w.partial.begin(w, e.PromptID)
	case agent.Streamed:
		w.partial.event(w, e.Event)
	case agent.Answered:
		w.partial.end(w, e.Finish, e.Usage)
		w.answered(e)
	case agent.Called:
		w.called(e)
	case agent.Observed:
		w.observed(e.Message)
	case agent.Delegated:
		if a, ok := e.Event.(agent.Answered); ok {
			w.delegated(e.Call, a)
		}
	}
}

// Result shows how a run ended.
func (w *Writer) Result(o *agent.Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.opt.Format != Text:
		w.line(w.result(o))
	case o.Reason != agent.Finished: // an answer that is none must not be taken for one
	case o.Structured != nil:
		w.write(append(compact(o.Structured), '\n'))
	case o.Text != "":
		w.write(append([]byte(o.Text), '\n'))
	}
}

// line writes v as one line of JSON.
func (w *Writer) line(v any) {
	if w.err != nil {
		return
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		w.fail(fmt.Errorf("encoding a line of the output: %w", err))
		return
	}
	w.write(oneLine(b.Bytes()))
}

// oneLine escapes what some readers take for the end of a line. Outside of
// strings JSON has no such characters.
func oneLine(b []byte) []byte {
	b = bytes.ReplaceAll(b, []byte("\u2028"), []byte(`\u2028`))
	return bytes.ReplaceAll(b, []byte("\u2029"), []byte(`\u2029`))
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	if _, err := w.opt.Out.Write(b); err != nil {
		w.fail(err)
	}
}

func (w *Writer) fail(err error) {
	w.err = err
	if w.opt.Failed != nil {
		w.opt.Failed(err)
	}
}

// ErrClosed is why a run ends whose output nobody reads any more.
var ErrClosed = errors.New("nobody reads the output any more")

// compact returns JSON on one line, in valid UTF-8, with every digit as it was.
func compact(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return raw
	}
	if !utf8.Valid(b.Bytes()) {
		return bytes.ToValidUTF8(b.Bytes(), []byte("\ufffd"))
	}
	return b.Bytes()
}

// uuid is a random id, as each line of a stream has one.
func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
