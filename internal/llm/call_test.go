package llm

import (
	"encoding/json"
	"strings"
	"testing"
)

// Arguments that an API's parser may not read go back as text: none of them
// refuses a conversation for what a model once wrote. BUG-AR-06
func TestReplay(t *testing.T) {
	deep := func(n int) string { // n levels, the outermost an object
		return `{"a}]\\\"{[":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`
	}
	text := func(s string) string {
		raw, _ := json.Marshal(s)
		return `{"_raw":` + string(raw) + `}`
	}
	for args, want := range map[string]string{
		"":                            "{}",
		` { "a" : 1e3 } `:             ` { "a" : 1e3 } `,
		`{"a`:                         text(`{"a`),
		`[{}]`:                        text(`[{}]`),
		`{"a":1,"a":2}`:               text(`{"a":1,"a":2}`),
		deep(64):                      deep(64),
		deep(65):                      text(deep(65)),
		deep(9000):                    text(deep(9000)),
		`{"a":"` + deepText + `"}`:    `{"a":"` + deepText + `"}`,
		strings.Repeat(`{"a":`, 1000): text(strings.Repeat(`{"a":`, 1000)),
		wide:                          wide,
	} {
		if got := Replay(args); got != want {
			t.Errorf("%.80s\ngot  %.200s\nwant %.200s", args, got, want)
		}
	}
}

// deepText is nested only to a reader that does not know strings.
var deepText = strings.Repeat(`[{\"`, 100)

// wide has many values beside each other.
var wide = `{"a":[` + strings.Repeat("[],{},", 100) + `0]}`
