package agent

import (
	"context"
	"fmt"
	"slices"

	"capstan/internal/msg"
	"capstan/internal/tool"
)

// Hooks are the points of a run at which hooks of the user's may speak. One that
// is nil is not asked. They are called one at a time, and what they cannot do in
// time they have to bound themselves. Hooks of single calls are sched's.
type Hooks struct {
	// Prompt is asked about each prompt of the user's before the model gets it,
	// queued ones too. A Block keeps it from the model, the history and the log.
	Prompt func(ctx context.Context, parts []msg.Part) Steer
	// Batch is told that the calls of an answer have settled. A Block means
	// nothing here.
	Batch func(ctx context.Context, calls []tool.Call, results []msg.Result) Steer
	// Stop is asked when the run would end with an answer. A Block is what the
	// model is told in place of that. again says that it was told so before.
	Stop func(ctx context.Context, text string, again bool) Steer
	// Halted returns why a hook wants the run to end now; empty when none does.
	// It is asked before each request.
	Halted func() string
}

// A Steer is what hooks said at a point of a run.
type Steer struct {
	Block string   // not empty: no, and why
	Add   []string // for the model
}

// maxHeld is how often in a row Stop may keep a run from ending: a hook that is
// never content must not keep it for ever.
const maxHeld = 8

// fromHook marks what a hook has written.
const fromHook = "[From a hook, not from the user] "

// screen asks the hooks about a prompt. It returns it with what they add, or why
// they block it.
func (r *run) screen(parts []msg.Part) ([]msg.Part, string) {
	ask := r.a.opt.Hooks.Prompt
	if ask == nil || len(parts) == 0 {
		return parts, ""
	}
	ctx := r.ctx
	if ctx.Err() != nil { // what was queued goes into the history of an interrupted run
		ctx = context.WithoutCancel(ctx)
	}
	s := ask(ctx, parts)
	if s.Block != "" {
		return nil, s.Block
	}
	return append(slices.Clip(parts), added(s.Add)...), ""
}

func added(texts []string) (parts []msg.Part) {
	for _, t := range texts {
		parts = append(parts, msg.TextPart(fromHook+t))
	}
	return parts
}

// prompt adds the prompt of the run.
func (r *run) prompt(parts []msg.Part) error {
	parts, blocked := r.screen(parts)
	if blocked != "" {
		return fmt.Errorf("a hook blocked the prompt, so the model did not get it: %s", blocked)
	}
	r.say(parts)
	return nil
}

// batch tells the hooks of the calls that were made.
func (r *run) batch(calls []tool.Call, results []msg.Result) {
	tell := r.a.opt.Hooks.Batch
	if tell == nil || r.ctx.Err() != nil {
		return
	}
	if parts := added(tell(r.ctx, calls, results).Add); parts != nil {
		r.observe(parts)
	}
}

// halted returns why a hook wants the run to end.
func (r *run) halted() error {
	if ask := r.a.opt.Hooks.Halted; ask != nil {
		if why := ask(); why != "" {
			return fmt.Errorf("a hook ended the run: %s", why)
		}
	}
	return nil
}

// held asks the hooks whether the run may end, and tells the model when not.
func (r *run) held() bool {
	ask := r.a.opt.Hooks.Stop
	if ask == nil || r.ctx.Err() != nil || r.waiting() {
		return false
	}
	s := ask(r.ctx, r.out.Text, r.holds > 0)
	if s.Block == "" || r.ctx.Err() != nil {
		return false
	}
	if r.holds++; r.holds > maxHeld {
		r.a.emit(Noticed{fmt.Sprintf("A hook kept the run from ending %d times in a row; now it ends all the same. The last time it said: %s", maxHeld, clip(s.Block, 500))})
		return false
	}
	r.observe(added(append([]string{s.Block}, s.Add...)))
	return true
}

// waiting reports whether messages of the user's are waiting.
func (r *run) waiting() bool {
	r.a.mu.Lock()
	defer r.a.mu.Unlock()
	return len(r.a.queue) > 0
}
