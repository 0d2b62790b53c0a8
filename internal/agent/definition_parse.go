package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"capstan/internal/tool"
)

// parseDefinition reads a file: front matter between two lines of ---, then the
// prompt. base is the file's name without its end. A field that would restrict
// the agent and cannot be read is an error: going on without it would let the
// agent do what it forbids.
func parseDefinition(data []byte, base string) (*Definition, error) {
	if bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data) {
		return nil, errors.New("it is not UTF-8 text")
	}
	text := strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")
	front, body, err := cutFront(text)
	if err != nil {
		return nil, err
	}
	x := &Definition{Name: base, Prompt: strings.TrimSpace(body)}
	f, err := readFields(front)
	if err != nil {
		return nil, err
	}
	if f.mended {
		x.note("its front matter is no YAML and was read line by line: put quotation marks around values with a colon")
	}
	for _, field := range definitionFields {
		v, ok := f.values[field.name]
		if !ok {
			continue
		}
		if err := field.read(x, v); err != nil {
			return nil, fmt.Errorf("%s: %w", field.name, err)
		}
	}
	if err := checkAgentName(x.Name); err != nil {
		return nil, err
	}
	if x.Description == "" && x.Prompt != "" {
		return nil, errors.New("its front matter has no description, by which a model could choose it")
	}
	return x, nil
}

func (x *Definition) note(format string, a ...any) {
	x.notes = append(x.notes, fmt.Sprintf(format, a...))
}

// cutFront takes front matter and body apart.
func cutFront(text string) (front, body string, err error) {
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t") != "---" {
		return "", "", errors.New("it does not begin with front matter: a line ---, name and description, and a line ---")
	}
	for at := 0; at < len(rest); {
		line, _, found := strings.Cut(rest[at:], "\n")
		end := at + len(line)
		if strings.TrimRight(line, " \t") == "---" {
			return rest[:at], strings.TrimPrefix(rest[end:], "\n"), nil
		}
		if !found {
			break
		}
		at = end + 1
	}
	return "", "", errors.New("no line --- ends its front matter")
}

// A definitionField is one field of the front matter. Fields that are not in the
// list, a color say, are not looked at.
type definitionField struct {
	name string
	read func(x *Definition, v *yaml.Node) error
}

var definitionFields = []definitionField{
	{"name", func(x *Definition, v *yaml.Node) error { return scalar(&x.Name, v) }},
	{"description", func(x *Definition, v *yaml.Node) error {
		if err := scalar(&x.Description, v); err != nil {
			return err
		}
		x.Description = cutRunes(shownLine(strings.ReplaceAll(x.Description, `\n`, " ")), maxAgentWords)
		return nil
	}},
	{"tools", func(x *Definition, v *yaml.Node) (err error) {
		x.Tools, err = x.toolList("tools", v)
		if slices.Contains(x.Tools, "*") {
			x.Tools = nil
		}
		return err
	}},
	{"disallowedTools", func(x *Definition, v *yaml.Node) (err error) {
		x.Disallowed, err = x.toolList("disallowedTools", v)
		return err
	}},
	{"model", func(x *Definition, v *yaml.Node) error {
		err := scalar(&x.Model, v)
		if x.Model == "inherit" {
			x.Model = ""
		}
		return err
	}},
	{"modelConfig", func(x *Definition, v *yaml.Node) error { return within(v, "model", &x.Model) }},
	{"mode", func(x *Definition, v *yaml.Node) (err error) {
		var text string
		if err = scalar(&text, v); err == nil && text != "" {
			x.Mode, err = tool.ParseMode(text)
		}
		return err
	}},
	{"approvalMode", (*Definition).approval},
	{"permissionMode", (*Definition).approval},
	{"maxTurns", func(x *Definition, v *yaml.Node) error { return positive(&x.MaxTurns, v) }},
	{"runConfig", (*Definition).runConfig},
	{"background", func(x *Definition, v *yaml.Node) error {
		var text string
		err := scalar(&text, v)
		x.Background = text == "true"
		return err
	}},
	{"preset", func(x *Definition, v *yaml.Node) error { return scalar(&x.Preset, v) }},
	{"hooks", (*Definition).hooks},
	{"isolation", ignored("it runs in the working directory itself, not in one of its own")},
	{"mcpServers", ignored("it has the session's MCP servers, and no others")},
	{"skills", ignored("skills are not loaded ahead: it can load them itself")},
	{"memory", ignored("it has no memory of its own")},
}

