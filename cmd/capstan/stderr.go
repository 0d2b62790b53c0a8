package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// stderr is where everything but the output goes. Programs, tools, settings and
// file names can put any text into a message, so what could move the cursor,
// change colours or reorder a line is made visible.
var stderr io.Writer = visible{os.Stderr}

type visible struct{ w io.Writer }

func (v visible) Write(p []byte) (int, error) {
	if _, err := io.WriteString(v.w, strings.Map(plain, string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

func plain(r rune) rune {
	if r == '\n' || r == '\t' {
		return r
	}
	return line(r)
}

// line is plain for text that has to stay on one line.
func line(r rune) rune {
	switch {
	case r < ' ', r >= 0x7f && r < 0xa0, r == utf8.RuneError, r == 0x2028, r == 0x2029,
		r >= 0x200e && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return '·'
	}
	return r
}

// oneLine makes any text fit on a line of a terminal.
func oneLine(s string, most int) string {
	s = strings.Map(line, s)
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// giveWay runs what may block on a pipe or a terminal, but not much longer than
// ctx: a signal ends the process also while nobody reads its output. Who does
// read it gets it, also of a run that a signal has ended.
func giveWay(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(readGrace):
	}
	if cause := context.Cause(ctx); errors.Is(cause, errTimeout) {
		return failed(cause)
	}
	return &exitError{code: exitInterrupted}
}

// A patient writer writes to what may be a pipe that nobody reads. It waits for
// the reader, but not for long after ctx has ended or the time of the run is
// over.
type patient struct {
	ctx   context.Context
	lines chan []byte
	done  chan error
	gone  error // why nothing is written any more

	late chan int // holds the number of the limit that is over

	mu    sync.Mutex
	limit int // number of the limit that counts
	timer *time.Timer
}

// newPatient returns a writer to a file. What goes to a terminal is made safe
// for it.
func newPatient(ctx context.Context, f *os.File) *patient {
	if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		return patientOf(ctx, visible{f})
	}
	return patientOf(ctx, f)
}

func patientOf(ctx context.Context, w io.Writer) *patient {
	p := &patient{ctx: ctx, lines: make(chan []byte), done: make(chan error, 1), late: make(chan int, 1)}
	go func() {
		for b := range p.lines {
			_, err := w.Write(b)
			p.done <- err
		}
	}()
	return p
}

var (
	errGone = errors.New("nobody reads the output")
	errLate = errors.New("the output was not read before the time of the run was over (--max-wall-time)")
)

// readGrace is how long a reader is still waited for when there is no more time.
const readGrace = time.Second

// waitFor sets how long the reader is waited for from now on, also by a Write
// that is under way; 0 is without end. What was set before no longer counts.
func (p *patient) waitFor(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit++
	n := p.limit
	if p.timer != nil {
		p.timer.Stop()
	}
	select {
	case <-p.late:
	default:
	}
	if d > 0 {
		p.timer = time.AfterFunc(d, func() { p.over(n) })
	}
}

// over says that the time of limit n is over, if that still counts.
func (p *patient) over(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n != p.limit {
		return false
	}
	select {
	case p.late <- n:
	default:
	}
	return true
}

// Write is called by one goroutine at a time.
func (p *patient) Write(b []byte) (int, error) {
	if p.gone != nil {
		return 0, p.gone
	}
	p.lines <- b
	if err := p.written(); err != nil {
		return 0, err
	}
	return len(b), nil
}

// written waits until what was handed over is written, or for as long as it may.
func (p *patient) written() error {
	for {
		select {
		case err := <-p.done:
			return err
		case <-p.ctx.Done():
			return p.last(errGone)
		case n := <-p.late:
			if p.over(n) { // for the next Write too
				return p.last(errLate)
			}
		}
	}
}

// last waits for the reader a last time.
func (p *patient) last(gone error) error {
	select {
	case err := <-p.done:
		return err
	case <-time.After(readGrace):
		p.gone = gone // the writing goroutine is left behind until somebody reads, or the process ends
		return gone
	}
}

func (p *patient) close() {
	p.waitFor(0)
	close(p.lines)
}
