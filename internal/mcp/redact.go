package mcp

import (
	"encoding/json"

	"capstan/internal/msg"
	"capstan/internal/tool"
)

// redact takes the secrets that servers are given out of a text of ours that
// quotes one. Results are not touched: they are the server's data.
func (m *Manager) redact(s string) string {
	if m.o.Redact == nil {
		return s
	}
	return m.o.Redact(s)
}

// redactResult cleans what we say in a result: all of one that a call did not bring,
// the remarks of one that it did.
func (m *Manager) redactResult(r tool.Result, ours bool) tool.Result {
	for i := range r.Remarks {
		r.Remarks[i] = m.redact(r.Remarks[i])
	}
	for i := range r.Parts {
		if ours && r.Parts[i].Kind == msg.Text {
			r.Parts[i].Text = m.redact(r.Parts[i].Text)
		}
	}
	return r
}

// redactDefinition cleans what a server says of a tool, before anybody sees it: a
// definition is shown, sent and recorded everywhere.
func (m *Manager) redactDefinition(d definition) definition {
	if m.o.Redact == nil {
		return d
	}
	d.Title, d.Description, d.Annotations.Title = m.redact(d.Title), m.redact(d.Description), m.redact(d.Annotations.Title)
	d.InputSchema, d.OutputSchema = m.redactJSON(d.InputSchema), m.redactJSON(d.OutputSchema)
	return d
}

// redactJSON cleans the strings of a JSON text, as they are once they are decoded,
// and leaves every other byte as it is.
func (m *Manager) redactJSON(raw json.RawMessage) json.RawMessage {
	var out []byte
	done := 0 // what of raw is in out already
	for i := 0; i < len(raw); i++ {
		if raw[i] != '"' {
			continue
		}
		end := i + 1
		for end < len(raw) && raw[end] != '"' {
			if raw[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(raw))
		var s string
		if json.Unmarshal(raw[i:end], &s) == nil {
			if clean := m.redact(s); clean != s {
				quoted, _ := json.Marshal(clean) // a string always can
				out = append(append(out, raw[done:i]...), quoted...)
				done = end
			}
		}
		i = end - 1
	}
	if done == 0 {
		return raw
	}
	return append(out, raw[done:]...)
}
