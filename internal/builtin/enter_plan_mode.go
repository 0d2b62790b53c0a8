package builtin

import (
	"context"
	_ "embed"
	"encoding/json"

	"capstan/internal/tool"
)

//go:embed enter_plan_mode.md
var enterPlanText string

// enterPlan is a control: it changes what every later call may do, so only the
// model itself can ask for it. It needs no answer, since it only forbids.
type enterPlan struct{ o PlanOptions }

var enterPlanSpec = tool.Spec{
	Name: "enter_plan_mode", Title: "EnterPlanMode", Description: text(enterPlanText), Input: json.RawMessage(`{"type":"object","properties":{}}`),
	Class: tool.Control, Effect: tool.EffectNone, Closed: true, Hint: "design approach explore first",
}

func (t *enterPlan) Spec() *tool.Spec { return &enterPlanSpec }

func (t *enterPlan) Run(context.Context, *tool.Invocation) (tool.Result, error) {
	if t.o.Mode() == planMode {
		return tool.Text("Plan mode is in force already. Look around, then give your plan to exit_plan_mode."), nil
	}
	if err := t.o.SetMode(planMode); err != nil {
		return tool.Fail(tool.CodeFailed, "entering plan mode: %v", err), nil
	}
	return tool.Text("Plan mode is in force: what could change something is denied. Look around, then give your plan to exit_plan_mode."), nil
}
