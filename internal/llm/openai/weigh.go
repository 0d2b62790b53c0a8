package openai

import (
	"capstan/internal/llm"
	"capstan/internal/msg"
)

// How many bytes of a text one token stands for at most, as a mean over a long
// text. Of English, code and JSON the tokenizers with the largest vocabularies
// make 3.3 to 4.9; of Cyrillic or Devanagari, with 2 and 3 bytes a letter, up to
// 10.
const (
	asciiPerToken = 5.5
	otherPerToken = 12
	longestRun    = 4       // of equal bytes, a line of dashes say, which few tokens hold
	leastWeighed  = 8 << 10 // bytes: of less the mean says nothing
)

// fewestTokens is how many tokens a request has at least for a server that reads
// all of it; 0 when nobody can say, for it is short or has media in it.
//
// Only what every chat template shows to the model is weighed. Reasoning of
// earlier answers is left out by many, and declarations of tools are written in
// fewer bytes than JSON by some, so half of them counts.
func fewestTokens(r *llm.Request) int {
	var said, declared weight
	said.text(r.System)
	for i := range r.Messages {
		m := &r.Messages[i]
		media := said.parts(m.Parts)
		for _, res := range m.Results {
			media = said.parts(res.Parts) || media
		}
		if media {
			return 0
		}
	}
	for _, d := range r.Tools {
		declared.text(d.Description)
		declared.text(string(d.Parameters))
	}
	if said.bytes()+declared.bytes()/2 < leastWeighed {
		return 0
	}
	return said.tokens() + declared.tokens()/2
}

// A weight is the bytes of texts, but for what is repeated.
type weight struct{ ascii, other int }

func (w *weight) bytes() int { return w.ascii + w.other }
func (w *weight) tokens() int {
	return int(float64(w.ascii)/asciiPerToken + float64(w.other)/otherPerToken)
}

func (w *weight) text(s string) {
	run := 0
	for i := 0; i < len(s); i++ {
		if run++; i > 0 && s[i] != s[i-1] {
			run = 1
		}
		switch {
		case s[i] >= 0x80:
			w.other++
		case run <= longestRun:
			w.ascii++
		}
	}
}

// parts reports whether there is media among them, of which bytes say nothing.
func (w *weight) parts(parts []msg.Part) (media bool) {
	for i := range parts {
		switch p := &parts[i]; {
		case len(p.Data) > 0:
			media = true
		case p.Kind == msg.Text:
			w.text(p.Text)
		case p.Kind == msg.CallPart && p.Call != nil:
			w.text(p.Call.Args)
		}
	}
	return media
}
