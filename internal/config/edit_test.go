package config

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A server is written into a file, or taken out, and all else stays as it was.
func TestEdit(t *testing.T) {
	value := json.RawMessage(`{"command":"x","args":["a"]}`)
	put := func(name string, replace bool) func(string) error {
		return func(f string) error { return PutServer(f, name, value, replace, 0o600) }
	}
	drop := func(name string) func(string) error {
		return func(f string) error { return DropServer(f, name) }
	}
	const entry = "{\n      \"command\": \"x\",\n      \"args\": [\n        \"a\"\n      ]\n    }"
	for _, c := range []struct {
		name, before string
		do           func(string) error
		after        string
		err          error
	}{
		{"a new file", "", put("a", false), "{\n  \"mcpServers\": {\n    \"a\": " + entry + "\n  }\n}\n", nil},
		{"beside others", "{ // mine\n  \"model\": \"m/n\" // the best\n}\n", put("a", false),
			"{ // mine\n  \"model\": \"m/n\", // the best\n  \"mcpServers\": {\n    \"a\": " + entry + "\n  }\n}\n", nil},
		{"after another", "{\n  \"mcpServers\": {\n    \"b\": {} // b\n  },\n}\n", put("a", false),
			"{\n  \"mcpServers\": {\n    \"b\": {}, // b\n    \"a\": " + entry + "\n  },\n}\n", nil},
		{"after a comma", "{\"mcpServers\": {\n    \"b\": {}, // b\n  }}", put("a", false),
			"{\"mcpServers\": {\n    \"b\": {}, // b\n    \"a\": " + entry + ",\n  }}", nil},
		{"in an empty object with a comment", "{\"mcpServers\": { /* none */ }}", put("a", false),
			"{\"mcpServers\": { /* none */\n    \"a\": " + entry + "\n  }}", nil},
		{"that is there", `{"mcpServers": {"a": 1}}`, put("a", false), `{"mcpServers": {"a": 1}}`, ErrThere},
		{"in its place", `{"mcpServers": {/*1*/ "a" /*2*/: {} /*3*/, "b": 1}}`, put("a", true),
			`{"mcpServers": {/*1*/ "a" /*2*/: ` + entry + ` /*3*/, "b": 1}}`, nil},
		{"taken out", "{\"mcpServers\": {\n    \"a\": {}, // a\n    // b\n    \"b\": {}\n  }}", drop("a"),
			"{\"mcpServers\": { // a\n    // b\n    \"b\": {}\n  }}", nil},
		{"taken out of none", `{"model": "m/n"}`, drop("a"), `{"model": "m/n"}`, ErrNotThere},
		{"a file that is broken", `{"a": `, put("a", false), `{"a": `, errAny},
		{"no object", `{"mcpServers": []}`, put("a", false), `{"mcpServers": []}`, errAny},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "deep")
			file := filepath.Join(dir, "settings.json")
			if c.before != "" {
				if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(file, []byte(c.before), 0o640)); err != nil {
					t.Fatal(err)
				}
			}
			err := c.do(file)
			if c.err == errAny && err == nil || c.err != errAny && !errors.Is(err, c.err) {
				t.Errorf("error %v, want %v", err, c.err)
			}
			got, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.after, string(got)); diff != "" {
				t.Errorf("file (-want +got):\n%s", diff)
			}
			info, _ := os.Stat(file)
			if want := map[bool]os.FileMode{true: 0o600, false: 0o640}[c.before == ""]; info.Mode().Perm() != want {
				t.Errorf("mode %v, want %v", info.Mode().Perm(), want)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, ".capstan-*")); left != nil {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	if err := DropServer(filepath.Join(t.TempDir(), "none.json"), "a"); !errors.Is(err, ErrNotThere) {
		t.Error(err)
	}
}

var errAny = errors.New("any")
