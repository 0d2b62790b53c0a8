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

// An Approver puts questions to the person at a terminal, in the order in which
// they come: those that wait when the terminal is free together, each by itself
// when the person likes that better. It implements sched.Approver and is safe
// for concurrent use.
type Approver struct {
	opt    Options
	opened *os.File // that Close closes
	turn   chan struct{}
	always map[string]*tool.Entry // calls to be allowed again; only used by the one whose turn it is

	mu     sync.Mutex
	line   []*waiting            // questions without an answer, in order
	gather func(context.Context) // waits for questions that come with the first one

	portable bool // do not use what only some systems have
	reader   sync.Once
	input    chan input
}

// Open returns an Approver. Without a terminal it fails, and then nobody can
// be asked: the caller passes no approver on.
func Open(o Options) (*Approver, error) {
	a := &Approver{opt: o, turn: make(chan struct{}, 1), always: map[string]*tool.Entry{}, portable: portableOnly, gather: pause}
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
	w := a.join(ctx, q)
	defer a.leave(w)
	select {
	case a.turn <- struct{}{}:
		defer func() {
			a.leave(w) // before anybody else looks at the line
			<-a.turn
		}()
	case answer := <-w.answer:
		return answer, nil
	case <-ctx.Done():
		return sched.Answer{}, ctx.Err()
	}
	select {
	case answer := <-w.answer: // it came together with the turn
		return answer, nil
	default:
	}
	if err := ctx.Err(); err != nil {
		return sched.Answer{}, err
	}
	if a.known(q) {
		return sched.Answer{Allow: true, By: again}, nil
	}
	if inBackground(a.opt.In) {
		return sched.Answer{}, errors.New("this program runs in the background of its terminal, so nobody can be asked")
	}
	answer, err := a.serve(ctx, w)
	if errors.Is(err, ErrInterrupted) && a.opt.Interrupt != nil {
		a.opt.Interrupt()
	}
	return answer, err
}

// Who answered, for the record.
const (
	person = "the user at the terminal"
	again  = "the user at the terminal, who allowed this very call before"
)

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
		if err := a.write(ctx, p.prompt(cut, q.Offers)); err != nil {
			return sched.Answer{}, a.ended(ctx, err)
		}
		line, err := a.readLine(ctx)
		switch {
		case errors.Is(err, io.EOF):
			_ = a.write(ctx, "\n")
			return sched.Answer{Reason: inputEnded}, nil
		case err != nil:
			return sched.Answer{}, a.ended(ctx, err)
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word = strings.ToLower(word); {
		case isNo(word):
			return sched.Answer{Reason: reason(rest), By: person}, nil
		case rest != "": // "y, but" is no yes
		case word == "y" || word == "yes":
			return sched.Answer{Allow: true, By: person}, nil
		case word == "a" || word == "always":
			a.always[key(q)] = q.Entry
			return sched.Answer{Allow: true, By: person}, nil
		case word == "v" || word == "view":
			text, cut = p.question(q, whole)
			continue
		default:
			if grants := granted(word, q.Offers); grants != nil {
				return sched.Answer{Allow: true, By: person, Grants: grants}, nil
			}
		}
		text = noAnswer
	}
	return sched.Answer{Reason: notUnderstood}, nil
}

func isNo(word string) bool { return word == "n" || word == "no" }

const (
	inputEnded    = "nobody answered: the terminal's input ended"
	notUnderstood = "nobody gave an answer that could be understood"
	noAnswer      = "That is no answer.\n"
)

// granted returns the rules of the offer that a word takes; nil when it takes
// none.
func granted(word string, offers []sched.Offer) []sched.Grant {
	for _, o := range offers {
		if k, name := layer(o.Layer); word != k && word != name {
			continue
		}
		var grants []sched.Grant
		for _, rule := range o.Rules {
			grants = append(grants, sched.Grant{Layer: o.Layer, List: "allow", Rule: rule})
		}
		return grants
	}
	return nil
}

// layer is how a person names a layer of the settings, in short and in full.
func layer(l string) (key, name string) {
	switch l {
	case "session":
		return "s", "session"
	case "local", "project":
		return "p", "project"
	}
	return "u", "user"
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

// prompt says how to answer. The rules of the offers are shown as they would be
// saved.
func (p *page) prompt(cut bool, offers []sched.Offer) string {
	p.b.Reset()
	if len(offers) > 0 {
		p.b.WriteString("\"Always\" would add to permissions.allow:\n")
		p.block(strings.Join(offers[0].Rules, "\n"), whole, nil)
	}
	p.b.WriteString("Allow? y = yes, once; a = yes, and this same call again in this run; n = no, n REASON tells why")
	if cut {
		p.b.WriteString(", v = view all of it")
	}
	var ways []string
	for _, o := range offers {
		k, name := layer(o.Layer)
		way := k + " = yes, always in this " + name
		if name == "user" {
			way = k + " = yes, always"
		}
		if o.File != "" {
			way += " (" + o.File + ")"
		}
		ways = append(ways, way)
	}
	p.b.WriteString("\n")
	if len(ways) > 0 {
		p.line("", strings.Join(ways, "; "), "")
	}
	p.b.WriteString("> ")
	return p.b.String()
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
