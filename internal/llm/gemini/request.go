package gemini

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"capstan/internal/llm"
	"capstan/internal/msg"
	"capstan/internal/schema"
)

// placeholder is the signature that the API's documentation names for calls
// that another model made, or that were kept without one.
const placeholder = "skip_thought_signature_validator"

// encode writes the request. The same request always gives the same bytes.
func (c *Client) encode(r *llm.Request) ([]byte, *llm.Names, error) {
	switch {
	case r.Model == "":
		return nil, nil, c.refuse("name one with --model gemini/NAME or the setting \"model\"", "no model is named")
	case !modelRule(r.Model):
		return nil, nil, c.refuse("give the name as the list of models has it", "%q cannot be the name of a model", r.Model)
	case len(r.Messages) == 0:
		return nil, nil, c.refuse("say something first", "the conversation is empty")
	}
	t := traitsOf(r.Model)
	names := llm.NewNames(nameRule, r.Tools, r.Messages)
	var w wireRequest
	var err error
	if w.Tools, w.ToolConfig, err = t.tools(r, names); err != nil {
		return nil, nil, c.refuse("mend the tool's schema, or leave the tool out", "%v", err)
	}
	system := r.System
	if w.GenerationConfig, system, err = t.generation(r, system); err != nil {
		return nil, nil, c.refuse("give an effort of none, minimal, low, medium or high, and a schema that is JSON", "%v", err)
	}
	if system != "" {
		w.SystemInstruction = &wireContent{Parts: []wirePart{{Text: &system}}}
	}
	w.Contents = t.contents(r, names)
	body, err := llm.Body(&w)
	if err != nil {
		return nil, nil, c.refuse("", "%v", err)
	}
	return body, names, nil
}

// tools declares the functions, then the hosted tools.
func (t traits) tools(r *llm.Request, names *llm.Names) ([]any, *wireToolConfig, error) {
	var out []any
	var config wireToolConfig
	if len(r.Tools) > 0 {
		functions := make([]wireDeclaration, 0, len(r.Tools))
		for _, d := range r.Tools {
			parameters, err := reduced(d.Parameters)
			if err != nil {
				return nil, nil, fmt.Errorf("tool %s: %w", d.Name, err)
			}
			functions = append(functions, wireDeclaration{names.Wire(d.Name), d.Description, parameters})
		}
		out = append(out, wireTool{functions})
		switch r.Choice {
		case llm.ChoiceNone:
			config.FunctionCallingConfig = &wireCalling{"NONE"}
		case llm.ChoiceRequired:
			config.FunctionCallingConfig = &wireCalling{"ANY"}
		}
		config.IncludeServerSideToolInvocations = t.third && len(r.Hosted) > 0
	}
	for _, h := range r.Hosted {
		out = append(out, h)
	}
	if config == (wireToolConfig{}) {
		return out, nil, nil
	}
	return out, &config, nil
}

// reduced is a schema as the API takes it; nil when it has no properties, which
// the API refuses to read and takes unsaid.
func reduced(raw json.RawMessage) (json.RawMessage, error) {
	out, err := schema.Gemini(raw)
	if err != nil {
		return nil, err
	}
	var root struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(out, &root); err != nil {
		return nil, err
	}
	if len(root.Properties) == 0 {
		return nil, nil
	}
	return out, nil
}

// generation says how to answer. Before the third generation a JSON answer
// cannot be asked for beside functions, and is asked for in words.
func (t traits) generation(r *llm.Request, system string) (*wireGeneration, string, error) {
	g := &wireGeneration{MaxOutputTokens: r.MaxTokens, Temperature: r.Temperature, TopP: r.TopP, StopSequences: r.Stop}
	var err error
	if g.ThinkingConfig, err = t.thinking(r.Model, r.Effort); err != nil {
		return nil, "", err
	}
	switch {
	case r.Output == nil:
	case !t.third && len(r.Tools) > 0:
		system = strings.TrimSpace(system + "\n\nAnswer with one JSON object and nothing else. It must follow this JSON Schema:\n" + string(r.Output.Schema))
	default:
		g.ResponseMIMEType = "application/json"
		if g.ResponseSchema, err = reduced(r.Output.Schema); err != nil {
			return nil, "", err
		}
	}
	return g, system, nil
}

// contents writes the history. It is the function that makes any transcript of
// ours one that the API takes; llm.Valid does what all APIs need.
func (t traits) contents(r *llm.Request, names *llm.Names) []wireContent {
	valid := llm.Valid(r.Messages, llm.Demands{IDs: idRule, Origin: Family + "/" + r.Model, NoTools: len(r.Tools) == 0})
	out := make([]wireContent, 0, len(valid))
	for _, m := range valid {
		role, parts := "user", []wirePart(nil)
		switch m.Role {
		case msg.Assistant:
			role, parts = "model", t.model(m.Parts, names)
		case msg.Tool:
			parts = t.results(m.Results, names)
		default:
			parts = spoken(m.Parts)
		}
		// Results and the user's next words are one content: roles alternate.
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Parts = append(out[n-1].Parts, parts...)
		} else if len(parts) > 0 {
			out = append(out, wireContent{role, parts})
		}
	}
	return out
}

