package hook

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Source is the `hooks` of one settings file.
type Source struct {
	Value json.RawMessage
	// Where says where a part of the value stands, by the names and indexes that
	// lead to it.
	Where func(path ...string) string
	// Subagent says that they are those of one subagent: Stop is SubagentStop then,
	// as in Claude Code, and what happens in no subagent is warned of.
	Subagent bool
	// Withheld are variables whose values their headers are not given, whatever the
	// hooks allow: the user's keys, where the hooks come with a folder.
	Withheld []string
}

// Hooks are all hooks of the settings, in the order in which they stand there,
// the farthest layer first.
type Hooks struct{ by map[Event][]*handler }

// Empty reports whether there are none.
func (h *Hooks) Empty() bool { return len(h.by) == 0 }

// Variables are the variables of the environment that headers of HTTP hooks may
// name.
func (h *Hooks) Variables() []string {
	var names []string
	for _, list := range h.by {
		for _, x := range list {
			names = append(names, x.allowed...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// A handler is one hook.
type handler struct {
	event   Event
	matcher matcher
	label   string // what it is called in messages
	where   string

	command string   // a line for a shell, or with args the program
	args    []string // not nil: the program is run without a shell
	power   bool     // the shell is PowerShell
	env     []string

	url     string
	headers map[string]string
	allowed []string // variables that headers may name

	timeout  time.Duration
	required bool // what it cannot answer counts as a no
	async    bool // nobody waits for it
	once     bool // in a session

	done   atomic.Bool
	faults atomic.Int32
}

func (h *handler) String() string { return fmt.Sprintf("%q (%s)", h.label, h.where) }

// same says whether two hooks of one event do the same: it is done once, as in
// Claude Code. One that nobody waits for, that runs once or that is given less time
// does not stand for one that can block.
func (h *handler) same(o *handler) bool {
	return h.command == o.command && slices.Equal(h.args, o.args) && (h.args == nil) == (o.args == nil) && h.power == o.power &&
		slices.Equal(h.env, o.env) && h.url == o.url && maps.Equal(h.headers, o.headers) && h.async == o.async &&
		h.once == o.once && h.timeout == o.timeout && slices.Equal(h.allowed, o.allowed)
}

// fires are the events that Capstan has. The value says whether its hooks have a
// matcher.
var fires = map[Event]bool{
	SessionStart: true, UserPromptSubmit: false, PreToolUse: true, PermissionRequest: true, PostToolUse: true, PostToolUseFailure: true,
	PostToolBatch: false, Notification: true, SubagentStart: true, SubagentStop: true, PreCompact: true, Stop: false, SessionEnd: true,
}

// foreignEvents are events of other products that do not happen here.
var foreignEvents = []string{"ConfigChange", "CwdChanged", "Elicitation", "ElicitationResult", "FileChanged", "InstructionsLoaded", "MessageDisplay",
	"MonitorEvent", "PermissionDenied", "PostCompact", "QueryEnd", "SessionDelete", "Setup", "StopFailure", "TaskCompleted", "TaskCreated", "TeammateIdle",
	"UserPromptExpansion", "WorktreeCreate", "WorktreeRemove"}

// What the parts of a setting may be called. ignored are fields that change
// nothing here, and need no word.
var (
	groupFields   = []string{"matcher", "hooks"}
	handlerFields = []string{"type", "command", "args", "shell", "env", "url", "headers", "allowedEnvVars", "timeout", "required", "async", "once", "name"}
	ignored       = []string{"statusMessage", "description", "$comment", "comment", "_comment", "enabled"}
)

// maxHooks bounds the hooks of all settings.
const maxHooks = 1000

// Parse reads the hooks of the settings. The error lists every fault with its
// place: what cannot be understood may be there to forbid something. Warnings
// are about what does no harm.
func Parse(sources []Source) (h *Hooks, warnings []string, err error) {
	p := &parser{hooks: &Hooks{by: map[Event][]*handler{}}}
	for _, s := range sources {
		p.where, p.subagent, p.withheld = s.Where, s.Subagent, s.Withheld
		p.source(s.Value)
	}
	if err := errors.Join(p.faults...); err != nil {
		return nil, p.warnings, err
	}
	return p.hooks, p.warnings, nil
}

type parser struct {
	where    func(path ...string) string
	subagent bool
	withheld []string
	hooks    *Hooks
	count    int
	warnings []string
	faults   []error
}

// A path leads to a part of one source.
type path []string

func (p path) String() string {
	var b strings.Builder
	b.WriteString("hooks")
	for _, s := range p {
		if _, err := strconv.Atoi(s); err == nil {
			b.WriteString("[" + s + "]")
		} else {
			b.WriteString("." + s)
		}
	}
	return b.String()
}

func (at path) to(next ...string) path { return append(slices.Clip(at), next...) }

func (p *parser) fault(at path, format string, a ...any) {
	p.faults = append(p.faults, fmt.Errorf("%s: %s: %s", p.where(at...), at, fmt.Sprintf(format, a...)))
}

func (p *parser) warn(at path, format string, a ...any) {
	p.warnings = append(p.warnings, fmt.Sprintf("%s: %s: %s", p.where(at...), at, fmt.Sprintf(format, a...)))
}

func (p *parser) source(raw json.RawMessage) {
	events := p.object(nil, raw)
	for _, name := range slices.Sorted(maps.Keys(events)) {
		ev, v := Event(name), events[name]
		if _, ok := fires[ev]; !ok {
			p.unknownEvent(name, v)
			continue
		}
		if p.subagent && slices.Contains(mainOnly, ev) {
			p.warn(path{name}, "%s does not happen in a subagent, so these hooks run only where the agent is the session's own (--agent)", name)
		}
		for i, v := range p.list(path{name}, v) {
			p.group(ev, path{name, strconv.Itoa(i)}, v)
		}
	}
}

// mainOnly are the events that the session's own agent alone has.
var mainOnly = []Event{SessionStart, UserPromptSubmit, Notification, PreCompact, SessionEnd}

// unknownEvent refuses a name that may be a misspelt one.
func (p *parser) unknownEvent(name string, v json.RawMessage) {
	at := path{name}
	switch {
	case !slices.Contains(foreignEvents, name):
		p.fault(at, "there is no event %q: want one of %s", name, strings.Join(eventNames(), ", "))
	case strings.Contains(strings.ReplaceAll(string(v), " ", ""), `"required":true`):
		p.fault(at, "Capstan has no event %s, so a required hook of it would never run", name)
	default:
		p.warn(at, "Capstan has no event %s, so its hooks never run", name)
	}
}

func eventNames() []string {
	var names []string
	for ev := range fires {
		names = append(names, string(ev))
	}
	slices.Sort(names)
	return names
}

func (p *parser) group(ev Event, at path, raw json.RawMessage) {
	group := p.object(at, raw)
	if group == nil {
		return
	}
	p.unknown(at, group, groupFields)
	m := matcher{all: true}
	if v, ok := group["matcher"]; ok {
		if text, ok := p.text(at.to("matcher"), v); ok {
			var err error
			if m, err = parseMatcher(text); err != nil {
				p.fault(at.to("matcher"), "%v", err)
			}
		}
		if !fires[ev] {
			m = matcher{all: true} // as in Claude Code
		}
	}
	v, ok := group["hooks"]
	if !ok {
		p.fault(at, `needs "hooks", a list of {"type": "command", "command": "…"} or {"type": "http", "url": "…"}`)
		return
	}
	for i, v := range p.list(at.to("hooks"), v) {
		p.handler(ev, m, at.to("hooks", strconv.Itoa(i)), v)
	}
}

func (p *parser) handler(ev Event, m matcher, at path, raw json.RawMessage) {
	f := fields{p, at, p.object(at, raw)}
	if f.in == nil {
		return
	}
	if p.subagent && ev == Stop {
		ev = SubagentStop
	}
	h := &handler{event: ev, matcher: m, where: p.where(at...)}
	h.required, h.async, h.once = f.boolean("required"), f.boolean("async"), f.boolean("once")
	h.timeout = f.timeout(ev)
	switch kind := f.text("type"); kind {
	case "command":
		f.command(h)
	case "http":
		f.http(h)
	case "prompt", "agent", "mcp_tool", "function":
		if h.required {
			p.fault(at, "Capstan runs no hooks of type %q, so a required one could never be answered: use a command", kind)
		} else {
			p.warn(at, "Capstan runs no hooks of type %q, so this one has no effect", kind)
		}
		return
	case "":
		p.fault(at, `needs "type": "command" or "http"`)
	default:
		p.fault(at.to("type"), `want "command" or "http", not %q`, kind)
	}
	p.unknown(at, f.in, handlerFields)
	if h.async && h.required {
		p.fault(at, "a required hook cannot be async: nobody would wait for its answer")
	}
	if name := f.text("name"); name != "" {
		h.label = name
	}
	h.label = short(h.label)
	if p.count++; p.count == maxHooks+1 {
		p.fault(at, "more than %d hooks", maxHooks)
	}
	if p.count > maxHooks || slices.ContainsFunc(p.hooks.by[ev], func(o *handler) bool {
		return h.same(o) && sameMatch(&h.matcher, &o.matcher) && o.required == h.required
	}) {
		return
	}
	p.hooks.by[ev] = append(p.hooks.by[ev], h)
}

// sameMatch says whether two matchers were written alike.
func sameMatch(a, b *matcher) bool {
	text := func(m *matcher) string {
		switch {
		case m.expr != nil:
			return m.expr.String()
		case m.slow != nil:
			return m.slow.String()
		}
		return ""
	}
	return a.all == b.all && slices.Equal(a.words, b.words) && text(a) == text(b)
}

// short is a label on one line.
func short(s string) string {
	s = strings.Join(strings.Fields(clean(s)), " ")
	if r := []rune(s); len(r) > 60 {
		return string(r[:59]) + "…"
	}
	return s
}

// fields are those of one hook.
type fields struct {
	p  *parser
	at path
	in map[string]json.RawMessage
}

func (f fields) command(h *handler) {
	h.command = f.text("command")
	if strings.TrimSpace(h.command) == "" {
		f.p.fault(f.at, `a command hook needs "command"`)
	}
	if strings.ContainsRune(h.command, 0) {
		f.p.fault(f.at.to("command"), "a command has no NUL byte")
	}
	if v, ok := f.in["args"]; ok {
		h.args = f.texts("args", v)
	}
	switch sh := f.text("shell"); sh {
	case "", "bash":
	case "powershell":
		h.power = true
	default:
		f.p.fault(f.at.to("shell"), `want "bash" or "powershell", not %q`, sh)
	}
	env := f.textMap("env")
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value := env[name]
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			f.p.fault(f.at.to("env"), "%q is no name of a variable, or has no usable value", name)
		}
		h.env = append(h.env, name+"="+value)
	}
	h.label = h.command
}

func (f fields) http(h *handler) {
	h.url, h.headers = f.text("url"), f.textMap("headers")
	u, err := url.Parse(h.url)
	switch {
	case h.url == "":
		f.p.fault(f.at, `an http hook needs "url"`)
		return
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		f.p.fault(f.at.to("url"), "%q is no address of http or https", h.url)
		return
	case strings.Contains(h.url, "$"):
		f.p.fault(f.at.to("url"), "variables are put into headers only: what an address holds ends up in logs")
	}
	if v, ok := f.in["allowedEnvVars"]; ok {
		h.allowed = slices.DeleteFunc(f.texts("allowedEnvVars", v), func(name string) bool {
			kept := slices.ContainsFunc(f.p.withheld, func(key string) bool { return strings.EqualFold(key, name) })
			if kept {
				f.p.warn(f.at.to("allowedEnvVars"), "%s is not given to a hook of the folder: it holds a key of yours", name)
			}
			return kept
		})
	}
	for _, name := range slices.Sorted(maps.Keys(h.headers)) {
		value := h.headers[name]
		if !headerName(name) || strings.ContainsAny(value, "\r\n\x00") {
			f.p.fault(f.at.to("headers"), "%q is no header, or has no usable value", name)
		}
		for _, ref := range variable.FindAllStringSubmatch(value, -1) {
			if !slices.Contains(h.allowed, varName(ref)) {
				f.p.warn(f.at.to("headers"), "%s stays empty in %q: it is not in allowedEnvVars", varName(ref), name)
			}
		}
	}
	h.label = u.Scheme + "://" + u.Host + u.Path
}

// timeout is in seconds. qwen-code took it in milliseconds once, and still does
// from 1,000 on.
func (f fields) timeout(ev Event) time.Duration {
	d := defaultTimeout
	switch ev {
	case UserPromptSubmit:
		d = promptTimeout
	case SessionEnd:
		d = endTimeout
	}
	v, ok := f.in["timeout"]
	if !ok {
		return d
	}
	var n float64
	at := f.at.to("timeout")
	switch err := json.Unmarshal(v, &n); {
	case err != nil || string(v) == "null":
		f.p.fault(at, "want a number of seconds, not %s", v)
		return d
	case n <= 0 || n > 86_400_000:
		f.p.fault(at, "want a number of seconds above 0, not %s", v)
		return d
	case n >= 1000:
		f.p.warn(at, "%s is read as milliseconds: the timeout is in seconds, and 1,000 or more is qwen-code's old form", v)
		return time.Duration(n * float64(time.Millisecond))
	}
	return time.Duration(n * float64(time.Second))
}

func (f fields) text(name string) string {
	v, ok := f.in[name]
	if !ok {
		return ""
	}
	s, _ := f.p.text(f.at.to(name), v)
	return s
}

func (f fields) boolean(name string) (b bool) {
	if v, ok := f.in[name]; ok && (json.Unmarshal(v, &b) != nil || string(v) == "null") {
		f.p.fault(f.at.to(name), "want true or false, not %s", v)
	}
	return b
}

func (f fields) texts(name string, v json.RawMessage) []string {
	out := []string{}
	for i, v := range f.p.list(f.at.to(name), v) {
		if s, ok := f.p.text(f.at.to(name, strconv.Itoa(i)), v); ok {
			out = append(out, s)
		}
	}
	return out
}

func (f fields) textMap(name string) map[string]string {
	v, ok := f.in[name]
	if !ok {
		return nil
	}
	out := map[string]string{}
	in := f.p.object(f.at.to(name), v)
	for _, key := range slices.Sorted(maps.Keys(in)) {
		if s, ok := f.p.text(f.at.to(name, key), in[key]); ok {
			out[key] = s
		}
	}
	return out
}

// unknown warns of fields that have no effect: a hook that copies one from
// elsewhere should not rely on it.
func (p *parser) unknown(at path, in map[string]json.RawMessage, known []string) {
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if slices.Contains(known, name) || slices.Contains(ignored, name) {
			continue
		}
		if name == "if" {
			p.warn(at.to(name), `"if" is not looked at, so the hook runs for all that its matcher takes`)
			continue
		}
		p.warn(at.to(name), "%q has no effect: expected one of %s", name, strings.Join(known, ", "))
	}
}

func (p *parser) object(at path, raw json.RawMessage) map[string]json.RawMessage {
	var out map[string]jsontext.Value
	if err := jsonv2.Unmarshal(raw, &out); err != nil || out == nil {
		p.fault(at, "want an object, not %s", kind(raw, err))
		return nil
	}
	in := make(map[string]json.RawMessage, len(out))
	for k, v := range out {
		in[k] = json.RawMessage(v)
	}
	return in
}

func (p *parser) list(at path, raw json.RawMessage) []json.RawMessage {
	var out []json.RawMessage
	if err := json.Unmarshal(raw, &out); err != nil || out == nil {
		p.fault(at, "want a list, not %s", kind(raw, nil))
	}
	return out
}

func (p *parser) text(at path, raw json.RawMessage) (s string, ok bool) {
	if err := json.Unmarshal(raw, &s); err != nil || string(raw) == "null" {
		p.fault(at, "want a text, not %s", kind(raw, nil))
		return "", false
	}
	return s, true
}

// kind says what a value is.
func kind(raw json.RawMessage, err error) string {
	switch b := strings.TrimSpace(string(raw)); {
	case b == "":
		return "nothing"
	case err != nil && b[0] == '{':
		if at, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
			return "what has a name twice: " + string(at.JSONPointer)
		}
		return "what cannot be read"
	case b[0] == '{':
		return "an object"
	case b[0] == '[':
		return "a list"
	case b[0] == '"':
		return "a text"
	default:
		return short(b)
	}
}
