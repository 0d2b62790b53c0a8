package tool

import (
	"fmt"
	"slices"
	"strings"
)

// Mode is how a scope presents its tools to a model. The zero Mode means that
// nothing was declared; ModeFor turns it into Direct.
type Mode string

// The modes of ruling 1. Seed 0 calls Direct and Code `direct` and
// `code_mode_only`, seed 2 calls them `native` and `code`.
const (
	Direct Mode = "direct" // the model calls the tools
	Code   Mode = "code"   // the model writes programs for exec; the collapse is in force
	Both   Mode = "both"   // either
)

// ParseMode reads a mode as settings and flags spell it.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case Direct, Code, Both:
		return m, nil
	}
	return "", fmt.Errorf("unknown mode %q: want direct, code or both", s)
}

// ModeFor returns the mode of a scope: the first that is declared, given the
// nearest first (agent, preset, global: S2-018), and Direct when none is.
func ModeFor(declared ...Mode) Mode {
	for _, m := range declared {
		if m != "" {
			return m
		}
	}
	return Direct
}

// Class says which side of a program's boundary a tool lives on.
type Class int

// The classes. An Ordinary tool can be called from programs; everything else
// needs a line in this file or a Spec that says so (S0-065 to S0-067).
const (
	Ordinary Class = iota
	Control        // for the model alone: its life cannot be hidden inside a program
	Gateway        // dispatches other calls
	Hidden         // resolved by the executor, dispatched by nobody
)

// Names that the exposure policy knows.
const (
	ExecName       = "exec"
	ToolSearchName = "tool_search"
	ToolCallName   = "tool_call"
	AgentName      = "agent"
)

// controls is the one list of direct controls (S0-052, ruling 17). The second
// half is reserved: whoever registers such a tool gets a control.
var controls = map[string]bool{
	"ask_user_question": true, AgentName: true, "send_message": true, "list_agents": true,
	"task_list": true, "task_output": true, "task_stop": true,
	"structured_output": true, "enter_plan_mode": true, "exit_plan_mode": true,
	"enter_worktree": true, "exit_worktree": true, ToolSearchName: true,

	"update_goal": true, "team_create": true, "team_delete": true,
	"create_sub_session": true, "cron_create": true, "cron_list": true, "cron_delete": true,
}

// notForSubagents is the one list of what no subagent has, whatever its
// definition says (S3-031 to S3-035, ruling 17): what would start another agent
// or work on a schedule, so that the depth is 1, and what belongs to the
// conversation with the user: questions to them, its answer, its mode, its
// place.
var notForSubagents = map[string]bool{
	AgentName: true, "send_message": true, "list_agents": true,
	"task_list": true, "task_output": true, "task_stop": true,
	"team_create": true, "team_delete": true, "create_sub_session": true,
	"cron_create": true, "cron_list": true, "cron_delete": true,
	"ask_user_question": true, "structured_output": true, "update_goal": true,
	"enter_plan_mode": true, "exit_plan_mode": true, "enter_worktree": true, "exit_worktree": true,
}

// ForSubagents says whether a subagent may have a tool of this name at all.
func ForSubagents(name string) bool { return !notForSubagents[name] }

// classOf is the class that counts, and the one that a tool is registered
// under: reserved names keep theirs whatever the Spec says.
func classOf(sp *Spec) Class {
	switch {
	case sp.Name == ExecName:
		return Gateway
	case sp.Name == ToolCallName:
		return Hidden
	case controls[sp.Name]:
		return Control
	}
	return sp.Class
}

// reach is what exposure decides about one tool in one scope.
type reach struct {
	direct bool // the model may call it by name, and it is declared
	nested bool // a program may call it
	bridge bool // in direct mode: the model reaches it through tool_call
}

