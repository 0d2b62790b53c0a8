package guest

import (
	"sync"

	"capstan/internal/sandbox/frame"
)

// ended is thrown through the child when its parent has gone or said
// terminate: there is nobody left to report to.
type ended struct{}

// input reads frames from the parent. Small frames come through buf; a long
// body is read straight into the linear memory.
type input struct {
	buf    []byte
	rd, wr int
	bounds frame.Bounds
}

const inputSize = 64 << 10

// fill makes at least n bytes available in buf; n is at most inputSize.
func (in *input) fill(n int) {
	if in.rd == in.wr {
		in.rd, in.wr = 0, 0
	} else if in.rd+n > len(in.buf) {
		in.wr = copy(in.buf, in.buf[in.rd:in.wr])
		in.rd = 0
	}
	for in.wr-in.rd < n {
		in.wr += readFull(in.buf[in.wr:], 1)
	}
}

// head takes the next head. A frame that no parent sends is a broken parent:
// the child ends.
func (in *input) head() frame.Head {
	in.fill(frame.HeadSize)
	h, err := frame.ParseHead(in.buf[in.rd:in.wr])
	if err != nil || in.bounds.FromParent(h) != nil {
		panic(ended{})
	}
	in.rd += frame.HeadSize
	return h
}

// ready tells whether a whole frame has been read already.
func (in *input) ready() bool {
	h, err := frame.ParseHead(in.buf[in.rd:in.wr])
	return err == nil && uint64(in.wr-in.rd) >= frame.HeadSize+h.Size()
}

// body fills dst with the next bytes.
func (in *input) body(dst []byte) {
	n := copy(dst, in.buf[in.rd:in.wr])
	in.rd += n
	if n < len(dst) {
		readFull(dst[n:], len(dst)-n)
	}
}

// readFull reads at least n bytes into b, from the parent, and tells how many.
func readFull(b []byte, n int) int {
	got := 0
	for got < n {
		k, err := readInput(b[got:])
		if err != nil || k <= 0 {
			panic(ended{})
		}
		got += k
	}
	return got
}

// output writes frames to the parent. It is shared by the interpreter and the
// goroutine that watches its CPU time, so a frame is written under mu, whole.
type output struct {
	mu  sync.Mutex
	buf []byte
}

const outputSize = 64 << 10

// add appends p to the buffer, or writes it through when it is long. The
// caller holds mu.
func (o *output) add(p []byte) {
	if len(o.buf)+len(p) > outputSize {
		o.flush()
	}
	if len(p) >= outputSize {
		writeAll(p)
		return
	}
	o.buf = append(o.buf, p...)
}

// flush writes what is buffered. The caller holds mu.
func (o *output) flush() {
	if len(o.buf) > 0 {
		writeAll(o.buf)
		o.buf = o.buf[:0]
	}
}

// frame writes a frame whose bodies are given.
func (o *output) frame(h frame.Head, bodies ...[]byte) {
	o.mu.Lock()
	var head [frame.HeadSize]byte
	o.add(h.Append(head[:0]))
	for _, b := range bodies {
		o.add(b)
	}
	o.mu.Unlock()
}

func writeAll(b []byte) {
	for len(b) > 0 {
		n, err := writeOutput(b)
		if err != nil {
			exit(0) // the parent has gone
		}
		b = b[n:]
	}
}
