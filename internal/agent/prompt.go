package agent

import (
	"embed"
	"strconv"
	"strings"
	"sync"

	"capstan/internal/tool"
)

// PromptOptions are what a system prompt is made of. It is a function of these
// alone: nothing is read from the machine, and equal options give equal bytes.
// A session should fix Today when it begins, since a prompt that changes costs
// the provider's cache of all that follows.
type PromptOptions struct {
	// View is what the model may see and call. Guidance names only tools that
	// it reaches.
	View *tool.View
	// Dir is the working directory, Root the workspace's; both absolute.
	Dir, Root string
	// Added are further directories that count as workspace.
	Added []string
	// Platform and Today are shown as they are given: "linux/amd64",
	// "2026-01-31". Empty ones are left out.
	Platform, Today string
	// Approval is the approval mode as --approval-mode spells it.
	Approval string
	// Headless says that nobody can be asked (S3-047).
	Headless bool
	// Subagent says that it works for another agent and not for the user.
	Subagent bool
	// Role, when not empty, stands in place of identity and persona: what an
	// agent's definition says. The guidance on tools stays.
	Role string
	// System, when not nil, stands in place of identity, persona and guidance.
	// The rules that must hold whatever somebody writes stay: how tools are
	// called, the environment, the suffix, memory.
	System *string
	// Append, when not nil, comes after all that is ours but the suffix.
	Append *string
	// Memory is the project's and the user's, nearest last (LoadMemory).
	Memory []MemoryFile
}

// Prompt returns the system prompt: every section that has something to say,
// in order, with an empty line between two. Project memory is its final block
// (S3-051). No text depends on the provider (S0-201).
func Prompt(o PromptOptions) string {
	p := newPromptPage(&o)
	var b strings.Builder
	headed := false
	for _, s := range promptSections {
		text := ""
		if o.System == nil || !s.style {
			text = s.text(p)
		}
		if text == "" {
			continue
		}
		gap := "\n\n"
		if s.guides() {
			if headed {
				gap = "\n"
			} else {
				text, headed = p.file("guidance")+"\n"+text, true
			}
		}
		if b.Len() > 0 {
			b.WriteString(gap)
		}
		b.WriteString(text)
	}
	return b.String()
}

// A promptSection is one part of the prompt. Each fact belongs to one of them, and
// each has one place: its order.
type promptSection struct {
	order int
	name  string
	style bool // --system-prompt stands in its place
	text  func(p *promptPage) string
}

// guides says whether the section is in the band of the guidance on tools,
// which stands under one heading. What routes between tools belongs there; what
// concerns one tool alone, in its description (S3-040).
func (s *promptSection) guides() bool { return 100 <= s.order && s.order < 200 }

// promptSections is the whole prompt, by order.
var promptSections = []promptSection{
	{10, "identity", true, unlessRole("identity")},
	{20, "persona", true, unlessRole("persona")},
	{30, "role", true, func(p *promptPage) string { return strings.TrimSpace(p.o.Role) }},
	{50, "system", false, func(p *promptPage) string { return optional(p.o.System) }},
	{99, "tools:code-only", false, codeOnly},
	{100, "tool:exec", true, fromFile("program")},
	{110, "tool:read", true, fromFile("read")},
	{120, "tool:write", true, fromFile("write")},
	{130, "tool:search", true, fromFile("search")},
	{140, "tool:shell", true, fromFile("shell")},
	{150, "tool:todo", true, fromFile("todo")},
	{160, "tool:subagent", true, fromFile("subagent")},
	{170, "tool:skill", true, fromFile("skill")},
	{200, "environment", false, environment},
	{300, "append", false, func(p *promptPage) string { return optional(p.o.Append) }},
	{400, "modality", false, modality},
	{410, "subagent", false, subagentNote},
	{900, "memory", false, func(p *promptPage) string { return p.memory(p.o.Memory) }},
}

func fromFile(name string) func(*promptPage) string {
	return func(p *promptPage) string { return p.file(name) }
}

func optional(s *string) string {
	if s == nil {
		return ""
	}
	return strings.TrimSpace(*s)
}

func unlessRole(name string) func(*promptPage) string {
	return func(p *promptPage) string {
		if strings.TrimSpace(p.o.Role) != "" {
			return ""
		}
		return p.file(name)
	}
}

// subagentNote says for whom a subagent works.
func subagentNote(p *promptPage) string {
	if !p.o.Subagent {
		return ""
	}
	return p.file("delegate")
}

