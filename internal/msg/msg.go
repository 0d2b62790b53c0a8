// Package msg holds the words of a conversation that every other package
// shares: messages and their parts, calls and results, usage, and the
// declaration of a tool. It has no behaviour beyond reading them, knows no
// provider's wire format, and imports nothing of ours. Everything in it can be
// written as JSON and read back without loss, so that a session log can keep it.
package msg

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Kind says what a Part holds.
type Kind string

// The kinds of a Part.
const (
	Text  Kind = "text"
	Image Kind = "image"
	Audio Kind = "audio"
	File  Kind = "file" // an embedded document that is neither image nor audio, a PDF say
	Link  Kind = "link" // a resource named by URI, its content not included

	// These two occur in a message of the assistant only.
	Reasoning Kind = "reasoning" // Text is what the model thought, or a summary, or nothing
	CallPart  Kind = "call"      // Call is a call that the model made
)

// A Part is one block of a message or of a tool's result.
type Part struct {
	Kind     Kind   `json:"type"`
	Text     string `json:"text,omitempty"`     // Kind Text; for other kinds a caption
	MIMEType string `json:"mimeType,omitempty"` // of Data, or of what URI names
	Data     []byte `json:"data,omitempty"`     // raw bytes; base64 in JSON
	URI      string `json:"uri,omitempty"`
	Name     string `json:"name,omitempty"`
	Call     *Call  `json:"call,omitempty"` // Kind CallPart

	// State is what the provider that wrote this part wants back with it: a
	// signature, an encrypted item. It is opaque to everybody else, and sent
	// only to the origin that its message names.
	State json.RawMessage `json:"state,omitempty"`
}

// TextPart returns a Part of kind Text.
func TextPart(s string) Part { return Part{Kind: Text, Text: s} }

// WholeRunes takes off a character that was cut in two at the end of a text: what
// is no UTF-8 could not be written as JSON without loss.
func WholeRunes(b []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if last := b[len(b)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return b[:len(b)-n]
			}
			break
		}
	}
	return b
}

// JoinText returns the text of the text parts, one after the other, each on
// lines of its own.
func JoinText(parts []Part) string {
	if len(parts) == 1 && parts[0].Kind == Text {
		return parts[0].Text
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Kind != Text || p.Text == "" { // a part may be there for its State
			continue
		}
		if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
			b.WriteByte('\n')
		}
		b.WriteString(p.Text)
	}
	return b.String()
}

// A Declaration is a tool as a model is told of it.
type Declaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // JSON Schema, in the tool's own bytes
}
