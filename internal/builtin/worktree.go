package builtin

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"capstan/internal/tool"
)

//go:embed enter_worktree.md
var enterWorktreeText string

//go:embed exit_worktree.md
var exitWorktreeText string

// WorktreeOptions configure enter_worktree and exit_worktree.
type WorktreeOptions struct {
	// Path returns where the work tree of a name would be, absolute and with links
	// resolved: what a person is asked about. It depends on its arguments only. An
	// error is about the name.
	Path func(name, callID string) (string, error)
	// Enter makes it there and moves the session into it. It returns what the model
	// is told.
	Enter func(ctx context.Context, path string) (string, error)
	// Now returns the work tree that the session is in; empty: none.
	Now func() string
	// Exit moves the session back. With remove it takes the work tree away, and
	// with discard also when changes or commits are lost by that; without, that is
	// an error which names them.
	Exit func(ctx context.Context, remove, discard bool) (string, error)
}

// enterWorktree is a control: it changes where every later call works. It writes,
// outside of the workspace, and so is asked about and denied as a write is.
type enterWorktree struct{ o WorktreeOptions }

var enterWorktreeSpec = tool.Spec{
	Name: "enter_worktree", Title: "EnterWorktree", Description: text(enterWorktreeText), Input: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`),
	Class: tool.Control, Effect: tool.EffectWrite, Hint: "git branch isolate parallel",
}

type enterWorktreeInput struct {
	Name string `json:"name"`
}

func (t *enterWorktree) Spec() *tool.Spec { return &enterWorktreeSpec }

// Check implements tool.Checker.
func (t *enterWorktree) Check(c *tool.Call) error {
	_, err := t.path(c)
	return err
}

func (t *enterWorktree) path(c *tool.Call) (string, error) {
	var in enterWorktreeInput
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return "", err
	}
	path, err := t.o.Path(in.Name, c.ID)
	if err != nil {
		return "", fmt.Errorf("/name: %w", err)
	}
	return path, nil
}

// Access implements tool.Accessor: nothing runs beside it.
func (t *enterWorktree) Access(c *tool.Call) tool.Access {
	path, err := t.path(c)
	if err != nil {
		return tool.Access{Outside: true}
	}
	return tool.Access{Writes: []string{path}}
}

func (t *enterWorktree) Run(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
	if len(inv.Access.Writes) != 1 {
		return tool.Result{}, errors.New("where the worktree would be was not judged")
	}
	said, err := t.o.Enter(ctx, inv.Access.Writes[0])
	if err != nil {
		return tool.Fail(tool.CodeFailed, "no worktree was entered: %v", err), nil
	}
	return tool.Text(said), nil
}

// exitWorktree is its counterpart. Only what it removes is a write; what would be
// lost for ever reaches further than any path that it names, so that it is asked
// about wherever anything is.
type exitWorktree struct{ o WorktreeOptions }

var exitWorktreeSpec = tool.Spec{
	Name: "exit_worktree", Title: "ExitWorktree", Description: text(exitWorktreeText),
	Input: json.RawMessage(`{"type":"object","properties":{"action":{"enum":["keep","remove"]},"discard_changes":{"type":"boolean"}},"required":["action"]}`),
	Class: tool.Control, Effect: tool.EffectWrite, Hint: "git leave back",
}

type exitWorktreeInput struct {
	Action  string `json:"action"`
	Discard bool   `json:"discard_changes"`
}

func (in exitWorktreeInput) remove() bool { return in.Action == "remove" }

func (t *exitWorktree) Spec() *tool.Spec { return &exitWorktreeSpec }

// Check implements tool.Checker.
func (t *exitWorktree) Check(c *tool.Call) error {
	var in exitWorktreeInput
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return err
	}
	switch {
	case in.Discard && !in.remove():
		return errors.New(`/discard_changes: only with the action "remove"`)
	case t.o.Now() == "":
		return errors.New("the session is in no worktree")
	}
	return nil
}

// Access implements tool.Accessor.
func (t *exitWorktree) Access(c *tool.Call) tool.Access {
	var in exitWorktreeInput
	_ = json.Unmarshal(c.Args, &in) // Check has read it
	now := []string{t.o.Now()}
	if in.remove() {
		return tool.Access{Writes: now, Outside: in.Discard}
	}
	return tool.Access{Reads: now}
}

func (t *exitWorktree) Run(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
	var in exitWorktreeInput
	if err := json.Unmarshal(inv.Call.Args, &in); err != nil {
		return tool.Result{}, err
	}
	judged := t.Access(inv.Call)
	if !slices.Equal(judged.Reads, inv.Access.Reads) || !slices.Equal(judged.Writes, inv.Access.Writes) || judged.Outside != inv.Access.Outside {
		return tool.Fail(tool.CodeFailed, "the session is not where it was when the call was made; call exit_worktree again"), nil
	}
	said, err := t.o.Exit(ctx, in.remove(), in.Discard)
	if err != nil {
		return tool.Fail(tool.CodeFailed, "leaving the worktree: %v", err), nil
	}
	return tool.Text(said), nil
}
