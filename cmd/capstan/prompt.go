package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"capstan/internal/msg"
)

const (
	// maxPrompt bounds what is read of standard input as a prompt, in bytes.
	maxPrompt = 8 << 20
	// stdinQuiet is how long standard input is waited for without a word. Its
	// writer may be slow; or whoever started capstan left a pipe open that nobody
	// will ever write to.
	stdinQuiet = 3 * time.Second
)

// firstPrompt returns the task: what standard input holds, and the text of -p
// after it. With --input-format stream-json standard input holds the prompts
// themselves, and -p is the first of them, if it is there.
func (f *agentFlags) firstPrompt() ([]msg.Part, error) {
	besides := f.there("prompt")
	if err := f.prompt.read("-p"); err != nil {
		return nil, err
	}
	if besides && strings.TrimSpace(f.prompt.text) == "" {
		return nil, usage("-p: the task is empty")
	}
	if f.inputFormat == "stream-json" {
		if !besides {
			return nil, nil
		}
		return []msg.Part{msg.TextPart(f.prompt.text)}, nil
	}
	piped := ""
	if info, err := os.Stdin.Stat(); err == nil && info.Mode()&os.ModeCharDevice == 0 {
		if piped, err = readPiped(os.Stdin, besides); err != nil {
			return nil, err
		}
	}
	var parts []msg.Part
	for _, text := range []string{piped, f.prompt.text} {
		if strings.TrimSpace(text) != "" {
			parts = append(parts, msg.TextPart(text))
		}
	}
	if len(parts) == 0 {
		return nil, usage("there is no task: give one with -p \"…\", or on standard input (the terminal UI is not there yet)")
	}
	return parts, nil
}

// readPiped reads standard input to its end, and says so when that takes long.
func readPiped(in io.Reader, besides bool) (string, error) {
	type piece struct {
		data []byte
		err  error
	}
	all := make(chan piece, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(in, maxPrompt+1))
		all <- piece{data, err}
	}()
	var got piece
	select {
	case got = <-all:
	case <-time.After(stdinQuiet):
		instead := ""
		if besides {
			instead = "; to run with the task of -p alone, start capstan with </dev/null"
		}
		fmt.Fprintf(stderr, "capstan: waiting for the end of standard input%s\n", instead)
		got = <-all
	}
	switch {
	case got.err != nil:
		return "", usage("reading the task from standard input: %w", got.err)
	case len(got.data) > maxPrompt:
		return "", usage("the task on standard input is longer than %d MiB: put it into a file and name the file in the task", maxPrompt>>20)
	}
	text := strings.TrimPrefix(string(got.data), "\ufeff")
	if !utf8.ValidString(text) {
		fmt.Fprintln(stderr, "capstan: warning: standard input is not valid UTF-8; what is not was replaced")
		text = strings.ToValidUTF8(text, "\ufffd")
	}
	return text, nil
}

// splitLists splits each entry at commas and spaces that are in no parentheses.
func splitLists(entries []string) []string {
	var out []string
	for _, e := range entries {
		depth, word := 0, ""
		for _, r := range e + "," {
			switch r {
			case '(':
				depth++
			case ')':
				depth = max(0, depth-1)
			case ',', ' ', '\t', '\n':
				if depth == 0 {
					if word != "" {
						out = append(out, word)
					}
					word = ""
					continue
				}
			}
			word += string(r)
		}
		if word = strings.TrimSuffix(word, ","); word != "" { // a parenthesis that is not closed: the rule says so
			out = append(out, word)
		}
	}
	return out
}

// cutFile says whether an argument names a file: it begins with @, or is no
// JSON object itself.
func cutFile(arg string) (string, bool) {
	if name, ok := strings.CutPrefix(arg, "@"); ok {
		return name, true
	}
	return arg, !strings.HasPrefix(strings.TrimSpace(arg), "{")
}
