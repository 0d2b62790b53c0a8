package app

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/tool"
)

// consulted returns a session whose person answers so, and what they were asked.
func consulted(t *testing.T, mode string, answer func(tool, input string) (bool, string, string, error)) (*Session, *[]string) {
	t.Helper()
	var asked []string
	s := open(t, Options{ApprovalMode: mode, Consult: func(_ context.Context, tool string, input json.RawMessage) (bool, json.RawMessage, string, error) {
		asked = append(asked, tool+" "+string(input))
		yes, completed, words, err := answer(tool, string(input))
		return yes, json.RawMessage(completed), words, err
	}}, nil)
	return s, &asked
}

func said(t *testing.T, s *Session, name string, args map[string]any) string {
	t.Helper()
	r := s.rt.Run(t.Context(), s.View, []tool.Call{call(name, args)})[0]
	return strings.TrimSpace(r.Code + " " + r.Text())
}

// The model enters plan mode by itself, and leaves it with a person's yes, for the
// approval mode that was in force before. S0-057 S0-064
func TestPlanMode(t *testing.T) {
	var next func() (bool, string)
	s, asked := consulted(t, "auto-edit", func(string, string) (bool, string, string, error) {
		yes, words := next()
		return yes, "", words, nil
	})
	write := map[string]any{"file_path": "a.txt", "content": "x"}
	steps := []struct {
		name  string
		args  map[string]any
		yes   bool
		words string
		want  string
		mode  string
	}{
		{name: "exit_plan_mode", args: map[string]any{"plan": "p"}, want: "there is no plan mode to leave", mode: "auto-edit"},
		{name: "enter_plan_mode", args: map[string]any{}, want: "Plan mode is in force: what could change something is denied", mode: "plan"},
		{name: "enter_plan_mode", args: map[string]any{}, want: "Plan mode is in force already", mode: "plan"},
		{name: "write_file", args: write, want: "DENIED", mode: "plan"},
		{name: "exit_plan_mode", args: map[string]any{"plan": "1. write"}, words: "smaller", want: "did not approve the plan, and plan mode is still in force. Change the plan, or ask what is unclear. They said: smaller", mode: "plan"},
		{name: "exit_plan_mode", args: map[string]any{"plan": "2. write"}, yes: true, want: "The approval mode is now auto-edit", mode: "auto-edit"},
		{name: "write_file", args: write, want: "", mode: "auto-edit"},
	}
	for i, step := range steps {
		next = func() (bool, string) { return step.yes, step.words }
		if got := said(t, s, step.name, step.args); !strings.Contains(got, step.want) || s.ApprovalMode() != step.mode {
			t.Errorf("step %d: %q in mode %s", i, got, s.ApprovalMode())
		}
	}
	if diff := cmp.Diff([]string{`exit_plan_mode {"plan":"1. write"}`, `exit_plan_mode {"plan":"2. write"}`}, *asked); diff != "" {
		t.Error(diff)
	}
	if got := declared(open(t, Options{ApprovalMode: "plan"}, nil)); strings.Contains(strings.Join(got, " "), "plan_mode") {
		t.Errorf("nobody can be asked, and there is %v", got)
	}
}

// What a client answers to questions is read in the forms that clients have.
func TestAskPerson(t *testing.T) {
	questions := map[string]any{"questions": []any{
		map[string]any{"question": "Which?", "options": []any{map[string]any{"label": "a"}, map[string]any{"label": "b"}}},
		map[string]any{"question": "What else?", "multiSelect": true, "options": []any{map[string]any{"label": "c"}, map[string]any{"label": "d"}}},
	}}
	for answers, want := range map[string]string{
		`{"answers": {"Which?": "a", "What else?": "c, d"}}`:       "Question: Which?\nChosen: a\nQuestion: What else?\nChosen: c; d",
		`{"answers": {"Which?": ["b"], "What else?": ["c", "d"]}}`: "Question: Which?\nChosen: b\nQuestion: What else?\nChosen: c; d",
		`{"answers": {"Which?": "neither, really"}}`:               "Question: Which?\nIn their own words: neither, really\nQuestion: What else?\nNo answer: decide as you think best.",
		`{"questions": []}`:                   "Question: Which?\nNo answer: decide as you think best.\nQuestion: What else?\nNo answer: decide as you think best.",
		`{"answers": {"Which?": 7}}`:          "TOOL_FAILED asking the user: reading the answer to question 1: want a string or a list of strings; go on without an answer, or say in your answer what you need to know",
		`{"answers": {"Which?": ["a", "b"]}}`: "TOOL_FAILED asking the user: reading the answer to question 1: several options were chosen, and it allows one; go on without an answer, or say in your answer what you need to know",
	} {
		s, _ := consulted(t, "", func(string, string) (bool, string, string, error) { return true, answers, "", nil })
		if diff := cmp.Diff(want, said(t, s, "ask_user_question", questions)); diff != "" {
			t.Errorf("%s: %s", answers, diff)
		}
	}
	for _, tc := range []struct {
		words string
		err   error
		want  string
	}{{"", nil, "does not want to answer;"}, {"later", nil, "and says: later"}, {"", errors.New("gone"), "gone"}} {
		s, _ := consulted(t, "", func(string, string) (bool, string, string, error) { return false, "", tc.words, tc.err })
		if got := said(t, s, "ask_user_question", questions); !strings.Contains(got, tc.want) {
			t.Errorf("%+v: %s", tc, got)
		}
	}
}