// exposure is THE policy of what may be called from where: the table of ruling
// 2. Declarations, Resolve, Bindings, Searchable and every text about them
// follow from it. What it does not know, it does not expose.
func exposure(m Mode, s *scope, sp *Spec) reach {
	if !s.admits(sp) {
		return reach{}
	}
	hidden := s.deferred(sp)
	switch class := classOf(sp); {
	case sp.Name == ToolCallName:
		return reach{direct: m == Direct && s.search && s.lazy}
	case sp.Name == ToolSearchName:
		return reach{direct: m != Direct || s.lazy}
	case class == Control:
		return reach{direct: true}
	case class == Gateway:
		return reach{direct: m == Code || m == Both}
	case class != Ordinary:
		return reach{}
	case m == Code:
		return reach{nested: true}
	case m == Both: // without exec, what is deferred could be called by nobody
		return reach{direct: !hidden || !s.exec, nested: true}
	case m == Direct: // nor without the bridge
		return reach{direct: !hidden || !s.bridge(), bridge: hidden && s.bridge()}
	}
	return reach{}
}

// A Scope narrows what one agent may see and call. The zero Scope narrows
// nothing. It is enforced by the executor, not only shown (S0-208).
type Scope struct {
	// Allow names the tools of the scope; nil means all, and an empty list none
	// at all. An entry is a name, a server (`mcp__github`) or a pattern with `*`
	// at its end. exec and tool_search are gateways to what is allowed, so they
	// need no entry; a bridge or exec itself never becomes callable from a
	// program by one (S0-209, S0-210).
	Allow []string
	// Disallow takes tools away, in the same spelling (S3-036, S3-037). It
	// beats Allow, and can take away exec and tool_search too.
	Disallow []string
	// Eager, when not nil, decides which ordinary tools are shown: those that it
	// names, and no others. Visible shows deferred tools all the same. Neither
	// changes what may be called.
	Eager, Visible []string
	// Servers says that MCP servers are configured, so that there may be
	// something to search for before any of them has answered.
	Servers bool
	// Subagent says that the agent works for another one: what ForSubagents is
	// false for is no part of the scope, whatever Allow names.
	Subagent bool
}

// clone returns a Scope that shares nothing with s.
func (s *Scope) clone() Scope {
	out := *s
	for _, list := range []*[]string{&out.Allow, &out.Disallow, &out.Eager, &out.Visible} {
		*list = slices.Clone(*list)
	}
	return out
}

// equal says whether two scopes are spelled alike.
func (s *Scope) equal(o *Scope) bool {
	return (s.Allow == nil) == (o.Allow == nil) && slices.Equal(s.Allow, o.Allow) &&
		slices.Equal(s.Disallow, o.Disallow) &&
		(s.Eager == nil) == (o.Eager == nil) && slices.Equal(s.Eager, o.Eager) &&
		slices.Equal(s.Visible, o.Visible) && s.Servers == o.Servers && s.Subagent == o.Subagent
}

// A Preset is a named scope with a mode, from which an agent inherits.
type Preset struct {
	Name  string
	Mode  Mode // empty: inherited
	Scope Scope
}

// Under returns the scope of an agent that inherits from p: what both allow,
// without what either disallows.
func (p Preset) Under(s Scope) Scope {
	out := s
	switch {
	case s.Allow == nil:
		out.Allow = p.Scope.Allow
	case p.Scope.Allow != nil:
		out.Allow = intersect(s.Allow, p.Scope.Allow)
	}
	out.Disallow = append(append([]string(nil), p.Scope.Disallow...), s.Disallow...)
	if out.Eager == nil {
		out.Eager = p.Scope.Eager
	}
	if out.Visible == nil {
		out.Visible = p.Scope.Visible
	}
	out.Servers = s.Servers || p.Scope.Servers
	out.Subagent = s.Subagent || p.Scope.Subagent
	return out
}

// intersect keeps the entries of either list that the other one covers. Two
// entries overlap only when one covers the other, so nothing is lost.
func intersect(a, b []string) []string {
	out := []string{}
	for _, x := range a {
		if newMatcher(b).covers(x) {
			out = append(out, x)
		}
	}
	for _, y := range b {
		if !newMatcher(out).covers(y) && newMatcher(a).covers(y) {
			out = append(out, y)
		}
	}
	return out
}

// scope is a Scope made ready to be asked ten thousand times.
type scope struct {
	allow, disallow, eager, visible matcher
	narrow, pick                    bool // Allow, Eager were given
	none                            bool // Allow is empty: there is nothing that a gateway could lead to
	sub                             bool // of a subagent
	code                            bool // programs are the only way to a tool

	// exec, search and call say that exec, tool_search and tool_call are
	// registered and admitted; lazy that something is deferred or a server
	// configured, which is when direct mode has a use for searching. They are
	// facts of the registry that a view fills in.
	exec, search, call, lazy bool
}

