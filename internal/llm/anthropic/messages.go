package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"

	"capstan/internal/llm"
	"capstan/internal/msg"
)

// history writes messages.
type history struct {
	client *Client
	names  *llm.Names
	model  model
	paused bool
	tight  bool           // so many images that none may be large
	old    map[*byte]bool // media that are left out, by their first byte
	uses   map[string]bool
	ends   map[string]bool
	out    []wireMessage
}

// messages writes the history. It is the function that makes any transcript of
// ours one that the API takes; llm.Valid does what all APIs need.
func (c *Client) messages(r *llm.Request, names *llm.Names, m model, paused bool) []wireMessage {
	valid := llm.Valid(r.Messages, llm.Demands{IDs: idRule, Origin: Family + "/" + r.Model, NoTools: len(r.Tools)+len(r.Hosted) == 0})
	if paused {
		valid = valid[:len(valid)-1] // the API goes on by itself, nobody has to say so
	}
	h := &history{client: c, names: names, model: m, paused: paused, out: make([]wireMessage, 0, len(valid))}
	h.survey(valid)
	last := len(valid) - 1
	for last >= 0 && valid[last].Role != msg.Assistant {
		last--
	}
	for i, m := range valid {
		switch m.Role {
		case msg.User:
			h.add(msg.User, h.content(m.Parts))
		case msg.Assistant:
			h.add(msg.Assistant, h.assistant(m, i == last))
		case msg.Tool:
			h.add(msg.User, h.results(m.Results))
		}
	}
	return h.out
}

// add appends content, to the last message where that has the same role.
// Results stand at the beginning of theirs: they follow the assistant.
func (h *history) add(role msg.Role, content []any) {
	if len(content) == 0 {
		return
	}
	if n := len(h.out); n > 0 && h.out[n-1].Role == string(role) {
		h.out[n-1].Content = append(h.out[n-1].Content, content...)
		return
	}
	h.out = append(h.out, wireMessage{Role: string(role), Content: content})
}

// survey looks for what concerns the history as a whole: the blocks of tools
// that the API ran, which go back in pairs only, and the number of images.
func (h *history) survey(valid []msg.Message) {
	h.uses, h.ends = map[string]bool{}, map[string]bool{}
	images := 0
	var media []msg.Part
	count := func(parts []msg.Part) {
		for _, p := range parts {
			switch p.Kind {
			case msg.Image:
				images++
				media = append(media, p)
			case msg.File:
				media = append(media, p)
			}
		}
	}
	for i := range valid {
		if valid[i].Role != msg.Assistant { // whose media are never sent
			count(valid[i].Parts)
		}
		for k := range valid[i].Results {
			count(valid[i].Results[k].Parts)
		}
		for _, p := range valid[i].Parts {
			if p.Kind != msg.Text || p.State == nil {
				continue
			}
			b := hostedOf(decodeState(p.State).Block)
			h.ends[b.ToolUseID] = true
			h.uses[b.ID] = true
		}
	}
	h.tight = images > manyImages
	h.forget(media)
}

// hosted is what ties the blocks of a tool that the API ran.
type hosted struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	ToolUseID string `json:"tool_use_id"`
}

func hostedOf(block json.RawMessage) hosted {
	var b hosted
	_ = json.Unmarshal(block, &b) // what is no object has no ids
	return b
}

// decodeState reads what was kept with a part. What we did not write is empty.
func decodeState(raw json.RawMessage) state {
	var s state
	if raw == nil || json.Unmarshal(raw, &s) != nil {
		return state{}
	}
	return s
}

// goesBack reports whether a block of a tool that the API ran can be sent: a
// use with its result, or one whose result is still to come.
func (h *history) goesBack(block json.RawMessage, open bool) bool {
	switch b := hostedOf(block); {
	case b.ToolUseID != "":
		return h.uses[b.ToolUseID]
	case strings.HasSuffix(b.Type, "tool_use"):
		return open || h.ends[b.ID]
	}
	return true
}

// assistant writes an answer of the model, its parts in their order. latest
// says that it is the last one.
func (h *history) assistant(m msg.Message, latest bool) []any {
	calls := len(m.Calls()) > 0
	open := latest && (h.paused || calls)
	var said, called []any
	kept := false
	for _, p := range m.Parts {
		s := decodeState(p.State)
		kept = kept || p.State != nil
		switch {
		case p.Kind == msg.CallPart:
			called = append(called, &wireBlock{Type: callBlock, ID: p.Call.ID, Name: h.names.Wire(p.Call.Name), Input: json.RawMessage(p.Call.Args), Caller: s.Caller})
			if kept {
				said, called = append(said, called...), nil
			}
		case p.Kind == msg.Reasoning:
			if b := h.thought(p, s); b != nil {
				said = append(said, b)
			}
		case s.Block != nil:
			if h.goesBack(s.Block, open) {
				said = append(said, s.Block)
			}
		case p.Kind == msg.Text:
			if strings.TrimSpace(p.Text) != "" {
				said = append(said, &wireBlock{Type: textBlock, Text: &p.Text, Citations: s.Citations})
			}
		default:
			said = append(said, newText(llm.Line(p)))
		}
	}
	// What was written by another model may have text after its calls.
	out := append(said, called...)
	for len(out) > 0 && isThought(out[len(out)-1]) {
		out = out[:len(out)-1] // what it led to is not sent
	}
	return out
}

// thought is a block of thinking as it goes back. Without its signature Claude
// refuses it; imitations have none.
func (h *history) thought(p msg.Part, s state) *wireBlock {
	switch {
	case s.Redacted != "":
		return &wireBlock{Type: redactedBlock, Data: s.Redacted}
	case s.Signature != "" || !h.model.claude:
		return &wireBlock{Type: thinkingBlock, Thinking: &p.Text, Signature: &s.Signature}
	}
	return nil
}

func isThought(b any) bool {
	w, ok := b.(*wireBlock)
	return ok && (w.Type == thinkingBlock || w.Type == redactedBlock)
}

// results writes the results of a turn, and after them what of failed ones is
// no text: a failed result may hold text alone.
func (h *history) results(list []msg.Result) []any {
	var out, shown []any
	for _, r := range list {
		b := &wireBlock{Type: "tool_result", ToolUseID: r.CallID, IsError: r.Failed()}
		text, media := llm.Plain(r.Parts, h.takes)
		switch {
		case len(media) == 0:
			b.Content = text
		case r.Failed():
			if text != "" {
				text += "\n"
			}
			b.Content = text + fmt.Sprintf("[%d media: see below]", len(media))
			shown = append(append(shown, newText(fmt.Sprintf("Media of the result of %s (call %s):", h.names.Wire(r.Name), r.CallID))), h.content(media)...)
		default:
			b.Content = h.content(r.Parts)
		}
		out = append(out, b)
	}
	return append(out, shown...)
}

// content writes parts of the user or of a result.
func (h *history) content(parts []msg.Part) []any {
	out := make([]any, 0, len(parts))
	for _, p := range parts {
		switch {
		case p.Kind == msg.Text:
			out = append(out, newText(p.Text))
		case h.takes(p):
			if strings.TrimSpace(p.Text) != "" {
				out = append(out, newText(p.Text))
			}
			out = append(out, media(p))
		default:
			out = append(out, newText(llm.Line(p)))
		}
	}
	return out
}
