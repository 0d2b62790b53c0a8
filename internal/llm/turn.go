package llm

import "capstan/internal/msg"

// A Turn collects the events of one answer into the message that a session
// keeps. At any moment it holds what has arrived so far, so an interrupted
// answer is kept as well. It costs the same for every event, however long the
// answer is.
type Turn struct {
	Usage    msg.Usage
	Finish   Finish // empty until Done
	Warnings []string

	message msg.Message
	text    []byte // of the last part, while more of it may come
}

// NewTurn returns a Turn for an answer of origin, a FAMILY/MODEL.
func NewTurn(origin string) *Turn {
	return &Turn{message: msg.Message{Role: msg.Assistant, Origin: origin}}
}

// Add takes the next event.
func (t *Turn) Add(e Event) {
	switch e := e.(type) {
	case Text:
		t.write(msg.Text, e.Text)
	case Reasoning:
		t.write(msg.Reasoning, e.Text)
	case State:
		if !t.open(e.Kind) {
			t.add(msg.Part{Kind: e.Kind})
		}
		t.settle()
		t.message.Parts[len(t.message.Parts)-1].State = e.Data
	case Media:
		t.add(e.Part)
	case Call:
		c := e.Call
		t.add(msg.Part{Kind: msg.CallPart, Call: &c, State: e.State})
	case Usage:
		t.Usage = e.Usage
	case Warning:
		t.Warnings = append(t.Warnings, e.Text)
	case Retry:
		fresh := NewTurn(t.message.Origin)
		fresh.Warnings = t.Warnings
		*t = *fresh
	case Done:
		t.Finish = e.Finish
	}
}

// Message returns what has arrived. More may be added afterwards; the message
// that was returned does not change.
func (t *Turn) Message() msg.Message {
	t.settle()
	m := t.message
	m.Parts = append([]msg.Part(nil), m.Parts...)
	return m
}

// open reports whether more of kind belongs to the last part.
func (t *Turn) open(kind msg.Kind) bool {
	n := len(t.message.Parts)
	return n > 0 && t.message.Parts[n-1].Kind == kind && t.message.Parts[n-1].State == nil
}

// settle gives the last part its text.
func (t *Turn) settle() {
	if len(t.text) > 0 {
		t.message.Parts[len(t.message.Parts)-1].Text += string(t.text)
		t.text = t.text[:0]
	}
}

func (t *Turn) add(p msg.Part) {
	t.settle()
	t.message.Parts = append(t.message.Parts, p)
}

func (t *Turn) write(kind msg.Kind, s string) {
	if s == "" {
		return
	}
	if !t.open(kind) {
		t.add(msg.Part{Kind: kind})
	}
	t.text = append(t.text, s...)
}
