package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"capstan/internal/llm"
	"capstan/internal/msg"
	"capstan/internal/schema"
)

// encode writes the request. The same request always gives the same bytes, as
// long as the endpoint refuses nothing.
func (c *Client) encode(r *llm.Request) ([]byte, *llm.Names, error) {
	if r.Model == "" {
		return nil, nil, c.refuse("no model is named", "name one with --model openai/NAME or the setting \"model\"")
	}
	if len(r.Messages) == 0 {
		return nil, nil, c.refuse("the conversation is empty", "say something first")
	}
	p := c.profile
	if err := c.endpoint.Crowded(r, p.Tools); err != nil {
		return nil, nil, err
	}
	names := llm.NewNames(nameRule, r.Tools, r.Messages)
	system, declared := c.lengths.Fit(r, names)
	w := wireRequest{Model: r.Model, Temperature: r.Temperature, TopP: r.TopP, Stop: r.Stop, Stream: true}
	if !p.NoUsage {
		w.StreamOptions = &wireStreamUsage{true}
	}
	if p.MaxTokens == "max_completion_tokens" {
		w.MaxCompletionTokens = r.MaxTokens
	} else {
		w.MaxTokens = r.MaxTokens
	}
	if p.CacheKey {
		w.PromptCacheKey = llm.CacheKey(r.CacheKey)
	}
	switch {
	case r.Effort == "":
	case p.Effort == EffortField:
		w.ReasoningEffort = r.Effort
	case p.Effort == EffortObject:
		w.Reasoning = &wireEffort{r.Effort}
	}
	var err error
	if w.Tools, err = tools(declared, r.Hosted, names); err != nil {
		return nil, nil, c.refuse(err.Error(), "mend the tool's schema, or leave the tool out")
	}
	if len(w.Tools) > 0 && r.Choice != llm.ChoiceAuto {
		w.ToolChoice = string(r.Choice)
	}
	if r.Output != nil {
		w.ResponseFormat, system = p.output(r.Output, system)
	}
	w.Messages = c.messages(r, system, names)
	if p.CacheMarks && r.CacheKey != "" {
		mark(w.Messages)
	}
	body, err := llm.Body(&w)
	if err != nil {
		return nil, nil, c.refuse(err.Error(), "")
	}
	return body, names, nil
}

func (c *Client) refuse(message, advice string) *llm.Error {
	return &llm.Error{Kind: llm.ErrBadRequest, Provider: c.endpoint.Name, Message: message, Advice: advice}
}

func tools(declared []msg.Declaration, hosted []json.RawMessage, names *llm.Names) ([]any, error) {
	var out []any
	for _, d := range declared {
		parameters, err := schema.OpenAI(d.Parameters)
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", d.Name, err)
		}
		t := wireTool{Type: "function"}
		t.Function.Name, t.Function.Description, t.Function.Parameters = names.Wire(d.Name), d.Description, parameters
		out = append(out, t)
	}
	for _, h := range hosted {
		out = append(out, h)
	}
	return out, nil
}

// output asks for a structured answer, as precisely as the endpoint can be asked.
func (p Profile) output(o *llm.OutputSchema, system string) (format any, prompt string) {
	if p.Output == OutputSchema {
		return map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": o.Name, "schema": o.Schema}}, system
	}
	prompt = strings.TrimSpace(system + "\n\nAnswer with one JSON object and nothing else. It must follow this JSON Schema:\n" + string(o.Schema))
	if p.Output == OutputObject {
		return map[string]string{"type": "json_object"}, prompt
	}
	return nil, prompt
}

// messages writes the history. It is the function that makes any transcript of
// ours one that the API takes; llm.Valid does what all APIs need.
func (c *Client) messages(r *llm.Request, system string, names *llm.Names) []wireMessage {
	out := make([]wireMessage, 0, len(r.Messages)+len(r.Messages)/4+2)
	if system != "" {
		out = append(out, wireMessage{Role: "system", Content: system})
	}
	valid := llm.Valid(r.Messages, llm.Demands{IDs: c.profile.IDs, Origin: Family + "/" + r.Model, NoTools: len(r.Tools) == 0})
	say := func(m wireMessage) {
		if c.profile.Bridge && m.Role == "user" && len(out) > 0 && out[len(out)-1].Role == "tool" {
			out = append(out, wireMessage{Role: "assistant", Content: "I have the results."})
		}
		out = append(out, m)
	}
	var shown []wirePart // media of results, which only a user's message can hold
	show := func() {
		if len(shown) > 0 {
			say(wireMessage{Role: "user", Content: shown})
			shown = nil
		}
	}
	for _, m := range valid {
		switch m.Role {
		case msg.User:
			say(c.user(shown, m.Parts))
			shown = nil
		case msg.Assistant:
			show()
			say(c.assistant(m, names))
		case msg.Tool:
			for _, res := range m.Results {
				text, media := c.result(res, names)
				say(wireMessage{Role: "tool", ToolCallID: res.CallID, Content: text})
				shown = append(shown, media...)
			}
		}
	}
	show()
	return out
}

