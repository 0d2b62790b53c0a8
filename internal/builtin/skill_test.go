package builtin

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/policy"
	"capstan/internal/sched"
	"capstan/internal/tool"
)

// A shelf is a home and a workspace with skills.
type shelf struct {
	*testing.T
	dir string
}

func newShelf(t *testing.T, files map[string]string) *shelf {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &shelf{t, dir}
	for name, content := range files {
		write(t, s.path(name), content)
	}
	return s
}

func (s *shelf) path(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

func (s *shelf) link(target, name string) {
	s.Helper()
	if err := os.MkdirAll(filepath.Dir(s.path(name)), 0o777); err != nil {
		s.Fatal(err)
	}
	if err := os.Symlink(target, s.path(name)); err != nil {
		s.Skip("no symbolic links here: ", err)
	}
}

func (s *shelf) load() *Skills { return LoadSkills(SkillDirs(s.path("home"), s.path("ws"), true)) }

// want compares the skills, then the warnings, one a line.
func (s *shelf) want(want string) {
	s.Helper()
	got := s.load()
	var b strings.Builder
	for _, sk := range got.list {
		fmt.Fprintf(&b, "%s (%s): %s\n", sk.name, sk.path, sk.description)
	}
	for _, w := range got.Warnings {
		fmt.Fprintf(&b, "! %s\n", w)
	}
	text := strings.ReplaceAll(filepath.ToSlash(b.String()), filepath.ToSlash(s.dir)+"/", "")
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), text); diff != "" {
		s.Error(diff)
	}
}

func skillFileText(name, description, body string) string {
	return "---\nname: " + name + "\ndescription: " + description + "\n---\n" + body
}

// Skills lie in four folders. The workspace's count when it is trusted, and go
// before the user's.
func TestSkillsAreFound(t *testing.T) {
	s := newShelf(t, map[string]string{
		"home/.capstan/skills/pdf/SKILL.md":   skillFileText("pdf", "Fills forms.", "x"),
		"home/.agents/skills/deploy/SKILL.md": skillFileText("deploy", "The user's.", "x"),
		"ws/.capstan/skills/deploy/SKILL.md":  skillFileText("deploy", "The project's.", "x"),
		"ws/.agents/skills/notes/SKILL.md":    "\ufeff---\r\ndescription: >-\r\n  Two\r\n  lines.\r\nmetadata: {a: [1]}\r\n--- \r\nbody",
		"ws/.agents/skills/empty/README.md":   "no skill",
		"ws/.agents/skills/.hidden/SKILL.md":  skillFileText("hidden", "x", "x"),
		"ws/.agents/skills/SKILL.md":          skillFileText("loose", "x", "x"),
		"ws/.agents/skills/mine/SKILL.md":     "---\ndescription: For people.\ndisable-model-invocation: true\n---\n",
		"ws/.agents/skills/a/b/deep/SKILL.md": skillFileText("deep", "x", "x"),
		"ws/.agents/skills/Größe 1/SKILL.md":  skillFileText("größe", "Umlauts.", "x"),
		"ws/sub/.capstan/skills/far/SKILL.md": skillFileText("far", "x", "x"),
	})
	s.want(`
deploy (ws/.capstan/skills/deploy/SKILL.md): The project's.
größe (ws/.agents/skills/Größe 1/SKILL.md): Umlauts.
notes (ws/.agents/skills/notes/SKILL.md): Two lines.
pdf (home/.capstan/skills/pdf/SKILL.md): Fills forms.
! skills: ws/.agents/skills/Größe 1/SKILL.md: its name, größe, is not that of its folder, Größe 1
! skills: home/.agents/skills/deploy/SKILL.md is not used: ws/.capstan/skills/deploy/SKILL.md has the same name, deploy, and goes before it
`)
	var names []string
	untrusted := LoadSkills(SkillDirs(s.path("home"), s.path("ws"), false))
	for _, sk := range untrusted.list {
		names = append(names, sk.name+": "+sk.description)
	}
	if diff := cmp.Diff([]string{"deploy: The user's.", "pdf: Fills forms."}, names); diff != "" || untrusted.Warnings != nil {
		t.Errorf("untrusted: %s %v", diff, untrusted.Warnings)
	}
	if diff := cmp.Diff([]string{s.path("ws/.capstan/skills"), s.path("ws/.agents/skills")}, untrusted.Unused(s.path("ws"))); diff != "" {
		t.Error(diff)
	}
	for _, root := range []string{"home", "ws/sub/.capstan/skills/far", "none"} { // used, and none
		if got := untrusted.Unused(s.path(root)); got != nil {
			t.Errorf("unused in %s: %q", root, got)
		}
	}
	if none := LoadSkills(SkillDirs("", s.path("none"), true)); none.Tool(nil) != nil || none.Warnings != nil || none.Folders() != nil {
		t.Errorf("no skills: %+v", none)
	}
	if diff := cmp.Diff([]string{s.path("home/.capstan/skills"), s.path("home/.agents/skills")}, untrusted.Folders()); diff != "" {
		t.Error(diff)
	}
}

