package llm

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/msg"
)

// What an API can't take becomes one line with its type, size and file
// (ruling 19).
func TestPlain(t *testing.T) {
	parts := []msg.Part{
		msg.TextPart("a\n"), msg.TextPart("b"),
		{Kind: msg.Audio, MIMEType: "audio/wav", Data: make([]byte, 12345), Name: "x\ny.wav"},
		{Kind: msg.Image, MIMEType: "image/png", Data: make([]byte, 7), Text: "a cat"},
		{Kind: msg.Link, URI: "file:///a", Name: "a"},
		{Kind: msg.File, MIMEType: "application/pdf", Data: make([]byte, 250), URI: "file:///b.pdf"},
	}
	text, taken := Plain(parts, func(p msg.Part) bool { return p.Kind == msg.File })
	want := "a\nb\n[audio audio/wav, 12.3 kB, x y.wav; this model's API cannot take it]\n" +
		"[image image/png, 7 B; this model's API cannot take it] a cat\n[link, a, file:///a]"
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(parts[5:], taken); diff != "" {
		t.Errorf("taken (-want +got):\n%s", diff)
	}
}