// codeOnly states the collapse, which the executor enforces (S2-075 to S2-079).
// Where native calls run it would be false, and says nothing.
func codeOnly(p *promptPage) string {
	if p.o.View.Mode() != tool.Code {
		return ""
	}
	var names []string
	for _, d := range p.o.View.Declarations() {
		names = append(names, d.Name)
	}
	if names == nil {
		return ""
	}
	return strings.ReplaceAll(p.file("code_only"), "{{direct}}", strings.Join(names, ", "))
}

// environment is what the model would otherwise have to find out. It stands
// after everything that stays the same from one directory and day to the next.
func environment(p *promptPage) string {
	lines := []string{"# Environment"}
	fact := func(name, value string) {
		if value != "" {
			lines = append(lines, name+": "+value)
		}
	}
	fact("Working directory", showPath(p.o.Dir))
	if p.o.Root != p.o.Dir {
		fact("Workspace", showPath(p.o.Root))
	}
	var added []string
	for _, d := range p.o.Added {
		added = append(added, showPath(d))
	}
	fact("Also workspace", strings.Join(added, ", "))
	fact("Platform", p.o.Platform)
	fact("Date", p.o.Today)
	fact("Approval mode", p.o.Approval)
	if text := p.file("approval"); text != "" {
		lines = append(lines, text)
	}
	if len(lines) == 1 {
		return ""
	}
	return strings.Join(lines, "\n")
}

// modality is the suffix that depends on whether somebody is there (S3-045 to
// S3-049).
func modality(p *promptPage) string {
	if !p.o.Headless {
		return ""
	}
	return p.file("headless")
}

// showPath spells a path so that it stays on its line.
func showPath(path string) string {
	if q := strconv.Quote(path); q != `"`+path+`"` {
		return q
	}
	return path
}

//go:embed prompt/*.md
var promptFiles embed.FS

// A promptLine is a line of a prompt file, and the conditions under which it is said.
type promptLine struct {
	needs []string
	text  string
}

// promptLines holds the files of the prompt directory, by name. A line may
// begin with conditions in brackets, all of which must hold: a tool's name (the
// view reaches it), @code, @both, @direct (its mode), @headless, or @ and an
// approval mode; with ! before it, that it does not. A line without brackets
// shares the conditions of the one above it.
var promptLines = sync.OnceValue(func() map[string][]promptLine {
	files := map[string][]promptLine{}
	entries, err := promptFiles.ReadDir("prompt")
	if err != nil {
		panic(err) // the directory is embedded
	}
	for _, e := range entries {
		data, err := promptFiles.ReadFile("prompt/" + e.Name())
		if err != nil {
			panic(err) // as above
		}
		files[strings.TrimSuffix(e.Name(), ".md")] = parseLines(string(data))
	}
	return files
})

func parseLines(text string) []promptLine {
	var lines []promptLine
	var needs []string
	for s := range strings.Lines(strings.TrimRight(text, "\r\n")) {
		s = strings.TrimRight(s, "\r\n")
		if head, rest, ok := strings.Cut(s, "] "); ok && strings.HasPrefix(head, "[") {
			needs, s = strings.Fields(head[1:]), rest
		}
		lines = append(lines, promptLine{needs, s})
	}
	return lines
}

// A promptPage is one prompt while it is made.
type promptPage struct{ o *PromptOptions }

func newPromptPage(o *PromptOptions) *promptPage { return &promptPage{o} }

// file returns what a prompt file says here.
func (p *promptPage) file(name string) string {
	var said []string
	for _, l := range promptLines()[name] {
		if p.holds(l.needs) {
			said = append(said, l.text)
		}
	}
	return strings.Join(said, "\n")
}

func (p *promptPage) holds(needs []string) bool {
	for _, n := range needs {
		name, not := strings.CutPrefix(n, "!")
		if p.is(name) == not {
			return false
		}
	}
	return true
}

func (p *promptPage) is(name string) bool {
	fact, ok := strings.CutPrefix(name, "@")
	switch {
	case !ok:
		return p.reaches(name)
	case fact == "headless":
		return p.o.Headless
	case fact == "code" || fact == "both" || fact == "direct":
		return p.o.View.Mode() == tool.Mode(fact)
	}
	return p.o.Approval == fact
}

// reaches says whether the model gets at a tool. Where there is no exec, what
// only programs can call is out of reach.
func (p *promptPage) reaches(name string) bool {
	direct, nested := p.o.View.Reach(name)
	if nested && !direct {
		direct, _ = p.o.View.Reach(tool.ExecName)
		return direct
	}
	return p.o.View.Visible(name) != nil
}
