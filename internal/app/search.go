package app

import (
	"capstan/internal/codemode"
	"capstan/internal/tool"
)

// searching makes tool_search and the bridge to what it finds.
func (s *Session) searching() []tool.Tool {
	s.search = codemode.NewSearch(codemode.SearchOptions{Registry: s.Registry, Servers: s.servers.names, About: s.aboutServer, Wait: s.awaitForSearch})
	return []tool.Tool{s.search, s.search.Bridge()}
}
