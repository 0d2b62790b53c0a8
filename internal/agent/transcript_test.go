package agent_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/agent"
	"capstan/internal/llm"
	"capstan/internal/msg"
	"capstan/internal/sched"
	"capstan/internal/tool"
)

var update = flag.Bool("update", false, "write what happens into the transcripts")

// A transcript in testdata is what is said and what happens then, with a line
// of dashes between. Before it:
//
//	mode code                 of the tools; exec is there in code and both
//	limit calls 3             or turns, tokens, wall
//	structured SCHEMA         the run ends with structured_output
//	deny NAME, ask NAME       rules; nobody can be asked
//	turn                      begins an answer of the model
//	  text T, blank, think T, call ID NAME ARGS, fault ID NAME TEXT, usage IN OUT,
//	  warn T, retry, leaked, finish F, error KIND TEXT
//	  queue T                 the user adds a message while it arrives
//	  interrupt               the user interrupts
//	again N                   the last answer comes N more times
//	user T                    a prompt, or none
const dashes = "----\n"

// The loop from outside, in testdata: what is said and everything that follows.
// S3-001 S3-002 S3-003 S3-004 S3-005: the loop, and the history in its prompts
// S3-007 S3-008 S3-009: text, calls, several calls, calls that are not valid
// S3-010 S3-011 S3-012 S3-013: through sched, with its rules and its locks
// S3-014 S3-015 S3-016: results in the history, again and again, streamed
// S2-006: names that were not advertised
// BUG-CP-01 BUG-CP-13 BUG-ED-15 BUG-DL-08 BUG-AR-03 BUG-AR-18
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			script, want, _ := strings.Cut(string(data), dashes)
			got := play(t, script)
			if *update {
				if err := os.WriteFile(file, []byte(script+dashes+got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(- want, + got)\n%s", diff)
			}
		})
	}
}

// play runs a script and returns what happened.
func play(t *testing.T, script string) string {
	t.Helper()
	var r *rig
	mode, rules := tool.Direct, &notAllowed{}
	ready := func() *rig {
		if r == nil {
			r = newRig(t, mode)
			if mode != tool.Direct {
				r.programs()
			}
			r.opt.Sched.Policy = rules
		}
		return r
	}
	var steps [][2]string // of the turn that is being read
	var out strings.Builder
	end := func() {
		if steps != nil {
			ready().model.turns = append(r.model.turns, r.turn(steps))
			steps = nil
		}
	}
	for n, line := range strings.Split(strings.TrimRight(script, "\n"), "\n") {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(line, " ") {
			steps = append(steps, [2]string{word, rest})
			continue
		}
		if word != "again" {
			end()
		}
		switch word {
		case "", "#":
		case "mode":
			mode = tool.Mode(rest)
		case "limit":
			ready().limit(rest)
		case "structured":
			ready().opt.Structured = json.RawMessage(rest)
		case "deny":
			rules.deny = append(rules.deny, rest)
		case "ask":
			rules.ask = append(rules.ask, rest)
		case "turn":
			steps = [][2]string{}
		case "again":
			again := steps
			end()
			for range number(t, rest) {
				r.model.turns = append(r.model.turns, r.turn(again))
			}
		case "user":
			from := len(ready().events)
			o := r.run(rest)
			r.show(&out, r.events[from:], o)
		default:
			t.Fatalf("line %d: what is %q?", n+1, word)
		}
	}
	return out.String()
}

