package headless

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/msg"
)

// told is what input says, one text for each command.
func told(input string) []string { return toldUpTo(MaxLine, input) }

func toldUpTo(most int, input string) []string {
	var out []string
	commands(strings.NewReader(input), most, func(c command) bool {
		switch {
		case c.err != nil:
			out = append(out, "error: "+c.err.Error())
		case c.control != nil:
			out = append(out, fmt.Sprintf("control %s %s", c.control.id, c.control.subtype))
		case c.reply != nil && c.reply.fault != "":
			out = append(out, "reply "+c.reply.id+" fault "+c.reply.fault)
		case c.reply != nil:
			out = append(out, "reply "+c.reply.id+" "+string(c.reply.response))
		default:
			text := "prompt"
			for _, p := range c.parts {
				text += fmt.Sprintf(" %s %s%s%s", p.Kind, p.Text, p.MIMEType, p.Data)
			}
			out = append(out, text)
		}
		return true
	})
	return out
}

// Lines are prompts, requests, nothing, or a clear error with their number.
func TestInput(t *testing.T) {
	user := func(content string) string {
		return `{"type":"user","message":{"role":"user","content":` + content + `},"parent_tool_use_id":null,"session_id":"x"}`
	}
	for _, tc := range []struct{ in, want string }{
		{user(`"hi"`), "prompt text hi"},
		{"\ufeff" + user(`"hi"`), "prompt text hi"},
		{user(`[{"type":"text","text":"a"},{"type":"text","text":" "},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"UE5H"}}]`), "prompt text a image image/pngPNG"},
		{`{"type":"control_request","request_id":"r","request":{"subtype":"interrupt"}}`, "control r interrupt"},
		{`{"type":"keep_alive"}`, ""},
		{`{"type":"control_response","response":{}}`, "error: line 1 of the input: a control_response needs a response with a request_id"},
		{`{"type":"control_response","response":{"subtype":"success","request_id":"perm_1","response":{"behavior":"deny"}}}`, `reply perm_1 {"behavior":"deny"}`},
		{`{"type":"control_response","response":{"subtype":"error","request_id":"perm_1","error":"no such tool"}}`, "reply perm_1 fault no such tool"},
		{`{"type":"control_cancel_request","request_id":"1"}`, ""},
		{"  ", ""},
		{`hello`, "error: line 1 of the input: it is no JSON object"},
		{`[1]`, "error: line 1 of the input: it is no JSON object"},
		{`{}`, `error: line 1 of the input: it has no "type"`},
		{`{"type":"assistant"}`, `error: line 1 of the input: unknown type "assistant"`},
		{`{"type":"user"}`, `error: line 1 of the input: a line of type "user" needs a message`},
		{`{"type":"user","message":{"role":"assistant","content":"x"}}`, `error: line 1 of the input: a line of type "user" needs a message of role "user"`},
		{user(`" "`), "error: line 1 of the input: the content is empty"},
		{user(`[]`), "error: line 1 of the input: the content is empty"},
		{user(`null`), "error: line 1 of the input: the content is neither a string nor a list of blocks"},
		{user(`7`), "error: line 1 of the input: the content is neither a string nor a list of blocks"},
		{user(`[{"type":"text"}]`), "error: line 1 of the input: the content is empty"},
		{user(`[{"type":"document"}]`), `error: line 1 of the input: block 1: a prompt has blocks of type text and image, not "document"`},
		{user(`[{"type":"image","source":{"type":"url","url":"http://x"}}]`), "error: line 1 of the input: block 1: an image needs a source of type base64"},
		{user(`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"!"}}]`), "error: line 1 of the input: block 1: the image is no base64"},
		{`{"type":"control_request","request":{"subtype":"interrupt"}}`, "error: line 1 of the input: a control_request needs a request_id"},
		{user("\"a\xffb\""), "error: line 1 of the input: it is not valid UTF-8"},
	} {
		for _, end := range []string{"", "\n", "\r\n"} { // the last line may have no end
			got := strings.Join(told(tc.in+end), "; ")
			if tc.want == "" && got != "" || !strings.HasPrefix(got, tc.want) || strings.HasPrefix(tc.want, "prompt") && got != tc.want {
				t.Errorf("%q: %q, want %q", tc.in, got, tc.want)
			}
		}
	}
	if diff := cmp.Diff([]string{"prompt text a", "error: line 3 of the input: it has no \"type\": want \"user\" or \"control_request\"", "prompt text b"}, told(user(`"a"`)+"\n\n{}\n"+user(`"b"`))); diff != "" {
		t.Error(diff)
	}
}

// A line that is too long is told of, whatever it is, and the next one is read.
func TestLongLine(t *testing.T) {
	const prompt = `{"type":"user","message":{"role":"user","content":"hi"}}`
	for _, n := range []int{len(prompt) + 1, 200_000} { // of the second, more than is read at once
		in := strings.Repeat("x", n) + "\n" + prompt + "\n" + prompt
		want := []string{fmt.Sprintf("error: line 1 of the input: it is longer than %d bytes", len(prompt)), "prompt text hi", "prompt text hi"}
		if diff := cmp.Diff(want, toldUpTo(len(prompt), in)); diff != "" {
			t.Errorf("%d: %s", n, diff)
		}
	}
}

// Whatever comes in, each line gives at most one command, and a prompt says
// something.
func FuzzInput(f *testing.F) {
	for _, s := range []string{"{}", `{"type":"user","message":{"content":"x"}}`, `{"type":"user","message":{"role":"user","content":[{"type":"text","text":"a"}]}}` + "\n\n[", "\xff\n{\"type\":1}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		n := 0
		commands(bytes.NewReader(in), 200, func(c command) bool {
			n++
			set := 0
			for _, is := range []bool{c.err != nil, c.control != nil, c.reply != nil, len(c.parts) > 0} {
				if is {
					set++
				}
			}
			if set != 1 {
				t.Fatalf("%+v", c)
			}
			for _, p := range c.parts {
				if p.Kind == msg.Text && strings.TrimSpace(p.Text) == "" || p.Kind == msg.Image && len(p.Data) == 0 {
					t.Fatalf("an empty part: %+v", c)
				}
			}
			return true
		})
		if most := bytes.Count(in, []byte("\n")) + 1; n > most {
			t.Fatalf("%d commands in %d lines", n, most)
		}
	})
}
