package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"capstan/internal/policy"
	"capstan/internal/sched"
	"capstan/internal/tool"
)

// mainArgument is the argument that a call written as TOOL(TEXT) gives.
var mainArgument = map[string]string{
	"run_shell_command": "command", "read_file": "file_path", "edit": "file_path", "write_file": "file_path", "list_directory": "path",
	"grep_search": "path", "glob": "path", "web_fetch": "url", "skill": "skill", "agent": "subagent_type",
}

// Why judges a call by the session's rules and mode, and runs nothing. The call is
// JSON, {"name": …, "arguments": {…}}, or TOOL(TEXT) as a rule has it; then TEXT
// is the argument that rules look at, and others may be missing. It returns the
// name that the call has here, and what is wrong with its arguments: such a call is
// refused before any rule is looked at.
func (s *Session) Why(call string) (name string, why policy.Explanation, wrong, err error) {
	c, whole, err := s.parseCall(call)
	if err != nil {
		return "", policy.Explanation{}, nil, &UsageError{err}
	}
	entry := s.entry(c.Name)
	if entry == nil {
		_, refusal := s.View().Resolve(c, false)
		return "", policy.Explanation{}, nil, errors.New(refusal.Text())
	}
	c.Name = entry.Spec().Name
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
	return c.Name, s.rules.Explain(&sched.Request{Call: c, Entry: entry, Access: access}), wrong, nil
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
		if err := d.Decode(&in); err != nil || in.Name == "" {
			return nil, false, fmt.Errorf("%w (%v)", errCall, err)
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
