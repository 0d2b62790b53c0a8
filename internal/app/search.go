package app

import (
	"encoding/json"
	"slices"

	"capstan/internal/codemode"
	"capstan/internal/config"
	"capstan/internal/sched"
	"capstan/internal/tool"
)

// serverNames are the MCP servers that the settings configure, sorted. What is
// wrong with one is said where it is started.
func serverNames(set config.Settings) []string {
	var names []string
	for _, section := range set.Sections {
		if section.Key != "mcpServers" {
			continue
		}
		var servers map[string]json.RawMessage
		if json.Unmarshal(section.Value, &servers) != nil {
			continue // not an object, which is reported with the servers
		}
		for name := range servers {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// searching makes tool_search and the bridge to what it finds.
func (s *Session) searching() []tool.Tool {
	s.search = codemode.NewSearch(codemode.SearchOptions{Registry: s.Registry, Servers: s.servers})
	return []tool.Tool{s.search, s.search.Bridge()}
}

// withdraw takes tool_search and tool_call out of the scope when a rule denies
// them: then everything is shown, for nothing could be found (S1-019).
func (s *Session) withdraw() {
	for _, e := range s.Registry.Tools() {
		name := e.Spec().Name
		if name != tool.ToolSearchName && name != tool.ToolCallName {
			continue
		}
		verdict := s.rules.Explain(&sched.Request{Call: &tool.Call{Name: name}, Entry: e})
		if verdict.Decision == sched.Deny && verdict.Rule != "" {
			s.scope.Disallow = append(slices.Clone(s.scope.Disallow), name)
		}
	}
}
