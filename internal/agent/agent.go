// Package agent is the loop of a conversation with a model: ask, run the calls
// that it makes, show it the results, until it is done (S3-002). It owns the
// conversation's history, its limits, the detection of loops, and the prompt.
//
// It is no surface: what happens goes out as events, and who shows them, and
// how a person is asked, others decide. It runs no tool itself: each turn's
// calls go to package sched as one batch. It reads no settings and no
// environment.
package agent

import (
	"context"
	"encoding/json"
	"time"

	"capstan/internal/llm"
	"capstan/internal/msg"
	"capstan/internal/sched"
	"capstan/internal/session"
	"capstan/internal/tool"
)

// Options say what conversation to lead.
type Options struct {
	Provider llm.Provider
	Family   string // of the provider; with Model the origin of what it writes
	Model    string // the provider's own name for it
	// System returns the system prompt. It is asked before each request, and
	// should return the same bytes as long as nothing changed: providers cache
	// what requests begin with.
	System func() string
	// View returns what the model may see and call now.
	View func() *tool.View
	// Declared returns the view whose declarations the model is sent, when that is
	// another one: a fork is sent those of its lead, byte for byte, so that the
	// provider's cache holds. What may be called, View says alone.
	Declared func() *tool.View
	// Team are the subagents that the model may start: its tools are in the
	// registry behind View. Nil: it has none.
	Team *Team
	// Await is called before the calls of an answer are made, to wait for what
	// they need to be there; it may put a Fault into one whose tool will not be.
	// It returns when ctx ends at the latest. Nil waits for nothing.
	Await func(ctx context.Context, calls []tool.Call)
	// Hosted are tools that the provider runs itself, in its API's words. They
	// are declared in every mode: no call of theirs comes to us (ruling 19).
	Hosted []json.RawMessage
	// Sched configures the Runtime that New makes. The agent puts itself before
	// the Policy, Observe and Begin that are set here, and calls them.
	Sched sched.Options
	// Log records the session; nil records nothing. An event that cannot be
	// recorded ends the run, because nothing may be relied on that a restart
	// would not know.
	Log *session.Log
	// History is the conversation so far, of a resumed session.
	History []msg.Message
	Limits  Limits
	Hooks   Hooks // of the user's, at the points of a run
	// Structured is the schema of the answer when the run must end with a call
	// of structured_output; nil when its text is the answer.
	Structured json.RawMessage
	// ReadStructured returns the structured answer that a text is, if it is one:
	// then it is the answer without a call. Nil: no text is.
	ReadStructured func(text string) (json.RawMessage, bool)

	MaxTokens   int      // of one answer; 0: the API's default
	Temperature *float64 // nil: the API's default
	Effort      string   // of reasoning

	// Emit gets what happens, one event at a time, in order. It must return
	// soon and must not call the agent. Nil is fine.
	Emit func(Event)
}

// Limits end a run that goes on for too long. Zero means no limit.
type Limits struct {
	Turns  int           // answers of the model, over one Run
	Calls  int           // calls, exec and those that it makes each one (ruling 12); the next one is not run
	Tokens int           // input and output together, cached input too; estimated when the provider does not report them
	Wall   time.Duration // of one Run, waiting for people included
}

// Reason says why a run ended.
type Reason string

// The reasons.
const (
	Finished    Reason = "finished"
	MaxTurns    Reason = "max_turns"
	MaxCalls    Reason = "max_calls"
	MaxTokens   Reason = "max_tokens"
	MaxWall     Reason = "max_wall_time"
	Interrupted Reason = "interrupted" // the context given to Run ended
	Loop        Reason = "loop"        // the model repeats itself and was told in vain
	NoAnswer    Reason = "no_answer"   // empty answers, or no structured one, after a nudge
	Hooked      Reason = "hook"        // a hook blocked the prompt or ended the run
	Failed      Reason = "failed"      // Outcome.Err says why: the provider or the session log
)

// An Outcome is how a run ended.
type Outcome struct {
	Reason Reason
	Err    error // set unless Reason is Finished; says what to do
	// Text is that of the last answer, without reasoning. After an
	// interruption it is what had arrived.
	Text string
	// Finish is why the last answer ended: llm.FinishLength when it was cut by the
	// limit of output tokens; empty when it is not whole.
	Finish llm.Finish
	// Structured is the answer when Options.Structured was set and it was given.
	Structured json.RawMessage
	Turns      int
	Calls      int       // that were made, nested and denied ones too; not those beyond the limit
	Usage      msg.Usage // subagents' too, like Calls and Denials
	Denials    []Denial  // at most 1,000, in the order of the calls; not those of the limit of calls
	Elapsed    time.Duration
	Waiting    time.Duration // of Elapsed, for the provider, retries included
}

// A Denial is a call that was not allowed.
type Denial struct {
	Name, CallID string
	Args         json.RawMessage // nil when there are too many
	Reason       string
	Unasked      bool // only because nobody could be asked
}

// An Event is one of Asked, Streamed, Answered, Called, Observed, Noticed,
// Delegated and Ended.
type Event interface{ event() }

// Asked: a request is about to be sent to the model.
type Asked struct {
	PromptID string // unique in the session (S3-017)
	Turn     int    // of this run; 1 is the first
}

// Streamed is an event of the answer as it arrives. After an llm.Retry
// everything since Asked is void. An llm.Warning is told here only, not Noticed.
type Streamed struct {
	PromptID string
	Event    llm.Event
}

// Answered: the model's message is recorded, and its calls come next. Finish is
// empty when the answer was cut short by an interruption or a failure: Message
// is what had arrived, and its calls are not run.
type Answered struct {
	PromptID string
	Message  msg.Message
	Usage    msg.Usage // of this request
	Finish   llm.Finish
}

// Called is a step of a call, nested ones included (Call.ParentID).
type Called struct {
	Event sched.Event
	// Result is how a call settled, as the model reads it; nil before that.
	// It comes at once: that of a batch as a whole is Observed when its last call
	// has settled.
	Result *msg.Result
}

// Observed: results, or a message of the user's (queued, or a nudge of the
// agent's own) were added to the history.
type Observed struct{ Message msg.Message }

// Noticed is something that a person should know.
type Noticed struct{ Text string }

// Delegated is what happens in a subagent. Its calls come as Called instead,
// since they are calls of the session: those of its model have as ParentID the
// call that it works for.
type Delegated struct {
	Agent string // its id
	Kind  string
	Call  string // the call that it works for
	Event Event
}

// Ended: the run is over.
type Ended struct{ Outcome *Outcome }

func (Asked) event()     {}
func (Streamed) event()  {}
func (Answered) event()  {}
func (Called) event()    {}
func (Observed) event()  {}
func (Noticed) event()   {}
func (Delegated) event() {}
func (Ended) event()     {}
