package responses

import (
	"bytes"
	"encoding/json"
	"slices"

	"capstan/internal/llm"
	"capstan/internal/msg"
)

// The wire, out and in. What goes out is written in one way; what comes in is
// taken in every way that servers are known to write it.

type wireRequest struct {
	Model           string         `json:"model"`
	Instructions    string         `json:"instructions,omitempty"`
	Input           []any          `json:"input"` // *wireItem, or an item as it came
	Tools           []any          `json:"tools,omitempty"`
	ToolChoice      string         `json:"tool_choice,omitempty"`
	Text            *wireText      `json:"text,omitempty"`
	Reasoning       *wireReasoning `json:"reasoning,omitempty"`
	Include         []string       `json:"include,omitempty"`
	MaxOutputTokens int            `json:"max_output_tokens,omitempty"`
	Temperature     *float64       `json:"temperature,omitempty"`
	TopP            *float64       `json:"top_p,omitempty"`
	PromptCacheKey  string         `json:"prompt_cache_key,omitempty"`
	Store           bool           `json:"store"` // never
	Stream          bool           `json:"stream"`
}

type wireReasoning struct {
	Effort  string `json:"effort"`
	Summary string `json:"summary,omitempty"`
}

type wireText struct {
	Format wireFormat `json:"format"`
}

type wireFormat struct {
	Type   string          `json:"type"`
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
}

type wireTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

type wireItem struct {
	Type      string `json:"type"`
	Role      string `json:"role,omitempty"`
	Phase     string `json:"phase,omitempty"`
	Content   any    `json:"content,omitempty"` // a string or []wirePart
	CallID    string `json:"call_id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	Output    any    `json:"output,omitempty"` // a string or []wirePart
}

type wirePart struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	Detail   string `json:"detail,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
	Filename string `json:"filename,omitempty"`
	FileData string `json:"file_data,omitempty"`
}

// event is one of a stream, whatever its type.
type event struct {
	Type         llm.Loose       `json:"type"`
	OutputIndex  llm.Loose       `json:"output_index"`
	ItemID       llm.Loose       `json:"item_id"`
	SummaryIndex llm.Loose       `json:"summary_index"`
	ContentIndex llm.Loose       `json:"content_index"`
	Name         llm.Loose       `json:"name"`
	Delta        llm.Piece       `json:"delta"`
	Arguments    llm.Piece       `json:"arguments"`
	Item         *item           `json:"item"`
	Response     *response       `json:"response"`
	Error        json.RawMessage `json:"error"`
}

// response is an answer: the beginning of a stream, its end, or all there is.
type response struct {
	Status     llm.Loose       `json:"status"`
	Error      json.RawMessage `json:"error"`
	Incomplete *struct {
		Reason llm.Loose `json:"reason"`
	} `json:"incomplete_details"`
	Output items  `json:"output"`
	Usage  *usage `json:"usage"`
}

// item is a piece of an answer that is whole, or begins.
type item struct {
	Type      llm.Loose `json:"type"`
	ID        llm.Loose `json:"id"`
	CallID    llm.Loose `json:"call_id"`
	Name      llm.Loose `json:"name"`
	Status    llm.Loose `json:"status"`
	Phase     llm.Loose `json:"phase"`
	Arguments llm.Piece `json:"arguments"`
	Content   parts     `json:"content"`
	Summary   parts     `json:"summary"`
	Result    llm.Loose `json:"result"`        // of a generated image, in base64
	Format    llm.Loose `json:"output_format"` // of the same

	raw json.RawMessage
}

// items is a list that is not too long.
type items []item

func (l *items) UnmarshalJSON(raw []byte) error { return llm.List(raw, maxItems, (*[]item)(l)) }

// UnmarshalJSON keeps the item's own bytes too.
func (i *item) UnmarshalJSON(raw []byte) error {
	type plain item
	*i = item{}
	if err := json.Unmarshal(raw, (*plain)(i)); err != nil {
		return err
	}
	i.raw = bytes.Clone(raw)
	return nil
}

// maxParts bounds the parts of an item.
const maxParts = 1000

// parts is a list of texts, or a single one.
type parts []part

type part struct {
	Text    llm.Piece `json:"text"`
	Refusal llm.Piece `json:"refusal"`
}

// UnmarshalJSON takes what is no list as one text.
func (p *parts) UnmarshalJSON(raw []byte) error {
	*p = nil
	if raw[0] == '[' {
		return llm.List(raw, maxParts, (*[]part)(p))
	}
	var one part
	_ = one.Text.UnmarshalJSON(raw) // never fails
	*p = parts{one}
	return nil
}

// join returns the texts with sep in between.
func (p parts) join(sep string) []byte {
	var out []byte
	for _, x := range p {
		text := append(x.Text.Text, x.Refusal.Text...)
		if len(out) > 0 && len(text) > 0 {
			out = append(out, sep...)
		}
		out = append(out, text...)
	}
	return out
}

// What the State of a part of kind Reasoning begins with: an item that goes
// back. The type comes first and what is encrypted second, so that neither has
// to be looked for.
const (
	reasoningHead = `{"type":"reasoning"`
	encryptedHead = `{"type":"reasoning","encrypted_content":"`
	searchHead    = `{"type":"web_search_call"`
)

// state is the item as it goes back: unchanged, but for its id and for members
// that are null.
func (i *item) state() json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(i.raw, &members) != nil {
		return nil
	}
	for name, v := range members {
		if name == "id" || string(v) == "null" {
			delete(members, name)
		}
	}
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	rank := func(name string) string {
		switch name {
		case "type":
			return "\x00"
		case "encrypted_content":
			return "\x01"
		}
		return "\x02" + name
	}
	slices.SortFunc(names, func(a, b string) int { return bytes.Compare([]byte(rank(a)), []byte(rank(b))) })
	out := []byte{'{'}
	for k, name := range names {
		if k > 0 {
			out = append(out, ',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil
		}
		out = append(append(append(out, key...), ':'), members[name]...)
	}
	var b bytes.Buffer
	if json.Compact(&b, append(out, '}')) != nil {
		return nil
	}
	return bytes.ToValidUTF8(b.Bytes(), []byte("\uFFFD"))
}

// phase is the State of a text: what the model said that it is.
type phase struct {
	Phase string `json:"phase"`
}

func phaseOf(state json.RawMessage) string {
	var p phase
	if state == nil || json.Unmarshal(state, &p) != nil || p.Phase != "commentary" && p.Phase != "final_answer" {
		return ""
	}
	return p.Phase
}

type usage struct {
	InputTokens  llm.Count `json:"input_tokens"`
	OutputTokens llm.Count `json:"output_tokens"`
	InputDetails *struct {
		CachedTokens     llm.Count `json:"cached_tokens"`
		CacheWriteTokens llm.Count `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	OutputDetails *struct {
		ReasoningTokens llm.Count `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

func (u *usage) words() msg.Usage {
	out := msg.Usage{Input: int(u.InputTokens), Output: int(u.OutputTokens)}
	if d := u.InputDetails; d != nil {
		out.Cached, out.CacheWrite = int(d.CachedTokens), int(d.CacheWriteTokens)
	}
	if d := u.OutputDetails; d != nil {
		out.Reasoning = int(d.ReasoningTokens)
	}
	return out
}
