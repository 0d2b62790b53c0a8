// Package policy decides whether a call runs, has to be asked about, or is
// refused: the user's rules, the approval mode, the workspace and an analysis
// of shell commands. It implements sched.Policy.
//
// It asks nobody (an approver does that), changes nothing, and is no sandbox:
// what a program does once it runs is not seen here. Where it cannot tell, it
// asks.
package policy

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"capstan/internal/sched"
)

// A Mode says what runs without a question when no rule speaks.
type Mode string

// The approval modes, from strict to lax.
const (
	Plan     Mode = "plan"      // only what changes nothing runs; the rest is denied
	Default  Mode = "default"   // reads in the workspace run; all else asks
	AutoEdit Mode = "auto-edit" // writes in the workspace run too
	Yolo     Mode = "yolo"      // every question is answered yes, but those of permissions.ask
)

// ParseMode reads a mode as --approval-mode spells it.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case Plan, Default, AutoEdit, Yolo:
		return m, nil
	}
	return "", fmt.Errorf("unknown approval mode %q: want plan, default, auto-edit or yolo", s)
}

// A Rule is one entry of permissions.allow, permissions.ask or
// permissions.deny, as it was written.
type Rule struct {
	List   string // "allow", "ask" or "deny"
	Text   string // `Tool` or `Tool(spec)`
	Origin string // where it stands: layer, file, line and column
}

func (r Rule) String() string {
	s := "permissions." + r.List + " "
	if len(r.Text) > maxRule { // it is not in force
		s += show(r.Text)
	} else {
		s += quote(r.Text)
	}
	if r.Origin != "" {
		s += " (" + r.Origin + ")"
	}
	return s
}

// Options make a Policy.
type Options struct {
	Mode Mode   // empty means Default
	Dir  string // the working directory, absolute
	// Roots are the directories of the workspace, the project's first; empty
	// means Workspace(Dir).
	Roots []string
	Home  string // the user's home directory; empty when there is none
	// Readable are directories that may be read without asking although they
	// are not in the workspace: where the session's spilled texts lie.
	Readable []string
	Rules    []Rule
	// ManagedOnly says that no allow rule is added by Add: those in Rules are all.
	ManagedOnly bool
	// NoYolo is where the approval mode yolo is forbidden, as text; empty when it
	// is not.
	NoYolo string
	// Tools are the names of the registered tools. When given, a rule that
	// names none of them is reported.
	Tools []string
	// ToolOf is the name under which a tool of an MCP server is registered; nil
	// when there are no servers.
	ToolOf func(server, tool string) string
	// Settings is the file that suggestions name; empty means
	// ~/.capstan/settings.json.
	Settings string
	// AllowFlag is the flag that adds rules for one run, which suggestions name
	// too; empty when the command has none.
	AllowFlag string
	// Environ are the names of the variables that commands get. An assignment to
	// one of them, and showing one, asks. Nil means that any could be one.
	Environ []string
	// HidesDenied says that the searching tool leaves out the files for which
	// Hidden is true. Without it, a search of a directory in which a rule
	// forbids reading some files is refused as a whole.
	HidesDenied bool
}

// A Policy judges calls. After New its mode changes, rules are added, and it is
// moved to another place; each call is judged under one mode, in one place and
// under one set of rules. It is safe for concurrent use.
type Policy struct {
	mode        atomic.Pointer[Mode]
	rules       atomic.Pointer[ruleSet]
	adding      sync.Mutex // held by Add and Move, guards texts and twins
	first       *place     // where New was told to be
	texts       []Rule     // that are in force
	twins       []twin     // the workspaces since the first, which are copies of it
	readable    []string
	managedOnly bool
	noYolo      string
	environ     []string
	known       []string // the names that a rule could mean; nil when that is not known
	toolOf      func(server, tool string) string
	settings    string
	allowFlag   string
	hidesDenied bool
	otherShell  bool // commands are run by a shell whose lines are not analysed
}

// A ruleSet is all rules in force, and the place that they were read for. It never
// changes: adding one makes another.
type ruleSet struct {
	place            *place
	allow, ask, deny []*rule
}

