package main

import (
	"errors"
	"fmt"

	"capstan/internal/agent"
	"capstan/internal/app"
)

// shownDenials is how many denials are told of on stderr; the rest is counted.
const shownDenials = 5

// runs is what the command has to know of its runs when it ends. A conversation
// may have any number of them, so nothing else is kept.
type runs struct {
	session *app.Session
	ended   int
	code    int  // of the last one
	unasked int  // calls that were denied for want of somebody to ask
	denied  bool // such a call was in the last run
	output  bool // one ended because the output failed, and said so
}

// add says on stderr what did not go well in a run.
func (r *runs) add(o *agent.Outcome) {
	r.ended++
	r.code, r.denied = exitCode(o), false
	for _, d := range o.Denials {
		if !d.Unasked {
			continue
		}
		r.denied = true
		if r.unasked++; r.unasked <= shownDenials {
			fmt.Fprintf(stderr, "capstan: %s\n", r.session.Redact(oneLine(d.Reason, 1000)))
		}
	}
	if o.Err != nil {
		r.output = r.output || errors.Is(o.Err, errOutput)
		fmt.Fprintf(stderr, "capstan: %s\n", r.session.Redact(o.Err.Error()))
	}
}

// conclude says what there is to say after the last run, and returns its exit
// code.
func (r *runs) conclude(c *app.Conversation) int {
	if more := r.unasked - shownDenials; more > 0 {
		fmt.Fprintf(stderr, "capstan: %d more calls were denied because nobody could be asked\n", more)
	}
	if r.code != exitOK && c.Recorded() {
		fmt.Fprintf(stderr, "capstan: to go on: capstan --resume %s -p \"…\"\n", c.ID)
	}
	return r.code
}
