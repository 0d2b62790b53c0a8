package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"capstan/internal/tool"
)

// A Definition says what kind of agent to run: what it is told, what it may
// call, with which model. It is read from a Markdown file with front matter, in
// the words of Claude Code, of qwen-code or of our own (docs/agents.md), or built
// in.
type Definition struct {
	Name string
	// Description says to a model when to use it. One without is a preset: other
	// definitions name it, nobody runs it.
	Description string
	// Prompt stands in place of who Capstan says it is; empty leaves that.
	Prompt string
	// Tools are the tools of ours, servers and patterns that it may use; nil
	// means all, an empty list none. Disallowed takes away from them.
	Tools, Disallowed []string
	// Starts are the kinds of agent that it may start when it leads a session, Fork
	// among them; nil means all. It is what Agent(a, b) among the tools says.
	Starts []string
	Mode   tool.Mode // empty: inherited
	// Model is as --model has it; empty: that of whoever starts it.
	Model string
	// Approval is an approval mode as --approval-mode spells it. It makes what the
	// session has stricter, and never laxer. Empty: the session's.
	Approval string
	// Silent says that nobody is asked: what would be a question is a denial.
	Silent     bool
	MaxTurns   int           // 0: the usual limit
	Wall       time.Duration // 0: none of its own
	Background bool          // always runs in the background
	// Preset is the definition from which it inherits what it leaves open.
	Preset string
	// Hooks are its own, as they were written, as JSON; nil when there are none.
	// HooksFrom is the file in which they stand: its own, or that of a preset.
	Hooks     json.RawMessage
	HooksFrom string
	// HooksProject says that this file comes from the workspace.
	HooksProject bool

	Path    string // of its file; empty: built in
	Project bool   // it comes from the workspace and not from the user's home

	notes []string // what a person should know of it
}

// The kinds of agent that there always are. fork is no definition: it is whoever
// starts it once more.
const (
	General = "general-purpose"
	Explore = "explore"
	Fork    = "fork"
)

// builtIn are the definitions that come with Capstan. A file of the same name
// replaces one.
func builtIn() []*Definition {
	return []*Definition{
		{Name: Explore, Description: "Finds things out and changes nothing: it reads, lists and searches files.",
			Tools: []string{"read_file", "list_directory", "glob", "grep_search"}},
		{Name: General, Description: "Does a task of several steps, with all tools that a subagent may have."},
	}
}

// Definitions are the kinds of agent of one session.
type Definitions struct {
	list []*Definition // by name
}

// All returns the definitions by name, presets too.
func (d *Definitions) All() []*Definition { return slices.Clone(d.list) }

// Kinds returns those that can be run.
func (d *Definitions) Kinds() []*Definition {
	return slices.DeleteFunc(d.All(), func(x *Definition) bool { return x.Description == "" })
}

// Find returns the definition of a name with all that it inherits filled in. The
// case of letters does not matter when there is no other of that name.
func (d *Definitions) Find(name string) (*Definition, error) {
	x := named(d.list, name)
	if x == nil {
		return nil, d.unknown(name)
	}
	return d.whole(x)
}

// named finds the definition of a name, or else one whose name differs in the case
// of letters only.
func named(list []*Definition, name string) *Definition {
	for _, same := range []func(string) bool{func(n string) bool { return n == name }, func(n string) bool { return strings.EqualFold(n, name) }} {
		if i := slices.IndexFunc(list, func(x *Definition) bool { return same(x.Name) }); i >= 0 {
			return list[i]
		}
	}
	return nil
}

