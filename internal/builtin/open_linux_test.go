package builtin

import (
	"errors"
	"io"
	"testing"

	"golang.org/x/sys/unix"
)

// A read that would have to wait, as of some files in /proc, fails instead.
func TestReadDoesNotWait(t *testing.T) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	r := descriptor(fds[0])
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, unix.EAGAIN) {
		t.Errorf("%d, %v", n, err)
	}
	if err := unix.Close(fds[1]); err != nil {
		t.Fatal(err)
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %d, %v", n, err)
	}
}
