package builtin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"capstan/internal/tool"
)

const (
	skillFile        = "SKILL.md"
	maxSkills        = 200      // of one session
	maxSkillEntries  = 2000     // of one folder of skills
	maxSkillFront    = 16 << 10 // bytes, in which the front matter must end
	maxSkillName     = 64       // characters
	maxSkillWords    = 1024     // characters of a description
	maxSkillWarnings = 20
)

// A SkillDir is a folder whose folders are skills.
type SkillDir struct {
	Path string // absolute
	// Within, when not empty, is the directory (absolute) that links may not
	// lead out of: that of a project, which others wrote.
	Within string
}

// SkillDirs returns where skills lie: in the workspace, once it is trusted, and
// in the user's home directory. The first of two skills of one name counts.
// .agents/skills is where other agents look as well.
func SkillDirs(home, root string, trusted bool) []SkillDir {
	var dirs []SkillDir
	for _, base := range []struct {
		path, within string
		use          bool
	}{{root, root, trusted && root != ""}, {home, "", home != ""}} {
		if base.use {
			dirs = append(dirs, SkillDir{filepath.Join(base.path, ".capstan", "skills"), base.within}, SkillDir{filepath.Join(base.path, ".agents", "skills"), base.within})
		}
	}
	return dirs
}

// Unused returns those of a workspace's folders of skills that were not loaded
// and in which something looks like one, as text for a person: what a workspace
// has that is not trusted. No SKILL.md is read.
func (s *Skills) Unused(root string) []string {
	var found []string
	for _, d := range SkillDirs("", root, true) {
		if s.some(d) {
			found = append(found, quoteName(d.Path))
		}
	}
	return found
}

// some reports whether a directory that was not loaded has a folder with a SKILL.md.
func (s *Skills) some(d SkillDir) bool {
	within, err := s.f.resolve(d.Within)
	if err != nil {
		return false
	}
	real, err := s.place(d.Path, within)
	if err != nil || slices.Contains(s.roots, real) { // the workspace is the home directory
		return false
	}
	h, err := s.f.openDir(real)
	if err != nil {
		return false
	}
	defer func() { _ = h.Close() }()            // only read
	names, _ := h.Readdirnames(maxSkillEntries) // what cannot be listed has none
	return slices.ContainsFunc(names, func(name string) bool {
		if strings.HasPrefix(name, ".") {
			return false
		}
		_, err := os.Lstat(filepath.Join(real, name, skillFile))
		return err == nil
	})
}

// A skill is what is known of one before it is loaded.
type skill struct {
	name, description string
	folder, path      string // absolute, links resolved; path is that of SKILL.md
}

// Skills are the skills that there are.
type Skills struct {
	// Warnings say what was left out, and why.
	Warnings []string

	list  []skill  // by name
	shown string   // the list as the tool's description gives it
	roots []string // the folders of skills, links resolved
	f     *files
	more  int // warnings that had no room
}

// LoadSkills looks for skills: each folder with a SKILL.md in one of the
// directories. It reads the beginning of these files, and nothing else. A
// directory that does not exist is fine; a skill that cannot be used costs only
// itself.
func LoadSkills(dirs []SkillDir) *Skills {
	s := &Skills{f: &files{}}
	for _, d := range dirs {
		s.directory(d)
	}
	slices.SortFunc(s.list, func(a, b skill) int { return strings.Compare(a.name, b.name) })
	var most, unnamed int
	switch s.shown, most, unnamed = skillList(s.list); {
	case unnamed > 0:
		s.warn("skills: the list that the model sees is limited to %s, so it has no descriptions and lacks %d names, which the model has to ask for: remove skills", size(maxSkillList), unnamed)
	case most == 0:
		s.warn("skills: the list that the model sees is limited to %s, so it has names only: remove skills", size(maxSkillList))
	case most > 0:
		s.warn("skills: the list that the model sees is limited to %s, so descriptions are cut to %d characters: shorten them, or remove skills", size(maxSkillList), most)
	}
	if s.more > 0 {
		s.Warnings = append(s.Warnings, fmt.Sprintf("skills: %d more warnings", s.more))
	}
	return s
}

// Folders are the directories that a model must be able to read without being
// asked about it, for the files beside a SKILL.md: the folders of skills, and
// skills that lie elsewhere behind a link. Absolute, links resolved.
func (s *Skills) Folders() []string {
	out := slices.Clone(s.roots)
	for _, sk := range s.list {
		if !slices.ContainsFunc(s.roots, func(root string) bool { return tool.Within(root, sk.folder) }) {
			out = append(out, sk.folder)
		}
	}
	return out
}

