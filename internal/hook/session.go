package hook

import (
	"context"
	"time"

	"capstan/internal/msg"
	"capstan/internal/tool"
)

// SessionStart tells that a conversation begins, or is gone on with when source
// is "resume" instead of "startup". Its Context is for the model.
func (d *Dispatcher) SessionStart(ctx context.Context, source, model string) Outcome {
	return d.tell(ctx, SessionStart, source, func(dialect) *payload { return &payload{Source: source, Model: model} })
}

// SessionEnd tells that a conversation is over. It has a time of its own, since
// what ran before may have been cancelled.
func (d *Dispatcher) SessionEnd(reason string) {
	picked := d.forWord(SessionEnd, reason)
	if len(picked) == 0 {
		return
	}
	longest := time.Duration(0)
	for _, p := range picked {
		longest = max(longest, p.h.timeout)
	}
	ctx, stop := context.WithTimeout(context.Background(), longest+endTimeout)
	defer stop()
	d.fire(ctx, SessionEnd, picked, "", func(dialect) *payload { return &payload{Reason: reason} })
}

// Prompt asks about a prompt of the user's before anything is done with it. A
// Block means that the model does not get it.
func (d *Dispatcher) Prompt(ctx context.Context, text string) Outcome {
	return d.tell(ctx, UserPromptSubmit, "", func(dialect) *payload { return &payload{Prompt: &text} })
}

// Batch tells that all calls of an answer have settled, with what the model
// reads of them. A Block ends the run, as does a Halt.
func (d *Dispatcher) Batch(ctx context.Context, calls []tool.Call, results []msg.Result, agent *Subagent) Outcome {
	out := d.tell(ctx, PostToolBatch, "", func(dia dialect) *payload {
		in := &payload{}
		in.of(agent)
		for i := range calls {
			c := &calls[i]
			in.Calls = append(in.Calls, batchCall{dia.name(c.Name), dia.input(c.Name, valid(c.Args), d.dir()), c.ID, msg.JoinText(results[i].Parts)})
		}
		return in
	})
	if out.Block {
		d.halt(out.Reason)
	}
	return out
}

// Stop asks whether a run may end with what the model said last. A Block means
// that it goes on, for Reason; again says that this was so before. A Halt is a
// wish to end, and counts more.
func (d *Dispatcher) Stop(ctx context.Context, last string, again bool) Outcome {
	return d.ending(ctx, Stop, "", func(dialect) *payload { return &payload{Last: &last, Active: &again} })
}

// SubagentStart tells of a subagent before it begins. A Block keeps it from
// beginning, the Context is for its model. Until SubagentGone its calls, and those
// of its programs, are told with its id and type.
func (d *Dispatcher) SubagentStart(ctx context.Context, a Subagent) Outcome {
	d.mu.Lock()
	d.subagents[a.ID] = a
	d.mu.Unlock()
	return d.tell(ctx, SubagentStart, a.Type, func(dialect) *payload {
		in := &payload{}
		in.of(&a)
		return in
	})
}

// SubagentStop is Stop for a subagent. transcript is the path of its record.
func (d *Dispatcher) SubagentStop(ctx context.Context, a Subagent, last string, again bool, transcript string) Outcome {
	return d.ending(ctx, SubagentStop, a.Type, func(dialect) *payload {
		in := &payload{Last: &last, Active: &again, AgentTrail: transcript}
		in.of(&a)
		return in
	})
}

// SubagentGone forgets a subagent whose calls are all over.
func (d *Dispatcher) SubagentGone(a Subagent) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.subagents, a.ID)
}

// PreCompact asks whether the conversation may be compacted. trigger is "manual"
// or "auto", instructions are the person's.
func (d *Dispatcher) PreCompact(ctx context.Context, trigger, instructions string) Outcome {
	return d.tell(ctx, PreCompact, trigger, func(dialect) *payload { return &payload{Trigger: trigger, Custom: &instructions} })
}

// Notify tells that a person is wanted. Nobody waits for these hooks. kind is a
// word of Claude Code's, permission_prompt for example.
func (d *Dispatcher) Notify(kind, title, message string) {
	for _, p := range d.forWord(Notification, kind) {
		if p.h.once && !p.h.done.CompareAndSwap(false, true) {
			continue
		}
		in := &payload{Kind: kind, Title: title, Message: message}
		d.common(Notification, in)
		d.later(p.h, marshal(in))
	}
}

// tell fires an event that is not about one call.
func (d *Dispatcher) tell(ctx context.Context, ev Event, word string, in func(dialect) *payload) Outcome {
	out := d.ending(ctx, ev, word, in)
	if out.Halt {
		d.halt(out.HaltReason)
	}
	return out
}

// ending fires an event at the end of something: that a hook wants it to end is
// no news.
func (d *Dispatcher) ending(ctx context.Context, ev Event, word string, in func(dialect) *payload) Outcome {
	picked := d.forWord(ev, word)
	if len(picked) == 0 {
		return Outcome{}
	}
	return d.fire(ctx, ev, picked, "", in)
}

func (in *payload) of(a *Subagent) {
	if a != nil {
		in.AgentID, in.AgentType, in.ParentID = a.ID, a.Type, a.CallID
	}
}
