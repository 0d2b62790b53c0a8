package codemode

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"capstan/internal/msg"
	"capstan/internal/search"
	"capstan/internal/tool"
)

const (
	defaultWhole = 5        // tools given whole when the call does not say how many
	maxWhole     = 24 << 10 // bytes that they take, one that is selected alone excepted
	maxLines     = 10       // further hits, with a line each
	maxLine      = 160      // bytes of such a line, beside the name
	maxSelected  = 64       // names in one select:
	maxMissName  = 100      // bytes of a name that is repeated in a miss
)

// Found is the answer to one search.
type Found struct {
	// Tools are the best hits, whole; More are the next ones. An entry that does
	// not fit into 24 KB is in More.
	Tools []Whole `json:"tools"`
	More  []Line  `json:"more,omitempty"`
	// Missing are the names of a select: that are none of the scope.
	Missing []string `json:"missing,omitempty"`
	// How says how to call what was found, and Hint what to do when that is
	// nothing or not all.
	How  string `json:"how,omitempty"`
	Hint string `json:"hint,omitempty"`
	// Searched counts the tools that may be found, ours and each server's.
	Searched Searched `json:"searched"`
	// NotReady has a line for each server that has not answered.
	NotReady []string `json:"notReady,omitempty"`

	entries []*tool.Entry // behind Tools
}

