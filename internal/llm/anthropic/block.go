package anthropic

import (
	"bytes"
	"encoding/json"

	"capstan/internal/llm"
)

// The kinds of blocks that mean something to us. Every other kind is kept as it
// is: it is of a tool that the API runs itself, or newer than this.
const (
	textBlock     = "text"
	thinkingBlock = "thinking"
	redactedBlock = "redacted_thinking"
	callBlock     = "tool_use"
)

// A block is being written.
type block struct {
	index  string // as sent; empty when there is none
	kind   string
	start  blockStart
	raw    json.RawMessage // the start as it came, of a kind that is kept
	closed bool

	pending   []byte // text or thinking that was not given out yet
	joiner    llm.Joiner
	signature []byte
	citations []json.RawMessage
	args      []byte // of a call; input of a kind that is kept
}

// newBlock reads the beginning of a block.
func newBlock(index string, raw json.RawMessage) (*block, error) {
	b := &block{index: index}
	if err := json.Unmarshal(raw, &b.start); err != nil {
		return nil, err
	}
	b.kind = b.start.Type
	switch b.kind {
	case textBlock:
		b.pending, b.citations = b.start.Text.Text, b.start.Citations
	case thinkingBlock:
		b.pending, b.signature = b.start.Thinking.Text, b.start.Signature.Text
	case redactedBlock, callBlock:
	default:
		b.raw = bytes.Clone(raw)
	}
	return b, nil
}

// takes reports whether a delta is of this block's kind.
func (b *block) takes(deltaType string) bool {
	switch deltaType {
	case "text_delta", "citations_delta":
		return b.kind == textBlock
	case "thinking_delta", "signature_delta":
		return b.kind == thinkingBlock
	case "input_json_delta":
		return b.kind == callBlock || b.raw != nil
	}
	return true // nothing that we know how to add
}

// kindOf is the kind of block that a delta belongs to, for one that belongs to
// no block that was begun.
func kindOf(deltaType string) string {
	switch deltaType {
	case "text_delta":
		return textBlock
	case "thinking_delta":
		return thinkingBlock
	case "input_json_delta":
		return callBlock
	}
	return ""
}

// grow adds a delta and returns how many bytes it had.
func (b *block) grow(d *delta) int {
	switch d.Type {
	case "text_delta":
		b.pending = append(b.pending, d.Text.Text...)
		return len(d.Text.Text)
	case "citations_delta":
		b.citations = append(b.citations, bytes.Clone(d.Citation))
		return len(d.Citation)
	case "thinking_delta":
		b.pending = append(b.pending, d.Thinking.Text...)
		return len(d.Thinking.Text)
	case "signature_delta":
		b.signature = append(b.signature, d.Signature.Text...)
		return len(d.Signature.Text)
	case "input_json_delta":
		b.args = append(b.args, d.PartialJSON.Text...)
		return len(d.PartialJSON.Text)
	}
	return 0
}

// say returns the text or thinking that is complete. ended says that no more
// will come.
func (b *block) say(ended bool) string {
	s := b.joiner.Push(b.pending)
	b.pending = b.pending[:0]
	if ended {
		s += b.joiner.Flush()
	}
	return s
}

// state is what the API wants back with the block; nil when there is nothing.
func (b *block) state() json.RawMessage {
	switch {
	case b.kind == thinkingBlock && len(b.signature) > 0:
		return encodeRaw(state{Signature: string(b.signature)})
	case b.kind == redactedBlock && b.start.Data != "":
		return encodeRaw(state{Redacted: string(b.start.Data)})
	case b.kind == textBlock && len(b.citations) > 0:
		return encodeRaw(state{Citations: b.citations})
	case b.raw != nil:
		return encodeRaw(state{Block: b.kept()})
	}
	return nil
}

// kept is a block as it goes back, with its input if that came in pieces.
func (b *block) kept() json.RawMessage {
	if !json.Valid(b.args) {
		return b.raw
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(b.raw, &members) != nil || members == nil {
		return b.raw
	}
	members["input"] = b.args
	return encodeRaw(members)
}

// call returns the arguments of a call and what is kept with it. trusted says
// that an input that was announced as empty, and stayed so, is.
//
// Arguments come in pieces, or, from some imitations, whole at the beginning.
func (b *block) call(trusted bool) (args string, kept json.RawMessage) {
	var j llm.Joiner
	args = j.Push(b.args) + j.Flush()
	announced := b.start.Input
	switch isObject := announced.Whole && announced.Text[0] == '{'; {
	case isObject && hasMembers(announced.Text):
		if !json.Valid(b.args) {
			args = string(announced.Text)
		}
	case isObject && args == "" && trusted && b.closed:
		args = "{}"
	}
	var caller struct{ Type string }
	if json.Unmarshal(b.start.Caller, &caller) == nil && caller.Type != "" && caller.Type != "direct" {
		kept = encodeRaw(state{Caller: b.start.Caller})
	}
	return args, kept
}

func hasMembers(object []byte) bool {
	return len(bytes.Trim(object, "{} \t\r\n")) > 0
}

// encodeRaw marshals strings and JSON that was parsed before, which cannot fail.
func encodeRaw(v any) json.RawMessage {
	raw, err := llm.Body(v)
	if err != nil {
		panic("anthropic: " + err.Error())
	}
	return raw
}
