package hook

import (
	"bytes"
	"encoding/json"
)

// marshal is JSON as hooks read it: without escapes for web pages, and always
// valid UTF-8. What it is given is ours or was parsed as JSON before.
func marshal(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

func quote(s string) json.RawMessage { return marshal(s) }

// valid is raw when it is JSON, and otherwise its text.
func valid(raw json.RawMessage) json.RawMessage {
	if json.Valid(raw) {
		return raw
	}
	return quote(string(raw))
}
