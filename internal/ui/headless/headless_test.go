package headless

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"regexp"
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

var update = flag.Bool("update", false, "write the golden files")

var session = Session{ID: "s-1", Dir: "/w", Model: "openai/m", Mode: "code", ApprovalMode: "auto-edit", Version: "v1", Tools: func() []string { return []string{"exec"} }, Skills: func() []string { return []string{"notes"} }}

// story is a run with everything that is shown: reasoning, text, media, calls
// with odd arguments, nested calls, results, a queued message, a repeated
// request.
func story(w *Writer) {
	w.Begin()
	w.Event(agent.Asked{PromptID: "p-1", Turn: 1})
	for _, e := range []llm.Event{
		llm.Text{Text: "void"},
		llm.Retry{Attempt: 2, Err: &llm.Error{Kind: llm.ErrNetwork}},
		llm.Reasoning{Text: "hm"}, llm.Text{Text: "I "}, llm.Text{Text: "look <&>\u2028."},
		llm.Progress{Name: "exec", Bytes: 3},
		llm.Call{Call: msg.Call{ID: "c1", Name: "exec", Args: `{"n": 12345678901234567890, "d": 1.10}`}},
		llm.Call{Call: msg.Call{ID: "c2", Name: "broken", Args: "{\"a\": \xff"}},
		llm.Usage{Usage: msg.Usage{Input: 7}},
		llm.Done{Finish: llm.FinishCalls},
	} {
		w.Event(agent.Streamed{PromptID: "p-1", Event: e})
	}
	w.Event(agent.Answered{PromptID: "p-1", Finish: llm.FinishCalls, Usage: msg.Usage{Input: 100, Cached: 60, CacheWrite: 30, Output: 9}, Message: msg.Message{Role: msg.Assistant, Parts: []msg.Part{
		{Kind: msg.Reasoning, Text: "hm", State: json.RawMessage(`"secret"`)}, {Kind: msg.Reasoning},
		msg.TextPart("I look <&>\u2028."),
		{Kind: msg.CallPart, Call: &msg.Call{ID: "c1", Name: "exec", Args: `{"n": 12345678901234567890, "d": 1.10}`}},
		{Kind: msg.CallPart, Call: &msg.Call{ID: "c2", Name: "broken", Args: "{\"a\": \xff"}},
	}}})
	nested := &tool.Call{ID: "c1/1", ParentID: "c1", Name: "mcp__srv__do.it", Args: json.RawMessage(`{"x": 9007199254740993, "y": "` + "\u2028" + `"}`)}
	refused := &tool.Call{ID: "c1/2", ParentID: "c1", Name: "nope", Args: json.RawMessage(`not json`)}
	one, two := &tool.Call{ID: "c1", Name: "exec"}, &tool.Call{ID: "c2", Name: "broken"}
	for _, e := range []sched.Event{
		{Kind: sched.Started, Call: one},
		{Kind: sched.Settled, Call: two, Result: &tool.Result{CallID: "c2", Status: tool.Failed, Code: tool.CodeInvalidArgs, Parts: []msg.Part{msg.TextPart("no JSON")}}},
		{Kind: sched.Started, Call: nested}, {Kind: sched.Running, Call: nested}, {Kind: sched.Progress, Call: nested},
		{Kind: sched.Settled, Call: refused, Result: &tool.Result{CallID: "c1/2", Status: tool.Failed, Code: tool.CodeUnknownTool, Parts: []msg.Part{msg.TextPart("no such tool")}}},
		{Kind: sched.Settled, Call: nested, Result: &tool.Result{CallID: "c1/1", Status: tool.Success, Parts: []msg.Part{
			msg.TextPart("seen"), {Kind: msg.Image, MIMEType: "image/png", Data: []byte("PNG")}, {Kind: msg.Audio, MIMEType: "audio/wav", Data: []byte("RIFF"), Name: "a.wav"}}}},
		{Kind: sched.Settled, Call: one, Result: &tool.Result{CallID: "c1", Status: tool.Success, Parts: []msg.Part{msg.TextPart("one"), msg.TextPart("two")}}},
	} {
		c := agent.Called{Event: e}
		if r := e.Result; r != nil {
			c.Result = &msg.Result{CallID: r.CallID, Status: string(r.Status), Code: r.Code, Parts: r.Parts}
		}
		w.Event(c)
	}
	w.Event(agent.Observed{Message: msg.Message{Role: msg.Tool, Results: []msg.Result{
		{CallID: "c1", Status: "success", Parts: []msg.Part{msg.TextPart("one"), msg.TextPart("two")}},
		{CallID: "c2", Status: "error", Code: "INVALID_ARGS", Parts: []msg.Part{msg.TextPart("no JSON")}},
	}}})
	w.Event(agent.Observed{Message: msg.Message{Role: msg.User, Parts: []msg.Part{msg.TextPart("and hurry")}}})
	w.Event(agent.Noticed{Text: "is for people"})
	w.Event(agent.Asked{PromptID: "p-2", Turn: 2})
	w.Event(agent.Streamed{PromptID: "p-2", Event: llm.Text{Text: "done"}})
	w.Event(agent.Answered{PromptID: "p-2", Finish: llm.FinishStop, Message: msg.Message{Role: msg.Assistant, Parts: []msg.Part{msg.TextPart("done")}}})
	o := &agent.Outcome{Reason: agent.Finished, Text: "done", Turns: 2, Calls: 3, Usage: msg.Usage{Input: 200, Cached: 60, CacheWrite: 30, Output: 10}, Elapsed: 1500 * time.Millisecond, Waiting: time.Second,
		Denials: []agent.Denial{{Name: "edit", CallID: "c1/3", Args: json.RawMessage(`{"a": 1}`), Reason: "nobody can be asked", Unasked: true}, {Name: "big", CallID: "c1/4", Reason: "r"}}}
	w.Event(agent.Ended{Outcome: o})
	w.Result(o)
}

