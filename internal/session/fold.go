package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"capstan/internal/msg"
)

// These are package tool's codes for calls that a crash left open. The arrow of
// imports points the other way, so a test there holds them equal.
const (
	CodeNotStarted     = "TOOL_NOT_STARTED"
	CodeOutcomeUnknown = "TOOL_OUTCOME_UNKNOWN"

	statusError = "error" // its status of a call that failed
)

// A State is what a log tells: everything needed to go on.
type State struct {
	Info
	// Header is as the session began; of a log without one, all but ID is
	// empty.
	Header Header
	// Messages are for the model: valid, in that each call has exactly one
	// result, behind the message that made it, in the order of the calls.
	Messages []msg.Message
	// Values are what Set kept, by key.
	Values map[string]json.RawMessage
	// Usage is the sum over the turns that ended, subagents included.
	Usage msg.Usage
	// Agents are the subagents that the session had, in the order in which they
	// began. Each has a transcript of its own.
	Agents []AgentInfo
	// Unfinished says that the last turn did not end.
	Unfinished bool
	// Repaired are the results that were made up because the session ended
	// before there were any. They are in Messages too.
	Repaired []msg.Result
	// Notes tell a person, one line each, what was damaged, missing or
	// repaired. None means that all that was stored is here.
	Notes []string
}

// A CallRecord is one call in the log, nested ones included.
type CallRecord struct {
	ID       string    `json:"id"`
	ParentID string    `json:"parentId,omitempty"`
	Name     string    `json:"name"`
	Args     string    `json:"args,omitempty"`
	Started  time.Time `json:"started,omitzero"` // zero: it never was
	Ended    time.Time `json:"ended,omitzero"`   // zero: no result is known
	Status   string    `json:"status,omitempty"`
	Code     string    `json:"code,omitempty"`
}

// entry is one message of the transcript with the results of its calls.
type entry struct {
	msg     msg.Message
	time    time.Time
	results []*msg.Result // by call; nil where there is none yet
	// compacted is the number of entries before that the model no longer sees;
	// the entry is then one of those that stand for them.
	compacted int
}

// folder makes a State of events.
type folder struct {
	state   State
	entries []entry
	from    int // the first entry that the model sees
	calls   []*CallRecord
	byID    map[string]*CallRecord
	nested  map[string][]*CallRecord // by the parent's id
	open    map[string][]place       // calls without a result, oldest first
	told    int                      // damage up to this line was told of before
	stray   int                      // results without a call
	double  int                      // second results of a call
}

type place struct{ entry, call int }

func newFolder() *folder {
	return &folder{
		state:  State{Values: map[string]json.RawMessage{}},
		byID:   map[string]*CallRecord{},
		nested: map[string][]*CallRecord{},
		open:   map[string][]place{},
	}
}

func (f *folder) note(format string, a ...any) {
	f.state.Notes = append(f.state.Notes, fmt.Sprintf(format, a...))
}

func (f *folder) add(e event) {
	f.state.Turns = int(max(int64(f.state.Turns), e.Turn))
	f.state.Updated = e.Time
	if f.state.Created.IsZero() {
		f.state.Created = e.Time
	}
	if f.state.Title == "" {
		f.state.Title = e.Title
	}
	switch {
	case e.Header != nil:
		f.state.Header = *e.Header
	case e.Message != nil:
		f.state.Unfinished = true
		f.message(*e.Message, e.Time, 0)
	case e.Start != nil:
		f.start(*e.Start, e.Time)
	case e.Result != nil:
		f.result(*e.Result, e.Time)
	case e.End != nil:
		f.state.Unfinished = false
		f.state.Usage.Add(e.End.Usage)
	case e.Value != nil:
		f.state.Values[e.Value.Key] = e.Value.Data
	case e.Compact != nil:
		f.compact(*e.Compact, e.Time)
	case e.Repair != nil:
		f.told = max(f.told, e.Repair.Line)
	}
}

func (f *folder) message(m msg.Message, at time.Time, compacted int) {
	if m.Role == msg.Tool {
		for _, r := range m.Results {
			f.result(result{Result: r}, at)
		}
		return
	}
	calls := m.Calls()
	f.entries = append(f.entries, entry{msg: m, time: at, results: make([]*msg.Result, len(calls)), compacted: compacted})
	for i, c := range calls {
		f.open[c.ID] = append(f.open[c.ID], place{len(f.entries) - 1, i})
		if compacted == 0 || f.byID[c.ID] == nil {
			f.record(CallRecord{ID: c.ID, Name: c.Name, Args: c.Args})
		}
	}
}

