package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

// An actKind is what one act does.
type actKind int

const (
	actUse     actKind = iota // uses a tool, in a way that only its name tells
	actRead                   // reads a path
	actWrite                  // writes a path
	actCommand                // runs one simple command
	actOpaque                 // does something that cannot be judged
)

// An act is one thing that a call does. A call may run when all its acts may:
// the strictest verdict on one of them is the verdict on the call.
type act struct {
	kind     actKind
	tool     string      // the name that rules know it by
	also     string      // another one: of a tool that stands for a server that it names
	path     string      // actRead, actWrite: absolute, resolved
	words    []word      // actCommand
	prefixed bool        // actCommand: with assignments before it that are not known to be harmless
	prefix   string      // actCommand: the assignments before it, as a rule would have them; "" when they are not literal
	item     string      // of a tool that is given a name, such as an agent or a skill
	host     string      // actUse: of the URL that it fetches
	why      string      // actOpaque: why it cannot be judged; actCommand: why it is not harmless, if that is not plain
	unread   bool        // actOpaque: not even its commands are known
	cut      bool        // actOpaque: stands for acts beyond a bound, of any kind
	file     bool        // actOpaque: of files that are known only when it runs
	reads    bool        // actOpaque, actUse: of a tool that changes nothing
	harmless bool        // asks for nothing itself, so that only rules speak of it
	maybe    bool        // actRead: of git, which shows some files of a directory, also those that are gone
	shell    bool        // part of a shell command
	guess    bool        // actRead, actWrite: of a command that may do so, for nothing is known of it
	tree     bool        // actWrite: of a directory, all that is below it
	spelled  string      // actRead, actWrite: the word of the command that names the path
	owner    *act        // the command that does it, or runs it, as the line has it or behind another one
	at       int         // actCommand with an owner: which word of that one is its first
	stopped  func() bool // nobody waits for the verdict any more
}

// what names the act for a person and a model.
func (a *act) what() string {
	switch a.kind {
	case actRead:
		return "reading " + show(a.path)
	case actWrite:
		return "writing " + show(a.path)
	case actCommand:
		return "running " + show(text(a.words))
	}
	if a.host != "" && a.tool == webTool {
		return "using " + webTool + " on " + show(a.host)
	}
	return "using " + show(a.tool)
}

// acts takes a call apart, by what its tool can do and by what the call says
// that it touches. There is at least one act.
func (p *judgement) acts(r *sched.Request, stopped func() bool) []act {
	spec, item := r.Entry.Spec(), itemOf(r)
	switch spec.Effect {
	case tool.EffectNone:
		return []act{{kind: actUse, tool: spec.Name, also: p.onServer(spec, r.Call.Args), item: item, harmless: true}}
	case tool.EffectRead, tool.EffectWrite:
		acts := pathActs(spec, r.Access)
		for i := range acts {
			acts[i].item = item
		}
		return acts
	case tool.EffectExec:
		return p.commandActs(spec.Name, r.Call.Args, r.Access.Dir, stopped)
	}
	// What web_fetch asks for changes nothing, but the question itself can tell
	// something: so plan mode asks instead of denying it.
	return []act{{kind: actUse, tool: spec.Name, also: p.onServer(spec, r.Call.Args), item: item, host: hostOf(r), reads: spec.Name == webTool}}
}

// resourceTools are our tools that use an MCP server, which their argument names:
// a rule for that server is about them too. A list without one leaves out the
// servers that a rule speaks of; see [Policy.Guards].
var resourceTools = []string{"read_mcp_resource", "list_mcp_resources"}

// onServer is the name that a call of one of them would have as a tool of its
// server; empty for other tools.
func (p *Policy) onServer(spec *tool.Spec, args json.RawMessage) string {
	var in struct {
		Server string `json:"server"`
	}
	if p.toolOf == nil || spec.Server != "" || !slices.Contains(resourceTools, spec.Name) || json.Unmarshal(args, &in) != nil || in.Server == "" {
		return ""
	}
	return p.toolOf(in.Server, spec.Name)
}

func pathActs(spec *tool.Spec, access tool.Access) []act {
	acts := make([]act, 0, len(access.Reads)+len(access.Writes)+1)
	add := func(kind actKind, path string) {
		if !filepath.IsAbs(path) {
			acts = append(acts, act{kind: actOpaque, tool: spec.Name, why: spec.Name + " does not name its paths in full"})
			return
		}
		acts = append(acts, act{kind: kind, tool: spec.Name, path: path})
	}
	for _, path := range access.Writes {
		add(actWrite, path)
	}
	for _, path := range access.Reads {
		add(actRead, path)
	}
	switch reads := spec.Effect == tool.EffectRead; {
	case access.Outside:
		acts = append(acts, act{kind: actOpaque, tool: spec.Name, reads: reads, why: spec.Name + " reaches beyond the paths that it names"})
	case len(acts) == 0:
		acts = append(acts, act{kind: actOpaque, tool: spec.Name, reads: reads, why: spec.Name + " does not say which paths it touches"})
	}
	return acts
}

// commandActs takes the command of a shell call apart. from is where its relative
// directory starts: that is bound to the call, and the session may have moved
// since. Empty means where the session is.
func (p *judgement) commandActs(name string, args json.RawMessage, from string, stopped func() bool) []act {
	opaque := func(why string) act {
		return act{kind: actOpaque, tool: name, shell: true, why: why}
	}
	var in struct {
		Command   string `json:"command"`
		Directory string `json:"directory"`
	}
	if err := json.Unmarshal(args, &in); err != nil || strings.TrimSpace(in.Command) == "" {
		a := opaque("the command of " + name + " cannot be read")
		a.unread = true
		return []act{a}
	}
	dir := in.Directory
	if !filepath.IsAbs(dir) {
		dir = cmp.Or(from, p.place.dir) + string(filepath.Separator) + dir
	}
	real, err := resolve(dir)
	if err != nil {
		return []act{opaque("the directory of " + name + " cannot be followed: " + show(err.Error()))}
	}
	var acts []act
	if p.otherShell {
		// The same characters mean other things there (cmd.exe of Windows).
		a := opaque("a command line of this system's shell is not analysed")
		a.unread = true
		acts = append(acts, a)
	} else {
		acts = p.shellActs(in.Command, real, stopped)
	}
	if !p.place.inside(real) {
		acts = append(acts, opaque("the command runs in "+show(real)+", outside the workspace"))
	}
	for i := range acts {
		acts[i].shell = true
		if acts[i].tool == "" {
			acts[i].tool = name
		}
	}
	return acts
}

// maxShow bounds what a reason quotes of a call, in bytes.
const maxShow = 300

// show makes a text of unknown origin fit for a sentence: short, on one line,
// nothing hidden in it.
func show(s string) string {
	cut := ""
	if len(s) > maxShow {
		at := maxShow
		for at > 0 && !utf8.RuneStart(s[at]) {
			at--
		}
		s, cut = s[:at], "…"
	}
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return strconv.Quote(s) + cut
		}
	}
	return s + cut
}

// quote writes a rule as it stands in a settings file: as JSON, with nothing
// in it that acts on a terminal or cannot be seen.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
