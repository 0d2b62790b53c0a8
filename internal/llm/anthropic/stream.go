package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"capstan/internal/llm"
	"capstan/internal/msg"
)

// maxBlocks bounds the blocks of one answer.
const maxBlocks = 2000

// decoder turns one answer into events.
//
// Blocks are given out in the order in which they began, because the API wants
// that order back. Text and thinking are given out as they come while their
// block is the first that has not ended. A call is held back until the answer
// has ended: only then is it known whether it was cut off, and until then the
// request can be repeated. What follows a call waits with it.
type decoder struct {
	client  *Client
	ctx     context.Context
	request *llm.Request
	names   *llm.Names
	spent   msg.Usage // by the requests of this answer before
	*llm.Emitter

	model    model
	declared map[string]*msg.Declaration // by the name on the wire
	blocks   []*block
	front    int      // the first block that is not given out
	writing  *block   // whose part more text would be added to
	kind     msg.Kind // of that part
	usage    usage
	finish   llm.Loose
	details  *stopDetails
	started  bool
	ended    bool // by message_stop
	paused   bool // wants to be asked to go on
	size     int
}

func (d *decoder) init() {
	d.model = modelFor(d.request.Model)
	d.declared = make(map[string]*msg.Declaration, len(d.request.Tools))
	for i := range d.request.Tools {
		t := &d.request.Tools[i]
		d.declared[d.names.Wire(t.Name)] = t
	}
}

// stream reads server-sent events. What comes after the reason to stop is not
// worth an error.
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
		if string(data) == "[DONE]" { // some imitations
			d.ended = true
			break
		}
		if d.event(frame.Event, data); d.Stopped() {
			return
		}
		if d.ended {
			break
		}
	}
	switch {
	case !d.started && d.ended:
		d.Fail(d.client.endpoint.ProtocolError("the stream ended without an answer"))
	case d.finish == "" && !d.ended:
		d.Fail(d.client.endpoint.Cut())
	default:
		d.end()
	}
}

// whole reads an answer that is not streamed, though it was asked for.
func (d *decoder) whole(body io.Reader, kind string) {
	raw, err := d.client.endpoint.Whole(d.ctx, body, kind, d.client.limit)
	if err != nil {
		d.Fail(err)
		return
	}
	var e event
	var m message
	if json.Unmarshal(raw, &e) == nil && e.isError() {
		d.Fail(d.client.endpoint.Refusal(0, nil, raw))
		return
	}
	if err := json.Unmarshal(raw, &m); err != nil || m.Content == nil && m.StopReason == "" {
		d.Fail(d.client.endpoint.ProtocolError("the answer has no content: %s", d.client.endpoint.Excerpt(raw)))
		return
	}
	if d.message(&m); d.Stopped() {
		return
	}
	d.end()
}

func (e *event) isError() bool {
	return e.Type == "error" || len(e.Error) > 0 && string(e.Error) != "null"
}

func (d *decoder) event(name string, data []byte) {
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		d.Fail(d.client.endpoint.ProtocolError("an event of the answer is not what the API promises (%v): %s", err, d.client.endpoint.Excerpt(data)))
		return
	}
	if e.Type == "" {
		e.Type = name
	}
	index := ""
	if e.Index != nil {
		index = string(*e.Index)
	}
	switch {
	case e.isError():
		d.Fail(d.client.endpoint.Refusal(0, nil, data))
	case e.Type == "message_start" && e.Message != nil:
		d.message(e.Message)
	case e.Type == "content_block_start":
		d.begin(index, e.ContentBlock)
	case e.Type == "content_block_delta":
		d.grow(index, &e.Delta)
	case e.Type == "content_block_stop":
		if b := d.find(index); b != nil {
			b.closed = true
			d.flow()
		}
	case e.Type == "message_delta":
		d.stop(e.Delta.StopReason, e.Delta.StopDetails)
		d.count(e.Usage)
	case e.Type == "message_stop":
		d.ended = true
	} // ping, and what may come to be
	if d.size > d.client.limit {
		d.Fail(d.client.endpoint.TooLong(d.client.limit))
	}
}

// message takes the beginning of a stream, or a whole answer.
func (d *decoder) message(m *message) {
	d.started = true
	for i, raw := range m.Content {
		d.begin(fmt.Sprint("message ", i), raw)
		if d.Stopped() {
			return
		}
		d.blocks[len(d.blocks)-1].closed = true
	}
	d.flow()
	d.stop(m.StopReason, m.StopDetails)
	d.count(m.Usage)
}

func (d *decoder) stop(reason llm.Loose, details *stopDetails) {
	if reason != "" {
		d.finish = reason
	}
	if details != nil {
		d.details = details
	}
}

// begin takes the start of a block. One with the same index has ended.
func (d *decoder) begin(index string, raw json.RawMessage) {
	d.started = true
	d.size += len(raw)
	if b := d.find(index); b != nil {
		b.closed = true
	}
	b, err := newBlock(index, raw)
	if err != nil {
		d.Fail(d.client.endpoint.ProtocolError("a block of the answer is not what the API promises (%v): %s", err, d.client.endpoint.Excerpt(raw)))
		return
	}
	d.add(b)
}

