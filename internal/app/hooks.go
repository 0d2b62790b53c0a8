package app

import (
	"context"
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

// readHooks reads the hooks of the settings, and those of the agent that the session
// is. One that cannot be understood is an error: it may be there to forbid
// something.
func (s *Session) readHooks(sections []config.Section) error {
	var sources []hook.Source
	for _, x := range sections {
		if x.Key == "hooks" {
			src := hook.Source{Value: x.Value, Where: func(path ...string) string { return x.At(path...).String() }}
			if x.From.OfFolder() {
				src.Withheld = s.providerKeys()
			}
			sources = append(sources, src)
		}
	}
	if s.self != nil && s.hasHooks(s.self) {
		own := s.definitionHooks(s.self)
		if _, _, err := hook.Parse([]hook.Source{own}); err != nil {
			return &UsageError{fmt.Errorf("--agent: the hooks of %s cannot be used: %w", s.self.Name, err)}
		}
		sources = append(sources, own)
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

// providerKeys are the variables that hold the user's keys for models. Hooks that
// come with a folder are not given them, trusted or not: they say where they go.
func (s *Session) providerKeys() []string {
	var names []string
	for _, f := range families() {
		names = append(names, f.keyVar)
	}
	for _, p := range s.set.Providers {
		if p.From.OfFolder() {
			continue
		}
		if p.KeyEnv != "" {
			names = append(names, p.KeyEnv)
		}
		for _, h := range p.Headers {
			for _, ref := range variable.FindAllStringSubmatch(h.Value, -1) {
				names = append(names, ref[1])
			}
		}
	}
	return names
}

// hookVariables are the variables whose values HTTP hooks send, which are secrets.
func (s *Session) hookVariables() []string {
	var names []string
	if s.userHooks != nil {
		names = s.userHooks.Variables()
	}
	for _, own := range s.agentHooks {
		if own.hooks != nil {
			names = append(names, own.hooks.Variables()...)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), plainName.MatchString)
}

// addHooks puts the user's hooks on the path of calls. Without any, nothing is
// there that could cost something.
func (s *Session) addHooks(so *sched.Options) {
	if s.userHooks.Empty() {
		return
	}
	s.hooks = s.dispatcher(s.userHooks, s.ApprovalMode)
	so.Hooks = append(slices.Clip(so.Hooks), s.hooks)
}

// dispatcher returns one for hooks. mode is the approval mode that they are told.
func (s *Session) dispatcher(h *hook.Hooks, mode func() string) *hook.Dispatcher {
	notice := s.opt.HookNotice
	if notice == nil {
		notice = s.opt.Notice
	}
	d := hook.New(h, hook.Options{Where: s.workingDir, Project: s.project, Environ: s.opt.Environ, Env: s.opt.Env, Shell: s.shell, Mode: mode,
		Notice: func(text string) {
			if notice != nil {
				notice(s.Redact(text))
			}
		}})
	d.Begin(s.talk)
	return d
}

// An AskedHook is a hook that would be asked about a call.
type AskedHook struct {
	Event hook.Event `json:"event"`
	Hook  string     `json:"hook"` // its name and where it stands
}

// askedHooks returns the hooks that would be asked about a call of a tool, and where
// the rules ask, those that would be asked for an answer. None is run.
func (s *Session) askedHooks(tool string, rules sched.Decision) []AskedHook {
	asked := []AskedHook{}
	if s.hooks == nil {
		return asked
	}
	events := []hook.Event{hook.PreToolUse}
	if rules == sched.Ask {
		events = append(events, hook.PermissionRequest)
	}
	for _, ev := range events {
		for _, name := range s.hooks.For(ev, tool) {
			asked = append(asked, AskedHook{ev, name})
		}
	}
	return asked
}

// announced puts the hooks before a surface that asks a person. What stands before
// it and answers by rules wants no person, and tells no hook.
func (s *Session) announced(surface sched.Approver) sched.Approver {
	if s.hooks == nil {
		return surface
	}
	return announcing{surface, s.hooks}
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
	s.talk = hook.Session{ID: c.ID, Transcript: c.log.Path()}
	h := &conversationHooks{d: s.hooks, source: "startup", model: c.Model.String()}
	if resumed {
		h.source = "resume"
	}
	if h.d != nil {
		h.d.Begin(s.talk)
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
