package headless

import (
	"capstan/internal/llm"
	"capstan/internal/msg"
)

// partial shows an answer as it arrives, as the events of the Messages API.
type partial struct {
	id      string
	open    string // the type of the block that is being written; empty when none is
	index   int
	started bool
}

type streamLine struct {
	Type      string  `json:"type"` // stream_event
	UUID      string  `json:"uuid"`
	SessionID string  `json:"session_id"`
	Parent    *string `json:"parent_tool_use_id"`
	Event     any     `json:"event"`
}

type object = map[string]any

func (p *partial) send(w *Writer, event object) {
	w.line(streamLine{Type: "stream_event", UUID: uuid(), SessionID: w.opt.Session.ID, Event: event})
}

func (p *partial) begin(w *Writer, id string) {
	if !w.opt.Partial {
		return
	}
	*p = partial{id: id}
	p.start(w)
}

func (p *partial) start(w *Writer) {
	p.open, p.index, p.started = "", 0, true
	p.send(w, object{"type": "message_start", "message": assistantMessage{ID: p.id, Type: "message", Role: "assistant", Model: w.opt.Session.Model, Content: []any{}}})
}

func (p *partial) event(w *Writer, e llm.Event) {
	if !p.started {
		return
	}
	switch e := e.(type) {
	case llm.Text:
		p.piece(w, "text", object{"type": "text", "text": ""}, object{"type": "text_delta", "text": e.Text})
	case llm.Reasoning:
		p.piece(w, "thinking", object{"type": "thinking", "thinking": "", "signature": ""}, object{"type": "thinking_delta", "thinking": e.Text})
	case llm.Call:
		p.close(w)
		p.piece(w, "tool_use", object{"type": "tool_use", "id": e.Call.ID, "name": e.Call.Name, "input": object{}}, object{"type": "input_json_delta", "partial_json": string(input(e.Call.Args))})
		p.close(w)
	case llm.Retry: // a further message_start of the same id stands for this one
		p.close(w)
		p.start(w)
	}
}

// piece adds to a block, which it opens when another one or none is open.
func (p *partial) piece(w *Writer, kind string, block, delta object) {
	if p.open != kind {
		p.close(w)
		p.open = kind
		p.send(w, object{"type": "content_block_start", "index": p.index, "content_block": block})
	}
	p.send(w, object{"type": "content_block_delta", "index": p.index, "delta": delta})
}

func (p *partial) close(w *Writer) {
	if p.open == "" {
		return
	}
	p.send(w, object{"type": "content_block_stop", "index": p.index})
	p.open = ""
	p.index++
}

func (p *partial) end(w *Writer, f llm.Finish, u msg.Usage) {
	if !p.started {
		return
	}
	p.close(w)
	p.started = false
	if f == "" { // it was cut short: a client must not take it for whole
		return
	}
	p.send(w, object{"type": "message_delta", "delta": object{"stop_reason": stopReason(f), "stop_sequence": nil}, "usage": usageOf(u)})
	p.send(w, object{"type": "message_stop"})
}