// Names returns the names of the skills that a model is told of, in order.
func (s *Skills) Names() []string {
	var names []string
	for _, k := range s.list {
		names = append(names, k.name)
	}
	return names
}

func (s *Skills) warn(format string, a ...any) {
	if len(s.Warnings) >= maxSkillWarnings {
		s.more++
		return
	}
	s.Warnings = append(s.Warnings, fmt.Sprintf(format, a...))
}

func (s *Skills) directory(d SkillDir) {
	within := ""
	if d.Within != "" {
		var err error
		if within, err = s.f.resolve(d.Within); err != nil {
			s.warn("skills: %s is not used: %v", quoteName(d.Path), err)
			return
		}
	}
	real, err := s.place(d.Path, within)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		s.warn("skills: %s is not used: %v", quoteName(d.Path), err)
		return
	}
	h, err := s.f.openDir(real)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		s.warn("skills: %s is not used: %v", quoteName(d.Path), err)
		return
	}
	defer func() { _ = h.Close() }() // only read
	entries, err := h.ReadDir(maxSkillEntries)
	if err != nil && err != io.EOF {
		s.warn("skills: listing %s: %v", quoteName(d.Path), err)
	}
	if len(entries) == maxSkillEntries {
		s.warn("skills: only %d entries of %s were looked at", maxSkillEntries, quoteName(d.Path))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	if !slices.Contains(s.roots, real) {
		s.roots = append(s.roots, real)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || !e.IsDir() && e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		s.add(filepath.Join(real, e.Name()), within)
	}
}

// place resolves a path, which may have to stay within a directory (resolved).
func (s *Skills) place(path, within string) (string, error) {
	real, err := s.f.resolve(path)
	if err == nil && within != "" && !tool.Within(within, real) {
		err = fmt.Errorf("it leads out of %s", quoteName(within))
	}
	return real, err
}

// add takes up the skill in a folder, if there is one.
func (s *Skills) add(folder, within string) {
	sk, notes, err := s.read(folder, within)
	if errors.Is(err, fs.ErrNotExist) || err == errNoSkill {
		return
	}
	shown := quoteName(filepath.Join(folder, skillFile))
	if err != nil {
		s.warn("skills: %s is not used: %v", shown, err)
		return
	}
	for _, n := range notes {
		s.warn("skills: %s: %s", shown, n)
	}
	for _, other := range s.list {
		switch {
		case other.path == sk.path: // by another way
			return
		case other.name == sk.name:
			s.warn("skills: %s is not used: %s has the same name, %s, and goes before it", shown, quoteName(other.path), sk.name)
			return
		}
	}
	if len(s.list) == maxSkills {
		s.warn("skills: %s is not used: there can be %d skills", shown, maxSkills)
		return
	}
	s.list = append(s.list, sk)
}

// errNoSkill is a folder that is none, or that is not for models.
var errNoSkill = errors.New("there is no skill here")

// read reads the beginning of a folder's SKILL.md.
func (s *Skills) read(folder, within string) (sk skill, notes []string, err error) {
	if sk.folder, err = s.place(folder, within); err != nil {
		return sk, nil, err
	}
	if fi, err := os.Stat(sk.folder); err != nil || !fi.IsDir() {
		return sk, nil, errNoSkill
	}
	if sk.path, err = s.place(filepath.Join(sk.folder, skillFile), within); err != nil {
		return sk, nil, err
	}
	h, err := s.f.open(sk.path)
	if err != nil {
		return sk, nil, err
	}
	defer func() { _ = h.Close() }() // only read
	if h.size > maxSkillFile {
		return sk, nil, fmt.Errorf("it is larger than %s", size(maxSkillFile))
	}
	doc, err := readFront(h)
	if err != nil {
		return sk, nil, err
	}
	if doc.private {
		return sk, nil, errNoSkill
	}
	sk.name, sk.description = doc.name, doc.description
	base := filepath.Base(folder)
	if sk.name == "" {
		sk.name = base
	}
	if err := checkSkillName(sk.name); err != nil {
		return sk, nil, err
	}
	if sk.name != base {
		notes = append(notes, fmt.Sprintf("its name, %s, is not that of its folder, %s", sk.name, quoteName(base)))
	}
	if doc.mended {
		notes = append(notes, "its front matter is no YAML and was read line by line: put quotation marks around values with a colon")
	}
	return sk, notes, nil
}

