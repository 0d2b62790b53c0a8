//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a process is waited for. It decides nothing: a test that
// comes to its end has failed.
const patience = 60 * time.Second

// A waiting process is a capstan that reads from a pipe into which nobody writes
// and writes into one from which nobody reads.
type waiting struct {
	cmd   *exec.Cmd
	errs  locked
	ended chan struct{} // is closed when it has
}

// locked is what a process has written so far.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newWaiting prepares the process, which the test may change before start.
func newWaiting(t *testing.T, args []string, env ...string) *waiting {
	t.Helper()
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = r.Close(), w.Close() })
		return r, w
	}
	dir := t.TempDir()
	w := &waiting{cmd: exec.Command(binary, args...), ended: make(chan struct{})}
	w.cmd.Dir, w.cmd.Env, w.cmd.Stderr = dir, environment(dir, env...), &w.errs
	w.cmd.Stdin, _ = pipe()
	_, w.cmd.Stdout = pipe()
	return w
}

func (w *waiting) start(t *testing.T) {
	t.Helper()
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = w.cmd.Wait() // the code says it all
		close(w.ended)
	}()
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill()
		<-w.ended
	})
}

func (w *waiting) stderr() string { return w.errs.String() }

func (w *waiting) blocked() bool { return blocked(w.cmd.Process.Pid) }

// until waits for a condition of the process. When it ends before that, or it
// never comes to it, the test fails with what the process said; in the second
// case that is where each of its goroutines was.
func (w *waiting) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-w.ended:
			t.Fatalf("%s: it ended instead, %v; stderr: %s", what, w.cmd.ProcessState, w.stderr())
		case <-deadline:
			_ = w.cmd.Process.Signal(syscall.SIGQUIT)
			<-w.ended
			t.Fatalf("%s: it never came to that; stderr: %s", what, w.stderr())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (w *waiting) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := w.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// end waits for the end of the process and returns its exit code.
func (w *waiting) end(t *testing.T) int {
	t.Helper()
	select {
	case <-w.ended:
	case <-time.After(patience):
		_ = w.cmd.Process.Signal(syscall.SIGQUIT)
		<-w.ended
		t.Fatalf("it did not end; stderr: %s", w.stderr())
	}
	return w.cmd.ProcessState.ExitCode()
}
