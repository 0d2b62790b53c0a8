package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A folder that nobody trusts is no fault of the machine, and sessions need a
// place to be recorded in.
func TestDoctorChecks(t *testing.T) {
	s := open(t, Options{}, nil)
	if got, want := settings(s), (Check{Name: "settings", OK: true, Detail: "read without a warning"}); got != want {
		t.Errorf("%+v", got)
	}
	s = open(t, Options{}, map[string]string{".capstan/settings.json": `{"tools": {"mode": "code"}}`})
	got := settings(s)
	if !got.OK || !got.Warning || !strings.Contains(got.Detail, "this folder is not trusted") {
		t.Errorf("%+v", got)
	}
	s = open(t, Options{}, map[string]string{".agents/skills/x/SKILL.md": "---\ndescription: d\n---\n"})
	skills := filepath.Join(s.project, ".agents", "skills")
	if got := settings(s); !got.OK || !got.Warning || got.Detail != skills+": not used, because this folder is not trusted: skills (--trust uses them for one run)" {
		t.Errorf("%+v", got)
	}
	data := t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	root := filepath.Join(data, "capstan", "sessions")
	if got, want := sessionDirectory(s), (Check{Name: "session directory", OK: true, Detail: root}); got != want {
		t.Errorf("%+v", got)
	}
	if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	file := filepath.Join(data, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_DATA_HOME", file)
	if got := sessionDirectory(s); got.OK || !strings.Contains(got.Detail, "no session can be recorded") || !strings.Contains(got.Detail, "XDG_DATA_HOME") {
		t.Errorf("%+v", got)
	}
}

// The names of other agents mean in --exclude-tools what they mean in rules, the
// prompt names the directories that were added, and skills have names.
func TestSessionOptions(t *testing.T) {
	added := t.TempDir()
	s := open(t, Options{Exclude: []string{"Read", "Bash"}, AddDirs: []string{added}}, map[string]string{"~/.capstan/skills/notes/SKILL.md": "---\ndescription: d\n---\nx"})
	for _, name := range []string{"read_file", "list_directory", "glob", "grep_search", "run_shell_command"} {
		if s.View().Visible(name) != nil {
			t.Errorf("%s is there", name)
		}
	}
	if s.View().Visible("edit") == nil {
		t.Error("edit is gone")
	}
	if got := s.prompt(AgentOptions{}, nil)(); !strings.Contains(got, "\nAlso workspace: "+added+"\n") {
		t.Errorf("the prompt has not %s:\n%s", added, got)
	}
	if got := s.Skills(); len(got) != 1 || got[0] != "notes" {
		t.Errorf("skills %q", got)
	}
	without := open(t, Options{Exclude: []string{"Skill"}}, map[string]string{"~/.capstan/skills/notes/SKILL.md": "---\ndescription: d\n---\nx"})
	if got := without.Skills(); len(got) > 0 {
		t.Errorf("skills %q", got)
	}
}
