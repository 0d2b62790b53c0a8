// Package tool defines what a tool is, the registry that owns the tools, and
// the views that decide who may call which of them from where. It runs
// nothing: package sched takes a call through its path.
package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"capstan/internal/msg"
)

// A Tool is one thing that a model or a program can do. Its Spec is both what
// the model is told and what arguments are checked against, so the two cannot
// drift apart (S3-018, S3-019). Spec is read once, when the tool is registered.
//
// A tool may also implement Accessor, Canonizer, Checker, Finalizer, Describer,
// Documenter and Previewer.
type Tool interface {
	Spec() *Spec
	// Run does the work. The arguments in inv.Call.Args are valid and
	// canonical. A failure of the work itself is a Result made by Fail; an
	// error is for what the tool did not expect and becomes TOOL_FAILED.
	// Run ends soon after ctx does.
	Run(ctx context.Context, inv *Invocation) (Result, error)
}

// A Checker finds in valid arguments what a schema cannot say and what makes the
// call fail whatever the world is like: an address that is none, a path that no
// file can have. It is asked right after validation, so that nobody is asked to
// approve such a call; again when a hook rewrote the arguments. It looks at c.Args
// alone, and must not block. The error is told to the model as INVALID_ARGS; a
// panic counts as one.
type Checker interface{ Check(c *Call) error }

// A Canonizer gives valid arguments the one spelling by which hooks, rules and
// people know them, where several mean the same: a default that is left out, a name
// in other letters. It is asked right after validation, before Check, and again
// when a hook rewrote the arguments. What it returns must be valid, and it must
// return its own results as they are. A panic is a refusal.
type Canonizer interface {
	Canonical(args json.RawMessage) json.RawMessage
}

// An Accessor says what a call would touch. It is asked before hooks and
// approval, again when a hook rewrote the arguments, and must not block or
// change anything. Without it, or when it panics, a call is exclusive
// (S3-058, ruling 8).
type Accessor interface{ Access(c *Call) Access }

// A Finalizer sees the final result of every call that resolved to its tool,
// exactly once, whatever the outcome (ruling 4). It may change the result.
type Finalizer interface {
	Finalize(ctx context.Context, c *Call, r *Result)
}

// A Describer's description depends on what else the view holds; exec is one.
// The result must depend on nothing but the view.
type Describer interface{ Describe(v *View) string }

// A Previewer can show a person what a call would change, as a unified diff,
// before it is approved. It changes nothing, and looks only at what the call was
// judged by.
type Previewer interface {
	Preview(ctx context.Context, c *Call, judged Access) (string, error)
}

// Access is what one call touches.
type Access struct {
	// Overlap is an explicit yes: the call may run beside others of its own
	// model turn or program.
	Overlap bool
	// Reads and Writes are absolute paths with symbolic links resolved (of a
	// file that does not exist yet, its deepest existing ancestor's). Reads
	// are locked shared, Writes exclusive.
	Reads, Writes []string
	// Dir is where the relative paths of a call start that names none of them
	// here, such as a command's; absolute. It is judged, and runs, there.
	Dir string
	// Outside is set by a tool that reaches beyond the paths it names, or
	// cannot say which it touches.
	Outside bool
}

