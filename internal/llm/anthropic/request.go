package anthropic

import (
	"fmt"
	"strings"

	"capstan/internal/llm"
	"capstan/internal/msg"
	"capstan/internal/schema"
)

// The API's rules for names and ids. Its documentation gives names 64 letters;
// newer models take more.
var (
	nameRule = llm.Rule{Max: 64, Chars: "_-"}
	idRule   = llm.Rule{Max: 64, Chars: "_-"}
)

// encoded is a request, ready to be sent.
type encoded struct {
	body     []byte
	names    *llm.Names
	beta     string   // the header Anthropic-Beta
	warnings []string // what was asked for and is not sent
}

// encode writes the request. The same request always gives the same bytes.
// paused says that the last message is an answer that the API has to go on with.
func (c *Client) encode(r *llm.Request, paused bool) (*encoded, error) {
	if r.Model == "" {
		return nil, c.refuse("no model is named", "name one with --model anthropic/NAME or the setting \"model\"")
	}
	if len(r.Messages) == 0 {
		return nil, c.refuse("the conversation is empty", "say something first")
	}
	m := modelFor(r.Model)
	e := &encoded{names: llm.NewNames(nameRule, r.Tools, r.Messages)}
	w := wireRequest{Model: r.Model, MaxTokens: r.MaxTokens, Stop: r.Stop, Stream: true}
	if w.MaxTokens == 0 {
		w.MaxTokens = m.answerTokens(r.Effort)
	}
	var err error
	if w.Tools, err = tools(r, e.names); err != nil {
		return nil, c.refuse(err.Error(), "mend the tool's schema, or leave the tool out")
	}
	if len(w.Tools) > 0 {
		w.ToolChoice = choice(r.Choice)
	}
	w.Messages = c.messages(r, e.names, m, paused)
	think(&w, r, m)
	if w.Thinking != nil && w.Thinking.Budget > 0 && m.claude && len(w.Tools) > 0 {
		e.beta = interleaved
	}
	system := r.System
	if r.Output != nil {
		system = output(&w, r.Output, m, system)
	}
	if strings.TrimSpace(system) != "" {
		w.System = []*wireBlock{newText(system)}
	}
	e.sample(&w, r, m)
	if r.CacheKey != "" {
		mark(&w)
	}
	if e.body, err = llm.Body(&w); err != nil {
		return nil, c.refuse(err.Error(), "")
	}
	return e, nil
}

func (c *Client) refuse(message, advice string) *llm.Error {
	return &llm.Error{Kind: llm.ErrBadRequest, Provider: c.endpoint.Name, Message: message, Advice: advice}
}

func tools(r *llm.Request, names *llm.Names) ([]any, error) {
	var out []any
	for _, d := range r.Tools {
		input, err := schema.Anthropic(d.Parameters)
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", d.Name, err)
		}
		out = append(out, &wireTool{Name: names.Wire(d.Name), Description: d.Description, InputSchema: input})
	}
	for _, h := range r.Hosted {
		out = append(out, h)
	}
	return out, nil
}

func choice(c llm.Choice) *wireChoice {
	switch c {
	case llm.ChoiceNone:
		return &wireChoice{"none"}
	case llm.ChoiceRequired:
		return &wireChoice{"any"}
	}
	return nil
}

// think asks for an effort, in the way that the model takes.
func think(w *wireRequest, r *llm.Request, m model) {
	switch r.Effort {
	case "":
		return
	case "none":
		if m.think == shows || !m.claude { // others do not think unasked, or always do
			w.Thinking = &wireThinking{Type: "disabled"}
		}
		return
	}
	if len(m.efforts) > 0 {
		w.OutputConfig = &wireOutput{Effort: m.effort(r.Effort)}
	}
	if r.Effort == "minimal" {
		return
	}
	switch m.think {
	case adapts:
		w.Thinking = &wireThinking{Type: "adaptive"}
	case shows, always:
		w.Thinking = &wireThinking{Type: "adaptive", Display: "summarized"}
	case budget:
		tokens := min(budgetFor(r.Effort), w.MaxTokens*2/3)
		forced := w.ToolChoice != nil && w.ToolChoice.Type == "any" // which a budget excludes
		if tokens >= leastBudget && !forced && thoughtFirst(w.Messages) {
			w.Thinking = &wireThinking{Type: "enabled", Budget: tokens}
		}
	}
}

// thoughtFirst reports whether the model may think with a budget. It may not
// when results go back to an answer that did not begin with thinking: one of
// another model, or one whose thinking was not kept.
func thoughtFirst(messages []wireMessage) bool {
	n := len(messages)
	if n < 2 {
		return true
	}
	if first, ok := messages[n-1].Content[0].(*wireBlock); !ok || first.Type != "tool_result" {
		return true
	}
	first, ok := messages[n-2].Content[0].(*wireBlock)
	return ok && (first.Type == thinkingBlock || first.Type == redactedBlock)
}

// sample sends temperature and top_p where they are taken: not by the newest
// models, and not while one thinks.
func (e *encoded) sample(w *wireRequest, r *llm.Request, m model) {
	thinks := w.Thinking != nil && w.Thinking.Type != "disabled"
	switch {
	case r.Temperature == nil && r.TopP == nil:
	case !m.free:
		e.warnings = append(e.warnings, fmt.Sprintf("temperature and top_p are not sent: %s does not take them", r.Model))
	case m.claude && thinks:
		e.warnings = append(e.warnings, fmt.Sprintf("temperature and top_p are not sent: %s does not take them while it thinks", r.Model))
	default:
		w.Temperature, w.TopP = r.Temperature, r.TopP
	}
}

// mark asks the API to cache up to the end of the tools, of the system prompt
// and of the last two messages of the user: what was last in the request before
// is one of these two. Four marks are the most that it takes.
func mark(w *wireRequest) {
	cache := &wireCache{"ephemeral"}
	for i := len(w.Tools) - 1; i >= 0; i-- {
		if t, ok := w.Tools[i].(*wireTool); ok {
			t.CacheControl = cache
			break
		}
	}
	if n := len(w.System); n > 0 {
		w.System[n-1].CacheControl = cache
	}
	marks := 0
	for i := len(w.Messages) - 1; i >= 0 && marks < 2; i-- {
		m := &w.Messages[i]
		if m.Role != string(msg.User) {
			continue
		}
		if b, ok := m.Content[len(m.Content)-1].(*wireBlock); ok {
			b.CacheControl = cache
			marks++
		}
	}
}

func newText(s string) *wireBlock { return &wireBlock{Type: textBlock, Text: &s} }

// output asks for a structured answer: with a schema where the model takes one
// and it can be said in the API's subset, else in words.
func output(w *wireRequest, o *llm.OutputSchema, m model, system string) string {
	if m.format {
		if s, ok := strict(o.Schema); ok {
			if w.OutputConfig == nil {
				w.OutputConfig = &wireOutput{}
			}
			w.OutputConfig.Format = &wireFormat{Type: "json_schema", Schema: s}
			return system
		}
	}
	return strings.TrimSpace(system + "\n\nAnswer with one JSON object and nothing else: no prose, no code fence. It must be valid against this JSON Schema:\n" + string(o.Schema))
}
