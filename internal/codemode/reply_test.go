package codemode

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/msg"
	"capstan/internal/sandbox"
	"capstan/internal/tool"
)

// A reply fits its frame, and text travels once.
func TestReplyFits(t *testing.T) {
	body := sandbox.DefaultLimits().Body
	big := strings.Repeat("\n", 9<<20) // as JSON it is twice as long
	image := msg.Part{Kind: msg.Image, MIMEType: "image/png", Data: []byte{1}}
	for _, tc := range []struct {
		name    string
		in      tool.Result
		ok      bool
		text    int
		content []string // types
		notes   int
		code    string
	}{
		{"one text", tool.Text("a"), true, 1, nil, 0, ""},
		{"two texts", tool.Result{Parts: []msg.Part{msg.TextPart("a"), msg.TextPart("b")}}, true, 3, []string{"text", "text"}, 0, ""},
		{"two big texts", tool.Result{Parts: []msg.Part{msg.TextPart(big), msg.TextPart("b")}}, true, len(big) + 1, nil, 0, ""},
		{"a big text and a picture", tool.Result{Parts: []msg.Part{msg.TextPart(big), image}}, true, len(big), []string{"image"}, 0, ""},
		{"no text", tool.Result{Parts: []msg.Part{image}}, true, 0, []string{"image"}, 0, ""},
		{"a note and a resource", tool.Result{Parts: []msg.Part{{Kind: msg.Text, Text: "a", URI: "f:1"}}, Notes: []string{"n"}, Remarks: []string{"r"}}, true, 1, []string{"resource"}, 2, ""},
		{"a value that is too large", tool.Result{Parts: []msg.Part{msg.TextPart("a")}, Data: json.RawMessage(`"` + strings.Repeat("x", 16<<20) + `"`)}, true, 1, nil, 1, ""},
		{"a value that is no JSON", tool.Result{Parts: []msg.Part{msg.TextPart("a")}, Data: json.RawMessage(`{`)}, false, 0, nil, 0, tool.CodeFailed},
		{"a long failure", tool.Result{Status: tool.Failed, Code: tool.CodeTimeout, File: "/kept", Parts: []msg.Part{msg.TextPart(big)}}, false, 0, nil, 0, tool.CodeTimeout},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.in.Status == "" {
				tc.in.Status = tool.Success
			}
			r := toReply(&tc.in)
			if len(r.Value) > body || len(r.Text) > body {
				t.Fatalf("%d bytes of value, %d of text", len(r.Value), len(r.Text))
			}
			var got struct {
				Content []block
				Notes   []string
				Code    string
				Message string
			}
			if err := json.Unmarshal(r.Value, &got); err != nil {
				t.Fatal(err)
			}
			var content []string
			for _, b := range got.Content {
				content = append(content, b.Type)
			}
			if diff := cmp.Diff(tc.content, content); diff != "" || r.OK != tc.ok || len(r.Text) != tc.text || len(got.Notes) != tc.notes || got.Code != tc.code {
				t.Errorf("ok %v, text %d, content %v, notes %q, code %q", r.OK, len(r.Text), content, got.Notes, got.Code)
			}
			if tc.in.File != "" && !strings.Contains(got.Message, "the whole is in /kept") {
				t.Errorf("the message does not name the file")
			}
		})
	}
}