var random = regexp.MustCompile(`"uuid":"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"`)

// The lines of a stream, as clients read them. S0-263 S3-014 S3-016
func TestStream(t *testing.T) {
	for name, partial := range map[string]bool{"stream": false, "partial": true} {
		var out bytes.Buffer
		story(New(Options{Out: &out, Format: Stream, Partial: partial, Session: session}))
		got := random.ReplaceAllString(out.String(), `"uuid":"U"`)
		file := "testdata/" + name + ".jsonl"
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", file, diff)
		}
		for line := range strings.Lines(got) {
			if !json.Valid([]byte(line)) || strings.ContainsAny(line, "\u2028\u2029") {
				t.Errorf("not one line of JSON: %s", line)
			}
		}
	}
}

// What is printed in the end, and that nothing comes before it. BUG-AH-06
func TestResult(t *testing.T) {
	failed := &agent.Outcome{Reason: agent.Failed, Err: errors.New("no\nmore"), Text: "half", Turns: 1}
	finished := &agent.Outcome{Reason: agent.Finished, Text: "an answer"}
	structured := &agent.Outcome{Reason: agent.Finished, Text: "prose", Structured: json.RawMessage("{\"n\": 12345678901234567890,\n \"a\": []}")}
	const head = `{"type":"result","subtype":"`
	const tail = `"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0},"permission_denials":[]}` + "\n"
	line := func(subtype string, isError bool, reason string, turns string, rest string) string {
		e := "false"
		if isError {
			e = "true"
		}
		return head + subtype + `","uuid":"U","session_id":"","is_error":` + e + `,"reason":"` + reason + `","stop_reason":null,"duration_ms":0,"duration_api_ms":0,"num_turns":` + turns + `,"num_tool_calls":0,` + rest + tail
	}
	cut := &agent.Outcome{Reason: agent.Finished, Text: "half a sen", Finish: llm.FinishLength}
	for _, tc := range []struct {
		format Format
		o      *agent.Outcome
		want   string
	}{
		{Text, finished, "an answer\n"},
		{Text, failed, ""},
		{Text, structured, `{"n":12345678901234567890,"a":[]}` + "\n"},
		{Text, &agent.Outcome{Reason: agent.MaxTurns, Text: "I will now"}, ""},
		{JSON, finished, line("success", false, "finished", "0", `"result":"an answer",`)},
		{JSON, cut, strings.Replace(line("success", false, "finished", "0", `"result":"half a sen",`), `"stop_reason":null`, `"stop_reason":"max_tokens"`, 1)},
		{JSON, structured, line("success", false, "finished", "0", `"result":"{\"n\":12345678901234567890,\"a\":[]}","structured_output":{"n":12345678901234567890,"a":[]},`)},
		{JSON, failed, line("error_during_execution", true, "failed", "1", `"last_text":"half","errors":["no\nmore"],"error":{"message":"no\nmore"},`)},
		{JSON, &agent.Outcome{Reason: agent.MaxTurns}, line("error_max_turns", true, "max_turns", "0", "")},
		{JSON, &agent.Outcome{Reason: agent.NoAnswer}, line("error_during_execution", true, "no_answer", "0", "")},
		{JSON, &agent.Outcome{Reason: agent.Interrupted}, line("error_during_execution", true, "interrupted", "0", "")},
	} {
		var out bytes.Buffer
		w := New(Options{Out: &out, Format: tc.format})
		w.Begin()
		w.Event(agent.Asked{PromptID: "p"})
		w.Event(agent.Streamed{PromptID: "p", Event: llm.Text{Text: "x"}})
		w.Event(agent.Answered{PromptID: "p", Message: msg.Message{Parts: []msg.Part{msg.TextPart("x")}}})
		w.Result(tc.o)
		if diff := cmp.Diff(tc.want, random.ReplaceAllString(out.String(), `"uuid":"U"`)); diff != "" {
			t.Errorf("%s, %s: (-want +got)\n%s", tc.format, tc.o.Reason, diff)
		}
	}

	var out bytes.Buffer
	w := New(Options{Out: &out, Format: JSON})
	w.Describe(Session{Structured: true})
	w.Result(&agent.Outcome{Reason: agent.NoAnswer})
	if diff := cmp.Diff(line("error_max_structured_output_retries", true, "no_answer", "0", ""), random.ReplaceAllString(out.String(), `"uuid":"U"`)); diff != "" {
		t.Errorf("with a schema: (-want +got)\n%s", diff)
	}
}

