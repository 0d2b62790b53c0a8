package llm

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"capstan/internal/msg"
)

// fewerTools is the advice when an API takes no more tools.
const fewerTools = `let the model search for most of them: name the few that it needs at once in the setting "tools.eager", or let programs call them ("tools.mode": "code"); or leave out servers and tools that this work does not need`

// Crowded is nil, or the error of a request that declares more tools than an
// endpoint takes; most 0 means that it takes any number.
func (e *Endpoint) Crowded(r *Request, most int) error {
	n := len(r.Tools) + len(r.Hosted)
	if most == 0 || n <= most {
		return nil
	}
	return &Error{Kind: ErrBadRequest, Provider: e.Name,
		Message: fmt.Sprintf("the request would declare %d tools, and the API takes at most %d", n, most),
		Advice:  fewerTools}
}

// Descriptions remembers which models are served by an endpoint that refuses a
// tool's description beyond a length, and keeps within it. Its zero value knows
// of none. It is safe for concurrent use.
type Descriptions struct{ most sync.Map } // of a model: bytes

// What endpoints say of the length, and what it is when they do not say.
var longest = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:max(?:imum)? length|at most)(?: of)?:? (\d{1,6})\b`)
})

const (
	usualMost = 1024
	leastMost = 128 // of less nothing can be made
)

// Refused reports whether an endpoint refused r for the length of a description
// and that is news. Sent again with what Fit returns then, r keeps within it.
func (d *Descriptions) Refused(r *Request, e *Error) bool {
	said := strings.ToLower(e.Message)
	if e.Kind != ErrBadRequest || !strings.Contains(said, "description") || !holds(said, []string{"too long", "at most", "maximum length"}) {
		return false
	}
	most := usualMost
	if m := longest().FindStringSubmatch(said); m != nil {
		most, _ = strconv.Atoi(m[1]) // digits
	}
	if most < leastMost {
		return false
	}
	for i := range r.Tools {
		if len(r.Tools[i].Description) > most {
			_, known := d.most.LoadOrStore(r.Model, most)
			return !known
		}
	}
	return false // it is not ours that are too long
}

// theRest ends a description that was cut.
const theRest = "\n(Cut. In full in the system prompt.)"

// Fit returns the system prompt and the tools of r as the endpoint takes them:
// a description that is too long is cut at a line, and stands whole in the
// system prompt under the name by which the model knows the tool. The same
// request always gives the same bytes, as long as nothing is refused.
func (d *Descriptions) Fit(r *Request, names *Names) (system string, tools []msg.Declaration) {
	known, ok := d.most.Load(r.Model)
	if !ok {
		return r.System, r.Tools
	}
	most := known.(int)
	var whole strings.Builder
	tools = append([]msg.Declaration(nil), r.Tools...)
	for i := range tools {
		text := tools[i].Description
		if len(text) <= most { // bytes: no way of counting characters finds more
			continue
		}
		tools[i].Description = beginning(text, most-len(theRest)) + theRest
		fmt.Fprintf(&whole, "\n\n%s:\n%s", names.Wire(tools[i].Name), strings.TrimSpace(text))
	}
	if whole.Len() == 0 {
		return r.System, r.Tools
	}
	return strings.TrimSpace(r.System + "\n\nTools, in full:" + whole.String()), tools
}

// beginning is at most n bytes of a longer s: whole lines, where that keeps at
// least half of them, else whole words, else whole characters.
func beginning(s string, n int) string {
	s = s[:n]
	for _, end := range []string{"\n", " "} {
		if at := strings.LastIndex(s, end); at >= n/2 {
			return strings.TrimSpace(s[:at])
		}
	}
	for len(s) > 0 {
		if r, size := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || size != 1 {
			break
		}
		s = s[:len(s)-1]
	}
	return s
}
