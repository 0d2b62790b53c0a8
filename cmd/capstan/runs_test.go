package main

import (
	"errors"
	"testing"

	"capstan/internal/agent"
	"capstan/internal/app"
)

// The exit code is that of the last run. That a call of it was denied because
// nobody could be asked comes last: an interrupt, and a line of the input that was
// not answered, say more.
func TestEnding(t *testing.T) {
	fine := &agent.Outcome{Reason: agent.Finished}
	unasked := &agent.Outcome{Reason: agent.Finished, Denials: []agent.Denial{{Name: "edit", Reason: "it needs approval", Unasked: true}}}
	denied := &agent.Outcome{Reason: agent.Finished, Denials: []agent.Denial{{Name: "edit", Reason: "a rule forbids it"}}}
	turns := &agent.Outcome{Reason: agent.MaxTurns, Denials: unasked.Denials}
	interrupt := errors.New("interrupted")
	for _, tt := range []struct {
		name  string
		runs  []*agent.Outcome
		cause error
		bad   int
		want  int
	}{
		{"denied for want of somebody to ask", []*agent.Outcome{unasked}, nil, 0, exitUnasked},
		{"denied by a rule", []*agent.Outcome{denied}, nil, 0, exitOK},
		{"then all went well", []*agent.Outcome{unasked, fine}, nil, 0, exitOK},
		{"all went well before", []*agent.Outcome{fine, unasked}, nil, 0, exitUnasked},
		{"and a line that could not be used", []*agent.Outcome{unasked}, nil, 1, exitFailed},
		{"and an interrupt while it waits", []*agent.Outcome{unasked}, interrupt, 0, exitInterrupted},
		{"and a limit", []*agent.Outcome{turns}, nil, 1, exitTurns},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &runs{session: &app.Session{}}
			for _, o := range tt.runs {
				r.add(o)
			}
			f := &agentFlags{inputFormat: "stream-json"}
			err := f.ending(r.code, tt.cause, tt.bad, r)
			got := exitOK
			if e, ok := errors.AsType[*exitError](err); ok {
				got = e.code
			} else if err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("exit code %d, want %d", got, tt.want)
			}
		})
	}
}
