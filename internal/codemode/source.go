package codemode

import (
	"regexp"
	"strings"
	"sync"

	"capstan/internal/sandbox"
)

// A reading is one way to understand a source, as the program that would run.
type reading struct {
	source string
	// position maps a position in source, 1-based, to the author's text. Nil
	// means that they are the same.
	position func(line, column int) (int, int)
}

// restore turns the position of an error into the author's own.
func (r reading) restore(e *sandbox.Error) {
	if r.position != nil && e.Line > 0 {
		e.Line, e.Column = r.position(e.Line, e.Column)
	}
}

// readings returns the ways to understand a source, in the order in which they
// are tried: each only when what was tried before did not parse, so that
// nothing has run. Each is worked out when it is its turn; one that makes no
// sense says so.
func readings(source string) []func() (reading, bool) {
	if bare, fenced := unfence(source); fenced {
		source = bare // as JavaScript a fence parses, as template literals that are called
	}
	plain := func() (reading, bool) { return reading{source: source}, true }
	typed := func() (reading, bool) { return stripTypes(source) }
	if typeArguments().MatchString(source) {
		// As JavaScript this parses too, as two comparisons that call nothing.
		return []func() (reading, bool){typed, plain}
	}
	return []func() (reading, bool){plain, typed}
}

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