func number(t testing.TB, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (r *rig) limit(s string) {
	what, value, _ := strings.Cut(s, " ")
	if what == "wall" {
		d, err := time.ParseDuration(value)
		if err != nil {
			r.t.Fatal(err)
		}
		r.opt.Limits.Wall = d
		return
	}
	n := number(r.t, value)
	switch what {
	case "turns":
		r.opt.Limits.Turns = n
	case "calls":
		r.opt.Limits.Calls = n
	case "tokens":
		r.opt.Limits.Tokens = n
	default:
		r.t.Fatalf("no limit %q", what)
	}
}

// turn makes an answer of its steps.
func (r *rig) turn(steps [][2]string) turn {
	return func(ctx context.Context, _ *llm.Request, yield func(llm.Event, error) bool) {
		done := llm.Done{Finish: llm.FinishStop}
		for _, s := range steps {
			word, rest := s[0], s[1]
			id, more, _ := strings.Cut(rest, " ")
			name, args, _ := strings.Cut(more, " ")
			var e llm.Event
			switch word {
			case "text":
				e = llm.Text{Text: rest}
			case "blank":
				e = llm.Text{Text: " \n"}
			case "think":
				e = llm.Reasoning{Text: rest}
			case "call":
				e, done.Finish = calls(id, name, args), llm.FinishCalls
			case "fault":
				e, done.Finish = llm.Call{Call: msg.Call{ID: id, Name: name, Args: `{"path":"a`, Fault: args}}, llm.FinishLength
			case "usage":
				e = llm.Usage{Usage: msg.Usage{Input: number(r.t, id), Output: number(r.t, more)}}
			case "warn":
				e = llm.Warning{Text: rest}
			case "retry":
				e = llm.Retry{Attempt: 2, Err: &llm.Error{Kind: llm.ErrOverloaded, Provider: "test"}}
			case "leaked":
				done.Leaked = true
				continue
			case "finish":
				done.Finish = llm.Finish(rest)
				continue
			case "queue":
				r.agent.Queue([]msg.Part{msg.TextPart(rest)})
				continue
			case "interrupt":
				r.cancel(context.Canceled)
				yield(nil, &llm.Error{Kind: llm.ErrCancelled, Provider: "test", Err: ctx.Err()})
				return
			case "error":
				yield(nil, &llm.Error{Kind: llm.Kind(id), Provider: "test", Message: more})
				return
			default:
				panic("what is " + word)
			}
			if !yield(e, nil) {
				return
			}
		}
		yield(done, nil)
	}
}

// show writes what happened. Calls of one turn run side by side; they are
// sorted.
func (r *rig) show(w *strings.Builder, events []agent.Event, out *agent.Outcome) {
	var batch []sched.Event
	flush := func() {
		slices.SortStableFunc(batch, func(a, b sched.Event) int { return strings.Compare(a.Call.ID, b.Call.ID) })
		for _, e := range batch {
			fmt.Fprintf(w, "  %s %s %s", e.Call.ID, e.Kind, e.Call.Name)
			if e.Kind == sched.Started {
				fmt.Fprintf(w, " %s", e.Call.Args)
			}
			if e.Kind == sched.Settled {
				fmt.Fprintf(w, " %s %s", e.Result.Status, e.Result.Code)
			}
			w.WriteString("\n")
		}
		batch = nil
	}
	asked := len(r.model.asks) - out.Turns
	for _, e := range events {
		if c, ok := e.(agent.Called); ok {
			if c.Event.Kind == sched.Decided {
				continue // of each call that runs; TestRecordedDecisions has them
			}
			batch = append(batch, c.Event)
			continue
		}
		flush()
		switch e := e.(type) {
		case agent.Asked:
			q := r.model.asks[asked]
			asked++
			fmt.Fprintf(w, "asked %d: %d messages, %d tools\n", e.Turn, len(q.Messages), len(q.Tools))
		case agent.Streamed:
			fmt.Fprintf(w, "  < %s\n", brief(e.Event))
		case agent.Answered:
			fmt.Fprintf(w, "answered %q: ", e.Finish)
			showParts(w, e.Message.Parts)
		case agent.Observed:
			fmt.Fprintf(w, "observed %s: ", e.Message.Role)
			showParts(w, e.Message.Parts)
			for _, res := range e.Message.Results {
				fmt.Fprintf(w, "  %s %s %s: ", res.CallID, res.Status, res.Code)
				showParts(w, res.Parts)
			}
		case agent.Noticed:
			fmt.Fprintf(w, "noticed %s\n", e.Text)
		case agent.Ended:
			fmt.Fprintf(w, "ended %s: %q, %d turns, %d calls", out.Reason, out.Text, out.Turns, out.Calls)
			if out.Structured != nil {
				fmt.Fprintf(w, ", answer %s", out.Structured)
			}
			if n := out.Usage.Input + out.Usage.Output; n > 0 {
				fmt.Fprintf(w, ", %d tokens", n)
			}
			for _, d := range out.Denials {
				fmt.Fprintf(w, "\n  denied %s %s %s unasked=%v: %s", d.CallID, d.Name, d.Args, d.Unasked, d.Reason)
			}
			if out.Err != nil {
				fmt.Fprintf(w, "\n  error %v", out.Err)
			}
			w.WriteString("\n")
		}
	}
}

func brief(e llm.Event) string {
	switch e := e.(type) {
	case llm.Text:
		return "text " + e.Text
	case llm.Reasoning:
		return "think " + e.Text
	case llm.Call:
		return "call " + e.Call.ID + " " + e.Call.Name
	case llm.Done:
		return "done " + string(e.Finish)
	}
	return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", e), "llm."))
}

func showParts(w *strings.Builder, parts []msg.Part) {
	var said []string
	for _, p := range parts {
		switch p.Kind {
		case msg.Text:
			said = append(said, p.Text)
		case msg.CallPart:
			said = append(said, fmt.Sprintf("<call %s %s %s>", p.Call.ID, p.Call.Name, p.Call.Args))
		default:
			said = append(said, fmt.Sprintf("<%s %s>", p.Kind, p.Text))
		}
	}
	fmt.Fprintf(w, "%s\n", strings.ReplaceAll(strings.Join(said, " | "), "\n", "\n    "))
}
