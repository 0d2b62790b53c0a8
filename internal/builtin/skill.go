package builtin

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"capstan/internal/tool"
)

//go:embed skill.md
var skillText string

const skillInput = `{"type":"object","properties":{` +
	`"skill":{"type":"string","description":"name; none: list all"}` +
	`},"additionalProperties":false}`

const skillOutput = `{"type":"object","properties":{"name":{"type":"string"},"folder":{"type":"string"},"files":{"type":"array","items":{"type":"string"}},` +
	`"skills":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"description":{"type":"string"}}}}}}`

const (
	maxSkillFile   = 256 << 10 // bytes of one SKILL.md
	maxSkillList   = 1 << 10   // bytes of the list in the tool's description, as they are sent
	maxSkillNames  = 100       // files of a folder that are named
	maxSkillLevels = 3         // directories below one another in which they are looked for
)

// skillTool gives a model the skills of one session.
type skillTool struct {
	base
	list  []skill // by name
	roots []string
}

// Tool returns the tool that loads skills, or nil when there is none: nothing
// is declared that could do nothing. hidden says which files (absolute,
// resolved) a rule forbids to read; it is not called before the tool runs.
//
// The tool's description lists the skills, as they were when LoadSkills read
// them, so that the declaration stays the same for a whole session.
func (s *Skills) Tool(hidden func(path string) bool) tool.Tool {
	if len(s.list) == 0 {
		return nil
	}
	return &skillTool{base: base{&files{hide: hidden}, tool.Spec{
		Name: "skill", Title: "Skill", Description: text(skillText) + "\n\nSkills:\n" + s.shown,
		Input: json.RawMessage(skillInput), Output: json.RawMessage(skillOutput),
		Effect: tool.EffectRead, Hint: "instructions workflow how to",
	}}, list: s.list, roots: s.roots}
}

type skillArgs struct {
	Skill string `json:"skill"`
}

func (t *skillTool) find(name string) *skill {
	i, ok := slices.BinarySearchFunc(t.list, name, func(s skill, n string) int { return strings.Compare(s.name, n) })
	if !ok {
		return nil
	}
	return &t.list[i]
}

// Access names the skill's text and its folder, whose files are listed. A list
// of the skills is what the folders of skills hold.
func (t *skillTool) Access(c *tool.Call) tool.Access {
	var in skillArgs
	_ = json.Unmarshal(c.Args, &in) // what cannot be read names no skill
	if s := t.find(in.Skill); s != nil {
		return tool.Access{Overlap: true, Reads: []string{s.path, s.folder}}
	}
	return tool.Access{Overlap: true, Reads: t.roots}
}

func (t *skillTool) Run(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
	var in skillArgs
	if err := json.Unmarshal(inv.Call.Args, &in); err != nil {
		return t.badArgs(err), nil
	}
	s := t.find(in.Skill)
	switch {
	case in.Skill == "":
		return t.all(), nil
	case s == nil:
		return tool.Fail(tool.CodeFailed, "there is no skill %q; the skills are %s", in.Skill, t.names()), nil
	}
	h, err := t.open(s.path)
	if err != nil {
		return tool.Fail(tool.CodeFailed, "loading the skill %s: %s", s.name, t.why(s.path, err)), nil
	}
	defer func() { _ = h.Close() }() // only read
	data, err := slurp(ctx, h, maxSkillFile)
	switch {
	case cancelled(err):
		return t.aborted(s.name), nil
	case err == errTooBig:
		return tool.Fail(tool.CodeFailed, "loading the skill %s: %s is larger than %s; read the part that you need with read_file", s.name, s.path, size(maxSkillFile)), nil
	case err != nil:
		return tool.Fail(tool.CodeFailed, "loading the skill %s: %v", s.name, err), nil
	}
	doc, err := parseSkill(data, true)
	if err != nil {
		return tool.Fail(tool.CodeFailed, "loading the skill %s: %s: %v", s.name, s.path, err), nil
	}
	return t.loaded(s, doc.body, t.beside(ctx, s)), nil
}

