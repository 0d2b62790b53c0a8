package tool

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"capstan/internal/msg"
)

// A View is what one agent may see and call: an immutable projection of the
// registry through the exposure policy. It is safe for concurrent use.
type View struct {
	mode     Mode
	scope    Scope
	ready    *scope
	byName   map[string]*Entry // the whole registry, for a refusal that fits
	names    []*Entry          // reachable in any way, by canonical name
	reach    map[*Entry]reach
	bindings []Binding
	js       map[string]*Entry // bindings by JS name
	warnings []string

	declare func() []msg.Declaration // computes them once
}

// A Binding is a tool as a program finds it.
type Binding struct {
	JS       string
	Entry    *Entry
	Deferred bool // left out of what the model is shown at first
}

func newView(sorted []*Entry, byName map[string]*Entry, m Mode, s Scope) *View {
	v := &View{mode: m, scope: s.clone(), ready: newScope(m, s), byName: byName,
		reach: make(map[*Entry]reach, len(sorted)), js: make(map[string]*Entry, len(sorted))}
	v.declare = sync.OnceValue(v.declarations)
	for _, e := range sorted {
		v.ready.note(&e.spec)
	}
	for _, e := range sorted {
		how := exposure(m, v.ready, &e.spec)
		if how.nested { // the first canonical name has the property (ruling 15)
			if first := v.js[e.js]; first != nil {
				v.warnings = append(v.warnings, fmt.Sprintf("%s cannot be called from programs: %s has the JavaScript name %s", e.spec.Name, first.spec.Name, e.js))
				how.nested = false
			} else {
				v.js[e.js] = e
				v.bindings = append(v.bindings, Binding{e.js, e, v.ready.deferred(&e.spec)})
			}
		}
		if how != (reach{}) {
			v.reach[e] = how
			v.names = append(v.names, e)
		}
	}
	// Nobody who appends to what we return shares memory with anybody else.
	v.bindings, v.warnings = slices.Clip(v.bindings), slices.Clip(v.warnings)
	return v
}

// Mode returns the view's mode.
func (v *View) Mode() Mode { return v.mode }

// Scope returns the scope that the view was made for.
func (v *View) Scope() Scope { return v.scope }

// Warnings names each tool that a collision of JavaScript names makes
// uncallable from programs, once (S0-081).
func (v *View) Warnings() []string { return v.warnings }

// Bindings returns what programs may call, by canonical name. It is complete:
// deferred tools are in it (S1-016).
func (v *View) Bindings() []Binding { return v.bindings }

// Canonical maps a property of `tools` to a tool's name, when it is one.
func (v *View) Canonical(js string) (string, bool) {
	if e := v.js[js]; e != nil {
		return e.spec.Name, true
	}
	return "", false
}

// Searches says whether the model of this scope has tool_search.
func (v *View) Searches() bool {
	e := v.byName[ToolSearchName]
	return e != nil && v.reach[e].direct
}

// Searchable returns the tools that tool_search may find, by canonical name:
// those of the scope that can be called once found (S1-032, S1-039, S1-040).
func (v *View) Searchable() []*Entry {
	var out []*Entry
	for _, e := range v.names {
		if v.searchable(e) {
			out = append(out, e)
		}
	}
	return out
}

// Find returns the tool of this very name if tool_search may find it; else nil.
func (v *View) Find(name string) *Entry {
	if e := v.byName[name]; e != nil && v.searchable(e) {
		return e
	}
	return nil
}

// searchable follows from exposure alone, so it is the allowlist of exec too
// (S1-070 to S1-073).
func (v *View) searchable(e *Entry) bool {
	r := v.reach[e]
	return r.nested || v.mode == Direct && r != (reach{}) && classOf(&e.spec) == Ordinary
}

// Deferred says whether a tool of the scope is left out of what a model is
// shown at first, where there is a way to find it.
func (v *View) Deferred(name string) bool {
	e := v.Visible(name)
	return e != nil && v.ready.deferred(&e.spec)
}

// Serves says whether the scope may hold a tool of an MCP server, whatever the
// server has answered until now.
func (v *View) Serves(server string) bool { return v.ready.serves(server) }

// Declarations returns what the model is sent, by canonical name: the same
// bytes for the same tools, whatever the order of their registration (S0-095).
// It is computed once; the slice must not be changed.
func (v *View) Declarations() []msg.Declaration { return v.declare() }

func (v *View) declarations() []msg.Declaration {
	out := []msg.Declaration{}
	for _, e := range v.names {
		if !v.reach[e].direct {
			continue
		}
		d := e.Declaration()
		if t, ok := e.tool.(Describer); ok {
			d.Description = t.Describe(v)
		}
		out = append(out, d)
	}
	return slices.Clip(out)
}

// Visible returns the entry of a tool that this scope reaches in some way,
// directly, from a program or through a bridge; else nil.
func (v *View) Visible(name string) *Entry {
	if e := v.byName[name]; e != nil && v.reach[e] != (reach{}) {
		return e
	}
	return nil
}

