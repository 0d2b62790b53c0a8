package anthropic

import (
	"bytes"

	"capstan/internal/llm"
	"capstan/internal/msg"
)

// What the API refuses of media, and with it the whole conversation: a type
// that the data are not of, a picture that cannot be read, too many bytes, too
// many pixels a side.
const (
	maxImage    = 5 << 20 / 4 * 3  // bytes; 5 MiB in base64
	maxDocument = 32 << 20 / 4 * 3 // bytes; the whole request may have 32 MB
	maxSide     = 8000
	manyImages  = 20 // in a request with more …
	manySide    = 2000
	maxMedia    = 100 // images and pages of documents in a request
)

// forget leaves out the oldest media of a request that has too many, tens at a
// time, so that the beginning of the next requests is the same.
func (h *history) forget(media []msg.Part) {
	var sent []msg.Part
	for _, p := range media {
		if h.takes(p) {
			sent = append(sent, p)
		}
	}
	h.old = map[*byte]bool{}
	if over := len(sent) - maxMedia; over > 0 {
		for _, p := range sent[:min((over+9)/10*10, len(sent))] {
			h.old[&p.Data[0]] = true
		}
	}
}

// takes reports whether the API takes a part that is no text.
func (h *history) takes(p msg.Part) bool {
	if len(p.Data) == 0 || h.old[&p.Data[0]] {
		return false
	}
	switch p.Kind {
	case msg.Image:
		side := maxSide
		if h.tight {
			side = manySide
		}
		kind, width, height := llm.Picture(p.Data)
		return h.client.profile.Images && kind != "" && len(p.Data) <= maxImage && 0 < width && width <= side && 0 < height && height <= side
	case msg.File:
		return h.model.claude && p.MIMEType == "application/pdf" && len(p.Data) <= maxDocument && bytes.HasPrefix(p.Data, []byte("%PDF"))
	}
	return false
}

// media writes a part that takes takes.
func media(p msg.Part) *wireBlock {
	if p.Kind == msg.File {
		return &wireBlock{Type: "document", Title: p.Name, Source: &wireSource{"base64", "application/pdf", p.Data}}
	}
	kind, _, _ := llm.Picture(p.Data)
	return &wireBlock{Type: "image", Source: &wireSource{"base64", kind, p.Data}}
}
