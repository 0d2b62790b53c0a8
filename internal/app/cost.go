package app

import (
	"context"
	"slices"

	"capstan/internal/codemode"
	"capstan/internal/tool"
)

// Search searches the tools of a view as tool_search does. At most that many are
// given whole.
func (s *Session) Search(ctx context.Context, v *tool.View, query string, most int) (*codemode.Found, error) {
	return s.search.Find(ctx, v, query, most)
}

// InMode returns what the session's scope would see in a mode, whatever its own
// mode is. It is to look at: no call is resolved by it.
func (s *Session) InMode(m tool.Mode) (*tool.View, error) {
	var tools []tool.Tool
	exec := false
	for _, e := range s.Registry.Tools() {
		tools = append(tools, e.Tool())
		exec = exec || e.Spec().Name == tool.ExecName
	}
	if !exec { // only registered where the model has it
		tools = append(tools, s.newExec())
	}
	var r tool.Registry
	if err := r.Add(tools...); err != nil {
		return nil, err
	}
	return r.View(m, s.scopeIn(m, &r)), nil
}

// A Cost is what the declarations of one mode take in every request.
type Cost struct {
	Mode    tool.Mode `json:"mode"`
	InForce bool      `json:"inForce"` // it is the session's mode
	Bytes   int       `json:"bytes"`   // as compact JSON
	Tokens  int       `json:"tokens"`
	// Sources begin with what is built in, exec's text and all controls
	// included; then come the servers by name. Their bytes add up to Bytes.
	Sources []SourceCost `json:"sources"`
}

// A SourceCost is the part of a Cost that the tools of one source take.
type SourceCost struct {
	Server   string `json:"server"` // empty: built in
	Tools    int    `json:"tools"`  // ordinary ones of the scope
	Shown    int    `json:"shown"`  // that are declared or documented in exec
	Deferred int    `json:"deferred"`
	Bytes    int    `json:"bytes"`
	Tokens   int    `json:"tokens"`
	// IfShown is what the deferred tools would add if they were shown.
	IfShown int `json:"ifShown"`
}

// bytesPerToken is the usual estimate for English and JSON. Nothing is decided
// by it.
const bytesPerToken = 4

func tokens(bytes int) int { return (bytes + bytesPerToken - 1) / bytesPerToken }

// Costs returns what the tools cost in each mode.
func (s *Session) Costs() ([]Cost, error) {
	var all []Cost
	for _, m := range []tool.Mode{tool.Direct, tool.Code, tool.Both} {
		v, err := s.InMode(m)
		if err != nil {
			return nil, err
		}
		c, err := costOf(v)
		if err != nil {
			return nil, err
		}
		c.InForce = m == s.mode
		all = append(all, c)
	}
	return all, nil
}

func costOf(v *tool.View) (Cost, error) {
	c := Cost{Mode: v.Mode()}
	whole, err := encode(v.Declarations())
	if err != nil {
		return c, err
	}
	c.Bytes = len(whole)
	c.Tokens = tokens(c.Bytes)
	rows, servers := map[string]*SourceCost{"": {}}, []string{""}
	documented, ours := codemode.Documented(v), c.Bytes
	for _, e := range v.Searchable() {
		sp := e.Spec()
		row := rows[sp.Server]
		if row == nil {
			row = &SourceCost{Server: sp.Server}
			rows[sp.Server] = row
			servers = append(servers, sp.Server)
		}
		cost, shown, err := costOfTool(v, e, documented)
		if err != nil {
			return c, err
		}
		row.Tools++
		if !shown {
			row.Deferred++
			row.IfShown += cost
			continue
		}
		row.Shown++
		if sp.Server != "" {
			row.Bytes += cost
			ours -= cost
		}
	}
	rows[""].Bytes = ours
	slices.Sort(servers)
	for _, name := range servers {
		rows[name].Tokens = tokens(rows[name].Bytes)
		c.Sources = append(c.Sources, *rows[name])
	}
	return c, nil
}

// costOfTool is what one tool takes, or would take, in the compact JSON of all
// declarations: its own, its line in exec's description, or both.
func costOfTool(v *tool.View, e *tool.Entry, documented map[string]string) (bytes int, shown bool, err error) {
	direct, nested := v.Reach(e.Spec().Name)
	signature, told := documented[e.Spec().Name]
	shown = direct || told
	if direct || !shown && v.Mode() != tool.Code {
		d, err := encode(e.Declaration())
		if err != nil {
			return 0, false, err
		}
		bytes += len(d) + len(",")
	}
	if told || !shown && nested {
		if !told {
			signature = codemode.Signature(e)
		}
		text, err := encode(signature + "\n")
		if err != nil {
			return 0, false, err
		}
		bytes += len(text) - len(`""`)
	}
	return bytes, shown, nil
}
