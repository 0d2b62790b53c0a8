package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"capstan/internal/agent"
	"capstan/internal/builtin"
	"capstan/internal/codemode"
	"capstan/internal/msg"
	"capstan/internal/session"
	"capstan/internal/telemetry"
	"capstan/internal/tool"
)

// AgentOptions say what conversation to lead.
type AgentOptions struct {
	Model string // as --model has it; empty: the session's, else the settings'
	// Continue goes on with the workspace's newest session, Resume with the one
	// whose id begins so.
	Continue bool
	Resume   string
	// System replaces what Capstan says of itself in the system prompt, Append
	// is added to it. Nil is neither.
	System, Append *string
	// Headless says that nobody can be asked.
	Headless bool
	Limits   agent.Limits
	Emit     func(agent.Event)
	Version  string // of Capstan
}

// A Conversation is an agent with its model and its record.
type Conversation struct {
	*agent.Agent
	Model *Model
	ID    string // of the session
	// Notes are what a person should know: what was damaged in a resumed
	// session and repaired, which files of conventions cannot be used.
	Notes []string

	log   *session.Log
	seen  *builtin.Seen
	hooks *conversationHooks
	otlp  *telemetry.Exporter // nil when spans go nowhere
	team  *agent.Team
	left  func() // says what is left behind
}

// Recorded reports whether there is a record that the session can be resumed
// from.
func (c *Conversation) Recorded() bool { return c.log.Recorded() }

// Run is that of the agent, and keeps in the record which files the session has
// read: when it goes on they need not be read again before an edit.
func (c *Conversation) Run(ctx context.Context, parts []msg.Part) *agent.Outcome {
	c.hooks.begin(ctx)
	out := c.Agent.Run(ctx, parts)
	if files, fresh := c.seen.Fresh(); fresh {
		_ = c.log.Set(seenKey, files) // a record that fails says so at its end, and files can be read again
	}
	return out
}

// seenKey is the key under which a session's record keeps the files that it has
// read.
const seenKey = "seen"

// Close ends the record. The error says that its end could not be written.
func (c *Conversation) Close() error {
	err := c.team.Close()
	c.hooks.end()
	if c.left != nil {
		c.left()
	}
	if c.otlp != nil {
		ctx, cancel := context.WithTimeout(context.Background(), otlpPatience)
		defer cancel()
		c.otlp.Close(ctx)
	}
	c.Model.Close()
	return errors.Join(err, c.log.Close())
}

// Agent returns the agent of a new or a resumed conversation. It asks the model
// nothing yet, and records nothing but another model than the session's.
func (s *Session) Agent(ctx context.Context, o AgentOptions) (*Conversation, error) {
	if o.Continue && o.Resume != "" {
		return nil, &UsageError{errors.New("--continue and --resume: give one of them")}
	}
	sessions, err := store(s.opt.Env, s.home, s.project, s.Redact)
	if err != nil {
		return nil, err
	}
	prefix, told := o.Resume, len(s.Warnings)
	if o.Continue {
		newest, err := sessions.Newest()
		if err != nil {
			return nil, fmt.Errorf("--continue: %w", err)
		}
		prefix = newest.ID
	}
	c := &Conversation{seen: &s.seen, team: s.team, left: s.leftWorktree}
	if o.Model == "" && s.self != nil {
		o.Model = s.self.Model
	}
	if s.self != nil && s.self.MaxTurns > 0 && o.Limits.Turns == 0 {
		o.Limits.Turns = s.self.MaxTurns
	}
	if s.self != nil && s.self.Wall > 0 && o.Limits.Wall == 0 {
		o.Limits.Wall = s.self.Wall
	}
	state := &session.State{}
	if prefix == "" {
		if c.Model, err = s.Model(ctx, o.Model); err != nil {
			return nil, err
		}
		c.log = sessions.Create(session.Header{Dir: s.opt.Dir, Version: o.Version, Model: c.Model.String(), Mode: string(s.mode)})
	} else if state, err = s.resume(ctx, sessions, prefix, o.Model, c); err != nil {
		return nil, err
	}
	c.ID = c.log.ID()
	if err := s.keepTodos(state, c.log); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	s.restoreSeen(state)
	if note := s.returnToWorktree(ctx, state, c.log); note != "" {
		c.Notes = append(c.Notes, note)
	}
	memory, warnings := agent.LoadMemory(agent.MemoryOptions{Home: s.home, Root: s.project, Dir: s.opt.Dir, Hidden: s.rules.Hidden})
	c.Notes = append(append(c.Notes, warnings...), s.Warnings[told:]...)
	if err := s.telemetry(c, o.Version); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	ao := agent.Options{
		Provider: c.Model.Provider, Family: c.Model.Family, Model: c.Model.Name,
		System: s.prompt(o, memory), Team: s.team, View: s.View, Await: s.awaitCalls, Sched: s.calls, Log: c.log, History: state.Messages,
		Hosted: c.Model.Hosted, Limits: o.Limits, Structured: s.opt.Structured, Emit: c.observed(s.startingServers(s.ahead(o.Emit))),
	}
	c.hooks = s.hooksOf(c, prefix != "")
	ao.Hooks = c.hooks.agent()
	if s.structured != nil {
		ao.ReadStructured = s.structured.Read
	}
	c.Agent = agent.New(ao)
	codemode.Recall(c.Agent.Runtime().Reviews(), state.Messages)
	return c, nil
}

