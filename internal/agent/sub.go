package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"capstan/internal/msg"
	"capstan/internal/sched"
	"capstan/internal/session"
	"capstan/internal/tool"
)

const (
	maxAtOnce    = 8   // subagents that run at once; more wait for a place, in order
	maxTasks     = 100 // that are kept, with their conversations
	maxSubTurns  = 200 // of a subagent whose definition says nothing
	maxNewsChars = 8000
)

// A Team is the subagents of one conversation (ruling 17). A subagent leads a
// conversation of its own, with its own scope, and works within one Run of its
// lead: what the lead is interrupted by ends it too, its calls and tokens count
// for the lead's limits, and no Run ends before its subagents have. Subagents
// start no others.
type Team struct {
	opt    TeamOptions
	lead   *Agent
	places chan struct{} // one is held while a subagent runs

	mu    sync.Mutex
	tasks []*task // by the time at which they were started
	next  int
}

// TeamOptions configure a Team.
type TeamOptions struct {
	// Kinds returns the kinds of agent that can be started, beside Fork.
	Kinds func() []*Definition
	// Make completes the options of a subagent, which begin as those of its lead,
	// without its record, history and limits.
	Make func(ctx context.Context, o Order, base Options) (*Member, error)
	// Left names the jobs that a subagent left running, by its id. Nil: none.
	Left func(agent string) []string
}

// An Order is a subagent that is wanted.
type Order struct {
	Kind string // a name of Kinds, or Fork
	// Tools are those of a fork; nil means those of its lead.
	Tools []string
	View  *tool.View // the lead's
}

// A Member is a subagent that can begin.
type Member struct {
	Kind       string // as its definition spells it
	Options    Options
	Background bool   // it never works in the foreground
	Close      func() // frees what Make took; nil is fine
	// Begin is asked before it sets to work, on its first task and on each that it
	// is given later: what hooks are for. Nil: nobody is asked.
	Begin func(ctx context.Context, w Work) Beginning
}

// Work is what a subagent is about to do.
type Work struct {
	Agent  string // its id
	Kind   string
	Call   string // for which it works: the ParentID of its model's calls
	Record string // the path of its record; empty when there is none
}

// A Beginning is what hooks say of a subagent that is about to work.
type Beginning struct {
	Block string   // not empty: it may not, and why
	Add   []string // for its model, beside the task
	Hooks Hooks    // of this work
	End   func()   // called when the work is over, or was not begun; nil is fine
}

// NewTeam returns a Team. It works once an Agent has it in its Options.
func NewTeam(o TeamOptions) *Team {
	return &Team{opt: o, places: make(chan struct{}, maxAtOnce)}
}

// A task is a subagent and what it works on.
type task struct {
	team  *Team
	id    string // agent_1
	kind  string
	title string
	agent *Agent
	free  func()
	begin func(context.Context, Work) Beginning

	// Guarded by team.mu.
	call       string // under which it works
	above      *run   // for which
	background bool
	waiting    bool     // for a place
	out        *Outcome // of its work, once that has ended
	last       *Outcome // of the work before, too
	stop       context.CancelCauseFunc
	done       chan struct{} // closed when it does not work any more
	told       bool          // its lead's model knows how it ended, in the background
	turns      int
	calls      int
	did        []string // what it changed, most of it
	more       int      // and how much else
}

// under is the run for which a subagent works.
func (t *task) under() *run {
	t.team.mu.Lock()
	defer t.team.mu.Unlock()
	return t.above
}

// callID is the call for which a subagent works, for traces; empty of the lead.
func (t *task) callID() string {
	if t == nil {
		return ""
	}
	t.team.mu.Lock()
	defer t.team.mu.Unlock()
	return t.call
}

// outer is the id that a call of the agent's model has in its session: two
// subagents may well use the same. inner is the one in the agent's own record.
func (a *Agent) outer(id string) string {
	if a.sub == nil || id == "" {
		return id
	}
	return a.sub.id + "/" + id
}

func (t *task) inner(id string) string {
	if t == nil {
		return id
	}
	return strings.TrimPrefix(id, t.id+"/")
}

// innerParent is the parent of a call in the agent's own record: its model's
// have none.
func (t *task) innerParent(id string) string {
	if t != nil && !strings.HasPrefix(id, t.id+"/") {
		return ""
	}
	return t.inner(id)
}

// children are the subagents that work for a run.
type children struct {
	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

// add takes one up, unless the run is about to end.
func (c *children) add() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.wg.Add(1)
	}
	return !c.closed
}

// endChildren ends what still works for the run, and waits for it.
func (r *run) endChildren() {
	r.below.mu.Lock()
	r.below.closed = true
	r.below.mu.Unlock()
	r.a.opt.Team.stopAll(r)
	r.below.wg.Wait()
}

var (
	errStopped = errors.New("it was stopped")
	errNoRun   = errors.New("the run that it would work for is at its end")
	errWorks   = errors.New("it works already")
	errRunOver = errors.New("the run that it worked for ended")
)

// An assignment is what a call of agent asks for.
type assignment struct {
	order         Order
	title, prompt string
	background    bool
	call          string
}

