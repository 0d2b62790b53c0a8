package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"capstan/internal/llm"
	"capstan/internal/msg"
)

// minPiece is what a part of an answer counts as at least, in bytes: many small
// ones may be held, and become as many parts of a message.
const minPiece = 32

// maxCalls bounds the calls of one answer.
const maxCalls = 1000

// decoder turns one answer into events.
//
// The parts of an answer are in order, and a signature belongs to the part that
// it came with. So from the first call on all events are held until the end,
// when it is known whether the calls are whole; until then a stream that breaks
// can be asked for again.
type decoder struct {
	client   *Client
	ctx      context.Context
	names    *llm.Names
	declared map[string]*msg.Declaration // by the name on the wire
	ids      *llm.IDs
	*llm.Emitter

	joiner llm.Joiner
	kind   msg.Kind // of the text in joiner
	open   msg.Kind // of the part that is being written; empty when the next text begins one
	length int      // bytes of its text so far
	held   []llm.Event
	calls  int

	started bool
	blocked string // why the prompt was refused
	finish  string
	message string // what the API says about finish
	usage   usage
	size    int
}

func newDecoder(ctx context.Context, c *Client, r *llm.Request, names *llm.Names, yield func(llm.Event, error) bool) *decoder {
	d := &decoder{client: c, ctx: ctx, names: names, ids: llm.NewIDs(r.Messages), Emitter: llm.NewEmitter(yield),
		declared: make(map[string]*msg.Declaration, len(r.Tools))}
	for i := range r.Tools {
		d.declared[names.Wire(r.Tools[i].Name)] = &r.Tools[i]
	}
	return d
}

// stream reads server-sent events. The API ends a stream by closing it; what is
// wrong after the reason to finish is not worth an error.
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
		if string(data) == "[DONE]" { // a proxy's habit
			break
		}
		if d.take(data); d.Stopped() {
			return
		}
	}
	if d.finish == "" && d.blocked == "" {
		d.Fail(d.client.endpoint.Cut())
		return
	}
	d.end()
}

// whole reads an answer that is not a stream of events: one object, or the list
// of them that the API sends without alt=sse.
func (d *decoder) whole(body io.Reader, kind string) {
	raw, err := d.client.endpoint.Whole(d.ctx, body, kind, d.client.limit)
	if err != nil {
		d.Fail(err)
		return
	}
	if d.take(raw); d.Stopped() {
		return
	}
	if !d.started && d.blocked == "" {
		d.Fail(d.client.endpoint.ProtocolError("the answer has no candidates: %s", d.client.endpoint.Excerpt(raw)))
		return
	}
	d.end()
}

// take reads a chunk, or a list of them.
func (d *decoder) take(data []byte) {
	if data[0] != '[' {
		d.chunk(data)
		return
	}
	var list []json.RawMessage
	if err := llm.List(data, 10*llm.MaxPieces, &list); err != nil {
		d.unreadable(err, data)
		return
	}
	for _, raw := range list {
		if d.chunk(raw); d.Stopped() {
			return
		}
	}
}

func (d *decoder) unreadable(err error, data []byte) {
	d.Fail(d.client.endpoint.ProtocolError("a piece of the answer is not what the API promises (%v): %s", err, d.client.endpoint.Excerpt(data)))
}

func (d *decoder) chunk(data []byte) {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		d.unreadable(err, data)
		return
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		d.Fail(d.client.endpoint.Refusal(0, nil, data))
		return
	}
	if f := c.PromptFeedback; f != nil && f.BlockReason != "" && f.BlockReason != "BLOCK_REASON_UNSPECIFIED" {
		d.blocked, d.message = string(f.BlockReason), string(f.BlockReasonMessage)
	}
	for i := range c.Candidates {
		if one := &c.Candidates[i]; one.Index == 0 { // more than one is never asked for
			d.candidate(one)
		}
	}
	if d.size > d.client.limit {
		d.Fail(d.client.endpoint.TooLong(d.client.limit))
	}
	if c.UsageMetadata != nil {
		before := d.usage
		if d.usage.add(*c.UsageMetadata); d.usage != before {
			d.Emit(llm.Usage{Usage: d.usage.words()})
		}
	}
}

