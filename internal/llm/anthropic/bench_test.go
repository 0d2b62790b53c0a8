package anthropic

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
	for i := range 500 {
		id := fmt.Sprint("toolu_", i)
		out = append(out,
			msg.Message{Role: msg.User, Parts: []msg.Part{msg.TextPart("Please look at the next file and say what is wrong with it.")}},
			answer(msg.Part{Kind: msg.Reasoning, Text: "I have to read it first.", State: encodeRaw(state{Signature: strings.Repeat("EqoC", 50)})},
				msg.TextPart("I will read it."), call(id, "read_file", `{"path":"internal/llm/history.go","limit":200}`)),
			results(result(id, strings.Repeat("a line of code\n", 60))),
			answer(msg.TextPart("Nothing is wrong with it, as far as I can see.")))
	}
	return append(out, said("Go on.")...)
}

// Target: 5 ms.
func BenchmarkRequest(b *testing.B) {
	c := answering(answers{})
	r := &llm.Request{Model: claude, System: strings.Repeat("rules ", 1000), Messages: longHistory(), Tools: tools4, CacheKey: "k"}
	e, err := c.encode(r, false)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(e.body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.encode(r, false); err != nil {
			b.Fatal(err)
		}
	}
}

// Target: 10 µs for an event, memory that does not grow with their number but
// by what they hold.
func BenchmarkEvent(b *testing.B) {
	for name, events := range map[string][2]string{
		"text":     {begin(0, `{"type":"text","text":""}`), textDelta(0, " words")},
		"thinking": {begin(0, `{"type":"thinking","thinking":""}`), piece(0, "thinking_delta", "thinking", `" words"`)},
		"call":     {use(0, "a", "shell", "{}"), jsonDelta(0, "words")},
	} {
		b.Run(name, func(b *testing.B) {
			c := answering(answers{})
			c.limit = 1 << 60
			r := &llm.Request{Model: claude, Messages: said("hi"), Tools: tools4}
			d := &decoder{client: c, ctx: b.Context(), request: r, names: llm.NewNames(nameRule, r.Tools, nil), Emitter: llm.NewEmitter(func(llm.Event, error) bool { return true })}
			d.init()
			d.event("content_block_start", []byte(events[0]))
			data := []byte(events[1])
			b.ReportAllocs()
			for b.Loop() {
				d.event("content_block_delta", data)
			}
		})
	}
}
