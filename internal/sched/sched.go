// Package sched takes tool calls through their one path: resolve, validate,
// hooks, rules, approval, guards, slot and path locks, the tool's body, hooks
// after, finalizer, output budget, observers. A call that a program makes goes
// through the same path as one that a model makes; there is no other way to run
// a tool. It performs no input or output itself.
package sched

import (
	"context"
	"encoding/json"
	"time"

	"capstan/internal/msg"
	"capstan/internal/tool"
)

// Decision is what a rule, mode, hook or guard says of a call. The larger one
// is the stricter one.
type Decision int

// The decisions.
const (
	Abstain Decision = iota // no opinion
	Allow
	Ask
	Deny
)

// A Request is one call as the stages before its body see it. Call and Entry
// are what a person approves: the canonical arguments and the definition under
// which the call will run. Neither may be changed.
type Request struct {
	Call   *tool.Call // without its token
	Entry  *tool.Entry
	Access tool.Access
}

// A Verdict is a Decision and why.
type Verdict struct {
	Decision   Decision
	Reason     string // for the model and the person: what is asked or refused, and why
	By         string // the rule, mode or hook that decided, for `tools why`
	Suggestion string // what would allow it: a flag, a mode, a rule
	// Rules are what has to stand in permissions.allow for this very call to run
	// without a question; empty when no rule can do that, or none is needed.
	Rules []string
	// Code is that of the result of a call which is refused for another reason
	// than that it may not run; empty means DENIED. Only with Deny.
	Code string
	// Firm is an Ask that no hook answers with an allow: a deny rule could hold, and
	// nobody can tell before the call runs.
	Firm bool
}

// A Policy holds the rules and the approval mode. Deny beats Ask beats Allow.
type Policy interface {
	Decide(ctx context.Context, r *Request) Verdict
}

// A Question is a call that a person has to decide on. What it holds is what the
// answer is bound to: the call runs with these arguments, under this definition,
// or not at all.
type Question struct {
	Request
	Verdict Verdict
	// Judge asks the policy that wants the question asked once more, for rules and
	// modes change while a question waits. It is that of the caller: a subagent's can
	// be stricter than the session's.
	Judge func(ctx context.Context) Verdict
	// Hooked says that a hook wants the question asked, so that no rule can spare
	// the person the next one.
	Hooked bool
	// Offers are the ways to say "always" to this very thing, as rules that the
	// person sees before they are in force. An approver in front of a surface
	// fills them in; there may be none.
	Offers []Offer
}

// An Offer is one place in which rules would be kept, and the rules.
type Offer struct {
	Layer string   // session, project, local or user
	File  string   // where they would be written; empty when nothing is
	Rules []string // of permissions.allow
}

// A Grant is a rule that a person wants in force from now on.
type Grant struct {
	Layer string // as that of an Offer
	List  string // allow, ask or deny
	Rule  string
}

// An Answer is what the person said.
type Answer struct {
	Allow  bool
	Reason string // with a no: what the model should be told
	By     string // who answered, for the record: "the user at the terminal"
	// Args, when not nil, are arguments to use instead, with a yes. They are
	// validated and judged again; what a rule denies stays denied.
	Args   json.RawMessage
	Grants []Grant
	// Unasked says that there was nobody to ask after all: the no is nobody's.
	Unasked bool
	// Ruled says that rules or the approval mode, which have changed since the
	// question was put, answer it by now. By says which.
	Ruled bool
}

// An Approver puts questions to a person. Approve is called for different calls
// at once; the approver queues them as its surface needs. It returns when ctx
// ends. An error counts as a no.
type Approver interface {
	Approve(ctx context.Context, q *Question) (Answer, error)
}

// A HookVerdict is what a hook says before a call.
type HookVerdict struct {
	Verdict
	Args json.RawMessage // when not nil, arguments to use instead; they are validated again
	// Said is for the model, whatever becomes of the call: it is told beside its
	// result, or beside that of the exec which made it.
	Said []string
}

// A Hook watches calls and can steer them. Before runs in parallel for
// different calls. After runs only when the tool's body ran, and may change the
// result and add to what is Said of it. An error from Before is a denial. A Hook
// may also be an Answerer.
type Hook interface {
	Before(ctx context.Context, r *Request) (HookVerdict, error)
	After(ctx context.Context, r *Request, res *tool.Result) error
}