// A file that is no skill costs only itself, and says what to mend.
func TestBrokenSkills(t *testing.T) {
	files := map[string]string{
		"a-bare":  "# No front matter",
		"b-open":  "---\nname: b-open\ndescription: x\n",
		"c-none":  "---\nname: c-none\n---\nx",
		"d-yaml":  "---\nname: [d\ndescription: >\n  x: y\n---\n",
		"e-colon": "---\nname: e-colon\ndescription: Use when: asked\nother: a: b\n---\n",
		"f-list":  "---\n- name\n---\n",
		"g-name":  "---\nname: ../../etc/passwd\ndescription: x\n---\n",
		"h-long":  "---\nname: " + strings.Repeat("h", 65) + "\ndescription: x\n---\n",
		"i-nul":   "---\nname: i\x00\n---\n",
		"j-big":   skillFileText("j-big", "x", strings.Repeat("x", maxSkillFile)),
		"k-front": "---\n" + strings.Repeat("# comment\n", 2000) + "name: k\ndescription: x\n---\n",
		"l-twice": "---\nname: l-twice\nname: l-twice\ndescription: 'quoted'\n---\n",
		"m-odd":   "---\ndescription: \"a\\nb\\t<!-- \\u202e\\u0007 c\"\n---\n",
		"n-empty": "",
		"o-bomb":  "---\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c]\ndescription: bomb\n---\n",
		"p-deep":  "---\na: " + strings.Repeat("[", 9000) + "\n---\n",
		"q-utf16": "\xff\xfe-\x00-\x00-\x00",
	}
	s := newShelf(t, nil)
	for name, content := range files {
		write(t, s.path("ws/.agents/skills/"+name+"/SKILL.md"), content)
	}
	s.want(`
e-colon (ws/.agents/skills/e-colon/SKILL.md): Use when: asked
l-twice (ws/.agents/skills/l-twice/SKILL.md): quoted
m-odd (ws/.agents/skills/m-odd/SKILL.md): a b <!-- c
o-bomb (ws/.agents/skills/o-bomb/SKILL.md): bomb
! skills: ws/.agents/skills/a-bare/SKILL.md is not used: it does not begin with front matter: a line ---, name and description, and a line ---
! skills: ws/.agents/skills/b-open/SKILL.md is not used: no line --- ends its front matter within the first 16.0 KiB
! skills: ws/.agents/skills/c-none/SKILL.md is not used: its front matter has no description, by which a model could choose it
! skills: ws/.agents/skills/d-yaml/SKILL.md is not used: reading its front matter: yaml: line 3: found character that cannot start any token
! skills: ws/.agents/skills/e-colon/SKILL.md: its front matter is no YAML and was read line by line: put quotation marks around values with a colon
! skills: ws/.agents/skills/f-list/SKILL.md is not used: reading its front matter: it has no fields like name: and description:
! skills: ws/.agents/skills/g-name/SKILL.md is not used: its name, "../../etc/passwd", must have at most 64 letters, digits and the characters - _ . :
! skills: ws/.agents/skills/h-long/SKILL.md is not used: its name, "` + strings.Repeat("h", 63) + `…", must have at most 64 letters, digits and the characters - _ . :
! skills: ws/.agents/skills/i-nul/SKILL.md is not used: it is not UTF-8 text
! skills: ws/.agents/skills/j-big/SKILL.md is not used: it is larger than 256.0 KiB
! skills: ws/.agents/skills/k-front/SKILL.md is not used: no line --- ends its front matter within the first 16.0 KiB
! skills: ws/.agents/skills/n-empty/SKILL.md is not used: it does not begin with front matter: a line ---, name and description, and a line ---
! skills: ws/.agents/skills/p-deep/SKILL.md is not used: reading its front matter: yaml: line 3: did not find expected node content
! skills: ws/.agents/skills/q-utf16/SKILL.md is not used: it is not UTF-8 text
`)
}

