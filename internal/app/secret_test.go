package app

import (
	"os"
	"path/filepath"
	"slices"
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
		"b": {"family": "openai", "keyFile": "open.key", "headers": {"X-Gate": "${GATE}", "X-Dir": "${HOME}"}},
		"c": {"family": "openai", "keyFile": "none.key", "headers": {"Authorization": "Bearer secret-of-header", "Cookie": "a=secret-of-cookie; b=1"}}}}`, 0o600)
	t.Setenv("HOME", home)
	s, err := Open(Options{Dir: t.TempDir(), Env: os.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want := []string{"a=secret-of-cookie", "secret-of-address", "secret-of-cookie", "secret-of-file", "secret-of-gate", "secret-of-header"}
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