// An Answerer is a Hook that may answer what would be put to a person: it is asked
// first, also when there is nobody else to ask. Abstain and Ask leave the question
// to the person; an allow never overrules a deny, also not one that the rules say
// of arguments which it rewrote. An error is a denial.
type Answerer interface {
	Answer(ctx context.Context, q *Question) (HookVerdict, error)
}

// A Guard can only deny, with the reason it returns, or abstain with "". It is
// asked last, after the person.
type Guard func(ctx context.Context, r *Request) string

// EventKind says what happened to a call.
type EventKind string

// The events of a call. A call that is refused before it is admitted has only
// Settled; every call has exactly one Settled, and at most one of each other
// kind but Progress.
const (
	Started  EventKind = "started"  // resolved and valid; hooks, rules and the person come next
	Waiting  EventKind = "waiting"  // for a person's answer
	Decided  EventKind = "decided"  // Decided says whether it may run, and who said so; not of a call that was cancelled before
	Running  EventKind = "running"  // its body begins
	Progress EventKind = "progress" // Part says how far it is
	Settled  EventKind = "settled"  // Result is final
)

// An Event is one step of a call, for traces, surfaces and telemetry.
type Event struct {
	Kind   EventKind
	Time   time.Time
	Call   *tool.Call // without its token
	Notes  []string   // Started: the coercions that made the arguments valid
	Part   msg.Part
	Result *tool.Result
	// Decided is how it was decided whether the call may run.
	Decided *Judgement
}

// A Judgement is how it was decided whether a call may run: all that an audit
// has to know (S0-165). Of the stages those that were not reached are zero.
type Judgement struct {
	Allowed bool
	// Stage is what had the last word: hook, rules, person, guard, or nobody
	// when a person would have had to be asked and none could be. Who that was says
	// By; who was asked and answered, whatever came of it, is in Answer.
	Stage   string
	Hook    Verdict // of the hooks together
	Rules   Verdict // of rules and mode
	Asked   *Question
	Answer  *Answer
	Waited  time.Duration // for the answer
	Reason  string        // with a no: why, as the model is told
	Changed bool          // a hook or the person rewrote the arguments
}

// By is who or what had the last word: the rule or mode, the hook, or the person.
// It is empty where the stage has no name for it, as for a guard.
func (j *Judgement) By() string {
	switch j.Stage {
	case StageHook:
		return j.Hook.By
	case StageRules:
		if j.Answer != nil && j.Answer.Ruled && j.Answer.By != "" {
			return j.Answer.By
		}
		return j.Rules.By
	case StageNobody: // who wanted somebody asked
		if j.Hook.Decision == Ask && j.Rules.Decision != Ask {
			return j.Hook.By
		}
		return j.Rules.By
	case StagePerson:
		if j.Answer != nil {
			return j.Answer.By
		}
	}
	return ""
}

// AnsweredBy is who answered the question, if it was a person that did. They need not
// have had the last word.
func (j *Judgement) AnsweredBy() string {
	if j.Answer == nil || j.Answer.Ruled || j.Answer.Unasked {
		return ""
	}
	return j.Answer.By
}

// Stages of a Judgement.
const (
	StageHook   = "hook"
	StageRules  = "rules"
	StagePerson = "person"
	StageNobody = "nobody"
	StageGuard  = "guard"
)

// Options configure a Runtime. The zero value allows everything, asks nobody
// and keeps ten slots.
type Options struct {
	Policy   Policy
	Approver Approver // nil: nobody can be asked, so an ask is a denial
	Hooks    []Hook
	Guards   []Guard
	// Begin, when not nil, is the last thing before a body, after the slot and
	// the paths: where a session records that the call starts. It is called for
	// different calls at once and may take a while. An error means that the body
	// is not run: the result is TOOL_NOT_STARTED with the error's text, and hooks
	// after do not run. It must not start calls.
	Begin func(ctx context.Context, r *Request) error
	// Observe gets every event, one at a time, in the order they happened. It
	// must be quick and must not start calls.
	Observe func(Event)
	Slots   int // how many bodies run at once; 0 means 10
	// ModelChars is the output budget of a result that a model reads, in
	// characters; 0 means 30,000. NestedBytes is that of a result which a
	// program gets, in bytes; 0 means 16 MiB, which is also the most. Of that,
	// the message of a failure has at most 1 MiB.
	ModelChars, NestedBytes int
	// Spill keeps the whole of a text that is cut and returns the path of the
	// file. Nil or an error: the result says that the rest is lost.
	Spill func(callID, text string) (path string, err error)
	// Grace is how long a body may ignore its context before it is given up
	// on; 0 means 5 s.
	Grace time.Duration
}