// Reach says from where this scope may call a tool: by the model directly, and
// by a program.
func (v *View) Reach(name string) (direct, nested bool) {
	if e := v.Visible(name); e != nil {
		return v.reach[e].direct, v.reach[e].nested
	}
	return false, false
}

// Resolve returns the tool that a call may run, or nil and the refusal to
// answer it with. nested is the executor's word on who calls: a program that
// holds a valid token. There is no other way to a tool.
func (v *View) Resolve(c *Call, nested bool) (*Entry, *Result) {
	e := v.Visible(c.Name)
	switch {
	case e == nil:
		return nil, v.unknown(c.Name, nested)
	case nested && v.reach[e].nested, !nested && v.reach[e].direct:
		return e, nil
	case nested:
		return nil, refuse("%s cannot be called from a program%s", c.Name, v.notNested(e))
	case v.reach[e].nested && v.ready.exec: // the route is told only when it works (ruling 5)
		return nil, v.collapsed(e, c.Args)
	case v.reach[e].bridge:
		return nil, refuse("%s is not loaded: find it with %s first, then call it through %s", c.Name, ToolSearchName, ToolCallName)
	}
	return nil, v.unknown(c.Name, nested)
}

// Unwrap reads a call of tool_call in a scope that has it: the call that it
// names, with the same ids, to be resolved by Bridge (ruling 6). Any other call
// is returned as it is, and false.
func (v *View) Unwrap(c Call) (Call, bool, *Result) {
	bridge := v.Visible(c.Name)
	if c.Name != ToolCallName || bridge == nil || !v.reach[bridge].direct {
		return c, false, nil
	}
	args, _, err := bridge.Validate(c.Args)
	if err != nil {
		return c, false, invalid("nothing was run: %v", err)
	}
	var named map[string]json.RawMessage // a struct would take other spellings, too
	var name string
	if json.Unmarshal(args, &named) != nil || json.Unmarshal(named["name"], &name) != nil || named["arguments"] == nil {
		return c, false, invalid(`nothing was run: %s takes {"name": "…", "arguments": {…}}`, ToolCallName)
	}
	if name == ToolCallName {
		return c, false, invalid("nothing was run: %s cannot call itself; name the tool that is wanted", ToolCallName)
	}
	c.Name, c.Args = name, named["arguments"]
	return c, true, nil
}

func invalid(format string, a ...any) *Result {
	r := Fail(CodeInvalidArgs, format, a...)
	return &r
}

// Bridge is Resolve for a call that came out of tool_call.
func (v *View) Bridge(c *Call) (*Entry, *Result) {
	if e := v.Visible(c.Name); e != nil && v.reach[e].bridge {
		return e, nil
	}
	return v.Resolve(c, false)
}

// Collapsed says whether a model's call of this name is refused only because
// programs are the way to it (S2-035).
func (v *View) Collapsed(name string, nested bool) bool {
	e := v.Visible(name)
	return e != nil && !nested && !v.reach[e].direct && v.reach[e].nested
}

func (v *View) notNested(e *Entry) string {
	if v.reach[e].direct {
		return "; it is a tool of its own: call it directly, outside of exec"
	}
	return ""
}

// collapsed is the route back: the very call, as a program (S2-014, S2-089).
// Arguments that are not JSON never come here; the schema is not looked at.
func (v *View) collapsed(e *Entry, args json.RawMessage) *Result {
	shown, note := string(args), ""
	if len(shown) > maxRouteArgs || shown == "" {
		shown, note = "{…}", " (with the arguments you gave)"
	}
	only := "exec and the direct controls"
	if v.mode == Both {
		only = "the tools declared to you"
	}
	return refuse("only %s can be called directly; run %s inside exec: `const r = await tools.%s(%s); text(r.output)`%s", only, e.spec.Name, e.js, shown, note)
}

// maxRouteArgs is how much of a call's arguments its refusal repeats, in bytes.
const maxRouteArgs = 1000

// unknown names what a caller may have meant: the tool that does the job of one
// that other products have, else the nearest names.
func (v *View) unknown(name string, nested bool) *Result {
	if v.ready.sub && notForSubagents[name] { // a fork is shown its parent's declarations
		return refuse("a subagent has no %s, whether there is such a tool or not: do it yourself, or say in your answer what would be needed", name)
	}
	if instead := v.instead(name, nested); instead != "" {
		return refuse("there is no tool %q here; %s", clip(name), instead)
	}
	var near []string
	for _, e := range v.names {
		if r := v.reach[e]; nested && r.nested {
			near = append(near, e.js)
		} else if !nested && r.direct {
			near = append(near, e.spec.Name)
		}
	}
	if near = Nearest(name, near); len(near) == 0 {
		return refuse("there is no tool %q here", clip(name))
	}
	return refuse("there is no tool %q here; the nearest names are %s", clip(name), join(near))
}

func refuse(format string, a ...any) *Result {
	r := Fail(CodeUnknownTool, format, a...)
	return &r
}
