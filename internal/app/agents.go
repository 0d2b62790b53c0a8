package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"capstan/internal/agent"
	"capstan/internal/builtin"
	"capstan/internal/policy"
	"capstan/internal/tool"
)

// loadAgents reads the definitions of agents, and makes the session that of the
// one that it was asked for. The mode of --mode goes before that of the
// definition, and this before the settings' (ruling 1).
func (s *Session) loadAgents() error {
	var warnings []string
	s.agents, warnings = agent.LoadDefinitions(agent.DefinitionOptions{Home: s.home, Root: s.project, Trusted: s.trusted})
	s.Warnings = append(s.Warnings, warnings...)
	if !s.opt.Program {
		s.team = agent.NewTeam(agent.TeamOptions{Kinds: s.startable, Make: s.member, Left: func(id string) []string { return builtin.RunningJobs(s.jobs, id) }})
	}
	if s.opt.Agent == "" {
		return nil
	}
	x, err := s.kind(s.opt.Agent)
	if err != nil {
		return &UsageError{fmt.Errorf("--agent: %w", err)}
	}
	s.self = x
	if s.opt.Mode == "" {
		s.mode = tool.ModeFor(x.Mode, s.mode)
	}
	scope := tool.Preset{Scope: s.scope}.Under(x.Scope())
	s.scope, s.excluded = scope, scope.Disallow
	return nil
}

// kind returns the definition of an agent that can be run.
func (s *Session) kind(name string) (*agent.Definition, error) {
	x, err := s.agents.Find(name)
	if err == nil && x.Description == "" {
		err = fmt.Errorf("%s is a preset, from which others inherit, and has no description: it cannot be run", x.Name)
	}
	return x, err
}

// startable returns the kinds of agent that the session's own may start: not those
// whose hooks cannot be read.
func (s *Session) startable() []*agent.Definition {
	return slices.DeleteFunc(s.agents.Kinds(), func(x *agent.Definition) bool {
		return s.agentHooks[x.Name].err != nil || s.self != nil && !s.self.MayStart(x.Name)
	})
}

// wantsExec says whether somebody in the session writes programs: its own agent,
// or one that may be started.
func (s *Session) wantsExec() bool {
	if s.mode != tool.Direct {
		return true
	}
	return s.team != nil && slices.ContainsFunc(s.agents.Kinds(), func(x *agent.Definition) bool {
		whole, err := s.agents.Find(x.Name)
		return err == nil && whole.Mode != "" && whole.Mode != tool.Direct
	})
}

// SubagentView returns what a subagent of a kind may see and call.
func (s *Session) SubagentView(x *agent.Definition) *tool.View {
	return s.Registry.View(tool.ModeFor(x.Mode, s.mode), s.below(x.Scope()))
}

// below is the scope of a subagent: what the session has and own allows.
func (s *Session) below(own tool.Scope) tool.Scope {
	scope := tool.Preset{Scope: s.scope}.Under(own)
	scope.Subagent = true
	return scope
}

// member makes the options of a subagent. Mode, scope, model and approval mode
// are those of its definition where it has them, else the session's (ruling 1);
// what decides about calls is the session's, or stricter.
func (s *Session) member(ctx context.Context, o agent.Order, base agent.Options) (*agent.Member, error) {
	if s.self != nil && !s.self.MayStart(o.Kind) {
		return nil, fmt.Errorf("the agent %s may not start %s: of its tools, Agent names %s", s.self.Name, o.Kind, cmp.Or(strings.Join(s.self.Starts, ", "), "none"))
	}
	if o.Kind == agent.Fork {
		m := s.fork(o, base)
		m.Begin = s.begin(nil)
		return m, nil
	}
	x, err := s.kind(o.Kind)
	if err != nil {
		return nil, err
	}
	approval := s.ApprovalMode
	if x.Approval != "" {
		rules := s.rules.Under(policy.Mode(x.Approval))
		base.Sched.Policy, approval = rules, func() string { return string(rules.Mode()) }
	}
	own, err := s.ownDispatcher(x, approval)
	if err != nil {
		return nil, err
	}
	m := &agent.Member{Kind: x.Name, Background: x.Background, Begin: s.begin(own), Close: func() {}}
	if own != nil {
		m.Close = own.Close
		base.Sched.Hooks = append(slices.Clip(base.Sched.Hooks), own)
	}
	if x.Model != "" && !modelAlias(x.Model) {
		model, err := s.Model(ctx, x.Model)
		if err != nil {
			m.Close()
			return nil, fmt.Errorf("the model of the agent %s: %w", x.Name, err)
		}
		base.Provider, base.Family, base.Model, base.Hosted = model.Provider, model.Family, model.Name, model.Hosted
		closeHooks := m.Close
		m.Close = func() { closeHooks(); model.Close() }
	}
	base.View = func() *tool.View { return s.SubagentView(x) }
	base.Limits.Turns, base.Limits.Wall = x.MaxTurns, x.Wall
	if x.Silent {
		base.Sched.Approver = nil
	}
	base.System = s.subPrompt(base.View, approval, x.Prompt)
	m.Options = base
	return m, nil
}

