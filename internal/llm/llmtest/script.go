// Package llmtest is a loopback server for tests that speaks the wire formats
// of language models. What it answers is a script of turns; what it is asked it
// checks against the rules of each API, and refuses as the API does.
//
// It knows nothing of Capstan: it shares no code with the packages that it
// tests. It is a test library and no part of the product.
package llmtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// A Script is what a server does.
//
// It is written as a txtar archive. Each file is one turn, the answer to one
// request, in the order of the files; their names are for people. A file named
// "server" holds settings. Lines are directives, # begins a comment:
//
//	want REGEXP            the body of the request must match
//	wantnot REGEXP         … must not match
//	reasoning TEXT         the model thinks
//	text TEXT              the model speaks
//	call NAME [#ID] JSON   the model calls; an id is made up without #ID
//	usage IN OUT [cached N] [reasoning N]
//	finish REASON          stop, calls, length or filtered; else as it follows
//	cut                    the connection breaks here
//	hang                   nothing more comes until the client goes away
//	status CODE            of HTTP
//	header NAME: VALUE
//	body                   the rest of the file is the body, as it is
//	raw                    the rest of the file is the stream, as it is
//
// TEXT may be quoted as in Go. In "server":
//
//	key KEY                requests need it
//	models NAME...         others do not exist
//	limit BYTES            of a request
//	ids BYTES              of the id of a call; chat completions, 40 at OpenAI
//	descriptions N         characters of a tool's description; chat completions
//	                       and Responses, 1024 at Azure. The first request that
//	                       breaks it is refused, and is no fault
type Script struct {
	Key    string
	Models []string
	Limit  int
	IDs    int // 0: any length
	// Descriptions is how many characters a tool's description may have; 0: any
	// number.
	Descriptions int
	Turns        []Turn
}

// A Turn is one answer.
type Turn struct {
	Name          string
	Want, WantNot []*regexp.Regexp
	Status        int // 0 means 200
	Header        [][2]string
	Body          string // verbatim, when HasBody
	HasBody       bool
	Raw           string // verbatim events, when HasRaw
	HasRaw        bool
	Steps         []Step
	Usage         Usage
	Finish        string // empty: stop, or calls when there is a call
}

// A Step is a piece of an answer: exactly one field is set.
type Step struct {
	Reasoning, Text string
	Call            *Call
	Cut, Hang       bool
}

// A Call is a call that the model makes.
type Call struct{ ID, Name, Args string }

// Usage is what an answer reports.
type Usage struct{ In, Out, Cached, Reasoning int }

// Parse reads a script. Errors name the file and the line.
func Parse(archive []byte) (*Script, error) { return parse(txtar.Parse(archive).Files) }