// result is a result's text, and what of it has to stand in the next message.
func (c *Client) result(r msg.Result, names *llm.Names) (string, []wirePart) {
	text, media := llm.Plain(r.Parts, c.takes)
	if len(media) == 0 {
		return text, nil
	}
	if text != "" {
		text += "\n"
	}
	text += fmt.Sprintf("[%d media: see the next message of the user]", len(media))
	shown := []wirePart{{Type: "text", Text: fmt.Sprintf("Media of the result of %s (call %s):", names.Wire(r.Name), r.CallID)}}
	for _, p := range media {
		shown = append(shown, encodeMedia(p))
	}
	return text, shown
}

// user writes a user's message, as plain text where that is enough.
func (c *Client) user(before []wirePart, parts []msg.Part) wireMessage {
	if len(before) == 0 && len(parts) == 1 && parts[0].Kind == msg.Text {
		return wireMessage{Role: "user", Content: parts[0].Text}
	}
	content := before
	for _, p := range parts {
		switch {
		case p.Kind == msg.Text:
			content = append(content, wirePart{Type: "text", Text: p.Text})
		case c.takes(p):
			if p.Text != "" {
				content = append(content, wirePart{Type: "text", Text: p.Text})
			}
			content = append(content, encodeMedia(p))
		default:
			content = append(content, wirePart{Type: "text", Text: llm.Line(p)})
		}
	}
	var b strings.Builder
	for _, p := range content {
		if p.Type != "text" {
			return wireMessage{Role: "user", Content: content}
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(p.Text)
	}
	return wireMessage{Role: "user", Content: b.String()}
}

func (c *Client) assistant(m msg.Message, names *llm.Names) wireMessage {
	w := wireMessage{Role: "assistant"}
	spoken := make([]msg.Part, 0, len(m.Parts))
	var thought strings.Builder
	for _, p := range m.Parts {
		if p.State != nil && c.profile.Reasoning == ReasoningDetails {
			w.ReasoningDetails = p.State
		}
		switch p.Kind {
		case msg.CallPart:
			w.ToolCalls = append(w.ToolCalls, wireCall{ID: p.Call.ID, Type: "function",
				Function: wireFunction{Name: names.Wire(p.Call.Name), Arguments: p.Call.Args}})
		case msg.Reasoning:
			thought.WriteString(p.Text)
		default:
			spoken = append(spoken, p)
		}
	}
	if text, _ := llm.Plain(spoken, nil); text != "" || len(w.ToolCalls) == 0 {
		w.Content = text
	}
	c.remember(&w, thought.String())
	return w
}

// remember sends reasoning back with its message.
func (c *Client) remember(w *wireMessage, thought string) {
	switch c.profile.Reasoning {
	case ReasoningContent:
		if thought != "" || c.profile.ReasoningOwed && len(w.ToolCalls) > 0 {
			w.ReasoningContent = &thought
		}
	case ReasoningText:
		w.Reasoning = thought
	case ReasoningDetails:
		if w.ReasoningDetails == nil {
			w.Reasoning = thought
		}
	}
}

// takes reports whether the endpoint takes a part that is no text.
func (c *Client) takes(p msg.Part) bool {
	switch {
	case len(p.Data) == 0:
		return false
	case p.Kind == msg.Image:
		_, width, height := llm.Picture(p.Data)
		return c.profile.Images && width > 0 && height > 0
	case p.Kind == msg.Audio:
		return c.profile.Audio && audioFormat(p.MIMEType) != ""
	case p.Kind == msg.File:
		return c.profile.Documents && p.MIMEType == "application/pdf"
	}
	return false
}

func audioFormat(mimeType string) string {
	switch mimeType {
	case "audio/wav", "audio/x-wav", "audio/wave":
		return "wav"
	case "audio/mpeg", "audio/mp3":
		return "mp3"
	}
	return ""
}

func encodeMedia(p msg.Part) wirePart {
	data := base64.StdEncoding.EncodeToString(p.Data)
	switch p.Kind {
	case msg.Audio:
		return wirePart{Type: "input_audio", InputAudio: &wireAudio{data, audioFormat(p.MIMEType)}}
	case msg.File:
		name := p.Name
		if name == "" {
			name = "document.pdf"
		}
		return wirePart{Type: "file", File: &wireFile{name, "data:" + p.MIMEType + ";base64," + data}}
	}
	kind, _, _ := llm.Picture(p.Data)
	return wirePart{Type: "image_url", ImageURL: &wireURL{"data:" + kind + ";base64," + data}}
}

// mark asks the provider to cache up to the end of the system prompt and of the
// last message of the user or result.
func mark(messages []wireMessage) {
	one := func(m *wireMessage) {
		cache := &wireCache{"ephemeral"}
		switch content := m.Content.(type) {
		case string:
			if content != "" {
				m.Content = []wirePart{{Type: "text", Text: content, CacheControl: cache}}
			}
		case []wirePart:
			if n := len(content); n > 0 {
				content[n-1].CacheControl = cache
			}
		}
	}
	if len(messages) > 0 && messages[0].Role == "system" {
		one(&messages[0])
	}
	for i := len(messages) - 1; i >= 0; i-- {
		if r := messages[i].Role; r == "user" || r == "tool" {
			one(&messages[i])
			return
		}
	}
}
