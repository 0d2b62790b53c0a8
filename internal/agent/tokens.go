package agent

import (
	"capstan/internal/llm"
	"capstan/internal/msg"
)

// bytesPerToken is a guess: about right for English and code. Images are not
// counted.
const bytesPerToken = 4

// count keeps the limit of tokens when a server does not report them: many
// servers of one's own do not, and a limit that is not measured is none.
func (r *run) count(q *llm.Request, answer *msg.Message, reported msg.Usage) {
	if r.a.opt.Limits.Tokens == 0 || reported.Input+reported.Output > 0 || len(answer.Parts) == 0 {
		return
	}
	if r.guessed == 0 {
		r.a.emit(Noticed{"The provider does not say how many tokens it used, so the limit of tokens counts one for each 4 bytes."})
	}
	n := len(q.System) + messageBytes(answer)
	for i := range q.Tools {
		n += len(q.Tools[i].Description) + len(q.Tools[i].Parameters)
	}
	for i := range q.Messages {
		n += messageBytes(&q.Messages[i])
	}
	r.guessed += n/bytesPerToken + 1
}

// tokens are those that the run has used, as far as anybody can say.
func (r *run) tokens() int { return r.out.Usage.Input + r.out.Usage.Output + r.guessed }

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
