package responses

import (
	"fmt"
	"strings"
	"testing"

	"capstan/internal/llm"
	"capstan/internal/msg"
)

// longHistory is a session of 2,000 messages.
func longHistory(state string) []msg.Message {
	var out []msg.Message
	for i := range 500 {
		id := fmt.Sprint("call_", i)
		first := msg.TextPart("I will read it.")
		if state != "" {
			first = msg.Part{Kind: msg.Reasoning, State: []byte(state)}
		}
		out = append(out,
			msg.Message{Role: msg.User, Parts: []msg.Part{msg.TextPart("Please look at the next file and say what is wrong with it.")}},
			msg.Message{Role: msg.Assistant, Origin: "responses/m", Parts: []msg.Part{first,
				{Kind: msg.CallPart, Call: &msg.Call{ID: id, Name: "read_file", Args: `{"path":"internal/llm/history.go","limit":200}`}}}},
			msg.Message{Role: msg.Tool, Results: []msg.Result{{CallID: id, Status: "success", Parts: []msg.Part{msg.TextPart(strings.Repeat("a line of code\n", 60))}}}},
			msg.Message{Role: msg.Assistant, Origin: "responses/m", Parts: []msg.Part{msg.TextPart("Nothing is wrong with it, as far as I can see.")}})
	}
	return append(out, said("Go on.")...)
}

// Target: 5 ms.
func BenchmarkRequest(b *testing.B) {
	for name, state := range map[string]string{
		"plain":     "",
		"reasoning": encryptedHead + strings.Repeat("g", 1000) + `","summary":[]}`,
	} {
		b.Run(name, func(b *testing.B) {
			c := answering("openai", answers{})
			r := &llm.Request{Model: "m", System: strings.Repeat("rules ", 1000), Messages: longHistory(state), Tools: tools4, CacheKey: "k"}
			body, _, err := c.encode(r)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := c.encode(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Target: 10 µs for an event, memory that does not grow with their number.
func BenchmarkEvent(b *testing.B) {
	for name, data := range map[string]string{
		"text":      `{"type":"response.output_text.delta","sequence_number":123,"item_id":"msg_67ccd2bf17f0819081ff3bb2cf6508e6","output_index":0,"content_index":0,"delta":" words","logprobs":[],"obfuscation":"abcdefgh"}`,
		"reasoning": `{"type":"response.reasoning_summary_text.delta","sequence_number":123,"item_id":"rs_67ccd2bf17f0819081ff3bb2cf6508e6","output_index":0,"summary_index":0,"delta":" words","obfuscation":"abcdefgh"}`,
		"call":      `{"type":"response.function_call_arguments.delta","sequence_number":123,"item_id":"fc_67ccd2bf17f0819081ff3bb2cf6508e6","output_index":0,"delta":"words","obfuscation":"abcdefgh"}`,
	} {
		b.Run(name, func(b *testing.B) {
			c := answering("openai", answers{})
			c.limit = 1 << 60
			r := &llm.Request{Model: "m", Messages: said("hi"), Tools: tools4}
			d := &decoder{client: c, ctx: b.Context(), request: r, names: llm.NewNames(nameRule, r.Tools, nil), Emitter: llm.NewEmitter(func(llm.Event, error) bool { return true })}
			line := []byte(data)
			b.ReportAllocs()
			for b.Loop() {
				d.event("", line)
			}
		})
	}
}
