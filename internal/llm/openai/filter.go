package openai

import (
	"strings"

	"capstan/internal/llm"
)

// filter finds what a server should have taken out of the text: reasoning in
// <think> at the beginning, calls at the end. It holds back as little as it
// must and gives the same whatever pieces the text comes in.
//
// Calls are recognised only outside code fences and code spans, only when
// nothing but calls follows to the end of the answer, only of declared tools,
// and only when the server sent no call of its own. An example that a model
// shows is none (BUG-SD-18).
type filter struct {
	think    bool
	leak     bool
	declared map[string]bool

	begun  bool
	inside bool            // of <think>
	buf    string          // not given out yet
	held   bool            // buf begins with the mark of a call
	after  strings.Builder // what came since then
	fence  string          // the marks that opened the fence we are in
	line   string          // the line so far, as much as tells a fence
	last   byte
}

const (
	openThink  = "<think>"
	closeThink = "</think>"
)

func (f *filter) init(p Profile, r *llm.Request, names *llm.Names) {
	f.think = p.ThinkTags
	f.leak = p.Leaks && len(r.Tools) > 0
	f.declared = map[string]bool{}
	for i := range r.Tools {
		f.declared[names.Wire(r.Tools[i].Name)] = true
	}
}

// push takes a piece and returns what is certain to be reasoning and text.
func (f *filter) push(s string) (thought, text string) {
	if f.held {
		f.after.WriteString(s)
		return "", ""
	}
	if f.buf == "" && !f.think && !f.leak {
		return "", s
	}
	f.buf += s
	if f.think {
		if thought = f.thinking(); f.think {
			return thought, ""
		}
	}
	return thought, f.speaking()
}

// thinking gives out reasoning. It clears think when there is no more.
func (f *filter) thinking() string {
	if !f.begun {
		trimmed := strings.TrimLeft(f.buf, " \t\r\n")
		if len(trimmed) < len(openThink) && strings.HasPrefix(openThink, trimmed) {
			return ""
		}
		f.begun = true
		rest, ok := strings.CutPrefix(trimmed, openThink)
		if !ok {
			f.think = false
			return ""
		}
		f.inside, f.buf = true, rest
	}
	if thought, rest, ok := strings.Cut(f.buf, closeThink); ok {
		f.think, f.inside = false, false
		f.buf = strings.TrimLeft(rest, "\r\n")
		return thought
	}
	keep := overlap(f.buf, closeThink)
	thought := f.buf[:len(f.buf)-keep]
	f.buf = f.buf[len(thought):]
	return thought
}

// overlap is the length of the end of s that mark may begin with.
func overlap(s, mark string) int {
	for n := min(len(mark)-1, len(s)); n > 0; n-- {
		if strings.HasSuffix(s, mark[:n]) {
			return n
		}
	}
	return 0
}

// speaking gives out text up to what may be a call.
func (f *filter) speaking() string {
	if !f.leak {
		out := f.buf
		f.buf = ""
		return out
	}
	i := 0
	for ; i < len(f.buf); i++ {
		if f.fence == "" && f.last != '`' {
			whole, partial := marked(f.buf[i:])
			if f.held = whole; whole || partial {
				break
			}
		}
		f.pass(f.buf[i])
	}
	out := f.buf[:i]
	f.buf = f.buf[i:]
	return out
}

// marked reports whether s begins with the mark of a call, or may once more
// of it has come.
func marked(s string) (whole, partial bool) {
	if s[0] != '<' && s[0] != '[' {
		return false, false
	}
	for _, l := range leaks {
		if strings.HasPrefix(s, l.open) {
			return true, false
		}
		partial = partial || strings.HasPrefix(l.open, s)
	}
	return false, partial
}

// pass keeps track of code fences.
func (f *filter) pass(c byte) {
	f.last = c
	if c == '\n' {
		f.line = ""
		return
	}
	if len(f.line) > 6 {
		return
	}
	f.line += string(c)
	mark := strings.TrimLeft(f.line, " ")
	if mark != "```" && mark != "~~~" {
		return
	}
	switch f.fence {
	case "":
		f.fence = mark
	case mark:
		f.fence = ""
	}
}

// close ends the text. It returns what is left of it, or the calls that it
// holds; left says that it holds something like a call that could not be read.
func (f *filter) close(mayCall bool) (thought, text string, calls []leakedCall, left bool) {
	rest := f.buf + f.after.String()
	f.buf = ""
	if f.inside {
		return rest, "", nil, false
	}
	if !f.held {
		return "", rest, nil, false
	}
	if mayCall {
		if calls = f.read(rest); calls != nil {
			return "", "", calls, false
		}
	}
	return "", rest, nil, mayCall
}

func (f *filter) read(s string) []leakedCall {
	for _, l := range leaks {
		if !strings.HasPrefix(s, l.open) {
			continue
		}
		calls, ok := l.read(s)
		if !ok {
			return nil
		}
		for _, c := range calls {
			if !f.declared[c.name] {
				return nil
			}
		}
		return calls
	}
	return nil
}