// fork makes a copy of the session's agent. With the tools that it inherits it is
// sent what its lead is sent, byte for byte; the executor alone knows what a
// subagent has not (S0-211, S0-212). With a list of its own it is declared what
// that leaves (S0-213, S1-083).
func (s *Session) fork(o agent.Order, base agent.Options) *agent.Member {
	own := tool.Scope{}
	if o.Tools != nil {
		own.Allow = []string{}
		for _, name := range o.Tools {
			own.Allow = append(own.Allow, meant(name)...)
		}
	}
	base.View = func() *tool.View { return s.Registry.View(s.mode, s.below(own)) }
	if o.Tools == nil {
		base.Declared = s.View
	} else {
		base.System = s.subPrompt(base.View, s.ApprovalMode, "")
	}
	return &agent.Member{Kind: agent.Fork, Options: base}
}

// subPrompt makes the system prompt of a subagent. What the user put in the place
// of who Capstan is concerns the session's own agent only.
func (s *Session) subPrompt(view func() *tool.View, approval func() string, role string) func() string {
	p := s.told
	p.System, p.Role, p.Subagent = nil, role, true
	return func() string {
		p.View, p.Approval = view(), approval()
		p.Dir, p.Root = s.where()
		return agent.Prompt(p)
	}
}

// modelAlias says whether a name is one by which definitions of Claude Code choose
// among the models of one provider. Here they mean the session's model.
func modelAlias(name string) bool {
	return slices.Contains([]string{"sonnet", "opus", "haiku", "fable", "best", "default", "opusplan"}, strings.TrimSuffix(strings.ToLower(name), "[1m]"))
}

// Agents returns the kinds of agent that can be started, by name.
func (s *Session) Agents() []*agent.Definition { return s.agents.Kinds() }

// Definition returns the definition of a kind of agent, with all that it inherits.
func (s *Session) Definition(name string) (*agent.Definition, error) {
	x, err := s.agents.Find(name)
	if err != nil {
		return nil, fmt.Errorf("%w; 'capstan agents list' names them", err)
	}
	return x, nil
}

// agentWarnings says of the loaded definitions what would surprise who wrote
// them: tools that there are not, a model that is another one here.
func (s *Session) agentWarnings() {
	for _, x := range s.agents.Kinds() {
		if x.Path == "" {
			continue
		}
		if modelAlias(x.Model) {
			s.warn("agents: %s: the model %s is the session's here; name one as PROVIDER/NAME for another", x.Path, x.Model)
		}
		if x.Approval != "" && agent.Stricter(x.Approval, s.ApprovalMode()) != x.Approval {
			s.warn("agents: %s: its approval mode %s is laxer than the session's, %s, which counts", x.Path, x.Approval, s.ApprovalMode())
		}
		if odd := s.unknownTools(append(slices.Clone(x.Tools), x.Disallowed...)); odd != nil {
			s.warn("agents: %s: there are no tools %s; 'capstan tools list' names those that there are", x.Path, strings.Join(odd, ", "))
		}
	}
}

// unknownTools are the names in a list that mean nothing here. Those of other
// products' tools and of servers' are no mistake.
func (s *Session) unknownTools(list []string) (odd []string) {
	var names, known []string
	for _, e := range s.Registry.Tools() {
		names = append(names, e.Spec().Name)
	}
	for _, n := range tool.AllRuleNames() {
		known = append(known, tool.RuleNames(n)...)
	}
	for _, p := range list {
		head, pattern := strings.CutSuffix(p, "*")
		ok := strings.HasPrefix(p, "mcp__") || !tool.ForSubagents(p) || slices.Contains(known, p) || p == tool.ExecName || p == tool.ToolCallName ||
			slices.ContainsFunc(names, func(n string) bool { return n == p || pattern && strings.HasPrefix(n, head) })
		if !ok {
			odd = append(odd, p)
		}
	}
	return odd
}
