package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// stdio is the transport to a process, one message a line. Unlike the SDK's it
// survives what servers really print: logs and blank lines between messages,
// lines that are no UTF-8, and messages of any size, of which those beyond
// maxMessage fail the call that they answer and nothing else.
type stdio struct {
	in    *os.File
	out   io.Reader
	close func()
	warn  func(format string, a ...any)
	// passed takes notifications that need no more than a look, so that a storm
	// of them costs little.
	passed func(method string) bool

	lines  *bufio.Reader
	turn   chan struct{} // held by the one who writes
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex
	pending map[jsonrpc.ID]bool // calls of ours that wait for an answer
	failed  []jsonrpc.ID        // to be answered with errTooLarge

	asked   chan struct{} // holds one for each request of the server that is not answered
	stall   time.Duration // how long a server with too many of them may take none of the answers; 0 means stallLimit
	flooded func(error)   // is told why the connection ends then; nil for nobody
}

const (
	// maxAsked is how many requests a server may have open. With more, nothing
	// is read of it until it takes an answer: what it has sent is kept by us.
	maxAsked   = 256
	stallLimit = 30 * time.Second
)

func (t *stdio) Connect(context.Context) (sdk.Connection, error) {
	t.lines = bufio.NewReaderSize(t.out, 64<<10)
	t.turn, t.closed = make(chan struct{}, 1), make(chan struct{})
	t.pending = map[jsonrpc.ID]bool{}
	t.asked = make(chan struct{}, maxAsked)
	return t, nil
}

func (t *stdio) SessionID() string { return "" }

// Close ends the process. It is called by whoever sees the connection broken.
func (t *stdio) Close() error {
	t.once.Do(func() {
		close(t.closed)
		t.close()
	})
	return nil
}

var errTooLarge = fmt.Errorf("its answer is larger than %d MiB, which is not taken: ask for less", maxMessage>>20)

// Read returns the next message. What is none is reported and passed over.
func (t *stdio) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if id, ok := t.nextFailed(); ok {
			return &jsonrpc.Response{ID: id, Error: errTooLarge}, nil
		}
		line, tail, err := readLine(t.lines)
		if err != nil {
			return nil, err
		}
		if tail != nil {
			t.tooLarge(line, tail)
			continue
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if line[0] != '{' {
			t.warn("it prints to stdout what is no message (servers must log to stderr): %s", excerpt(line, 200))
			continue
		}
		if !utf8.Valid(line) {
			t.warn("it sends bytes that are not UTF-8; they were replaced")
			line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
		}
		if method := notification(line); method != "" && t.passed(method) {
			continue
		}
		m, err := jsonrpc.DecodeMessage(line)
		if err != nil {
			t.warn("it sends what cannot be read as a message (%v): %s", err, excerpt(line, 200))
			continue
		}
		switch m := m.(type) {
		case *jsonrpc.Response:
			if !t.answered(m.ID) {
				t.warn("it answers a request that is not open (id %v)", m.ID.Raw())
				continue
			}
		case *jsonrpc.Request:
			if m.IsCall() {
				if err := t.admit(ctx); err != nil {
					return nil, err
				}
			}
		}
		return m, nil
	}
}

// admit counts a request of the server. With too many open it waits until one is
// answered, and is an error when the server takes no answer.
func (t *stdio) admit(ctx context.Context) error {
	select {
	case t.asked <- struct{}{}:
		return nil
	default:
	}
	limit := time.NewTimer(cmp.Or(t.stall, stallLimit))
	defer limit.Stop()
	select {
	case t.asked <- struct{}{}:
		return nil
	case <-t.closed:
		return io.ErrClosedPipe
	case <-ctx.Done():
		return ctx.Err()
	case <-limit.C:
		err := fmt.Errorf("it has %d requests open and takes no answer to them", maxAsked)
		if t.flooded != nil {
			t.flooded(err)
		}
		return err
	}
}

