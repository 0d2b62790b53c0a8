// Package terminal asks a person on a terminal whether a call may run. It
// shows what the call is, who made it, its arguments and what it would change,
// so that nothing in them can hide or pretend to be part of the question.
//
// It decides nothing (package policy says what has to be asked about), and it
// leaves the terminal's mode alone: lines are edited by the terminal itself,
// so there is no state to restore, whatever happens.
package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

// ErrInterrupted is returned when the person typed Ctrl-C at a question. The
// run is to end as after the signal, with exit code 130. (Most terminals turn
// Ctrl-C into the signal themselves; then the context ends.)
var ErrInterrupted = errors.New("interrupted at a question")

// Options make an Approver.
type Options struct {
	// In and Out are the terminal. When both are nil, Open opens the
	// process's controlling terminal.
	In, Out *os.File
	Color   bool // diffs in colour
	// Interrupt, when not nil, is called when Ctrl-C is typed at a question:
	// it has to cancel the run, for an error of Approve is only a no.
	Interrupt func()
}

// An Approver puts questions to the person at a terminal, one at a time in the
// order in which they come. It implements sched.Approver and is safe for
// concurrent use.
type Approver struct {
	opt    Options
	opened *os.File // that Close closes
	turn   chan struct{}
	always map[string]*tool.Entry // calls to be allowed again; only used by the one whose turn it is

	portable bool // do not use what only some systems have
	reader   sync.Once
	input    chan input
}

// Open returns an Approver. Without a terminal it fails, and then nobody can
// be asked: the caller passes no approver on.
func Open(o Options) (*Approver, error) {
	a := &Approver{opt: o, turn: make(chan struct{}, 1), always: map[string]*tool.Entry{}, portable: portableOnly}
	if (o.In == nil) != (o.Out == nil) {
		return nil, errors.New("opening a terminal: want both its input and its output")
	}
	if o.In == nil {
		f, err := openTTY()
		if err != nil {
			return nil, fmt.Errorf("opening the terminal: %w", err)
		}
		a.opened, a.opt.In, a.opt.Out = f, f, f
	}
	if !isTerminal(a.opt.In) || !isTerminal(a.opt.Out) {
		_ = a.Close()
		return nil, errors.New("opening the terminal: this is not a terminal")
	}
	return a, nil
}

// Close closes the terminal if Open opened it. No question may be open.
func (a *Approver) Close() error {
	if a.opened == nil {
		return nil
	}
	return a.opened.Close()
}

// Approve asks about a call and waits for the answer. It returns at once when
// ctx ends. The end of the input is a no.
func (a *Approver) Approve(ctx context.Context, q *sched.Question) (sched.Answer, error) {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return sched.Answer{}, ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return sched.Answer{}, err
	}
	if a.known(q) {
		return sched.Answer{Allow: true}, nil
	}
	if inBackground(a.opt.In) {
		return sched.Answer{}, errors.New("this program runs in the background of its terminal, so nobody can be asked")
	}
	answer, err := a.ask(ctx, q)
	if errors.Is(err, ErrInterrupted) && a.opt.Interrupt != nil {
		a.opt.Interrupt()
	}
	return answer, err
}

// maxTries is how often an answer that is none is asked for again.
const maxTries = 10

// ask shows the question and reads lines until one is an answer.
func (a *Approver) ask(ctx context.Context, q *sched.Question) (sched.Answer, error) {
	p := &page{width: width(a.opt.Out), color: a.opt.Color, diff: preview(ctx, q)}
	text, cut := p.question(q, short)
	for range maxTries {
		if err := a.write(ctx, text); err != nil {
			return sched.Answer{}, a.ended(ctx, err)
		}
		// What was typed before the question was there answers nothing.
		a.flush()
		if err := a.write(ctx, prompt(cut)); err != nil {
			return sched.Answer{}, a.ended(ctx, err)
		}
		line, err := a.readLine(ctx)
		switch {
		case errors.Is(err, io.EOF):
			_ = a.write(ctx, "\n")
			return sched.Answer{Reason: "nobody answered: the terminal's input ended"}, nil
		case err != nil:
			return sched.Answer{}, a.ended(ctx, err)
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch strings.ToLower(word) {
		case "y", "yes":
			if rest == "" {
				return sched.Answer{Allow: true}, nil
			}
		case "a", "always":
			if rest == "" {
				a.always[key(q)] = q.Entry
				return sched.Answer{Allow: true}, nil
			}
		case "n", "no":
			return sched.Answer{Reason: reason(rest)}, nil
		case "v", "view":
			text, cut = p.question(q, whole)
			continue
		}
		text = "That is no answer.\n"
	}
	return sched.Answer{Reason: "nobody gave an answer that could be understood"}, nil
}

// ended leaves the line of the question, and prefers the context's own error.
func (a *Approver) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if errors.Is(err, ErrInterrupted) || ctx.Err() != nil {
		a.newline()
	}
	return err
}

// known says whether the person allowed this very call before: the same tool
// as it was then, with the same arguments, touching the same paths.
func (a *Approver) known(q *sched.Question) bool {
	e, ok := a.always[key(q)]
	return ok && e.Same(q.Entry)
}

func key(q *sched.Question) string {
	return strings.Join(slices.Concat([]string{q.Call.Name, string(q.Call.Args), "reads"}, q.Access.Reads, []string{"writes"}, q.Access.Writes), "\x00")
}

// maxReason bounds what is told to the model, in characters.
const maxReason = 1000

// reason cleans what was typed after a no.
func reason(s string) string {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if hidden(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "")))
	if r := []rune(s); len(r) > maxReason {
		s = string(r[:maxReason])
	}
	return s
}

func prompt(cut bool) string {
	view := ""
	if cut {
		view = ", v = view all of it"
	}
	return "Allow? y = yes, once; a = yes, and this same call again in this run; n = no, n REASON tells why" + view + "\n> "
}

// preview asks the tool what the call would change. A tool that fails here is
// no reason not to ask.
func preview(ctx context.Context, q *sched.Question) (diff string) {
	p, ok := q.Entry.Tool().(tool.Previewer)
	if !ok {
		return ""
	}
	defer func() {
		if r := recover(); r != nil {
			diff = fmt.Sprintf("(the change cannot be shown: %v)", r)
		}
	}()
	diff, err := p.Preview(ctx, q.Call, q.Access)
	if err != nil {
		return fmt.Sprintf("(the change cannot be shown: %v)", err)
	}
	return diff
}
