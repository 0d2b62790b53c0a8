package agent_test

import (
	"context"
	"fmt"
	"testing"

	"capstan/internal/agent"
	"capstan/internal/llm"
	"capstan/internal/msg"
	"capstan/internal/tool"
)

// The loop's own work for a prompt, a call and an answer, with a history of some
// length and without a log.
func BenchmarkTurn(b *testing.B) {
	for _, messages := range []int{0, 2000} {
		b.Run(fmt.Sprint(messages), func(b *testing.B) {
			r := newRig(b, tool.Direct)
			r.opt.Log, r.opt.Emit = nil, func(agent.Event) {}
			for i := range messages {
				r.opt.History = append(r.opt.History, msg.Message{Role: []msg.Role{msg.User, msg.Assistant}[i%2], Parts: prompt("something")})
			}
			turns := []turn{events(calls("", "read_file", `{"path":"a"}`)), events(llm.Text{Text: "Done."})}
			n := 0
			r.model.repeats, r.model.turns = true, []turn{func(ctx context.Context, q *llm.Request, yield func(llm.Event, error) bool) {
				turns[n%2](ctx, q, yield)
				n++
			}}
			a := r.start()
			for b.Loop() {
				if out := a.Run(b.Context(), prompt("Work.")); out.Reason != agent.Finished {
					b.Fatal(out.Err)
				}
				r.model.asks = r.model.asks[:0]
			}
		})
	}
}

// One event of a stream.
func BenchmarkEvent(b *testing.B) {
	r := newRig(b, tool.Direct)
	r.opt.Log, r.opt.Emit = nil, func(agent.Event) {}
	r.model.turns = []turn{func(ctx context.Context, q *llm.Request, yield func(llm.Event, error) bool) {
		for b.Loop() {
			yield(llm.Text{Text: "token "}, nil)
		}
		yield(llm.Done{Finish: llm.FinishStop}, nil)
	}}
	b.ReportAllocs()
	if out := r.start().Run(b.Context(), prompt("Work.")); out.Reason != agent.Finished {
		b.Fatal(out.Err)
	}
}