func text(s string) wirePart { return wirePart{Text: &s} }

func inline(p msg.Part) wirePart { return wirePart{InlineData: &wireBlob{typeOf(p), p.Data}} }

// spoken writes what the user says and shows.
func spoken(parts []msg.Part) []wirePart {
	out := make([]wirePart, 0, len(parts))
	for _, p := range parts {
		switch {
		case p.Kind == msg.Text:
			out = append(out, text(p.Text))
		case takes(typeOf(p)):
			if p.Text != "" {
				out = append(out, text(p.Text))
			}
			out = append(out, inline(p))
		default:
			out = append(out, text(llm.Line(p)))
		}
	}
	return out
}

// model writes what the model said, each part with what the API gave with it.
func (t traits) model(parts []msg.Part, names *llm.Names) []wirePart {
	out := make([]wirePart, 0, len(parts))
	called := false
	for _, p := range parts {
		var s state
		if p.State != nil {
			s = readState(p.State)
		}
		switch p.Kind {
		case msg.CallPart:
			// The API looks for it on the first call of a step only.
			if !called && t.third && s.ThoughtSignature == "" {
				s.ThoughtSignature = placeholder
			}
			called = true
			out = append(out, wirePart{FunctionCall: &wireCall{p.Call.ID, names.Wire(p.Call.Name), json.RawMessage(p.Call.Args)}, ThoughtSignature: s.ThoughtSignature})
		case msg.Text, msg.Reasoning:
			out = append(out, s.parts(p)...)
		default:
			if !takes(typeOf(p)) {
				out = append(out, text(llm.Line(p)))
				continue
			}
			w := inline(p)
			w.ThoughtSignature = s.ThoughtSignature
			out = append(out, w)
		}
	}
	return out
}

// parts takes a text or a thought apart into what came. Thoughts are summaries
// for people: only what was signed goes back.
func (s state) parts(p msg.Part) []wirePart {
	var out []wirePart
	thought := p.Kind == msg.Reasoning
	if s.ThoughtSignature == "" || s.size() > 0 {
		if !thought && p.Text != "" {
			out = append(out, text(p.Text))
		}
		if s.size() > 0 {
			one := s.first()
			out = append(out, wirePart{hosted: &one, ThoughtSignature: s.ThoughtSignature})
		}
		return out
	}
	from := s.From
	if from < 0 || from > len(p.Text) || from < len(p.Text) && !utf8.RuneStart(p.Text[from]) {
		from = 0
	}
	if from > 0 && !thought {
		out = append(out, text(p.Text[:from]))
	}
	signed := text(p.Text[from:])
	signed.Thought, signed.ThoughtSignature = thought, s.ThoughtSignature
	return append(out, signed)
}

// first keeps one field, as a part may have one.
func (h hosted) first() hosted {
	switch {
	case h.ExecutableCode != nil:
		return hosted{ExecutableCode: h.ExecutableCode}
	case h.CodeExecutionResult != nil:
		return hosted{CodeExecutionResult: h.CodeExecutionResult}
	case h.ToolCall != nil:
		return hosted{ToolCall: h.ToolCall}
	}
	return hosted{ToolResponse: h.ToolResponse}
}

// results writes the results of one turn: all functionResponse parts, then the
// media that cannot stand in one.
func (t traits) results(list []msg.Result, names *llm.Names) []wirePart {
	out := make([]wirePart, 0, len(list))
	var after []wirePart
	for _, r := range list {
		answer, media := llm.Plain(r.Parts, func(p msg.Part) bool {
			return takes(typeOf(p))
		})
		w := &wireResponse{ID: r.CallID, Name: names.Wire(r.Name)}
		shown := 0
		for _, p := range media {
			if t.takesInResult(typeOf(p)) {
				w.Parts = append(w.Parts, inline(p))
				continue
			}
			if shown++; shown == 1 {
				after = append(after, text(fmt.Sprintf("Media of the result of %s (call %s):", w.Name, r.CallID)))
			}
			after = append(after, inline(p))
		}
		if shown > 0 {
			answer = strings.TrimPrefix(answer+fmt.Sprintf("\n[%d media: see below, after the results]", shown), "\n")
		}
		if r.Failed() {
			w.Response.Error = &answer
		} else {
			w.Response.Output = &answer
		}
		out = append(out, wirePart{FunctionResponse: w})
	}
	return append(out, after...)
}