// A judgement is the policy as it is while one call is judged.
type judgement struct {
	*Policy
	*ruleSet
}

func (p *Policy) now() *judgement { return &judgement{p, p.rules.Load()} }

// New reads the rules and returns the policy. A rule of permissions.deny or
// permissions.ask that cannot be read is an error, for ignoring it would run
// what it forbids; one of permissions.allow is dropped with a warning.
func New(o Options) (*Policy, []string, error) {
	p := &Policy{settings: o.Settings, allowFlag: o.AllowFlag, toolOf: o.ToolOf, hidesDenied: o.HidesDenied, managedOnly: o.ManagedOnly, environ: o.Environ, noYolo: o.NoYolo, otherShell: runtime.GOOS == "windows"}
	if o.Mode == "" {
		o.Mode = Default
	}
	if err := p.SetMode(o.Mode); err != nil {
		return nil, nil, err
	}
	if p.settings == "" {
		p.settings = "~/.capstan/settings.json"
	}
	var err error
	if p.first, err = newPlace(o.Dir, o.Home, o.Roots); err != nil {
		return nil, nil, err
	}
	for _, d := range o.Readable {
		dir, err := resolve(d)
		if err != nil {
			return nil, nil, fmt.Errorf("finding the readable directory %s: %w", show(d), plain(err))
		}
		p.readable = append(p.readable, dir)
	}
	if o.Tools != nil {
		p.known = names(o.Tools)
	}
	warnings, err := p.read(o.Rules)
	return p, warnings, err
}

// Add puts rules into force, as a person's answer to a question makes them. They
// count for every call that is judged from now on, and as long as the policy
// lives: nothing is written anywhere. When one of them cannot be read, or may not be
// in force, that is an error and none is added; one that is there already is not
// added again.
func (p *Policy) Add(rules ...Rule) error {
	p.adding.Lock()
	defer p.adding.Unlock()
	next, texts := *p.rules.Load(), p.texts
	for _, r := range rules {
		parsed, err := p.parseFor(r, next.place, p.twins)
		if err != nil {
			return fmt.Errorf("reading %s: %w", r, err)
		}
		if r.List == "allow" && p.managedOnly {
			return errors.New("the managed settings let only their own rules allow something")
		}
		list := next.list(r.List)
		if list == nil {
			return fmt.Errorf("reading %s: %w", r, errList(r.List))
		}
		known := func(old *rule) bool { return strings.TrimSpace(old.Text) == strings.TrimSpace(r.Text) }
		if !slices.ContainsFunc(*list, known) {
			*list = append(slices.Clip(*list), parsed...)
			texts = append(texts, r)
		}
	}
	p.texts = texts
	p.rules.Store(&next)
	return nil
}

// list returns the rules of permissions.NAME; nil when there is no such list.
func (s *ruleSet) list(name string) *[]*rule {
	switch name {
	case "allow":
		return &s.allow
	case "ask":
		return &s.ask
	case "deny":
		return &s.deny
	}
	return nil
}

func errList(name string) error {
	return fmt.Errorf("unknown list %q: want allow, ask or deny", name)
}

// maxReports bounds the warnings about rules, and the faults.
const maxReports = 20

// read parses the rules into their lists.
func (p *Policy) read(rules []Rule) (warnings []string, err error) {
	var faults []error
	set := &ruleSet{place: p.first}
	defer p.rules.Store(set)
	for _, text := range rules {
		r, typo, err := p.parse(text, p.first)
		switch {
		case err != nil && text.List == "allow":
			warnings = append(warnings, fmt.Sprintf("%s is ignored: %v", text, err))
			continue
		case err != nil:
			faults = append(faults, fmt.Errorf("reading %s: %w", text, err))
			continue
		case typo != "":
			warnings = append(warnings, fmt.Sprintf("%s: %s", text, typo))
		}
		if list := set.list(text.List); list != nil {
			*list = append(*list, r)
			p.texts = append(p.texts, text)
		} else {
			faults = append(faults, fmt.Errorf("reading %s: %w", text, errList(text.List)))
		}
	}
	if more := len(warnings) - maxReports; more > 0 {
		warnings = append(warnings[:maxReports], fmt.Sprintf("and %d more warnings about rules", more))
	}
	if more := len(faults) - maxReports; more > 0 {
		faults = append(faults[:maxReports], fmt.Errorf("and %d more rules that cannot be read", more))
	}
	return warnings, errors.Join(faults...)
}

