package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
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
	case <-time.After(time.Second):
	}
	if cause := context.Cause(ctx); errors.Is(cause, errTimeout) {
		return failed(cause)
	}
	return &exitError{code: exitInterrupted}
}

// A patient writer writes to what may be a pipe that nobody reads. It waits for
// the reader, but after ctx has ended not for long.
type patient struct {
	ctx   context.Context
	lines chan []byte
	done  chan error
	gone  bool
}

// newPatient returns a writer to a file. What goes to a terminal is made safe
// for it.
func newPatient(ctx context.Context, f *os.File) *patient {
	var w io.Writer = f
	if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		w = visible{f}
	}
	p := &patient{ctx: ctx, lines: make(chan []byte), done: make(chan error, 1)}
	go func() {
		for b := range p.lines {
			_, err := w.Write(b)
			p.done <- err
		}
	}()
	return p
}

var errGone = errors.New("nobody reads the output")

// Write is called by one goroutine at a time.
func (p *patient) Write(b []byte) (int, error) {
	if p.gone {
		return 0, errGone
	}
	p.lines <- b
	var err error
	select {
	case err = <-p.done:
	case <-p.ctx.Done():
		select {
		case err = <-p.done:
		case <-time.After(time.Second):
			p.gone, err = true, errGone // the writing goroutine is left behind, the process ends soon
		}
	}
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

func (p *patient) close() {
	if !p.gone {
		close(p.lines)
	}
}
