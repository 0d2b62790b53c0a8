package builtin

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// How much of a file an error may show.
const (
	shownLines = 12
	shownChars = 200 // of one line
)

// notFound says what the file holds instead of a text (BUG-ED-16).
func (e *editor) notFound() error {
	for _, loose := range []struct {
		fold func(string) string
		what string
	}{
		{typewriter, "in quotation marks, dashes or special spaces"},
		{squeeze, "in white space"},
	} {
		text, old := loose.fold(e.text), loose.fold(e.old)
		if i := strings.Index(text, old); i >= 0 && strings.TrimSpace(old) != "" {
			line := strings.Count(text[:i], "\n")
			return fmt.Errorf("old_string is not in the file, but text that differs only %s is; copy it as it stands there:\n%s", loose.what, region(e.text, line, 1+strings.Count(old, "\n")))
		}
	}
	line, n, ok := closest(e.text, e.old)
	if !ok {
		return errors.New("old_string is not in the file, nor is anything like it")
	}
	return fmt.Errorf("old_string is not in the file; the closest there is:\n%s", region(e.text, line, n))
}

var plainer = strings.NewReplacer("‘", "'", "’", "'", "‚", "'", "“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`,
	"–", "-", "—", "-", "−", "-", "‐", "-", "‑", "-", "\u00a0", " ", "\u2009", " ", "\u202f", " ", "\r\n", "\n")

// typewriter writes a text with the characters of a typewriter.
func typewriter(s string) string { return plainer.Replace(s) }

// squeeze takes the white space out of lines, but keeps their number.
func squeeze(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && unicode.IsSpace(r) {
			return -1
		}
		return r
	}, typewriter(s))
}

// closest returns the lines of a text that share the most words with old. It
// looks at each word once, so a huge file costs no more than reading it.
func closest(text, old string) (line, n int, ok bool) {
	want := map[string]bool{}
	total := 0
	eachWord(old, func(w string) {
		if !want[w] {
			want[w] = true
			total += len(w)
		}
	})
	n = countLines(old)
	scores := make([]int, 0, countLines(text))
	seen := map[string]int{}
	for rest := text; rest != ""; {
		var l string
		l, rest = cutLine(rest)
		score, number := 0, len(scores)+1
		eachWord(l, func(w string) {
			if want[w] && seen[w] != number {
				seen[w] = number
				score += len(w)
			}
		})
		scores = append(scores, score)
	}
	sum, best, most := 0, 0, 0
	for i, s := range scores {
		sum += s
		if i >= n {
			sum -= scores[i-n]
		}
		if sum > most {
			best, most = max(0, i-n+1), sum
		}
	}
	return best, n, total > 0 && most*3 >= total
}

// eachWord calls fn with the words of a text.
func eachWord(s string, fn func(string)) {
	start := -1
	for i, r := range s {
		in := r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
		switch {
		case in && start < 0:
			start = i
		case !in && start >= 0:
			fn(s[start:i])
			start = -1
		}
	}
	if start >= 0 {
		fn(s[start:])
	}
}

// region shows n lines of a text from the given one, counted from 0, with one
// line around them and their numbers counted from 1.
func region(text string, line, n int) string {
	first := max(0, line-1)
	last := line + n
	rest, _ := skipLines(text, first)
	var b strings.Builder
	for i := first; i <= last && rest != ""; i++ {
		if i-first == shownLines {
			fmt.Fprintf(&b, "… %s\n", count(last-i+1, "more line"))
			break
		}
		var l string
		l, rest = cutLine(rest)
		fmt.Fprintf(&b, "%d: %s\n", i+1, shorten(strings.TrimRight(l, "\r\n")))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// shorten cuts a long line for an error.
func shorten(l string) string {
	if utf8.RuneCountInString(l) <= shownChars {
		return l
	}
	return l[:runeIndex(l, shownChars)] + "…"
}
