package shell

import (
	"bytes"
	"os"
	"testing"
	"time"
)

// Whoever holds a command's output open beyond its end, and writes on and on, is
// left to it: slowly or as fast as it can. What was in the pipe at the end is
// read to its last byte, however slow its reader is.
func TestStreamEnds(t *testing.T) {
	for name, pause := range map[string]time.Duration{"slow writer": drainLimit / 20, "fast writer": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() { // until nobody reads any more; else the end of the pipe is seen after all
				defer close(ended)
				defer w.Close()
				line := bytes.Repeat([]byte("x\n"), 100)
				for until := time.Now().Add(8 * drainLimit); time.Now().Before(until); {
					if _, err := w.Write(line); err != nil {
						return
					}
					time.Sleep(pause)
				}
			}()
			s := newStream(r, decoder{}, func([]byte) {})
			s.finish()
			if !s.heldOpen() {
				t.Error("the pipe does not count as held open")
			}
			<-ended
		})
	}
	t.Run("slow reader", func(t *testing.T) {
		t.Parallel()
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer w.Close()
			w.Write(bytes.Repeat([]byte("x"), 150_000)) // more than a pipe and a read hold
		}()
		var got int
		s := newStream(r, decoder{}, func(b []byte) {
			got += len(b)
			time.Sleep(drainLimit * 3 / 5)
		})
		s.finish()
		if s.heldOpen() || got != 150_000 {
			t.Errorf("%d bytes, held open %v", got, s.heldOpen())
		}
	})
}
