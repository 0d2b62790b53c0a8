package codemode

import (
	"context"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"

	"capstan/internal/tool"
)

//go:embed tool_search.md
var searchText string

//go:embed tool_call.md
var callText string

// SearchOptions configure Search.
type SearchOptions struct {
	// Registry is where the tools are when a search runs: a server may have
	// answered since the call was admitted.
	Registry *tool.Registry
	// Servers are the names of the configured MCP servers.
	Servers []string
	// About returns what a server says of itself, in words that its tools may
	// be found by. Nil: nothing.
	About func(server string) string
	// Wait returns when the servers that a search could concern have answered
	// or had their time, or ctx ended, with a line for each that is missing.
	// Nil: nothing is waited for.
	Wait func(ctx context.Context) (missing []string)
}

// Search is the tool tool_search. It finds what the scope may call and changes
// nothing: neither the registry nor any declaration (S1-041, S1-042). Its index
// is made at the first search, and again for a server whose tools changed.
type Search struct {
	opt  SearchOptions
	spec tool.Spec
	catalogue
}

// NewSearch returns tool_search.
func NewSearch(o SearchOptions) *Search {
	s := &Search{opt: o, catalogue: newCatalogue(o.About)}
	s.spec = tool.Spec{
		Name:        tool.ToolSearchName,
		Title:       "Tool search",
		Description: strings.TrimSpace(searchText),
		Class:       tool.Control,
		Effect:      tool.EffectNone,
		Waits:       true,
		Input: json.RawMessage(`{"type":"object","properties":{` +
			`"query":{"type":"string"},` +
			`"max_results":{"type":"integer","minimum":1,"maximum":20,"description":"default 5"}},` +
			`"required":["query"],"additionalProperties":false}`),
	}
	return s
}

// Spec implements tool.Tool.
func (s *Search) Spec() *tool.Spec { return &s.spec }

// Access implements tool.Accessor: a search touches nothing.
func (s *Search) Access(*tool.Call) tool.Access { return tool.Access{Overlap: true} }

// Describe implements tool.Describer. Where there is no exec to say it, the text
// says how what is found is called, and names the configured servers.
func (s *Search) Describe(v *tool.View) string {
	text := s.spec.Description
	if runs, _ := v.Reach(tool.ExecName); runs {
		return text + " It is no part of `tools`."
	}
	if bridged, _ := v.Reach(tool.ToolCallName); bridged {
		text += " Call what it finds through " + tool.ToolCallName + ". Reuse schemas still in this conversation; search again before writing arguments when one is gone."
	}
	return text + serversText(v, s.opt.Servers)
}

// serversText names the configured servers of a scope.
func serversText(v *tool.View, servers []string) string {
	var names []string
	for _, n := range servers {
		if v.Serves(n) {
			names = append(names, docLine(n, maxServerName))
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return " MCP servers: " + strings.Join(slices.Compact(names), ", ") + "."
}

// maxServerName is how much of a server's name is shown, in bytes.
const maxServerName = 64

// Run implements tool.Tool.
func (s *Search) Run(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
	var args struct {
		Query string
		Max   *float64 `json:"max_results"` // JSON Schema takes 5.0 for an integer
	}
	if err := json.Unmarshal(inv.Call.Args, &args); err != nil {
		return tool.Fail(tool.CodeInvalidArgs, "reading the arguments of %s: %v", tool.ToolSearchName, err), nil
	}
	most := defaultWhole
	if args.Max != nil {
		most = int(*args.Max)
	}
	f, err := s.Find(ctx, inv.View, args.Query, most)
	if err != nil {
		return tool.Result{}, err
	}
	text, err := f.Text()
	if err != nil {
		return tool.Result{}, err
	}
	r := tool.Text(text)
	r.Uncut, r.Told = true, f.entries
	return r, nil
}

// Bridge returns the tool tool_call, through which a model in direct mode calls
// what s found.
func (s *Search) Bridge() tool.Tool { return bridge{} }

// bridge is tool_call. The executor takes a call of it for the call that it
// names (ruling 6), so it has no body of its own.
type bridge struct{}

var bridgeSpec = tool.Spec{
	Name:        tool.ToolCallName,
	Title:       "Tool call",
	Description: strings.TrimSpace(callText),
	Class:       tool.Hidden,
	Effect:      tool.EffectNone, // what it names is judged instead of it
	Input: json.RawMessage(`{"type":"object","properties":{` +
		`"name":{"type":"string"},"arguments":{"type":"object"}},` +
		`"required":["name","arguments"],"additionalProperties":false}`),
}

// Spec implements tool.Tool.
func (bridge) Spec() *tool.Spec { return &bridgeSpec }

// Run implements tool.Tool. Nothing comes here unless an executor does not know
// the bridge.
func (bridge) Run(context.Context, *tool.Invocation) (tool.Result, error) {
	return tool.Fail(tool.CodeFailed, "%s stands for the call that it names and cannot be run itself", tool.ToolCallName), nil
}
