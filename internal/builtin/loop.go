package builtin

import (
	"context"

	"capstan/internal/tool"
)

// LoopOptions configure the tools that belong to an agent's loop, for one
// session. A control whose option is not set is not registered: the model is
// not offered what nobody would answer.
type LoopOptions struct {
	Todo TodoOptions
	Web  WebOptions
	// Ask puts questions to a person and returns one answer for each, in their
	// order. It returns when ctx ends. Nil: nobody can be asked, and there is no
	// ask_user_question.
	Ask func(ctx context.Context, questions []Question) ([]Answer, error)
	// Plan is set when somebody can be asked whether to begin. Nil: there is no
	// enter_plan_mode, which could not be left, and no exit_plan_mode.
	Plan *PlanOptions
	// Worktree is set in a git work tree. Nil: there is no enter_worktree and no
	// exit_worktree.
	Worktree *WorktreeOptions
	// Structured is the form of the answer, when the run has to end with one.
	// Nil: there is no structured_output.
	Structured *Structured
}

// Loop returns the tools of an agent's loop. Which of them are controls is
// decided by package tool's list and not here (S0-052).
func Loop(o LoopOptions) []tool.Tool {
	tools := []tool.Tool{newTodoWrite(o.Todo), newWebFetch(o.Web)}
	if o.Ask != nil {
		tools = append(tools, &askUser{ask: o.Ask})
	}
	if o.Plan != nil {
		tools = append(tools, &enterPlan{o: *o.Plan}, &exitPlan{o: *o.Plan})
	}
	if o.Worktree != nil {
		tools = append(tools, &enterWorktree{*o.Worktree}, &exitWorktree{*o.Worktree})
	}
	if o.Structured != nil {
		tools = append(tools, o.Structured)
	}
	return tools
}