func (d *decoder) candidate(c *candidate) {
	d.started = true
	for i := range c.Content.Parts {
		if d.part(&c.Content.Parts[i]); d.Stopped() {
			return
		}
	}
	if c.FinishReason != "" && c.FinishReason != "FINISH_REASON_UNSPECIFIED" {
		d.finish, d.message = string(c.FinishReason), string(c.FinishMessage)
	}
}

func (d *decoder) part(p *part) {
	signature := string(p.ThoughtSignature)
	if !isBase64(signature) {
		signature = "" // it could not go back
	}
	d.size += len(signature) + minPiece
	switch {
	case p.FunctionCall != nil:
		d.call(p, signature)
	case p.InlineData != nil:
		d.media(p, signature)
	case p.size() > 0:
		d.hosted(p, signature)
	default:
		d.write(p, signature)
	}
}

// say yields an event in its place.
func (d *decoder) say(e llm.Event) {
	if len(d.held) > 0 {
		d.held = append(d.held, e)
		return
	}
	d.Emit(e)
}

// write passes a piece of text or of a thought on.
func (d *decoder) write(p *part, signature string) {
	kind := msg.Text
	if p.Thought {
		kind = msg.Reasoning
	}
	if kind != d.kind {
		d.flush()
	}
	d.kind = kind
	from := 0
	if d.open == kind {
		from = d.length
	}
	if p.Text != nil {
		d.size += len(p.Text.Text)
		d.tell(d.joiner.Push(p.Text.Text))
	}
	if signature != "" {
		d.flush()
		d.keep(kind, state{ThoughtSignature: signature, From: from})
	}
}

// tell yields text of the kind that is being written.
func (d *decoder) tell(s string) {
	if s == "" {
		return
	}
	if d.open != d.kind {
		d.open, d.length = d.kind, 0
	}
	d.length += len(s)
	if d.kind == msg.Reasoning {
		d.say(llm.Reasoning{Text: s})
	} else {
		d.say(llm.Text{Text: s})
	}
}

// flush yields what is left of a text that ends.
func (d *decoder) flush() {
	if d.kind != "" {
		d.tell(d.joiner.Flush())
	}
}

// keep yields what goes back with a part, which ends it.
func (d *decoder) keep(kind msg.Kind, s state) {
	raw, err := s.json()
	if err != nil { // what was read from JSON can be written
		d.unreadable(err, nil)
		return
	}
	d.say(llm.State{Kind: kind, Data: raw})
	d.open = ""
}

// hosted keeps a part about a tool of the provider. It has nothing to show, and
// must not become the State of the text before it.
func (d *decoder) hosted(p *part, signature string) {
	d.flush()
	d.size += p.size()
	kind := msg.Text
	if d.open == msg.Text {
		kind = msg.Reasoning
	}
	d.keep(kind, state{hosted: p.first(), ThoughtSignature: signature})
}

func (d *decoder) media(p *part, signature string) {
	d.flush()
	d.open = ""
	out := msg.Part{Kind: msg.File, MIMEType: string(p.InlineData.MIMEType), Data: p.InlineData.Data}
	switch {
	case strings.HasPrefix(out.MIMEType, "image/"):
		out.Kind = msg.Image
	case strings.HasPrefix(out.MIMEType, "audio/"):
		out.Kind = msg.Audio
	}
	d.size += len(out.Data)
	if signature != "" {
		out.State = stateOf(signature)
	}
	d.say(llm.Media{Part: out})
}

// stateOf is the State of a part that is signed as a whole.
func stateOf(signature string) json.RawMessage { return json.RawMessage(`"` + signature + `"`) }

