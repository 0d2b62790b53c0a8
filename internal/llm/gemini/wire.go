package gemini

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"capstan/internal/llm"
	"capstan/internal/msg"
)

// The wire, out and in. contents stands last in a request, so that a longer
// conversation begins with the same bytes.

type wireRequest struct {
	SystemInstruction *wireContent    `json:"systemInstruction,omitempty"`
	Tools             []any           `json:"tools,omitempty"`
	ToolConfig        *wireToolConfig `json:"toolConfig,omitempty"`
	GenerationConfig  *wireGeneration `json:"generationConfig,omitempty"`
	Contents          []wireContent   `json:"contents"`
}

type wireToolConfig struct {
	FunctionCallingConfig *wireCalling `json:"functionCallingConfig,omitempty"`
	// Without it the API refuses hosted tools beside functions.
	IncludeServerSideToolInvocations bool `json:"includeServerSideToolInvocations,omitempty"`
}

type wireCalling struct {
	Mode string `json:"mode"`
}

type wireGeneration struct {
	MaxOutputTokens  int             `json:"maxOutputTokens,omitempty"`
	Temperature      *float64        `json:"temperature,omitempty"`
	TopP             *float64        `json:"topP,omitempty"`
	StopSequences    []string        `json:"stopSequences,omitempty"`
	ResponseMIMEType string          `json:"responseMimeType,omitempty"`
	ResponseSchema   json.RawMessage `json:"responseSchema,omitempty"`
	ThinkingConfig   *wireThinking   `json:"thinkingConfig,omitempty"`
}

type wireThinking struct {
	IncludeThoughts bool   `json:"includeThoughts,omitempty"`
	ThinkingLevel   string `json:"thinkingLevel,omitempty"`
	ThinkingBudget  *int   `json:"thinkingBudget,omitempty"`
}

type wireTool struct {
	FunctionDeclarations []wireDeclaration `json:"functionDeclarations"`
}

type wireDeclaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

type wireContent struct {
	Role  string     `json:"role,omitempty"`
	Parts []wirePart `json:"parts"`
}

type wirePart struct {
	Thought          bool          `json:"thought,omitempty"`
	Text             *string       `json:"text,omitempty"`
	InlineData       *wireBlob     `json:"inlineData,omitempty"`
	FunctionCall     *wireCall     `json:"functionCall,omitempty"`
	FunctionResponse *wireResponse `json:"functionResponse,omitempty"`
	*hosted
	ThoughtSignature string `json:"thoughtSignature,omitempty"`
}

// hosted are the parts about tools that the provider runs itself. They are not
// looked into, and go back as they came.
type hosted struct {
	ExecutableCode      json.RawMessage `json:"executableCode,omitempty"`
	CodeExecutionResult json.RawMessage `json:"codeExecutionResult,omitempty"`
	ToolCall            json.RawMessage `json:"toolCall,omitempty"`
	ToolResponse        json.RawMessage `json:"toolResponse,omitempty"`
}

// size is how many bytes they have; 0 when the part is none of them.
func (h *hosted) size() int {
	return len(h.ExecutableCode) + len(h.CodeExecutionResult) + len(h.ToolCall) + len(h.ToolResponse)
}

type wireBlob struct {
	MIMEType string `json:"mimeType"`
	Data     []byte `json:"data"`
}

type wireCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type wireResponse struct {
	ID       string     `json:"id,omitempty"`
	Name     string     `json:"name"`
	Response wireOutput `json:"response"`
	Parts    []wirePart `json:"parts,omitempty"` // inlineData only
}

// wireOutput has one of the two keys by which the API tells success from failure.
type wireOutput struct {
	Output *string `json:"output,omitempty"`
	Error  *string `json:"error,omitempty"`
}

// state is what a part of ours keeps for the API: the signature that came with
// it, or a part about a hosted tool. A signature alone is kept as a JSON string.
type state struct {
	hosted
	ThoughtSignature string `json:"thoughtSignature,omitempty"`
	// From is where the signed part begins in the text of ours, in bytes: the
	// pieces of a stream are one text to us, and several parts to the API,
	// which says that a part with a signature must not be joined with one
	// without.
	From int `json:"from,omitempty"`
}

