package llm

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"capstan/internal/msg"
)

// IDs gives calls ids that are unique in a whole conversation. Providers repeat
// theirs, in one answer and from turn to turn, or send none.
type IDs struct {
	used map[string]bool
	next map[string]int // the number to try next, by what was given
	n    int
}

// NewIDs knows the ids of the calls in history.
func NewIDs(history []msg.Message) *IDs {
	ids := &IDs{used: map[string]bool{}, next: map[string]int{}}
	for i := range history {
		for _, c := range history[i].Calls() {
			ids.used[c.ID] = true
			ids.n++
		}
	}
	return ids
}

// Take returns wire if it is new, else an id made from it; one made of the
// number of the call when wire is empty.
func (ids *IDs) Take(wire string) string {
	ids.n++
	if wire == "" {
		wire = "call_" + strconv.Itoa(ids.n)
	}
	id := wire
	for k := max(2, ids.next[wire]); ids.used[id]; k++ {
		id = wire + "_" + strconv.Itoa(k)
		ids.next[wire] = k + 1
	}
	ids.used[id] = true
	return id
}

// Finished makes the call that a model finished writing. id is unique, name is
// canonical, args is what arrived, d the declaration of the tool if there is
// one, cut says that the answer ended at the limit of tokens.
//
// It guesses nothing into existence (ruling 14): empty arguments become {} only
// where the tool takes none at all. What was cut off gets a Fault.
func Finished(id, name, args string, d *msg.Declaration, cut bool) msg.Call {
	c := msg.Call{ID: id, Name: name, Args: args}
	switch {
	case cut && !isObject(args):
		c.Fault = fmt.Sprintf("The call was cut off by the limit of output tokens after %d bytes of its arguments; nothing was run. "+
			"Make it again with less: write a long text in several calls, or explain less before the call.", len(args))
	case name == "":
		c.Fault = "The call names no tool; nothing was run. Make it again with the name of a tool."
	case args == "" && d != nil && takesNothing(d.Parameters):
		c.Args = "{}"
	}
	return c
}

// isObject reports whether s is one JSON object, no name twice in it.
func isObject(s string) bool {
	v := jsontext.Value(s)
	return v.Kind() == '{' && v.IsValid()
}

// takesNothing reports whether {} is the only sensible value of a schema.
func takesNothing(schema json.RawMessage) bool {
	if len(schema) == 0 {
		return true
	}
	var s map[string]json.RawMessage
	if json.Unmarshal(schema, &s) != nil {
		return false
	}
	for k, v := range s {
		switch k {
		case "$schema", "title", "description", "type", "required":
		case "properties":
			if string(v) != "{}" {
				return false
			}
		case "additionalProperties":
			if string(v) != "false" {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// maxNesting is how deep the arguments of a call in a history may be nested.
// Servers read them with parsers that have a limit, the lowest known of which
// is 100 for the whole request; what is beyond it makes them refuse the
// conversation for ever.
const maxNesting = 64

// Replay returns the arguments of a call as a JSON object, which every API
// demands in a history: what was none as {"_raw": "…"} (ruling 14), and so what
// is nested deeper than 64 levels; nothing as {}. Arguments that are an object
// are not changed by a byte.
func Replay(args string) string {
	if args == "" {
		return "{}"
	}
	if isObject(args) && nesting(args) <= maxNesting {
		return args
	}
	raw, err := json.Marshal(map[string]string{"_raw": args})
	if err != nil { // a map of strings always marshals
		panic("llm: " + err.Error())
	}
	return string(raw)
}

// nesting is the number of levels of valid JSON.
func nesting(s string) int {
	levels, most := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '{', '[':
			levels++
			most = max(most, levels)
		case '}', ']':
			levels--
		case '"':
			for i++; s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		}
	}
	return most
}
