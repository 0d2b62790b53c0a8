package app

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"capstan/internal/tool"
)

// withdraw takes what a rule forbids as a whole out of the scope: a model that is
// told of a tool tries it, and search finds it, only to be denied (S2-019). Without
// tool_search everything is shown, for nothing could be found (S1-019). What the run
// cannot do without stays, and each call of it is denied.
func (s *Session) withdraw() {
	s.scope = s.scopeIn(s.mode, s.Registry)
	if s.opt.Program { // then the program's own denial says it
		return
	}
	needs := s.needs(s.mode)
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		if rule := s.rules.Forbids(name); rule != "" {
			s.warn("%s forbids %s: %s", rule, name, needs[name])
		}
	}
}

// scopeIn is the session's scope in a mode, with the tools of a registry.
func (s *Session) scopeIn(m tool.Mode, r *tool.Registry) tool.Scope {
	scope, needs := s.scope, s.needs(m)
	scope.Disallow = slices.Clone(s.excluded)
	for _, e := range r.Tools() {
		name := e.Spec().Name
		if _, needed := needs[name]; !needed && s.rules.Forbids(name) != "" {
			scope.Disallow = append(scope.Disallow, name)
		}
	}
	// The tools of servers may not be there yet, and can change.
	scope.Disallow = append(scope.Disallow, s.rules.Withheld()...)
	for _, server := range s.servers.names {
		if s.rules.ForbidsAll(serverPattern(server)) {
			scope.Disallow = append(scope.Disallow, "mcp__"+server)
		}
	}
	return scope
}

// Forbidden returns the rule that takes a tool out of the scope, as text; empty when
// none does.
func (s *Session) Forbidden(name string) string { return s.rules.Forbids(name) }

// needs are the tools that a run in a mode cannot do without, and why.
func (s *Session) needs(m tool.Mode) map[string]string {
	needs := map[string]string{}
	if m == tool.Code {
		needs[tool.ExecName] = "in code mode it is the only way to the other tools: use --mode direct or both"
	}
	if s.structured != nil {
		needs[s.structured.Spec().Name] = "with --json-schema the run ends with a call of it"
	}
	return needs
}

// meant are the tools that a name of --exclude-tools means: names of other agents mean
// ours, as in rules.
func meant(name string) []string { return append([]string{name}, tool.RuleNames(name)...) }

// checkExcluded refuses a name that takes nothing away, since whoever misspells
// one believes that the tool is gone, and one that takes away what the run
// cannot do without.
func (s *Session) checkExcluded() error {
	all := s.Registry.View(s.mode, tool.Scope{})
	for _, name := range s.opt.Exclude {
		one := s.Registry.View(s.mode, tool.Scope{Disallow: meant(name)})
		found := strings.HasPrefix(name, "mcp__") // of a server that is not there yet
		for _, e := range s.Registry.Tools() {
			direct, nested := all.Reach(e.Spec().Name)
			d, n := one.Reach(e.Spec().Name)
			found = found || d != direct || n != nested || e.Spec().Name == name
		}
		if !found {
			return &UsageError{fmt.Errorf("--exclude-tools: there is no tool %q; 'capstan tools list' names them", name)}
		}
	}
	for name, why := range s.needs(s.mode) {
		if direct, _ := s.View().Reach(name); !direct {
			return &UsageError{fmt.Errorf("--exclude-tools takes %s away: %s", name, why)}
		}
	}
	return nil
}