// readFront parses the beginning of a SKILL.md, of which it reads more only
// when the front matter is long.
func readFront(r io.Reader) (skillDoc, error) {
	var head []byte
	for _, limit := range []int{maxSkillFront / 8, maxSkillFront} {
		more, err := io.ReadAll(io.LimitReader(r, int64(limit-len(head))))
		if err != nil {
			return skillDoc{}, err
		}
		head = append(head, more...)
		if doc, err := parseSkill(head, false); !errors.Is(err, errOpenFront) {
			return doc, err
		}
	}
	return skillDoc{}, errOpenFront
}

func checkSkillName(name string) error {
	odd := strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.:", r)
	})
	if n := utf8.RuneCountInString(name); odd || n > maxSkillName {
		return fmt.Errorf("its name, %q, must have at most %d letters, digits and the characters - _ . :", cutText(name, maxSkillName), maxSkillName)
	}
	return nil
}

// A skillDoc is a SKILL.md, taken apart.
type skillDoc struct {
	name, description string
	private           bool // a person starts it, not a model
	mended            bool // the front matter was no YAML
	body              string
}

// parseSkill reads a SKILL.md: front matter between two lines of ---, then the
// instructions. Of a head that is not whole the body is not given.
func parseSkill(data []byte, whole bool) (skillDoc, error) {
	var doc skillDoc
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if bytes.IndexByte(data, 0) >= 0 || whole && !utf8.Valid(data) {
		return doc, errors.New("it is not UTF-8 text")
	}
	all := strings.ReplaceAll(string(data), "\r\n", "\n")
	first, rest, _ := strings.Cut(all, "\n")
	if strings.TrimRight(first, " \t") != "---" {
		return doc, errors.New("it does not begin with front matter: a line ---, name and description, and a line ---")
	}
	front, body, err := cutFront(rest)
	if err != nil {
		return doc, err
	}
	if err := doc.meta(front); err != nil {
		return doc, err
	}
	if whole {
		doc.body = strings.Trim(body, "\n")
	}
	return doc, nil
}

var errOpenFront = fmt.Errorf("no line --- ends its front matter within the first %s", size(maxSkillFront))

func cutFront(rest string) (front, body string, err error) {
	for at := 0; at < len(rest) && at < maxSkillFront; {
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
	return "", "", errOpenFront
}

// meta reads the front matter. Only these fields are looked at: others, such
// as allowed-tools, grant nothing here.
func (d *skillDoc) meta(front string) error {
	field, err := yamlFields(front)
	if err != nil {
		// What is wrong is nearly always a colon in a description without
		// quotation marks, which other agents take as it is meant.
		field = func(key string) string { return plainField(front, key) }
		if field("description") == "" {
			return fmt.Errorf("reading its front matter: %w", err)
		}
		d.mended = true
	}
	d.name = strings.TrimSpace(field("name"))
	d.private = field("disable-model-invocation") == "true"
	if d.description = cutText(oneLineText(field("description")), maxSkillWords); d.description == "" {
		return errors.New("its front matter has no description, by which a model could choose it")
	}
	return nil
}

// yamlFields parses front matter into the texts of its fields. Nothing is
// decoded, so no alias is followed.
func yamlFields(front string) (func(key string) string, error) {
	var doc yaml.Node
	// The line --- before it is an empty one here, so that lines are counted as
	// in the file.
	if err := yaml.Unmarshal([]byte("\n"+front), &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("it has no fields like name: and description:")
	}
	pairs := doc.Content[0].Content
	return func(key string) string {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i].Value == key && pairs[i+1].Kind == yaml.ScalarNode {
				return pairs[i+1].Value
			}
		}
		return ""
	}, nil
}

// plainField returns the value of a field on one line.
func plainField(front, key string) string {
	for line := range strings.Lines(front) {
		v, ok := strings.CutPrefix(line, key+":")
		if !ok {
			continue
		}
		if v = strings.TrimSpace(v); strings.HasPrefix(v, ">") || strings.HasPrefix(v, "|") {
			return ""
		}
		if n := len(v); n >= 2 && (v[0] == '"' || v[0] == '\'') && v[n-1] == v[0] {
			v = v[1 : n-1]
		}
		return v
	}
	return ""
}

// oneLineText puts a text on one line, without characters that cannot be seen.
func oneLineText(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r) && r != '\u200d' && r != '\u200c': // joiners are part of words
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	return strings.Join(strings.Fields(s), " ")
}