// start makes a subagent and sets it to work. ctx ends its work, unless that is
// in the background.
func (tm *Team) start(ctx context.Context, as assignment) (*task, error) {
	above := tm.lead.current()
	if above == nil {
		return nil, errNoRun
	}
	t := &task{team: tm, title: as.title}
	if err := tm.enlist(t); err != nil {
		return nil, err
	}
	base := tm.lead.opt
	base.Log, base.History, base.Limits, base.Structured, base.ReadStructured, base.Team, base.Declared, base.Emit = nil, nil, Limits{}, nil, nil, nil, nil, nil
	base.Hooks = Hooks{} // the lead's are about what a person says and reads
	m, err := tm.opt.Make(ctx, as.order, base)
	if err != nil {
		tm.discharge(t)
		return nil, err
	}
	t.kind, t.free, t.begin = m.Kind, m.Close, m.Begin
	o := m.Options
	o.Emit = t.emit
	if o.Limits.Turns == 0 {
		o.Limits.Turns = maxSubTurns
	}
	if as.order.Kind == Fork {
		o.History = tm.lead.History()
	}
	if tm.lead.opt.Log != nil {
		o.Log = tm.lead.opt.Log.Sub(session.Header{Model: o.Family + "/" + o.Model, Mode: string(o.View().Mode()), Call: as.call, Agent: t.id, AgentType: t.kind})
	}
	t.agent = newAgent(o)
	t.agent.sub = t
	if as.order.Kind == Fork {
		t.agent.cache = tm.lead.cache
	}
	t.agent.rt = tm.lead.rt.Sub(t.id, t.agent.sched())
	return t, tm.set(ctx, t, as.call, above, as.background || m.Background, []msg.Part{msg.TextPart(as.prompt)})
}

// enlist gives a task its id and its place in the list.
func (tm *Team) enlist(t *task) error {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	if len(tm.tasks) == maxTasks {
		i := slices.IndexFunc(tm.tasks, func(o *task) bool { return o.out != nil && (o.told || !o.background) })
		if i < 0 {
			return fmt.Errorf("%d subagents work or wait already: wait for one with task_output, or stop one with task_stop", maxTasks)
		}
		if err := tm.tasks[i].release(); err != nil {
			return fmt.Errorf("ending the record of %s: %w", tm.tasks[i].id, err)
		}
		tm.tasks = slices.Delete(tm.tasks, i, i+1)
	}
	if tm.next == 0 { // a session that goes on has had some
		tm.next = startedBefore(tm.lead.opt.History)
	}
	tm.next++
	t.id = fmt.Sprintf("agent_%d", tm.next)
	tm.tasks = append(tm.tasks, t)
	return nil
}

// startedBefore counts the calls of agent in a history.
func startedBefore(history []msg.Message) (n int) {
	for i := range history {
		for _, c := range history[i].Calls() {
			if c.Name == tool.AgentName {
				n++
			}
		}
	}
	return n
}

// discharge takes a task out of the list that never began.
func (tm *Team) discharge(t *task) {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	tm.tasks = slices.DeleteFunc(tm.tasks, func(o *task) bool { return o == t })
}

// release frees what a subagent holds that does not work any more.
func (t *task) release() error {
	if t.free != nil {
		t.free()
	}
	if t.agent == nil || t.agent.opt.Log == nil {
		return nil
	}
	return t.agent.opt.Log.Close()
}

// Close ends the records of the subagents, once no Run is under way. The error
// says which could not be ended.
func (tm *Team) Close() error {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	var errs []error
	for _, t := range tm.tasks {
		if err := t.release(); err != nil {
			errs = append(errs, fmt.Errorf("ending the record of %s: %w", t.id, err))
		}
	}
	tm.tasks = nil
	return errors.Join(errs...)
}

// set sets a subagent to work, in a goroutine that the run waits for.
func (tm *Team) set(ctx context.Context, t *task, call string, above *run, background bool, parts []msg.Part) error {
	if !above.below.add() {
		if t.ended() == nil { // it never began
			tm.discharge(t)
			return errors.Join(errNoRun, t.release())
		}
		return errNoRun
	}
	if background {
		ctx = above.ctx
	}
	tm.mu.Lock()
	if t.done != nil && t.out == nil {
		tm.mu.Unlock()
		above.below.wg.Done()
		return errWorks
	}
	ctx, stop := context.WithCancelCause(ctx)
	t.call, t.above, t.background, t.waiting, t.out, t.told = call, above, background, true, nil, false
	t.stop, t.done = stop, make(chan struct{})
	tm.mu.Unlock()
	t.agent.Queue(parts) // messages that come before it begins stand behind it
	go func() {
		defer above.below.wg.Done()
		defer stop(nil)
		t.finish(t.work(ctx))
	}()
	return nil
}

