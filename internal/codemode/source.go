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

// unfence takes away a Markdown fence that surrounds the whole source, also one
// that was cut off before its end, and the first line of a script that names its
// interpreter. The lines stay where they are, so positions are the author's.
func unfence(source string) (string, bool) {
	if strings.HasPrefix(source, "#!") {
		return "//" + source[2:], true
	}
	start := len(source) - len(strings.TrimLeft(source, " \t\r\n\ufeff"))
	open, rest, ok := strings.Cut(source[start:], "\n")
	mark := strings.TrimRight(open, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ \t\r")
	if !ok || len(mark) < 3 || strings.Trim(mark, "`") != "" && strings.Trim(mark, "~") != "" {
		return source, false
	}
	before := strings.Repeat("\n", strings.Count(source[:start], "\n")+1)
	body := strings.TrimRight(rest, " \t\r\n")
	trimmed, closed := strings.CutSuffix(body, mark)
	last := strings.TrimRight(trimmed, " \t")
	switch {
	case closed && (last == "" || strings.HasSuffix(last, "\n")):
		return before + last, true
	case !strings.Contains(rest, mark): // a model that ran out of tokens
		return before + rest, true
	}
	return source, false
}
