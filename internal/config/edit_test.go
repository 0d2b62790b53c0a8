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
			"{\"mcpServers\": {\n    // b\n    \"b\": {}\n  }}", nil},
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
	// What is taken out takes no comment of a neighbour with it, nor moves one.
	for _, c := range []struct{ before, after string }{
		{"{\n  \"x\": {}, // x\n  \"a\": {}, // a\n  \"b\": {} // b\n}", "{\n  \"x\": {}, // x\n  \"b\": {} // b\n}"},
		{"{\n  \"x\": {}, // x\n  // above a\n  \"a\": {} // a\n}", "{\n  \"x\": {} // x\n}"},
		{"{\n  \"x\": {}, // x\n  \"a\": {}, // a\n}", "{\n  \"x\": {}, // x\n}"},
		{"{\n  \"x\": {}, // x\n  \"a\": {} }", "{\n  \"x\": {} // x\n }"},
		{"{ // all\n  \"a\": {}, // a\n  // b\n  \"b\": {},\n}", "{ // all\n  // b\n  \"b\": {},\n}"},
		{"{\n  // all of them\n\n  // a\n  \"a\": {},\n  \"b\": {}}", "{\n  // all of them\n  \"b\": {}}"},
		{"{\n  \"a\": {}, /* a\n more */\n  \"b\": {}}", "{\n  \"b\": {}}"},
		{"{\n  \"a\": {}, \"b\": {} // both\n}", "{\n  \"b\": {} // both\n}"},
		{"{\n  \"x\": {}, \"a\": {}, // both\n  \"b\": {}\n}", "{\n  \"x\": {}, // both\n  \"b\": {}\n}"},
		{"{\"x\": 1 /* x */, \"a\": 2, /* b */ \"b\": 3}", "{\"x\": 1 /* x */, /* b */ \"b\": 3}"},
		{"{\"x\": 1 /* x */, \"a\": 2}", "{\"x\": 1 /* x */}"},
		{"{\"a\": 1, \"b\": 2}", "{\"b\": 2}"},
		{"{ \"a\": 1 }", "{ }"},
		{"{\n  \"a\": {} // a\n}", "{\n}"},
	} {
		file := filepath.Join(t.TempDir(), "f.json")
		err := errors.Join(os.WriteFile(file, []byte(`{"mcpServers": `+c.before+"} // end\n"), 0o600), DropServer(file, "a"))
		got, _ := os.ReadFile(file)
		if diff := cmp.Diff(`{"mcpServers": `+c.after+"} // end\n", string(got)); diff != "" || err != nil {
			t.Errorf("taken out of %s: %v\n%s", c.before, err, diff)
		}
	}
	if err := DropServer(filepath.Join(t.TempDir(), "none.json"), "a"); !errors.Is(err, ErrNotThere) {
		t.Error(err)
	}
}

var errAny = errors.New("any")
