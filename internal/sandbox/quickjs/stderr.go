package quickjs

import (
	"os"
	"strings"
)

// stderr drains a child's standard error and keeps its beginning and its end:
// the first says why a runtime died, the second what came last.
type stderr struct {
	f          *os.File
	done       chan struct{}
	head, tail []byte
	cut        bool
}

// How much of each is kept, in bytes.
const stderrHead, stderrTail = 1 << 10, 1 << 10

func newStderr(f *os.File) *stderr {
	s := &stderr{f: f, done: make(chan struct{})}
	go s.drain()
	return s
}

func (s *stderr) drain() {
	defer close(s.done)
	chunk := make([]byte, 4<<10)
	for {
		n, err := s.f.Read(chunk)
		s.keep(chunk[:n])
		if err != nil {
			return
		}
	}
}

func (s *stderr) keep(b []byte) {
	k := min(len(b), stderrHead-len(s.head))
	s.head = append(s.head, b[:k]...)
	s.tail = append(s.tail, b[k:]...)
	if over := len(s.tail) - stderrTail; over > 0 {
		s.cut = true
		s.tail = append(s.tail[:0], s.tail[over:]...)
	}
}

// close stops draining. The process has ended before.
func (s *stderr) close() {
	s.f.Close()
	<-s.done
}

// text is what was kept; valid after close.
func (s *stderr) text() string {
	mid := ""
	if s.cut {
		mid = "\n…\n"
	}
	return strings.TrimSpace(validUTF8(string(s.head) + mid + string(s.tail)))
}
