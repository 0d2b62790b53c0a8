package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"capstan/internal/msg"
)

// kind says what an event records.
type kind string

// The kinds of an event. A reader skips one that it does not know.
const (
	kindHeader  kind = "header"
	kindMessage kind = "message"
	kindStart   kind = "start"
	kindResult  kind = "result"
	kindTurn    kind = "turn"
	kindValue   kind = "value"
	kindCompact kind = "compact"
	kindRepair  kind = "repair"
	// kindDecision is for audits alone: no state of a session follows from it.
	kindDecision kind = "decision"
)

// known reports whether this version folds events of kind k.
func (k kind) known() bool {
	switch k {
	case kindHeader, kindMessage, kindStart, kindResult, kindTurn, kindValue, kindCompact, kindRepair, kindDecision:
		return true
	}
	return false
}

// event is one line. What a list of sessions needs comes first.
type event struct {
	Kind  kind      `json:"kind"`
	Seq   int64     `json:"seq"`  // one more than the event before
	Turn  int64     `json:"turn"` // turns begun
	Time  time.Time `json:"time"`
	Title string    `json:"title,omitempty"` // the first line that the user wrote, with that message

	Header  *Header      `json:"header,omitempty"`
	Message *msg.Message `json:"message,omitempty"`
	Start   *Start       `json:"start,omitempty"`
	Result  *result      `json:"result,omitempty"`
	End     *TurnEnd     `json:"end,omitempty"`
	Value   *value       `json:"value,omitempty"`
	Compact *compact     `json:"compact,omitempty"`
	Repair  *repair      `json:"repair,omitempty"`

	Decision *Decision `json:"decision,omitempty"`

	// Blobs hold the data of parts; Whole holds the event itself when it is
	// too long for a line.
	Blobs []blob `json:"blobs,omitempty"`
	Whole *blob  `json:"whole,omitempty"`
}

// Header is the first event of a log.
type Header struct {
	Format    int    `json:"format"` // set by the log
	ID        string `json:"id"`     // set by the log
	Workspace string `json:"workspace"`
	Dir       string `json:"dir"`               // where the user stood
	Version   string `json:"version,omitempty"` // of Capstan
	Model     string `json:"model,omitempty"`   // FAMILY/NAME that it began with
	Mode      string `json:"mode,omitempty"`    // direct, code or both

	// Of a subagent: its session (set by the log), the call that started it, what
	// its session calls it, and of which kind it is.
	Parent    string `json:"parent,omitempty"`
	Call      string `json:"call,omitempty"`
	Agent     string `json:"agent,omitempty"`
	AgentType string `json:"agentType,omitempty"`
}

// Start records that a call is about to run.
type Start struct {
	ID       string `json:"id"`
	Name     string `json:"name"`               // the tool's true name, of a nested call too
	ParentID string `json:"parentId,omitempty"` // the call that a nested one was made by
	// Args of a nested call. Those of a model's call stand in its message
	// already and may be left out, unless a hook changed them.
	Args    string `json:"args,omitempty"`
	Mutates bool   `json:"mutates,omitempty"` // it may change something: the log is synced first
}

// result is the outcome of a call.
type result struct {
	msg.Result
	ParentID string `json:"parentId,omitempty"`
	Repaired bool   `json:"repaired,omitempty"` // made up when the session was resumed
}

// TurnEnd says how a turn ended.
type TurnEnd struct {
	Reason string    `json:"reason"` // finished, interrupted, a limit, or an error's text
	Usage  msg.Usage `json:"usage"`  // of this turn
}

type value struct {
	Key  string          `json:"key"`
	Data json.RawMessage `json:"data"`
}

type compact struct {
	Messages []msg.Message `json:"messages"`
}

type repair struct {
	Notes []string `json:"notes"`
	Line  int      `json:"line"` // damage up to this line has been told of
}

// A blob is a file beside the log, named by its content.
type blob struct {
	Part   int    `json:"part"` // which of the event's parts, in order
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	Ext    string `json:"ext"`
}

// mapParts replaces each part of the event by f of it. The slices are new, so
// the caller's message stays as it is.
func (e *event) mapParts(f func(msg.Part) msg.Part) {
	switch {
	case e.Message != nil:
		m := mapMessage(*e.Message, f)
		e.Message = &m
	case e.Result != nil:
		r := *e.Result
		r.Parts = mapSlice(r.Parts, f)
		e.Result = &r
	case e.Compact != nil:
		e.Compact = &compact{mapSlice(e.Compact.Messages, func(m msg.Message) msg.Message { return mapMessage(m, f) })}
	}
}

func mapMessage(m msg.Message, f func(msg.Part) msg.Part) msg.Message {
	m.Parts = mapSlice(m.Parts, f)
	m.Results = mapSlice(m.Results, func(r msg.Result) msg.Result {
		r.Parts = mapSlice(r.Parts, f)
		return r
	})
	return m
}

func mapSlice[T any](in []T, f func(T) T) []T {
	if in == nil {
		return nil
	}
	out := make([]T, len(in))
	for i, v := range in {
		out[i] = f(v)
	}
	return out
}

// encode returns v as one line of JSON, without its end and without the escapes
// that only a web page needs.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.ToValidUTF8(bytes.TrimSuffix(b.Bytes(), []byte("\n")), []byte("\uFFFD")), nil
}

// nestedText is how much of a nested result's text is kept, in bytes.
const nestedText = 4 << 10

// longestSecret is how far a secret may reach beyond a cut and still be seen.
const longestSecret = 16 << 10

// abridge returns the beginning of a nested result. It is cleaned before it is
// cut: half a secret is none that clean would know.
func abridge(parts []msg.Part, clean func(string) string) []msg.Part {
	left := nestedText
	return mapSlice(parts, func(p msg.Part) msg.Part {
		if n := len(p.Data); n > 0 {
			return msg.TextPart(fmt.Sprintf("[%s %s, %d bytes, not kept]", p.Kind, p.MIMEType, n))
		}
		if n := len(p.Text); n > left {
			p.Text = fmt.Sprintf("%s\n[%d bytes, the rest is not kept]", prefix(clean(prefix(p.Text, left+longestSecret)), left), n)
			left = 0
		} else {
			left -= n
		}
		return p
	})
}

// prefix returns at most n bytes of s, whole characters.
func prefix(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