// Within says whether a path of an Access is dir or lies in it. Both are absolute
// and clean, with links resolved; nothing lies in an empty dir.
func Within(dir, path string) bool {
	if dir == "" {
		return false
	}
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// Effect is the worst that a tool can do; policy's approval modes go by it.
type Effect int

// The effects, from unknown to known.
const (
	EffectUnknown Effect = iota // may do anything
	EffectNone                  // changes nothing and reads nothing of the user's
	EffectRead                  // reads the paths that Access names
	EffectWrite                 // writes the paths that Access names
	EffectExec                  // runs the command in its argument "command"
)

// A Spec is the definition of a tool.
type Spec struct {
	Name        string          // canonical and unique, for example mcp__github__get_issue
	Title       string          // for people (displayName)
	Description string          // for the model; what the tool must not be used for belongs here
	Input       json.RawMessage // JSON Schema of the arguments; nil means no arguments
	Output      json.RawMessage // JSON Schema of Result.Data, if it is known
	Class       Class
	Effect      Effect
	Waits       bool // waits for another call, a job or a person, so it holds no slot
	// Closed refuses arguments whose name Input does not have, as
	// additionalProperties false in it would, but is not declared: for tools whose
	// declaration has to be short. A name in other letters is another name, for
	// encoding/json takes it as the same where rules do not.
	Closed   bool
	Deferred bool // found by tool_search instead of being declared
	// Seldom defers a tool in code mode only, where that leaves nothing out but its
	// signature: a program calls it all the same, and what leads to it names it.
	Seldom bool
	Hint   string // search words that the name and description lack
	Server string // the MCP server it comes from; empty for our own
	Short  string // the name that this server gave it, whatever that holds; for search alone
	// Claims are what its server says of it and what a person who has to approve a
	// call should read: short, our own words. They decide nothing.
	Claims []string
}

// Source says who made a call. The executor sets it, from the authority that
// the call carries; what a caller wrote there is overwritten.
type Source string

// The sources of a call.
const (
	FromModel   Source = "model"
	FromProgram Source = "code_mode" // S0-177
)

// A Call is a wish to run a tool.
type Call struct {
	ID   string          // unique among the live calls of its runtime; nested ids begin with their parent's (S0-176)
	Name string          // canonical name
	Args json.RawMessage // as submitted; canonical after validation
	// Fault, when not empty, says to the model why the call as it wrote it
	// cannot be run: its arguments were cut off, for example. The call is
	// refused with INVALID_ARGS and this text (ruling 14).
	Fault string
	// Parent is authority: minted by the executor for one running exec, and
	// nil for every call that a model made. No hook, policy, observer or tool
	// ever gets to see it.
	Parent *Parent
	// Shown is the definition that the model was sent before it made the call; nil
	// when that is not known, and not looked at when a program makes the call or
	// tool_call names it. A call whose tool has another one by now is refused as
	// STALE_TOOL. Like Parent, nobody beyond the executor sees it.
	Shown *Entry
	// ParentID is for traces and people. No decision reads it (ruling 3).
	ParentID string
	// Agent is the subagent that made the call, or whose program did; empty when
	// it is the session's own. The executor sets it, from the Runtime that the
	// call came to.
	Agent  string
	Source Source
}

// A Parent is the token of one running exec. Having one made elsewhere is of
// no use: the executor knows those that it minted by identity.
type Parent struct{ _ byte }

// Status is the outcome of a call in one word.
type Status string

// The statuses, as programs and `exec --json` spell them.
const (
	Success   Status = "success"
	Failed    Status = "error"
	Denied    Status = "denied"
	Cancelled Status = "cancelled"
)

// The stable error codes of a Result.
const (
	CodeUnknownTool    = "UNKNOWN_TOOL"
	CodeInvalidArgs    = "INVALID_ARGS"
	CodeInvalidParent  = "INVALID_PARENT"
	CodeDenied         = "DENIED"
	CodeAbortedBefore  = "ABORTED_BEFORE_DISPATCH"
	CodeAborted        = "ABORTED"
	CodeTimeout        = "TOOL_TIMEOUT"
	CodeFailed         = "TOOL_FAILED"
	CodeStale          = "STALE_TOOL"
	CodeCallLimit      = "CALL_LIMIT"
	CodeOutputLimit    = "OUTPUT_LIMIT"
	CodeNotStarted     = "TOOL_NOT_STARTED"
	CodeOutcomeUnknown = "TOOL_OUTCOME_UNKNOWN"
	CodeProgramError   = "PROGRAM_ERROR"
)

// A Result is the outcome of a call. Its zero value is an empty success.
type Result struct {
	CallID    string
	Name      string          // the tool's true name (S0-256)
	Status    Status          // empty means Success
	Code      string          // one of the Code constants unless Status is Success
	Parts     []msg.Part      // what the caller gets to read
	Data      json.RawMessage // the same as a value, when the tool has one
	Truncated bool            // Parts were cut to a budget
	Uncut     bool            // the tool has bounded its text itself: a model gets the whole
	File      string          // where the whole text lies when it was cut
	Unasked   bool            // denied only because nobody could be asked
	Notes     []string        // what was done to the arguments to make them valid; the executor sets it
	Remarks   []string        // what the tool says beside its result, that it breaks the tool's own schema for example
	// Said is what hooks say of the call to the model that caused it. The executor
	// takes it out: it becomes text of the result that this model reads, which for
	// a nested call is that of its exec.
	Said []string
	// Told are the definitions that the result gives the model whole. The executor
	// takes them out, and remembers them (Reviews) when all calls of the turn have
	// settled: what the same turn holds was written before anybody read this.
	Told    []*Entry
	Display any // for a surface: a diff, a program's outcome; never sent to a model
}

// Text returns a successful Result of one text.
func Text(s string) Result {
	return Result{Status: Success, Parts: []msg.Part{msg.TextPart(s)}}
}

// Fail returns the Result of a call that went wrong. The text says what, where
// and how to mend it.
func Fail(code, format string, a ...any) Result {
	s := Failed
	switch code {
	case CodeDenied:
		s = Denied
	case CodeAborted, CodeAbortedBefore:
		s = Cancelled
	}
	return Result{Status: s, Code: code, Parts: []msg.Part{msg.TextPart(fmt.Sprintf(format, a...))}}
}

// Text returns the text of the result's text parts.
func (r *Result) Text() string { return msg.JoinText(r.Parts) }

// An Invocation is one admitted call on its way through its tool.
type Invocation struct {
	Call *Call
	View *View // the view that admitted the call
	// Access is what the call was judged and locked by: what an Accessor said
	// of the arguments that are in Call. The body touches what it names and
	// nothing else, whatever the names in the arguments mean by now.
	Access Access
	// Progress tells observers how far the call is. It is never nil.
	Progress func(msg.Part)
	// Yield lends the call's slot to other calls while the body waits for a
	// person or a model, and returns what ends that. It never blocks, may be
	// called from any goroutine, several times at once, and does nothing once the
	// call has ended. Order and exclusion within the call's turn or program stay
	// as they are. It is never nil.
	Yield func() (resume func())
	// Dispatch runs calls made by this call. It is nil unless the tool's Class
	// is Gateway. Each result is sent as it settles, in any order, with the
	// index of its call; the channel is closed after the last.
	Dispatch func(ctx context.Context, calls []Call) <-chan Settled
}

// Settled is the result of one call of a batch.
type Settled struct {
	Index int // in the slice that was submitted
	Result
}
