package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/msg"
	"capstan/internal/schema"
	"capstan/internal/tool"
)

// run takes a call through its schema and its tool, as sched does.
func run(t *testing.T, tl tool.Tool, args string) tool.Result {
	t.Helper()
	s, err := schema.Compile(tl.Spec().Input)
	if err != nil {
		t.Fatal(err)
	}
	canonical, _, err := s.Validate(json.RawMessage(args))
	if err != nil {
		return tool.Fail(tool.CodeInvalidArgs, "%v", err)
	}
	c := &tool.Call{ID: "c1", Name: tl.Spec().Name, Args: canonical, Source: tool.FromModel}
	r, err := tl.Run(t.Context(), &tool.Invocation{Call: c, Progress: func(msg.Part) {}})
	if err != nil {
		return tool.Fail("ERROR", "%v", err)
	}
	return r
}

// told is what the model reads of a result.
func told(r tool.Result) string { return strings.TrimPrefix(r.Code+" "+r.Text(), " ") }

// The list is replaced as a whole, kept before it counts, and taken up again
// by a resumed session. BUG-AR-16
func TestTodoWrite(t *testing.T) {
	var kept [][]Todo
	full := false
	save := func(list []Todo) error {
		if full {
			return errors.New("the disk is full")
		}
		kept = append(kept, list)
		return nil
	}
	tl := newTodoWrite(TodoOptions{List: []Todo{{"old", Completed}}, Save: save})
	var got []string
	for _, args := range []string{
		`{"todos":[{"content":"a","status":"completed"},{"content":"b","status":"in_progress"},{"content":"c","status":"pending"}]}`,
		`{"todos":"[{\"content\":\"a\",\"status\":\"pending\"}]"}`, // JSON in a string: taken, since nothing is lost
		`{"todos":[{"content":" ","status":"pending"}]}`,
		`{"todos":[{"content":"a","status":"done"}]}`,
		`{"todos":[{"content":"a"}]}`,
		`{}`,
		`{"todos":[]}`,
	} {
		got = append(got, told(run(t, tl, args)))
	}
	full = true
	got = append(got, told(run(t, tl, `{"todos":[{"content":"x","status":"pending"}]}`)))
	resumed := newTodoWrite(TodoOptions{List: []Todo{{"old", Completed}}, Save: save})
	got = append(got, told(run(t, resumed, `{"todos":[{"content":"x","status":"pending"}]}`)))
	want := []string{
		"The task list has 3 steps: 1 completed, 1 in progress, 1 pending.",
		"The task list has 1 step: 0 completed, 0 in progress, 1 pending.",
		"INVALID_ARGS /todos/0/content: it is blank; say what the step is",
		`INVALID_ARGS /todos/0/status: must be one of "pending", "in_progress", "completed", got string "done"`,
		`INVALID_ARGS /todos/0/status: is required but missing (one of "pending", "in_progress", "completed")`,
		"INVALID_ARGS /todos: is required but missing (an array)",
		"The task list has no steps.",
		"TOOL_FAILED keeping the task list: the disk is full; the list is as it was, no steps",
		"TOOL_FAILED keeping the task list: the disk is full; the list is as it was, 1 step: 1 completed, 0 in progress, 0 pending",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]Todo{{{"a", Completed}, {"b", InProgress}, {"c", Pending}}, {{"a", Pending}}, {}}, kept); diff != "" {
		t.Error(diff)
	}
	if b, err := json.Marshal(kept[0][:1]); err != nil || string(b) != `[{"content":"a","status":"completed"}]` {
		t.Errorf("a log keeps %s, %v", b, err)
	}
	if _, overlaps := tl.(tool.Accessor); overlaps {
		t.Error("calls of todo_write may overlap")
	}
}