func (d *Definitions) unknown(name string) error {
	var names []string
	for _, x := range d.Kinds() {
		names = append(names, x.Name)
	}
	if near := tool.Nearest(name, names); len(near) > 0 {
		return fmt.Errorf("there is no agent %q: did you mean %s?", cutName(name), near[0])
	}
	const most = 20
	rest := ""
	if n := len(names) - most; n > 0 {
		names, rest = names[:most], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("there is no agent %q: there are %s%s", cutName(name), strings.Join(names, ", "), rest)
}

func cutName(s string) string {
	if len(s) > maxAgentName {
		return string([]rune(strings.ToValidUTF8(s[:maxAgentName], ""))) + "…"
	}
	return s
}

// maxPresets is how long a chain of presets can be.
const maxPresets = 8

// whole fills in what a definition inherits: the nearest mode, model and limit
// counts; what may be called is what all of the chain allow, without what any
// of it takes away (ruling 1, S2-018, S2-088).
func (d *Definitions) whole(x *Definition) (*Definition, error) {
	out, seen := *x, []string{x.Name}
	out.Tools, out.Disallowed = slices.Clone(x.Tools), slices.Clone(x.Disallowed)
	for at := x; at.Preset != ""; {
		p := named(d.list, at.Preset)
		if p == nil {
			return nil, fmt.Errorf("the agent %s has the preset %q, which there is not: want the name of another definition", at.Name, cutName(at.Preset))
		}
		if seen = append(seen, p.Name); len(seen) > maxPresets || slices.Index(seen, p.Name) < len(seen)-1 {
			return nil, fmt.Errorf("the presets of the agent %s have no end: %s", x.Name, strings.Join(seen, ", then "))
		}
		out.inherit(p)
		at = p
	}
	return &out, nil
}

func (x *Definition) inherit(p *Definition) {
	s := tool.Preset{Scope: p.Scope()}.Under(x.Scope())
	x.Tools, x.Disallowed = s.Allow, s.Disallow
	switch {
	case x.Starts == nil:
		x.Starts = slices.Clone(p.Starts)
	case p.Starts != nil:
		x.Starts = append([]string{}, slices.DeleteFunc(slices.Clone(x.Starts), func(n string) bool { return !p.MayStart(n) })...)
	}
	x.Mode = cmp.Or(x.Mode, p.Mode)
	x.Model = cmp.Or(x.Model, p.Model)
	x.Prompt = cmp.Or(x.Prompt, p.Prompt)
	x.Approval = Stricter(x.Approval, p.Approval)
	x.MaxTurns = cmp.Or(x.MaxTurns, p.MaxTurns)
	x.Wall = cmp.Or(x.Wall, p.Wall)
	x.Silent = x.Silent || p.Silent
	x.Background = x.Background || p.Background
	if x.Hooks == nil {
		x.Hooks, x.HooksFrom, x.HooksProject = p.Hooks, p.HooksFrom, p.HooksProject
	}
}

// Scope is what the definition allows and takes away.
func (x *Definition) Scope() tool.Scope {
	return tool.Scope{Allow: x.Tools, Disallow: x.Disallowed}
}

// MayStart says whether it may start a kind of agent. The case of letters does not
// matter.
func (x *Definition) MayStart(kind string) bool {
	return x.Starts == nil || slices.ContainsFunc(x.Starts, func(n string) bool { return strings.EqualFold(n, kind) })
}

// approvals are the approval modes, the strictest first.
var approvals = []string{"plan", "default", "auto-edit", "yolo"}

// Stricter returns the stricter one of two approval modes. An empty one has no
// say; one that is not known counts as the strictest.
func Stricter(a, b string) string {
	if a == "" || b != "" && slices.Index(approvals, b) < slices.Index(approvals, a) {
		return b
	}
	return a
}

const (
	maxAgentName  = 64   // characters
	maxAgentWords = 1024 // characters of a description
)

func checkAgentName(name string) error {
	odd := strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.:", r)
	})
	switch {
	case name == "":
		return errors.New("it has no name")
	case odd || utf8.RuneCountInString(name) > maxAgentName:
		return fmt.Errorf("its name, %q, must have at most %d letters, digits and the characters - _ . :", cutName(name), maxAgentName)
	case strings.EqualFold(name, Fork):
		return fmt.Errorf("the name %s is taken: it is the copy of whoever starts it", Fork)
	}
	return nil
}
