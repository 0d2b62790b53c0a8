package quickjs

import (
	"os"
	"strings"
)

// tail drains a pipe and keeps the end of what came through it.
type tail struct {
	f    *os.File
	done chan struct{}
	buf  []byte
}

// tailSize is how much of a child's stderr is kept, in bytes.
const tailSize = 4 << 10

func newTail(f *os.File) *tail {
	t := &tail{f: f, done: make(chan struct{})}
	go t.drain()
	return t
}

func (t *tail) drain() {
	defer close(t.done)
	chunk := make([]byte, tailSize)
	for {
		n, err := t.f.Read(chunk)
		t.buf = append(t.buf, chunk[:n]...)
		if len(t.buf) > tailSize {
			t.buf = append(t.buf[:0], t.buf[len(t.buf)-tailSize:]...)
		}
		if err != nil {
			return
		}
	}
}

// close stops draining. The process has ended before.
func (t *tail) close() {
	t.f.Close()
	<-t.done
}

// text is what was kept; valid after close.
func (t *tail) text() string { return strings.TrimSpace(strings.ToValidUTF8(string(t.buf), "\uFFFD")) }
