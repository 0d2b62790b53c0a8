package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"capstan/internal/sched"
)

// A pick is a hook that runs for an event, and the names it is told of tools in.
type pick struct {
	h       *handler
	dialect dialect
}

// picks remembers the hooks for each tool, so that a call which no hook wants
// costs next to nothing.
type picks struct {
	mu  sync.RWMutex
	all map[pickKey][]pick
}

type pickKey struct {
	event Event
	tool  string
}

// forTool are the hooks of an event for a tool, in the order of the settings.
func (d *Dispatcher) forTool(ev Event, name string) []pick {
	if len(d.hooks.by[ev]) == 0 {
		return nil
	}
	key := pickKey{ev, name}
	d.picks.mu.RLock()
	found, ok := d.picks.all[key]
	d.picks.mu.RUnlock()
	if ok {
		return found
	}
	for _, h := range d.hooks.by[ev] {
		if dia, ok := h.matcher.tool(name); ok {
			found = append(found, pick{h, dia})
		}
	}
	found = distinct(found)
	d.picks.mu.Lock()
	defer d.picks.mu.Unlock()
	if d.picks.all == nil {
		d.picks.all = map[pickKey][]pick{}
	}
	d.picks.all[key] = found
	return found
}

// For names the hooks of an event that would be asked about a call of a tool, in
// their order. None is run.
func (d *Dispatcher) For(ev Event, tool string) []string {
	var names []string
	for _, p := range d.forTool(ev, tool) {
		names = append(names, p.h.String())
	}
	return names
}

// forWord are the hooks of an event that is not about a tool.
func (d *Dispatcher) forWord(ev Event, word string) []pick {
	var found []pick
	for _, h := range d.hooks.by[ev] {
		if h.matcher.word(word) {
			found = append(found, pick{h, claude})
		}
	}
	return distinct(found)
}

// distinct leaves out hooks that do what an earlier one does. Of those a required
// one stays.
func distinct(list []pick) []pick {
	var out []pick
	for _, p := range list {
		i := slices.IndexFunc(out, func(o pick) bool { return o.dialect == p.dialect && o.h.same(p.h) })
		switch {
		case i < 0:
			out = append(out, p)
		case p.h.required && !out[i].h.required:
			out[i] = p
		}
	}
	return out
}

// An Outcome is what the hooks of one event said together. The strictest word
// wins; where several say something, the order is that of the settings.
type Outcome struct {
	Decision sched.Decision // on a call
	Reason   string         // of the decision or the block
	By       string         // the hook that decided
	Args     json.RawMessage
	Output   json.RawMessage // in place of the tool's own
	// Block says that the event's subject is refused: a prompt, a compaction, a
	// subagent. After a call it is word to the model, at the end of a turn it means
	// that the turn goes on.
	Block   bool
	Context []string // for the model, each with the hook that it is from
	// Halt says that the run is to end, and HaltReason why; it is never empty then.
	Halt       bool
	HaltReason string
}

// fire runs hooks for an event, all at once, and merges what they say. name is
// the tool that it is about, or empty; payload gives what a hook is told.
func (d *Dispatcher) fire(ctx context.Context, ev Event, picked []pick, name string, payload func(dialect) *payload) Outcome {
	var ready []pick
	for _, p := range picked {
		if !p.h.once || p.h.done.CompareAndSwap(false, true) {
			ready = append(ready, p)
		}
	}
	if len(ready) == 0 {
		return Outcome{}
	}
	var encoded [2]func() []byte
	for dia := range encoded {
		encoded[dia] = sync.OnceValue(func() []byte {
			in := payload(dialect(dia))
			d.common(ev, in)
			return marshal(in)
		})
	}
	replies := make([]reply, len(ready))
	var all sync.WaitGroup
	for i, p := range ready {
		in := encoded[p.dialect]()
		if p.h.async {
			d.later(p.h, in)
			continue
		}
		all.Go(func() { replies[i] = d.ask(ctx, d.slots, p.h, in) })
	}
	all.Wait()
	return d.merge(ev, name, ready, replies)
}

// later runs a hook that nobody waits for.
func (d *Dispatcher) later(h *handler, in []byte) {
	if d.life.Err() != nil {
		return
	}
	d.running.Go(func() {
		r := d.ask(d.life, d.background, h, in)
		if r.err != nil && !r.gone {
			d.fault(h, "failed: %s", clean(r.err.Error()))
		}
		d.remark(h, &r)
	})
}