func (d *decoder) add(b *block) {
	if len(d.blocks) >= maxBlocks {
		d.Fail(d.client.endpoint.ProtocolError("the answer has more than %d blocks", maxBlocks))
		return
	}
	d.blocks = append(d.blocks, b)
	d.progress(b)
	d.flow()
}

// find returns the latest block with an index; without one the latest of all.
func (d *decoder) find(index string) *block {
	for _, b := range slices.Backward(d.blocks) {
		if index == "" || b.index == index {
			return b
		}
	}
	return nil
}

// grow adds a delta to its block. One that fits no block that was begun begins
// one.
func (d *decoder) grow(index string, e *delta) {
	d.started = true
	b := d.find(index)
	if b == nil || b.closed || !b.takes(e.Type) {
		kind := kindOf(e.Type)
		if kind == "" {
			return // a signature or a citation of nothing
		}
		if b != nil {
			b.closed = true
		}
		b = &block{index: index, kind: kind}
		if d.add(b); d.Stopped() {
			return
		}
	}
	d.size += b.grow(e)
	d.progress(b)
	d.flow()
}

func (d *decoder) progress(b *block) {
	if b.kind == callBlock {
		d.Emit(llm.Progress{Name: d.names.Canonical(string(b.start.Name)), Bytes: len(b.args)})
	}
}

// flow gives out what can be given out.
func (d *decoder) flow() {
	for d.front < len(d.blocks) {
		b := d.blocks[d.front]
		if b.kind == callBlock {
			return
		}
		if d.tell(b, b.closed); !b.closed {
			return
		}
		d.front++
	}
}

// tell gives out what is there of a block that is no call.
func (d *decoder) tell(b *block, ended bool) {
	kind := msg.Text
	if b.kind == thinkingBlock || b.kind == redactedBlock {
		kind = msg.Reasoning
	}
	if d.writing != nil && d.writing != b && d.kind == kind {
		d.Emit(llm.State{Kind: kind, Data: json.RawMessage("{}")}) // two blocks are two parts
		d.writing = nil
	}
	if s := b.say(ended); s != "" {
		d.writing, d.kind = b, kind
		if kind == msg.Reasoning {
			d.Emit(llm.Reasoning{Text: s})
		} else {
			d.Emit(llm.Text{Text: s})
		}
	}
	if !ended { // what goes back is made once: it is as long as the block
		return
	}
	if data := b.state(); data != nil {
		d.writing = nil
		d.Emit(llm.State{Kind: kind, Data: data})
	}
}

func (d *decoder) count(u *usage) {
	if u == nil {
		return
	}
	d.usage.Input = max(d.usage.Input, u.Input)
	d.usage.Created = max(d.usage.Created, u.Created)
	d.usage.Read = max(d.usage.Read, u.Read)
	d.usage.Output = max(d.usage.Output, u.Output)
	if u.Details != nil {
		d.usage.Details = u.Details
	}
	all := d.spent
	all.Add(d.usage.words())
	d.Emit(llm.Usage{Usage: all})
}

// end yields what is known only now: the calls, and why the answer ended.
func (d *decoder) end() {
	finish := finishes(d.finish)
	ids := llm.NewIDs(d.request.Messages)
	calls := 0
	for ; d.front < len(d.blocks); d.front++ {
		b := d.blocks[d.front]
		if b.kind != callBlock {
			d.tell(b, true)
			continue
		}
		d.writing = nil
		cut := finish == llm.FinishLength && d.front == len(d.blocks)-1
		name := string(b.start.Name)
		args, kept := b.call(d.model.claude && !cut)
		if name == "" && (args == "" || args == "{}") {
			continue // a phantom
		}
		c := llm.Finished(ids.Take(string(b.start.ID)), d.names.Canonical(name), args, d.declared[name], cut)
		if !d.Emit(llm.Call{Call: c, State: kept}) {
			return
		}
		calls++
	}
	if d.finish == "pause_turn" && calls == 0 && len(d.request.Hosted) > 0 {
		d.paused = true
		return
	}
	if w := d.details; finish == llm.FinishFiltered && w != nil && w.Explanation != "" {
		d.Emit(llm.Warning{Text: fmt.Sprintf("%s declined to answer: %s", d.client.endpoint.Name, d.client.endpoint.Redact(string(w.Explanation)))})
	}
	switch {
	case finish == llm.FinishStop && calls > 0:
		finish = llm.FinishCalls
	case finish == llm.FinishCalls && calls == 0:
		finish = llm.FinishStop
	}
	d.Emit(llm.Done{Finish: finish})
}

func finishes(reason llm.Loose) llm.Finish {
	switch reason {
	case "max_tokens", "model_context_window_exceeded":
		return llm.FinishLength
	case "refusal":
		return llm.FinishFiltered
	case "tool_use":
		return llm.FinishCalls
	}
	return llm.FinishStop
}
