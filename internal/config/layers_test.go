package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// load lays files out and loads them as the layers that their names say.
func load(t *testing.T, trusted bool, mode string, files map[string]string) (Settings, []Warning, error) {
	t.Helper()
	base := lay(t, files)
	o := Options{Home: filepath.Join(base, "home"), Project: filepath.Join(base, "ws"), Trusted: trusted, Mode: mode, Managed: filepath.Join(base, "managed.json")}
	return Load(o)
}

const localFile = "ws/.capstan/settings.local.json"

// Who switches off hooks with disableAllHooks, and whose.
func TestHooksOff(t *testing.T) {
	for _, c := range []struct {
		off     map[string]string // by file: the value
		left    []string
		all     bool
		project bool
	}{
		{nil, []string{User, Project, Local, Managed}, false, false},
		{map[string]string{userFile: "true"}, []string{Managed}, true, true},
		{map[string]string{userFile: "true", "managed.json": "false"}, []string{Managed}, true, true},
		{map[string]string{"managed.json": "true"}, nil, true, true},
		{map[string]string{"managed.json": "true", userFile: "false", localFile: "false"}, nil, true, true},
		{map[string]string{projectFile: "true"}, []string{User, Managed}, false, true},
		{map[string]string{localFile: "true"}, []string{User, Managed}, false, true},
		{map[string]string{projectFile: "true", localFile: "false"}, []string{User, Project, Local, Managed}, false, false},
		{map[string]string{userFile: "true", localFile: "false"}, []string{Managed}, true, true},
	} {
		files := map[string]string{}
		for _, name := range []string{userFile, projectFile, localFile, "managed.json"} {
			off := ""
			if v := c.off[name]; v != "" {
				off = `, "disableAllHooks": ` + v
			}
			files[name] = `{"hooks": {}` + off + `}`
		}
		got, warnings, err := load(t, true, "", files)
		if err != nil || len(warnings) > 0 {
			t.Fatal(warnings, err)
		}
		var left []string
		for _, s := range got.Sections {
			left = append(left, s.From.Layer)
		}
		if diff := cmp.Diff(c.left, left); diff != "" || got.HooksOff != c.all || got.ProjectHooksOff != c.project {
			t.Errorf("%v: %s, all off %t, the folder's off %t", c.off, diff, got.HooksOff, got.ProjectHooksOff)
		}
	}
}

// Rules of all layers add up; for single values the managed layer is the nearest,
// then the local one. BUG-TR-03
func TestLayers(t *testing.T) {
	files := map[string]string{
		userFile:       `{"permissions": {"allow": ["u"]}, "model": "openai/u"}`,
		projectFile:    `{"permissions": {"allow": ["p"], "deny": ["pd"]}, "tools": {"mode": "both"}, "model": "openai/p"}`,
		localFile:      `{"permissions": {"allow": ["l"], "ask": ["la"]}, "tools": {"mode": "direct"}, "model": "openai/l"}`,
		"managed.json": `{"permissions": {"deny": ["m"]}, "tools": {"mode": "code"}}`,
	}
	type rule struct{ Layer, List, Text string }
	rules := func(s Settings) (out []rule) {
		for _, r := range s.Rules {
			out = append(out, rule{r.From.Layer, r.List, r.Text})
		}
		return out
	}
	got, warnings, err := load(t, true, "", files)
	if err != nil || len(warnings) > 0 || got.Mode != "code" || got.Model != "openai/l" {
		t.Errorf("%+v %v %v", got, warnings, err)
	}
	want := []rule{{User, "allow", "u"}, {Project, "allow", "p"}, {Project, "deny", "pd"}, {Local, "allow", "l"}, {Local, "ask", "la"}, {Managed, "deny", "m"}}
	if diff := cmp.Diff(want, rules(got)); diff != "" {
		t.Error(diff)
	}

	// The local file lies in the folder like the project's own.
	got, _, err = load(t, false, "", files)
	if err != nil || got.Model != "openai/u" {
		t.Errorf("%+v %v", got, err)
	}
	want = []rule{{User, "allow", "u"}, {Project, "deny", "pd"}, {Local, "ask", "la"}, {Managed, "deny", "m"}}
	if diff := cmp.Diff(want, rules(got)); diff != "" {
		t.Error(diff)
	}

	// No flag goes around what is managed.
	if _, _, err = load(t, true, "direct", files); err == nil || !strings.Contains(err.Error(), "managed.json:1:") {
		t.Errorf("--mode against the managed settings: %v", err)
	}
	if _, _, err = load(t, true, "code", files); err != nil {
		t.Error(err)
	}
}

// What only the managed layer may say, and what any layer may take away.
func TestManagedForbids(t *testing.T) {
	got, warnings, err := load(t, true, "", map[string]string{
		userFile:       `{"permissions": {"allow": ["u"], "deny": ["d"]}}`,
		projectFile:    `{"allowManagedPermissionRulesOnly": false, "permissions": {"disableBypassPermissionsMode": "disable"}}`,
		"managed.json": `{"allowManagedPermissionRulesOnly": true, "permissions": {"allow": ["m"]}}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, r := range got.Rules {
		texts = append(texts, r.Text)
	}
	if diff := cmp.Diff([]string{"d", "m"}, texts); diff != "" || !got.AllowManagedOnly || got.NoYolo.Layer != Project {
		t.Errorf("%s%+v", diff, got)
	}
	var said []string
	for _, w := range warnings {
		said = append(said, w.Message)
	}
	if len(said) != 2 || !strings.Contains(said[0], "in the managed settings only") || !strings.Contains(said[1], "1 rules of permissions.allow do not count") {
		t.Errorf("%q", said)
	}
	// A folder that nobody trusts may take something away too.
	got, _, err = load(t, false, "", map[string]string{projectFile: `{"permissions": {"disableBypassPermissionsMode": "disable"}}`})
	if err != nil || got.NoYolo.Layer != Project {
		t.Errorf("%+v %v", got, err)
	}
	if _, _, err = load(t, true, "", map[string]string{userFile: `{"permissions": {"disableBypassPermissionsMode": "yes"}}`}); err == nil {
		t.Error("a value that means nothing was taken")
	}
}

// A managed file that others can write is no word of whoever runs the machine.
func TestManagedWritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m.json")
	if err := os.WriteFile(file, []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Load(Options{Managed: file}); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
		t.Error(err)
	}
}

// A folder's local settings name no key of the user either.
func TestLocalHasNoKeys(t *testing.T) {
	got, warnings, err := load(t, true, "", map[string]string{localFile: `{"providers": {"x": {"family": "openai", "baseUrl": "http://h/v1", "keyEnv": "K"}}}`})
	if err == nil && len(warnings) == 0 {
		t.Errorf("%+v", got)
	}
}
