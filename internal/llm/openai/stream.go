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

// decoder turns one answer into events.
type decoder struct {
	client  *Client
	ctx     context.Context
	request *llm.Request
	names   *llm.Names
	sent    int // bytes of the request
	yield   func(llm.Event, error) bool
	stopped bool

	text      llm.Joiner
	thought   llm.Joiner
	filter    filter
	assembler assembler
	details   details

	started bool
	counted bool
	finish  llm.Loose
	size    int
}

// emit passes an event on and reports whether more are wanted.
func (d *decoder) emit(e llm.Event) bool {
	if !d.stopped && !d.yield(e, nil) {
		d.stopped = true
	}
	return !d.stopped
}

func (d *decoder) fail(err error) {
	if !d.stopped {
		d.stopped = true
		d.yield(nil, err)
	}
}

// stream reads server-sent events. What comes after the reason to finish is
// not worth an error.
func (d *decoder) stream(body io.Reader) {
	for frame, err := range llm.Frames(body) {
		if err != nil {
			if d.finish != "" {
				break
			}
			d.fail(d.client.endpoint.Failure(d.ctx, err))
			return
		}
		data := bytes.TrimSpace(frame.Data)
		if len(data) == 0 {
			continue
		}
		if string(data) == "[DONE]" {
			if !d.started {
				d.fail(d.client.endpoint.ProtocolError("the stream ended without an answer"))
				return
			}
			if d.finish == "" {
				d.finish = "stop"
			}
			break
		}
		if d.chunk(data); d.stopped {
			return
		}
		if d.finish != "" && d.counted {
			break
		}
	}
	if d.finish == "" {
		d.fail(d.client.endpoint.Cut())
		return
	}
	d.end()
}

// whole reads an answer that is not streamed, though it was asked for.
func (d *decoder) whole(body io.Reader, kind string) {
	raw, err := io.ReadAll(io.LimitReader(body, int64(d.client.limit)+1))
	switch {
	case err != nil:
		d.fail(d.client.endpoint.Failure(d.ctx, err))
	case len(raw) > d.client.limit:
		d.tooLong()
	case !json.Valid(raw):
		text := d.client.endpoint.Refusal(200, nil, raw) // reads pages of HTML
		d.fail(d.client.endpoint.ProtocolError("instead of an answer came %s: %s", kind, text.Message))
	default:
		if d.chunk(raw); d.stopped {
			return
		}
		if !d.started {
			d.fail(d.client.endpoint.ProtocolError("the answer has no choices: %s", excerpt(raw)))
			return
		}
		if d.finish == "" {
			d.finish = "stop"
		}
		d.end()
	}
}

func (d *decoder) tooLong() {
	d.fail(d.client.endpoint.ProtocolError("the answer is longer than %d MiB", d.client.limit>>20))
}

func (d *decoder) chunk(data []byte) {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		d.fail(d.client.endpoint.ProtocolError("a piece of the answer is not what the API promises (%v): %s", err, excerpt(data)))
		return
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		d.fail(d.client.endpoint.Refusal(0, nil, data))
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
	d.size += len(thought) + len(text)
	d.details.add(piece.ReasoningDetails)
	if s := d.thought.Push(thought); s != "" {
		d.emit(llm.Reasoning{Text: s})
	}
	d.say(d.text.Push(text))
	for i := range piece.ToolCalls {
		s := d.assembler.add(i, len(piece.ToolCalls), &piece.ToolCalls[i])
		if s == nil {
			d.fail(d.client.endpoint.ProtocolError("the answer has more than %d tool calls", maxCalls))
			return
		}
		d.size += len(piece.ToolCalls[i].Function.Arguments.Text)
		d.emit(llm.Progress{Name: d.names.Canonical(s.name), Bytes: len(s.args)})
	}
	if c.FinishReason != "" {
		d.finish, d.counted = c.FinishReason, false // counts so far are not the last
	}
	d.count(c.Usage)
	if d.size+d.details.size > d.client.limit {
		d.tooLong()
	}
}

// say passes text through the filter of leaked reasoning and calls.
func (d *decoder) say(s string) {
	thought, text := d.filter.push(s)
	if thought != "" {
		d.emit(llm.Reasoning{Text: thought})
	}
	if text != "" {
		d.emit(llm.Text{Text: text})
	}
}

func (d *decoder) count(u *usage) {
	if u == nil || u.PromptTokens == 0 && u.CompletionTokens == 0 {
		return
	}
	d.counted = true
	d.emit(llm.Usage{Usage: u.words()})
	// A token is hardly ever more than 12 bytes of a request.
	if p := int(u.PromptTokens); d.client.profile.CutsPrompts && p > 0 && d.sent > 16<<10 && !d.hasMedia() && p < d.sent/12 && d.client.endpoint.First("cuts prompts") {
		d.emit(llm.Warning{Text: fmt.Sprintf("%s read %d tokens of a request of %d bytes: it cuts the beginning of the prompt off. Raise its context size (Ollama: OLLAMA_CONTEXT_LENGTH; llama.cpp: -c).",
			d.client.endpoint.Name, p, d.sent)})
	}
}

// hasMedia reports whether bytes say nothing about tokens.
func (d *decoder) hasMedia() bool {
	for i := range d.request.Messages {
		m := &d.request.Messages[i]
		for _, p := range m.Parts {
			if len(p.Data) > 0 {
				return true
			}
		}
		for _, r := range m.Results {
			for _, p := range r.Parts {
				if len(p.Data) > 0 {
					return true
				}
			}
		}
	}
	return false
}

// end yields what is known only now: the calls, and why the answer ended.
func (d *decoder) end() {
	if s := d.thought.Flush(); s != "" {
		d.emit(llm.Reasoning{Text: s})
	}
	if state, err := d.details.json(); err == nil && state != nil {
		d.emit(llm.State{Kind: msg.Reasoning, Data: state})
	}
	d.say(d.text.Flush())
	finish := finishes(d.finish)
	calls := d.assembler.finish(finish == llm.FinishLength)
	thought, text, leaked, left := d.filter.close(len(calls) == 0)
	if thought != "" {
		d.emit(llm.Reasoning{Text: thought})
	}
	if text != "" {
		d.emit(llm.Text{Text: text})
	}
	if len(leaked) > 0 {
		calls = d.assembler.leaked(leaked)
		d.emit(llm.Warning{Text: fmt.Sprintf("%s left %d tool calls in the text of its answer; they were recognised", d.client.endpoint.Name, len(calls))})
	}
	for _, c := range calls {
		if !d.emit(llm.Call{Call: c}) {
			return
		}
	}
	if finish == llm.FinishStop && len(calls) > 0 {
		finish = llm.FinishCalls
	}
	if finish == llm.FinishCalls && len(calls) == 0 {
		finish = llm.FinishStop
	}
	d.emit(llm.Done{Finish: finish, Leaked: left})
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
