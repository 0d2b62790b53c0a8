package codemode

import (
	"slices"
	"strings"
	"sync"

	"capstan/internal/search"
	"capstan/internal/tool"
)

// catalogue is the index over the ordinary tools of a registry. It is brought up
// to date when it is asked, one source at a time: a server whose tools are the
// same costs nothing. Which of its hits a scope may see is not its business.
type catalogue struct {
	about func(server string) string
	index search.Index

	mu      sync.Mutex // held while the index is brought up to date
	all     []*tool.Entry
	sources map[string][]*tool.Entry // by server; ours is ""
}

// update makes the index one of these tools, which are sorted by name.
func (c *catalogue) update(all []*tool.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(all) == len(c.all) && (len(all) == 0 || &all[0] == &c.all[0]) {
		return // a registry never changes a list that it gave away
	}
	now := map[string][]*tool.Entry{}
	for _, e := range all {
		if sp := e.Spec(); sp.Class == tool.Ordinary {
			now[sp.Server] = append(now[sp.Server], e)
		}
	}
	for server, entries := range now {
		if !slices.Equal(entries, c.sources[server]) {
			c.index.Replace(server, c.documents(server, entries))
		}
	}
	for server := range c.sources {
		if now[server] == nil {
			c.index.Replace(server, nil)
		}
	}
	c.all, c.sources = all, now
}

func (c *catalogue) documents(server string, entries []*tool.Entry) []search.Document {
	about, prefix := "", tool.ServerPrefix(server)
	if server != "" && c.about != nil {
		about = c.about(server)
	}
	docs := make([]search.Document, len(entries))
	for i, e := range entries {
		sp := e.Spec()
		short := sp.Short
		if short == "" {
			short = strings.TrimPrefix(sp.Name, prefix)
		}
		docs[i] = search.Document{
			Name: sp.Name, Short: short, Title: sp.Title, Hint: sp.Hint,
			Server: server, ServerDescription: about, Description: sp.Description, Schema: sp.Input,
		}
	}
	return docs
}
