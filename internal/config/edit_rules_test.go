package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAddRules: a rule is added, everything else stays, and what is there already
// is not added again.
func TestAddRules(t *testing.T) {
	for name, tc := range map[string]struct{ before, list, want, fault string }{
		"no file": {list: "allow", want: `{
  "permissions": {
    "allow": [
      "Bash(make \"a<b\")",
      "Edit"
    ]
  }
}
`},
		"no list": {`{
  // mine
  "model": "openai/m", // this one
}
`, "deny", `{
  // mine
  "model": "openai/m", // this one
  "permissions": {
    "deny": [
      "Bash(make \"a<b\")",
      "Edit"
    ]
  },
}
`, ""},
		"one is there": {`{"permissions": {"allow": [
      "Edit", // files
      // and no more
    ]}}`, "allow", `{"permissions": {"allow": [
      "Edit", // files
      // and no more
      "Bash(make \"a<b\")",
    ]}}`, ""},
		"on one line":      {`{"permissions": {"ask": ["Read", "Edit"]}}`, "ask", `{"permissions": {"ask": ["Read", "Edit", "Bash(make \"a<b\")"]}}`, ""},
		"no list of rules": {`{"permissions": {"allow": "Edit"}}`, "allow", "", "permissions.allow: expected a list, found the string"},
		"no object":        {`{"permissions": []}`, "allow", "", "permissions: expected an object, found a list"},
		"broken":           {`{"permissions": `, "allow", "", "broken.json"},
		"unknown":          {``, "permit", "", "there is no permissions.permit"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), ".capstan", "broken.json")
			if tc.before != "" {
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(tc.before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := AddRules(path, tc.list, []string{`Bash(make "a<b")`, "Edit"}, 0o600)
			got, _ := os.ReadFile(path)
			if tc.fault != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fault) || string(got) != tc.before {
					t.Errorf("%v, the file is now %q", err, got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
			if err := AddRules(path, tc.list, []string{"Edit"}, 0o600); err != nil {
				t.Fatal(err)
			}
			if again, _ := os.ReadFile(path); string(again) != string(got) {
				t.Errorf("added again:\n%s", again)
			}
		})
	}
}
