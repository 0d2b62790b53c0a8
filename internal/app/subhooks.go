package app

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"capstan/internal/agent"
	"capstan/internal/hook"
	"capstan/internal/msg"
	"capstan/internal/tool"
)

// ownHooks are the hooks of a definition, which run for its subagents only, or why
// they cannot be understood.
type ownHooks struct {
	hooks *hook.Hooks
	err   error
}

// hasHooks says whether a definition has hooks that are not switched off.
func (s *Session) hasHooks(x *agent.Definition) bool {
	return x.Hooks != nil && !s.set.HooksOff && !(x.HooksProject && s.set.ProjectHooksOff)
}

func (s *Session) definitionHooks(x *agent.Definition) hook.Source {
	src := hook.Source{Value: x.Hooks, Where: func(...string) string { return x.HooksFrom }}
	if x.HooksProject {
		src.Withheld = s.providerKeys()
	}
	return src
}

// readAgentHooks reads the hooks of the definitions. One that cannot be understood
// may be there to forbid something, so it costs its agent, and no other.
func (s *Session) readAgentHooks() {
	s.agentHooks = map[string]ownHooks{}
	for _, k := range s.agents.Kinds() {
		x, err := s.agents.Find(k.Name)
		if err != nil || !s.hasHooks(x) {
			continue // the first is told already
		}
		src := s.definitionHooks(x)
		src.Subagent = true
		self := s.self != nil && s.self.Name == x.Name
		if self { // the session has the others, for its subagents too
			src.Value = onlyStop(x.Hooks)
		}
		h, warnings, err := hook.Parse([]hook.Source{src})
		for _, w := range warnings {
			if !self {
				s.warn("agents: %s", w)
			}
		}
		if err != nil {
			s.warn("agents: %s cannot be used: its hooks cannot be understood: %s", x.Name, strings.ReplaceAll(err.Error(), "\n", "; "))
		}
		s.agentHooks[x.Name] = ownHooks{h, err}
	}
}

// onlyStop leaves of hooks those of Stop.
func onlyStop(hooks json.RawMessage) json.RawMessage {
	var in map[string]json.RawMessage
	if json.Unmarshal(hooks, &in) != nil || in["Stop"] == nil {
		return json.RawMessage("{}")
	}
	out, err := json.Marshal(map[string]json.RawMessage{"Stop": in["Stop"]})
	if err != nil {
		return hooks
	}
	return out
}

// ownDispatcher returns the dispatcher of a definition's own hooks, for one of its
// subagents; nil when it has none. mode is its approval mode.
func (s *Session) ownDispatcher(x *agent.Definition, mode func() string) (*hook.Dispatcher, error) {
	own := s.agentHooks[x.Name]
	if own.err != nil {
		return nil, fmt.Errorf("the agent %s cannot be used until its hooks are mended: %w", x.Name, own.err)
	}
	if own.hooks == nil || own.hooks.Empty() {
		return nil, nil
	}
	return s.dispatcher(own.hooks, mode), nil
}

// subHooks are the hooks that concern one subagent: the user's, and those of its
// definition.
type subHooks []*hook.Dispatcher

func (s *Session) subHooks(own *hook.Dispatcher) (h subHooks) {
	for _, d := range []*hook.Dispatcher{s.hooks, own} {
		if d != nil {
			h = append(h, d)
		}
	}
	return h
}

// begin is what a member asks when it sets to work; nil when there are no hooks. A
// hook of its definition that ends the run ends its work, and no more than that.
func (s *Session) begin(own *hook.Dispatcher) func(context.Context, agent.Work) agent.Beginning {
	h := s.subHooks(own)
	if h == nil {
		return nil
	}
	return func(ctx context.Context, w agent.Work) agent.Beginning {
		if own != nil {
			own.Resume()
		}
		a := hook.Subagent{ID: w.Agent, Type: w.Kind, CallID: w.Call}
		b := agent.Beginning{End: func() {
			for _, d := range h {
				d.SubagentGone(a)
			}
		}}
		for _, d := range h {
			out := d.SubagentStart(ctx, a)
			b.Add = append(b.Add, out.Context...)
			switch {
			case out.Block:
				b.Block = out.Reason
			case out.Halt:
				b.Block = out.HaltReason
			}
			if b.Block != "" {
				return b
			}
		}
		b.Hooks = agent.Hooks{Halted: h.halted,
			Batch: func(ctx context.Context, calls []tool.Call, results []msg.Result) (all agent.Steer) {
				for _, d := range h {
					all.Add = append(all.Add, d.Batch(ctx, calls, results, &a).Context...)
				}
				return all
			},
			Stop: func(ctx context.Context, text string, again bool) agent.Steer {
				return h.stop(ctx, a, text, again, w.Record)
			},
		}
		return b
	}
}

// stop asks all whether the subagent may end. One that wants it to end counts more
// than one that does not.
func (h subHooks) stop(ctx context.Context, a hook.Subagent, text string, again bool, record string) (all agent.Steer) {
	for _, d := range h {
		out := d.SubagentStop(ctx, a, text, again, record)
		if out.Halt {
			return agent.Steer{}
		}
		switch one := stay(out); {
		case one.Block == "":
		case all.Block == "":
			all = one
		default:
			all.Add = append(append(all.Add, one.Block), one.Add...)
		}
	}
	return all
}

func (h subHooks) halted() string {
	for _, d := range h {
		if why := d.Halted(); why != "" {
			return why
		}
	}
	return ""
}
