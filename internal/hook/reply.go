package hook

import (
	"encoding/json"
	"fmt"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"capstan/internal/sched"
)

// A reply is what one hook said.
type reply struct {
	decision sched.Decision // of PreToolUse and PermissionRequest
	block    bool           // of the other events
	reason   string
	args     json.RawMessage // updatedInput, in the dialect of the hook
	output   json.RawMessage // in place of the tool's own
	context  string          // for the model
	message  string          // for the person
	halt     bool            // the run is to end
	stop     string          // and why
	notes    []string        // what the person should know of the reply

	plain bool // it printed words where only JSON means something

	err  error // the hook did not answer, or nobody understands what
	gone bool  // it was cancelled, so nobody needs to know
}

// output is the JSON of a hook. Names that it does not know are left out.
type output struct {
	Continue       *bool           `json:"continue"`
	StopReason     string          `json:"stopReason"`
	SuppressOutput bool            `json:"suppressOutput"` // what a hook prints is never shown
	SystemMessage  string          `json:"systemMessage"`
	Decision       string          `json:"decision"`
	Reason         string          `json:"reason"`
	Specific       *specificOutput `json:"hookSpecificOutput"`
}

type specificOutput struct {
	Event    string         `json:"hookEventName"`
	Decision string         `json:"permissionDecision"`
	Reason   string         `json:"permissionDecisionReason"`
	Input    jsontext.Value `json:"updatedInput"`
	Context  string         `json:"additionalContext"`
	Output   jsontext.Value `json:"updatedToolOutput"`
	MCP      jsontext.Value `json:"updatedMCPToolOutput"`
	Answer   *struct {
		Behavior    string         `json:"behavior"`
		Message     string         `json:"message"`
		Input       jsontext.Value `json:"updatedInput"`
		Interrupt   bool           `json:"interrupt"`
		Permissions jsontext.Value `json:"updatedPermissions"`
	} `json:"decision"`
}

// spoken are the events whose hooks may print a context as plain text.
func spoken(ev Event) bool {
	return ev == SessionStart || ev == UserPromptSubmit
}

// judges are the events whose hooks decide on a call.
func judges(ev Event) bool { return ev == PreToolUse || ev == PermissionRequest }

// understand reads what a hook answered without failing.
func understand(ev Event, text string) reply {
	text = strings.TrimSpace(strings.TrimPrefix(text, "\ufeff"))
	if !strings.HasPrefix(text, "{") {
		if spoken(ev) {
			return reply{context: clean(text)}
		}
		return reply{plain: text != ""} // as Claude Code: words for the log
	}
	var out output
	if err := jsonv2.Unmarshal([]byte(text), &out); err != nil {
		return reply{err: fmt.Errorf("its output is not the JSON of a hook: %w", err)}
	}
	if out.Specific != nil && out.Specific.Event != "" && out.Specific.Event != string(ev) {
		return reply{err: fmt.Errorf("its hookSpecificOutput is for %q, and the event is %s", short(out.Specific.Event), ev)}
	}
	r := reply{reason: clean(out.Reason), message: clean(out.SystemMessage)}
	if out.Continue != nil && !*out.Continue {
		r.halt, r.stop = true, clean(out.StopReason)
	}
	r.decide(ev, out.Decision)
	if s := out.Specific; s != nil {
		r.specific(ev, s)
	}
	return r
}

// decide takes a decision in one word.
func (r *reply) decide(ev Event, word string) {
	word = strings.ToLower(strings.TrimSpace(word))
	if !judges(ev) {
		r.block = word == "block" || word == "deny"
		return
	}
	switch word {
	case "", "defer", "passthrough", "undefined":
	case "allow", "approve":
		r.decision = sched.Allow
	case "ask":
		r.decision = sched.Ask
	case "deny", "block":
		r.decision = sched.Deny
	default: // it meant something, and who can say what is asked
		r.decision = sched.Ask
		r.notes = append(r.notes, fmt.Sprintf("says %q, which is no decision (want allow, ask or deny), so it counts as ask", short(word)))
	}
}

func (r *reply) specific(ev Event, s *specificOutput) {
	r.context = clean(s.Context)
	if s.Decision != "" && judges(ev) {
		r.decide(ev, s.Decision)
	}
	if s.Reason != "" {
		r.reason = clean(s.Reason)
	}
	if given(s.Input) && judges(ev) {
		r.args = json.RawMessage(s.Input)
	}
	if ev == PostToolUse {
		if r.output = json.RawMessage(s.Output); !given(s.Output) {
			r.output = json.RawMessage(s.MCP)
		}
		if !given(jsontext.Value(r.output)) {
			r.output = nil
		}
	}
	if a := s.Answer; a != nil && ev == PermissionRequest {
		r.decide(ev, a.Behavior)
		if a.Message != "" {
			r.reason = clean(a.Message)
		}
		if given(a.Input) {
			r.args = json.RawMessage(a.Input)
		}
		if a.Interrupt && r.decision == sched.Deny {
			r.halt, r.stop = true, r.reason
		}
		if given(a.Permissions) {
			r.notes = append(r.notes, "wants to change the rules with updatedPermissions, which has no effect: write them into the settings")
		}
	}
}

func given(v jsontext.Value) bool { return len(v) > 0 && v.Kind() != 'n' }

// blocked is the reply of a hook that exits with code 2.
func blocked(ev Event, reason string) reply {
	r := reply{reason: clean(reason)}
	switch ev {
	case PreToolUse, PermissionRequest:
		r.decision = sched.Deny
	case SessionStart, SessionEnd, Notification, SubagentStart: // nothing to block
		if r.message = r.reason; r.message == "" {
			r.message = "it exited with code 2, which blocks nothing here"
		}
	default:
		r.block = true
	}
	return r
}

// unanswered is the reply that counts for a required hook which failed.
func unanswered(ev Event, h *handler, err error) reply {
	r := reply{reason: fmt.Sprintf("the required hook %s did not answer: %s", h, clean(err.Error()))}
	switch ev {
	case PreToolUse, PermissionRequest:
		r.decision = sched.Deny
	case UserPromptSubmit, SubagentStart, PreCompact:
		r.block = true
	case SessionEnd, Notification: // what it was to see is over
		r.message = r.reason
	default:
		r.halt, r.stop = true, r.reason
	}
	return r
}