// parse reads one rule for a place. A typo is what is odd about it, if it can be
// read.
func (p *Policy) parse(text Rule, pl *place) (r *rule, typo string, err error) {
	if r, err = parseRule(text, pl); err == nil {
		typo, err = r.unknown(p.known)
	}
	return r, typo, err
}

// Mode returns the approval mode in force.
func (p *Policy) Mode() Mode { return *p.mode.Load() }

// SetMode changes the approval mode, once a person has said so. It counts for
// every call that is judged from now on; those that were judged stay as they
// are. An unknown mode is an error and changes nothing.
func (p *Policy) SetMode(m Mode) error {
	if _, err := ParseMode(string(m)); err != nil {
		return err
	}
	if m == Yolo && p.noYolo != "" {
		return fmt.Errorf("the approval mode yolo is not to be had: permissions.disableBypassPermissionsMode forbids it (%s)", p.noYolo)
	}
	p.mode.Store(&m)
	return nil
}

// Roots returns the directories of the workspace, resolved, the project's
// first.
func (p *Policy) Roots() []string { return slices.Clone(p.rules.Load().place.roots) }

// Decide judges a call (ruling 11). The verdict does not depend on who made
// the call: a nested one is judged like one of the model (S0-010, S0-163).
// When the context ends before the judgement does, the call is denied.
func (p *Policy) Decide(ctx context.Context, r *sched.Request) sched.Verdict {
	return p.now().explain(ctx, r).Verdict
}

// An Explanation is a verdict in parts, for `tools why`.
type Explanation struct {
	sched.Verdict
	Rule string // the rule that decided, as it was written; empty when the mode did
}

// Explain judges a call and says what decided, and what would let it run.
func (p *Policy) Explain(r *sched.Request) Explanation {
	return p.now().explain(context.Background(), r)
}

func (p *judgement) explain(ctx context.Context, r *sched.Request) Explanation {
	return p.explainIn(ctx, r, p.Mode()) // one mode for the whole call, whoever changes it meanwhile
}

// explainIn judges in this mode, whatever the policy's own is.
func (p *judgement) explainIn(ctx context.Context, r *sched.Request, mode Mode) Explanation {
	stopped := func() bool { return ctx.Err() != nil }
	acts := p.acts(r, stopped)
	found := make([]finding, len(acts))
	for i := range acts {
		acts[i].stopped = stopped
		found[i] = p.judge(mode, &acts[i])
		if stopped() { // what was found so far may be wrong
			return Explanation{Verdict: sched.Verdict{
				Decision:   sched.Deny,
				By:         "approval mode " + string(mode),
				Reason:     "judging the call was ended: " + context.Cause(ctx).Error(),
				Suggestion: "make the call again",
			}}
		}
	}
	return p.sum(mode, found)
}

// A finding is the verdict on one act.
type finding struct {
	act      *act
	decision sched.Decision
	reason   string
	rule     *rule // nil: the mode decided
}

// judge decides about one act: deny beats ask beats allow, whatever the layer.
// An allow rule answers a question that the mode would ask, and nothing more:
// what plan mode denies stays denied, also where a rule would ask.
func (p *judgement) judge(mode Mode, a *act) finding {
	f, ruled := p.byRule(a)
	if ruled && f.decision == sched.Deny {
		return f
	}
	decision, reason := p.byMode(mode, a)
	if ruled && decision != sched.Deny {
		return f
	}
	if decision == sched.Ask {
		if r := match(p.allow, a, p.place); r != nil {
			return finding{a, sched.Allow, "", r}
		}
	}
	return finding{a, decision, reason, nil}
}

