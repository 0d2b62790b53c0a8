package openai

import (
	"encoding/json"
	"strings"

	"capstan/internal/llm"
)

// A leak is a form in which a model writes calls when its server does not
// parse them. They are the models' own training formats.
type leak struct {
	open string // where the calls begin
	read func(s string) (calls []leakedCall, ok bool)
}

var leaks = []leak{
	{"<tool_call>", readTagged},
	{"<function=", readTagged},
	{"[TOOL_CALLS]", readMistral},
	{"<|tool_calls_section_begin|>", func(s string) ([]leakedCall, bool) {
		return readTokens(s, "<|tool_calls_section_begin|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>", "<|tool_calls_section_end|>")
	}},
	{"<｜tool▁calls▁begin｜>", func(s string) ([]leakedCall, bool) {
		return readTokens(s, "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>")
	}},
}

type leakedCall struct{ name, args string }

// readTagged reads <tool_call>{"name":…,"arguments":…}</tool_call> and
// <function=name><parameter=key>value</parameter></function>, the latter also
// inside the former.
func readTagged(s string) ([]leakedCall, bool) {
	var calls []leakedCall
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		body, wrapped := strings.CutPrefix(s, "<tool_call>")
		body = strings.TrimSpace(body)
		var c leakedCall
		var ok bool
		if strings.HasPrefix(body, "<function=") {
			c, s, ok = readFunction(body)
		} else if wrapped {
			c, s, ok = readObject(body)
		}
		if !ok {
			return nil, false
		}
		calls = append(calls, c)
		if !wrapped {
			continue
		}
		if s, ok = strings.CutPrefix(strings.TrimSpace(s), "</tool_call>"); !ok && strings.TrimSpace(s) != "" {
			return nil, false // the last closing tag is often swallowed as a stop word
		}
	}
	return calls, len(calls) > 0
}

// readObject reads {"name":…,"arguments":…} and returns what follows.
func readObject(s string) (leakedCall, string, bool) {
	dec := json.NewDecoder(strings.NewReader(s))
	var o struct {
		Name       string    `json:"name"`
		Arguments  llm.Piece `json:"arguments"`
		Parameters llm.Piece `json:"parameters"`
	}
	if !strings.HasPrefix(s, "{") || dec.Decode(&o) != nil || o.Name == "" {
		return leakedCall{}, "", false
	}
	args := o.Arguments.Text
	if len(args) == 0 {
		args = o.Parameters.Text
	}
	return leakedCall{o.Name, string(args)}, s[dec.InputOffset():], true
}

// readFunction reads one <function=…>…</function>. Values are strings here; the
// schema says what they have to become.
func readFunction(s string) (leakedCall, string, bool) {
	name, rest, ok := strings.Cut(strings.TrimPrefix(s, "<function="), ">")
	body, rest, closed := strings.Cut(rest, "</function>")
	if !ok || !closed {
		return leakedCall{}, "", false
	}
	var args strings.Builder
	for body = strings.TrimSpace(body); body != ""; body = strings.TrimSpace(body) {
		after, ok := strings.CutPrefix(body, "<parameter=")
		key, after, named := strings.Cut(after, ">")
		value, after, closed := strings.Cut(after, "</parameter>")
		if !ok || !named || !closed {
			return leakedCall{}, "", false
		}
		body = after
		args.WriteByte("{,"[min(args.Len(), 1)])
		value = strings.TrimSuffix(strings.TrimPrefix(value, "\n"), "\n")
		args.WriteString(quote(strings.TrimSpace(key)) + ":" + quote(value))
	}
	if args.Len() == 0 {
		args.WriteByte('{')
	}
	args.WriteByte('}')
	return leakedCall{strings.TrimSpace(name), args.String()}, rest, true
}

func quote(s string) string {
	raw, err := json.Marshal(s)
	if err != nil { // a string always marshals
		panic("openai: " + err.Error())
	}
	return string(raw)
}

// readMistral reads [TOOL_CALLS][{"name":…,"arguments":…},…] and
// [TOOL_CALLS]name{…}[TOOL_CALLS]….
func readMistral(s string) ([]leakedCall, bool) {
	var calls []leakedCall
	for _, part := range strings.Split(s, "[TOOL_CALLS]")[1:] {
		part = strings.TrimSpace(part)
		if list, ok := strings.CutPrefix(part, "["); ok {
			for list = strings.TrimSpace(list); list != "]"; list = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(list), ",")) {
				var c leakedCall
				if c, list, ok = readObject(list); !ok {
					return nil, false
				}
				calls = append(calls, c)
				list = strings.TrimSpace(list)
			}
			continue
		}
		name, args, ok := strings.Cut(part, "{")
		name = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(name), "[ARGS]"))
		if args = "{" + args; !ok || name == "" || !json.Valid([]byte(args)) {
			return nil, false
		}
		calls = append(calls, leakedCall{name, args})
	}
	return calls, len(calls) > 0
}

// readTokens reads calls that special tokens delimit: name, separator,
// arguments.
func readTokens(s, open, begin, sep, end, closing string) ([]leakedCall, bool) {
	var calls []leakedCall
	s = strings.TrimPrefix(s, open)
	for s = strings.TrimSpace(s); s != "" && s != closing; s = strings.TrimSpace(s) {
		body, ok := strings.CutPrefix(s, begin)
		name, body, named := strings.Cut(body, sep)
		args, rest, closed := strings.Cut(body, end)
		args = strings.TrimSpace(args)
		if !ok || !named || !closed || !json.Valid([]byte(args)) {
			return nil, false
		}
		name = strings.TrimPrefix(strings.TrimSpace(name), "functions.")
		if i := strings.LastIndexByte(name, ':'); i > 0 { // functions.NAME:0
			name = name[:i]
		}
		calls = append(calls, leakedCall{name, args})
		s = rest
	}
	return calls, len(calls) > 0
}
