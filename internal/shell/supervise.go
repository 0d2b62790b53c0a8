package shell

import (
	"io"
	"os"
	"time"

	"capstan/internal/shell/keeper"
)

// A supervisor stands over one started command: a keeper process, or, where
// there is none, a goroutine that kills the process group.
type supervisor interface {
	// stop ends the command and everything below it. It may be called often,
	// and after the end.
	stop()
	// abandon ends the supervisor itself, which did not do its work in time,
	// and what can be found of the command.
	abandon()
	// ended delivers exactly one ending; after it nothing of the supervisor is
	// left.
	ended() <-chan ending
	// root is the process whose descendants are the command, or 0.
	root() int
}

// An ending is what a supervisor knows at the end.
type ending struct {
	keeper.Report
	err error // the supervisor failed; the report is what is known
}

// status is the exit code, or -1 and the signal's name.
func (e *ending) status() (code int, signal string) {
	if e.Signal != 0 {
		return -1, signalName(e.Signal)
	}
	return int(e.ExitCode), ""
}

// start runs req with the given descriptors, which stay the caller's.
func (r *Runner) start(req keeper.Request, stdio [3]*os.File) (supervisor, error) {
	if r.o.Portable {
		return startGroup(req, stdio)
	}
	return startKeeper(r.o.Binary, req, stdio)
}

// longest is the time after which a stopped command's supervisor must have
// ended it.
func (r *Runner) longest() time.Duration {
	return r.o.Term + 5*time.Second + r.o.Patience
}

// A stream reads one output pipe, decodes it and hands it on.
type stream struct {
	file  *os.File
	dec   decoder
	emit  func([]byte)
	done  chan struct{} // closed when everything was read and handed on
	over  chan struct{} // closed by finish: nothing should follow any more
	ended time.Time     // when that was; set before over
	held  bool          // someone kept the pipe open beyond the end; set before done
}

// What is still read of a pipe after all processes of its command have ended.
// Then it is left to whoever else holds it, however much that one still writes.
const (
	// drainLimit is how long to wait for that, in all. The time in which the
	// output is handed on does not count.
	drainLimit = 2 * time.Second
	// drainBytes is how much to read: what one Read had just taken, and what a
	// pipe holds that only root could enlarge further. More than that comes from
	// somebody else.
	drainBytes = 1<<20 + 64<<10
)

func newStream(f *os.File, d decoder, emit func([]byte)) *stream {
	s := &stream{file: f, dec: d, emit: emit, done: make(chan struct{}), over: make(chan struct{})}
	go s.copy()
	return s
}

func (s *stream) copy() {
	defer close(s.done)
	defer s.file.Close()
	buf := make([]byte, 64<<10)
	wait, room := drainLimit, drainBytes
	for {
		begun := time.Now()
		n, err := s.file.Read(buf)
		if s.isOver() {
			if begun.Before(s.ended) {
				begun = s.ended
			}
			wait -= time.Since(begun)
			room -= n
		}
		if n > 0 {
			s.hand(s.dec.write(buf[:n]))
		}
		if err != nil || wait <= 0 || room < 0 {
			s.held = err == nil || os.IsTimeout(err)
			s.hand(s.dec.flush())
			return
		}
		if s.isOver() {
			s.file.SetReadDeadline(time.Now().Add(wait))
		}
	}
}

func (s *stream) isOver() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

func (s *stream) hand(b []byte) {
	if len(b) > 0 {
		s.emit(b)
	}
}

// finish says that the command has ended.
func (s *stream) finish() {
	s.ended = time.Now()
	s.file.SetReadDeadline(s.ended.Add(drainLimit)) // for a Read that waits already
	close(s.over)
}

// heldOpen waits for the rest of the output.
func (s *stream) heldOpen() bool {
	<-s.done
	return s.held
}

// feed copies in to a new pipe and gives its read end. The copy ends with the
// reader of the pipe, or with stop.
func feed(in io.Reader) (read *os.File, stop func(), err error) {
	if in == nil {
		read, err = os.Open(os.DevNull)
		return read, func() {}, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	go func() {
		io.Copy(write, in)
		write.Close()
	}()
	return read, func() { write.Close() }, nil
}
