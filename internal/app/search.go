package app

import (
	"slices"

	"capstan/internal/codemode"
	"capstan/internal/tool"
)

// searching makes tool_search and the bridge to what it finds.
func (s *Session) searching() []tool.Tool {
	s.search = codemode.NewSearch(codemode.SearchOptions{Registry: s.Registry, Servers: s.servers.names, About: s.aboutServer, Wait: s.awaitForSearch})
	return []tool.Tool{s.search, s.search.Bridge()}
}

// withdraw takes tool_search and tool_call out of the scope when a rule denies
// them: then everything is shown, for nothing could be found (S1-019).
func (s *Session) withdraw() {
	for _, e := range s.Registry.Tools() {
		name := e.Spec().Name
		if (name == tool.ToolSearchName || name == tool.ToolCallName) && s.denied(e) {
			s.scope.Disallow = append(slices.Clone(s.scope.Disallow), name)
		}
	}
}
