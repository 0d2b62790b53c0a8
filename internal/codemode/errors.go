package codemode

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"capstan/internal/sandbox"
)

// ErrorText is what a person or a model reads of a program's error: kind, name
// and message, then where, in the author's own lines, with a caret.
func ErrorText(e *sandbox.Error, source string) string {
	var b strings.Builder
	name := e.Name
	if name == "" {
		name = "Error"
	}
	fmt.Fprintf(&b, "error: %s: %s: %s", e.Kind, name, e.Message)
	if hint := hint(e, source); hint != "" {
		b.WriteString(" (" + hint + ")")
	}
	if e.Line <= 0 {
		return b.String()
	}
	fmt.Fprintf(&b, "\nat line %d, column %d", e.Line, max(e.Column, 1))
	if line, ok := lineOf(source, e.Line); ok {
		shown, caret := window(line, max(e.Column, 1))
		b.WriteString("\n" + shown + "\n" + caret)
	}
	return b.String()
}

// lineOf returns a line of a source, as the engine counts them: JavaScript has
// four line terminators.
func lineOf(source string, n int) (string, bool) {
	source = lineEnds.Replace(source)
	for line := range strings.SplitSeq(source, "\n") {
		if n--; n == 0 {
			return line, true
		}
	}
	return "", false
}

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n")

// window returns the part of a line around a column and the line with the
// caret below it.
func window(line string, column int) (shown, caret string) {
	const before, after = 60, 40
	runes := []rune(strings.Map(printable, line))
	at := min(column-1, len(runes))
	from, to := max(at-before, 0), min(at+after, len(runes))
	if to-from == len(runes) || len(runes) <= before+after {
		from, to = 0, len(runes)
	}
	shown = string(runes[from:to])
	at -= from
	if from > 0 {
		shown, at = "…"+shown, at+1
	}
	if to < len(runes) {
		shown += "…"
	}
	return shown, strings.Repeat(" ", at) + "^"
}

// printable keeps hostile text from moving the caret or the cursor.
func printable(r rune) rune {
	if r == '\t' {
		return ' '
	}
	if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
		return '·'
	}
	return r
}

// absent are globals that programs expect from elsewhere, and what to do here.
var absent = map[string]string{
	"console":           "exec has no console: print with text(value)",
	"require":           "exec has no modules: call tools.NAME(args)",
	"process":           "exec has no Node.js: call tools.NAME(args)",
	"module":            "exec has no modules",
	"Buffer":            "exec has no Node.js: use Uint8Array, which has fromBase64 and toBase64",
	"fetch":             "exec has no network: call tools.NAME(args)",
	"XMLHttpRequest":    "exec has no network: call tools.NAME(args)",
	"WebSocket":         "exec has no network: call tools.NAME(args)",
	"setTimeout":        "exec has no timers",
	"setInterval":       "exec has no timers",
	"setImmediate":      "exec has no timers",
	"WebAssembly":       "exec has no WebAssembly",
	"SharedArrayBuffer": "exec has no threads",
	"Atomics":           "exec has no threads",
	"window":            "exec is no browser",
	"document":          "exec is no browser",
	"tool_search":       "tool_search is a direct call outside of exec",
}

// They are compiled when an error is explained, not at every start.
var (
	notDefined  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^'?([\p{L}_$][\p{L}\p{Nd}_$]*)'? is not defined$`) })
	moduleUsage = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^\s*(?:import\b\s*[\w{*"']|export\b\s*[\w{*])`) })
)

// hint says what to do instead, for the mistakes that are made most.
func hint(e *sandbox.Error, source string) string {
	if m := notDefined().FindStringSubmatch(e.Message); m != nil {
		return absent[m[1]]
	}
	switch {
	case e.Kind == sandbox.KindSyntax && moduleUsage().MatchString(source):
		return "exec has no modules: there is no import or export; call tools.NAME(args)"
	case strings.Contains(e.Message, "could not load module"):
		return "exec has no modules: call tools.NAME(args)"
	}
	return ""
}