// resume opens a recorded session. Its own model goes on with it when no other
// was asked for.
func (s *Session) resume(ctx context.Context, sessions *session.Store, prefix, model string, c *Conversation) (*session.State, error) {
	log, state, err := sessions.Resume(prefix)
	if errors.Is(err, session.ErrNotFound) || errors.Is(err, session.ErrAmbiguous) {
		return nil, fmt.Errorf("--resume: %w; 'capstan sessions list --all' lists them", err)
	}
	if err != nil {
		return nil, err
	}
	if err = s.goOnIn(state.Header.Mode); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	if model == "" {
		model, err = s.recorded(lastModel(state))
	}
	if err == nil {
		c.Model, err = s.Model(ctx, model)
	}
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	if now := c.Model.String(); now != lastModel(state) {
		if err := log.Set(modelKey, now); err != nil {
			c.Model.Close()
			return nil, errors.Join(err, log.Close())
		}
	}
	c.log, c.Notes = log, state.Notes
	return state, nil
}

// goOnIn changes to the mode that a session began in, unless --mode says
// otherwise: a model that has written programs so far should not find its way to
// the tools changed by a setting.
func (s *Session) goOnIn(began string) error {
	mode, err := tool.ParseMode(began)
	if err != nil || s.opt.Mode != "" || mode == s.mode {
		return nil // a header of another version names no mode that we know
	}
	if s.set.Mode != "" {
		s.warn("the session goes on in %s mode, in which it began, and not in %s mode as the settings say; --mode changes it", mode, s.mode)
	}
	s.mode = mode
	var exec []tool.Tool
	if s.wantsExec() {
		exec = append(exec, s.newExec())
	}
	if err := s.Registry.Replace(func(sp *tool.Spec) bool { return sp.Name == tool.ExecName }, exec...); err != nil {
		return err
	}
	s.withdraw()
	return s.checkExcluded()
}

// modelKey is the key under which a session's record keeps its model, once that is
// not the one that it began with.
const modelKey = "model"

// lastModel returns the model that a session was held with last.
func lastModel(state *session.State) string {
	var model string
	if json.Unmarshal(state.Values[modelKey], &model) != nil || model == "" {
		return state.Header.Model
	}
	return model
}

// recorded returns the model that a session was held with, if its provider is
// still there. Without that, the name could fit another endpoint, and a conversation
// that was held at one would be sent to the other.
func (s *Session) recorded(model string) (string, error) {
	name, _, ok := strings.Cut(model, "/")
	if !ok {
		return model, nil
	}
	if e, err := s.endpoint(name); err != nil || e != nil {
		return model, err
	}
	return "", &UsageError{fmt.Errorf("the session was held with %s, and there is no provider %q now: choose a model with --model", model, name)}
}

// todos is the key under which a session's record keeps the task list.
const todos = "todos"

// keepTodos gives todo_write the list that the session left, and the record to
// keep it in.
func (s *Session) keepTodos(state *session.State, log *session.Log) error {
	o := builtin.TodoOptions{Save: func(list []builtin.Todo) error { return log.Set(todos, list) }}
	if raw := state.Values[todos]; raw != nil {
		if err := json.Unmarshal(raw, &o.List); err != nil {
			o.List = nil // a list of another version: the conversation still has it
		}
	}
	loop := s.loop(o)
	ours := map[string]bool{}
	for _, t := range loop {
		ours[t.Spec().Name] = true
	}
	return s.Registry.Replace(func(sp *tool.Spec) bool { return ours[sp.Name] }, loop...)
}

// ahead starts the child of the next program when the model begins to answer: it
// is ready when the answer has a call, and the first request has not waited for it.
func (s *Session) ahead(emit func(agent.Event)) func(agent.Event) {
	started := false // events come one at a time
	return func(e agent.Event) {
		if _, ok := e.(agent.Streamed); ok && !started && s.mode != tool.Direct {
			started = true
			s.runner.Prespawn()
		}
		if emit != nil {
			emit(e)
		}
	}
}

// restoreSeen takes over which files the session has read. A file that was read
// in a run that crashed is not among them.
func (s *Session) restoreSeen(state *session.State) {
	var files []builtin.SeenFile
	if json.Unmarshal(state.Values[seenKey], &files) == nil {
		s.seen.Restore(files)
	}
}

// prompt returns what makes the system prompt. Date and memory are those of the
// beginning: a prompt that changes costs the provider's cache. Tools and the
// approval mode are those of now, for they decide what the prompt may ask for.
func (s *Session) prompt(o AgentOptions, memory []agent.MemoryFile) func() string {
	s.told = agent.PromptOptions{
		Dir: s.opt.Dir, Root: s.project, Added: s.added, Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Today:    time.Now().Format(time.DateOnly),
		Headless: o.Headless, System: o.System, Append: o.Append, Memory: memory,
	}
	p := s.told
	if s.self != nil {
		p.Role = s.self.Prompt
	}
	return func() string {
		p.View, p.Approval = s.View(), s.ApprovalMode()
		p.Dir, p.Root = s.where()
		return agent.Prompt(p)
	}
}

// ApprovalMode returns the approval mode in force, as --approval-mode spells it.
func (s *Session) ApprovalMode() string { return string(s.rules.Mode()) }

// Mode returns how tools are presented: direct, code or both.
func (s *Session) Mode() string { return string(s.mode) }
