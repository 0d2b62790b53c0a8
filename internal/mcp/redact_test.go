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

// What is kept of a server's stderr may begin inside of a secret, of one line or
// of many; the rest of it is not shown.
func TestStderrThatBeginsInASecret(t *testing.T) {
	const secret = "key-0123456789\nabcdefghijklmnop\nqrstuvwxyz-987654321"
	redact := func(s string) string { return strings.ReplaceAll(s, secret, "[redacted]") }
	leaks := func(s string) bool {
		for i := range len(secret) - 4 {
			if strings.Contains(s, secret[i:i+4]) {
				return true
			}
		}
		return false
	}
	for name, piece := range map[string]string{
		"nothing else":   secret,
		"lines":          "a line of it " + secret + "\n",
		"one long line":  strings.Repeat(".", 4000) + secret,
		"blocks of them": strings.Repeat(secret, 40) + "\n",
	} {
		tail := &tail{redact: redact}
		for n := 0; n < 10*stderrTail; n += len(piece) {
			tail.write([]byte(piece))
			if got := tail.text(); leaks(got) || got == "" || len(got) > stderrTail {
				t.Fatalf("%s, after %d bytes: %d bytes, %.300q", name, n+len(piece), len(got), got)
			}
		}
	}
	// Every place within the secret at which the kept text can begin, and be shown.
	for at := range len(secret) + 1 {
		for _, kept := range []int{stderrTail, 2 * stderrTail} {
			tail := &tail{redact: redact}
			end := strings.Repeat("z", kept-len(secret)+at-5) + "\nlast"
			tail.write([]byte(strings.Repeat("y", 4*stderrTail) + secret + end))
			if got := tail.text(); leaks(got) || !strings.HasSuffix(got, "last") {
				t.Fatalf("cut %d bytes into it: %.200q", at, got)
			}
		}
	}
	short := &tail{redact: redact}
	short.write([]byte("first\n" + secret + "\nlast\n"))
	if got := short.text(); got != "first\n[redacted]\nlast" {
		t.Errorf("%q", got)
	}
}
