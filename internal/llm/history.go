package llm

import (
	"fmt"
	"slices"
	"strings"

	"capstan/internal/msg"
)

// Demands are what an API demands of a history, beyond what all of them do.
type Demands struct {
	IDs Rule // of call ids
	// Origin is the FAMILY/MODEL that is asked. Reasoning and State of others
	// are not sent to it.
	Origin string
	// NoTools: the request declares no tools, so calls and results become text.
	NoTools bool
}

// What is put in where a history leaves a gap that an API refuses.
const (
	goOn       = "Go on."
	earlier    = "(The beginning of this conversation is not shown.)"
	noOutput   = "(no output)"
	unrecorded = "No result of this call was recorded: the session was interrupted. It may have run or not; find out before you repeat it."
)

// Valid returns messages that mean what history means and that every API takes:
//
//   - calls have unique ids that follow the API's rule, and arguments that are
//     JSON objects (see Replay);
//   - a message with calls is followed by one message of role tool with exactly
//     one result for each, in order; results that came later are moved there,
//     missing ones say so, those that answer nothing are left out;
//   - roles: the first message is the user's, the last is not the assistant's,
//     no two of the same role follow each other;
//   - no part and no message is empty, and none of the assistant ends with, or
//     consists of, reasoning;
//   - reasoning and State come from Origin.
//
// It looks at the whole history, not at its end only. What it makes of a turn
// whose calls are answered does not depend on what follows, so that a longer
// history begins with the same bytes. history is not changed.
func Valid(history []msg.Message, d Demands) []msg.Message {
	if len(history) == 0 {
		return nil
	}
	v := validator{demands: d, ids: NewIDs(nil), out: make([]msg.Message, 0, len(history)+len(history)/4+2)}
	v.pair(history)
	for i := range history {
		v.add(i, &history[i])
	}
	return v.close()
}

type validator struct {
	demands Demands
	ids     *IDs
	answers map[place]*msg.Result
	out     []msg.Message
}

// place is a call: the n-th of a message.
type place struct{ message, n int }

// pair finds the result of each call: the first that names it, after it and
// nearest to it. So an id that a provider uses again in a later turn does no
// harm.
func (v *validator) pair(history []msg.Message) {
	v.answers = map[place]*msg.Result{}
	open := map[string][]place{} // unanswered, by id
	for i := range history {
		for n, c := range history[i].Calls() {
			open[c.ID] = append(open[c.ID], place{i, n})
		}
		for r := range history[i].Results {
			res := &history[i].Results[r]
			places := open[res.CallID]
			if len(places) == 0 {
				continue
			}
			// Of the latest message with this id, the first call.
			k := len(places) - 1
			for k > 0 && places[k-1].message == places[k].message {
				k--
			}
			v.answers[places[k]] = res
			open[res.CallID] = slices.Delete(places, k, k+1)
		}
	}
}

func (v *validator) add(i int, m *msg.Message) {
	if m.Role != msg.Assistant {
		v.put(msg.Message{Role: msg.User, Parts: v.spoken(m.Parts, false)})
		return
	}
	parts := v.spoken(m.Parts, m.Origin == v.demands.Origin)
	var results []msg.Result
	n := 0
	for k := range parts {
		if parts[k].Kind != msg.CallPart {
			continue
		}
		c := *parts[k].Call
		id := v.id(c.ID)
		results = append(results, v.result(place{i, n}, c, id))
		c.ID, c.Args = id, Replay(c.Args)
		parts[k].Call = &c
		n++
	}
	if v.demands.NoTools {
		v.tell(parts, results)
		return
	}
	v.put(msg.Message{Role: msg.Assistant, Parts: parts, Origin: m.Origin})
	if len(results) > 0 {
		v.put(msg.Message{Role: msg.Tool, Results: results})
	}
}

// id is unique and follows the rule.
func (v *validator) id(id string) string {
	rule := v.demands.IDs
	if id != "" {
		id = rule.fit(id, 0)
	}
	taken := v.ids.Take(id)
	for k := 2; rule != (Rule{}) && !rule.ok(taken); k++ {
		taken = v.ids.Take(rule.fit(fmt.Sprint(id, k, len(v.ids.used)), 16))
	}
	return taken
}

func (v *validator) result(p place, c msg.Call, id string) msg.Result {
	r, ok := v.answers[p]
	if !ok {
		return msg.Result{CallID: id, Name: c.Name, Status: "cancelled", Code: "TOOL_OUTCOME_UNKNOWN", Parts: []msg.Part{msg.TextPart(unrecorded)}}
	}
	out := *r
	out.CallID, out.Name, out.Parts = id, c.Name, v.spoken(r.Parts, false)
	if len(out.Parts) == 0 {
		out.Parts = []msg.Part{msg.TextPart(noOutput)}
	}
	return out
}

// spoken returns the parts that can be sent, in a list of its own. own says that
// they go back to the origin that wrote them.
func (v *validator) spoken(parts []msg.Part, own bool) []msg.Part {
	if len(parts) == 0 {
		return nil
	}
	out := make([]msg.Part, 0, len(parts))
	for _, p := range parts {
		if !own {
			p.State = nil
		}
		switch p.Kind {
		case msg.CallPart:
			if p.Call == nil {
				continue
			}
		case msg.Reasoning:
			if !own || p.Text == "" && p.State == nil {
				continue
			}
		case msg.Text:
			if strings.TrimSpace(p.Text) == "" && p.State == nil {
				continue
			}
		}
		out = append(out, p)
	}
	for len(out) > 0 && out[len(out)-1].Kind == msg.Reasoning {
		out = out[:len(out)-1] // interrupted while it thought
	}
	return out
}

// put appends a message, or its parts to the last one of the same role.
func (v *validator) put(m msg.Message) {
	if len(m.Parts) == 0 && len(m.Results) == 0 {
		return
	}
	if len(v.out) == 0 && m.Role != msg.User {
		v.out = append(v.out, msg.Message{Role: msg.User, Parts: []msg.Part{msg.TextPart(earlier)}})
	}
	if n := len(v.out); n > 0 && v.out[n-1].Role == m.Role {
		last := &v.out[n-1]
		if m.Origin == v.demands.Origin {
			last.Origin = m.Origin
		}
		last.Parts = append(last.Parts, m.Parts...) // a list of our own, see spoken
		return
	}
	v.out = append(v.out, m)
}

// tell puts calls and their results as text.
func (v *validator) tell(parts []msg.Part, results []msg.Result) {
	var said, answers []msg.Part
	n := 0
	for _, p := range parts {
		switch p.Kind {
		case msg.CallPart:
			r := results[n]
			said = append(said, msg.TextPart(fmt.Sprintf("[Called %s with %s]", p.Call.Name, p.Call.Args)))
			answers = append(answers, msg.TextPart(fmt.Sprintf("[Result of %s: %s]", p.Call.Name, r.Status)))
			answers = append(answers, r.Parts...)
			n++
		case msg.Reasoning: // belongs to calls that are no longer there
		default:
			if p.State = nil; p.Kind == msg.Text && strings.TrimSpace(p.Text) == "" {
				continue // it was there for its state
			}
			said = append(said, p)
		}
	}
	v.put(msg.Message{Role: msg.Assistant, Parts: said})
	v.put(msg.Message{Role: msg.User, Parts: answers})
}

func (v *validator) close() []msg.Message {
	if n := len(v.out); n == 0 || v.out[n-1].Role == msg.Assistant {
		v.out = append(v.out, msg.Message{Role: msg.User, Parts: []msg.Part{msg.TextPart(goOn)}})
	}
	return v.out
}