// Whole is all that there is to know of a tool before it is called. The schema
// is the one that arguments are checked against (S1-038).
type Whole struct {
	Name        string          `json:"name"`
	JSName      string          `json:"jsName,omitempty"` // where programs can call it
	Server      string          `json:"server,omitempty"`
	Description string          `json:"description"`
	Signature   string          `json:"signature,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
	Unusable    string          `json:"unusable,omitempty"` // why no call of it can succeed
}

// Line is a tool in one line.
type Line struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
}

// Searched counts what a search looked through.
type Searched struct {
	BuiltIn int            `json:"builtIn"`
	Servers map[string]int `json:"servers,omitempty"`
}

// Find searches what a scope may call. At most that many tools are given whole.
// It waits for servers as the options say, and fails only when ctx ends.
func (s *Search) Find(ctx context.Context, v *tool.View, query string, most int) (*Found, error) {
	f := &Found{Tools: []Whole{}}
	if s.opt.Wait != nil {
		f.NotReady = s.opt.Wait(ctx)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	v = s.opt.Registry.View(v.Mode(), v.Scope()) // what there is by now
	f.count(v, s.opt.Servers)
	names, selects := search.Select(query)
	if selects {
		f.selected(ctx, v, names)
	} else {
		if err := s.update(ctx, s.opt.Registry.Tools()); err != nil {
			return nil, err
		}
		f.ranked(ctx, v, s.index.Search(query, most+maxLines, func(name string) bool { return v.Find(name) != nil }), most)
	}
	f.explain(v, selects)
	if err := ctx.Err(); err != nil { // the rest was left out
		return nil, err
	}
	return f, nil
}

// count says how many tools of which servers there are.
func (f *Found) count(v *tool.View, servers []string) {
	f.Searched.Servers = map[string]int{}
	for _, n := range servers {
		if v.Serves(n) {
			f.Searched.Servers[n] = 0
		}
	}
	for _, e := range v.Searchable() {
		if server := e.Spec().Server; server != "" {
			f.Searched.Servers[server]++
		} else {
			f.Searched.BuiltIn++
		}
	}
}

// selected gives tools by their names. One that is selected alone is given
// whole whatever its size.
func (f *Found) selected(ctx context.Context, v *tool.View, names []string) {
	switch {
	case len(names) == 0:
		f.Hint = "select: takes names, as in select:NAME,NAME. "
	case len(names) > maxSelected:
		f.Hint = fmt.Sprintf("Only the first %d names were looked up. ", maxSelected)
		names = names[:maxSelected]
	}
	var found []*tool.Entry
	for _, n := range names {
		if e := v.Find(n); e != nil {
			found = append(found, e)
		} else {
			f.Missing = append(f.Missing, cutDoc(n, maxMissName))
		}
	}
	room := maxWhole
	if len(names) == 1 {
		room = 1 << 30
	}
	for _, e := range found {
		if ctx.Err() != nil {
			return
		}
		if !f.whole(v, e, &room) {
			f.line(e)
		}
	}
}

// ranked gives the best hits whole, as many as are wanted and fit, and a line
// for each of the next ones.
func (f *Found) ranked(ctx context.Context, v *tool.View, hits []search.Hit, most int) {
	room := maxWhole
	for i, h := range hits {
		if ctx.Err() != nil {
			return
		}
		e := v.Find(h.Name)
		if e == nil || i < most && f.whole(v, e, &room) {
			continue
		}
		if len(f.More) < maxLines {
			f.line(e)
		}
	}
}

// whole adds a tool if there is room for it, and says whether there was.
func (f *Found) whole(v *tool.View, e *tool.Entry, room *int) bool {
	sp := e.Spec()
	w := Whole{Name: sp.Name, Server: sp.Server, Description: sp.Description}
	if json.Valid(sp.Input) {
		w.InputSchema = sp.Input
	}
	if len(sp.Description)+len(w.InputSchema) > *room {
		return false // without the work of writing it
	}
	if _, nested := v.Reach(sp.Name); nested {
		w.JSName = tool.JSName(sp.Name)
		w.Signature = briefSignature(w.JSName, sp.Input, sp.Output)
	}
	if err := e.Compile(); err != nil {
		w.Unusable = err.Error()
	}
	text, err := escaped(w)
	if err != nil || len(text) > *room {
		return false
	}
	*room -= len(text)
	f.Tools, f.entries = append(f.Tools, w), append(f.entries, e)
	return true
}

func (f *Found) line(e *tool.Entry) {
	f.More = append(f.More, Line{e.Spec().Name, summary(e.Spec().Description)})
}

// summary is the first sentence of a description, cut to a line.
func summary(description string) string {
	s := docLine(description, maxToolDoc)
	if i := strings.Index(s, ". "); i > 0 {
		s = s[:i+1]
	}
	return cutDoc(s, maxLine)
}

// explain says what to do next. It names no tool that was not asked for
// (S1-052 to S1-058).
func (f *Found) explain(v *tool.View, selects bool) {
	runs, _ := v.Reach(tool.ExecName)
	if len(f.Tools) > 0 {
		f.How = how(v, runs)
	}
	if len(f.More) > 0 {
		f.Hint += "Tools in more are given whole by select:NAME, one at a time if they are large. "
	}
	switch {
	case selects && len(f.Missing) > 0 && v.Mode() == tool.Direct:
		f.Hint += "Nothing is registered under the names in missing."
	case selects && len(f.Missing) > 0:
		f.Hint += "select: takes the registered name exactly, for a tool of an MCP server with its prefix: mcp__SERVER__TOOL. To find a name, search for words without select:."
	case !selects && len(f.Tools)+len(f.More) == 0:
		f.Hint += "Nothing matches. Try other words, fewer of them, or none with +."
	}
	f.Hint = strings.TrimSpace(f.Hint)
}

// how says how what was found is called in this scope.
func how(v *tool.View, runs bool) string {
	bridged, _ := v.Reach(tool.ToolCallName)
	switch {
	case runs:
		return "In a later call of exec: `const r = await tools.JSNAME(args)`, with the jsName given here exactly and arguments that fit inputSchema."
	case bridged:
		return `Call ` + tool.ToolCallName + ` with {"name": NAME, "arguments": {…}} that fit inputSchema.`
	case v.Mode() == tool.Code:
		return "There is no exec in this scope, so these cannot be called here."
	}
	return "Call them directly by name, with arguments that fit inputSchema."
}

// Text is the answer as a model reads it: JSON in which nothing that a server
// wrote can look like a tag or stay invisible (S1-031).
func (f *Found) Text() (string, error) {
	b, err := escaped(f)
	if err != nil {
		return "", fmt.Errorf("writing what was found: %w", err)
	}
	return string(b), nil
}

// Recall tells r which tools the searches of an earlier run returned whole, as the
// conversation that is gone on with has them. What is no answer of a search, a cut
// one for example, tells nothing.
func Recall(r *tool.Reviews, conversation []msg.Message) {
	for _, m := range conversation {
		for i := range m.Results {
			res := &m.Results[i]
			var f Found
			if res.Name != tool.ToolSearchName || res.Failed() || json.Unmarshal([]byte(msg.JoinText(res.Parts)), &f) != nil {
				continue
			}
			for _, w := range f.Tools {
				r.Recall(w.Name, w.Description, w.InputSchema)
			}
		}
	}
}

// escaped is JSON in which < and all that shows nothing or reorders text are
// escapes. Such characters stand in strings only, so it is the same value.
func escaped(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // it escapes more, which costs tokens
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	text := bytes.ToValidUTF8(bytes.TrimSuffix(b.Bytes(), []byte("\n")), []byte("\uFFFD"))
	if bytes.IndexFunc(text, mustEscape) < 0 {
		return text, nil
	}
	out := make([]byte, 0, len(text)+len(text)/8)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case !mustEscape(r):
			out = append(out, text[:size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		text = text[size:]
	}
	return out, nil
}

func mustEscape(r rune) bool {
	return r == '<' || r == 0x2028 || r == 0x2029 || msg.Invisible(r)
}
