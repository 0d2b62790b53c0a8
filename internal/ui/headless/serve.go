package headless

import (
	"context"
	"errors"
	"fmt"
	"io"

	"capstan/internal/agent"
	"capstan/internal/msg"
)

// A Conversation is the agent that is served.
type Conversation struct {
	// Run works on a prompt, or goes on when there are no parts.
	Run func(ctx context.Context, parts []msg.Part) *agent.Outcome
	// Queue adds a prompt while Run is under way, and reports whether that Run
	// will still answer it.
	Queue func(parts []msg.Part) bool
	// Ended gets how each run ended, after that was shown.
	Ended func(*agent.Outcome)
	// Bad gets each line of the input that cannot be used.
	Bad func(error)
	// SetMode changes the approval mode, as --approval-mode spells it. Nil: it
	// cannot be changed.
	SetMode func(mode string) error
}

// maxWaiting bounds the prompts that wait for an answer, in bytes.
const maxWaiting = 64 << 20

// errAsked is why a run ends that the client interrupts.
var errAsked = errors.New("the client asked to interrupt")

// Serve answers first, when it is not nil, and then the prompts of in, one on
// each line, until in ends and the last is answered, or until ctx ends. A prompt
// that comes while the agent works joins what it works on. Nothing is kept of the
// runs that have ended: there may be any number.
//
// What reads in cannot be interrupted: when ctx ends first, it is left behind
// until in is closed.
func (w *Writer) Serve(ctx context.Context, in io.Reader, first []msg.Part, c Conversation) {
	s := &server{w: w, c: c, asked: make(chan struct{}, 1), done: make(chan *agent.Outcome, 1)}
	w.onAsked(func() {
		select {
		case s.asked <- struct{}{}:
		default:
		}
	})
	defer w.onAsked(nil)
	defer w.deafen()
	lines := make(chan command)
	go func() {
		defer close(lines)
		commands(in, MaxLine, func(c command) bool {
			select {
			case lines <- c:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	if first != nil {
		s.start(ctx, first)
	}
	s.loop(ctx, lines)
}

// A server is one Serve.
type server struct {
	w *Writer
	c Conversation

	asked chan struct{} // the run under way takes what is queued
	done  chan *agent.Outcome

	running bool
	taking  bool // asked was seen
	stopped bool // the client has interrupted the run under way
	again   bool // the agent holds prompts for another run
	cancel  context.CancelCauseFunc
	waiting [][]msg.Part // come before the run has begun, or after it was interrupted
	bytes   int          // that wait, here and in the agent
}

func (s *server) loop(ctx context.Context, lines <-chan command) {
	for {
		if !s.running {
			switch {
			case ctx.Err() != nil:
				return
			case len(s.waiting) > 0:
				parts := s.waiting[0]
				s.waiting = s.waiting[1:]
				s.start(ctx, parts)
			case s.again:
				s.start(ctx, nil)
			case lines == nil:
				return
			}
		}
		stop := ctx.Done()
		if s.running {
			stop = nil // the run ends by itself then, and has to be shown
		}
		select {
		case <-stop:
			return
		case <-s.asked:
			s.begun()
		case o := <-s.done:
			s.ended(o)
		case c, ok := <-lines:
			if !ok {
				lines = nil
				s.w.deafen()
				continue
			}
			s.command(ctx, c)
		}
	}
}

func (s *server) start(ctx context.Context, parts []msg.Part) {
	ctx, s.cancel = context.WithCancelCause(ctx)
	s.running, s.taking, s.stopped, s.again, s.bytes = true, false, false, false, 0
	for _, parts := range s.waiting {
		s.bytes += size(parts)
	}
	go func() {
		s.w.Begin()
		s.done <- s.c.Run(ctx, parts)
	}()
}

// begun hands over what came before the run's first request. One that was
// interrupted gets nothing more: it would not answer it.
func (s *server) begun() {
	if s.stopped {
		return
	}
	s.taking = true
	for _, parts := range s.waiting {
		s.queue(parts)
	}
	s.waiting = nil
}

func (s *server) ended(o *agent.Outcome) {
	s.cancel(nil)
	s.running = false
	select {
	case <-s.asked: // of the run that has ended
	default:
	}
	s.w.Result(o)
	s.c.Ended(o)
}

func (s *server) queue(parts []msg.Part) {
	if !s.c.Queue(parts) {
		s.again = true
	}
}

func (s *server) command(ctx context.Context, c command) {
	switch {
	case c.err != nil:
		s.w.inputError(c.err)
		s.c.Bad(c.err)
	case c.control != nil:
		s.control(c.control)
	case c.reply != nil:
		s.reply(c.reply)
	case !s.running:
		s.start(ctx, c.parts)
	case s.bytes+size(c.parts) > s.w.maxWaiting:
		err := fmt.Errorf("a prompt was not taken: more than %d bytes of prompts wait for an answer", s.w.maxWaiting)
		s.w.inputError(err)
		s.c.Bad(err)
	case s.taking:
		s.bytes += size(c.parts)
		s.queue(c.parts)
	default:
		s.bytes += size(c.parts)
		s.waiting = append(s.waiting, c.parts)
	}
}

// size is what a prompt takes while it waits. A prompt of one letter is no
// byte: it has a place in the queue, and parts.
func size(parts []msg.Part) int {
	const each = 512
	n := each
	for _, p := range parts {
		n += each + len(p.Text) + len(p.Data)
	}
	return n
}

func (s *server) control(c *control) {
	switch c.subtype {
	case "interrupt":
		s.interrupt()
		s.w.reply(c, nil)
	case "set_permission_mode":
		s.setMode(c)
	case "initialize":
		s.w.reply(c, object{"commands": []any{}, "agents": []any{}, "models": []any{}, "account": object{}, "output_style": "default", "available_output_styles": []string{"default"}})
	default:
		s.w.refuse(c)
	}
}

// interrupt ends the run under way. What comes now is for the run after it.
func (s *server) interrupt() {
	if s.running {
		s.stopped, s.taking = true, false
		s.cancel(errAsked)
	}
}

// reply hands the client's answer to the call that waits for it.
func (s *server) reply(r *reply) {
	interrupt, err := s.w.replied(r)
	if err != nil {
		s.w.inputError(err)
		s.c.Bad(err)
	}
	if interrupt {
		s.interrupt()
	}
}

// setMode changes the approval mode; the client may spell it as Claude Code does.
func (s *server) setMode(c *control) {
	mode := c.mode
	for ours, theirs := range permissionModes {
		if mode == theirs && ours != "" {
			mode = ours
		}
	}
	if s.c.SetMode == nil {
		s.w.fault(c, "the approval mode cannot be changed here")
	} else if err := s.c.SetMode(mode); err != nil {
		s.w.fault(c, err.Error())
	} else {
		s.w.mode(mode)
		s.w.reply(c, object{"mode": c.mode})
	}
}

// mode keeps which approval mode is in force.
func (w *Writer) mode(mode string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opt.Session.ApprovalMode = mode
}

// onAsked sets what is called when a run makes a request.
func (w *Writer) onAsked(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = f
}

func (w *Writer) reply(c *control, response object) {
	r := object{"subtype": "success", "request_id": c.id}
	if response != nil {
		r["response"] = response
	}
	w.control(r)
}

func (w *Writer) refuse(c *control) {
	w.fault(c, fmt.Sprintf("no control request %q: want interrupt, initialize or set_permission_mode", cut(c.subtype)))
}

func (w *Writer) fault(c *control, why string) {
	w.control(object{"subtype": "error", "request_id": c.id, "error": why})
}

func (w *Writer) control(response object) {
	if w.opt.Format != Stream {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line(object{"type": "control_response", "response": response})
}

func (w *Writer) inputError(err error) {
	if w.opt.Format != Stream {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line(object{"type": "system", "subtype": "input_error", "uuid": uuid(), "session_id": w.opt.Session.ID, "message": err.Error()})
}