// An answer that is cut short is not told as one that is whole.
func TestPartialCut(t *testing.T) {
	for finish, whole := range map[llm.Finish]bool{"": false, llm.FinishStop: true, llm.FinishLength: true} {
		var out bytes.Buffer
		w := New(Options{Out: &out, Format: Stream, Partial: true})
		w.Event(agent.Asked{PromptID: "p"})
		w.Event(agent.Streamed{PromptID: "p", Event: llm.Text{Text: "x"}})
		w.Event(agent.Answered{PromptID: "p", Finish: finish, Message: msg.Message{Parts: []msg.Part{msg.TextPart("x")}}})
		for _, end := range []string{"message_delta", "message_stop"} {
			if got := strings.Contains(out.String(), `"type":"`+end+`"`); got != whole {
				t.Errorf("finish %q: %s is there: %t, want %t\n%s", finish, end, got, whole, out.String())
			}
		}
	}
}

// failing fails from a number of writes on.
type failing struct{ left int }

func (f *failing) Write(p []byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, errors.New("closed")
	}
	return len(p), nil
}

// The first error of the output is told, once, and nothing is written after it.
func TestOutputFails(t *testing.T) {
	told := 0
	f := &failing{left: 2}
	w := New(Options{Out: f, Format: Stream, Session: session, Failed: func(error) { told++ }})
	story(w)
	if told != 1 || f.left != -1 || w.Err() == nil {
		t.Errorf("told %d times, %d writes left, %v", told, f.left, w.Err())
	}
}

// Of what a program reads the beginning is shown.
func TestNestedIsAbridged(t *testing.T) {
	got := contentOf([]msg.Part{msg.TextPart(strings.Repeat("ü", maxNested+5))}, maxNested)
	if want := strings.Repeat("ü", maxNested) + "\n[5 more characters are not shown]"; got != want {
		t.Errorf("%.100v…", got)
	}
	if got := abridge(strings.Repeat("ü", maxNested), maxNested); got != strings.Repeat("ü", maxNested) {
		t.Error("what fits was cut")
	}
}

func TestParseFormat(t *testing.T) {
	for _, f := range []Format{Text, JSON, Stream} {
		if got, err := ParseFormat(string(f)); got != f || err != nil {
			t.Error(f, err)
		}
	}
	if _, err := ParseFormat("JSON"); err == nil || err.Error() != `unknown format "JSON": want text, json or stream-json` {
		t.Error(err)
	}
}