// ignored tells of a field that has no effect here although it was meant to.
func ignored(what string) func(*Definition, *yaml.Node) error {
	return func(x *Definition, v *yaml.Node) error {
		if v.Tag != "!!null" && (v.Value != "" || len(v.Content) > 0) {
			x.note("%s", what)
		}
		return nil
	}
}

// approvalWords are the approval modes, in the words of Claude Code too.
var approvalWords = map[string]string{
	"plan": "plan", "default": "default", "auto-edit": "auto-edit", "yolo": "yolo",
	"acceptEdits": "auto-edit", "auto": "default", "dontAsk": "default", "bypassPermissions": "yolo", "bubble": "default", "": "",
}

func (x *Definition) approval(v *yaml.Node) error {
	var text string
	if err := scalar(&text, v); err != nil {
		return err
	}
	mode, ok := approvalWords[text]
	if !ok {
		return fmt.Errorf("unknown approval mode %q: want plan, default, auto-edit or yolo", cutName(text))
	}
	x.Approval, x.Silent = Stricter(x.Approval, mode), x.Silent || text == "dontAsk"
	return nil
}

// runConfig is how qwen-code writes limits.
func (x *Definition) runConfig(v *yaml.Node) error {
	var minutes string
	if err := within(v, "max_time_minutes", &minutes); err != nil {
		return err
	}
	if minutes != "" {
		n, err := strconv.ParseFloat(minutes, 64)
		if err != nil || !(n > 0 && n <= 1e6) {
			return fmt.Errorf("max_time_minutes %q: want a number above 0", cutName(minutes))
		}
		x.Wall = time.Duration(n * float64(time.Minute))
	}
	for i := 0; v.Kind == yaml.MappingNode && i+1 < len(v.Content); i += 2 {
		if v.Content[i].Value == "max_turns" {
			return positive(&x.MaxTurns, v.Content[i+1])
		}
	}
	return nil
}

// hooks keeps what is written there as JSON.
func (x *Definition) hooks(v *yaml.Node) error {
	if v.Tag == "!!null" {
		return nil
	}
	if v.Kind != yaml.MappingNode {
		return errors.New("want a map from the names of events to their hooks")
	}
	var any map[string]any
	if err := v.Decode(&any); err != nil {
		return err
	}
	raw, err := json.Marshal(any)
	x.Hooks = raw
	return err
}

// toolList reads names of tools: a list, or a text with commas between them.
func (x *Definition) toolList(field string, v *yaml.Node) ([]string, error) {
	var words []string
	switch {
	case v.Kind == yaml.ScalarNode && v.Tag == "!!null":
		return nil, nil
	case v.Kind == yaml.ScalarNode:
		words = splitTools(v.Value)
	case v.Kind == yaml.SequenceNode:
		for _, item := range v.Content {
			if item.Kind != yaml.ScalarNode {
				return nil, errors.New("want names of tools")
			}
			words = append(words, item.Value)
		}
	default:
		return nil, errors.New("want names of tools, with commas between them or as a list")
	}
	list := []string{}
	for _, w := range words {
		name, spec, has := strings.Cut(strings.TrimSpace(w), "(")
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		ours := tool.RuleNames(name)
		if ours == nil {
			ours = []string{name}
		}
		if has && !slices.Contains(ours, tool.AgentName) {
			if field != "tools" {
				return nil, fmt.Errorf("it takes away whole tools: write %s without (%s, or a rule into permissions.deny", name, cutName(spec))
			}
			x.note("tools: what stands in parentheses after %s does not narrow it: write rules into permissions", name)
		}
		for _, n := range ours {
			if !slices.Contains(list, n) {
				list = append(list, n)
			}
		}
	}
	return list, nil
}

// splitTools splits at commas that stand in no parentheses.
func splitTools(s string) (words []string) {
	depth, from := 0, 0
	for i, c := range s {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth <= 0:
			words, from = append(words, s[from:i]), i+1
		}
	}
	return append(words, s[from:])
}

