package responses

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"

	"capstan/internal/llm"
	"capstan/internal/msg"
)

// decoder turns one answer into events. What it gives out is in the order of
// the items: the first item that is not done is given out as it is written,
// those after it wait, and a call ends that, because a call is given out last
// of all, when the whole answer was compared with what was streamed.
type decoder struct {
	client  *Client
	ctx     context.Context
	request *llm.Request
	names   *llm.Names
	*llm.Emitter

	slots   []*slot
	current int // the item that is given out as it is written

	started bool
	finish  llm.Finish // empty until the answer ended
	size    int
}

// stream reads server-sent events up to the one that ends the answer.
func (d *decoder) stream(body io.Reader) {
	for frame, err := range llm.Frames(body) {
		if err != nil {
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
			break
		}
		if d.event(frame.Event, data); d.Stopped() {
			return
		}
		if d.finish != "" {
			d.end()
			return
		}
	}
	d.Fail(d.client.endpoint.Cut())
}

// whole reads an answer that is not streamed, though it was asked for.
func (d *decoder) whole(body io.Reader, kind string) {
	raw, err := d.client.endpoint.Whole(d.ctx, body, kind, d.client.limit)
	if err != nil {
		d.Fail(err)
		return
	}
	var r response
	if err := json.Unmarshal(raw, &r); err != nil {
		d.Fail(d.client.endpoint.ProtocolError("the answer is not what the API promises (%v): %s", err, d.client.endpoint.Excerpt(raw)))
		return
	}
	switch {
	case given(r.Error) && r.Status == "":
		d.Fail(d.client.endpoint.Refusal(0, nil, raw))
		return
	case r.Output == nil && !given(r.Error):
		d.Fail(d.client.endpoint.ProtocolError("the answer has no output: %s", d.client.endpoint.Excerpt(raw)))
		return
	}
	d.close("", &r, nil)
	if !d.Stopped() {
		d.end()
	}
}

// given reports whether a member is there and not null.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// event takes one event. Those that say nothing new are passed over, and so are
// those of tools that the provider runs.
func (d *decoder) event(name string, data []byte) {
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		d.Fail(d.client.endpoint.ProtocolError("a piece of the answer is not what the API promises (%v): %s", err, d.client.endpoint.Excerpt(data)))
		return
	}
	if e.Type == "" {
		e.Type = llm.Loose(name)
	}
	d.started = d.started || len(e.Type) > len("response.") && e.Type[:len("response.")] == "response."
	switch e.Type {
	case "response.output_item.added":
		d.added(&e)
	case "response.output_item.done":
		d.itemDone(&e)
	case "response.output_text.delta", "response.refusal.delta":
		d.grow(message, &e, "")
	case "response.reasoning_summary_text.delta":
		d.grow(reasoning, &e, "summary "+string(e.SummaryIndex))
	case "response.reasoning_text.delta":
		d.grow(reasoning, &e, "text "+string(e.ContentIndex))
	case "response.function_call_arguments.delta":
		d.argue(&e)
	case "response.function_call_arguments.done":
		if s := d.at(call, e.OutputIndex, e.ItemID); s != nil {
			if s.name == "" {
				s.name = e.Name
			}
			s.take(e.Arguments.Text)
			d.size += len(e.Arguments.Text)
		}
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		d.close(string(e.Type), e.Response, e.Error)
	case "error":
		d.Fail(d.client.endpoint.Refusal(0, nil, data))
	default:
		if given(e.Error) {
			d.Fail(d.client.endpoint.Refusal(0, nil, data))
		}
	}
	if d.size > d.client.limit {
		d.Fail(d.client.endpoint.TooLong(d.client.limit))
	}
}

// grow takes a piece of text. part tells the parts of reasoning apart.
func (d *decoder) grow(kind string, e *event, part string) {
	if s := d.at(kind, e.OutputIndex, e.ItemID); s != nil {
		d.write(s, e.Delta.Text, part)
	}
}

// write gives a piece of an item's text out, or keeps it until it is its turn.
func (d *decoder) write(s *slot, text []byte, part string) {
	if len(text) == 0 {
		return
	}
	if part != s.part && s.size > 0 {
		text = append([]byte("\n\n"), text...)
	}
	s.part = part
	s.size += len(text)
	d.size += len(text)
	out := s.text.Push(text)
	if d.current < len(d.slots) && s == d.slots[d.current] {
		d.say(s.kind, out)
	} else {
		s.pending = append(s.pending, out...)
	}
}

func (d *decoder) say(kind, text string) {
	switch {
	case text == "":
	case kind == reasoning:
		d.Emit(llm.Reasoning{Text: text})
	case kind == message:
		d.Emit(llm.Text{Text: text})
	}
}

