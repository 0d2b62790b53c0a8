package codemode

import (
	"context"
	"slices"
	"strings"

	"capstan/internal/search"
	"capstan/internal/tool"
)

// catalogue is the index over the ordinary tools of a registry. It is brought up
// to date when it is asked, one source at a time: a server whose tools are the
// same costs nothing. Which of its hits a scope may see is not its business.
type catalogue struct {
	about func(server string) string
	index search.Index

	turn    chan struct{} // holds one while the index is brought up to date
	all     []*tool.Entry
	sources map[string][]*tool.Entry // by server; ours is ""
}

func newCatalogue(about func(server string) string) catalogue {
	return catalogue{about: about, turn: make(chan struct{}, 1), sources: map[string][]*tool.Entry{}}
}

// update makes the index one of these tools, which are sorted by name. It ends
// with an error when ctx does, between two sources or while another caller is at
// it; what was done until then stays.
func (c *catalogue) update(ctx context.Context, all []*tool.Entry) error {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.turn }()
	if len(all) == len(c.all) && (len(all) == 0 || &all[0] == &c.all[0]) {
		return nil // a registry never changes a list that it gave away
	}
	now := map[string][]*tool.Entry{}
	for _, e := range all {
		if sp := e.Spec(); sp.Class == tool.Ordinary {
			now[sp.Server] = append(now[sp.Server], e)
		}
	}
	for server, entries := range now {
		if slices.Equal(entries, c.sources[server]) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		c.index.Replace(server, c.documents(server, entries))
		c.sources[server] = entries
	}
	for server := range c.sources {
		if now[server] == nil {
			c.index.Replace(server, nil)
			delete(c.sources, server)
		}
	}
	c.all = all
	return nil
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