// record returns the record of a call, the newest one of its id.
func (f *folder) record(c CallRecord) *CallRecord {
	r := &c
	f.calls = append(f.calls, r)
	f.byID[c.ID] = r
	return r
}

func (f *folder) start(s Start, at time.Time) {
	c := f.byID[s.ID]
	if c == nil || !c.Started.IsZero() {
		c = f.record(CallRecord{ID: s.ID})
	}
	c.Name, c.ParentID, c.Started = s.Name, s.ParentID, at
	if s.Args != "" {
		c.Args = s.Args
	}
	if s.ParentID != "" {
		f.nested[s.ParentID] = append(f.nested[s.ParentID], c)
	}
}

func (f *folder) result(r result, at time.Time) {
	c := f.byID[r.CallID]
	if c != nil && c.Ended.IsZero() {
		c.Ended, c.Status, c.Code = at, r.Status, r.Code
		if r.Repaired {
			c.Ended = time.Time{}
		}
	}
	if r.ParentID != "" {
		return
	}
	open := f.open[r.CallID]
	switch {
	case len(open) > 0:
		f.entries[open[0].entry].results[open[0].call] = &r.Result
		f.open[r.CallID] = open[1:]
	case c != nil:
		f.double++
	default:
		f.stray++
	}
}

func (f *folder) compact(c compact, at time.Time) {
	f.repair() // what is still open there will never be answered
	f.state.Repaired = nil
	before := len(f.entries) - f.from
	f.from = len(f.entries)
	for _, m := range c.Messages {
		f.message(m, at, max(before, 1))
	}
}

// repair gives every call of the model that has no result one. It says whether
// the call may have had an effect.
func (f *folder) repair() {
	for i := f.from; i < len(f.entries); i++ {
		e := &f.entries[i]
		for j, c := range e.msg.Calls() {
			if e.results[j] == nil {
				r := f.madeUp(c)
				e.results[j] = &r
				f.state.Repaired = append(f.state.Repaired, r)
			}
		}
	}
	clear(f.open)
}

func (f *folder) madeUp(c *msg.Call) msg.Result {
	r := msg.Result{CallID: c.ID, Name: c.Name, Status: statusError, Code: CodeNotStarted}
	text := CodeNotStarted + ": the session ended before this call was started. It had no effect."
	if rec := f.byID[c.ID]; rec != nil && !rec.Started.IsZero() {
		r.Code = CodeOutcomeUnknown
		text = CodeOutcomeUnknown + ": the session ended while this call ran. It may have had its effect, wholly, in part or not at all: look before you repeat it." + listNested(f.nested[c.ID])
	}
	r.Parts = []msg.Part{msg.TextPart(text)}
	return r
}

// listNested tells which calls a program had made before the end.
func listNested(calls []*CallRecord) string {
	const most = 50
	var b strings.Builder
	for i, c := range calls {
		if i == 0 {
			b.WriteString("\nCalls that it had made:")
		}
		if i == most {
			fmt.Fprintf(&b, "\n- and %d more", len(calls)-most)
			break
		}
		fmt.Fprintf(&b, "\n- %s: %s %s", c.outcome(), c.Name, head(c.Args, 200))
	}
	return b.String()
}

// outcome returns a call's status and code, in words.
func (c *CallRecord) outcome() string {
	if c.Ended.IsZero() {
		return "outcome unknown"
	}
	return strings.TrimSpace(c.Status + " " + c.Code)
}

// head returns at most n bytes of s, and a mark when that is not all.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return prefix(s, n) + "…"
}

// finish returns the State after the last event.
func (f *folder) finish() *State {
	f.repair()
	for _, r := range f.state.Repaired {
		f.note("call %s of %s has no result: %s", r.CallID, r.Name, r.Code)
	}
	if f.stray > 0 {
		f.note("%s no call in the log, skipped", count(f.stray, "result has", "results have"))
	}
	if f.double > 0 {
		f.note("%s to a call that has one already, skipped", count(f.double, "result belongs", "results belong"))
	}
	f.state.Messages = messages(f.entries[f.from:])
	return &f.state
}

// messages writes entries out, the results of each in the order of its calls.
func messages(entries []entry) []msg.Message {
	var out []msg.Message
	for _, e := range entries {
		out = append(out, e.msg)
		if len(e.results) == 0 {
			continue
		}
		m := msg.Message{Role: msg.Tool}
		for _, r := range e.results {
			if r != nil {
				m.Results = append(m.Results, *r)
			}
		}
		out = append(out, m)
	}
	return out
}
