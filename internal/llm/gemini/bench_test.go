package gemini

import (
	"fmt"
	"strings"
	"testing"

	"capstan/internal/llm"
	"capstan/internal/msg"
)

// longHistory is a session of 2,000 messages.
func longHistory() []msg.Message {
	var out []msg.Message
	signature := `"` + strings.Repeat("Ab1+", 100) + `"`
	for i := range 500 {
		id := fmt.Sprint("call_", i)
		out = append(out,
			msg.Message{Role: msg.User, Parts: []msg.Part{msg.TextPart("Please look at the next file and say what is wrong with it.")}},
			msg.Message{Role: msg.Assistant, Origin: "gemini/gemini-3-pro", Parts: []msg.Part{msg.TextPart("I will read it."),
				signed(callPart(id, "read_file", `{"path":"internal/llm/history.go","limit":200}`), signature)}},
			msg.Message{Role: msg.Tool, Results: []msg.Result{{CallID: id, Status: "success", Parts: []msg.Part{msg.TextPart(strings.Repeat("a line of code\n", 60))}}}},
			msg.Message{Role: msg.Assistant, Origin: "gemini/gemini-3-pro", Parts: []msg.Part{msg.TextPart("Nothing is wrong with it, as far as I can see.")}})
	}
	return append(out, said("Go on.")...)
}

// Target: 5 ms.
func BenchmarkRequest(b *testing.B) {
	c := answering(answers{})
	r := &llm.Request{Model: "gemini-3-pro", System: strings.Repeat("rules ", 1000), Messages: longHistory(), Tools: tools4, CacheKey: "k"}
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
	for name, p := range map[string]string{
		"text":    `{"text":" words"}`,
		"thought": `{"text":" words","thought":true}`,
	} {
		b.Run(name, func(b *testing.B) {
			data := []byte(`{"candidates":[{"content":{"parts":[` + p + `],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":1234,"candidatesTokenCount":56,"totalTokenCount":1290,"promptTokensDetails":[{"modality":"TEXT","tokenCount":1234}],"thoughtsTokenCount":78},"modelVersion":"gemini-3-pro-preview","responseId":"Il0taoSYJ5Cez7IPgYHgwQ0"}`)
			c := answering(answers{})
			c.limit = 1 << 60
			r := &llm.Request{Model: "m", Messages: said("hi"), Tools: tools4}
			dec := newDecoder(b.Context(), c, r, llm.NewNames(nameRule, r.Tools, nil), func(llm.Event, error) bool { return true })
			b.ReportAllocs()
			for b.Loop() {
				dec.take(data)
			}
		})
	}
}
