package agent

import (
	"bytes"
	"context"
	"strings"

	"capstan/internal/msg"
	"capstan/internal/sched"
	"capstan/internal/session"
	"capstan/internal/tool"
)

// record writes to the session's log, when there is one. What could not be
// recorded must not be relied on.
func (a *Agent) record(write func(*session.Log) error) error {
	if a.opt.Log == nil {
		return nil
	}
	return write(a.opt.Log)
}

// message records a message.
func (a *Agent) message(m msg.Message) error {
	return a.record(func(l *session.Log) error { return l.Message(m) })
}

// add appends to the history. Calls and their results are added together, so
// that it is complete at every moment.
func (a *Agent) add(messages ...msg.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.history = append(a.history, messages...)
}

func (a *Agent) emit(e Event) {
	if a.opt.Emit == nil {
		return
	}
	a.emitting.Lock()
	defer a.emitting.Unlock()
	a.opt.Emit(e)
}

// current is the run under way, or nil.
func (a *Agent) current() *run {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.run
}

// begin records that a call starts, before its body does. When it may change
// something, the record is on the disk then. A call that cannot be recorded is
// not run, and ends the run.
func (a *Agent) begin(ctx context.Context, q *sched.Request) error {
	if a.opt.Sched.Begin != nil {
		if err := a.opt.Sched.Begin(ctx, q); err != nil {
			return err
		}
	}
	parent := a.sub.innerParent(q.Call.ParentID)
	r, start := a.current(), session.Start{ID: a.sub.inner(q.Call.ID), Name: q.Call.Name, ParentID: parent, Mutates: mutates(q)}
	// The arguments of a model's call stand in its message, unless a hook has
	// changed them.
	if parent != "" || r == nil || !bytes.Equal(r.book.admitted(q.Call.ID), q.Call.Args) {
		start.Args = string(q.Call.Args)
	}
	err := a.record(func(l *session.Log) error { return l.Start(start) })
	if err != nil && r != nil {
		r.fail(err)
	}
	return err
}

// mutates reports whether a call may change something that a restart has to
// know of. exec itself does not; each call that it makes is asked about.
func mutates(q *sched.Request) bool {
	switch q.Entry.Spec().Effect {
	case tool.EffectNone, tool.EffectRead:
		return len(q.Access.Writes) > 0
	}
	return true
}

// observe follows each call: it counts it, records its result and passes the
// event on.
func (a *Agent) observe(e sched.Event) {
	r := a.current()
	if r != nil {
		r.book.see(&e, a.pace)
		if r.above != nil {
			r.above.book.see(&e, nil)
		}
	}
	if e.Kind == sched.Decided {
		err := a.record(func(l *session.Log) error { return l.Decision(decision(&e)) })
		if err != nil && r != nil {
			r.fail(err)
		}
	}
	var result *msg.Result
	if e.Kind == sched.Settled {
		settled := outcome(e.Result)
		result = &settled
		logged := settled
		logged.CallID = a.sub.inner(settled.CallID)
		err := a.record(func(l *session.Log) error { return l.Result(a.sub.innerParent(e.Call.ParentID), logged) })
		if err != nil && r != nil {
			r.fail(err)
		}
	}
	if a.opt.Sched.Observe != nil {
		a.opt.Sched.Observe(e)
	}
	a.emit(Called{e, result})
}

// pace says what it means when a call of a tool takes long: job_output is there
// to wait for what happens elsewhere, and a command may do so. A person or a
// program that takes its time is no progress.
func (a *Agent) pace(name string) pace {
	e := a.opt.View().Visible(name)
	switch {
	case e == nil || e.Spec().Class != tool.Ordinary:
		return working
	case e.Spec().Waits:
		return waiting
	}
	return lingering
}

// outcome is a result as the model reads it and the log keeps it. What was
// done to the arguments is said in it (ruling 14), and what the tool has to remark.
func outcome(r *tool.Result) msg.Result {
	out := msg.Result{CallID: r.CallID, Name: r.Name, Status: string(r.Status), Code: r.Code, Parts: r.Parts}
	if len(r.Notes) > 0 {
		note := msg.TextPart("[The arguments did not fit as they were. " + strings.Join(r.Notes, "; ") + ".]")
		out.Parts = append(out.Parts[:len(out.Parts):len(out.Parts)], note)
	}
	if len(r.Remarks) > 0 {
		note := msg.TextPart("[" + strings.Join(r.Remarks, "; ") + ".]")
		out.Parts = append(out.Parts[:len(out.Parts):len(out.Parts)], note)
	}
	return out
}
