package msg

// Role says who speaks.
type Role string

// The roles. A system prompt is no message: it belongs to a request.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool" // the results of calls
)

// A Message is one step of a conversation, as it is kept in a session's log.
// Nothing is ever removed from it or made up in it to please an API; package
// llm makes what is sent valid.
type Message struct {
	Role Role `json:"role"`
	// Parts are in the order in which they came. Of the assistant, reasoning
	// and calls are among them.
	Parts []Part `json:"parts,omitempty"`
	// Results answer calls of an earlier message of the assistant; Role Tool.
	// The results of one turn may come in one message or in several.
	Results []Result `json:"results,omitempty"`
	// Origin is the FAMILY/MODEL that wrote a message of the assistant. The
	// State of its parts is of use to that origin alone.
	Origin string `json:"origin,omitempty"`
}

// Calls returns the calls that the message makes, in order.
func (m *Message) Calls() []*Call {
	var calls []*Call
	for i := range m.Parts {
		if m.Parts[i].Kind == CallPart && m.Parts[i].Call != nil {
			calls = append(calls, m.Parts[i].Call)
		}
	}
	return calls
}

// Text returns what the message says: its text parts, without reasoning.
func (m *Message) Text() string { return JoinText(m.Parts) }

// A Call is a tool call as a model made it.
type Call struct {
	ID   string `json:"id"`   // unique within the conversation, not what the provider sent
	Name string `json:"name"` // the tool's canonical name, or whatever the model wrote
	// Args is the text that the model wrote. It is kept letter for letter and
	// need not be JSON (ruling 14); whoever runs the call parses it strictly.
	Args string `json:"args"`
	// Fault, when not empty, says to the model why the call cannot be run: its
	// arguments were cut off by the token limit, for example. Such a call is
	// answered with INVALID_ARGS and this text, and never run.
	Fault string `json:"fault,omitempty"`
}

// A Result is the one answer to a call, as the model gets to read it. Status
// and Code are those of package tool.
type Result struct {
	CallID string `json:"callId"`
	Name   string `json:"name,omitempty"`
	Status string `json:"status"` // success, error, denied or cancelled
	Code   string `json:"code,omitempty"`
	Parts  []Part `json:"parts,omitempty"`
}

// Failed reports whether the call did not succeed.
func (r *Result) Failed() bool { return r.Status != "" && r.Status != "success" }

// Usage counts the tokens of one request. Zero means none, or not told.
type Usage struct {
	Input      int `json:"input"`                // the whole prompt, cached or not
	Cached     int `json:"cached,omitempty"`     // of Input, read from the provider's cache
	CacheWrite int `json:"cacheWrite,omitempty"` // of Input, written to the cache
	Output     int `json:"output"`               // all that the model wrote, reasoning too
	Reasoning  int `json:"reasoning,omitempty"`  // of Output
}

// Add adds o to u.
func (u *Usage) Add(o Usage) {
	u.Input += o.Input
	u.Cached += o.Cached
	u.CacheWrite += o.CacheWrite
	u.Output += o.Output
	u.Reasoning += o.Reasoning
}
