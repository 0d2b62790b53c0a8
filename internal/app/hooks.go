package app

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"

	"capstan/internal/agent"
	"capstan/internal/config"
	"capstan/internal/hook"
	"capstan/internal/msg"
	"capstan/internal/sched"
	"capstan/internal/tool"
)

// readHooks reads the hooks of the settings. One that cannot be understood is an
// error: it may be there to forbid something.
func (s *Session) readHooks(sections []config.Section) error {
	var sources []hook.Source
	for _, x := range sections {
		if x.Key == "hooks" {
			sources = append(sources, hook.Source{Value: x.Value, Where: func(path ...string) string { return x.At(path...).String() }})
		}
	}
	h, warnings, err := hook.Parse(sources)
	for _, w := range warnings {
		s.warn("%s", w)
	}
	if err != nil {
		return fmt.Errorf("reading the hooks of the settings: %w", err)
	}
	s.userHooks = h
	return nil
}

// hookVariables are the variables whose values HTTP hooks send, which are secrets.
func (s *Session) hookVariables() []string {
	if s.userHooks == nil {
		return nil
	}
	return slices.DeleteFunc(s.userHooks.Variables(), plainName.MatchString)
}

// addHooks puts the user's hooks on the path of calls. Without any, nothing is
// there that could cost something.
func (s *Session) addHooks(so *sched.Options) {
	if s.userHooks.Empty() {
		return
	}
	notice := s.opt.HookNotice
	if notice == nil {
		notice = s.opt.Notice
	}
	s.hooks = hook.New(s.userHooks, hook.Options{Dir: s.opt.Dir, Project: s.project, Environ: s.opt.Environ, Env: s.opt.Env, Shell: s.shell, Mode: s.ApprovalMode,
		Notice: func(text string) {
			if notice != nil {
				notice(s.Redact(text))
			}
		}})
	s.hooks.Begin(hook.Session{ID: rand.Text()}) // until a conversation has one
	so.Hooks = append(slices.Clip(so.Hooks), s.hooks)
	if so.Approver != nil {
		so.Approver = announcing{so.Approver, s.hooks}
	}
}

// announcing tells the hooks that a person is wanted, and asks the person.
type announcing struct {
	sched.Approver
	hooks *hook.Dispatcher
}

func (a announcing) Approve(ctx context.Context, q *sched.Question) (sched.Answer, error) {
	a.hooks.Notify("permission_prompt", "Capstan", "Capstan needs your permission to use "+q.Call.Name)
	return a.Approver.Approve(ctx, q)
}

// conversationHooks are the user's hooks as they see one conversation.
type conversationHooks struct {
	d      *hook.Dispatcher // nil when there are none
	source string           // startup or resume
	model  string

	mu      sync.Mutex
	started bool
	pending []string // what SessionStart says to the model, with the first prompt
}

// hooksOf begins the hooks of a conversation.
func (s *Session) hooksOf(c *Conversation, resumed bool) *conversationHooks {
	h := &conversationHooks{d: s.hooks, source: "startup", model: c.Model.String()}
	if resumed {
		h.source = "resume"
	}
	if h.d != nil {
		h.d.Begin(hook.Session{ID: c.ID, Transcript: c.log.Path()})
	}
	return h
}

// begin comes before each run, and SessionStart with the first.
func (h *conversationHooks) begin(ctx context.Context) {
	if h.d == nil {
		return
	}
	h.d.Resume()
	h.mu.Lock()
	first := !h.started
	h.started = true
	h.mu.Unlock()
	if !first {
		return
	}
	out := h.d.SessionStart(ctx, h.source, h.model)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pending = append(h.pending, out.Context...)
}

// end comes after the last run.
func (h *conversationHooks) end() {
	if h == nil || h.d == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.started {
		h.started = false
		h.d.SessionEnd("other")
	}
}

// agent is what the agent of the conversation asks.
func (h *conversationHooks) agent() agent.Hooks {
	if h.d == nil {
		return agent.Hooks{}
	}
	return agent.Hooks{Prompt: h.prompt, Batch: batchHook(h.d, nil), Halted: h.d.Halted,
		Stop: func(ctx context.Context, text string, again bool) agent.Steer {
			return stay(h.d.Stop(ctx, text, again))
		}}
}

func (h *conversationHooks) prompt(ctx context.Context, parts []msg.Part) agent.Steer {
	out := h.d.Prompt(ctx, msg.JoinText(parts))
	h.mu.Lock()
	defer h.mu.Unlock()
	s := agent.Steer{Add: append(h.pending, out.Context...)}
	switch {
	case out.Block:
		s.Block = out.Reason
	case out.Halt:
		s.Block = out.HaltReason
	default:
		h.pending = nil
	}
	return s
}

func batchHook(d *hook.Dispatcher, a *hook.Subagent) func(context.Context, []tool.Call, []msg.Result) agent.Steer {
	return func(ctx context.Context, calls []tool.Call, results []msg.Result) agent.Steer {
		return agent.Steer{Add: d.Batch(ctx, calls, results, a).Context}
	}
}

// stay is what the end of a turn makes of what its hooks said: a block or a
// context for the model means that it goes on, a halt that it does not.
func stay(out hook.Outcome) agent.Steer {
	s := agent.Steer{Add: out.Context}
	switch {
	case out.Halt:
		return agent.Steer{}
	case out.Block:
		s.Block = out.Reason
	case len(out.Context) > 0:
		s.Block, s.Add = out.Context[0], out.Context[1:]
	}
	return s
}

// Subagent begins the hooks of a subagent that the call a.CallID starts. It returns
// what its agent asks, what its model is told with its task, and why it may not
// begin, if a hook says so. transcript is the path of its record. gone is called
// when it is over.
func (s *Session) Subagent(ctx context.Context, a hook.Subagent, transcript string) (h agent.Hooks, said []string, blocked string, gone func()) {
	if s.hooks == nil {
		return agent.Hooks{}, nil, "", func() {}
	}
	out := s.hooks.SubagentStart(ctx, a)
	switch {
	case out.Block:
		blocked = out.Reason
	case out.Halt:
		blocked = out.HaltReason
	}
	h = agent.Hooks{Batch: batchHook(s.hooks, &a), Halted: s.hooks.Halted,
		Stop: func(ctx context.Context, text string, again bool) agent.Steer {
			return stay(s.hooks.SubagentStop(ctx, a, text, again, transcript))
		}}
	return h, out.Context, blocked, func() { s.hooks.SubagentGone(a) }
}