func (s state) json() (json.RawMessage, error) {
	if s.From == 0 && s.size() == 0 {
		return json.Marshal(s.ThoughtSignature)
	}
	return json.Marshal(s)
}

// readState reads what a session kept. Whatever is not of our making is as if
// it were not there: the API would refuse the request for it, for ever.
func readState(raw json.RawMessage) state {
	var s state
	switch {
	case len(raw) < 2:
	case raw[0] == '"' && raw[len(raw)-1] == '"':
		s.ThoughtSignature = string(raw[1 : len(raw)-1])
	default:
		if json.Unmarshal(raw, &s) != nil {
			return state{}
		}
	}
	if !isBase64(s.ThoughtSignature) {
		s.ThoughtSignature = ""
	}
	return s
}

// isBase64 reports whether a string has only the letters of base64, of either
// alphabet.
func isBase64(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("+/-_=", c) >= 0) {
			return false
		}
	}
	return true
}

// chunk is an event of a stream, and also a whole answer.
type chunk struct {
	Error          json.RawMessage `json:"error"`
	Candidates     candidates      `json:"candidates"`
	PromptFeedback *struct {
		BlockReason        llm.Loose `json:"blockReason"`
		BlockReasonMessage llm.Loose `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	UsageMetadata *usage `json:"usageMetadata"`
}

// candidates are the answers, of which one is asked for.
type candidates []candidate

func (c *candidates) UnmarshalJSON(raw []byte) error { return llm.List(raw, 16, (*[]candidate)(c)) }

// parts is a list that is not too long.
type parts []part

func (p *parts) UnmarshalJSON(raw []byte) error { return llm.List(raw, llm.MaxPieces, (*[]part)(p)) }

type candidate struct {
	Index   llm.Count `json:"index"`
	Content struct {
		Parts parts `json:"parts"`
	} `json:"content"`
	FinishReason  llm.Loose `json:"finishReason"`
	FinishMessage llm.Loose `json:"finishMessage"`
}

type part struct {
	Text         *llm.Piece `json:"text"`
	Thought      bool       `json:"thought"`
	InlineData   *blob      `json:"inlineData"`
	FunctionCall *struct {
		ID   llm.Loose `json:"id"`
		Name llm.Loose `json:"name"`
		Args llm.Piece `json:"args"` // an object; a proxy may send it as a string
	} `json:"functionCall"`
	hosted
	ThoughtSignature llm.Loose `json:"thoughtSignature"`
}

// blob is inline data, in either alphabet of base64.
type blob struct {
	MIMEType llm.Loose
	Data     []byte
}

func (b *blob) UnmarshalJSON(raw []byte) error {
	var wire struct {
		MIMEType llm.Loose `json:"mimeType"`
		Data     string    `json:"data"`
	}
	if err := json.Unmarshal(raw, &wire); err != nil {
		return err
	}
	text := strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(wire.Data), "=")
	data, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return fmt.Errorf("inline data: %w", err)
	}
	b.MIMEType, b.Data = wire.MIMEType, data
	return nil
}

type usage struct {
	Prompt     llm.Count `json:"promptTokenCount"`
	ToolPrompt llm.Count `json:"toolUsePromptTokenCount"` // what hosted tools put in
	Cached     llm.Count `json:"cachedContentTokenCount"` // of Prompt
	Candidates llm.Count `json:"candidatesTokenCount"`
	Thoughts   llm.Count `json:"thoughtsTokenCount"` // beside Candidates
}

// add takes what a later chunk says; a count that it leaves out stays.
func (u *usage) add(o usage) {
	u.Prompt, u.ToolPrompt, u.Cached = max(u.Prompt, o.Prompt), max(u.ToolPrompt, o.ToolPrompt), max(u.Cached, o.Cached)
	u.Candidates, u.Thoughts = max(u.Candidates, o.Candidates), max(u.Thoughts, o.Thoughts)
}

func (u *usage) words() msg.Usage {
	return msg.Usage{
		Input: int(u.Prompt + u.ToolPrompt), Cached: int(u.Cached),
		Output: int(u.Candidates + u.Thoughts), Reasoning: int(u.Thoughts),
	}
}
