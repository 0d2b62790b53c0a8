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
	for key := range f.values {
		if field := nearField(key); field != "" && field != key {
			return nil, fmt.Errorf("%s is no field: did you mean %s?", cutName(key), field)
		}
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
	if i := slices.IndexFunc(x.Disallowed, func(n string) bool { return !toolWord(n, !f.mended) }); i >= 0 {
		return nil, fmt.Errorf("disallowedTools: %q is no name of a tool, nor a pattern such as mcp__server__*", cutName(x.Disallowed[i]))
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
		if has && field == "tools" && slices.Contains(ours, tool.AgentName) {
			if err := x.mayStart(spec); err != nil {
				return nil, err
			}
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

// mayStart reads the kinds of agent in Agent(a, b).
func (x *Definition) mayStart(spec string) error {
	names, closed := strings.CutSuffix(strings.TrimSpace(spec), ")")
	if !closed {
		return fmt.Errorf("the closing parenthesis of Agent(%s is missing", cutName(spec))
	}
	if names = strings.TrimSpace(names); names == "" || names == "*" {
		return nil
	}
	if x.Starts == nil {
		x.Starts = []string{}
	}
	for name := range strings.SplitSeq(names, ",") {
		if name = strings.TrimSpace(name); name != "" {
			x.Starts = append(x.Starts, name)
		}
	}
	return nil
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
		f, odd := plainFields(front)
		if odd != nil || f.values["description"] == nil || f.values["hooks"] != nil {
			return f, errors.Join(fmt.Errorf("reading its front matter: %w", err), odd)
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
// to it. A field that restricts the agent and would be passed over is an error.
func plainFields(front string) (frontMatter, error) {
	f := frontMatter{values: map[string]*yaml.Node{}, mended: true}
	texts := map[*yaml.Node]*strings.Builder{}
	var at *yaml.Node
	for line := range strings.Lines(front) {
		line = cutComment(line)
		key, value, ok := strings.Cut(line, ":")
		if ok && fieldName(key) {
			before := f.values[key]
			if before != nil && nearField(key) != "" {
				return f, fmt.Errorf("%s is there twice", cutName(key))
			}
			if at = nil; before == nil {
				at = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str"}
				f.values[key], texts[at] = at, &strings.Builder{}
				texts[at].WriteString(strings.TrimSpace(value))
			}
			continue
		}
		if field := nearField(key); field != "" && (ok || strings.HasPrefix(line, "?")) {
			return f, fmt.Errorf("%s has to stand at the beginning of a line, without quotation marks", field)
		}
		word := strings.TrimSpace(line)
		item, isItem := strings.CutPrefix(word, "- ")
		switch {
		case at == nil || word == "":
		case isItem && texts[at].Len() == 0:
			at.Kind, at.Tag = yaml.SequenceNode, "!!seq"
			at.Content = append(at.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: unquote(item)})
		default:
			texts[at].WriteString(" " + word)
		}
	}
	for at, text := range texts {
		if at.Value = unquote(text.String()); at.Value == "" && at.Kind == yaml.ScalarNode {
			at.Tag = "!!null"
		}
	}
	for _, key := range []string{"tools", "disallowedTools"} {
		v := f.values[key]
		if v == nil || v.Value == "" {
			continue
		}
		if v.Kind == yaml.SequenceNode {
			return f, fmt.Errorf("%s: %q is no part of the list: want items that begin with \"- \"", key, cutName(v.Value))
		}
		if strings.HasPrefix(v.Value, "[") && strings.HasSuffix(v.Value, "]") {
			v.Kind, v.Tag = yaml.SequenceNode, "!!seq"
			for _, w := range splitTools(v.Value[1 : len(v.Value)-1]) {
				v.Content = append(v.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: unquote(w)})
			}
		}
	}
	return f, nil
}

// cutComment takes away what stands behind a # that a space is before, but for one
// in a value in quotation marks.
func cutComment(line string) string {
	from := 0
	if _, value, ok := strings.Cut(line, ":"); ok {
		value = strings.TrimLeft(value, " \t")
		if n := len(value); n > 0 && (value[0] == '"' || value[0] == '\'') {
			if end := strings.IndexByte(value[1:], value[0]); end >= 0 {
				from = len(line) - n + end + 2
			}
		}
	}
	for i := from; i < len(line); i++ {
		if line[i] == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			return line[:i]
		}
	}
	return line
}

// restricting are the fields without which an agent could do more.
var restricting = []string{"tools", "disallowedTools", "approvalMode", "permissionMode", "maxTurns", "runConfig", "preset", "hooks"}

// nearField returns the restricting field that a key is meant to be, whatever its
// spaces, quotation marks, dashes and letters; empty when it is another one.
func nearField(key string) string {
	key = strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) {
			return -1
		}
		return r
	}, key)
	for _, field := range restricting {
		if strings.EqualFold(key, field) {
			return field
		}
	}
	return ""
}

// toolWord says whether a word can be a tool's name or a pattern. servers says that
// tools of servers may be called anything.
func toolWord(w string, servers bool) bool {
	if servers && strings.HasPrefix(w, "mcp__") {
		return true
	}
	for i, r := range w {
		letter := unicode.IsLetter(r) || r == '_' || r == '*'
		if !letter && (i == 0 || !unicode.IsDigit(r) && !strings.ContainsRune("-.:/", r)) {
			return false
		}
	}
	return true
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