// ask runs one hook. It never panics and ends soon after ctx does.
func (d *Dispatcher) ask(ctx context.Context, slots chan struct{}, h *handler, in []byte) (r reply) {
	defer func() {
		if p := recover(); p != nil {
			r = reply{err: fmt.Errorf("running it failed: %v\n%s", p, debug.Stack())}
		}
	}()
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return reply{err: context.Cause(ctx), gone: true}
	}
	if h.url != "" {
		r = d.post(ctx, h, in)
	} else {
		r = d.command(ctx, h, in)
	}
	r.gone = r.err != nil && ctx.Err() != nil
	return r
}

// errPlain is of a hook that printed something else than its JSON, a line of a log
// before it, say: nobody knows what it decided.
var errPlain = errors.New("it printed what is not the JSON of a hook (write logs to standard error)")

// merge makes one outcome of the replies, in their order.
func (d *Dispatcher) merge(ev Event, name string, ran []pick, replies []reply) Outcome {
	var out Outcome
	var reasons []string
	var rewrote *handler
	for i := range replies {
		r, p := &replies[i], ran[i]
		if p.h.async {
			continue
		}
		if p.h.required && r.err == nil && r.plain && judges(ev) {
			r.err = errPlain
		}
		if r.err != nil {
			d.failed(ev, name, p.h, r)
			if p.h.required {
				*r = unanswered(ev, p.h, r.err)
			}
		}
		d.remark(p.h, r)
		if r.halt {
			if r.stop == "" {
				r.stop = fmt.Sprintf("the hook %q ended the run and gave no reason", p.h.label)
			}
			if !out.Halt {
				out.Halt, out.HaltReason = true, r.stop
			}
			if judges(ev) {
				r.decision, r.reason = sched.Deny, r.stop
			}
		}
		strict := r.decision > out.Decision
		if strict {
			reasons, out.Decision, out.By = nil, r.decision, fmt.Sprintf("%s hook %s", ev, p.h)
		}
		out.Block = out.Block || r.block
		if r.block || r.decision == out.Decision && r.decision > sched.Abstain {
			reasons = append(reasons, why(p.h, r))
		}
		if r.context != "" {
			out.Context = append(out.Context, fmt.Sprintf("%s hook %q: %s", ev, p.h.label, r.context))
		}
		if r.output != nil {
			out.Output = r.output
		}
		if r.args != nil && r.decision != sched.Deny {
			args := p.dialect.back(name, r.args)
			if rewrote != nil && string(out.Args) != string(args) {
				d.fault(p.h, "rewrites what %s has rewritten too; this one counts, since it comes later in the settings", rewrote)
			}
			out.Args, rewrote = args, p.h
		}
	}
	if out.Decision >= sched.Deny {
		out.Args = nil
	}
	out.Reason = strings.Join(slices.Compact(reasons), "\n")
	return out
}

// why is the reason of a reply, for the model or the person.
func why(h *handler, r *reply) string {
	switch {
	case r.reason != "" || r.decision == sched.Allow:
		return r.reason
	case r.decision == sched.Ask:
		return fmt.Sprintf("the hook %q wants it to be asked about", h.label)
	}
	return fmt.Sprintf("the hook %q blocked it and gave no reason", h.label)
}

// failed tells of a hook that gave no usable answer, and what that means: whoever
// wrote it to forbid something must not believe that it did (BUG-HK-03).
func (d *Dispatcher) failed(ev Event, name string, h *handler, r *reply) {
	if r.gone && errors.Is(r.err, context.Canceled) {
		return
	}
	kept := ""
	switch {
	case h.required:
	case ev == PreToolUse:
		kept = "; " + name + " was NOT blocked by it (only exit code 2 or a deny blocks; \"required\": true blocks when a hook fails)"
	case ev == UserPromptSubmit:
		kept = "; the prompt was NOT blocked by it"
	}
	d.fault(h, "failed: %s%s", clean(r.err.Error()), kept)
}

// remark passes on what a hook has to say to the person.
func (d *Dispatcher) remark(h *handler, r *reply) {
	for _, n := range r.notes {
		d.fault(h, "%s", n)
	}
	if r.message != "" {
		d.notice("the hook %s says: %s", h, r.message)
	}
}