// A project's links lead out of it in no way; the user's own may.
func TestSkillLinks(t *testing.T) {
	s := newShelf(t, map[string]string{
		"store/pdf/SKILL.md": skillFileText("pdf", "Elsewhere.", "x"), "store/secret": skillFileText("secret", "x", "x"),
		"ws/tools/own/SKILL.md": skillFileText("own", "In the project.", "x"), "ws/README.md": "x",
	})
	s.link(s.path("store/pdf"), "home/.capstan/skills/pdf")
	s.link(s.path("home/.capstan/skills/pdf"), "home/.agents/skills/pdf")
	s.link(s.path("store/pdf"), "ws/.agents/skills/stolen")
	s.link("../../tools/own", "ws/.agents/skills/own")
	s.link("../../README.md", "ws/.agents/skills/file")
	s.link("nowhere", "ws/.agents/skills/gone")
	s.link(s.path("store/secret"), "ws/.agents/skills/folder/SKILL.md")
	s.link(s.path("store"), "ws/.capstan/skills")
	s.want(`
own (ws/tools/own/SKILL.md): In the project.
pdf (store/pdf/SKILL.md): Elsewhere.
! skills: ws/.capstan/skills is not used: it leads out of ws
! skills: ws/.agents/skills/folder/SKILL.md is not used: it leads out of ws
! skills: ws/.agents/skills/stolen/SKILL.md is not used: it leads out of ws
`)
	if diff := cmp.Diff([]string{s.path("ws/.agents/skills")}, (&Skills{f: &files{}}).Unused(s.path("ws"))); diff != "" {
		t.Error(diff) // nothing outside is looked at
	}
	want := []string{s.path("ws/.agents/skills"), s.path("home/.capstan/skills"), s.path("home/.agents/skills"), s.path("ws/tools/own"), s.path("store/pdf")}
	if diff := cmp.Diff(want, s.load().Folders()); diff != "" {
		t.Error(diff)
	}
}

// runSkill calls the tool through the whole path of a call.
func runSkill(t *testing.T, tl tool.Tool, args obj) tool.Result {
	t.Helper()
	var reg tool.Registry
	if err := reg.Add(tl); err != nil {
		t.Fatal(err)
	}
	return sched.New(sched.Options{}).Run(t.Context(), func() *tool.View { return reg.View(tool.Direct, tool.Scope{}) }, []tool.Call{request(1, "skill", args)})[0]
}

