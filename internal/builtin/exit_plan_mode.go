package builtin

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"capstan/internal/tool"
)

//go:embed exit_plan_mode.md
var exitPlanText string

const exitPlanInput = `{"type":"object","properties":{"plan":{"type":"string"}},"required":["plan"]}`

// planMode is the approval mode that exit_plan_mode leaves.
const planMode = "plan"

// PlanOptions configure enter_plan_mode and exit_plan_mode. The approval modes
// are those of package policy, as texts.
type PlanOptions struct {
	// Mode returns the approval mode in force, and SetMode changes it. It is
	// called to enter plan mode, and to leave it after a yes and only when the mode
	// is still plan.
	Mode    func() string
	SetMode func(mode string) error
	// Approve shows a person the plan, in Markdown, and asks whether to begin.
	// It returns when ctx ends.
	Approve func(ctx context.Context, plan string) (PlanAnswer, error)
}

// A PlanAnswer is what the person said to a plan.
type PlanAnswer struct {
	Yes   bool
	Mode  string // with a yes: the approval mode to go on with; empty means "default", "plan" is refused
	Words string // what the model should be told besides
}

// exitPlan is a control: it changes what every later call may do, so only the
// model itself can ask for it.
type exitPlan struct{ o PlanOptions }

var exitPlanSpec = tool.Spec{
	Name: "exit_plan_mode", Title: "ExitPlanMode", Description: text(exitPlanText), Input: json.RawMessage(exitPlanInput),
	Class: tool.Control, Effect: tool.EffectNone, Closed: true, Waits: true, Hint: "approve begin start implement",
}

func (t *exitPlan) Spec() *tool.Spec { return &exitPlanSpec }

func (t *exitPlan) Run(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
	var in struct {
		Plan string `json:"plan"`
	}
	if err := json.Unmarshal(inv.Call.Args, &in); err != nil {
		return tool.Fail(tool.CodeInvalidArgs, "reading the arguments of exit_plan_mode: %v", err), nil
	}
	if strings.TrimSpace(in.Plan) == "" {
		return tool.Fail(tool.CodeInvalidArgs, "/plan: it is blank; write down what you would do, step by step"), nil
	}
	if mode := t.o.Mode(); mode != planMode {
		return tool.Fail(tool.CodeFailed, "there is no plan mode to leave: the approval mode is %s; begin with the work", mode), nil
	}
	answer, err := t.o.Approve(ctx, in.Plan)
	switch {
	case ctx.Err() != nil: // also when the yes came too late: nothing changes that nobody waits for
		return tool.Fail(tool.CodeAborted, "the question was cancelled before the user answered; plan mode is still in force"), nil
	case err != nil:
		return tool.Fail(tool.CodeFailed, "asking the user about the plan: %v; plan mode is still in force", err), nil
	}
	now := t.o.Mode() // while the question was open, the person may have changed it by another way
	switch {
	case !answer.Yes && now != planMode:
		return tool.Text("The user did not approve the plan, though the approval mode is " + now + " by now. Change the plan, or ask what is unclear." + said(answer.Words)), nil
	case !answer.Yes:
		return tool.Text("The user did not approve the plan, and plan mode is still in force. Change the plan, or ask what is unclear." + said(answer.Words)), nil
	case now != planMode:
		return tool.Text("The user approved the plan. The approval mode is " + now + ", to which it was changed meanwhile: begin with the work." + said(answer.Words)), nil
	}
	mode := answer.Mode
	switch mode {
	case "":
		mode = "default"
	case planMode:
		return tool.Result{}, fmt.Errorf("leaving plan mode: the answer is a yes to go on in approval mode %s, which it would not leave", planMode)
	}
	if err := t.o.SetMode(mode); err != nil {
		return tool.Result{}, fmt.Errorf("leaving plan mode: %w", err)
	}
	return tool.Text("The user approved the plan. The approval mode is now " + mode + ": begin with the work." + said(answer.Words)), nil
}

// said quotes what the person added.
func said(words string) string {
	if words = strings.TrimSpace(words); words == "" {
		return ""
	}
	return " They said: " + words
}
