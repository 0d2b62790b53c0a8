package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	strict "github.com/go-json-experiment/json"

	"capstan/internal/msg"
	"capstan/internal/tool"
)

// maxListed bounds the resources and prompts of one server that are listed.
const maxListed = 1000

// maxGaps bounds the arguments of a prompt: a person fills them in.
const maxGaps = 100

// resourceNames are the tools for what servers offer besides tools. They are
// there as soon as a server is configured, and do not depend on its answers.
var resourceNames = []string{"list_mcp_resources", "read_mcp_resource"}

func (m *Manager) resourceTools() []tool.Tool {
	type list struct {
		Server string `json:"server,omitempty" jsonschema:"only of this server"`
	}
	type read struct {
		Server string `json:"server" jsonschema:"the server's name"`
		URI    string `json:"uri" jsonschema:"as list_mcp_resources gives it, or made after one of its templates"`
	}
	return []tool.Tool{
		tool.New(tool.Spec{Name: "list_mcp_resources", Title: "List MCP resources", Deferred: true, Effect: tool.EffectNone,
			Description: "Lists the resources (documents, records, files) that the configured MCP servers offer, with their URIs and URI templates.",
			Hint:        "documents data files offered by servers"},
			func(ctx context.Context, inv *tool.Invocation, in list) (tool.Result, error) {
				return m.listAll(ctx, inv.View, in.Server)
			}),
		tool.New(tool.Spec{Name: "read_mcp_resource", Title: "Read an MCP resource", Deferred: true,
			Description: "Reads one resource of an MCP server by its URI.",
			Hint:        "document data file offered by a server"},
			func(ctx context.Context, inv *tool.Invocation, in read) (tool.Result, error) {
				if !serves(inv.View, in.Server) {
					return outside(in.Server), nil
				}
				parts, remarks, err := m.ReadResource(ctx, in.Server, in.URI)
				if err != nil {
					if ctx.Err() != nil {
						return tool.Result{}, ctx.Err()
					}
					return m.redactResult(tool.Fail(tool.CodeFailed, "%v", err), true), nil
				}
				return tool.Result{Status: tool.Success, Parts: parts, Remarks: remarks}, nil
			}),
	}
}

// serves says whether an agent may reach a server at all. A call that no view
// admitted, as those of tests, has no scope.
func serves(v *tool.View, server string) bool { return v == nil || v.Serves(server) }

// outside refuses what lies beyond the scope of an agent: a server that it has no
// tools of keeps its resources to itself as well.
func outside(server string) tool.Result {
	return tool.Fail(tool.CodeDenied, "MCP server %q is outside of this agent's scope: its list of tools has to name mcp__%[1]s, or a tool of it", excerpt(server, 100))
}