// A skill is read when it is called, with its folder and what lies in it.
func TestSkillIsLoaded(t *testing.T) {
	s := newShelf(t, map[string]string{
		"ws/.agents/skills/pdf/SKILL.md": skillFileText("pdf", "Fills forms.", "old"), "ws/.agents/skills/pdf/scripts/fill.py": "", "ws/.agents/skills/pdf/a\nb.md": "",
		"ws/.agents/skills/pdf/1/2/three.md": "", "ws/.agents/skills/pdf/1/2/3/four.md": "", "ws/.agents/skills/pdf/secret.md": "",
		"home/.capstan/skills/other/SKILL.md": skillFileText("other", "Does more.", "x"),
	})
	hidden := func(path string) bool { return filepath.Base(path) == "secret.md" }
	tl := s.load().Tool(hidden)
	write(t, s.path("ws/.agents/skills/pdf/SKILL.md"), skillFileText("pdf", "Changed.", "\n# New\r\ntext\n"))
	folder := s.path("ws/.agents/skills/pdf")
	want := "Skill pdf\nFolder: " + folder + "\nPaths in the instructions are relative to this folder; read its files when the instructions need them.\n" +
		"Files: 1/2/three.md, \"a\\nb.md\", scripts/fill.py\n\n# New\ntext"
	r := runSkill(t, tl, obj{"skill": "pdf"})
	if diff := cmp.Diff(want, r.Text()); diff != "" {
		t.Error(diff)
	}
	var data any
	if err := json.Unmarshal(r.Data, &data); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(obj{"name": "pdf", "folder": folder, "files": []any{"1/2/three.md", "a\nb.md", "scripts/fill.py"}}), data); diff != "" {
		t.Error(diff)
	}
	for _, args := range []obj{{}, {"skill": ""}} {
		if r := runSkill(t, tl, args); r.Text() != "- other: Does more.\n- pdf: Fills forms.\n" || string(r.Data) != `{"skills":[{"name":"other","description":"Does more."},{"name":"pdf","description":"Fills forms."}]}` {
			t.Errorf("the list: %s %s", r.Text(), r.Data)
		}
	}
	for _, tt := range []struct{ name, want string }{
		{"none", `there is no skill "none"; the skills are other, pdf`},
		{"../pdf", `there is no skill "../pdf"; the skills are other, pdf`},
	} {
		if r := runSkill(t, tl, obj{"skill": tt.name}); r.Code != tool.CodeFailed || r.Text() != tt.want {
			t.Errorf("%s: %s %q", tt.name, r.Code, r.Text())
		}
	}
	if r := runSkill(t, tl, obj{"name": "pdf"}); r.Code != tool.CodeInvalidArgs {
		t.Errorf("an unknown argument: %s %s", r.Code, r.Text())
	}
}

// What a skill has become since it was found is said; a link put in its place
// is not followed.
func TestSkillChanged(t *testing.T) {
	const name = "ws/.agents/skills/pdf/SKILL.md"
	for _, tt := range []struct {
		change func(s *shelf)
		want   string
	}{
		{func(s *shelf) { write(s, s.path(name), skillFileText("pdf", "x", strings.Repeat("x", maxSkillFile))) }, "SKILL.md is larger than 256.0 KiB; read the part that you need with read_file"},
		{func(s *shelf) { write(s, s.path(name), "gone wrong") }, "SKILL.md: it does not begin with front matter"},
		{func(s *shelf) { write(s, s.path(name), skillFileText("pdf", "x", "\xff")) }, "SKILL.md: it is not UTF-8 text"},
		{func(s *shelf) { remove(s, s.path(name)) }, "SKILL.md does not exist"},
		{func(s *shelf) { remove(s, s.path(name)); s.link(s.path("out"), name) }, "SKILL.md is a symbolic link, not a file"},
		{func(s *shelf) {
			remove(s, filepath.Dir(s.path(name)))
			s.link(s.path("elsewhere"), filepath.Dir(name))
		}, "was exchanged while the call was being prepared"},
	} {
		s := newShelf(t, map[string]string{name: skillFileText("pdf", "x", "y"), "out": skillFileText("pdf", "x", "secret"), "elsewhere/SKILL.md": skillFileText("pdf", "x", "secret")})
		tl := s.load().Tool(nil)
		tt.change(s)
		if r := runSkill(t, tl, obj{"skill": "pdf"}); r.Code != tool.CodeFailed || !strings.HasPrefix(r.Text(), "loading the skill pdf: ") || !strings.Contains(r.Text(), tt.want) {
			t.Errorf("%s %q, want %q", r.Code, r.Text(), tt.want)
		}
	}
}

