package builtin

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"capstan/internal/tool"
)

//go:embed todo_write.md
var todoWriteText string

const todoWriteInput = `{"type":"object","properties":{"todos":{"type":"array","maxItems":100,"items":{"type":"object","properties":{` +
	`"content":{"type":"string","minLength":1,"maxLength":1000},` +
	`"status":{"enum":["pending","in_progress","completed"]}` +
	`},"required":["content","status"],"additionalProperties":false}}},"required":["todos"],"additionalProperties":false}`

// A Todo is one step of the session's task list.
type Todo struct {
	Content string     `json:"content"`
	Status  TodoStatus `json:"status"`
}

// A TodoStatus says how far a step is.
type TodoStatus string

// The statuses, as the model spells them.
const (
	Pending    TodoStatus = "pending"
	InProgress TodoStatus = "in_progress"
	Completed  TodoStatus = "completed"
)

// TodoOptions configure todo_write.
type TodoOptions struct {
	// List is the list as the session left it; a resumed session has one.
	List []Todo
	// Save keeps the list of the session's own agent where a resumed session finds it, and may show it. It
	// gets a list of its own each time, one at a time, in the order of the calls.
	// An error fails the call, and the list stays as it was. Nil keeps nothing.
	Save func([]Todo) error
}

// todoWrite replaces the list as a whole. Calls do not overlap, for of two
// lists the later one has to win.
type todoWrite struct {
	save func([]Todo) error
	spec tool.Spec

	mu   sync.Mutex        // calls of subagents may overlap with others
	list map[string][]Todo // by agent: each has one of its own
}

func newTodoWrite(o TodoOptions) tool.Tool {
	return &todoWrite{save: o.Save, list: map[string][]Todo{"": slices.Clone(o.List)}, spec: tool.Spec{
		Name: "todo_write", Title: "TodoWrite", Description: text(todoWriteText),
		Input: json.RawMessage(todoWriteInput), Effect: tool.EffectNone, Hint: "plan steps checklist progress track",
	}}
}

func (t *todoWrite) Spec() *tool.Spec { return &t.spec }

func (t *todoWrite) Run(_ context.Context, inv *tool.Invocation) (tool.Result, error) {
	var in struct {
		Todos []Todo `json:"todos"`
	}
	if err := json.Unmarshal(inv.Call.Args, &in); err != nil {
		return tool.Fail(tool.CodeInvalidArgs, "reading the arguments of todo_write: %v", err), nil
	}
	for i, d := range in.Todos {
		if strings.TrimSpace(d.Content) == "" {
			return tool.Fail(tool.CodeInvalidArgs, "/todos/%d/content: it is blank; say what the step is", i), nil
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	who := inv.Call.Agent
	if t.save != nil && who == "" { // a subagent's ends with it
		if err := t.save(slices.Clone(in.Todos)); err != nil {
			return tool.Fail(tool.CodeFailed, "keeping the task list: %v; the list is as it was, %s", err, tally(t.list[who])), nil
		}
	}
	t.list[who] = in.Todos
	return tool.Text("The task list has " + tally(in.Todos) + "."), nil
}

// tally counts a list by status.
func tally(list []Todo) string {
	n := map[TodoStatus]int{}
	for _, d := range list {
		n[d.Status]++
	}
	if len(list) == 0 {
		return "no steps"
	}
	return fmt.Sprintf("%s: %d completed, %d in progress, %d pending", count(len(list), "step"), n[Completed], n[InProgress], n[Pending])
}