// A Resource is what a server offers to be read.
type Resource struct {
	Server      string `json:"server"`
	URI         string `json:"uri,omitempty"`
	Template    string `json:"uriTemplate,omitempty"` // instead of URI: RFC 6570
	Name        string `json:"name,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
}

// Resources lists the resources and templates of a server.
func (m *Manager) Resources(ctx context.Context, server string) ([]Resource, error) {
	var list []Resource
	err := m.lists(ctx, server, []offer{{listResources, "resources"}, {listTemplates, "resourceTemplates"}}, func(raw json.RawMessage) bool {
		var r struct {
			URI         string `json:"uri"`
			Template    string `json:"uriTemplate"`
			Name        string `json:"name"`
			Title       string `json:"title"`
			Description string `json:"description"`
			MIMEType    string `json:"mimeType"`
		}
		if err := strict.Unmarshal(raw, &r, lenient); err != nil || r.URI == "" && r.Template == "" {
			return false
		}
		list = append(list, Resource{Server: server, URI: clean(r.URI), Template: clean(r.Template), Name: excerpt(r.Name, 500),
			Title: excerpt(r.Title, 500), Description: cut(shown(r.Description), 2000), MIMEType: excerpt(r.MIMEType, 100)})
		return true
	})
	return list, err
}

// A Prompt is a text with gaps that a server offers; surfaces make commands of
// them.
type Prompt struct {
	Server      string           `json:"server"`
	Name        string           `json:"name"`
	Title       string           `json:"title,omitempty"`
	Description string           `json:"description,omitempty"`
	Arguments   []PromptArgument `json:"arguments,omitempty"`
}

// A PromptArgument is a gap in a Prompt.
type PromptArgument struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
}

// Prompts lists the prompts of a server.
func (m *Manager) Prompts(ctx context.Context, server string) ([]Prompt, error) {
	s, err := m.server(server)
	if err != nil {
		return nil, err
	}
	var list []Prompt
	err = m.lists(ctx, server, []offer{{listPrompts, "prompts"}}, func(raw json.RawMessage) bool {
		var p struct {
			Name        string          `json:"name"`
			Title       string          `json:"title"`
			Description string          `json:"description"`
			Arguments   json.RawMessage `json:"arguments"`
		}
		if err := strict.Unmarshal(raw, &p, lenient); err != nil || p.Name == "" {
			return false
		}
		args, more, err := decodeAll[PromptArgument](ctx, p.Arguments, maxGaps)
		if err != nil {
			return false
		}
		if more {
			s.warn("prompt %s has more than %d arguments; the rest is left out", excerpt(p.Name, 100), maxGaps)
		}
		list = append(list, Prompt{server, p.Name, excerpt(p.Title, 500), cut(shown(p.Description), 2000), args})
		return true
	})
	return list, err
}

// Prompt fills in a prompt. The messages are the server's words, to be shown as
// such.
func (m *Manager) Prompt(ctx context.Context, server, name string, args map[string]string) ([]msg.Message, error) {
	c, err := m.acquire(ctx, server)
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	raw, err := c.ask(ctx, getPrompt, &params{Name: name, Arguments: encoded})
	if err != nil {
		return nil, fmt.Errorf("prompt %s of MCP server %s: %w", excerpt(name, 100), server, err)
	}
	type message struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	messages, more, err := listIn[message](ctx, raw, "messages")
	if err != nil {
		return nil, fmt.Errorf("prompt %s of MCP server %s: %w", excerpt(name, 100), server, err)
	}
	if more {
		c.s.warn("prompt %s has more than %d messages; the rest is left out", excerpt(name, 100), maxBlocks)
	}
	var list []msg.Message
	for _, one := range messages {
		role := msg.User
		if one.Role == "assistant" {
			role = msg.Assistant
		}
		list = append(list, msg.Message{Role: role, Parts: []msg.Part{part(one.Content)}})
	}
	return list, nil
}

// ReadResource reads one resource of a server. The remarks say what is missing of it.
func (m *Manager) ReadResource(ctx context.Context, server, uri string) (parts []msg.Part, remarks []string, err error) {
	c, err := m.acquire(ctx, server)
	if err != nil {
		return nil, nil, err
	}
	raw, err := c.ask(ctx, readResource, &params{URI: uri})
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s of MCP server %s: %w", excerpt(uri, 300), server, err)
	}
	contents, more, err := listIn[resource](ctx, raw, "contents")
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s of MCP server %s: %w", excerpt(uri, 300), server, err)
	}
	for i := range contents {
		parts = append(parts, contents[i].part())
	}
	if len(parts) == 0 {
		return nil, nil, fmt.Errorf("reading %s of MCP server %s: it is empty", excerpt(uri, 300), server)
	}
	if more {
		remarks = append(remarks, fmt.Sprintf("the resource has more than %d pieces; the rest is left out", maxBlocks))
	}
	return parts, remarks, nil
}

// listIn reads the list under key in an answer, at most maxBlocks of it; more says
// that there is more.
func listIn[T any](ctx context.Context, answer json.RawMessage, key string) (list []T, more bool, err error) {
	in, err := members(answer, key)
	if err == nil {
		list, more, err = decodeAll[T](ctx, in[0], maxBlocks)
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("its answer cannot be read: %s", excerpt(answer, 200))
	}
	return list, more, err
}

func (m *Manager) acquire(ctx context.Context, server string) (*conn, error) {
	s, err := m.server(server)
	if err != nil {
		return nil, err
	}
	return s.acquire(ctx)
}

// An offer is a list of a server, and the member that holds its entries.
type offer struct{ method, key string }

// lists reads lists of a server to their ends. A server that does not know one
// has none.
func (m *Manager) lists(ctx context.Context, server string, offers []offer, take func(json.RawMessage) bool) error {
	c, err := m.acquire(ctx, server)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.timeout(), fmt.Errorf("it did not answer within %v", c.cfg.timeout()))
	defer cancel()
	for _, o := range offers {
		seen := map[string]bool{}
		err := c.s.pages(ctx, c, o.method, o.key, maxListed, func(raw json.RawMessage) bool {
			if seen[string(raw)] {
				return false
			}
			seen[string(raw)] = true
			return take(raw)
		})
		if err = notOffered(err); err != nil {
			return fmt.Errorf("listing %s of MCP server %s: %w", o.key, server, c.explain(ctx, err))
		}
	}
	return nil
}

// listAll is what list_mcp_resources gives: of one server, or of all, side by
// side, so that one that is silent costs no more than its own time. Without a name
// it leaves out the servers that a rule has something to say of: that rule judges
// the call that names its server. No server outside of the scope is asked.
func (m *Manager) listAll(ctx context.Context, view *tool.View, server string) (tool.Result, error) {
	names, notes := []string{server}, []string(nil)
	if server == "" {
		names, notes = m.listable(view)
	} else if !serves(view, server) {
		return outside(server), nil
	}
	found, faults := make([][]Resource, len(names)), make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { found[i], faults[i] = m.Resources(ctx, name) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return tool.Result{}, ctx.Err()
	}
	list := slices.Concat(found...)
	for _, err := range faults {
		if err != nil {
			notes = append(notes, m.redact(err.Error()))
		}
	}
	if server != "" && len(notes) > 0 && len(list) == 0 {
		return tool.Fail(tool.CodeFailed, "%s", notes[0]), nil
	}
	data, err := json.Marshal(list)
	if err != nil {
		return tool.Result{}, err
	}
	if list == nil {
		data = []byte("[]")
	}
	r := tool.Result{Status: tool.Success, Data: data, Parts: []msg.Part{msg.TextPart(string(data))}}
	if len(notes) > 0 {
		r.Parts = append(r.Parts, msg.TextPart("Not listed: "+strings.Join(notes, "; ")))
	}
	return r, nil
}

// listable names the servers that are listed without being named, and says why
// others are not.
func (m *Manager) listable(view *tool.View) (names, notes []string) {
	for _, s := range m.list(nil) {
		name := s.cfg.Name
		if !serves(view, name) {
			notes = append(notes, fmt.Sprintf("MCP server %s, which is outside of this agent's scope", name))
			continue
		}
		if m.o.Withheld != nil {
			if rule := m.o.Withheld(name, resourceNames[0]); rule != "" {
				notes = append(notes, fmt.Sprintf("MCP server %s, which %s speaks of; a call with its name in server is judged by that", name, rule))
				continue
			}
		}
		names = append(names, name)
	}
	return names, notes
}

// fileURI is an absolute path as a URI.
func fileURI(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}