func TestAskUserQuestion(t *testing.T) {
	const one = `{"questions":[{"question":"Which?","header":"Color","options":[{"label":"red","description":"like a rose"},{"label":"blue"}],"multiSelect":%v}]}`
	for _, tc := range []struct {
		name, args string
		answers    []Answer
		err        error
		want       string
	}{
		{"chosen", fmt.Sprintf(one, false), []Answer{{Chosen: []string{"red"}}}, nil, "Question: Which?\nChosen: red"},
		{"several", fmt.Sprintf(one, true), []Answer{{Chosen: []string{"red", "blue"}, Text: "or\ngreen "}}, nil, "Question: Which?\nChosen: red; blue\nIn their own words: or\ngreen"},
		{"own words", fmt.Sprintf(one, false), []Answer{{Text: "neither"}}, nil, "Question: Which?\nIn their own words: neither"},
		{"nothing", fmt.Sprintf(one, false), []Answer{{}}, nil, "Question: Which?\nNo answer: decide as you think best."},
		{"two", `{"questions":[{"question":"A?","options":[{"label":"x"},{"label":"y"}]},{"question":"B?","options":[{"label":"x"},{"label":"y"}]}]}`, []Answer{{Chosen: []string{"x"}}, {Chosen: []string{"y"}}}, nil, "Question: A?\nChosen: x\nQuestion: B?\nChosen: y"},
		{"nobody there", fmt.Sprintf(one, false), nil, errors.New("the terminal is gone"), "TOOL_FAILED asking the user: the terminal is gone; go on without an answer, or say in your answer what you need to know"},
		{"blank", `{"questions":[{"question":" ","options":[{"label":"x"},{"label":"y"}]}]}`, nil, nil, "INVALID_ARGS /questions/0/question: it is blank"},
		{"a blank option", `{"questions":[{"question":"?","options":[{"label":"x"},{"label":"\t"}]}]}`, nil, nil, "INVALID_ARGS /questions/0/options/1/label: it is blank"},
		{"twice", `{"questions":[{"question":"?","options":[{"label":"x"},{"label":"x "}]}]}`, nil, nil, `INVALID_ARGS /questions/0/options/1/label: "x" is offered twice; give each option a label of its own`},
		{"one option", `{"questions":[{"question":"?","options":[{"label":"x"}]}]}`, nil, nil, "INVALID_ARGS /questions/0/options: must have at least 2 items, got 1"},
		{"no question", `{"questions":[]}`, nil, nil, "INVALID_ARGS /questions: must have at least 1 item, got 0"},
		{"the surface answers too little", fmt.Sprintf(one, false), nil, nil, "ERROR asking the user: 0 answers came to 1 question"},
		{"the surface answers too much", fmt.Sprintf(one, false), []Answer{{Chosen: []string{"red", "blue"}}}, nil, "ERROR asking the user: 2 options were chosen of question 1, which allows one"},
		{"the surface makes an option up", fmt.Sprintf(one, true), []Answer{{Chosen: []string{"green"}}}, nil, `ERROR asking the user: question 1 has no option "green"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tl := &askUser{ask: func(_ context.Context, qs []Question) ([]Answer, error) { return tc.answers, tc.err }}
			if got := told(run(t, tl, tc.args)); got != tc.want {
				t.Errorf("got %q\nwant %q", got, tc.want)
			}
		})
	}
	// The person sees what the model asked, and an interrupt ends the wait.
	ctx, cancel := context.WithCancel(context.Background())
	var seen []Question
	tl := &askUser{ask: func(ctx context.Context, qs []Question) ([]Answer, error) {
		seen = qs
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	r, err := tl.Run(ctx, &tool.Invocation{Call: &tool.Call{Args: json.RawMessage(fmt.Sprintf(one, true))}})
	if err != nil || r.Status != tool.Cancelled || r.Code != tool.CodeAborted {
		t.Errorf("%+v, %v", r, err)
	}
	if diff := cmp.Diff([]Question{{"Which?", "Color", []Option{{"red", "like a rose"}, {"blue", ""}}, true}}, seen); diff != "" {
		t.Error(diff)
	}
}

// The mode changes after a yes, and only then. S0-057
func TestExitPlanMode(t *testing.T) {
	const call = `{"plan":"1. do it"}`
	for _, tc := range []struct {
		name, args, mode string
		answer           PlanAnswer
		err, set         error
		want, after      string
	}{
		{"yes", call, "plan", PlanAnswer{Yes: true}, nil, nil, "The user approved the plan. The approval mode is now default: begin with the work.", "default"},
		{"yes, and more", call, "plan", PlanAnswer{Yes: true, Mode: "auto-edit", Words: " mind the tests "}, nil, nil, "The user approved the plan. The approval mode is now auto-edit: begin with the work. They said: mind the tests", "auto-edit"},
		{"no", call, "plan", PlanAnswer{Words: "keep the API", Mode: "yolo"}, nil, nil, "The user did not approve the plan, and plan mode is still in force. Change the plan, or ask what is unclear. They said: keep the API", "plan"},
		{"nobody", call, "plan", PlanAnswer{Yes: true}, errors.New("gone"), nil, "TOOL_FAILED asking the user about the plan: gone; plan mode is still in force", "plan"},
		{"no such mode", call, "plan", PlanAnswer{Yes: true, Mode: "wild"}, nil, errors.New("unknown approval mode"), "ERROR leaving plan mode: unknown approval mode", "plan"},
		{"to plan mode", call, "plan", PlanAnswer{Yes: true, Mode: "plan"}, nil, nil, "ERROR leaving plan mode: the answer is a yes to go on in approval mode plan, which it would not leave", "plan"},
		{"not in plan mode", call, "default", PlanAnswer{Yes: true, Mode: "yolo"}, nil, nil, "TOOL_FAILED there is no plan mode to leave: the approval mode is default; begin with the work", "default"},
		{"blank", `{"plan":" \n"}`, "plan", PlanAnswer{Yes: true}, nil, nil, "INVALID_ARGS /plan: it is blank; write down what you would do, step by step", "plan"},
		{"no plan", `{}`, "plan", PlanAnswer{Yes: true}, nil, nil, "INVALID_ARGS /plan: is required but missing (a string)", "plan"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mode := tc.mode
			tl := &exitPlan{PlanOptions{
				Mode: func() string { return mode },
				SetMode: func(m string) error {
					if tc.set == nil {
						mode = m
					}
					return tc.set
				},
				Approve: func(_ context.Context, plan string) (PlanAnswer, error) {
					if plan != "1. do it" {
						t.Errorf("the person sees %q", plan)
					}
					return tc.answer, tc.err
				},
			}}
			if got := told(run(t, tl, tc.args)); got != tc.want || mode != tc.after {
				t.Errorf("mode %s, got %q\nwant %q", mode, got, tc.want)
			}
		})
	}
	// What the person chose elsewhere, while the question was open, stays.
	for yes, want := range map[bool]string{
		true:  "The user approved the plan. The approval mode is auto-edit, to which it was changed meanwhile: begin with the work.",
		false: "The user did not approve the plan, though the approval mode is auto-edit by now. Change the plan, or ask what is unclear.",
	} {
		mode := "plan"
		tl := &exitPlan{PlanOptions{
			Mode:    func() string { return mode },
			SetMode: func(m string) error { t.Errorf("the mode was changed to %s", m); return nil },
			Approve: func(context.Context, string) (PlanAnswer, error) {
				mode = "auto-edit"
				return PlanAnswer{Yes: yes, Mode: "yolo"}, nil
			},
		}}
		if got := told(run(t, tl, call)); got != want {
			t.Errorf("yes %t: %s", yes, got)
		}
	}
	// A yes that comes after the interrupt changes nothing.
	ctx, cancel := context.WithCancel(context.Background())
	tl := &exitPlan{PlanOptions{
		Mode:    func() string { return "plan" },
		SetMode: func(string) error { t.Error("the mode was changed"); return nil },
		Approve: func(context.Context, string) (PlanAnswer, error) { cancel(); return PlanAnswer{Yes: true}, nil },
	}}
	r, err := tl.Run(ctx, &tool.Invocation{Call: &tool.Call{Args: json.RawMessage(call)}})
	if err != nil || r.Code != tool.CodeAborted {
		t.Errorf("%+v, %v", r, err)
	}
}

// A text is the answer when it is JSON that fits, whole and nothing beside it.
func TestStructuredRead(t *testing.T) {
	const object, list = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`, `{"type":"array","items":{"type":"integer"}}`
	for _, tc := range []struct{ schema, text, want string }{
		{object, `{"n": 12345678901234567890}`, `{"n":12345678901234567890}`},
		{object, "\n```json\n{\"n\": 1}\n```\n", `{"n":1}`},
		{object, "````\n{\"n\": 1}\n````", `{"n":1}`},
		{object, "```\n{\"n\": 1}", ""},
		{object, "It is:\n```json\n{\"n\": 1}\n```", ""},
		{object, `{"n": "many"}`, ""},
		{object, `{"n": 1, "n": 2}`, ""},
		{object, `{"n": 1} and more`, ""},
		{object, "", ""}, {object, "```", ""}, {object, "``````", ""},
		{list, `[1, 2]`, `[1,2]`},
		{list, "```\n[1]\n```", `[1]`},
		{list, `{"value": "no"}`, ""},
	} {
		s, err := NewStructured(json.RawMessage(tc.schema))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := s.Read(tc.text); string(got) != tc.want || ok != (tc.want != "") {
			t.Errorf("%q: %s, %t, want %s", tc.text, got, ok, tc.want)
		}
	}
}

// The answer has the user's form; what is no object is wrapped and comes out as
// it is. S0-056
func TestStructuredOutput(t *testing.T) {
	for _, tc := range []struct{ schema, input, args, want string }{
		{`{ "type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`, `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`, `{"n":12345678901234567890}`, `{"n":12345678901234567890}`},
		{`{"properties":{"n":{}}}`, `{"type":"object","properties":{"n":{}}}`, `{"n":[1]}`, `{"n":[1]}`},
		{`{"type":"object"}`, `{"type":"object"}`, `{"value":1}`, `{"value":1}`},
		{`{"type":"array","items":{"type":"integer"}}`, `{"additionalProperties":false,"properties":{"value":{"items":{"type":"integer"},"type":"array"}},"required":["value"],"type":"object"}`, `{"value":[1,2]}`, `[1,2]`},
		{`{"type":["object","null"]}`, `{"additionalProperties":false,"properties":{"value":{"type":["object","null"]}},"required":["value"],"type":"object"}`, `{"value":null}`, `null`},
		{`true`, `{"additionalProperties":false,"properties":{"value":true},"required":["value"],"type":"object"}`, `{"value":"<b>"}`, `"<b>"`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","type":"array","items":{"$ref":"#/definitions/x"},"definitions":{"x":{"type":"integer"}}}`,
			`{"$schema":"http://json-schema.org/draft-07/schema#","additionalProperties":false,"definitions":{"x":{"type":"integer"}},"properties":{"value":{"items":{"$ref":"#/definitions/x"},"type":"array"}},"required":["value"],"type":"object"}`, `{"value":[1]}`, `[1]`},
		{`{"$id":"urn:x","type":"array","items":{"$ref":"#/$defs/x"},"$defs":{"x":{"type":"integer"}}}`,
			`{"additionalProperties":false,"properties":{"value":{"$defs":{"x":{"type":"integer"}},"$id":"urn:x","items":{"$ref":"#/$defs/x"},"type":"array"}},"required":["value"],"type":"object"}`, `{"value":[1]}`, `[1]`},
		// What only looks like a reference is none: an answer may be about schemas.
		{`{"enum":[{"$ref":"#"},["$ref","#"],"$ref"]}`, `{"additionalProperties":false,"properties":{"value":{"enum":[{"$ref":"#"},["$ref","#"],"$ref"]}},"required":["value"],"type":"object"}`, `{"value":{"$ref":"#"}}`, `{"$ref":"#"}`},
		{`{"type":"array","default":[{"$ref":"#/items"}]}`, `{"additionalProperties":false,"properties":{"value":{"default":[{"$ref":"#/items"}],"type":"array"}},"required":["value"],"type":"object"}`, `{"value":[]}`, `[]`},
		{`{"type":"array","items":{"$id":"urn:y","properties":{"in":{"$ref":"#"}}}}`,
			`{"additionalProperties":false,"properties":{"value":{"items":{"$id":"urn:y","properties":{"in":{"$ref":"#"}}},"type":"array"}},"required":["value"],"type":"object"}`, `{"value":[{"in":{}}]}`, `[{"in":{}}]`},
	} {
		s, err := NewStructured(json.RawMessage(tc.schema))
		if err != nil {
			t.Errorf("%s: %v", tc.schema, err)
			continue
		}
		r := run(t, s, tc.args)
		if diff := cmp.Diff([]string{tc.input, "The answer is recorded.", tc.want}, []string{string(s.Spec().Input), told(r), string(r.Data)}); diff != "" {
			t.Errorf("%s: %s", tc.schema, diff)
		}
	}
	s, err := NewStructured(json.RawMessage(`{"type":"array","items":{"$ref":"#/$defs/x"},"$defs":{"x":{"type":"integer"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		`{"value":["a"]}`: `INVALID_ARGS /value/0: must be an integer, got string "a"`,
		`[1]`:             `INVALID_ARGS must be an object, got an array of 1 item`,
	} {
		if got := told(run(t, s, args)); got != want {
			t.Errorf("%s: %s", args, got)
		}
	}
}

// A schema that cannot be used is a fault of the start, and says where.
func TestStructuredOutputFaults(t *testing.T) {
	for raw, want := range map[string]string{
		``:                  "nothing was given",
		`{"type":`:          "/type: not valid JSON: it ends in the middle of a value (after 8 bytes); give it whole",
		`{"type":"objekt"}`: `compiling schema: /type: must be one of`,
		`{"type":"object","properties":{"a":{"minLength":"x"}}}`: `compiling schema: /properties/a/minLength: must be an integer of 0 or more, not string "x"`,
		`{"items":{"$ref":"#/$defs/y"}}`:                         `compiling schema: /items/$ref: $ref "#/$defs/y": the schema has nothing at "/$defs/y"`,
		`5`:                                                      "compiling schema: it must be an object or a boolean, not number 5",
		`{"type":"array","items":{"$ref":"#"}}`:                  "an answer that is no object may refer to its $defs only, not to #; make it an object with a property for the answer",
		`{"type":"object","type":"array"}`:                       "/type: ",
		// A definition that is used counts as a schema wherever it lies.
		`{"type":"array","items":{"$ref":"#/$defs/x/default"},"$defs":{"x":{"default":{"items":{"$ref":"#"}}}}}`: "an answer that is no object may refer to its $defs only, not to #;",
	} {
		if _, err := NewStructured(json.RawMessage(raw)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", raw, err, want)
		}
	}
}

// A subagent has a list of its own, which ends with it.
func TestTodosOfSubagents(t *testing.T) {
	var saved [][]Todo
	tools := Loop(LoopOptions{Todo: TodoOptions{Save: func(list []Todo) error {
		saved = append(saved, list)
		return nil
	}}})
	todo := tools[slices.IndexFunc(tools, func(x tool.Tool) bool { return x.Spec().Name == "todo_write" })]
	write := func(who, args string) string {
		res, err := todo.Run(t.Context(), &tool.Invocation{Call: &tool.Call{Name: "todo_write", Agent: who, Args: json.RawMessage(args)}})
		if err != nil {
			t.Fatal(err)
		}
		return res.Text()
	}
	write("", `{"todos":[{"content":"a","status":"pending"}]}`)
	if got := write("agent_1", `{"todos":[{"content":"b","status":"completed"},{"content":"c","status":"pending"}]}`); got != "The task list has 2 steps: 1 completed, 0 in progress, 1 pending." {
		t.Error(got)
	}
	if diff := cmp.Diff([][]Todo{{{Content: "a", Status: Pending}}}, saved); diff != "" {
		t.Error(diff)
	}
}