// byRule says what the rules that deny or ask make of an act.
func (p *judgement) byRule(a *act) (finding, bool) {
	if a.guess { // nobody knows what the command does with it
		for _, list := range [][]*rule{p.deny, p.ask} {
			if r := match(list, a, p.place); r != nil {
				return finding{a, sched.Ask, fmt.Sprintf("%s could do what %s speaks of: it names %s", a.owner.what(), r, show(a.path)), r}, true
			}
		}
		return finding{}, false
	}
	if r := match(p.deny, a, p.place); r != nil {
		return finding{a, sched.Deny, a.what() + " is forbidden by " + r.String(), r}, true
	}
	if f, hit := p.search(a); hit {
		return f, true
	}
	if r := match(p.ask, a, p.place); r != nil {
		return finding{a, sched.Ask, a.what() + " is to be asked about by " + r.String(), r}, true
	}
	return p.unchecked(a)
}

// search judges the search of a directory that holds files which a rule
// protects: their contents would be read without their paths being named.
func (p *judgement) search(a *act) (finding, bool) {
	if a.kind == actWrite && a.tree {
		for _, list := range [][]*rule{p.deny, p.ask} {
			if r := matchBelow(list, a); r != nil {
				return finding{a, sched.Ask, fmt.Sprintf("%s could change files that %s protects", a.owner.what(), r), r}, true
			}
		}
	}
	if a.kind != actRead || a.tool != searchTool {
		return finding{}, false
	}
	r := matchBelow(p.deny, a)
	if r == nil {
		r = matchBelow(p.ask, a)
	}
	if r != nil && a.maybe {
		return finding{a, sched.Ask, fmt.Sprintf("%s could show files that %s protects; name files or directories without them, after --", a.owner.what(), r), r}, true
	}
	if r := matchBelow(p.deny, a); r != nil && (a.shell || !p.hidesDenied) {
		return finding{a, sched.Deny, fmt.Sprintf("searching %s could show files that %s protects; name a directory without them", show(a.path), r), r}, true
	}
	if r := matchBelow(p.ask, a); r != nil {
		return finding{a, sched.Ask, fmt.Sprintf("searching %s could show files to be asked about by %s", show(a.path), r), r}, true
	}
	return finding{}, false
}

// unchecked asks, in every mode, about what only turns out when it runs and
// could be what a deny or ask rule about commands speaks of.
func (p *judgement) unchecked(a *act) (finding, bool) {
	switch {
	case a.kind == actOpaque && a.file:
		for _, list := range [][]*rule{p.deny, p.ask} {
			if i := slices.IndexFunc(list, aboutFiles); i >= 0 {
				return finding{a, sched.Ask, a.why + ", so " + list[i].String() + " cannot be checked", list[i]}, true
			}
		}
	case a.kind == actOpaque && a.cut:
		for _, list := range [][]*rule{p.deny, p.ask} {
			if len(list) > 0 {
				return finding{a, sched.Ask, a.why + ", so " + list[0].String() + " cannot be checked", list[0]}, true
			}
		}
	case a.kind == actOpaque && a.unread:
		if r := p.shellRule(func(*commandPattern) bool { return true }); r != nil {
			return finding{a, sched.Ask, a.why + ", so " + r.String() + " cannot be checked", r}, true
		}
	case a.kind == actCommand:
		if r := p.shellRule(func(cp *commandPattern) bool { return cp.could(a) }); r != nil {
			return finding{a, sched.Ask, "what " + show(text(a.words)) + " runs is known only then, so " + r.String() + " cannot be checked", r}, true
		}
	}
	return finding{}, false
}

// shellRule returns the first deny or ask rule about commands that f is true
// for.
func (p *judgement) shellRule(f func(*commandPattern) bool) *rule {
	for _, list := range [][]*rule{p.deny, p.ask} {
		for _, r := range list {
			if r.command != nil && f(r.command) {
				return r
			}
		}
	}
	return nil
}

// Forbids returns the rule that denies every call of a tool, as text: one that
// names it and has nothing in parentheses. It is empty when there is none; some
// calls, or all that there could be, may be denied all the same.
func (p *Policy) Forbids(name string) string {
	for _, r := range p.rules.Load().deny {
		if r.whole() && r.covers(name) {
			return r.String()
		}
	}
	return ""
}

