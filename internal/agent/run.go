package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"capstan/internal/llm"
	"capstan/internal/msg"
	"capstan/internal/sched"
	"capstan/internal/session"
	"capstan/internal/tool"
)

// An Agent leads one conversation. Its methods may be called from several
// goroutines.
type Agent struct {
	opt    Options
	rt     *sched.Runtime
	origin string   // FAMILY/MODEL
	key    string   // of the conversation: prompt ids begin with it
	cache  string   // the key by which providers cache what requests begin with
	ids    *llm.IDs // of the calls; used by the running Run only
	sub    *task    // what it works on as a subagent; nil: it is the lead

	wake chan struct{} // something is there for a run that waits; one is enough

	emitting sync.Mutex // events go out one at a time

	mu      sync.Mutex
	history []msg.Message // at every moment each call in it has its result
	prompts int           // requests made
	run     *run          // nil when none is under way
	taking  bool          // the run under way will look at the queue again
	queue   [][]msg.Part
}

// New returns an Agent. It asks nothing and touches no file.
func New(o Options) *Agent {
	a := newAgent(o)
	a.rt = sched.New(a.sched())
	if o.Team != nil {
		o.Team.lead = a
	}
	return a
}

func newAgent(o Options) *Agent {
	a := &Agent{opt: o, origin: o.Family + "/" + o.Model, key: rand.Text()[:12], history: slices.Clone(o.History), ids: llm.NewIDs(o.History), wake: make(chan struct{}, 1)}
	if a.cache = a.key; o.Log != nil {
		a.cache = o.Log.ID()
	}
	return a
}

// sched are the options of its Runtime.
func (a *Agent) sched() sched.Options {
	so := a.opt.Sched
	so.Observe, so.Begin = a.observe, a.begin
	so.Policy = budgeted{a, a.opt.Sched.Policy}
	return so
}

// rouse wakes a run that waits for its subagents.
func (a *Agent) rouse() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Runtime returns the one executor of the session, which its subagents share.
func (a *Agent) Runtime() *sched.Runtime { return a.rt }

// History returns the conversation so far, without the turn that is under way:
// each call in it has exactly one result. The messages must not be changed.
func (a *Agent) History() []msg.Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.history)
}

func (a *Agent) empty() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.history) == 0
}

// Queue adds a message of the user's while the agent works. It joins the next
// request, behind the results of the calls that run now; when the model has
// just finished, it begins another round of the same Run. When the Run ends for
// another reason, the message is in the history and the log all the same.
//
// Queue reports whether a Run is under way that does so. When it is false, the
// message waits for the next Run, which may then be given no parts of its own.
func (a *Agent) Queue(parts []msg.Part) bool {
	if len(parts) == 0 {
		return a.working()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue = append(a.queue, slices.Clone(parts))
	a.rouse()
	return a.taking
}

// queued reports whether a message waits.
func (a *Agent) queued() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.queue) > 0
}

func (a *Agent) working() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.taking
}

// ErrBusy is the error of a Run while another Run of the same agent is under
// way.
var ErrBusy = errors.New("the agent is working on another prompt: queue the message, or wait for the end of the run")

var errNothing = errors.New("there is nothing to ask: the prompt and the conversation are empty")

// Run shows the model a prompt of the user's and works until it is done or has
// to end. It always returns, after all that it started has ended, and the
// history is then complete: calls that did not run or were interrupted are
// answered as such. Ended is its last event, but for ErrBusy.
//
// Without parts it goes on with the history as it is, or with what Queue left.
func (a *Agent) Run(ctx context.Context, parts []msg.Part) *Outcome {
	r := newRun(a)
	a.mu.Lock()
	busy := a.run != nil
	if !busy {
		a.run, a.taking = r, true
	}
	a.mu.Unlock()
	if busy {
		return &Outcome{Reason: Failed, Err: ErrBusy}
	}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	defer r.cancel(nil)
	if wall := a.opt.Limits.Wall; wall > 0 {
		var stop context.CancelFunc
		r.ctx, stop = context.WithTimeoutCause(r.ctx, wall, errWall)
		defer stop()
	}
	r.out.Reason, r.out.Err = r.work(parts)
	r.endChildren()
	r.close()
	a.mu.Lock()
	a.run = nil
	a.mu.Unlock()
	a.emit(Ended{r.out})
	return r.out
}

// A run is one Run.
type run struct {
	a      *Agent
	ctx    context.Context
	cancel context.CancelCauseFunc
	began  time.Time
	out    *Outcome
	book   ledger
	loops  detector
	nudges nudges
	meter  meter
	turns  atomic.Int64
	above  *run // of the lead, for which a subagent works
	below  children

	holds int        // how often in a row a hook kept the run from ending
	sent  *tool.View // whose declarations the last request had
}

func newRun(a *Agent) *run {
	r := &run{a: a, began: time.Now(), out: &Outcome{}, book: ledger{limit: a.opt.Limits.Calls}}
	if a.sub != nil {
		r.above = a.sub.under()
	}
	return r
}

var errWall = errors.New("the time of the run is used up")

// broken is why a run was ended from within: its log fails.
type broken struct{ err error }