// loaded is a skill as a model reads it.
func (t *skillTool) loaded(s *skill, body string, names []string) tool.Result {
	var b strings.Builder
	fmt.Fprintf(&b, "Skill %s\nFolder: %s\nPaths in the instructions are relative to this folder; read its files when the instructions need them.\n", s.name, quoteName(s.folder))
	if len(names) > 0 {
		shown := make([]string, len(names))
		for i, n := range names {
			shown[i] = quoteName(n)
		}
		fmt.Fprintf(&b, "Files: %s", strings.Join(shown, ", "))
		if len(names) == maxSkillNames {
			b.WriteString(", …")
		}
		b.WriteByte('\n')
	}
	b.WriteString("\n" + body)
	r := tool.Text(b.String())
	r.Data = encodeData(struct {
		Name   string   `json:"name"`
		Folder string   `json:"folder"`
		Files  []string `json:"files"`
	}{s.name, s.folder, names})
	return r
}

// beside names the files of a skill's folder, relative to it. It is help for a
// reader, so a folder that cannot be listed has none.
func (t *skillTool) beside(ctx context.Context, s *skill) []string {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	names := []string{}
	w := &walk{f: t.files, ctx: ctx}
	w.enter = func(path string) bool {
		rel, err := filepath.Rel(s.folder, path)
		return err == nil && strings.Count(rel, string(filepath.Separator)) < maxSkillLevels-1
	}
	w.visit = func(path string, d fs.DirEntry) {
		rel, err := filepath.Rel(s.folder, path)
		if err != nil || !d.Type().IsRegular() || path == s.path || len(names) == maxSkillNames {
			return
		}
		if names = append(names, filepath.ToSlash(rel)); len(names) == maxSkillNames {
			stop()
		}
	}
	_ = w.run(s.folder) // see above
	return names
}

func (t *skillTool) names() string {
	var names []string
	for _, s := range t.list {
		names = append(names, s.name)
	}
	return strings.Join(names, ", ")
}

// all lists the skills with their whole descriptions.
func (t *skillTool) all() tool.Result {
	type row struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	var rows []row
	var b strings.Builder
	for _, s := range t.list {
		rows = append(rows, row{s.name, s.description})
		fmt.Fprintf(&b, "- %s: %s\n", s.name, s.description)
	}
	r := tool.Text(b.String())
	r.Data = encodeData(struct {
		Skills []row `json:"skills"`
	}{rows})
	return r
}

// skillList returns the list for the description, to how many characters
// descriptions had to be shortened (-1: none was), and how many skills it does
// not name. All are shortened alike, so that no skill disappears because others
// are talkative.
func skillList(list []skill) (shown string, most, unnamed int) {
	for _, most := range []int{-1, 500, 400, 300, 250, 200, 160, 130, 100, 80, 60, 50, 40, 30, 20, 0} {
		var b strings.Builder
		for _, s := range list {
			b.WriteString("- " + s.name)
			if d := cutText(s.description, most); d != "" {
				b.WriteString(": " + d)
			}
			b.WriteByte('\n')
		}
		if sentBytes(b.String()) <= maxSkillList {
			return strings.TrimRight(b.String(), "\n"), most, 0
		}
	}
	var b strings.Builder
	for i, s := range list {
		if sentBytes(b.String()+s.name)+80 > maxSkillList {
			fmt.Fprintf(&b, "- and %d more: call skill without a name to list them", len(list)-i)
			return b.String(), 0, len(list) - i
		}
		b.WriteString("- " + s.name + "\n")
	}
	return b.String(), 0, 0
}

// sentBytes is what a text of a description weighs: in JSON, where some
// characters are escaped, and in the comment of a declaration, where */ is.
func sentBytes(s string) int {
	return len(s) + strings.Count(s, `"`) + strings.Count(s, `\`) + strings.Count(s, "\n") + 2*strings.Count(s, "*/")
}

// cutText returns at most n characters of a text, all when n is negative.
func cutText(s string, n int) string {
	switch {
	case n < 0 || utf8.RuneCountInString(s) <= n:
		return s
	case n == 0:
		return ""
	}
	at := 0
	for range n - 1 {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return strings.TrimSpace(s[:at]) + "…"
}
