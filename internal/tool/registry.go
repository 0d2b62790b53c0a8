package tool

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"capstan/internal/schema"
)

// A Registry owns the tools: the one list that everything else is a view of
// (S0-042, S0-043). It is safe for concurrent use.
type Registry struct {
	mu     sync.Mutex
	byName map[string]*Entry
	sorted []*Entry         // by canonical name; replaced, never changed
	views  map[string]*View // of the current tools, by mode and scope
}

// An Entry is one registration of a tool. A tool that is registered anew gets
// a new Entry, so an Entry also stands for the definition as it was.
type Entry struct {
	tool Tool
	spec Spec
	js   string

	compile  sync.Once
	schema   *schema.Schema
	fault    error
	declare  sync.Once
	declared json.RawMessage // the schema as it is declared
}

// Tool returns the tool.
func (e *Entry) Tool() Tool { return e.tool }

// Spec returns the definition, as it was when the tool was registered. It must
// not be changed.
func (e *Entry) Spec() *Spec { return &e.spec }

// Same says whether two entries stand for the same definition, so that what
// was approved under one may run under the other.
func (e *Entry) Same(o *Entry) bool {
	return e == o || e.spec.Name == o.spec.Name && e.spec.Description == o.spec.Description &&
		e.spec.Class == o.spec.Class && e.spec.Effect == o.spec.Effect && e.spec.Server == o.spec.Server &&
		string(e.spec.Input) == string(o.spec.Input) && string(e.spec.Output) == string(o.spec.Output)
}

// Validate checks arguments against the tool's schema and returns them in
// canonical form, with a note for each lossless coercion. The error lists every
// fault (S3-054 to S3-056). A schema that cannot be compiled refuses every call
// of its tool, and of that tool only: there is no unvalidated call.
func (e *Entry) Validate(args json.RawMessage) (json.RawMessage, []string, error) {
	if err := e.Compile(); err != nil {
		return nil, nil, err
	}
	return e.schema.Validate(args)
}

// Compile compiles the tool's schema, the first time, and says what is wrong
// with it.
func (e *Entry) Compile() error {
	e.compile.Do(func() {
		e.schema, e.fault = schema.Compile(e.parameters())
		if e.fault != nil {
			e.fault = fmt.Errorf("the input schema of %s cannot be used, so its arguments cannot be checked and it cannot be called: %w", e.spec.Name, e.fault)
		}
	})
	return e.fault
}

// parameters is the input schema as it is declared: an object, whatever the
// tool left out.
func (e *Entry) parameters() json.RawMessage {
	e.declare.Do(func() {
		e.declared = e.spec.Input
		if len(e.declared) == 0 {
			e.declared = json.RawMessage(`{"type":"object","properties":{}}`)
		}
	})
	return e.declared
}

// Add registers tools, all or none.
func (r *Registry) Add(tools ...Tool) error { return r.Replace(nil, tools...) }

// Replace takes out the tools whose definition drop returns true for and
// registers others, in one step: nobody sees the registry in between. It
// refuses a name that is empty, not printable, not UTF-8 or taken, and then
// changes nothing.
func (r *Registry) Replace(drop func(*Spec) bool, tools ...Tool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	byName := make(map[string]*Entry, len(r.byName)+len(tools))
	for name, e := range r.byName {
		if drop == nil || !drop(&e.spec) {
			byName[name] = e
		}
	}
	for _, t := range tools {
		e := &Entry{tool: t, spec: *t.Spec()}
		if err := checkName(e.spec.Name); err != nil {
			return fmt.Errorf("registering a tool: %w", err)
		}
		if _, taken := byName[e.spec.Name]; taken {
			return fmt.Errorf("registering a tool: the name %q is taken", e.spec.Name)
		}
		e.js = JSName(e.spec.Name)
		byName[e.spec.Name] = e
	}
	sorted := make([]*Entry, 0, len(byName))
	for _, e := range byName {
		sorted = append(sorted, e)
	}
	slices.SortFunc(sorted, func(a, b *Entry) int { return cmp.Compare(a.spec.Name, b.spec.Name) })
	r.byName, r.sorted, r.views = byName, sorted, nil
	return nil
}

func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("the name is empty")
	case len(name) > 1024:
		return fmt.Errorf("the name %.40q… is longer than 1,024 bytes", name)
	case !utf8.ValidString(name):
		return fmt.Errorf("the name %q is not valid UTF-8", name)
	case strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }):
		return fmt.Errorf("the name %q holds a character that cannot be printed", name)
	}
	return nil
}

// Tools returns every registered tool by name, whatever the mode: this is what
// listings and diagnostics show (S2-037 to S2-041).
func (r *Registry) Tools() []*Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sorted
}

// View returns what an agent of this mode and scope may see and call. The view
// never changes; asking again costs nothing until the registry does.
func (r *Registry) View(m Mode, s Scope) *View {
	key := fmt.Sprintf("%s %q %v %q %v %q %q %v", ModeFor(m), s.Allow, s.Allow == nil, s.Disallow, s.Eager == nil, s.Eager, s.Visible, s.Servers)
	r.mu.Lock()
	defer r.mu.Unlock()
	if v := r.views[key]; v != nil {
		return v
	}
	if r.views == nil || len(r.views) >= maxViews {
		r.views = map[string]*View{}
	}
	v := newView(r.sorted, r.byName, ModeFor(m), s)
	r.views[key] = v
	return v
}

// maxViews bounds what a program that makes up scopes can make us remember.
const maxViews = 64

// JSName returns the property under which a program finds a tool: each
// character that cannot stand in a JavaScript identifier becomes `_`, and a
// name that cannot begin one gets `_` in front (S0-078, S0-079).
func JSName(name string) string {
	var b strings.Builder
	for i, c := range name {
		start := c == '_' || c == '$' || unicode.IsLetter(c) || unicode.Is(unicode.Nl, c)
		switch {
		case i == 0 && !start:
			b.WriteByte('_')
			if !identPart(c) {
				continue
			}
		case !start && !identPart(c):
			c = '_'
		}
		b.WriteRune(c)
	}
	if b.String() == "then" { // an object with a then is taken for a Promise, so tools has none
		return "_then"
	}
	return b.String()
}

func identPart(c rune) bool {
	return c == '_' || c == '$' || unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.In(c, unicode.Nl, unicode.Mn, unicode.Mc, unicode.Pc)
}
