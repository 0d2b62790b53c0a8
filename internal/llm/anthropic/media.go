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
)

// takes reports whether the API takes a part that is no text.
func (h *history) takes(p msg.Part) bool {
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