// Guards returns the rule that denies every call of a tool, or asks about it, as
// text; empty when there is none. It is for a call that would do the same for many
// tools at once and must not do it for those that a rule speaks of.
func (p *Policy) Guards(name string) string {
	rules := p.rules.Load()
	for _, list := range [][]*rule{rules.deny, rules.ask} {
		if r := match(list, &act{kind: actUse, tool: name}, rules.place); r != nil {
			return r.String()
		}
	}
	return ""
}

// Withheld returns the names, and the patterns that end with `*`, of the tools of
// MCP servers that rules deny whole, whether such tools are there or not: their
// servers may not have answered yet. A pattern with `*` elsewhere is left out; the
// calls that it denies are denied all the same.
func (p *Policy) Withheld() []string {
	var names []string
	for _, r := range p.rules.Load().deny {
		if r.path != nil || r.command != nil || r.domain != "" || !strings.HasPrefix(r.name, "mcp__") {
			continue
		}
		if head := strings.TrimSuffix(r.name, "*"); !strings.Contains(head, "*") {
			names = append(names, r.name)
		}
	}
	return names
}

// Hidden says whether a rule forbids reading the file, so that a tool which
// reads many files can leave it out. The path is absolute and resolved.
func (p *Policy) Hidden(path string) bool {
	now := p.rules.Load()
	if len(now.deny) == 0 {
		return false
	}
	return match(now.deny, &act{kind: actRead, tool: searchTool, path: path}, now.place) != nil
}

// ForbidsAll says whether a rule denies every tool whose name begins with prefix,
// such as mcp__github__.
func (p *Policy) ForbidsAll(prefix string) bool {
	return slices.ContainsFunc(p.rules.Load().deny, func(r *rule) bool {
		if !r.whole() {
			return false
		}
		if head, ok := strings.CutSuffix(r.name, "*"); ok && !strings.Contains(head, "*") {
			return strings.HasPrefix(prefix, head)
		}
		return !r.pattern && strings.HasPrefix(r.name, "mcp__") && r.name+"__" == prefix
	})
}

// byMode is what the approval mode says of an act that no deny or ask rule
// speaks of.
func (p *judgement) byMode(mode Mode, a *act) (sched.Decision, string) {
	if a.harmless || mode == Yolo {
		return sched.Allow, ""
	}
	outside := " is outside the workspace (" + show(strings.Join(p.place.roots, ", ")) + ")"
	switch {
	case a.kind == actRead && (p.place.inside(a.path) || within(p.readable, a.path)):
		return sched.Allow, ""
	case a.kind == actRead:
		return sched.Ask, a.what() + outside
	case mode == Plan && !a.reads:
		return sched.Deny, couldChange(a) + ", and approval mode plan runs only what changes nothing"
	case a.kind == actOpaque:
		return sched.Ask, a.why
	case a.kind == actCommand && a.why != "":
		return sched.Ask, a.what() + " " + a.why
	case a.kind != actWrite:
		return sched.Ask, a.what() + " needs approval in approval mode " + string(mode)
	case !p.place.inside(a.path):
		return sched.Ask, a.what() + outside
	}
	if name := p.place.sensitive(a.path); name != "" {
		return sched.Ask, a.what() + " can change what runs later (" + name + "), so it always needs approval"
	}
	if mode == AutoEdit {
		return sched.Allow, ""
	}
	return sched.Ask, a.what() + " needs approval in approval mode " + string(mode)
}

// couldChange says why plan mode does not run the act.
func couldChange(a *act) string {
	switch {
	case a.why == "":
		return a.what() + " could change something"
	case a.kind == actCommand:
		return a.what() + " " + a.why
	}
	return a.why
}

// Workspace returns the workspace around a directory: the git work tree that
// holds it, else the directory itself, with symbolic links resolved. A work
// tree whose .git another user made is none.
func Workspace(dir string) (string, error) {
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("finding the workspace of %q: want an absolute path", dir)
	}
	real, err := realDir(dir)
	if err != nil {
		return "", fmt.Errorf("finding the workspace: %w", err)
	}
	for at := real; ; at = filepath.Dir(at) {
		if isWorkTree(at) {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return real, nil
		}
	}
}
