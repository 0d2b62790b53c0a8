package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A secret is taken out of the strings of a JSON text as they are decoded; every
// other byte stays, numbers that look like the secret too.
func TestRedactJSON(t *testing.T) {
	m := New(Options{Redact: func(s string) string {
		return strings.NewReplacer(`a"b\c`, "X", "123456", "Y").Replace(s)
	}})
	for raw, want := range map[string]string{
		`{"const":123456, "x" : "é\u00e9"}`:       `{"const":123456, "x" : "é\u00e9"}`,
		`{"d":"is a\"b\\c!","123456":["123456"]}`: `{"d":"is X!","Y":["Y"]}`,
		`{"d":"\u0061\"b\\c"}`:                    `{"d":"X"}`,
		`{"d":"123456`:                            `{"d":"123456`,
		`{"d":"123456\`:                           `{"d":"123456\`,
		`"`:                                       `"`,
		``:                                        ``,
	} {
		if diff := cmp.Diff(want, string(m.redactJSON(json.RawMessage(raw)))); diff != "" {
			t.Errorf("%s: %s", raw, diff)
		}
	}
}
