package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

// maxRule bounds a rule's text: the folder's own deny and ask rules are read
// even when nobody trusts it.
const maxRule = 2000

// The tools that the policy knows by name.
const (
	shellTool  = "run_shell_command"
	searchTool = "grep_search"
	readTool   = "read_file"
	writeTool  = "write_file"
	editTool   = "edit"
	webTool    = "web_fetch"
)

// An alias is a name under which rules of other agents know our tools.
type alias struct {
	tools []string
	// family is the kind of access that a rule with this name is about,
	// whatever tool it comes from: a redirect of a shell command is a write.
	family actKind
}

// aliasOf returns the alias of a name, if it is one.
func aliasOf(name string) (alias, bool) {
	tools := tool.RuleNames(name)
	a := alias{tools: tools}
	switch {
	case len(tools) < 2: // about the one tool alone
	case tools[0] == readTool:
		a.family = actRead
	case tools[0] == editTool:
		a.family = actWrite
	}
	return a, tools != nil
}

// specTools are the tools whose rules may have a path in parentheses.
var specTools = []string{readTool, "list_directory", "glob", searchTool, editTool, writeTool}

// A rule is a Rule that was understood. It is about the tools that it names,
// and at most one of path, command and domain says which of their calls.
type rule struct {
	Rule
	name    string
	pattern bool // name has a * in it
	alias
	path    *pathPattern
	command *commandPattern
	domain  string
	item    string // of a tool that is given a name: the agent's or the skill's; * stands for anything
}

// parseRule reads `Tool` or `Tool(spec)`.
func parseRule(text Rule, pl *place) (*rule, error) {
	s := strings.TrimSpace(text.Text)
	if s == "" {
		return nil, errors.New("the rule is empty: want Tool or Tool(spec)")
	}
	if len(s) > maxRule {
		return nil, fmt.Errorf("the rule is longer than %d bytes", maxRule)
	}
	name, spec, has := strings.Cut(s, "(")
	if has {
		var closed bool
		if spec, closed = strings.CutSuffix(spec, ")"); !closed {
			return nil, errors.New("want Tool(spec): the closing parenthesis is missing")
		}
	}
	r := &rule{Rule: text, name: strings.TrimSpace(name), pattern: strings.Contains(name, "*")}
	if r.name == "" || strings.ContainsAny(r.name, " \t\r\n),;\"'`") {
		return nil, fmt.Errorf("%s is no tool name: want Tool or Tool(spec)", show(r.name))
	}
	if a, ok := aliasOf(r.name); ok {
		r.alias = a
	} else if !r.pattern {
		r.alias = alias{tools: []string{r.name}}
	}
	spec = strings.TrimSpace(spec)
	if spec == "" || spec == "*" || spec == ":*" {
		return r, nil
	}
	return r, r.parseSpec(spec, pl)
}

func (r *rule) parseSpec(spec string, pl *place) (err error) {
	switch {
	case slices.Contains(r.tools, shellTool):
		// Older settings of qwen-code mean every command that begins so. To
		// allow, the narrower reading is the safe one; to forbid, the wider.
		wide := r.name != "Bash" && r.List != "allow"
		r.command, err = parseCommandPattern(spec, wide)
	case len(r.tools) > 0 && slices.Contains(specTools, r.tools[0]):
		r.path, err = parsePathPattern(spec, pl, r.List != "allow")
	case slices.Contains(r.tools, webTool):
		domain, ok := strings.CutPrefix(spec, "domain:")
		if !ok {
			return fmt.Errorf("%s takes domain:HOST in parentheses", show(r.name))
		}
		domain = strings.TrimSpace(domain)
		if domain == "*" {
			return nil // as the tool alone
		}
		r.domain, err = parseDomain(strings.TrimPrefix(domain, "*."))
	case len(r.tools) > 0 && itemArgument[r.tools[0]] != "":
		r.item = itemPattern(spec)
	case foreign[r.name]:
		r.item = spec // of no call: the tool is not there
	default:
		return fmt.Errorf("%[1]s takes nothing in parentheses; write %[1]s alone, or one rule for each tool", show(r.name))
	}
	return err
}

// itemArgument are the tools that are given a name to work with, and the argument
// that holds it: rules can speak of one such name.
var itemArgument = map[string]string{"agent": "subagent_type", "skill": "skill"}

// itemPattern reads a name in parentheses: NAME, a part of it with *, NAME:* or
// NAME * for whatever it is told, and /NAME as a person types it.
func itemPattern(spec string) string {
	spec = strings.TrimPrefix(spec, "/")
	spec = strings.TrimSuffix(strings.TrimSuffix(spec, ":*"), " *")
	return strings.TrimSpace(spec)
}

