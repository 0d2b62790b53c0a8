package builtin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/builtin"
	"capstan/internal/codemode"
	"capstan/internal/shell"
	"capstan/internal/tool"
)

// everything returns all built-in tools, as a session registers them where
// somebody can be asked.
func everything(t *testing.T) []tool.Tool {
	t.Helper()
	s, err := builtin.NewStructured(json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	runner := shell.New(shell.Options{})
	tools := builtin.All(builtin.Options{Dir: t.TempDir()})
	tools = append(tools, builtin.Shell(builtin.ShellOptions{Dir: t.TempDir(), Runner: runner, Jobs: shell.NewJobs(runner)})...)
	tools = append(tools, builtin.Loop(builtin.LoopOptions{
		Ask:  func(context.Context, []builtin.Question) ([]builtin.Answer, error) { return nil, nil },
		Plan: &builtin.PlanOptions{}, Structured: s,
	})...)
	return append(tools, codemode.NewExec(codemode.Options{}))
}

func register(t *testing.T, tools ...tool.Tool) *tool.Registry {
	t.Helper()
	r := &tool.Registry{}
	if err := r.Add(tools...); err != nil {
		t.Fatal(err)
	}
	return r
}

func specs(tools []tool.Tool) []string {
	var names []string
	for _, tl := range tools {
		names = append(names, tl.Spec().Name)
	}
	return names
}

// What nobody would answer is not offered.
func TestLoop(t *testing.T) {
	ask := func(context.Context, []builtin.Question) ([]builtin.Answer, error) { return nil, nil }
	for _, tc := range []struct {
		o    builtin.LoopOptions
		want []string
	}{
		{builtin.LoopOptions{}, []string{"todo_write", "web_fetch"}},
		{builtin.LoopOptions{Ask: ask}, []string{"todo_write", "web_fetch", "ask_user_question"}},
		{builtin.LoopOptions{Plan: &builtin.PlanOptions{}}, []string{"todo_write", "web_fetch", "exit_plan_mode"}},
		{builtin.LoopOptions{Structured: &builtin.Structured{}}, []string{"todo_write", "web_fetch", ""}},
	} {
		if diff := cmp.Diff(tc.want, specs(builtin.Loop(tc.o))); diff != "" {
			t.Error(diff)
		}
	}
}

// Of the built-in tools exactly those are controls whose names are in the one
// list, which is short; every other one can be called from programs. What a
// tool says of itself there is checked against the list, so that neither can
// change alone.
// S0-052 S0-053 S0-054 S0-056 S0-057 S0-064 S0-065 S0-066 S0-067
func TestBuiltinControls(t *testing.T) {
	tools := everything(t)
	r := register(t, append(tools, tool.New(tool.Spec{Name: "unnamed_by_any_policy"}, func(context.Context, *tool.Invocation, struct{}) (tool.Result, error) {
		return tool.Result{}, nil
	}))...)
	want := map[string][]string{
		"direct": {"ask_user_question", "exec", "exit_plan_mode", "structured_output"},
		"nested": {"edit", "glob", "grep_search", "job_list", "job_output", "job_stop", "list_directory", "read_file", "run_shell_command", "todo_write", "unnamed_by_any_policy", "web_fetch", "write_file"},
	}
	got := map[string][]string{}
	v := r.View(tool.Code, tool.Scope{})
	for _, e := range r.Tools() {
		name := e.Spec().Name
		direct, nested := v.Reach(name)
		if direct == nested {
			t.Errorf("%s: direct %v, nested %v", name, direct, nested)
		}
		side := "direct"
		if nested {
			side = "nested"
		}
		got[side] = append(got[side], name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// The same names, registered by somebody who does not call them controls,
	// stay controls; and a tool that waits for a person is one.
	for _, tl := range tools {
		sp := tl.Spec()
		control := slices.Contains(want["direct"], sp.Name) && sp.Name != tool.ExecName
		if declared := sp.Class == tool.Control; declared != control {
			t.Errorf("%s is of class %d", sp.Name, sp.Class)
		}
		plain := register(t, tool.New(tool.Spec{Name: sp.Name, Input: sp.Input}, func(context.Context, *tool.Invocation, struct{}) (tool.Result, error) { return tool.Result{}, nil }))
		if _, nested := plain.View(tool.Code, tool.Scope{}).Reach(sp.Name); nested == (control || sp.Name == tool.ExecName) {
			t.Errorf("%s, called ordinary: nested %v", sp.Name, nested)
		}
		if sp.Waits && sp.Class == tool.Ordinary && sp.Name != "job_output" {
			t.Errorf("%s waits and can be hidden in a program", sp.Name)
		}
	}
}

// All that a model is sent in code mode has its budget (DESIGN section 3), and
// every description says what its tool must not be used for, and mostly what
// is for that instead. S3-040 S3-041
func TestWeight(t *testing.T) {
	tools := everything(t)
	v := register(t, tools...).View(tool.Code, tool.Scope{})
	b, err := compact(v.Declarations())
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("%d bytes", len(b)); len(b) > 9216 {
		t.Errorf("the declarations have %d bytes, of 9,216", len(b))
	}
	instead := map[string]string{
		"web_fetch": "read_file run_shell_command", "ask_user_question": "exit_plan_mode", "exit_plan_mode": "ask_user_question", "todo_write": "", "structured_output": "",
	}
	for _, tl := range tools {
		sp := tl.Spec()
		if sp.Name == tool.ExecName {
			continue
		}
		_, not, found := strings.Cut(sp.Description, "Must not be used for ")
		if others, mine := instead[sp.Name]; mine {
			for other := range strings.FieldsSeq(others) {
				found = found && strings.Contains(not, other)
			}
			delete(instead, sp.Name)
		} else {
			found = regexp.MustCompile(`(?i)must not|never`).MatchString(sp.Description)
		}
		if !found {
			t.Errorf("%s does not say what it must not be used for: %s", sp.Name, sp.Description)
		}
	}
	if len(instead) > 0 {
		t.Errorf("not there: %v", instead)
	}
}

func compact(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}
