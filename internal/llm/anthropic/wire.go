package anthropic

import (
	"encoding/json"

	"capstan/internal/llm"
	"capstan/internal/msg"
)

// The wire, out and in.

type wireRequest struct {
	Model        string        `json:"model"`
	MaxTokens    int           `json:"max_tokens"`
	System       []*wireBlock  `json:"system,omitempty"`
	Tools        []any         `json:"tools,omitempty"` // *wireTool, or a hosted tool as it is
	ToolChoice   *wireChoice   `json:"tool_choice,omitempty"`
	Messages     []wireMessage `json:"messages"`
	Thinking     *wireThinking `json:"thinking,omitempty"`
	OutputConfig *wireOutput   `json:"output_config,omitempty"`
	Temperature  *float64      `json:"temperature,omitempty"`
	TopP         *float64      `json:"top_p,omitempty"`
	Stop         []string      `json:"stop_sequences,omitempty"`
	Stream       bool          `json:"stream"`
}

type wireChoice struct {
	Type string `json:"type"`
}

type wireThinking struct {
	Type    string `json:"type"`
	Budget  int    `json:"budget_tokens,omitempty"`
	Display string `json:"display,omitempty"`
}

type wireOutput struct {
	Effort string      `json:"effort,omitempty"`
	Format *wireFormat `json:"format,omitempty"`
}

type wireFormat struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

type wireTool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema"`
	CacheControl *wireCache      `json:"cache_control,omitempty"`
}

type wireCache struct {
	Type string `json:"type"`
}

type wireMessage struct {
	Role    string `json:"role"`
	Content []any  `json:"content"` // *wireBlock, or json.RawMessage as it came
}

// wireBlock is a block of content that we write.
type wireBlock struct {
	Type         string            `json:"type"`
	Text         *string           `json:"text,omitempty"`
	Citations    []json.RawMessage `json:"citations,omitempty"`
	Thinking     *string           `json:"thinking,omitempty"`
	Signature    *string           `json:"signature,omitempty"`
	Data         string            `json:"data,omitempty"`
	ID           string            `json:"id,omitempty"`
	Name         string            `json:"name,omitempty"`
	Input        json.RawMessage   `json:"input,omitempty"`
	Caller       json.RawMessage   `json:"caller,omitempty"`
	ToolUseID    string            `json:"tool_use_id,omitempty"`
	Content      any               `json:"content,omitempty"` // a string or []*wireBlock
	IsError      bool              `json:"is_error,omitempty"`
	Source       *wireSource       `json:"source,omitempty"`
	Title        string            `json:"title,omitempty"`
	CacheControl *wireCache        `json:"cache_control,omitempty"`
}

type wireSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"` // base64 in JSON
}

// state is what is kept with a part, because the API wants it back.
type state struct {
	Signature string            `json:"signature,omitempty"` // of thinking
	Redacted  string            `json:"redacted,omitempty"`  // thinking that nobody may read
	Citations []json.RawMessage `json:"citations,omitempty"` // of text
	Block     json.RawMessage   `json:"block,omitempty"`     // of a tool that the API runs, whole
	Caller    json.RawMessage   `json:"caller,omitempty"`    // of a call
}

// event is an event of a stream. In a whole answer, which is a message, it is
// the message.
type event struct {
	Type         string          `json:"type"`
	Index        *llm.Loose      `json:"index"`
	Message      *message        `json:"message"`
	ContentBlock json.RawMessage `json:"content_block"`
	Delta        delta           `json:"delta"`
	Usage        *usage          `json:"usage"`
	Error        json.RawMessage `json:"error"`
}

// rawList is a list that is not too long.
type rawList []json.RawMessage

func (l *rawList) UnmarshalJSON(raw []byte) error {
	return llm.List(raw, llm.MaxPieces, (*[]json.RawMessage)(l))
}

type message struct {
	Content     rawList      `json:"content"`
	StopReason  llm.Loose    `json:"stop_reason"`
	StopDetails *stopDetails `json:"stop_details"`
	Usage       *usage       `json:"usage"`
}

type delta struct {
	Type        string          `json:"type"`
	Text        llm.Piece       `json:"text"`
	Thinking    llm.Piece       `json:"thinking"`
	Signature   llm.Piece       `json:"signature"`
	PartialJSON llm.Piece       `json:"partial_json"`
	Citation    json.RawMessage `json:"citation"`
	StopReason  llm.Loose       `json:"stop_reason"`
	StopDetails *stopDetails    `json:"stop_details"`
}

// stopDetails is why a model declined.
type stopDetails struct {
	Category    llm.Loose `json:"category"`
	Explanation llm.Loose `json:"explanation"`
}

// blockStart is the beginning of a block; of some all there is of it.
type blockStart struct {
	Type      string          `json:"type"`
	Text      llm.Piece       `json:"text"`
	Citations rawList         `json:"citations"`
	Thinking  llm.Piece       `json:"thinking"`
	Signature llm.Piece       `json:"signature"`
	Data      llm.Loose       `json:"data"`
	ID        llm.Loose       `json:"id"`
	Name      llm.Loose       `json:"name"`
	Input     llm.Piece       `json:"input"`
	Caller    json.RawMessage `json:"caller"`
}

// usage counts each kind of input by itself: the whole prompt is their sum.
type usage struct {
	Input   llm.Count `json:"input_tokens"`
	Created llm.Count `json:"cache_creation_input_tokens"`
	Read    llm.Count `json:"cache_read_input_tokens"`
	Output  llm.Count `json:"output_tokens"`
	Details *struct {
		Thinking llm.Count `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

func (u *usage) words() msg.Usage {
	out := msg.Usage{Input: int(u.Input + u.Created + u.Read), Cached: int(u.Read), CacheWrite: int(u.Created), Output: int(u.Output)}
	if u.Details != nil {
		out.Reasoning = int(u.Details.Thinking)
	}
	return out
}