// scalar reads a text.
func scalar(to *string, v *yaml.Node) error {
	if v.Kind != yaml.ScalarNode {
		return errors.New("want one value")
	}
	if v.Tag != "!!null" {
		*to = strings.TrimSpace(v.Value)
	}
	return nil
}

// within reads a text in a map.
func within(v *yaml.Node, key string, to *string) error {
	if v.Kind != yaml.MappingNode {
		return errors.New("want a map")
	}
	for i := 0; i+1 < len(v.Content); i += 2 {
		if v.Content[i].Value == key {
			return scalar(to, v.Content[i+1])
		}
	}
	return nil
}

func positive(to *int, v *yaml.Node) error {
	var text string
	if err := scalar(&text, v); err != nil || text == "" {
		return err
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return fmt.Errorf("%q: want a whole number from 1 on", cutName(text))
	}
	*to = n
	return nil
}

// A frontMatter is the fields of a file, by name.
type frontMatter struct {
	values map[string]*yaml.Node
	mended bool // it was no YAML
}

func readFields(front string) (frontMatter, error) {
	var doc yaml.Node
	// The line --- before it is an empty one here, so that lines are counted as
	// in the file.
	err := yaml.Unmarshal([]byte("\n"+front), &doc)
	if err != nil {
		// What is wrong is nearly always a colon in a description without
		// quotation marks, which other agents take as it is meant.
		f := plainFields(front)
		if f.values["description"] == nil || f.values["hooks"] != nil {
			return f, fmt.Errorf("reading its front matter: %w", err)
		}
		return f, nil
	}
	f := frontMatter{values: map[string]*yaml.Node{}}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return f, errors.New("its front matter has no fields like name: and description:")
	}
	pairs := doc.Content[0].Content
	for i := 0; i+1 < len(pairs); i += 2 {
		v := pairs[i+1]
		if aliased(v) {
			return f, fmt.Errorf("%s: an alias is not followed", cutName(pairs[i].Value))
		}
		if f.values[pairs[i].Value] != nil {
			return f, fmt.Errorf("%s is there twice", cutName(pairs[i].Value))
		}
		f.values[pairs[i].Value] = v
	}
	return f, nil
}

func aliased(v *yaml.Node) bool {
	return v.Kind == yaml.AliasNode || slices.ContainsFunc(v.Content, aliased)
}

// plainFields reads front matter line by line: a name and a colon at the
// beginning of a line begin a field, and what follows until the next one belongs
// to it.
func plainFields(front string) frontMatter {
	f := frontMatter{values: map[string]*yaml.Node{}, mended: true}
	var at *yaml.Node
	for line := range strings.Lines(front) {
		key, value, ok := strings.Cut(line, ":")
		if ok && fieldName(key) {
			if at = nil; f.values[key] == nil {
				at = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: strings.TrimSpace(value)}
				f.values[key] = at
			}
			continue
		}
		word := strings.TrimSpace(line)
		item, isItem := strings.CutPrefix(word, "- ")
		switch {
		case at == nil || word == "":
		case isItem && at.Value == "":
			at.Kind, at.Tag = yaml.SequenceNode, "!!seq"
			at.Content = append(at.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: unquote(item)})
		default:
			at.Value += " " + word
		}
	}
	for _, v := range f.values {
		if v.Value = unquote(v.Value); v.Value == "" && v.Kind == yaml.ScalarNode {
			v.Tag = "!!null"
		}
	}
	for _, key := range []string{"tools", "disallowedTools"} {
		if v := f.values[key]; v != nil && strings.HasPrefix(v.Value, "[") && strings.HasSuffix(v.Value, "]") {
			v.Kind, v.Tag = yaml.SequenceNode, "!!seq"
			for _, w := range splitTools(v.Value[1 : len(v.Value)-1]) {
				v.Content = append(v.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: unquote(w)})
			}
		}
	}
	return f
}

func fieldName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && r != '_' && r != '-' })
}

func unquote(s string) string {
	s = strings.TrimSpace(s)
	if n := len(s); n >= 2 && (s[0] == '"' || s[0] == '\'') && s[n-1] == s[0] {
		return s[1 : n-1]
	}
	return s
}

// shownLine puts a text on one line, without characters that cannot be seen.
func shownLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r) && r != '\u200d' && r != '\u200c': // joiners are part of words
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// cutRunes returns at most n characters.
func cutRunes(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
