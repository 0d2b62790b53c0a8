package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	strict "github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"capstan/internal/schema"
	"capstan/internal/tool"
)

// pages walks a paginated list to its end and hands on the items of every page,
// which are under key. It stops at a cursor that came before, at a page that
// brings nothing new by name, at the bounds, and when ctx ends (BUG-MC-08, BUG-MC-10).
func (s *server) pages(ctx context.Context, c *conn, method, key string, limit int, take func(json.RawMessage) (fresh bool)) error {
	seen := map[string]bool{}
	cursor := ""
	for n, page := 0, 0; ; page++ {
		if page == maxPages {
			s.warn("its list %s has more than %d pages; the rest is left out", key, maxPages)
			return nil
		}
		raw, err := c.rounds(ctx, method, &params{Cursor: cursor})
		if err != nil {
			return err
		}
		list, err := members(raw, key, "nextCursor")
		if err != nil {
			return fmt.Errorf("its answer is no object: %s", excerpt(raw, 200))
		}
		fresh, some, full := false, false, false
		err = elements(list[0], func(item json.RawMessage) bool {
			if full = n == limit; full || ctx.Err() != nil {
				return false
			}
			some = true
			n++ // whatever it is: what is of no use costs time as well
			if take(item) {
				fresh = true
			}
			return true
		})
		switch {
		case err != nil:
			return fmt.Errorf("%s in its answer is no list: %s", key, excerpt(list[0], 200))
		case ctx.Err() != nil:
			return ctx.Err()
		case full:
			s.warn("its list %s has more than %d entries; the rest is left out", key, limit)
			return nil
		}
		next := ""
		if !missing(list[1]) {
			_ = strict.Unmarshal(list[1], &next, lenient) // nonsense is the end
		}
		switch {
		case next == "":
			return nil
		case seen[next]:
			s.warn("its list %s comes back to a cursor that it gave before; reading stopped there", key)
			return nil
		case some && !fresh:
			s.warn("its list %s repeats itself; reading stopped there", key)
			return nil
		}
		seen[next] = true
		cursor = next
	}
}

// A definition is a tool as its server describes it.
type definition struct {
	Name         string          `json:"name"`
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Annotations  hints           `json:"annotations"`
}

// hints are what a server says of a tool. None of them loosens a rule.
type hints struct {
	Title       string `json:"title"`
	ReadOnly    bool   `json:"readOnlyHint"`
	Destructive bool   `json:"destructiveHint"`
	Idempotent  bool   `json:"idempotentHint"`
	OpenWorld   bool   `json:"openWorldHint"`
}

// reads says whether the tool is said to change nothing. One that is said to
// destroy as well is not believed.
func (h *hints) reads() bool { return h.ReadOnly && !h.Destructive }

// claims are the hints that a person should know who approves a call. Those that
// were not given say nothing, whatever the protocol supposes then: nearly no
// server gives them, and a warning that is always there is not read.
func (h *hints) claims() (list []string) {
	add := func(yes bool, text string) {
		if yes {
			list = append(list, text)
		}
	}
	add(h.Destructive, "it may destroy or overwrite something")
	add(h.reads(), "it only reads")
	add(h.Idempotent && !h.reads(), "doing it twice changes no more than once")
	add(h.OpenWorld, "it reaches the world outside")
	return list
}

// listTools reads the server's tools. A tool that cannot be used costs itself
// and a warning.
func (s *server) listTools(ctx context.Context, c *conn) ([]*remote, error) {
	byName := map[string]*remote{}
	seen := map[string]bool{}
	patterns := 0 // bytes that those of the tools taken so far need
	err := s.pages(ctx, c, listTools, "tools", maxTools, func(raw json.RawMessage) bool {
		d, err := define(raw)
		if err != nil {
			s.warn("a tool of it is left out: %v", err)
			return d.Name != "" && !seen[d.Name]
		}
		if seen[d.Name] {
			s.warn("it lists the tool %q more than once; the first counts", cut(clean(d.Name), 100))
			return false
		}
		seen[d.Name] = true
		if !s.cfg.wants(d.Name) {
			return true
		}
		t, warnings, err := newRemote(s, s.m.redactDefinition(d))
		for _, w := range warnings {
			s.warn("tool %q: %s", cut(clean(d.Name), 100), w)
		}
		if err != nil {
			s.warn("the tool %q is left out: %v", cut(clean(d.Name), 100), err)
			return true
		}
		if other := byName[t.spec.Name]; other != nil {
			s.warn("the tool %q is left out: its name %s is taken by %q", cut(clean(d.Name), 100), t.spec.Name, other.real)
			return true
		}
		if patterns+t.patterns > maxPatterns {
			s.warn("the tool %q is left out: with it, the patterns in the schemas of this server's tools take more than %d bytes when compiled", cut(clean(d.Name), 100), maxPatterns)
			return true
		}
		patterns += t.patterns
		byName[t.spec.Name] = t
		return true
	})
	// Asked whether it said that it has tools or not: many do not say.
	if err = notOffered(err); err != nil {
		return nil, err
	}
	s.idle("includeTools", s.cfg.Include, seen)
	s.idle("excludeTools", s.cfg.Exclude, seen)
	tools := make([]*remote, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		tools = append(tools, byName[name])
	}
	return tools, nil
}