// heldCall is a call that waits for the end of the answer. bare: it came without
// the field of its arguments.
type heldCall struct {
	llm.Call
	bare bool
}

// call holds a call until the end. Its bytes come in one piece.
func (d *decoder) call(p *part, signature string) {
	d.flush()
	d.open = ""
	f := p.FunctionCall
	name := string(f.Name)
	var j llm.Joiner
	args := j.Push(f.Args.Text) + j.Flush()
	if name == "" && (args == "" || args == "{}") {
		return // nothing that anybody could answer
	}
	if d.calls++; d.calls > maxCalls {
		d.Fail(d.client.endpoint.ProtocolError("the answer has more than %d tool calls", maxCalls))
		return
	}
	d.size += len(name) + len(args)
	c := heldCall{Call: llm.Call{Call: msg.Call{ID: d.ids.Take(string(f.ID)), Name: name, Args: args}}, bare: f.Args.Text == nil}
	if signature != "" {
		c.State = stateOf(signature)
	}
	d.held = append(d.held, c)
	d.Emit(llm.Progress{Name: d.names.Canonical(name), Bytes: len(args)})
}

// unreadCall is the Fault of calls beside one that the API could not read.
const unreadCall = "Another call of the same answer could not be read, so none was run. Make all of them again, each as a proper function call."

// end yields what is known only now: the calls, and why the answer ended.
func (d *decoder) end() {
	d.flush()
	if d.blocked != "" && !d.started {
		d.warn("refused the prompt", d.blocked)
		d.Emit(llm.Done{Finish: llm.FinishFiltered})
		return
	}
	e := endingOf(d.finish)
	if e.warn {
		d.warn("ended the answer", d.finish)
	}
	d.release(e)
	finish := e.finish
	if finish == llm.FinishStop && d.calls > 0 {
		finish = llm.FinishCalls
	}
	d.Emit(llm.Done{Finish: finish, Leaked: e.unread && d.calls == 0})
}

// release yields what was held since the first call. A call without args is one
// without arguments: in the API's reference they are an optional object. But only
// of a model that ended its answer itself; of any other nobody knows what is
// missing.
func (d *decoder) release(e ending) {
	left := d.calls
	for _, event := range d.held {
		if held, ok := event.(heldCall); ok {
			c := held.Call
			left--
			if held.bare && d.finish == "STOP" {
				c.Call.Args = "{}"
			}
			cut := e.finish == llm.FinishLength && left == 0
			c.Call = llm.Finished(c.Call.ID, d.names.Canonical(c.Call.Name), c.Call.Args, d.declared[c.Call.Name], cut)
			if e.unread && c.Call.Fault == "" {
				c.Call.Fault = unreadCall
			}
			event = c
		}
		if !d.Emit(event) {
			return
		}
	}
}

// warn tells a person of an end that is not the usual one. What the API says
// about it can hold the model's words, so it is quoted.
func (d *decoder) warn(what, reason string) {
	s := fmt.Sprintf("%s %s: %s", d.client.endpoint.Name, what, d.client.endpoint.Excerpt([]byte(reason)))
	if d.message != "" {
		s += " (" + d.client.endpoint.Excerpt([]byte(d.message)) + ")"
	}
	d.Emit(llm.Warning{Text: s})
}

// ending is what a reason to finish means.
type ending struct {
	finish llm.Finish
	unread bool // the model made a call that the API could not read
	warn   bool
}

func endingOf(reason string) ending {
	switch reason {
	case "", "STOP":
		return ending{finish: llm.FinishStop}
	case "MAX_TOKENS":
		return ending{finish: llm.FinishLength}
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL":
		return ending{finish: llm.FinishStop, unread: true, warn: true}
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "OTHER",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_OTHER":
		return ending{finish: llm.FinishFiltered, warn: true}
	}
	return ending{finish: llm.FinishStop, warn: true} // TOO_MANY_TOOL_CALLS, NO_IMAGE, and what is new
}
