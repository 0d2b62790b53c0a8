package agent

import (
	"sync"

	"capstan/internal/llm"
	"capstan/internal/msg"
)

// bytesPerToken is a guess: about right for English and code. Images are not
// counted.
const bytesPerToken = 4

// count keeps the limit of tokens when a server does not report them: many
// servers of one's own do not, and a limit that is not measured is none.
func (r *run) count(q *llm.Request, answer *msg.Message, reported msg.Usage) {
	if !r.counted() || reported.Input+reported.Output > 0 || len(answer.Parts) == 0 {
		return
	}
	if !r.meter.guesses() {
		r.a.emit(Noticed{"The provider does not say how many tokens it used, so the limit of tokens counts one for each 4 bytes."})
	}
	n := len(q.System) + messageBytes(answer)
	for i := range q.Tools {
		n += len(q.Tools[i].Description) + len(q.Tools[i].Parameters)
	}
	for i := range q.Messages {
		n += messageBytes(&q.Messages[i])
	}
	r.spend(msg.Usage{}, n/bytesPerToken+1)
}

// counted reports whether a limit of tokens counts for the run.
func (r *run) counted() bool {
	return r.a.opt.Limits.Tokens > 0 || r.above != nil && r.above.a.opt.Limits.Tokens > 0
}

// spend counts tokens, for the run and for the one that it works for: its limit
// is one for all.
func (r *run) spend(u msg.Usage, guessed int) {
	r.meter.add(u, guessed)
	if r.above != nil {
		r.above.meter.add(u, guessed)
	}
}

// A meter counts the tokens of a run and of its subagents.
type meter struct {
	mu      sync.Mutex
	usage   msg.Usage
	guessed int // of requests whose provider reports none
}

func (m *meter) add(u msg.Usage, guessed int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.usage.Add(u)
	m.guessed += guessed
}

func (m *meter) used() msg.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.usage
}

func (m *meter) guesses() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.guessed > 0
}

// tokens are those that were used, as far as anybody can say.
func (m *meter) tokens() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.usage.Input + m.usage.Output + m.guessed
}

func messageBytes(m *msg.Message) int {
	n := partBytes(m.Parts)
	for i := range m.Results {
		n += partBytes(m.Results[i].Parts)
	}
	return n
}

func partBytes(parts []msg.Part) int {
	n := 0
	for i := range parts {
		n += len(parts[i].Text)
		if c := parts[i].Call; c != nil {
			n += len(c.Name) + len(c.Args)
		}
	}
	return n
}
