package quickjs

import (
	"net"
	"os"
	"slices"
	"sync"

	"capstan/internal/sandbox/frame"
)

// writer sends frames to a child from a goroutine of its own, so that a child
// that does not read blocks neither its reader nor a Host: putting a frame in
// never blocks, and the session bounds how many wait.
type writer struct {
	drained func() // called when nothing waits any more
	done    chan struct{}

	mu     sync.Mutex
	more   *sync.Cond    // frames or closed has changed
	frames []net.Buffers // not begun
	busy   bool          // a frame waits or is being written
	closed bool
}

func newWriter(f *os.File, drained func()) *writer {
	w := &writer{drained: drained, done: make(chan struct{})}
	w.more = sync.NewCond(&w.mu)
	go w.run(f)
	return w
}

func (w *writer) run(f *os.File) {
	defer close(w.done)
	broken := false
	for {
		bufs, ok := w.next()
		if !ok {
			return
		}
		for _, b := range bufs {
			if broken {
				break
			}
			// A failed write means that the child is gone; the reader says so.
			_, err := f.Write(b)
			broken = err != nil
		}
	}
}

// next waits for a frame to write; there is none when the writer is closed and
// all have been taken.
func (w *writer) next() (net.Buffers, bool) {
	w.mu.Lock()
	if len(w.frames) == 0 && w.busy {
		w.busy = false
		w.mu.Unlock()
		w.drained()
		w.mu.Lock()
	}
	defer w.mu.Unlock()
	for len(w.frames) == 0 {
		if w.closed {
			return nil, false
		}
		w.more.Wait()
	}
	first := w.frames[0]
	w.frames = slices.Delete(w.frames, 0, 1)
	return first, true
}

// coalesce is the size up to which bodies are copied behind their head, in
// bytes: one write is cheaper than the copy.
const coalesce = 64 << 10

// put queues a frame.
func (w *writer) put(h frame.Head, bodies ...[]byte) {
	var bufs net.Buffers
	if size := h.Size(); size <= coalesce {
		buf := h.Append(make([]byte, 0, frame.HeadSize+size))
		for _, b := range bodies {
			buf = append(buf, b...)
		}
		bufs = net.Buffers{buf}
	} else {
		bufs = append(net.Buffers{h.Append(nil)}, bodies...)
	}
	w.mu.Lock()
	w.frames = append(w.frames, bufs)
	w.busy = true
	w.mu.Unlock()
	w.more.Signal()
}

// waiting is how many frames have not been begun, so that the child cannot have
// read any of them.
func (w *writer) waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.frames)
}

// idle tells whether all that was put has been written.
func (w *writer) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.busy
}

// close waits until the queue has been written or dropped. No frame may be put
// after it.
func (w *writer) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.more.Signal()
	<-w.done
}
