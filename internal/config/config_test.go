package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"capstan/internal/tool"
)

const (
	userFile    = "home/.capstan/settings.json"
	projectFile = "ws/.capstan/settings.json"
)

// lay writes files below a new directory.
func lay(t testing.TB, files map[string]string) string {
	t.Helper()
	base := t.TempDir()
	for _, d := range []string{"home", "ws"} {
		if err := os.MkdirAll(filepath.Join(base, d, ".capstan"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(base, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return base
}

func at(layer, file string, line, column int) Origin { return Origin{layer, file, line, column} }

// TestLoad shows what comes out of the layers.
//
// S0-001, S0-002, S0-006, S0-034, S0-035, S0-225.
func TestLoad(t *testing.T) {
	for _, c := range []struct {
		name     string
		user     string
		project  string
		named    []string
		trusted  bool
		mode     string
		want     Settings
		warnings []string
	}{
		{name: "nothing is set"},
		{name: "empty files", user: " \n", project: "// nothing\n{}"},
		{name: "codeModeOnly", user: `{"tools": {"codeModeOnly": true}}`, want: Settings{Mode: "code"}},
		{name: "codeModeOnly off", user: `{"tools": {"codeModeOnly": false}}`},
		{name: "mode", user: `{"tools": {"mode": "both"}}`, want: Settings{Mode: "both"}},
		{name: "both agree", user: `{"tools": {"mode": "code", "codeModeOnly": true}}`, want: Settings{Mode: "code"}},
		{name: "off agrees with both", user: `{"tools": {"mode": "both", "codeModeOnly": false}}`, want: Settings{Mode: "both"}},
		{name: "rollback in a nearer file", user: `{"tools": {"codeModeOnly": true}}`, named: []string{`{"tools": {"codeModeOnly": false}}`}},
		{name: "flag wins", user: `{"tools": {"mode": "code", "codeModeOnly": true}}`, mode: "direct", want: Settings{Mode: "direct"}},
		{name: "the nearest wins", user: `{"tools": {"mode": "code"}}`, project: `{"tools": {"mode": "direct"}}`, trusted: true,
			named: []string{`{"tools": {"mode": "code"}}`, `{"tools": {"mode": "both"}}`}, want: Settings{Mode: "both"}},
		{name: "comments, trailing commas, byte order mark",
			user: "\ufeff{ // modes\n  \"tools\": {\"mode\": \"both\", /* yes */}, \"$schema\": \"x\",\n}", want: Settings{Mode: "both"}},
		{name: "lists of tools: the nearest",
			user: `{"tools": {"eager": ["a", "b"], "visible": ["c"]}}`, named: []string{`{"tools": {"eager": []}}`},
			want: Settings{Eager: []string{}, Visible: []string{"c"}}},
		{name: "rules add up, with their places",
			user:    "{\n  \"permissions\": {\"allow\": [\"Read\"],\n    \"deny\": [\"é\", \"Edit(.env)\"]}}",
			project: `{"permissions": {"allow": ["Bash"], "ask": ["Write"]}}`, trusted: true,
			want: Settings{Rules: []Rule{
				{"allow", "Read", at(User, userFile, 2, 29)}, {"deny", "é", at(User, userFile, 3, 14)}, {"deny", "Edit(.env)", at(User, userFile, 3, 19)},
				{"allow", "Bash", at(Project, projectFile, 1, 28)}, {"ask", "Write", at(Project, projectFile, 1, 45)},
			}}},
		{name: "an untrusted folder only forbids",
			project:  `{"permissions": {"allow": ["Bash"], "ask": ["Write"], "deny": ["Edit"]}, "tools": {"mode": "code"}, "hooks": {}, "mcpServers": {"x": {"command": "touch"}}, "sandbox": 7}`,
			want:     Settings{Rules: []Rule{{"ask", "Write", at(Project, projectFile, 1, 45)}, {"deny", "Edit", at(Project, projectFile, 1, 64)}}},
			warnings: []string{"$BASE/ws/.capstan/settings.json:1:1: not used, because this folder is not trusted: hooks, mcpServers, permissions.allow, sandbox, tools (--trust uses them for one run)"}},
		{name: "sandbox", user: `{"sandbox": {"require": true}}`, want: Settings{SandboxRequire: true}},
		{name: "sandbox of commands", user: `{"sandbox": {"shell": true, "network": false, "writable": ["~/.cache"]}, "telemetry": {"otlp": true}}`,
			want: Settings{SandboxShell: true, SandboxNoNetwork: true, SandboxWritable: []string{"~/.cache"}, TelemetryOTLP: true}},
		{name: "web, of the user only", user: `{"web": {"allowPrivate": true, "x": 1}}`, project: `{"web": {"allowPrivate": false}}`, trusted: true, want: Settings{WebAllowPrivate: true},
			warnings: []string{`$BASE/home/.capstan/settings.json:1:32: unknown setting "web.x": expected one of allowPrivate`, `$BASE/ws/.capstan/settings.json:1:10: web.allowPrivate counts in your own settings only`}},
		{name: "sections are kept",
			user:  "{\"mcpServers\": {\"a\": {\"command\": \"x\", /* c */}},\n \"model\": \"openai/x\"}",
			named: []string{`{"hooks": {}, "acp": {"nestedConcurrency": "shared"}}`},
			want: Settings{Model: "openai/x", ModelFrom: at(User, userFile, 2, 11), Sections: []Section{
				{Key: "mcpServers", Value: []byte(`{"a":{"command":"x"}}`), From: at(User, userFile, 1, 16)},
				{Key: "hooks", Value: []byte(`{}`), From: at(Named, "named0.json", 1, 11)},
				{Key: "acp", Value: []byte(`{"nestedConcurrency":"shared"}`), From: at(Named, "named0.json", 1, 22)},
			}}},
		{name: "hooks switched off by the user", user: `{"hooks": {"Stop": []}, "disableAllHooks": true}`, project: `{"hooks": {}, "disableAllHooks": false}`, trusted: true, want: Settings{HooksOff: true, ProjectHooksOff: true, Sections: []Section{}}},
		{name: "hooks switched on again in a nearer file", user: `{"disableAllHooks": true}`, named: []string{`{"disableAllHooks": false, "hooks": {}}`},
			want: Settings{Sections: []Section{{Key: "hooks", Value: []byte(`{}`), From: at(Named, "named0.json", 1, 37)}}}},
		{name: "a project switches off its own hooks only", user: `{"hooks": {}}`, project: `{"disableAllHooks": true, "hooks": {}}`, trusted: true,
			want: Settings{ProjectHooksOff: true, Sections: []Section{{Key: "hooks", Value: []byte(`{}`), From: at(User, userFile, 1, 11)}}}},
		{name: "a folder does not take the sandbox away", user: `{"sandbox": {"require": true}}`, project: `{"sandbox": {"require": false}}`, trusted: true, want: Settings{SandboxRequire: true},
			warnings: []string{`$BASE/ws/.capstan/settings.json:1:14: sandbox.require is not used: your own settings are stricter`}},
		{name: "a folder asks for the sandbox", user: `{"sandbox": {"require": false}}`, project: `{"sandbox": {"require": true}}`, trusted: true, want: Settings{SandboxRequire: true}},
		{name: "a nearer file of the user takes it away", user: `{"sandbox": {"require": true}}`, named: []string{`{"sandbox": {"require": false}}`}},
		{name: "providers, each from one layer",
			user:    `{"model": "a/x", "providers": {"a": {"family": "openai", "baseUrl": "http://h/v1", "keyEnv": "K", "headers": {"B": "${V}", "A": "1"}, "profile": "groq"}, "b": {"keyFile": "~/k"}, "d": {"retries": 0, "idleTimeout": "1m30s", "hostedTools": [{"type": "x", /* c */}]}}}`,
			project: `{"model": "c/y", "providers": {"a": {"baseUrl": "http://evil"}, "c": {"baseUrl": "http://c", "fmily": 1}}}`, trusted: true,
			named: []string{`{"providers": {"b": {"family": "gemini"}, "c": {}}}`},
			want: Settings{Model: "c/y", ModelFrom: at(Project, projectFile, 1, 11), Providers: []Provider{
				{Name: "a", Family: "openai", BaseURL: "http://h/v1", KeyEnv: "K", Headers: []Header{{"A", "1"}, {"B", "${V}"}}, Profile: "groq", From: at(User, userFile, 1, 37)},
				{Name: "b", Family: "gemini", From: at(Named, "named0.json", 1, 21)},
				{Name: "d", Retries: new(int), IdleTimeout: 90 * time.Second, HostedTools: []json.RawMessage{[]byte(`{"type":"x"}`)}, From: at(User, userFile, 1, 185)},
				{Name: "c", From: at(Named, "named0.json", 1, 48)},
			}},
			warnings: []string{
				`$BASE/ws/.capstan/settings.json:1:32: providers.a is not used: your own settings have a provider of that name (user settings $BASE/home/.capstan/settings.json:1:37)`,
				`$BASE/ws/.capstan/settings.json:1:94: unknown setting "providers.c.fmily": did you mean family?`,
			}},
		{name: "unknown keys warn",
			user: "{\"tool\": 1,\n \"zzz\": 2, \"tools\": {\"codeModOnly\": true, \"exclude\": []}, \"permissions\": {\"defaultMode\": \"x\", \"alow\": []}, \"sandbox\": {\"req\": 1}, \"approvalMode\": 1}",
			warnings: []string{
				`$BASE/home/.capstan/settings.json:1:2: unknown setting "tool": did you mean tools?`,
				`$BASE/home/.capstan/settings.json:2:2: unknown setting "zzz": expected one of tools, permissions, sandbox, mcpServers, hooks, disableAllHooks, model, providers, web, acp, telemetry, allowManagedPermissionRulesOnly`,
				`$BASE/home/.capstan/settings.json:2:22: unknown setting "tools.codeModOnly": did you mean codeModeOnly?`,
				`$BASE/home/.capstan/settings.json:2:43: tools.exclude is not a setting: use permissions.deny`,
				`$BASE/home/.capstan/settings.json:2:75: permissions.defaultMode is not a setting: use --approval-mode`,
				`$BASE/home/.capstan/settings.json:2:95: unknown setting "permissions.alow": did you mean allow?`,
				`$BASE/home/.capstan/settings.json:2:120: unknown setting "sandbox.req": did you mean require?`,
				`$BASE/home/.capstan/settings.json:2:131: approvalMode is not a setting: use --approval-mode`,
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{}
			if c.user != "" {
				files[userFile] = c.user
			}
			if c.project != "" {
				files[projectFile] = c.project
			}
			base := lay(t, files)
			o := Options{Home: filepath.Join(base, "home"), Project: filepath.Join(base, "ws"), Trusted: c.trusted, Mode: c.mode}
			for i, text := range c.named {
				f := filepath.Join(base, "named"+string(rune('0'+i))+".json")
				if err := os.WriteFile(f, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				o.Files = append(o.Files, f)
			}
			got, warnings, err := Load(o)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(files) + len(c.named); len(got.Files) != n {
				t.Errorf("read %v, want %d files", got.Files, n)
			}
			got.Files = nil
			for i := range got.Rules {
				got.Rules[i].From.File = rel(base, got.Rules[i].From.File)
			}
			got.ModelFrom.File = rel(base, got.ModelFrom.File)
			for i := range got.Providers {
				got.Providers[i].From.File = rel(base, got.Providers[i].From.File)
			}
			for i := range got.Sections {
				got.Sections[i].From.File = rel(base, got.Sections[i].From.File)
			}
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(Section{})); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
			var texts []string
			for _, w := range warnings {
				texts = append(texts, strings.ReplaceAll(w.String(), base, "$BASE"))
			}
			if diff := cmp.Diff(c.warnings, texts); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func rel(base, file string) string {
	r, err := filepath.Rel(base, file)
	if err != nil {
		return file
	}
	return r
}

// TestFaults: each is reported with file, line, column and what was expected,
// all of them at once.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		user string
		want []string
	}{
		{`[1]`, []string{"1:1: expected an object, found a list"}},
		{`7`, []string{"1:1: expected an object, found the number 7"}},
		{"{\"tools\":\n  {\"mode\" \"x\"}}", []string{"2:11: invalid character '\"' after object name"}},
		{"{\"tools\": {", []string{"1:12: "}},
		{`{"tools": 1, "permissions": [], "sandbox": null}`, []string{
			"1:11: tools: expected an object, found the number 1", "1:29: permissions: expected an object, found a list", "1:44: sandbox: expected an object, found null"}},
		{`{"tools": {"mode": "Code", "codeModeOnly": "true", "eager": "x", "visible": [1, "a", null]}}`, []string{
			`1:20: tools.mode: expected "direct", "code" or "both", found the string "Code"`, `1:44: tools.codeModeOnly: expected true or false, found the string "true"`,
			`1:61: tools.eager: expected a list of strings, found the string "x"`, "1:78: tools.visible[0]: expected a string, found the number 1", "1:86: tools.visible[2]: expected a string, found null"}},
		{`{"tools": {"mode": 3}}`, []string{`1:20: tools.mode: expected "direct", "code" or "both", found the number 3`}},
		{`{"permissions": {"deny": "Read", "ask": [{}]}}`, []string{
			`1:26: permissions.deny: expected a list of strings, found the string "Read"`, "1:42: permissions.ask[0]: expected a string, found an object"}},
		{`{"model": 7, "providers": {"a/b": {}, "c": 1, "d": {"family": 1, "headers": {"X": 2}, "keyEnv": "A", "keyFile": "B", "retries": -1, "idleTimeout": "x"}}}`, []string{
			"1:11: model: expected a string such as \"openai/NAME\", found the number 7", `1:28: providers: "a/b" is no name`, "1:44: providers.c: expected an object, found the number 1",
			"1:63: providers.d.family: expected a string, found the number 1", "1:83: providers.d.headers.X: expected a string, found the number 2",
			"1:129: providers.d.retries: expected a number from 0 to 100, found the number -1", `1:148: providers.d.idleTimeout: expected a duration such as "10m", found the string "x"`,
			"1:47: providers.d: keyEnv and keyFile are both there"}},
		{`{"web": {"allowPrivate": 1}}`, []string{"1:26: web.allowPrivate: expected true or false, found the number 1"}},
		{`{"sandbox": {"require": "yes"}}`, []string{`1:25: sandbox.require: expected true or false, found the string "yes"`}},
		{"{\"permissions\": {\"deny\": []},\n\"permissions\": {}}", []string{`2:1: "permissions" is there twice (first at 1:2): keep one`}},
		{`{"permissions": {"deny": ["Read"], "deny": []}}`, []string{`1:36: "deny" is there twice (first at 1:18): keep one`}},
		{`{"model": {"a": [{"b": 1, "b": 2}]}}`, []string{`1:27: "b" is there twice (first at 1:19): keep one`}},
		{`{"model": {"a": 1, "\u0061": 2}}`, []string{`1:20: "a" is there twice (first at 1:12): keep one`}},
		{`{"permissions": {"Deny": ["Read"]}}`, []string{`1:18: unknown setting "permissions.Deny": did you mean deny? It would forbid nothing`}},
		{`{"permission": {"deny": ["Read"]}}`, []string{`1:2: unknown setting "permission": did you mean permissions? It would forbid nothing`}},
		{"{\"model\": \"a\xff\"}", []string{"1:13: the file is not UTF-8"}},
		{`{"model": ` + strings.Repeat("[", 200_000), []string{"1:110: more than 100 objects and lists inside each other"}},
		{`{"tools": {"mode": "direct", "codeModeOnly": true}}`, []string{
			`tools.mode is "direct" (user settings $FILE:1:20) but tools.codeModeOnly is true (user settings $FILE:1:46): remove one of them`}},
		{`{"tools": {"mode": "code", "codeModeOnly": false}}`, []string{`tools.mode is "code"`}},
	} {
		base := lay(t, map[string]string{userFile: c.user})
		got, _, err := Load(Options{Home: filepath.Join(base, "home")})
		if err == nil {
			t.Errorf("%.80s: no error", c.user)
			continue
		}
		if diff := cmp.Diff(Settings{}, got); diff != "" {
			t.Errorf("%.80s: settings beside an error: %s", c.user, diff)
		}
		file := filepath.Join(base, userFile)
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != len(c.want) {
			t.Errorf("%.80s: %v", c.user, err)
			continue
		}
		for i, want := range c.want {
			if want = strings.ReplaceAll(want, "$FILE", file); !strings.HasPrefix(want, "tools.mode") {
				want = file + ":" + want
			}
			if !strings.HasPrefix(lines[i], want) {
				t.Errorf("%.80s:\n got %s\nwant %s", c.user, lines[i], want)
			}
		}
	}
}

// TestConflictNamesBothFiles is ruling 1 across layers.
func TestConflictNamesBothFiles(t *testing.T) {
	base := lay(t, map[string]string{userFile: `{"tools": {"codeModeOnly": true}}`, projectFile: `{"tools": {"mode": "both"}}`})
	_, _, err := Load(Options{Home: filepath.Join(base, "home"), Project: filepath.Join(base, "ws"), Trusted: true})
	if err == nil || !strings.Contains(err.Error(), filepath.Join(base, userFile)) || !strings.Contains(err.Error(), filepath.Join(base, projectFile)) {
		t.Errorf("the error %v does not name both files", err)
	}
}

// TestUntrustedFolderCannotLoosen: nothing but rules that forbid comes from a
// folder that nobody trusts, and a broken one ends the start (BUG-TR-03).
func TestUntrustedFolder(t *testing.T) {
	for _, text := range []string{`{"permissions": {"deny": "Read"}}`, `{"permissions": {"deny": ["Read"}`, `{"permissions": {"deni": ["Read"]}}`} {
		base := lay(t, map[string]string{projectFile: text})
		if _, _, err := Load(Options{Project: filepath.Join(base, "ws")}); err == nil {
			t.Errorf("%s: the start goes on without its rules", text)
		}
	}
}

// TestHomeAsProject: the user's own settings need no trust.
func TestHomeAsProject(t *testing.T) {
	base := lay(t, map[string]string{userFile: `{"permissions": {"allow": ["Read"]}}`})
	link := filepath.Join(base, "link")
	if err := os.Symlink("home", link); err != nil {
		t.Fatal(err)
	}
	got, warnings, err := Load(Options{Home: filepath.Join(base, "home"), Project: link})
	if err != nil || len(warnings) > 0 || len(got.Rules) != 1 {
		t.Errorf("%+v %v %v", got, warnings, err)
	}
}

// TestModesAreTheTools holds the names of the modes to those of package tool.
func TestModesAreTheTools(t *testing.T) {
	for _, m := range modes {
		if _, err := tool.ParseMode(m); err != nil {
			t.Error(err)
		}
	}
	if want := []string{string(tool.Direct), string(tool.Code), string(tool.Both)}; !cmp.Equal(modes, want) {
		t.Error(modes, want)
	}
}

// TestToolSettings holds the settings about tools. Lazy discovery has none of its
// own: S1-025.
func TestToolSettings(t *testing.T) {
	if want := []string{"mode", "codeModeOnly", "eager", "visible"}; !cmp.Equal(toolKeys, want) {
		t.Error(cmp.Diff(want, toolKeys))
	}
}

// TestDocumentedExample loads the example of the user's page, which names every
// setting. S1-089
func TestDocumentedExample(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "settings.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```jsonc\n")
	example, _, ok := strings.Cut(rest, "```")
	base := lay(t, map[string]string{userFile: example})
	got, warnings, err := Load(Options{Home: filepath.Join(base, "home")})
	if !ok || err != nil || len(warnings) > 0 || got.Mode != "code" || len(got.Rules) != 5 || !got.SandboxRequire {
		t.Errorf("%+v %v %v", got, warnings, err)
	}
	for _, key := range slices.Concat(topKeys, toolKeys, permissionKeys, sandboxKeys) {
		if !strings.Contains(string(page), key) {
			t.Errorf("the page does not name %s", key)
		}
	}
}

// FuzzLoad: no file makes the reader fail or lose a rule silently.
func FuzzLoad(f *testing.F) {
	for _, s := range []string{`{}`, `{"tools": {"mode": "code", "eager": ["a"]}, // x` + "\n}", `{"permissions": {"deny": ["Read(.env)"]}}`, "\ufeff{}", `{"a": [{"b": 1}]}`, `{"model": "\ud800"}`, `/*`, `{"x": 1e999,}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := &document{layer: User, file: "f", src: []byte(text)}
		root := d.parse()
		if root == nil {
			return
		}
		l := &loader{}
		l.settings(d, root)
		again := &loader{}
		again.untrusted(&document{layer: Project, file: "f", src: d.src}, root)
		if len(d.faults) > 0 {
			return
		}
		var strict []Rule
		for _, r := range l.out.Rules {
			if r.List != "allow" {
				r.From.Layer = Project
				strict = append(strict, r)
			}
		}
		if diff := cmp.Diff(strict, again.out.Rules); diff != "" {
			t.Error(diff)
		}
	})
}

// No rule applies to what a provider runs, so a folder cannot add such tools.
// Each is an object.
func TestHostedTools(t *testing.T) {
	for text, want := range map[string]string{
		`[{"type": "web_search"}]`: "providers.responses.hostedTools: a folder's own settings cannot add tools",
		`{"type": "web_search"}`:   "providers.responses.hostedTools: expected a list of objects",
		`["web_search"]`:           "",
	} {
		file := `{"providers": {"responses": {"hostedTools": ` + text + `}}}`
		base := lay(t, map[string]string{projectFile: file})
		_, _, err := Load(Options{Project: filepath.Join(base, "ws"), Trusted: true})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "settings.json:1:") {
			t.Errorf("a folder's own %s: %v", text, err)
		}
	}
	base := lay(t, map[string]string{userFile: `{"providers": {"responses": {"hostedTools": ["web_search"]}}}`})
	if _, _, err := Load(Options{Home: filepath.Join(base, "home")}); err == nil || !strings.Contains(err.Error(), `expected a list of objects such as [{"type": "web_search"}], found the string`) {
		t.Errorf("a name: %v", err)
	}
}

// A folder's own settings cannot say where a key of the user goes, not even
// when the folder is trusted.
func TestProjectNamesNoKeys(t *testing.T) {
	for _, entry := range []string{`"keyEnv": "OPENAI_API_KEY"`, `"keyFile": "~/key"`, `"headers": {"Authorization": "Bearer ${OPENAI_API_KEY}"}`} {
		base := lay(t, map[string]string{projectFile: `{"providers": {"openai": {"baseUrl": "https://evil.example/v1", ` + entry + `}}}`})
		_, _, err := Load(Options{Project: filepath.Join(base, "ws"), Trusted: true})
		if err == nil || !strings.Contains(err.Error(), "own settings cannot name keys") || !strings.Contains(err.Error(), "settings.json:1:") {
			t.Errorf("%s: %v", entry, err)
		}
	}
}
