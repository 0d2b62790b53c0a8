package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

// mainArgument is the argument that a call written as TOOL(TEXT) gives.
var mainArgument = map[string]string{
	"run_shell_command": "command", "read_file": "file_path", "edit": "file_path", "write_file": "file_path", "list_directory": "path",
	"grep_search": "path", "glob": "path", "web_fetch": "url", "skill": "skill", "agent": "subagent_type",
}

// A Reasoning is what is decided about a call, and why.
type Reasoning struct {
	Decision   string `json:"decision"`   // allow, ask or deny
	By         string `json:"by"`         // the rule with its layer and file, or the approval mode
	Rule       string `json:"rule"`       // the rule as it was written; empty when the mode decided
	Suggestion string `json:"suggestion"` // what would change it
	Reason     string `json:"reason"`
	Tool       string `json:"tool"` // the call's name here
	// Hooks are those of the settings that would be asked. None is, and what they
	// would say nobody knows.
	Hooks []AskedHook `json:"hooks"`
	// Wrong is what is wrong with the arguments: such a call is refused before any
	// rule is looked at.
	Wrong error `json:"-"`
}

// decisionNames are the decisions as they are printed.
var decisionNames = map[sched.Decision]string{sched.Allow: "allow", sched.Ask: "ask", sched.Deny: "deny"}

// Why judges a call by the session's rules and mode, and runs nothing. The call is
// JSON, {"name": …, "arguments": {…}}, or TOOL(TEXT) as a rule has it; then TEXT
// is the argument that rules look at, and others may be missing.
func (s *Session) Why(call string) (*Reasoning, error) {
	c, whole, err := s.parseCall(call)
	if err != nil {
		return nil, &UsageError{err}
	}
	entry := s.entry(c.Name)
	if entry == nil {
		_, refusal := s.View().Resolve(c, false)
		return nil, errors.New(refusal.Text())
	}
	c.Name = entry.Spec().Name
	var wrong error
	if whole {
		args, _, err := entry.Validate(c.Args)
		if wrong = err; err == nil {
			c.Args = args
		}
	}
	access := tool.Access{Outside: true}
	if a, ok := entry.Tool().(tool.Accessor); ok {
		access = a.Access(c)
	}
	x := s.rules.Explain(&sched.Request{Call: c, Entry: entry, Access: access})
	why := &Reasoning{decisionNames[x.Decision], x.By, x.Rule, x.Suggestion, x.Reason, c.Name, []AskedHook{}, wrong}
	if wrong == nil {
		why.Hooks = s.askedHooks(c.Name, x.Decision)
	}
	return why, nil
}

// entry finds a tool by its name here, in a program or in a rule.
func (s *Session) entry(name string) *tool.Entry {
	all := s.Registry.Tools()
	for _, want := range append([]string{name}, tool.RuleNames(name)...) {
		for _, e := range all {
			if n := e.Spec().Name; n == want || tool.JSName(n) == want {
				return e
			}
		}
	}
	return nil
}

var errCall = errors.New(`want a call: TOOL(TEXT), such as 'Bash(git status)' or 'Read(.env)', or JSON, {"name": "read_file", "arguments": {"file_path": ".env"}}`)

// parseCall reads a call. It is whole when all its arguments are there.
func (s *Session) parseCall(text string) (c *tool.Call, whole bool, err error) {
	text = strings.TrimSpace(text)
	c = &tool.Call{ID: "why", Source: tool.FromModel}
	if strings.HasPrefix(text, "{") {
		var in struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		}
		d := json.NewDecoder(bytes.NewReader([]byte(text)))
		d.DisallowUnknownFields()
		if err := d.Decode(&in); err != nil {
			return nil, false, fmt.Errorf("%w (%w)", errCall, err)
		}
		if in.Name == "" {
			return nil, false, errCall
		}
		if in.Arguments == nil {
			in.Arguments = json.RawMessage("{}")
		}
		c.Name, c.Args = in.Name, in.Arguments
		return c, true, nil
	}
	name, rest, has := strings.Cut(text, "(")
	if has && !strings.HasSuffix(rest, ")") || name == "" || strings.ContainsAny(name, " \t\n") {
		return nil, false, errCall
	}
	c.Name, c.Args = name, json.RawMessage("{}")
	if !has {
		return c, false, nil
	}
	e := s.entry(name)
	if e == nil {
		return c, false, nil // which is said later
	}
	key, ok := mainArgument[e.Spec().Name]
	if !ok {
		return nil, false, fmt.Errorf("%s takes no text in parentheses: %w", name, errCall)
	}
	value := strings.TrimSuffix(rest, ")")
	if key == "url" {
		if host, ok := strings.CutPrefix(value, "domain:"); ok {
			value = "https://" + host + "/"
		}
	}
	c.Args, err = json.Marshal(map[string]string{key: value})
	return c, false, err
}