// settled counts a request of the server as answered.
func (t *stdio) settled() {
	select {
	case <-t.asked:
	default:
	}
}

// notification returns the method of a line that is one; empty when it is not. It
// costs a twentieth of what the SDK's decoder does, which a storm of them is not
// worth.
func notification(line []byte) string {
	var n struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if len(line) > edge || json.Unmarshal(line, &n) != nil || n.ID != nil {
		return ""
	}
	return n.Method
}

// readLine returns a line without its end. A line longer than maxMessage is
// passed over; its beginning and, in tail, its end are returned.
func readLine(r *bufio.Reader) (line, tail []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		switch {
		case tail != nil:
			tail = append(tail, part...)
			tail = tail[max(0, len(tail)-edge):]
		case len(line)+len(part) > maxMessage:
			tail = append([]byte{}, part...)
			line = bytes.Clone(line[:min(len(line), edge)])
		default:
			line = append(line, part...)
		}
		switch {
		case err == nil:
			return line, tail, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(bytes.TrimSpace(line)) > 0 && tail == nil:
			return line, nil, nil // the last line may have no end
		default:
			return nil, nil, err
		}
	}
}

// edge is how much is kept of both ends of a line that is too long.
const edge = 4 << 10

// idOf finds the id of a response, given the beginning and the end of it.
func idOf(head, tail []byte) string {
	for i, pattern := range []string{
		`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,`,
		`,\s*"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`,
	} {
		if m := regexp.MustCompile(pattern).FindSubmatch([][]byte{head, tail}[i]); m != nil {
			return string(m[1])
		}
	}
	return ""
}

// tooLarge fails the call that a line which is too long would have answered:
// its id stands at the beginning or at the end, as servers write it. If it
// cannot be seen, every open call fails, for one of them would wait for ever.
func (t *stdio) tooLarge(head, tail []byte) {
	t.warn("it sent a message of more than %d MiB, which was not read", maxMessage>>20)
	id := idOf(head, tail)
	t.mu.Lock()
	defer t.mu.Unlock()
	for open := range t.pending {
		if id == "" || fmt.Sprint(open.Raw()) == id {
			t.failed = append(t.failed, open)
		}
	}
}

func (t *stdio) nextFailed() (jsonrpc.ID, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.failed) > 0 {
		id := t.failed[0]
		t.failed = t.failed[1:]
		if t.pending[id] {
			delete(t.pending, id)
			return id, true
		}
	}
	return jsonrpc.ID{}, false
}

func (t *stdio) answered(id jsonrpc.ID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	open := t.pending[id]
	delete(t.pending, id)
	return open
}

// send writes to the server until ctx ends. What ends after the write must not
// break the next one.
func (t *stdio) send(ctx context.Context, data []byte) error {
	set := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(set)
		t.in.SetWriteDeadline(time.Unix(1, 0))
	})
	_, err := t.in.Write(data)
	if !stop() {
		<-set // else it could be set after it was taken back
		if err == nil {
			t.in.SetWriteDeadline(time.Time{})
		}
	}
	return err
}

// Write sends a message. It waits no longer than ctx for a server that does not
// read; half a message cannot be taken back, so the connection then breaks.
func (t *stdio) Write(ctx context.Context, m jsonrpc.Message) error {
	if _, ok := m.(*jsonrpc.Response); ok {
		defer t.settled() // however that ends: it is not kept any longer
	}
	data, err := jsonrpc.EncodeMessage(outgoing(ctx, m))
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-t.closed:
		return io.ErrClosedPipe
	case <-ctx.Done():
		return ctx.Err()
	}
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		t.mu.Lock()
		t.pending[r.ID] = true
		t.mu.Unlock()
	}
	if err := t.send(ctx, append(data, '\n')); err != nil {
		return fmt.Errorf("it does not read its stdin: %w", err)
	}
	return nil
}