// work waits for a place and does the work. One that panics fails alone.
func (t *task) work(ctx context.Context) (out *Outcome) {
	select {
	case t.team.places <- struct{}{}:
	case <-ctx.Done():
		return &Outcome{Reason: Interrupted, Err: fmt.Errorf("it was not begun: %w", context.Cause(ctx))}
	}
	defer func() { <-t.team.places }()
	defer func() {
		if p := recover(); p != nil {
			out = &Outcome{Reason: Failed, Err: fmt.Errorf("it crashed: %v", p)}
		}
	}()
	t.team.mu.Lock()
	t.waiting = false
	t.team.mu.Unlock()
	if t.begin == nil {
		return t.agent.Run(ctx, nil)
	}
	b := t.begin(ctx, t.job())
	if b.End != nil {
		defer b.End()
	}
	if b.Block != "" && ctx.Err() == nil {
		return &Outcome{Reason: Hooked, Err: fmt.Errorf("it was not begun, because a hook refused it: %s", b.Block)}
	}
	t.agent.opt.Hooks = b.Hooks // nothing of it runs
	if parts := added(b.Add); parts != nil {
		t.agent.Queue(parts)
	}
	return t.agent.Run(ctx, nil)
}

// job is what it is about to work on, for hooks.
func (t *task) job() Work {
	w := Work{Agent: t.id, Kind: t.kind, Call: t.callID()}
	if log := t.agent.opt.Log; log != nil {
		w.Record = log.Path()
	}
	return w
}

// finish notes how the work ended.
func (t *task) finish(out *Outcome) {
	t.team.mu.Lock()
	t.out, t.last, t.waiting = out, out, false
	close(t.done)
	t.team.mu.Unlock()
	t.team.lead.rouse()
}

// emit passes on what happens in a subagent, and keeps what its lead will want to
// know.
func (t *task) emit(e Event) {
	lead := t.team.lead
	if c, ok := e.(Called); ok {
		t.note(c)
		lead.emit(c)
		return
	}
	t.team.mu.Lock()
	if _, ok := e.(Asked); ok {
		t.turns++
	}
	call := t.call
	t.team.mu.Unlock()
	lead.emit(Delegated{Agent: t.id, Kind: t.kind, Call: call, Event: e})
}

// maxDid is how many changes of a subagent are named.
const maxDid = 20

func (t *task) note(c Called) {
	if c.Event.Kind != sched.Settled {
		return
	}
	e := t.agent.opt.View().Visible(c.Event.Call.Name)
	t.team.mu.Lock()
	defer t.team.mu.Unlock()
	t.calls++
	if c.Event.Result.Status != tool.Success || e == nil || e.Spec().Class != tool.Ordinary {
		return
	}
	switch e.Spec().Effect {
	case tool.EffectNone, tool.EffectRead:
		return
	}
	if len(t.did) == maxDid {
		t.more++
		return
	}
	t.did = append(t.did, clip(c.Event.Call.Name+" "+string(c.Event.Call.Args), 160))
}

// stopAll ends the subagents that work for a run, which is nil-safe: most agents
// have none.
func (tm *Team) stopAll(r *run) {
	if tm == nil {
		return
	}
	tm.mu.Lock()
	defer tm.mu.Unlock()
	for _, t := range tm.tasks {
		if t.above == r && t.out == nil && t.stop != nil {
			t.stop(errRunOver)
		}
	}
}

// pending reports whether the lead's model has to be told of an end, and how many
// subagents work in the background.
func (tm *Team) pending() (news bool, working int) {
	if tm == nil {
		return false, 0
	}
	tm.mu.Lock()
	defer tm.mu.Unlock()
	for _, t := range tm.tasks {
		switch {
		case !t.background || t.stop == nil:
		case t.out == nil:
			working++
		case !t.told:
			news = true
		}
	}
	return news, working
}

// Working returns how many subagents work or wait for a place.
func (tm *Team) Working() (n int) {
	if tm == nil {
		return 0
	}
	tm.mu.Lock()
	defer tm.mu.Unlock()
	for _, t := range tm.tasks {
		if t.out == nil {
			n++
		}
	}
	return n
}

// tell puts the ends of which the model does not know yet into the history, as one
// message.
func (tm *Team) tell(r *run) {
	if tm == nil {
		return
	}
	tm.mu.Lock()
	var ended []*task
	for _, t := range tm.tasks {
		if t.background && t.out != nil && !t.told {
			t.told = true
			ended = append(ended, t)
		}
	}
	tm.mu.Unlock()
	var texts []string
	for _, t := range ended {
		texts = append(texts, t.news())
	}
	if texts != nil {
		r.nudge("%s", strings.Join(texts, "\n\n"))
	}
}

// lingers waits, when the model is done, for the subagents that work in the
// background: they are told of before the run ends. It reports whether the model
// has to go on.
func (r *run) lingers() bool {
	for said := false; ; {
		more, working := r.more()
		if more || working == 0 {
			return more
		}
		if reason, _ := r.stop(); reason != "" && r.ctx.Err() == nil {
			return false // nobody could be told any more
		}
		if !said {
			said = true
			r.a.emit(Noticed{fmt.Sprintf("The model is done, but %s in the background: the run waits.", atWork(working))})
		}
		select {
		case <-r.a.wake:
		case <-r.ctx.Done():
			return true
		}
	}
}

func atWork(n int) string {
	if n == 1 {
		return "a subagent works"
	}
	return fmt.Sprintf("%d subagents work", n)
}
