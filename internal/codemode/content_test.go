package codemode_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/msg"
	"capstan/internal/tool"
)

// Every kind of content that a tool can answer with reaches the program, whole,
// in MCP's spelling; what is printed of pictures, sounds and documents, and of a
// resource that is one, reaches the model as it is. A value reaches the program whether
// or not it keeps to the tool's output schema.
// S0-098 S0-101 S1-109 BUG-MC-25
func TestNestedContent(t *testing.T) {
	all := &fake{
		spec: tool.Spec{Name: "all", Effect: tool.EffectRead, Output: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)},
		run: func(context.Context, *tool.Invocation) (tool.Result, error) {
			return tool.Result{
				Parts: []msg.Part{
					msg.TextPart("plain"),
					{Kind: msg.Image, MIMEType: "image/png", Data: []byte{1}},
					{Kind: msg.Audio, MIMEType: "audio/wav", Data: []byte{2}},
					{Kind: msg.Text, Text: "of a file", URI: "f:1", MIMEType: "text/plain"},
					{Kind: msg.Text, URI: "f:2"},
					{Kind: msg.File, MIMEType: "application/pdf", Data: []byte{3}, URI: "f:3"},
					{Kind: msg.Image, MIMEType: "image/gif", Data: []byte{4}, URI: "f:4"},
					{Kind: msg.Link, URI: "f:5", Name: "five", Text: "what it is", MIMEType: "a/b"},
				},
				Data: json.RawMessage(`{"n":"one","more":[1.0,12345678901234567891]}`),
			}, nil
		},
	}
	one := &fake{spec: tool.Spec{Name: "one", Effect: tool.EffectRead}, run: func(context.Context, *tool.Invocation) (tool.Result, error) {
		return tool.Result{Parts: []msg.Part{{Kind: msg.Text, Text: "alone", URI: "f:1"}}}, nil
	}}
	w := newWorld(t, all, one)
	w.want(`text((await tools.one()).content)`, `[{"type":"resource","resource":{"uri":"f:1","text":"alone"}}]`)
	r := w.run(t.Context(), `const r = await tools.all();
text(r.output);
for (const b of r.content) text(b);
text(r.structuredContent);
text('with more', r.content[5]);
text({type: 'resource', resource: {uri: 'f:6', mimeType: 'A B', blob: 'BQ=='}});
for (const resource of [{blob: '!'}, {blob: ''}, {blob: 7}, null]) text({type: 'resource', resource});
image(r.content[1]); audio(r.content[2]); image(r.content[6]);`)
	want := []msg.Part{
		msg.TextPart(`plain
of a file
{"type":"text","text":"plain"}
{"type":"image","mimeType":"image/png","data":"AQ=="}
{"type":"audio","mimeType":"audio/wav","data":"Ag=="}
{"type":"resource","resource":{"uri":"f:1","mimeType":"text/plain","text":"of a file"}}
{"type":"resource","resource":{"uri":"f:2","text":""}}
{"type":"resource","resource":{"uri":"f:3","mimeType":"application/pdf"}}`),
		{Kind: msg.File, MIMEType: "application/pdf", Data: []byte{3}},
		msg.TextPart(`{"type":"image","mimeType":"image/gif","data":"BA==","uri":"f:4"}
{"type":"resource_link","mimeType":"a/b","uri":"f:5","name":"five","description":"what it is"}
{"n":"one","more":[1,12345678901234567891]}
with more {"type":"resource","resource":{"uri":"f:3","mimeType":"application/pdf","blob":"Aw=="}}
{"type":"resource","resource":{"uri":"f:6","mimeType":"application/octet-stream"}}`),
		{Kind: msg.File, MIMEType: "application/octet-stream", Data: []byte{5}},
		msg.TextPart(`{"type":"resource","resource":{"blob":"!"}}
{"type":"resource","resource":{"blob":""}}
{"type":"resource","resource":{"blob":7}}
{"type":"resource","resource":null}`),
		{Kind: msg.Image, MIMEType: "image/png", Data: []byte{1}},
		{Kind: msg.Audio, MIMEType: "audio/wav", Data: []byte{2}},
		{Kind: msg.Image, MIMEType: "image/gif", Data: []byte{4}},
	}
	if diff := cmp.Diff(want, r.Parts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