// onItem says whether the rule speaks of a name. To forbid and to ask, the case of
// letters does not matter: rules of Claude Code say Explore where ours is explore.
func (r *rule) onItem(item string) bool {
	if r.List == "allow" {
		return wildcard(r.item, item)
	}
	return wildcard(folded(r.item), folded(item))
}

// folded is the same for two names that strings.EqualFold takes for one.
func folded(s string) string {
	return strings.Map(func(c rune) rune {
		least := c
		for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, s)
}

// itemOf returns the name that a call gives its tool, and whether there is one.
func itemOf(r *sched.Request) string {
	key := itemArgument[r.Entry.Spec().Name]
	if key == "" {
		return ""
	}
	var in map[string]json.RawMessage
	var name string
	if json.Unmarshal(r.Call.Args, &in) != nil || json.Unmarshal(in[key], &name) != nil {
		return ""
	}
	return strings.TrimPrefix(name, "/")
}

// foreign are tools of Claude Code and qwen-code that there are not here, nor
// anything that does their job: rules about them are of no effect.
var foreign = map[string]bool{
	"PowerShell": true, "SlashCommand": true, "LSP": true, "Lsp": true, "lsp": true, "Monitor": true, "CronCreate": true, "CronDelete": true, "CronList": true,
	"TeamCreate": true, "TeamDelete": true, "Computer": true, "SaveMemory": true, "save_memory": true, "SaveMemoryTool": true, "REPL": true, "RemoteTrigger": true,
}

// parseDomain reads the host of a rule. What no host is ever spelled like is an
// error, for such a rule would forbid nothing.
func parseDomain(s string) (string, error) {
	host := oneHost(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	if isAddr(host) {
		return host, nil
	}
	for i := range len(host) {
		switch c := host[i]; {
		case c >= utf8.RuneSelf:
			return "", fmt.Errorf("the host %s is not ASCII: write it in its xn-- form", show(s))
		case (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.':
			return "", fmt.Errorf("%s is no host: want domain:HOST, as domain:example.com, which means what is below it too", show(s))
		}
	}
	if host == "" || host[0] == '.' || strings.Contains(host, "..") {
		return "", fmt.Errorf("%s is no host: want domain:HOST, as domain:example.com, which means what is below it too", show(s))
	}
	return host, nil
}

// oneHost gives a host one spelling: lower case, no dot at the end, an IP
// address as it is usually written, an IPv4 address in an IPv6 one as itself.
func oneHost(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().String()
	}
	return host
}

func isAddr(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// onHost says whether a rule about a domain speaks of a host. Below an address
// there is nothing.
func onHost(domain, host string) bool {
	return host == domain || !isAddr(host) && strings.HasSuffix(host, "."+domain)
}

// covers says whether the rule names the tool. `mcp__server` names every tool
// of the server.
func (r *rule) covers(name string) bool {
	if r.pattern {
		return wildcard(r.name, name)
	}
	if slices.Contains(r.tools, name) {
		return true
	}
	rest, ok := strings.CutPrefix(r.name, "mcp__")
	return ok && !strings.Contains(rest, "__") && strings.HasPrefix(name, r.name+"__")
}

// matches says whether the rule speaks of the act.
func (r *rule) matches(a *act, pl *place) bool {
	named := r.covers(a.tool) || a.also != "" && r.covers(a.also)
	onPath := a.kind == actRead || a.kind == actWrite
	kin := r.family != actUse && r.family == a.kind
	allow := r.List == "allow"
	switch {
	case r.command != nil:
		if a.file {
			// Nobody knows where they lie, so the rule has to be the very command.
			return allow && r.command.exact && r.covers(shellTool) && a.within(r.command)
		}
		if a.kind == actCommand && r.covers(shellTool) {
			// What a command runs is allowed with it when the rule says what that is.
			return r.command.matches(a, !allow) ||
				allow && a.owner != nil && r.command.matches(a.owner, false) && (r.command.exact || len(r.command.spelt) > a.at)
		}
		// What a command reads or writes in the workspace goes with the permission
		// to run it; elsewhere the rule has to name it.
		if !allow || a.owner == nil || !r.covers(shellTool) || !r.command.matches(a.owner, false) {
			return false
		}
		return r.command.names(a.spelled) || pl.inside(a.path) && (a.kind == actRead || pl.sensitive(a.path) == "")
	case r.path != nil:
		if !onPath || !named && !kin || !r.path.matches(a.path) {
			return false
		}
		if !allow || a.kind == actRead {
			return true
		}
		// A rule opens a sensitive file only by naming it.
		name := pl.sensitive(a.path)
		return name == "" || strings.Contains(strings.ToLower(r.Text), strings.ToLower(name))
	case r.item != "":
		return named && a.item != "" && r.onItem(a.item)
	case r.domain != "":
		return named && a.host != "" && onHost(r.domain, a.host)
	case a.shell && r.covers(shellTool):
		return true
	case !named && !kin:
		return false
	case allow && onPath:
		// A tool's name alone opens the workspace, not the machine.
		return pl.inside(a.path) && (a.kind == actRead || pl.sensitive(a.path) == "")
	}
	return true
}

// whole says whether the rule is about tools, and not about some of their calls.
func (r *rule) whole() bool {
	return r.path == nil && r.command == nil && r.domain == "" && r.item == ""
}

// match returns the first rule of the list that speaks of the act.
func match(list []*rule, a *act, pl *place) *rule {
	for _, r := range list {
		if a.stopped != nil && a.stopped() {
			return nil // the verdict will not count
		}
		if r.matches(a, pl) {
			return r
		}
	}
	return nil
}

// matchBelow returns the first rule that could speak of a file inside the
// directory which the act searches.
func matchBelow(list []*rule, a *act) *rule {
	for _, r := range list {
		if r.path != nil && (r.covers(a.tool) || r.family == a.kind || a.kind == actRead && r.family == actRead) && r.path.below(a.path) && (isDir(a.path) || a.maybe && !exists(a.path)) && (a.maybe || r.path.holds(a.path)) {
			return r
		}
	}
	return nil
}

// unknown reports a rule for a tool that does not exist; names are all that
// exist. To forbid or to ask, a name that is nearly right is an error: it was
// meant to protect something.
func (r *rule) unknown(names []string) (warning string, err error) {
	if names == nil || r.pattern || strings.HasPrefix(r.name, "mcp__") {
		return "", nil
	}
	if _, ok := slices.BinarySearch(names, r.name); ok || knownName(r.name) {
		return "", nil
	}
	if foreign[r.name] {
		return "there is no tool like " + show(r.name) + " here, so the rule has no effect", nil
	}
	near := nearestName(r.name, names)
	if near == "" {
		return "no tool is called " + show(r.name), nil
	}
	return "", fmt.Errorf("no tool is called %s; did you mean %s?", show(r.name), show(near))
}

// knownName says whether there is such a tool in some session or mode, if not
// in this one.
func knownName(name string) bool {
	switch name {
	case tool.ExecName, tool.ToolSearchName, tool.ToolCallName:
		return true
	}
	for _, n := range tool.AllRuleNames() {
		if n == name || slices.Contains(tool.RuleNames(n), name) {
			return true
		}
	}
	return false
}

// wildcard matches a name against a pattern in which * stands for anything.
func wildcard(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	rest, ok := strings.CutPrefix(name, parts[0])
	if !ok {
		return false
	}
	for i, part := range parts[1:] {
		if i == len(parts)-2 {
			return strings.HasSuffix(rest, part)
		}
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return rest == ""
}

// hostOf returns the host of the URL in a call's argument "url".
func hostOf(r *sched.Request) string {
	var in struct {
		URL string `json:"url"`
	}
	if json.Unmarshal(r.Call.Args, &in) != nil {
		return ""
	}
	u, err := url.Parse(in.URL)
	if err != nil {
		return ""
	}
	return oneHost(u.Hostname())
}

// names returns all names that a rule could mean, sorted.
func names(tools []string) []string {
	all := slices.Concat(tools, tool.AllRuleNames())
	slices.Sort(all)
	return all
}

// nearestName returns the known name that was probably meant: equal but for
// case, or up to two letters apart.
func nearestName(want string, names []string) string {
	want = strings.ToLower(want)
	best, most := "", min(2, len(want)/2)
	for _, n := range names {
		for most >= 0 && edits(want, strings.ToLower(n), most) {
			best, most = n, most-1
		}
	}
	return best
}

// edits says whether a becomes b by changing, adding or removing at most so
// many bytes. A file may have many rules and a session many tools; so it gives
// up early instead of counting all that differs.
func edits(a, b string, most int) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	switch {
	case a == "" || b == "":
		return len(a)+len(b) <= most
	case most == 0 || len(a)-len(b) > most || len(b)-len(a) > most:
		return false
	}
	return edits(a[1:], b[1:], most-1) || edits(a[1:], b, most-1) || edits(a, b[1:], most-1)
}
