package responses

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"capstan/internal/llm"
	"capstan/internal/msg"
	"capstan/internal/schema"
)

// minTokens is the smallest limit of an answer that the API takes.
const minTokens = 16

// encode writes the request. The same request always gives the same bytes, as
// long as the endpoint refuses nothing.
func (c *Client) encode(r *llm.Request) ([]byte, *llm.Names, error) {
	if r.Model == "" {
		return nil, nil, c.refuse("no model is named", "name one with --model responses/NAME or the setting \"model\"")
	}
	if len(r.Messages) == 0 {
		return nil, nil, c.refuse("the conversation is empty", "say something first")
	}
	if err := c.endpoint.Crowded(r, c.profile.Tools); err != nil {
		return nil, nil, err
	}
	names := llm.NewNames(nameRule, r.Tools, r.Messages)
	system, declared := c.lengths.Fit(r, names)
	w := wireRequest{Model: r.Model, Instructions: system, Temperature: r.Temperature, TopP: r.TopP, Stream: true}
	if r.MaxTokens > 0 {
		w.MaxOutputTokens = max(r.MaxTokens, minTokens)
	}
	if c.profile.CacheKey {
		w.PromptCacheKey = llm.CacheKey(r.CacheKey)
	}
	if c.profile.Encrypted && c.takes(r.Model, askEncrypted) {
		w.Include = []string{"reasoning.encrypted_content"}
	}
	if r.Effort != "" {
		w.Reasoning = &wireReasoning{Effort: r.Effort}
		if c.profile.Summary && c.takes(r.Model, askSummary) {
			w.Reasoning.Summary = "auto"
		}
	}
	var err error
	if w.Tools, err = tools(declared, r.Hosted, names); err != nil {
		return nil, nil, c.refuse(err.Error(), "mend the tool's schema, or leave the tool out")
	}
	if len(w.Tools) > 0 && r.Choice != llm.ChoiceAuto {
		w.ToolChoice = string(r.Choice)
	}
	if o := r.Output; o != nil {
		w.Text = &wireText{wireFormat{Type: "json_schema", Name: o.Name, Schema: o.Schema}}
	}
	w.Input = c.input(r, names)
	body, err := llm.Body(&w)
	if err != nil {
		return nil, nil, c.refuse(err.Error(), "")
	}
	return body, names, nil
}

func (c *Client) refuse(message, advice string) *llm.Error {
	return &llm.Error{Kind: llm.ErrBadRequest, Provider: c.endpoint.Name, Message: message, Advice: advice}
}

// tools declares functions. Strict is said to be off: the API takes it as on,
// and then demands every parameter of the model.
func tools(declared []msg.Declaration, hosted []json.RawMessage, names *llm.Names) ([]any, error) {
	var out []any
	for _, d := range declared {
		parameters, err := schema.OpenAI(d.Parameters)
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", d.Name, err)
		}
		out = append(out, wireTool{Type: "function", Name: names.Wire(d.Name), Description: d.Description, Parameters: parameters})
	}
	for _, h := range hosted {
		out = append(out, h)
	}
	return out, nil
}

// input writes the history. It is the function that makes any transcript of
// ours one that the API takes; llm.Valid does what all APIs need.
func (c *Client) input(r *llm.Request, names *llm.Names) []any {
	in := &input{client: c, names: names, out: make([]any, 0, 2*len(r.Messages))}
	for _, m := range llm.Valid(r.Messages, llm.Demands{IDs: idRule, Origin: Family + "/" + r.Model, NoTools: len(r.Tools) == 0}) {
		switch m.Role {
		case msg.User:
			in.user(m.Parts)
		case msg.Assistant:
			in.assistant(m.Parts)
		case msg.Tool:
			for _, res := range m.Results {
				in.result(res)
			}
		}
	}
	in.user(nil)
	return in.out
}

// input is a list of items that grows.
type input struct {
	client *Client
	names  *llm.Names
	out    []any
	shown  []wirePart // media of results, where only a user's message can hold them
}

// user writes a user's message, as plain text where that is enough.
func (in *input) user(parts []msg.Part) {
	content := in.shown
	in.shown = nil
	if len(content) == 0 && len(parts) == 0 {
		return
	}
	if len(content) == 0 && len(parts) == 1 && parts[0].Kind == msg.Text {
		in.out = append(in.out, &wireItem{Type: "message", Role: "user", Content: parts[0].Text})
		return
	}
	in.out = append(in.out, &wireItem{Type: "message", Role: "user", Content: in.content(content, parts)})
}

