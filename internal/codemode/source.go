package codemode

import (
	"regexp"
	"strings"
	"sync"
)

// needsTypes says that a source is to be read as TypeScript at once: as
// JavaScript `tools.f<T>(x)` parses too, as two comparisons that call nothing.
func needsTypes(source string) bool { return typeArguments().MatchString(source) }

// typeArguments finds `tools.name<…>(`.
var typeArguments = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\btools\s*\.\s*[\p{L}\p{Nd}_$]+\s*<[^;(){}]*(?:\{[^(){}]*\}[^;(){}]*)*>\s*\(`)
})

// unfence takes away a Markdown fence that surrounds the whole source. The
// lines stay where they are, so positions are the author's.
func unfence(source string) (string, bool) {
	start := len(source) - len(strings.TrimLeft(source, " \t\r\n\ufeff"))
	open, rest, ok := strings.Cut(source[start:], "\n")
	mark := strings.TrimRight(open, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ \t\r")
	if !ok || len(mark) < 3 || strings.Trim(mark, "`") != "" && strings.Trim(mark, "~") != "" {
		return source, false
	}
	body := strings.TrimRight(rest, " \t\r\n")
	trimmed, closed := strings.CutSuffix(body, mark)
	if !closed || trimmed != "" && !strings.HasSuffix(trimmed, "\n") {
		return source, false
	}
	return strings.Repeat("\n", strings.Count(source[:start], "\n")+1) + trimmed, true
}
