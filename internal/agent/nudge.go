package agent

import (
	"fmt"
	"strings"

	"capstan/internal/msg"
)

// How often a model is told of the same thing in a row before the run ends
// without an answer.
const (
	emptyMost      = 1
	leakedMost     = 2
	structuredMost = 2 // in the whole run
)

// nudges counts what the model was told.
type nudges struct{ empty, leaked, structured int }

// What a model is told when it does not get on. It says who speaks: the user
// has not written it.
const (
	fromUs         = "[From Capstan, not from the user] "
	emptyText      = "Your last answer was empty. If the task is done, say what came of it; if not, go on."
	emptyCutText   = "Your last answer reached the limit of output tokens before it said anything. Think less, and answer or make the next call."
	leakedText     = "Your last answer holds what looks like a tool call written as text; it was not run. If you want to call a tool, make a real tool call. If it was part of your answer, give the answer again without it."
	structuredText = "The task ends with a call of " + structuredOutput + ", not with text. Call it now with your answer."
	loopText       = "You repeat yourself: %s. Doing it again will bring nothing new. Use what you have, try another way, or say what keeps you from going on."
)

// nudge tells the model something, as a message in the history.
func (r *run) nudge(format string, a ...any) {
	r.observe([]msg.Part{msg.TextPart(fromUs + fmt.Sprintf(format, a...))})
}

// silent reports whether a message neither says nor shows anything.
func silent(m *msg.Message) bool {
	for _, p := range m.Parts {
		if p.Kind != msg.Reasoning && (p.Kind != msg.Text || strings.TrimSpace(p.Text) != "") {
			return false
		}
	}
	return true
}