// content appends parts to what stands before them.
func (in *input) content(before []wirePart, parts []msg.Part) []wirePart {
	text := func(s string) { before = append(before, wirePart{Type: "input_text", Text: s}) }
	for _, p := range parts {
		switch {
		case p.Kind == msg.Text:
			text(p.Text)
		case in.client.shows(p):
			if p.Text != "" {
				text(p.Text)
			}
			before = append(before, media(p))
		default:
			text(llm.Line(p))
		}
	}
	return before
}

// result writes the output of a call.
func (in *input) result(r msg.Result) {
	w := &wireItem{Type: "function_call_output", CallID: r.CallID}
	in.out = append(in.out, w)
	text, shown := llm.Plain(r.Parts, in.client.shows)
	switch {
	case len(shown) == 0:
		w.Output = text
	case in.client.profile.ResultMedia:
		w.Output = in.content(nil, r.Parts)
	default:
		if text != "" {
			text += "\n"
		}
		w.Output = text + fmt.Sprintf("[%d media: see the next message of the user]", len(shown))
		in.shown = append(in.shown, wirePart{Type: "input_text", Text: fmt.Sprintf("Media of the result of %s (call %s):", in.names.Wire(r.Name), r.CallID)})
		for _, p := range shown {
			in.shown = append(in.shown, media(p))
		}
	}
}

// assistant writes the items of an answer in the order in which they came.
// None has an id: what is not stored has none, Azure refuses them, and the API
// pairs reasoning with what follows it by them. Reasoning is held back until
// there is something that it led to.
func (in *input) assistant(parts []msg.Part) {
	in.user(nil)
	var spoken []msg.Part
	var thought []json.RawMessage
	add := func(item any) {
		for _, t := range thought {
			in.out = append(in.out, t)
		}
		thought = nil
		in.out = append(in.out, item)
	}
	say := func() {
		if text, _ := llm.Plain(spoken, nil); text != "" {
			w := &wireItem{Type: "message", Role: "assistant", Content: text}
			if len(spoken) == 1 {
				w.Phase = phaseOf(spoken[0].State)
			}
			add(w)
		}
		spoken = nil
	}
	for _, p := range parts {
		switch {
		case p.Kind == msg.CallPart:
			say()
			add(&wireItem{Type: "function_call", CallID: p.Call.ID, Name: in.names.Wire(p.Call.Name), Arguments: p.Call.Args})
		case p.Kind == msg.Reasoning:
			say()
			if in.client.returns(p.State) {
				thought = append(thought, p.State)
			}
		default:
			if p.State != nil || len(spoken) > 0 && spoken[len(spoken)-1].State != nil {
				say() // a message of its own, with its phase
			}
			spoken = append(spoken, p)
		}
	}
	say()
}

// returns reports whether an item that was kept can go back.
func (c *Client) returns(state json.RawMessage) bool {
	switch {
	case c.void(state):
		return false
	case bytes.HasPrefix(state, []byte(reasoningHead)):
		return !c.profile.Encrypted || bytes.HasPrefix(state, []byte(encryptedHead)) && !bytes.HasPrefix(state, []byte(encryptedHead+`"`))
	}
	return bytes.HasPrefix(state, []byte(searchHead))
}

// shows reports whether the endpoint takes a part that is no text.
func (c *Client) shows(p msg.Part) bool {
	switch {
	case len(p.Data) == 0:
		return false
	case p.Kind == msg.Image:
		_, width, height := llm.Picture(p.Data)
		return c.profile.Images && width > 0 && height > 0
	case p.Kind == msg.File:
		return c.profile.Documents && p.MIMEType == "application/pdf"
	}
	return false
}

func media(p msg.Part) wirePart {
	data := ";base64," + base64.StdEncoding.EncodeToString(p.Data)
	if p.Kind == msg.File {
		name := p.Name
		if name == "" {
			name = "document.pdf"
		}
		return wirePart{Type: "input_file", Filename: name, FileData: "data:" + p.MIMEType + data}
	}
	kind, _, _ := llm.Picture(p.Data)
	return wirePart{Type: "input_image", Detail: "auto", ImageURL: "data:" + kind + data}
}
