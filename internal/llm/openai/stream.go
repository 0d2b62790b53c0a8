package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"capstan/internal/llm"
	"capstan/internal/msg"
)

// minPiece is what a piece of an answer counts as at least, in bytes: many small
// ones may become as many parts of a message.
const minPiece = 32

// decoder turns one answer into events.
type decoder struct {
	client  *Client
	ctx     context.Context
	request *llm.Request
	names   *llm.Names
	sent    int // bytes of the request
	*llm.Emitter

	text      llm.Joiner
	thought   llm.Joiner
	filter    filter
	assembler assembler
	details   details

	spoke   bool // there is text
	started bool
	counted bool
	finish  llm.Loose
	size    int

	weighed bool // least is known
	least   int  // tokens that the request has
}

// stream reads server-sent events. What comes after the reason to finish is
// not worth an error.
func (d *decoder) stream(body io.Reader) {
	for frame, err := range llm.Frames(body) {
		if err != nil {
			if d.finish != "" {
				break
			}
			d.Fail(d.client.endpoint.Failure(d.ctx, err))
			return
		}
		data := bytes.TrimSpace(frame.Data)
		if len(data) == 0 {
			continue
		}
		if string(data) == "[DONE]" {
			if !d.started {
				d.Fail(d.client.endpoint.ProtocolError("the stream ended without an answer"))
				return
			}
			if d.finish == "" {
				d.finish = "stop"
			}
			break
		}
		if d.chunk(data); d.Stopped() {
			return
		}
		if d.finish != "" && d.counted {
			break
		}
	}
	if d.finish == "" {
		d.Fail(d.client.endpoint.Cut())
		return
	}
	d.end()
}

// whole reads an answer that is not streamed, though it was asked for.
func (d *decoder) whole(body io.Reader, kind string) {
	raw, err := d.client.endpoint.Whole(d.ctx, body, kind, d.client.limit)
	if err != nil {
		d.Fail(err)
		return
	}
	if d.chunk(raw); d.Stopped() {
		return
	}
	if !d.started {
		d.Fail(d.client.endpoint.ProtocolError("the answer has no choices: %s", d.client.endpoint.Excerpt(raw)))
		return
	}
	if d.finish == "" {
		d.finish = "stop"
	}
	d.end()
}

func (d *decoder) chunk(data []byte) {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		d.Fail(d.client.endpoint.ProtocolError("a piece of the answer is not what the API promises (%v): %s", err, d.client.endpoint.Excerpt(data)))
		return
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		d.Fail(d.client.endpoint.Refusal(0, nil, data))
		return
	}
	if c.XGroq != nil && c.Usage == nil {
		c.Usage = c.XGroq.Usage
	}
	for i := range c.Choices {
		if ch := &c.Choices[i]; ch.Index == 0 { // more than one is never asked for
			d.choice(ch)
		}
	}
	d.count(c.Usage)
}

func (d *decoder) choice(c *choice) {
	d.started = true
	piece := &c.Delta
	if c.Message != nil {
		piece = c.Message
	}
	thought := piece.ReasoningContent.Text
	if len(thought) == 0 {
		thought = piece.Reasoning.Text
	}
	thought = append(thought, piece.Content.thought...)
	text := append(piece.Content.text, piece.Refusal.Text...)
	d.size += len(thought) + len(text) + minPiece
	d.details.add(piece.ReasoningDetails)
	if s := d.thought.Push(thought); s != "" {
		d.Emit(llm.Reasoning{Text: s})
	}
	d.say(d.text.Push(text))
	for i := range piece.ToolCalls {
		s := d.assembler.add(i, len(piece.ToolCalls), &piece.ToolCalls[i])
		if s == nil {
			d.Fail(d.client.endpoint.ProtocolError("the answer has more than %d tool calls", maxCalls))
			return
		}
		d.size += len(piece.ToolCalls[i].Function.Arguments.Text)
		d.Emit(llm.Progress{Name: d.names.Canonical(s.name), Bytes: len(s.args)})
	}
	if c.FinishReason != "" {
		d.finish, d.counted = c.FinishReason, false // counts so far are not the last
	}
	d.count(c.Usage)
	if d.size+d.details.size > d.client.limit {
		d.Fail(d.client.endpoint.TooLong(d.client.limit))
	}
}

// say passes text through the filter of leaked reasoning and calls.
func (d *decoder) say(s string) {
	thought, text := d.filter.push(s)
	if thought != "" {
		d.Emit(llm.Reasoning{Text: thought})
	}
	if text != "" {
		d.spoke = true
		d.Emit(llm.Text{Text: text})
	}
}

// keep yields the details of the reasoning. They are known at the end only, and
// belong to the text where there is one: reasoning that nothing follows does not
// go back.
func (d *decoder) keep() {
	state, err := d.details.json()
	if err != nil || state == nil {
		return
	}
	kind := msg.Reasoning
	if d.spoke {
		kind = msg.Text
	}
	d.Emit(llm.State{Kind: kind, Data: state})
}

func (d *decoder) count(u *usage) {
	if u == nil || u.PromptTokens == 0 && u.CompletionTokens == 0 {
		return
	}
	d.counted = true
	d.Emit(llm.Usage{Usage: u.words()})
	if p := int(u.PromptTokens); d.client.profile.CutsPrompts && p > 0 && p < d.sent/4 && p < d.fewest() && d.client.endpoint.First("cuts prompts") {
		d.Emit(llm.Warning{Text: fmt.Sprintf("%s read %d tokens of a request of %d bytes: it cuts the beginning of the prompt off. Raise its context size (Ollama: OLLAMA_CONTEXT_LENGTH; llama.cpp: -c).",
			d.client.endpoint.Name, p, d.sent)})
	}
}

// fewest is fewestTokens of the request, counted when first needed.
func (d *decoder) fewest() int {
	if !d.weighed {
		d.weighed, d.least = true, fewestTokens(d.request)
	}
	return d.least
}

// end yields what is known only now: the calls, and why the answer ended.
func (d *decoder) end() {
	if s := d.thought.Flush(); s != "" {
		d.Emit(llm.Reasoning{Text: s})
	}
	d.say(d.text.Flush())
	finish := finishes(d.finish)
	calls := d.assembler.finish(finish == llm.FinishLength)
	thought, text, leaked, left := d.filter.close(len(calls) == 0)
	if thought != "" {
		d.Emit(llm.Reasoning{Text: thought})
	}
	if text != "" {
		d.spoke = true
		d.Emit(llm.Text{Text: text})
	}
	d.keep()
	if len(leaked) > 0 {
		calls = d.assembler.leaked(leaked)
		d.Emit(llm.Warning{Text: fmt.Sprintf("%s left %d tool calls in the text of its answer; they were recognised", d.client.endpoint.Name, len(calls))})
	}
	for _, c := range calls {
		if !d.Emit(llm.Call{Call: c}) {
			return
		}
	}
	if finish == llm.FinishStop && len(calls) > 0 {
		finish = llm.FinishCalls
	}
	if finish == llm.FinishCalls && len(calls) == 0 {
		finish = llm.FinishStop
	}
	d.Emit(llm.Done{Finish: finish, Leaked: left})
}

func finishes(reason llm.Loose) llm.Finish {
	switch reason {
	case "length", "max_tokens", "model_length":
		return llm.FinishLength
	case "content_filter", "sensitive":
		return llm.FinishFiltered
	case "tool_calls", "function_call":
		return llm.FinishCalls
	}
	return llm.FinishStop
}
