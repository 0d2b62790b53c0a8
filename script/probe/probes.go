package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// A probe is a task for the model and what has to be seen of it.
type probe struct {
	name, task string
	calls      []called // that have to reach the server, and no others, in this order
	answer     []string // what the model can know from the calls only
	missed     bool     // a search for a name that is none comes first
}

// probes are those of the seed: tools that are found before they are called, with
// all of their arguments (it began with calls that had none), and found once;
// arguments that the signature does not say all of; a name that is not registered.
var probes = []probe{
	{
		name: "deferred-tool",
		task: "Book two parcels with the tools of the server parcels. Order 4711, reference AB1234, to Utrecht in the Netherlands. Then, after the first is booked, order 4712, reference AB1235, to Ghent in Belgium. Answer with the two tracking codes only.",
		calls: []called{
			{"create_shipment", json.RawMessage(`{"order": 4711, "reference": "AB1234", "to": {"city": "Utrecht", "country": "NL"}}`)},
			{"create_shipment", json.RawMessage(`{"order": 4712, "reference": "AB1235", "to": {"city": "Ghent", "country": "BE"}}`)},
		},
		answer: []string{code(4711), code(4712)},
	},
	{
		name:   "hidden-constraint",
		task:   "Book a parcel with the tools of the server parcels: order 4713, to Bonn in Germany. The customer wrote the reference as \"ab-1236\"; bring it into the form that the tool wants. Answer with the tracking code only.",
		calls:  []called{{"create_shipment", json.RawMessage(`{"order": 4713, "reference": "AB1236", "to": {"city": "Bonn", "country": "DE"}}`)}},
		answer: []string{code(4713)},
	},
	{
		name:   "unregistered-name",
		task:   "First call tool_search with exactly this query: select:track_shipment. Then do what its answer advises until you know where the parcel KX77Q is. Answer with the place and the time only.",
		calls:  []called{{"track_shipment", json.RawMessage(`{"code": "KX77Q"}`)}},
		answer: []string{"Zwolle", "07:42"},
		missed: true,
	},
}

// judge names everything that is not as it has to be.
func (p *probe) judge(s *seen) []string {
	var faults []string
	fault := func(format string, a ...any) { faults = append(faults, fmt.Sprintf(format, a...)) }
	if s.err != nil {
		fault("the run failed: %v: %s", s.err, strings.Join(strings.Fields(s.said), " "))
	}
	if len(s.requests) == 0 {
		fault("no request reached the endpoint")
		return faults
	}
	first := s.requests[0]
	for _, d := range definitions {
		if bytes.Contains(first.Tools, []byte(d.Name)) || bytes.Contains(first.Tools, []byte(d.Description)) {
			fault("the first request declares %s, which is deferred", d.Name)
		}
	}
	for i, r := range s.requests[1:] {
		if !bytes.Equal(r.Tools, first.Tools) {
			fault("request %d has other tools than the first", i+2)
		}
	}
	if why := s.order(); why != "" {
		fault("%s", why)
	}
	if p.missed && !s.hinted() {
		fault("no search was answered with the hint for names that are not registered")
	}
	for _, why := range p.compare(s.calls) {
		fault("%s", why)
	}
	for _, want := range p.answer {
		if !strings.Contains(s.answer, want) {
			fault("the answer lacks %s", want)
		}
	}
	return faults
}

// compare holds the calls that reached the server against those wanted.
func (p *probe) compare(got []called) []string {
	var faults []string
	for i := range max(len(got), len(p.calls)) {
		switch {
		case i >= len(got):
			faults = append(faults, fmt.Sprintf("%s with %s was never called", p.calls[i].Name, p.calls[i].Args))
		case i >= len(p.calls):
			faults = append(faults, fmt.Sprintf("%s was called with %s, which nobody wanted", got[i].Name, got[i].Args))
		case got[i].Name != p.calls[i].Name || !same(got[i].Args, p.calls[i].Args):
			faults = append(faults, fmt.Sprintf("call %d was %s with %s, want %s with %s", i+1, got[i].Name, got[i].Args, p.calls[i].Name, p.calls[i].Args))
		}
	}
	return faults
}

// same says whether two JSON texts have one value.
func same(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// history is the whole conversation but for its last answer: each request holds
// what came before it.
func (s *seen) history() []item { return s.requests[len(s.requests)-1].Input }

// searches counts the calls of tool_search.
func (s *seen) searches() int {
	n := 0
	if len(s.requests) > 0 {
		for _, it := range s.history() {
			if it.Type == "function_call" && it.Name == "tool_search" {
				n++
			}
		}
	}
	return n
}

// order says what is wrong with how tools were found and called: a program may
// only use a name that a search has returned before.
func (s *seen) order() string {
	known := ""
	names := map[string]string{} // of calls, by id
	used := false
	for _, it := range s.history() {
		switch it.Type {
		case "function_call":
			names[it.CallID] = it.Name
			if it.Name != "exec" {
				continue
			}
			for _, d := range definitions {
				js := "mcp__parcels__" + d.Name
				if !strings.Contains(it.Arguments, js) {
					continue
				}
				used = true
				if !strings.Contains(known, js) {
					return "a program uses " + js + " before a search returned it"
				}
			}
		case "function_call_output":
			if names[it.CallID] == "tool_search" {
				known += string(it.Output)
			}
		}
	}
	if !used {
		return "no program used a tool that was found"
	}
	return ""
}

// hinted says whether a search was told that select: takes registered names.
func (s *seen) hinted() bool {
	names := map[string]string{}
	for _, it := range s.history() {
		switch {
		case it.Type == "function_call":
			names[it.CallID] = it.Name
		case it.Type == "function_call_output" && names[it.CallID] == "tool_search" && bytes.Contains(it.Output, []byte("mcp__SERVER__TOOL")):
			return true
		}
	}
	return false
}
