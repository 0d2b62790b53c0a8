package config

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Servers come from all layers, the project's own only once the folder is
// trusted. A broken .mcp.json costs its servers; a file that the command line
// names has to be right.
func TestServers(t *testing.T) {
	const mcpFile, named = "ws/.mcp.json", "servers.json"
	for _, c := range []struct {
		name     string
		files    map[string]string
		trusted  bool
		want     []string // where the sections stand
		warnings []string
		err      string
	}{
		{name: "all layers, the nearest last", trusted: true,
			files: map[string]string{userFile: `{"mcpServers": {"a": {}}}`, mcpFile: "{ // c\n \"mcpServers\": {\"b\": {}}, \"other\": 1 }",
				projectFile: `{"mcpServers": {}}`, named: `{"mcpServers": {"c": {}},}`},
			want: []string{"user settings $BASE/home/.capstan/settings.json:1:16", "$BASE/ws/.mcp.json:2:16",
				"project settings $BASE/ws/.capstan/settings.json:1:16", "$BASE/servers.json:1:16"}},
		{name: "a folder that nobody trusts", files: map[string]string{mcpFile: `{`, named: `{"mcpServers": {}}`},
			want:     []string{"$BASE/servers.json:1:16"},
			warnings: []string{"$BASE/ws/.mcp.json:1:1: not used, because this folder is not trusted (--trust uses it for one run)"}},
		{name: "a broken file of the project", files: map[string]string{mcpFile: "{\n  \"mcpServers\": }"}, trusted: true,
			warnings: []string{"$BASE/ws/.mcp.json:2:17: invalid character '}' at start of value"}},
		{name: "one without servers", files: map[string]string{mcpFile: `{}`}, trusted: true},
		{name: "a broken file of the command line", files: map[string]string{named: "{\n  \"mcpServers\": 1,\n \"mcpServers\": 2}"},
			err: `$BASE/servers.json:3:2: "mcpServers" is there twice (first at 2:3): keep one`},
		{name: "one without servers on the command line", files: map[string]string{named: `{"servers": {}}`},
			err: `$BASE/servers.json:1:1: there is no "mcpServers" in it; such a file looks like {"mcpServers": {"NAME": {"command": "…"}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := lay(t, c.files)
			o := Options{Home: filepath.Join(base, "home"), Project: filepath.Join(base, "ws"), Trusted: c.trusted}
			if c.files[named] != "" {
				o.Servers = []string{filepath.Join(base, named)}
			}
			got, warnings, err := Load(o)
			var places, texts []string
			for _, s := range got.Sections {
				places = append(places, strings.ReplaceAll(s.From.String(), base, "$BASE"))
			}
			for _, w := range warnings {
				texts = append(texts, strings.ReplaceAll(w.String(), base, "$BASE"))
			}
			fault := ""
			if err != nil {
				fault = strings.ReplaceAll(err.Error(), base, "$BASE")
			}
			if diff := cmp.Diff([]any{c.want, c.warnings, c.err}, []any{places, texts, fault}); diff != "" {
				t.Errorf("sections, warnings and error (-want +got):\n%s", diff)
			}
		})
	}
	_, _, err := Load(Options{Servers: []string{filepath.Join(t.TempDir(), "none.json")}})
	if err == nil || !strings.Contains(err.Error(), "reading the MCP servers: ") || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// A place in a section is found as deep as there are members of these names.
func TestAt(t *testing.T) {
	base := lay(t, map[string]string{userFile: "{\"mcpServers\": {\n  \"a.b\": {\n    \"é\": 1, \"args\": [\"x\"]}}}"})
	set, _, err := Load(Options{Home: filepath.Join(base, "home")})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][2]int{}
	for _, path := range []string{"", "a.b", "a.b/args", "a.b/args/0", "a.b/args/1", "a.b/none", "x"} {
		at := set.Sections[0].At(strings.Split(path, "/")...)
		got[path] = [2]int{at.Line, at.Column}
	}
	want := map[string][2]int{"": {1, 16}, "a.b": {2, 3}, "a.b/args": {3, 13}, "a.b/args/0": {3, 22}, "a.b/args/1": {3, 13}, "a.b/none": {2, 3}, "x": {1, 16}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
