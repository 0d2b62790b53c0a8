package openai

import (
	"encoding/json"

	"capstan/internal/llm"
	"capstan/internal/msg"
)

// The wire, out and in. What goes out is written in one way; what comes in is
// taken in every way that servers are known to write it.

type wireRequest struct {
	Model               string           `json:"model"`
	Messages            []wireMessage    `json:"messages"`
	Tools               []any            `json:"tools,omitempty"`
	ToolChoice          string           `json:"tool_choice,omitempty"`
	ResponseFormat      any              `json:"response_format,omitempty"`
	MaxTokens           int              `json:"max_tokens,omitempty"`
	MaxCompletionTokens int              `json:"max_completion_tokens,omitempty"`
	Temperature         *float64         `json:"temperature,omitempty"`
	TopP                *float64         `json:"top_p,omitempty"`
	Stop                []string         `json:"stop,omitempty"`
	ReasoningEffort     string           `json:"reasoning_effort,omitempty"`
	Reasoning           *wireEffort      `json:"reasoning,omitempty"`
	PromptCacheKey      string           `json:"prompt_cache_key,omitempty"`
	Stream              bool             `json:"stream"`
	StreamOptions       *wireStreamUsage `json:"stream_options,omitempty"`
}

type wireEffort struct {
	Effort string `json:"effort"`
}

type wireStreamUsage struct {
	IncludeUsage bool `json:"include_usage"`
}

type wireMessage struct {
	Role             string          `json:"role"`
	Content          any             `json:"content"` // a string, []wirePart, or nil beside calls
	ReasoningContent *string         `json:"reasoning_content,omitempty"`
	Reasoning        string          `json:"reasoning,omitempty"`
	ReasoningDetails json.RawMessage `json:"reasoning_details,omitempty"`
	ToolCalls        []wireCall      `json:"tool_calls,omitempty"`
	ToolCallID       string          `json:"tool_call_id,omitempty"`
}

type wirePart struct {
	Type         string     `json:"type"`
	Text         string     `json:"text,omitempty"`
	ImageURL     *wireURL   `json:"image_url,omitempty"`
	InputAudio   *wireAudio `json:"input_audio,omitempty"`
	File         *wireFile  `json:"file,omitempty"`
	CacheControl *wireCache `json:"cache_control,omitempty"`
}

type wireURL struct {
	URL string `json:"url"`
}

type wireAudio struct {
	Data   string `json:"data"`
	Format string `json:"format"`
}

type wireFile struct {
	Filename string `json:"filename"`
	FileData string `json:"file_data"`
}

type wireCache struct {
	Type string `json:"type"`
}

type wireCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type wireTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// chunk is an event of a stream, and also a whole answer, where message stands
// for delta.
type chunk struct {
	Error   json.RawMessage `json:"error"`
	Choices choices         `json:"choices"`
	Usage   *usage          `json:"usage"`
	XGroq   *struct {
		Usage *usage `json:"usage"`
	} `json:"x_groq"`
}

// choices are the answers, of which one is asked for.
type choices []choice

func (c *choices) UnmarshalJSON(raw []byte) error { return llm.List(raw, 16, (*[]choice)(c)) }

type choice struct {
	Index        llm.Count `json:"index"`
	Delta        delta     `json:"delta"`
	Message      *delta    `json:"message"`
	FinishReason llm.Loose `json:"finish_reason"`
	Usage        *usage    `json:"usage"` // Moonshot puts it here
}

// rawList is a list that is not too long.
type rawList []json.RawMessage

func (l *rawList) UnmarshalJSON(raw []byte) error {
	return llm.List(raw, llm.MaxPieces, (*[]json.RawMessage)(l))
}

type delta struct {
	Content          content    `json:"content"`
	ReasoningContent llm.Piece  `json:"reasoning_content"`
	Reasoning        llm.Piece  `json:"reasoning"`
	ReasoningDetails rawList    `json:"reasoning_details"`
	Refusal          llm.Piece  `json:"refusal"`
	ToolCalls        callDeltas `json:"tool_calls"`
}

// content is a string, or a list of blocks, of which some think.
type content struct {
	text    []byte
	thought []byte
}

func (c *content) UnmarshalJSON(raw []byte) error {
	c.text, c.thought = nil, nil
	var p llm.Piece
	_ = p.UnmarshalJSON(raw) // never fails
	if !p.Whole {
		c.text = p.Text
		return nil
	}
	type block struct {
		Type     string          `json:"type"`
		Text     llm.Piece       `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	var blocks []block
	if llm.List(raw, llm.MaxPieces, &blocks) != nil {
		return nil // nothing that could be shown
	}
	for _, b := range blocks {
		c.text = append(c.text, b.Text.Text...)
		var inner []block
		if len(b.Thinking) > 0 && llm.List(b.Thinking, llm.MaxPieces, &inner) == nil {
			for _, t := range inner {
				c.thought = append(c.thought, t.Text.Text...)
			}
		}
	}
	return nil
}

type usage struct {
	PromptTokens     llm.Count `json:"prompt_tokens"`
	CompletionTokens llm.Count `json:"completion_tokens"`
	CacheHit         llm.Count `json:"prompt_cache_hit_tokens"` // DeepSeek
	CachedTokens     llm.Count `json:"cached_tokens"`           // Moonshot
	PromptDetails    *struct {
		CachedTokens     llm.Count `json:"cached_tokens"`
		CacheWriteTokens llm.Count `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails *struct {
		ReasoningTokens llm.Count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

func (u *usage) words() msg.Usage {
	out := msg.Usage{Input: int(u.PromptTokens), Output: int(u.CompletionTokens), Cached: int(max(u.CacheHit, u.CachedTokens))}
	if d := u.PromptDetails; d != nil {
		out.Cached = max(out.Cached, int(d.CachedTokens))
		out.CacheWrite = int(d.CacheWriteTokens)
	}
	if d := u.CompletionDetails; d != nil {
		out.Reasoning = int(d.ReasoningTokens)
	}
	return out
}
