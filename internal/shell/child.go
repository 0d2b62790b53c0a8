package shell

import (
	"errors"
	"os"
	"sync"
	"time"
)

// A Child is a long-lived process that is talked to through its stdin and
// stdout, an MCP server for example. It is kept like a command: nothing of it
// survives its end, Close, or the end of this process.
//
// Unlike a command it gets exactly the environment that it is given, has no
// deadline, and nobody looks whether it waits for a person.
type Child struct {
	// In is its stdin. A Write waits while the process does not read; a
	// deadline or Close ends that.
	In *os.File
	// Out is its stdout, byte for byte. It is the caller's to read to the end.
	Out *os.File

	r      *Runner
	sup    supervisor
	stderr *stream

	done   chan struct{}
	result Result
	err    error

	closing sync.Once
	stop    chan time.Duration
}

// Spawn starts c as a Child. Of c it takes Argv or Line, Dir, Env (nil means
// nothing but PWD) and Stderr, which gets the process's stderr as valid UTF-8
// and must not keep the slice; nil drops it. The error is a *CommandError when
// c cannot be run as it is. Every Child needs a Close.
func (r *Runner) Spawn(c Command) (*Child, error) {
	c.exact, c.Timeout = true, 0
	req, err := r.request(c)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	pipe := func() (read, write *os.File) {
		if err == nil {
			if read, write, err = os.Pipe(); err == nil {
				files = append(files, read, write)
			}
		}
		return read, write
	}
	inRead, in := pipe()
	out, outWrite := pipe()
	errRead, errWrite := pipe()
	var sup supervisor
	if err == nil {
		sup, err = r.start(req, [3]*os.File{inRead, outWrite, errWrite})
	}
	if err != nil {
		for _, f := range files {
			f.Close()
		}
		return nil, err
	}
	inRead.Close()
	outWrite.Close()
	errWrite.Close()
	ch := &Child{In: in, Out: out, r: r, sup: sup, done: make(chan struct{}), stop: make(chan time.Duration, 1)}
	ch.stderr = newStream(errRead, decoder{legacy: legacyEncoding(req.Env)}, func(b []byte) {
		if c.Stderr != nil {
			c.Stderr(b)
		}
	})
	go ch.run(time.Now())
	return ch, nil
}

// run waits for the end and sees that it comes once Close was called.
func (c *Child) run(started time.Time) {
	var end ending
	var patience, overdue <-chan time.Time
	stopped := false
	for ended := false; !ended; {
		select {
		case end = <-c.sup.ended():
			ended = true
		case d := <-c.stop:
			patience = time.After(d)
		case <-patience:
			stopped, patience, overdue = true, nil, time.After(c.r.longest())
			c.sup.stop()
		case <-overdue:
			overdue = nil
			c.sup.abandon()
		}
	}
	c.stderr.finish()
	held := c.stderr.heldOpen()
	c.result = Result{Duration: time.Since(started), HeldOpen: held,
		Leftovers: end.Killed, LeftoverCount: int(end.KilledCount), Alive: end.Alive}
	c.result.ExitCode, c.result.Signal = end.status()
	c.result.Cancelled = stopped && (end.Stopped || end.err != nil)
	c.err = end.err
	close(c.done)
}

// Done is closed when nothing of the process is left and its stderr was handed
// on. Out may still hold what was written last.
func (c *Child) Done() <-chan struct{} { return c.done }

// End waits for Done and says how the process ended. The error wraps ErrKeeper
// when its end is not known for certain.
func (c *Child) End() (Result, error) {
	<-c.done
	return c.result, c.err
}

// Close ends the process: it closes In, gives it patience to go by itself, then
// ends it and everything below it, and waits until nothing is left. A Read of
// Out that still waits then ends. Calling it again waits for the first call's
// work.
func (c *Child) Close(patience time.Duration) error {
	var err error
	c.closing.Do(func() {
		err = c.In.Close()
		c.stop <- patience
	})
	<-c.done
	if cerr := c.Out.Close(); cerr != nil && !errors.Is(cerr, os.ErrClosed) {
		err = errors.Join(err, cerr)
	}
	return err
}
