package session

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"capstan/internal/msg"
)

// An ExportFormat is what Export writes.
type ExportFormat string

// The formats. Markdown is for people: binary parts are named, not included.
// JSON has everything that the log has, and is one object (see Export).
const (
	Markdown ExportFormat = "markdown"
	JSON     ExportFormat = "json"
)

// Export writes the whole session whose id begins with prefix, that which a
// compaction took from the model too.
//
// The JSON is {"session", "usage", "notes", "transcript": [{"time", "message"}],
// "calls", "agents"}: a transcript entry with "compacted": N stands, together
// with those that follow it and have the same, for the N entries before them.
// Calls are in the order in which they were made, nested ones by "parentId". Each
// of the agents has what is known of it and such an object of its own.
func (s *Store) Export(w io.Writer, prefix string, format ExportFormat) error {
	if format != Markdown && format != JSON {
		return fmt.Errorf("exporting a session: the format is %s or %s, not %q", Markdown, JSON, format)
	}
	path, err := s.find(prefix)
	if err != nil {
		return err
	}
	f, _, err := s.fold(path)
	if err != nil {
		return err
	}
	f.finish()
	below := s.below(f, path)
	if format == JSON {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(f.exported(below))
	}
	p := printer{w: w}
	p.session(f)
	for i, sub := range below {
		if sub != nil {
			p.agent(f.state.Agents[i], sub)
		}
	}
	return p.err
}

// below reads the logs of a session's subagents. One that cannot be read is nil,
// and noted.
func (s *Store) below(f *folder, path string) []*folder {
	list := make([]*folder, len(f.state.Agents))
	for i, a := range f.state.Agents {
		sub, _, err := s.fold(subPath(path, a.ID))
		if err != nil {
			f.note("the transcript of %s is left out: %v", a.Agent, err)
			continue
		}
		sub.finish()
		list[i] = sub
	}
	return list
}

type transcriptEntry struct {
	Time      time.Time   `json:"time"`
	Message   msg.Message `json:"message"`
	Compacted int         `json:"compacted,omitempty"`
}

// An exported session, and an exported subagent of one.
type exported struct {
	Session    Info              `json:"session"`
	Usage      msg.Usage         `json:"usage"`
	Notes      []string          `json:"notes"`
	Transcript []transcriptEntry `json:"transcript"`
	Calls      []*CallRecord     `json:"calls"`
	Agents     []exportedAgent   `json:"agents,omitempty"`
}

type exportedAgent struct {
	AgentInfo
	exported
}

func (f *folder) exported(below []*folder) exported {
	transcript := []transcriptEntry{}
	for _, e := range f.entries {
		for _, m := range messages([]entry{e}) {
			transcript = append(transcript, transcriptEntry{e.time, m, e.compacted})
		}
	}
	out := exported{Session: f.state.Info, Usage: f.state.Usage, Notes: append([]string{}, f.state.Notes...), Transcript: transcript, Calls: append([]*CallRecord{}, f.calls...)}
	for i, sub := range below {
		if sub != nil {
			out.Agents = append(out.Agents, exportedAgent{f.state.Agents[i], sub.exported(nil)})
		}
	}
	return out
}

// printer writes Markdown and keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) f(format string, a ...any) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, printable(fmt.Sprintf(format, a...)))
	}
}

// printable drops what would drive a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.Is(unicode.C, r) && r != '\u200d' { // the joiner within emoji
			return -1
		}
		return r
	}, s)
}

func (p *printer) session(f *folder) {
	st := &f.state
	title := st.Title
	if title == "" {
		title = "Session " + st.ID
	}
	p.f("# %s\n\n", title)
	p.f("- session: %s\n- directory: %s\n", st.ID, code(st.Dir))
	if st.Model != "" {
		p.f("- model: %s\n", code(st.Model))
	}
	if st.Created.IsZero() {
		p.f("- there is nothing in its log\n")
	} else {
		p.f("- from %s to %s, %s\n", st.Created.Format(time.RFC3339), st.Updated.Format(time.RFC3339), count(st.Turns, "turn", "turns"))
	}
	p.f("- tokens: %d in (%d cached), %d out\n", st.Usage.Input, st.Usage.Cached, st.Usage.Output)
	for _, a := range st.Agents {
		p.f("- subagent: %s, %s, %s\n", a.Agent, a.Type, a.ID)
	}
	for _, n := range st.Notes {
		p.f("- note: %s\n", n)
	}
	p.entries(f)
}