func (b *broken) Error() string {
	return fmt.Sprintf("recording the session failed, so nothing more was run: after a restart nobody would know of it: %v\n"+
		"free space on the disk, make the directory writable or name another with XDG_DATA_HOME, and run it again", b.err)
}

func (b *broken) Unwrap() error { return b.err }

// work is the loop: reason, act, observe (S3-002, S3-015).
func (r *run) work(parts []msg.Part) (Reason, error) {
	r.deliver()
	if err := r.prompt(parts); err != nil {
		return Hooked, err
	}
	if r.a.empty() {
		return Failed, errNothing
	}
	for {
		if reason, err := r.stop(); reason != "" {
			return reason, err
		}
		ans := r.ask()
		r.act(ans)
		reason, err := r.judge(ans)
		if reason == Finished && (r.held() || r.lingers()) { // what came meanwhile wants an answer of its own
			reason, r.out.Structured = "", nil
			r.book.restructure()
		}
		if reason != "" {
			return reason, err
		}
		r.deliver()
	}
}

// stop says whether another request may be made, and if not why.
func (r *run) stop() (Reason, error) {
	if r.ctx.Err() != nil {
		return r.ended()
	}
	if err := r.halted(); err != nil {
		return Hooked, err
	}
	if r.above != nil {
		if reason, err := r.above.spent(); reason != "" {
			return reason, err
		}
	}
	if reason, err := r.spent(); reason != "" {
		return reason, err
	}
	if l := r.a.opt.Limits; l.Turns > 0 && int(r.turns.Load()) >= l.Turns {
		return MaxTurns, fmt.Errorf("the model was not done after %d turns, the limit of the run; raise it, or go on with the session", l.Turns)
	}
	return "", nil
}

// spent says which of the limits that count for subagents too is used up.
func (r *run) spent() (Reason, error) {
	l := r.a.opt.Limits
	switch {
	case l.Calls > 0 && r.book.calls() > l.Calls:
		return MaxCalls, fmt.Errorf("the model wanted more than %d calls, the limit of the run; raise it, or go on with the session", l.Calls)
	case l.Tokens > 0 && r.meter.tokens() >= l.Tokens:
		return MaxTokens, fmt.Errorf("the run used %d tokens, its limit is %d; raise it, or go on with the session", r.meter.tokens(), l.Tokens)
	}
	return "", nil
}

// ended says why the run's context did.
func (r *run) ended() (Reason, error) {
	cause := context.Cause(r.ctx)
	var log *broken
	switch {
	case errors.As(cause, &log):
		return Failed, log
	case errors.Is(cause, errWall):
		return MaxWall, fmt.Errorf("the run took %v, its limit; raise it, or go on with the session", r.a.opt.Limits.Wall)
	}
	return Interrupted, fmt.Errorf("interrupted: %w", cause)
}

// fail ends the run because the log does. What runs is cancelled.
func (r *run) fail(err error) {
	if err != nil {
		r.cancel(&broken{err})
	}
}

// say adds a message that is not the model's.
func (r *run) say(parts []msg.Part) {
	if len(parts) == 0 {
		return
	}
	m := msg.Message{Role: msg.User, Parts: parts}
	r.fail(r.a.message(m))
	r.a.add(m)
}

// deliver adds the messages that were queued, and what became of subagents.
func (r *run) deliver() {
	r.a.opt.Team.tell(r)
	r.a.mu.Lock()
	queued := r.a.queue
	r.a.queue = nil
	r.a.mu.Unlock()
	for _, parts := range queued {
		parts, blocked := r.screen(parts)
		if blocked != "" {
			r.a.emit(Noticed{"A hook blocked a message, so the model did not get it: " + blocked})
			continue
		}
		r.observe(parts)
		r.loops.forget() // the user may well want the same once more
		r.holds = 0
	}
}

// observe adds a message that nobody expects, and tells of it.
func (r *run) observe(parts []msg.Part) {
	r.say(parts)
	r.a.emit(Observed{msg.Message{Role: msg.User, Parts: parts}})
}

// more reports whether messages are waiting; if none are, and no subagent works
// that will bring one, none will be taken any more.
func (r *run) more() (more bool, working int) {
	news, working := r.a.opt.Team.pending()
	r.a.mu.Lock()
	defer r.a.mu.Unlock()
	more = len(r.a.queue) > 0 || news
	r.a.taking = more || working > 0
	return more, working
}

// close completes the outcome and the record.
func (r *run) close() {
	for more, _ := r.more(); more; more, _ = r.more() { // it ended with messages that the model has not seen: they are not lost
		r.deliver()
	}
	out := r.out
	r.book.close(out)
	out.Usage, out.Turns = r.meter.used(), int(r.turns.Load())
	out.Elapsed = time.Since(r.began)
	why := string(out.Reason)
	if out.Reason == Failed && out.Err != nil {
		why = out.Err.Error()
	}
	err := r.a.record(func(l *session.Log) error { return l.EndTurn(session.TurnEnd{Reason: why, Usage: out.Usage}) })
	if err == nil {
		return
	}
	var known *broken
	if !errors.As(out.Err, &known) {
		out.Err = errors.Join(out.Err, &broken{err})
	}
	if out.Reason == Finished {
		out.Reason = Failed
	}
}
