package tool

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"capstan/internal/msg"
	"capstan/internal/schema"
)

// A Registry owns the tools: the one list that everything else is a view of
// (S0-042, S0-043). It is safe for concurrent use.
type Registry struct {
	mu     sync.Mutex
	byName map[string]*Entry
	sorted []*Entry // by canonical name; replaced, never changed
	views  []*View  // of the current tools, one for each mode and scope asked for
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
// was approved under one may run under the other. What only matters to finding
// a tool is left out.
func (e *Entry) Same(o *Entry) bool {
	if e == o {
		return true
	}
	a, b := &e.spec, &o.spec
	return a.Name == b.Name && a.Title == b.Title && a.Description == b.Description && a.Server == b.Server &&
		a.Class == b.Class && a.Effect == b.Effect && a.Waits == b.Waits && a.Closed == b.Closed && slices.Equal(a.Claims, b.Claims) &&
		bytes.Equal(a.Input, b.Input) && bytes.Equal(a.Output, b.Output)
}

// Validate checks arguments against the tool's schema and returns them in
// canonical form, with a note for each lossless coercion. The error lists every
// fault (S3-054 to S3-056). A schema that cannot be compiled refuses every call
// of its tool, and of that tool only: there is no unvalidated call.
func (e *Entry) Validate(args json.RawMessage) (json.RawMessage, []string, error) {
	if err := e.Compile(); err != nil {
		return nil, nil, err
	}
	args, notes, err := e.schema.Validate(args)
	if err != nil {
		return nil, nil, err
	}
	args, err = e.canonical(args)
	return args, notes, err
}

// canonical lets the tool spell valid arguments.
func (e *Entry) canonical(args json.RawMessage) (out json.RawMessage, err error) {
	c, ok := e.tool.(Canonizer)
	if !ok {
		return args, nil
	}
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("spelling the arguments of %s: %v", e.spec.Name, p)
		}
	}()
	if args, err = schema.Parse(c.Canonical(args)); err != nil {
		return nil, fmt.Errorf("spelling the arguments of %s: %w", e.spec.Name, err)
	}
	return args, nil
}

// Compile compiles the tool's schema, the first time, and says what is wrong
// with it.
func (e *Entry) Compile() error {
	e.compile.Do(func() {
		input := e.spec.Input
		if len(input) == 0 {
			input = noParameters
		}
		if rest, ok := bytes.CutPrefix(input, []byte("{")); ok && e.spec.Closed {
			input = slices.Concat(json.RawMessage(`{"additionalProperties":false,`), rest)
		}
		e.schema, e.fault = schema.Compile(input)
		if e.fault != nil {
			e.fault = fmt.Errorf("the input schema of %s cannot be used, so its arguments cannot be checked and it cannot be called: %w", e.spec.Name, e.fault)
		}
	})
	return e.fault
}

var noParameters = json.RawMessage(`{"type":"object","properties":{}}`)

// Declaration is the tool as a model is told of it where it is declared, but for
// a description that depends on the view.
func (e *Entry) Declaration() msg.Declaration {
	return msg.Declaration{Name: e.spec.Name, Description: e.spec.Description, Parameters: e.parameters()}
}

// parameters is the input schema as it is declared: an object, whatever the
// tool left out. What is no JSON object is not declared, for it would spoil the
// whole request; Compile still refuses it.
func (e *Entry) parameters() json.RawMessage {
	e.declare.Do(func() {
		e.declared = e.spec.Input
		if !bytes.HasPrefix(bytes.TrimLeft(e.declared, " \t\r\n"), []byte("{")) || !json.Valid(e.declared) {
			e.declared = noParameters
		}
	})
	return e.declared
}

// Add registers tools, all or none.
func (r *Registry) Add(tools ...Tool) error { return r.Replace(nil, tools...) }

// Replace takes out the tools whose definition drop returns true for and
// registers others, in one step: nobody sees the registry in between. It
// refuses a name that is empty, longer than 1,024 bytes, not printable, not
// UTF-8 or taken, and a Class that there is not, and then changes nothing. drop
// must not call the registry.
func (r *Registry) Replace(drop func(*Spec) bool, tools ...Tool) error {
	added := make([]*Entry, len(tools))
	for i, t := range tools {
		e, err := newEntry(t)
		if err != nil {
			return fmt.Errorf("registering a tool: %w", err)
		}
		added[i] = e
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	byName := make(map[string]*Entry, len(r.byName)+len(tools))
	for name, e := range r.byName {
		if drop == nil || !drop(&e.spec) {
			byName[name] = e
		}
	}
	for _, e := range added {
		if _, taken := byName[e.spec.Name]; taken {
			return fmt.Errorf("registering a tool: the name %q is taken", e.spec.Name)
		}
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

// newEntry reads a tool's definition, once. From here on its class is the one
// that counts.
func newEntry(t Tool) (*Entry, error) {
	e := &Entry{tool: t, spec: *t.Spec()}
	if err := checkName(e.spec.Name); err != nil {
		return nil, err
	}
	if e.spec.Class < Ordinary || e.spec.Class > Hidden {
		return nil, fmt.Errorf("%s has class %d, which there is not", e.spec.Name, e.spec.Class)
	}
	e.spec.Class = classOf(&e.spec)
	e.js = JSName(e.spec.Name)
	return e, nil
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
	m = ModeFor(m)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.views {
		if v.mode == m && v.scope.equal(&s) {
			return v
		}
	}
	if len(r.views) >= maxViews {
		r.views = nil
	}
	v := newView(r.sorted, r.byName, m, s)
	r.views = append(r.views, v)
	return v
}

// maxViews bounds what a program that makes up scopes can make us remember.
const maxViews = 64

// JSName returns the property under which a program finds a tool: each
// character that cannot stand in a JavaScript identifier becomes `_`, and a
// name that cannot begin one gets `_` in front (S0-078, S0-079).
func JSName(name string) string {
	var b strings.Builder
	b.Grow(len(name) + 1)
	for i, c := range name {
		if i == 0 && !identStart(c) && identPart(c) {
			b.WriteByte('_')
		}
		if !identPart(c) {
			c = '_'
		}
		b.WriteRune(c)
	}
	switch s := b.String(); s {
	case "":
		return "_"
	case "then": // an object with a then is taken for a Promise, so tools has none
		return "_then"
	default:
		return s
	}
}

func identStart(c rune) bool {
	if c < utf8.RuneSelf {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c == '$'
	}
	return (unicode.IsLetter(c) || unicode.Is(unicode.Nl, c)) && !unicode.Is(unicode.Pattern_Syntax, c)
}

func identPart(c rune) bool {
	if c < utf8.RuneSelf {
		return identStart(c) || '0' <= c && c <= '9'
	}
	return identStart(c) || unicode.In(c, unicode.Nd, unicode.Mn, unicode.Mc, unicode.Pc)
}
