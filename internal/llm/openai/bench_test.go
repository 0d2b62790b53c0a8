package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"capstan/internal/llm"
	"capstan/internal/msg"
)

// longHistory is a session of 2,000 messages.
func longHistory() []msg.Message {
	var out []msg.Message
	for i := range 500 {
		id := fmt.Sprint("call_", i)
		out = append(out,
			msg.Message{Role: msg.User, Parts: []msg.Part{msg.TextPart("Please look at the next file and say what is wrong with it.")}},
			msg.Message{Role: msg.Assistant, Origin: "openai/m", Parts: []msg.Part{msg.TextPart("I will read it."),
				{Kind: msg.CallPart, Call: &msg.Call{ID: id, Name: "read_file", Args: `{"path":"internal/llm/history.go","limit":200}`}}}},
			msg.Message{Role: msg.Tool, Results: []msg.Result{{CallID: id, Status: "success", Parts: []msg.Part{msg.TextPart(strings.Repeat("a line of code\n", 60))}}}},
			msg.Message{Role: msg.Assistant, Origin: "openai/m", Parts: []msg.Part{msg.TextPart("Nothing is wrong with it, as far as I can see.")}})
	}
	return append(out, said("Go on.")...)
}

// Target: 5 ms.
func BenchmarkRequest(b *testing.B) {
	c := answering("openai", answers{})
	r := &llm.Request{Model: "m", System: strings.Repeat("rules ", 1000), Messages: longHistory(), Tools: tools4, CacheKey: "k"}
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
}

// Target: 10 µs for an event, memory that does not grow with their number.
func BenchmarkEvent(b *testing.B) {
	for name, d := range map[string]string{
		"text":      `{"content":" words"}`,
		"reasoning": `{"reasoning_content":" words"}`,
		"call":      `{"tool_calls":[{"index":0,"function":{"arguments":"words"}}]}`,
	} {
		b.Run(name, func(b *testing.B) {
			data := []byte(`{"id":"chatcmpl-123456789","object":"chat.completion.chunk","created":1700000000,"model":"some-model","system_fingerprint":"fp_1","choices":[{"index":0,"delta":` + d + `,"logprobs":null,"finish_reason":null}]}`)
			c := answering("compatible", answers{})
			c.limit = 1 << 60
			r := &llm.Request{Model: "m", Messages: said("hi"), Tools: tools4}
			names := llm.NewNames(nameRule, r.Tools, nil)
			dec := &decoder{client: c, ctx: b.Context(), request: r, names: names, Emitter: llm.NewEmitter(func(llm.Event, error) bool { return true })}
			dec.assembler.init(r, names)
			dec.filter.init(c.profile, r, names)
			b.ReportAllocs()
			for b.Loop() {
				dec.chunk(data)
			}
		})
	}
}

// What encoding/json alone costs for the same event, to compare.
func BenchmarkEventBaseline(b *testing.B) {
	data := []byte(`{"id":"chatcmpl-123456789","object":"chat.completion.chunk","created":1700000000,"model":"some-model","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":" words"},"logprobs":null,"finish_reason":null}]}`)
	for b.Loop() {
		var v struct {
			Choices []struct {
				Delta struct {
					Content string `json:"content"`
				} `json:"delta"`
			} `json:"choices"`
		}
		if err := json.Unmarshal(data, &v); err != nil {
			b.Fatal(err)
		}
	}
}
