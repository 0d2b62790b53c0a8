package terminal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/term"
)

// withFd calls f with the descriptor, without changing whether it blocks.
func withFd(file *os.File, f func(fd int)) error {
	c, err := file.SyscallConn()
	if err != nil {
		return err
	}
	return c.Control(func(fd uintptr) { f(int(fd)) })
}

func isTerminal(f *os.File) (yes bool) {
	_ = withFd(f, func(fd int) { yes = term.IsTerminal(fd) })
	return yes
}

// width is how many cells a line of the terminal has.
func width(f *os.File) int {
	w := 0
	_ = withFd(f, func(fd int) { w, _, _ = term.GetSize(fd) })
	if w <= 0 {
		return 80
	}
	return min(max(w, 20), 200)
}

// maxAnswer bounds a line of input, in bytes.
const maxAnswer = 4096

// A lineReader puts a line together from what the terminal gives: a line at a
// time, or single keys when something left it in another mode.
type lineReader struct{ buf []byte }

const (
	keyInterrupt = 0x03 // Ctrl-C
	keyEnd       = 0x04 // Ctrl-D
	keyDelete    = 0x7f
	keyBackspace = 0x08
)

// add takes what was read. What follows a complete line is dropped: it was
// typed before the next question.
func (l *lineReader) add(p []byte) (line string, done bool, err error) {
	for _, c := range p {
		switch c {
		case keyInterrupt:
			return "", false, ErrInterrupted
		case keyEnd:
			if len(l.buf) == 0 {
				return "", false, io.EOF
			}
		case '\n', '\r':
			return string(l.buf), true, nil
		case keyDelete, keyBackspace:
			l.buf = l.buf[:max(len(l.buf)-1, 0)]
		default:
			if len(l.buf) >= maxAnswer {
				return "", false, errors.New("the answer is too long")
			}
			l.buf = append(l.buf, c)
		}
	}
	return "", false, nil
}

// input is one read of the portable reader.
type input struct {
	bytes []byte
	err   error
}

// start starts the reader of systems on which a read of the terminal cannot be
// given up: one goroutine reads for all questions. It ends with the input.
func (a *Approver) start() {
	a.reader.Do(func() {
		a.input = make(chan input, 16)
		go func() {
			defer close(a.input)
			for {
				buf := make([]byte, 1024)
				n, err := a.opt.In.Read(buf)
				a.input <- input{buf[:n], err}
				if err != nil {
					return
				}
			}
		}()
	})
}

// drain throws away what was read and not asked for.
func (a *Approver) drain() {
	a.start()
	for {
		select {
		case in, ok := <-a.input:
			if !ok || in.err != nil {
				return
			}
		default:
			return
		}
	}
}

func (a *Approver) nextLine(ctx context.Context) (string, error) {
	a.start()
	var line lineReader
	for {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case in, ok := <-a.input:
			if !ok || in.err != nil && len(bytes.TrimSpace(in.bytes)) == 0 {
				return "", io.EOF
			}
			if s, done, err := line.add(in.bytes); done || err != nil {
				return s, err
			}
		}
	}
}