// ParseDir reads a script whose turns are the files of a directory, in the
// order of the numbers that their names begin with, then of the names. (A
// testscript is an archive itself and cannot hold another one.)
func ParseDir(dir string) (*Script, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading script: %w", err)
	}
	var files []txtar.File
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading script: %w", err)
		}
		files = append(files, txtar.File{Name: e.Name(), Data: data})
	}
	slices.SortFunc(files, func(a, b txtar.File) int {
		return cmp.Or(cmp.Compare(number(a.Name), number(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return parse(files)
}

// number is what a name begins with.
func number(name string) int {
	end := 0
	for end < len(name) && name[end] >= '0' && name[end] <= '9' {
		end++
	}
	n, _ := strconv.Atoi(name[:end]) // 0 when there is none
	return n
}

func parse(files []txtar.File) (*Script, error) {
	s := &Script{}
	for _, f := range files {
		if f.Name == "server" {
			if err := s.settings(string(f.Data)); err != nil {
				return nil, err
			}
			continue
		}
		t := Turn{Name: f.Name}
		if err := t.parse(string(f.Data)); err != nil {
			return nil, err
		}
		s.Turns = append(s.Turns, t)
	}
	if len(s.Turns) == 0 {
		return nil, fmt.Errorf("reading script: it has no turns; each is a file, -- NAME --")
	}
	for i := range s.Turns {
		for k := range s.Turns[i].Steps {
			if c := s.Turns[i].Steps[k].Call; c != nil && c.ID == "" {
				c.ID = fmt.Sprintf("call_%d_%d", i+1, k+1)
			}
		}
	}
	return s, nil
}

func (s *Script) settings(text string) error {
	for n, line := range strings.Split(text, "\n") {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		var err error
		switch word {
		case "", "#":
		case "key":
			s.Key = rest
		case "models":
			s.Models = strings.Fields(rest)
		case "limit":
			s.Limit, err = strconv.Atoi(rest)
		case "ids":
			s.IDs, err = strconv.Atoi(rest)
		case "descriptions":
			s.Descriptions, err = strconv.Atoi(rest)
		default:
			err = fmt.Errorf("no setting %q", word)
		}
		if err != nil {
			return fmt.Errorf("reading script: server, line %d: %w", n+1, err)
		}
	}
	return nil
}

func (t *Turn) parse(text string) error {
	for n := 1; text != ""; n++ {
		line, rest, _ := strings.Cut(text, "\n")
		text = rest
		word, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case word == "body":
			t.Body, t.HasBody, text = rest, true, ""
		case word == "raw":
			t.Raw, t.HasRaw, text = rest, true, ""
		case word != "" && word[0] != '#':
			if err := t.directive(word, strings.TrimSpace(arg)); err != nil {
				return fmt.Errorf("reading script: %s, line %d: %w", t.Name, n, err)
			}
		}
	}
	return nil
}

func (t *Turn) directive(word, arg string) error {
	switch word {
	case "want", "wantnot":
		re, err := regexp.Compile("(?s)" + arg)
		if err != nil {
			return err
		}
		if word == "want" {
			t.Want = append(t.Want, re)
		} else {
			t.WantNot = append(t.WantNot, re)
		}
	case "reasoning", "text":
		s, err := unquote(arg)
		if err != nil {
			return err
		}
		if word == "text" {
			t.Steps = append(t.Steps, Step{Text: s})
		} else {
			t.Steps = append(t.Steps, Step{Reasoning: s})
		}
	case "call":
		c, err := parseCall(arg)
		if err != nil {
			return err
		}
		t.Steps = append(t.Steps, Step{Call: c})
	case "usage":
		return t.usage(strings.Fields(arg))
	case "finish":
		t.Finish = arg
	case "cut":
		t.Steps = append(t.Steps, Step{Cut: true})
	case "hang":
		t.Steps = append(t.Steps, Step{Hang: true})
	case "status":
		var err error
		t.Status, err = strconv.Atoi(arg)
		return err
	case "header":
		k, v, ok := strings.Cut(arg, ":")
		if !ok {
			return fmt.Errorf("a header is NAME: VALUE, not %q", arg)
		}
		t.Header = append(t.Header, [2]string{k, strings.TrimSpace(v)})
	default:
		return fmt.Errorf("no directive %q", word)
	}
	return nil
}

func unquote(s string) (string, error) {
	if !strings.HasPrefix(s, `"`) && !strings.HasPrefix(s, "`") {
		return s, nil
	}
	out, err := strconv.Unquote(s)
	if err != nil {
		return "", fmt.Errorf("%s is not a quoted Go string", s)
	}
	return out, nil
}

func parseCall(arg string) (*Call, error) {
	name, rest, _ := strings.Cut(arg, " ")
	c := &Call{Name: name}
	rest = strings.TrimSpace(rest)
	if strings.HasPrefix(rest, "#") {
		c.ID, rest, _ = strings.Cut(rest[1:], " ")
	}
	var err error
	if c.Args, err = unquote(strings.TrimSpace(rest)); err != nil {
		return nil, err
	}
	if name == "" {
		return nil, fmt.Errorf("a call is NAME [#ID] JSON")
	}
	return c, nil
}

func (t *Turn) usage(f []string) error {
	if len(f) < 2 || len(f)%2 != 0 {
		return fmt.Errorf("usage is IN OUT [cached N] [reasoning N]")
	}
	f = append([]string{"in", f[0], "out"}, f[1:]...)
	for i := 0; i < len(f); i += 2 {
		n, err := strconv.Atoi(f[i+1])
		if err != nil {
			return err
		}
		switch f[i] {
		case "in":
			t.Usage.In = n
		case "out":
			t.Usage.Out = n
		case "cached":
			t.Usage.Cached = n
		case "reasoning":
			t.Usage.Reasoning = n
		default:
			return fmt.Errorf("usage counts no %q", f[i])
		}
	}
	return nil
}

// finish is the reason in the words of the script.
func (t *Turn) finish() string {
	if t.Finish != "" {
		return t.Finish
	}
	for _, s := range t.Steps {
		if s.Call != nil {
			return "calls"
		}
	}
	return "stop"
}

// pieces cuts a text as a model's tokens would, in the middle of words and of
// UTF-8 sequences never.
func pieces(s string) []string {
	var out []string
	r := []rune(s)
	for i, n := 0, 1; i < len(r); n = n%5 + 1 {
		end := min(i+n, len(r))
		out = append(out, string(r[i:end]))
		i = end
	}
	return out
}

// quote is s as JSON.
func quote(s string) string {
	raw, err := json.Marshal(s)
	if err != nil { // a string always marshals
		panic("llmtest: " + err.Error())
	}
	return string(raw)
}