func remove(t testing.TB, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// The call is judged by what it reads.
func TestSkillAccess(t *testing.T) {
	s := newShelf(t, map[string]string{"home/.agents/skills/pdf/SKILL.md": skillFileText("pdf", "x", "y")})
	tl := s.load().Tool(nil)
	folder := s.path("home/.agents/skills/pdf")
	for args, want := range map[string][]string{
		`{"skill":"pdf"}`: {filepath.Join(folder, "SKILL.md"), folder},
		`{}`:              {filepath.Dir(folder)},
		`{"skill":"../"}`: {filepath.Dir(folder)},
		`nonsense`:        {filepath.Dir(folder)},
	} {
		got := tl.(tool.Accessor).Access(&tool.Call{Args: json.RawMessage(args)})
		if diff := cmp.Diff(tool.Access{Overlap: true, Reads: want}, got); diff != "" {
			t.Errorf("%s: %s", args, diff)
		}
	}
}

// With the folders that it names readable, a user's skill and the files beside
// it are read without a question in every mode; without, somebody is asked.
func TestSkillPolicy(t *testing.T) {
	s := newShelf(t, map[string]string{"home/.agents/skills/pdf/SKILL.md": skillFileText("pdf", "x", "y"), "home/.agents/skills/pdf/more.md": "more", "ws/f": ""})
	skills := s.load()
	for _, mode := range []policy.Mode{policy.Plan, policy.Default} {
		for _, readable := range [][]string{skills.Folders(), nil} {
			p, _, err := policy.New(policy.Options{Mode: mode, Dir: s.path("ws"), Home: s.path("home"), Readable: readable})
			if err != nil {
				t.Fatal(err)
			}
			var reg tool.Registry
			if err := reg.Add(append(All(Options{Dir: s.path("ws")}), skills.Tool(nil))...); err != nil {
				t.Fatal(err)
			}
			rs := sched.New(sched.Options{Policy: p}).Run(t.Context(), func() *tool.View { return reg.View(tool.Direct, tool.Scope{}) }, []tool.Call{
				request(1, "skill", obj{}), request(2, "skill", obj{"skill": "pdf"}), request(3, "read_file", obj{"file_path": s.path("home/.agents/skills/pdf/more.md")}),
			})
			for _, r := range rs {
				if want := readable != nil; (r.Status == tool.Success) != want || !want && !r.Unasked {
					t.Errorf("%s, readable %v: %s: %s", mode, readable, r.Name, r.Text())
				}
			}
		}
	}
}

// The description lists the skills, the same bytes each time, within a budget;
// who has too many is told. S3-018, S3-040, S3-041, BUG-PC-01
func TestSkillDescription(t *testing.T) {
	s := newShelf(t, map[string]string{"home/.agents/skills/b/SKILL.md": skillFileText("b", "Second.", "y"), "home/.capstan/skills/a/SKILL.md": skillFileText("a", "First.", "y")})
	sp := s.load().Tool(nil).Spec()
	if diff := cmp.Diff(text(skillText)+"\n\nSkills:\n- a: First.\n- b: Second.", sp.Description); diff != "" || !strings.Contains(sp.Description, "Must not be used ") {
		t.Error(diff)
	}
	for i := range 20 {
		if again := s.load().Tool(nil).Spec(); again.Description != sp.Description {
			t.Fatalf("time %d: %s", i, again.Description)
		}
	}
	for _, tt := range []struct {
		n, words  int
		most      int
		has, last string
	}{
		{2, 490, -1, "- s000: " + strings.Repeat("w", 490) + "\n", ""},
		{20, 1000, 30, "- s019: " + strings.Repeat("w", 29) + "…", ""},
		{120, 1000, 0, "- s000\n- s001\n", "- s119"},
	} {
		var list []skill
		for i := range tt.n {
			list = append(list, skill{name: fmt.Sprintf("s%03d", i), description: strings.Repeat("w", tt.words)})
		}
		got, most, unnamed := skillList(list)
		if unnamed != 0 || sentBytes(got) > maxSkillList || most != tt.most || !strings.Contains(got, tt.has) || !strings.HasSuffix(got, tt.last) {
			t.Errorf("%d skills: %d bytes, cut to %d: %s", tt.n, len(got), most, got)
		}
	}
	var list []skill
	for i := range 200 {
		list = append(list, skill{name: fmt.Sprintf("%03d%s", i, strings.Repeat("n", 61))})
	}
	if got, _, unnamed := skillList(list); sentBytes(got) > maxSkillList || unnamed != 187 || !strings.HasSuffix(got, "n\n- and 187 more: call skill without a name to list them") {
		t.Errorf("%d bytes: …%s", len(got), got[len(got)-200:])
	}
	s = newShelf(t, nil)
	for i := range maxSkills + 30 {
		write(t, s.path(fmt.Sprintf("ws/.agents/skills/s%03d/SKILL.md", i)), skillFileText(fmt.Sprintf("s%03d", i), "w", "x"))
	}
	got := s.load()
	if n := len(got.Warnings); len(got.list) != maxSkills || n != maxSkillWarnings+1 || got.Warnings[n-1] != "skills: 11 more warnings" ||
		!strings.HasSuffix(got.Warnings[0], "s200/SKILL.md is not used: there can be 200 skills") {
		t.Errorf("%d skills, %q", len(got.list), got.Warnings)
	}
}

// A list weighs what a declaration makes of it.
func TestSentBytes(t *testing.T) {
	for _, s := range []string{"", "- a: b\n- c", `"\\"`, "*/ * / **//", "ä – 😀"} {
		sent, err := json.Marshal(strings.ReplaceAll(s, "*/", `*\/`)) // as in a comment
		if err != nil {
			t.Fatal(err)
		}
		if got, want := sentBytes(s), len(sent)-len(`""`); got != want {
			t.Errorf("%q: %d bytes, want %d", s, got, want)
		}
	}
}

// Who has too much to say is told so.
func TestSkillsTooTalkative(t *testing.T) {
	const limited = "skills: the list that the model sees is limited to 1.0 KiB, so "
	for n, want := range map[int][]string{
		1:   nil,
		20:  {limited + "descriptions are cut to 30 characters: shorten them, or remove skills"},
		100: {limited + "it has names only: remove skills"},
		150: {limited + "it has no descriptions and lacks 32 names, which the model has to ask for: remove skills"},
	} {
		s := newShelf(t, nil)
		for i := range n {
			write(t, s.path(fmt.Sprintf("ws/.agents/skills/s%03d/SKILL.md", i)), skillFileText(fmt.Sprintf("s%03d", i), strings.Repeat("w", 900), "x"))
		}
		if diff := cmp.Diff(want, s.load().Warnings); diff != "" {
			t.Errorf("%d skills: %s", n, diff)
		}
	}
}

// Whatever a file holds, it is a skill with a name and a line that describes
// it, or an error.
func FuzzSkill(f *testing.F) {
	f.Add([]byte(skillFileText("a", "b", "c")))
	f.Add([]byte("---\nname: x\ndescription: >-\n  a: &b [*b]\n...\n---\n"))
	f.Add([]byte("---\ndescription: a: b\n---"))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := parseSkill(data, true)
		if err == nil && (doc.description == "" || strings.ContainsAny(doc.description, "\n\r\u202e")) {
			t.Errorf("%q: %+v", data, doc)
		}
	})
}

func BenchmarkLoadSkills(b *testing.B) {
	dir := b.TempDir()
	for i := range 50 {
		write(b, filepath.Join(dir, "home/.agents/skills", fmt.Sprintf("s%03d", i), "SKILL.md"), skillFileText(fmt.Sprintf("s%03d", i), strings.Repeat("word ", 50), strings.Repeat("text\n", 1000)))
	}
	b.ReportAllocs()
	for b.Loop() {
		if s := LoadSkills(SkillDirs(filepath.Join(dir, "home"), dir, true)); len(s.list) != 50 {
			b.Fatal(s.Warnings)
		}
	}
}
