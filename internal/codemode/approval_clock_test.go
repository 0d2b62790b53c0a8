package codemode_test

import (
	"strings"
	"testing"
	"time"

	"capstan/internal/codemode"
	"capstan/internal/sandbox"
	"capstan/internal/sched"
)

// While a person thinks about a call of a program, neither its CPU time nor the
// watchdog of its parent goes on, however often it asks. The person takes longer
// than the watchdog allows: were it to run, the program would always be killed.
// S0-135 S0-137 S0-180
func TestClockStandsForAPerson(t *testing.T) {
	const budget = 150 * time.Millisecond
	patience := 4*budget + time.Millisecond
	w := newWorld(t, echo("get"))
	w.exec.Limits = sandbox.Limits{CPU: budget, Watchdog: time.Millisecond}
	w.opt.Policy = policyFunc(func(r *sched.Request) sched.Verdict {
		if r.Call.Name == "get" {
			return sched.Verdict{Decision: sched.Ask, Reason: "it asks"}
		}
		return sched.Verdict{Decision: sched.Allow}
	})
	w.opt.Approver = approverFunc(func(q *sched.Question) (sched.Answer, error) {
		time.Sleep(patience + patience/2)
		return sched.Answer{Allow: !strings.Contains(string(q.Call.Args), "2")}, nil
	})
	r := w.run(t.Context(), `text((await tools.get({n: 1})).output); try { await tools.get({n: 2}) } catch (e) { text(e.code) }`)
	o := r.Display.(*codemode.Outcome)
	if want := "{\"n\":1}\nDENIED"; r.Text() != want || o.Err != nil || o.Usage.CPU >= budget {
		t.Errorf("%q after %v of CPU time, want %q: %v", r.Text(), o.Usage.CPU, want, o.Err)
	}
}
