package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/config"
)

// What any configured provider keeps secret does not show, also when this run
// uses none of them. A key file that cannot be used fails nothing: whoever asks
// that provider is told.
func TestRedactUnused(t *testing.T) {
	noEnv(t)
	t.Setenv("GATE", "secret-of-gate")
	t.Setenv("ANTHROPIC_BASE_URL", "https://token-of-address@gate.example/v1")
	home := t.TempDir()
	put := func(name, text string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(home, ".capstan", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	put("own.key", "secret-of-file\n", 0o600)
	put("open.key", "known-to-everybody\n", 0o644)
	put("settings.json", `{"providers": {
		"a": {"family": "openai", "baseUrl": "http://me:secret-of-address@127.0.0.1:1", "keyFile": "own.key"},
		"q": {"family": "openai", "baseUrl": "https://gate.example/v1?api-version=2026-01-01-preview&key=secret%2Fof/query"},
		"b": {"family": "openai", "keyFile": "open.key", "headers": {"X-Gate": "${GATE}", "X-Dir": "${HOME}"}},
		"c": {"family": "openai", "keyFile": "none.key", "headers": {"Authorization": "Bearer secret-of-header", "Cookie": "a=secret-of-cookie; b=1"}}}}`, 0o600)
	t.Setenv("HOME", home)
	s, err := Open(Options{Dir: t.TempDir(), Env: os.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want := []string{"a=secret-of-cookie", "secret-of-address", "secret-of-cookie", "secret-of-file", "secret-of-gate", "secret-of-header",
		"token-of-address", "secret%2Fof%2Fquery", "secret%2Fof/query", "secret/of/query"}
	if filepath.Separator == '\\' { // no modes there
		want = append(want, "known-to-everybody")
	}
	got := slices.Sorted(slices.Values(s.secrets))
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	text := "in " + home + ": known Bearer " + filepath.Join(home, "x")
	if got := s.Redact(text); got != text {
		t.Error(got)
	}
}

// What MCP servers are given in secret does not show either, and commands do not
// get the variables that it comes from. A secret among arguments, which everybody
// sees, is warned of.
// BUG-SE-03
func TestServerSecrets(t *testing.T) {
	noEnv(t)
	for name, value := range map[string]string{"HUB_TOKEN": "secret-of-hub", "GATE": "secret-of-gate", "API_KEY": "secret-of-args", "PLAIN": "not-a-secret-1"} {
		t.Setenv(name, value)
	}
	s := open(t, Options{}, map[string]string{"~/.capstan/settings.json": `{"mcpServers": {
		"a": {"command": "x", "args": ["--key=${API_KEY:-none}", "${ZONE:-europe-west-1}", "${ZONE_TOKEN:-default-of-args}"], "env": {"PASSWD": "${ZONE:-default-of-env}", "PLACE": "${ZONE:-europe-west-2}", "GITHUB": "${HUB_TOKEN}", "PASSWORD": "secret-of-env", "DIR": "${HOME}/x", "MODE": "${PLAIN}"}},
		"b": {"url": "https://me:secret-of-address@b.test/", "headers": {"X-Gate": "${GATE}"}}}}`})
	want := []string{"default-of-args", "default-of-env", "secret-of-address", "secret-of-args", "secret-of-env", "secret-of-gate", "secret-of-hub"}
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(s.secrets))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"API_KEY", "GATE", "HUB_TOKEN", "ZONE", "ZONE_TOKEN"}, slices.Sorted(slices.Values(s.keyVariables()))); diff != "" {
		t.Error(diff)
	}
	if len(s.Warnings) != 2 || !strings.Contains(s.Warnings[0], "settings.json:2:25: mcpServers.a.args: the value of ${API_KEY} can be seen") {
		t.Errorf("%q", s.Warnings)
	}
}

// Where a text was cut, the beginning of a secret does not show either.
func TestRedactCut(t *testing.T) {
	s := &Session{secrets: []string{"secret-key-1-and-more", "token-of-mine"}}
	for text, want := range map[string]string{
		"a secret-key-1-and-more": "a [redacted]", "a secret-key-1-and-mor…": "a [redacted]…", "a secr… b toke… c": "a [redacted]… b [redacted]… c",
		"a sec…": "a sec…", "a secret-k": "a secret-k", "…": "…", "secret-key-1-and-more…": "[redacted]…",
	} {
		if got := s.Redact(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Which words of a header are secret.
func TestSecretHeader(t *testing.T) {
	env := map[string]string{"HOME": "/home/somebody-1", "TOKEN": "token-of-mine-1", "EMPTY": ""}
	for _, tc := range []struct {
		name, value string
		want        []string
	}{
		{"X-Team", "red-team-of-12", nil},
		{"X-Team", "${TOKEN}", []string{"token-of-mine-1"}},
		{"X-Team", "${HOME}/${EMPTY}", nil},
		{"x-api-key", "${HOME}", nil},
		{"x-api-key", "literal-key-1", []string{"literal-key-1"}},
		{"Authorization", "Bearer ${TOKEN}-x", []string{"token-of-mine-1-x", "token-of-mine-1"}},
		{"Authorization", "Basic bWU6c2VjcmV0IQ==", []string{"bWU6c2VjcmV0IQ=="}},
		{"Proxy-Auth", `Digest k="value-12345",u=me`, []string{`k="value-12345"`, "value-12345"}},
	} {
		s := &Session{opt: Options{Env: func(name string) string { return env[name] }}}
		s.secretHeader(config.Header{Name: tc.name, Value: tc.value})
		if diff := cmp.Diff(tc.want, s.secrets); diff != "" {
			t.Errorf("%s: %s: %s", tc.name, tc.value, diff)
		}
	}
}

// A secret is found wherever a text is cut, the longer of two that begin alike.
func TestRedactor(t *testing.T) {
	secrets := []string{"secret-key-1-and-more", "secret-key-1", "key-1-x", "1-and"}
	for text, want := range map[string]string{
		"":                                     "",
		"no secret":                            "no secret",
		"a secret-key-1 b":                     "a [redacted] b",
		"secret-key-1-and-more":                "[redacted]",
		"secret-key-1-and-mor":                 "[redacted]-and-mor",
		"secret-key-secret-key-1secret-key-1":  "secret-key-[redacted][redacted]",
		"secret-key-1-and-moresecret-key-1-an": "[redacted][redacted]-an",
		"key-1-x and key-1-and":                "[redacted] and key-[redacted]",
		"Grüße secret-key":                     "Grüße secret-key",
	} {
		for _, size := range []int{1, 2, 3, 5, 12, 100} {
			r, got := redactor{secrets: secrets}, ""
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				got += r.push(rest[:n])
				rest = rest[n:]
			}
			if got += r.flush(); got != want {
				t.Errorf("%q in pieces of %d: %q, want %q", text, size, got, want)
			}
		}
	}
}