// define reads one definition. Only a missing name makes it useless: of other
// members that have the wrong type the tool is told, and does without.
func define(raw json.RawMessage) (definition, error) {
	var d definition
	if err := strict.Unmarshal(raw, &d, lenient); err == nil && d.Name != "" {
		return d, nil
	}
	d = definition{}
	fields, err := members(raw, "name", "title", "description", "annotations", "inputSchema", "outputSchema")
	if err != nil {
		return d, fmt.Errorf("it is no object: %s", excerpt(raw, 100))
	}
	if err := strict.Unmarshal(fields[0], &d.Name, lenient); err != nil || d.Name == "" {
		return d, fmt.Errorf("it has no name: %s", excerpt(raw, 100))
	}
	_ = strict.Unmarshal(fields[1], &d.Title, lenient)
	_ = strict.Unmarshal(fields[2], &d.Description, lenient)
	if strict.Unmarshal(fields[3], &d.Annotations, lenient) != nil {
		d.Annotations = hints{} // half of them could say the opposite
	}
	d.InputSchema, d.OutputSchema = fields[4], fields[5]
	return d, nil
}

// wants says whether the user takes this tool of the server.
func (c *Config) wants(name string) bool {
	named := func(list []string) bool {
		return slices.ContainsFunc(list, func(p string) bool { return meansTool(p, name) })
	}
	return (c.Include == nil || named(c.Include)) && !named(c.Exclude)
}

// meansTool says whether a pattern of includeTools or excludeTools means a tool.
func meansTool(pattern, name string) bool {
	if head, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, head)
	}
	return pattern == name
}

// idle warns of patterns that mean none of the tools that a server lists: whoever
// misspells one believes that a tool is gone, or has none.
func (s *server) idle(key string, patterns []string, listed map[string]bool) {
	for _, p := range patterns {
		found := false
		for name := range listed {
			found = found || meansTool(p, name)
		}
		if !found {
			s.warn("%s: %q is none of its tools", key, cut(clean(p), 100))
		}
	}
}

// missing says whether a schema was left out.
func missing(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}

// newRemote makes a tool of a definition. The error says why it cannot be one.
func newRemote(s *server, d definition) (*remote, []string, error) {
	var warnings []string
	t := &remote{s: s, real: d.Name, readOnly: d.Annotations.reads(), again: d.Annotations.Idempotent || d.Annotations.reads()}
	t.spec = tool.Spec{
		Name:        ToolName(s.cfg.Name, d.Name),
		Title:       excerpt(d.Title, 200),
		Description: shown(d.Description),
		Server:      s.cfg.Name,
		Short:       d.Name,
		Deferred:    !s.cfg.AlwaysLoad,
		Hint:        excerpt(s.cfg.Description, 500),
		Claims:      d.Annotations.claims(),
	}
	if t.spec.Title == "" {
		t.spec.Title = excerpt(d.Annotations.Title, 200)
	}
	if n := len(t.spec.Description); n > maxDescription {
		warnings = append(warnings, fmt.Sprintf("its description has %d bytes and is cut at %d", n, maxDescription))
		t.spec.Description = cut(t.spec.Description, maxDescription)
	}
	if !missing(d.InputSchema) {
		in, err := schema.Compile(d.InputSchema)
		if err != nil {
			return nil, warnings, fmt.Errorf("its input schema cannot be used: %s", excerpt(err.Error(), 400))
		}
		t.spec.Input, t.patterns = d.InputSchema, in.PatternBytes()
	}
	if !missing(d.OutputSchema) {
		if out, err := schema.Compile(d.OutputSchema); err != nil {
			warnings = append(warnings, "its output schema cannot be used and is ignored: "+excerpt(err.Error(), 400))
		} else {
			t.spec.Output, t.output = d.OutputSchema, out
			t.patterns += out.PatternBytes()
		}
	}
	// What a server says of itself counts only when the user trusts it; then a
	// tool that only reads needs no approval. A deny or ask rule always holds.
	if s.cfg.Trust && t.readOnly {
		t.spec.Effect = tool.EffectNone
	}
	return t, warnings, nil
}

// notOffered takes the errors for nothing that servers send for what they do
// not have.
func notOffered(err error) error {
	var rpc *jsonrpc.Error
	if errors.As(err, &rpc) && rpc.Code == jsonrpc.CodeMethodNotFound {
		return nil
	}
	return err
}