// argue takes a piece of a call's arguments.
func (d *decoder) argue(e *event) {
	s := d.at(call, e.OutputIndex, e.ItemID)
	if s == nil {
		return
	}
	if e.Delta.Whole && len(e.Delta.Text) > 0 && e.Delta.Text[0] == '{' {
		s.take(e.Delta.Text) // an object instead of its text
	} else {
		s.args = append(s.args, e.Delta.Text...)
	}
	d.size += len(e.Delta.Text)
	d.Emit(llm.Progress{Name: d.names.Canonical(string(s.name)), Bytes: max(len(s.args), len(s.whole))})
}

// advance gives out the items that are done, up to the first that is not or
// that is a call.
func (d *decoder) advance() {
	for d.current < len(d.slots) {
		s := d.slots[d.current]
		if !s.done || s.kind == call {
			return
		}
		d.settle(s)
		if d.current++; d.current < len(d.slots) {
			d.flush(d.slots[d.current])
		}
	}
}

// flush gives out what an item kept until now.
func (d *decoder) flush(s *slot) {
	d.say(s.kind, string(s.pending))
	s.pending = nil
}

// settle gives out what ends an item that is no call.
func (d *decoder) settle(s *slot) {
	d.flush(s)
	d.say(s.kind, s.text.Flush())
	switch {
	case s.state != nil:
		d.Emit(llm.State{Kind: msg.Reasoning, Data: s.state})
	case s.kind == message && s.size > 0 && s.phase != "":
		if state, err := json.Marshal(phase{string(s.phase)}); err == nil && phaseOf(state) != "" {
			d.Emit(llm.State{Kind: msg.Text, Data: state})
		}
	case s.image != "":
		if data, err := base64.StdEncoding.DecodeString(string(s.image)); err == nil {
			d.Emit(llm.Media{Part: msg.Part{Kind: msg.Image, MIMEType: s.mime, Data: data}})
		} else {
			d.Emit(llm.Warning{Text: fmt.Sprintf("%s sent an image that cannot be read", d.client.endpoint.Name)})
		}
	}
}

// close takes the end of an answer.
func (d *decoder) close(kind string, r *response, inEvent json.RawMessage) {
	if r == nil {
		r = &response{}
	}
	if r.Usage != nil {
		d.Emit(llm.Usage{Usage: r.Usage.words()})
	}
	why := r.Error
	if !given(why) {
		why = inEvent
	}
	if kind == "response.failed" || kind == "response.cancelled" || r.Status == "failed" || r.Status == "cancelled" || given(why) {
		if !given(why) {
			why = json.RawMessage(`{"code":"server_error","message":"the answer ended as failed or cancelled, and nothing says why"}`)
		}
		d.Fail(d.client.endpoint.Refusal(0, nil, fmt.Appendf(nil, `{"error":%s}`, why)))
		return
	}
	d.finish = llm.FinishStop
	switch {
	case r.Incomplete != nil && r.Incomplete.Reason == "content_filter":
		d.finish = llm.FinishFiltered
	case kind == "response.incomplete" || r.Status == "incomplete" || r.Incomplete != nil && r.Incomplete.Reason != "":
		d.finish = llm.FinishLength
	}
	d.reconcile(r.Output)
}

// end gives out what waited: the items from the first call on.
func (d *decoder) end() {
	ids := llm.NewIDs(d.request.Messages)
	declared := make(map[string]*msg.Declaration, len(d.request.Tools))
	for i := range d.request.Tools {
		declared[d.request.Tools[i].Name] = &d.request.Tools[i]
	}
	last := -1
	for i, s := range d.slots {
		if s.kind == call {
			last = i
		}
	}
	calls := 0
	for _, s := range d.slots[:d.current] { // what only the list of the answer had
		d.flush(s)
		d.say(s.kind, s.text.Flush())
	}
	for i := d.current; i < len(d.slots) && !d.Stopped(); i++ {
		s := d.slots[i]
		if s.kind != call {
			d.settle(s)
			continue
		}
		raw := s.arguments()
		if s.name == "" && empty(raw) {
			continue // a phantom
		}
		if s.differ && d.client.endpoint.First("two versions") {
			d.Emit(llm.Warning{Text: fmt.Sprintf("%s sent the arguments of a call twice, and not the same; the more complete ones were taken", d.client.endpoint.Name)})
		}
		var j llm.Joiner
		args := j.Push(raw) + j.Flush()
		name := d.names.Canonical(string(s.name))
		id := string(s.call)
		if id == "" {
			id = string(s.id)
		}
		cut := s.cut || d.finish == llm.FinishLength && i == last
		d.Emit(llm.Call{Call: llm.Finished(ids.Take(id), name, args, declared[name], cut)})
		calls++
	}
	if d.finish == llm.FinishStop && calls > 0 {
		d.finish = llm.FinishCalls
	}
	d.Emit(llm.Done{Finish: d.finish})
}
