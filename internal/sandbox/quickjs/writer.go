package quickjs

import (
	"net"
	"os"

	"capstan/internal/sandbox/frame"
)

// writer sends frames to a child from a goroutine of its own, so that a child
// that does not read blocks neither its reader nor a Host. Its queue has room
// for every frame that a session can owe, so putting one in never blocks.
type writer struct {
	queue chan net.Buffers
	done  chan struct{}
}

func newWriter(f *os.File, room int) *writer {
	w := &writer{queue: make(chan net.Buffers, room), done: make(chan struct{})}
	go w.run(f)
	return w
}

func (w *writer) run(f *os.File) {
	defer close(w.done)
	broken := false
	for bufs := range w.queue {
		if broken {
			continue
		}
		for _, b := range bufs {
			// A failed write means that the child is gone; the reader says so.
			if _, err := f.Write(b); err != nil {
				broken = true
				break
			}
		}
	}
}

// coalesce is the size up to which bodies are copied behind their head, in
// bytes: one write is cheaper than the copy.
const coalesce = 64 << 10

// put queues a frame.
func (w *writer) put(h frame.Head, bodies ...[]byte) {
	if size := h.Size(); size <= coalesce {
		buf := h.Append(make([]byte, 0, frame.HeadSize+size))
		for _, b := range bodies {
			buf = append(buf, b...)
		}
		w.queue <- net.Buffers{buf}
		return
	}
	w.queue <- append(net.Buffers{h.Append(nil)}, bodies...)
}

// close waits until the queue has been written or dropped.
func (w *writer) close() {
	close(w.queue)
	<-w.done
}
