package agent_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"capstan/internal/agent"
	"capstan/internal/llm"
	"capstan/internal/msg"
	"capstan/internal/tool"
)

// choices are the decisions of a random model and its user.
type choices struct{ data []byte }

func (c *choices) of(n int) int {
	if len(c.data) == 0 {
		return 0
	}
	b := c.data[0]
	c.data = c.data[1:]
	return int(b) % n
}

func pick[T any](c *choices, from ...T) T { return from[c.of(len(from))] }

// turn is a random answer: any events in any order, cut off anywhere.
func (c *choices) turn(r *rig) turn {
	return func(ctx context.Context, _ *llm.Request, yield func(llm.Event, error) bool) {
		for range c.of(6) {
			var e llm.Event
			switch c.of(9) {
			case 0:
				e = llm.Text{Text: pick(c, "so", " ", "", "well\n")}
			case 1:
				e = llm.Reasoning{Text: pick(c, "hm", "")}
			case 2:
				e = llm.State{Kind: pick(c, msg.Text, msg.Reasoning), Data: []byte(`{"s":1}`)}
			case 3, 4, 5:
				call := calls(pick(c, "", "c", "c_2", "c/1", "call_1", "d"), pick(c, "read_file", "write_file", "interrupt", "poll", "structured_output", "unknown", ""),
					pick(c, `{"path":"a"}`, `{"path":"missing"}`, `{}`, `{"n":1}`, `{"path":`, "", `[1]`, `{"path":"a","path":"b"}`))
				call.Call.Fault = pick(c, "", "", "", "cut off")
				e = call
			case 6:
				e = llm.Usage{Usage: msg.Usage{Input: c.of(50), Output: c.of(9)}}
			case 7:
				r.agent.Queue([]msg.Part{msg.TextPart("queued")})
				continue
			case 8:
				switch c.of(4) {
				case 0:
					e = llm.Retry{Attempt: 2, Err: &llm.Error{Kind: llm.ErrOverloaded}}
				case 1:
					r.cancel(context.Canceled) // and a provider that takes no notice
					continue
				case 2:
					yield(nil, &llm.Error{Kind: llm.ErrNetwork, Provider: "test"})
					return
				case 3:
					return // without an end
				}
			}
			if !yield(e, nil) {
				return
			}
		}
		yield(llm.Done{Finish: pick(c, llm.FinishStop, llm.FinishCalls, llm.FinishLength, llm.FinishFiltered), Leaked: c.of(8) == 1}, nil)
	}
}

// Whatever a model does and whenever it is interrupted: each call has exactly
// one result, the log reads back as the same history, the events tell the whole
// of it in order, each request begins with the one before, and every run ends.
// S3-014
func FuzzRun(f *testing.F) {
	for seed := range uint64(150) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		data := make([]byte, 40+rnd.IntN(400))
		for i := range data {
			data[i] = byte(rnd.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &choices{data: data}
		r := newRig(t, tool.Direct)
		r.opt.Limits = agent.Limits{Turns: 1 + c.of(8), Calls: c.of(12), Tokens: c.of(3) * 100}
		r.opt.Sched.Policy = pick(c, &notAllowed{}, &notAllowed{deny: []string{"write_file"}, ask: []string{"poll"}})
		if c.of(5) == 1 {
			r.opt.Structured = []byte(`{}`)
		}
		r.model.turns, r.model.repeats = []turn{c.turn(r)}, true
		for range 1 + c.of(3) {
			from, before := len(r.events), r.start().History()
			out := r.run(pick(c, "Work.", ""))
			told := append(before, told(r.events[from:])...)
			if got := r.agent.History(); !endsLike(got, told) {
				t.Errorf("the events tell another story (- had, + told):\n%s", cmp.Diff(got, told, cmpopts.EquateEmpty()))
			}
			if out.Turns > r.opt.Limits.Turns {
				t.Errorf("%d turns", out.Turns)
			}
		}
		for i := 1; i < len(r.model.asks); i++ {
			a, b := r.model.asks[i-1].Messages, r.model.asks[i].Messages
			if len(b) < len(a) || !cmp.Equal(a, b[:len(a)], cmpopts.EquateEmpty()) {
				t.Errorf("request %d does not begin with the one before", i)
			}
		}
		if err := r.opt.Log.Close(); err != nil {
			t.Error(err)
		}
	})
}

// told is the conversation as the events tell it, less the prompt.
func told(events []agent.Event) (out []msg.Message) {
	for _, e := range events {
		switch e := e.(type) {
		case agent.Answered:
			if len(e.Message.Parts) > 0 {
				out = append(out, e.Message)
			}
		case agent.Observed:
			out = append(out, e.Message)
		}
	}
	return out
}

// endsLike compares what was told with the history, which has the prompts too.
func endsLike(history, told []msg.Message) bool {
	texts := func(ms []msg.Message) string {
		var b strings.Builder
		for _, m := range ms {
			if m.Role != msg.User {
				fmt.Fprintf(&b, "%s %v %v\n", m.Role, cmp.Diff(nil, m.Parts), cmp.Diff(nil, m.Results))
			}
		}
		return b.String()
	}
	return texts(history) == texts(told)
}
