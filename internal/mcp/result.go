package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	strict "github.com/go-json-experiment/json"

	"capstan/internal/msg"
	"capstan/internal/schema"
	"capstan/internal/tool"
)

// A block is one piece of content as servers send it.
type block struct {
	Type        string    `json:"type"`
	Text        string    `json:"text"`
	Data        string    `json:"data"`
	MIMEType    string    `json:"mimeType"`
	URI         string    `json:"uri"`
	Name        string    `json:"name"`
	Title       string    `json:"title"`
	Description string    `json:"description"`
	Resource    *resource `json:"resource"`
}

// A resource is a document of a server, text or bytes.
type resource struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType"`
	Text     *string `json:"text"`
	Blob     *string `json:"blob"`
}

// result makes a Result of a server's answer. Nothing is lost: content of a kind
// that nobody knows is handed on as the JSON that it is.
func (t *remote) result(raw json.RawMessage) tool.Result {
	var in struct {
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
		Old        json.RawMessage `json:"toolResult"` // of the protocol's first version
	}
	r := tool.Result{Status: tool.Success}
	err := strict.Unmarshal(raw, &in, lenient)
	if err == nil {
		err = content(in.Content, &r)
	}
	if err != nil {
		return tool.Fail(tool.CodeFailed, "MCP server %s answered tool %s with what is no result: %s", t.s.cfg.Name, t.real, excerpt(raw, 500))
	}
	if missing(in.Structured) {
		in.Structured = in.Old
	}
	if !missing(in.Structured) {
		data, err := structured(in.Structured)
		if err != nil {
			r.Remarks = append(r.Remarks, "the structuredContent of the result cannot be read and is given as text: "+excerpt(err.Error(), 300))
			r.Parts = append(r.Parts, msg.TextPart(clean(string(in.Structured))))
		} else {
			r.Data = data
		}
	}
	// A model sees the parts. What is in them already is not said twice, least
	// of all a picture (BUG-MC-16); what is not must be.
	if len(r.Parts) == 0 && r.Data != nil {
		r.Parts = []msg.Part{msg.TextPart(string(r.Data))}
	}
	if in.IsError {
		r.Status, r.Code = tool.Failed, tool.CodeFailed
		if r.Text() == "" {
			r.Parts = append(r.Parts, msg.TextPart(fmt.Sprintf("tool %s of MCP server %s failed and does not say why", t.real, t.s.cfg.Name)))
		}
		return r
	}
	if note := t.check(r.Data); note != "" {
		r.Remarks = append(r.Remarks, note)
	}
	return r
}

// maxBlocks and maxValues bound what is made of one answer: a list of millions of
// zeroes is short in bytes, and costs hundreds of times as much as values.
const (
	maxBlocks = 10_000    // of the content of a result
	maxValues = 1_000_000 // of its structured content
)

// content makes Parts of a result's content, and a remark when that is cut.
func content(raw json.RawMessage, r *tool.Result) error {
	return elements(raw, func(b json.RawMessage) bool {
		if len(r.Parts) == maxBlocks {
			r.Remarks = append(r.Remarks, fmt.Sprintf("the result has more than %d blocks of content; the rest is left out", maxBlocks))
			return false
		}
		r.Parts = append(r.Parts, part(b))
		return true
	})
}

// structured reads a result's structured content.
func structured(raw json.RawMessage) (json.RawMessage, error) {
	// What is inside of texts is counted as well, but hardly any has a million.
	if bytes.Count(raw, []byte{','}) >= maxValues {
		return nil, fmt.Errorf("it has more than %d values", maxValues)
	}
	return schema.Parse(raw)
}

// check says how the structured content breaks the tool's own output schema. In
// the wild every tenth does: such a result is of use all the same.
func (t *remote) check(data json.RawMessage) string {
	switch {
	case t.output == nil:
		return ""
	case data == nil:
		return "the tool declares an output schema but sent no structuredContent"
	}
	canonical, coerced, err := t.output.Validate(data)
	switch {
	case err != nil:
		return "the result breaks the tool's own output schema: " + excerpt(err.Error(), 500)
	case len(coerced) > 0 && string(canonical) != string(data):
		return "the result breaks the tool's own output schema: " + excerpt(strings.Join(coerced, "; "), 500)
	}
	return ""
}

// part makes a Part of a block of content.
func part(raw json.RawMessage) msg.Part {
	var b block
	if err := strict.Unmarshal(raw, &b, lenient); err != nil {
		return msg.TextPart(clean(string(raw)))
	}
	switch b.Type {
	case "text":
		return msg.TextPart(text(b.Text))
	case "image", "audio":
		kind := msg.Image
		if b.Type == "audio" {
			kind = msg.Audio
		}
		data, err := decode(b.Data)
		if err != nil {
			return msg.TextPart(fmt.Sprintf("[%s %s that cannot be decoded: %v]", b.Type, excerpt(b.MIMEType, 100), err))
		}
		return msg.Part{Kind: kind, MIMEType: mimeType(b.MIMEType, data), Data: data}
	case "resource":
		if b.Resource != nil {
			return b.Resource.part()
		}
	case "resource_link":
		p := msg.Part{Kind: msg.Link, URI: clean(b.URI), Name: excerpt(b.Name, 500), MIMEType: excerpt(b.MIMEType, 100)}
		if p.Text = clean(b.Description); p.Text == "" {
			p.Text = clean(b.Title)
		}
		return p
	}
	return msg.TextPart(clean(string(raw)))
}

func (r *resource) part() msg.Part {
	p := msg.Part{Kind: msg.Text, URI: clean(r.URI), MIMEType: excerpt(r.MIMEType, 100)}
	if r.Blob == nil {
		if r.Text != nil {
			p.Text = text(*r.Text)
		}
		return p
	}
	data, err := decode(*r.Blob)
	if err != nil {
		p.Text = fmt.Sprintf("[resource %s that cannot be decoded: %v]", excerpt(r.URI, 300), err)
		return p
	}
	p.Data, p.MIMEType = data, mimeType(p.MIMEType, data)
	switch {
	case strings.HasPrefix(p.MIMEType, "image/"):
		p.Kind = msg.Image
	case strings.HasPrefix(p.MIMEType, "audio/"):
		p.Kind = msg.Audio
	default:
		p.Kind = msg.File
	}
	return p
}

// text is a result's text: exact but for what is no UTF-8.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// decode reads base64 in the spellings that servers use.
func decode(s string) ([]byte, error) {
	if i := strings.Index(s, ";base64,"); i >= 0 && strings.HasPrefix(s, "data:") {
		s = s[i+len(";base64,"):]
	}
	s = strings.TrimRight(strings.Map(func(r rune) rune {
		switch r {
		case '\n', '\r', ' ', '\t':
			return -1
		case '-':
			return '+'
		case '_':
			return '/'
		}
		return r
	}, s), "=")
	data, err := base64.RawStdEncoding.DecodeString(s)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		return nil, fmt.Errorf("it is empty")
	}
	return data, nil
}

// mimeType is what the server says, or what the bytes look like.
func mimeType(said string, data []byte) string {
	if said = strings.ToLower(strings.TrimSpace(said)); strings.Contains(said, "/") && said != "application/octet-stream" {
		return said
	}
	found, _, _ := strings.Cut(http.DetectContentType(data), ";")
	return found
}