// agent writes the transcript of a subagent behind that of its session.
func (p *printer) agent(a AgentInfo, f *folder) {
	st := &f.state
	p.f("\n---\n\n# Subagent %s\n\n- kind: %s\n- started by the call: %s\n- transcript: %s\n", code(a.Agent), code(a.Type), code(a.Call), a.ID)
	if st.Model != "" {
		p.f("- model: %s\n", code(st.Model))
	}
	p.f("- tokens: %d in (%d cached), %d out\n", st.Usage.Input, st.Usage.Cached, st.Usage.Output)
	for _, n := range st.Notes {
		p.f("- note: %s\n", n)
	}
	p.entries(f)
}

func (p *printer) entries(f *folder) {
	compacted := 0
	for _, e := range f.entries {
		if e.compacted > 0 && compacted == 0 {
			p.f("\n---\n\n*What stands above was replaced, for the model, by this:*\n")
		} else if e.compacted == 0 && compacted > 0 {
			p.f("\n---\n")
		}
		compacted = e.compacted
		p.entry(f, e)
	}
}

func (p *printer) entry(f *folder, e entry) {
	role := string(e.msg.Role)
	if role != "" {
		role = strings.ToUpper(role[:1]) + role[1:]
	}
	p.f("\n## %s\n", role)
	n := 0
	for _, part := range e.msg.Parts {
		if part.Kind != msg.CallPart || part.Call == nil {
			p.part(part)
			continue
		}
		p.call(f, part.Call, e.results[n])
		n++
	}
}

func (p *printer) part(part msg.Part) {
	switch {
	case part.Kind == msg.Reasoning && part.Text != "":
		p.f("\n> %s\n", strings.ReplaceAll(strings.TrimSpace(part.Text), "\n", "\n> "))
	case part.Kind == msg.Text: // what somebody wrote must not pass for a turn of the session
		p.f("\n")
		p.fence("", part.Text)
	case part.Kind == msg.Link:
		p.f("\n[link %s]\n", code(part.URI))
	case part.Kind != msg.Reasoning:
		p.f("\n[%s]\n", strings.TrimSpace(describe(part, int64(len(part.Data)))+" "+part.Name+" "+part.Text))
	}
}

func (p *printer) call(f *folder, c *msg.Call, r *msg.Result) {
	p.f("\n### %s\n\n", code(c.Name))
	p.fence("json", c.Args)
	for i, n := range f.nested[c.ID] {
		if i == 0 {
			p.f("\n")
		}
		p.f("- %s %s: %s\n", code(n.Name), n.outcome(), code(head(n.Args, 500)))
	}
	if r == nil {
		return
	}
	p.f("\nResult: %s\n\n", strings.TrimSpace(r.Status+" "+r.Code))
	for _, part := range r.Parts {
		if part.Kind == msg.Text {
			p.fence("", part.Text)
		} else {
			p.part(part)
		}
	}
}

// fence writes a block that its own text cannot end.
func (p *printer) fence(lang, text string) {
	ticks := strings.Repeat("`", max(3, longestRun(text)+1))
	p.f("%s%s\n%s\n%s\n", ticks, lang, strings.TrimRight(text, "\n"), ticks)
}

// code returns text as a code span on one line.
func code(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return "–"
	}
	ticks := strings.Repeat("`", longestRun(text)+1)
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " "
	}
	return ticks + text + ticks
}

// longestRun counts the backticks of the longest row of them.
func longestRun(text string) int {
	longest, n := 0, 0
	for _, r := range text {
		if r != '`' {
			n = 0
			continue
		}
		n++
		longest = max(longest, n)
	}
	return longest
}
