// Package llm is what Capstan knows of language models in general: a request
// and the events of its answer in our own vocabulary, errors that say what to
// do, retries, and the rules that every API has for a history. The packages
// below it speak one wire format each, and no type of theirs leaves them.
//
// It is no agent: it runs no tool, keeps no conversation and decides nothing
// about one. It does not read settings or the environment.
package llm

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"capstan/internal/msg"
)

// A Provider is one endpoint that a model answers at.
type Provider interface {
	// Stream sends r and yields the answer as it arrives. The last pair is
	// either a Done event or an error, which is always an *Error; nothing
	// follows it. No request is made before the sequence is ranged over.
	// Ending the loop or ctx closes the connection before Stream returns.
	//
	// A request that fails is repeated, with a Retry event in between, while
	// that can help and no Call has been yielded. A caller must not act on a
	// Call before Done.
	//
	// r is not changed, and must not be while the sequence is in use.
	Stream(ctx context.Context, r *Request) iter.Seq2[Event, error]
}

// A Request is one question to a model. The zero value of everything but Model
// and Messages means the API's default.
type Request struct {
	Model  string
	System string
	// Messages may be any transcript of ours: interrupted, denied, resumed,
	// from another model. The provider makes what it sends valid.
	Messages []msg.Message
	// Tools are sent in this order and with these names, descriptions and
	// schemas, reduced only where the API takes less.
	Tools  []msg.Declaration
	Choice Choice
	// Hosted are tools that the provider runs itself, in the API's own words.
	// They are sent after Tools (ruling 19).
	Hosted []json.RawMessage
	// Output, when not nil, makes the model answer with JSON of this schema.
	Output *OutputSchema

	MaxTokens   int      // of the answer
	Temperature *float64 // nil: not sent
	TopP        *float64 // nil: not sent
	Stop        []string
	Effort      string // of reasoning: minimal, low, medium, high, …; sent where the API has it

	// PromptID names this request in traces.
	PromptID string
	// CacheKey is the same for all requests of one conversation. It makes the
	// provider mark or route the request so that the common beginning is read
	// from its cache. Empty for a request that nothing like it follows.
	CacheKey string
}

// Choice says whether the model may call tools.
type Choice string

// The choices.
const (
	ChoiceAuto     Choice = ""
	ChoiceNone     Choice = "none" // the tools stay declared, as a history with calls needs
	ChoiceRequired Choice = "required"
)

// An OutputSchema is the form of a structured answer.
type OutputSchema struct {
	Name   string // letters, digits, _ and -, at most 64
	Schema json.RawMessage
}

// An Event is one of Text, Reasoning, State, Media, Progress, Call, Usage,
// Warning, Retry and Done.
type Event interface{ event() }

// Text is a piece of what the model says. It is always valid UTF-8.
type Text struct{ Text string }

// Reasoning is a piece of what the model thinks.
type Reasoning struct{ Text string }

// State is what the provider wants back with a part, see msg.Part. It belongs
// to the part that is being written when that is of this Kind and has no State
// yet, else to a new, empty part of this Kind. It ends the part.
type State struct {
	Kind msg.Kind // Text or Reasoning
	Data json.RawMessage
}

// Media is an image or a sound that the model made.
type Media struct{ Part msg.Part }

// Progress says that a call is being written. It is for people only.
type Progress struct {
	Name  string // empty until it is known
	Bytes int    // of the arguments, so far
}

// Call is a call whose every byte has arrived.
type Call struct {
	Call  msg.Call
	State json.RawMessage // see msg.Part
}

// Usage is the count of tokens so far. A later one replaces it.
type Usage struct{ Usage msg.Usage }

// Warning is something that a person should know: a prompt that the server cut,
// a tool whose name had to be shortened.
type Warning struct{ Text string }

// Retry says that the request failed and will be sent again. What was yielded
// since the beginning is void.
type Retry struct {
	Attempt int // of the request that will follow; the second one is 2
	After   time.Duration
	Err     *Error
}

// Done ends an answer.
type Done struct {
	Finish Finish
	// Leaked: the text seems to hold a call that could not be read and was not
	// made. A caller should ask the model to make it properly.
	Leaked bool
}

// Finish says why an answer ended.
type Finish string

// The reasons to finish.
const (
	FinishStop     Finish = "stop"
	FinishCalls    Finish = "calls"    // the model waits for results
	FinishLength   Finish = "length"   // the limit of tokens; the answer is cut off
	FinishFiltered Finish = "filtered" // refused, or held back by the provider
)

func (Text) event()      {}
func (Reasoning) event() {}
func (State) event()     {}
func (Media) event()     {}
func (Progress) event()  {}
func (Call) event()      {}
func (Usage) event()     {}
func (Warning) event()   {}
func (Retry) event()     {}
func (Done) event()      {}