// bridge says that a deferred tool can be found and then called in direct mode.
func (s *scope) bridge() bool { return s.search && s.call }

// note takes in one registered tool.
func (s *scope) note(sp *Spec) {
	if !s.admits(sp) {
		return
	}
	switch sp.Name {
	case ExecName:
		s.exec = true
	case ToolSearchName:
		s.search = true
	case ToolCallName:
		s.call = true
	}
	s.lazy = s.lazy || s.deferred(sp)
}

func newScope(m Mode, s Scope) *scope {
	return &scope{
		allow: newMatcher(s.Allow), disallow: newMatcher(s.Disallow),
		eager: newMatcher(s.Eager), visible: newMatcher(s.Visible),
		narrow: s.Allow != nil, none: s.Allow != nil && len(s.Allow) == 0, pick: s.Eager != nil, code: m == Code, lazy: s.Servers, sub: s.Subagent,
	}
}

func (s *scope) admits(sp *Spec) bool {
	if s.disallow.match(sp) || s.none || s.sub && notForSubagents[sp.Name] {
		return false
	}
	return !s.narrow || s.allow.match(sp) || sp.Name == ExecName || sp.Name == ToolSearchName || sp.Name == ToolCallName
}

// deferred says whether a tool is left out of what a model is shown at first.
func (s *scope) deferred(sp *Spec) bool {
	if classOf(sp) != Ordinary || s.visible.match(sp) {
		return false
	}
	if s.pick { // it marks tools of servers too, which are deferred by themselves
		return !s.eager.match(sp)
	}
	return sp.Deferred || sp.Seldom && s.code
}

// serves says whether some tool of a server may be in the scope. A list can name
// the server as it is configured or as it stands in the names of its tools.
func (s *scope) serves(server string) bool {
	all := ServerPrefix(server) + "*"
	if s.none || s.disallow.exact[serverPrefix+server] || s.disallow.covers(all) {
		return false
	}
	return !s.narrow || s.allow.exact[serverPrefix+server] || s.allow.meets(all)
}

// A matcher holds names, servers and patterns of one list.
type matcher struct {
	exact    map[string]bool
	prefixes []string
}

func newMatcher(patterns []string) matcher {
	var m matcher
	for _, p := range patterns {
		if prefix, ok := strings.CutSuffix(p, "*"); ok {
			m.prefixes = append(m.prefixes, prefix)
			continue
		}
		if m.exact == nil {
			m.exact = make(map[string]bool, len(patterns))
		}
		m.exact[p] = true
		if rest, ok := strings.CutPrefix(p, serverPrefix); ok && rest != "" && !strings.Contains(rest, "__") {
			m.prefixes = append(m.prefixes, p+"__") // a whole server
		}
	}
	return m
}

// serverPrefix begins the name of every tool of an MCP server, and the pattern
// that means the whole server.
const serverPrefix = "mcp__"

// match says whether a tool is named. Its Server counts too: a server whose own
// name holds `__` cannot be told from one of its tools by the pattern alone.
func (m matcher) match(sp *Spec) bool {
	return m.name(sp.Name) || sp.Server != "" && m.exact != nil && m.exact[serverPrefix+sp.Server]
}

func (m matcher) name(name string) bool {
	if m.exact[name] {
		return true
	}
	for _, p := range m.prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// meets says whether something that a pattern with `*` names is named here.
func (m matcher) meets(pattern string) bool {
	prefix := strings.TrimSuffix(pattern, "*")
	for name := range m.exact {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return m.covers(pattern) || slices.ContainsFunc(m.prefixes, func(p string) bool { return strings.HasPrefix(p, prefix) })
}

// covers says whether everything that an entry of another list names is named
// here.
func (m matcher) covers(entry string) bool {
	prefix, pattern := strings.CutSuffix(entry, "*")
	if !pattern {
		return m.name(entry)
	}
	for _, p := range m.prefixes {
		if strings.HasPrefix(prefix, p) {
			return true
		}
	}
	return false
}
