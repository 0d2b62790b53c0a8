package builtin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/builtin"
	"capstan/internal/codemode"
	"capstan/internal/policy"
	"capstan/internal/sched"
	"capstan/internal/shell"
	"capstan/internal/tool"
)

// everything returns all built-in tools, as a session registers them where
// somebody can be asked; skills are none of it.
func everything(t *testing.T) []tool.Tool {
	t.Helper()
	return registered(t, builtin.LoopOptions{
		Ask:  func(context.Context, []builtin.Question) ([]builtin.Answer, error) { return nil, nil },
		Plan: &builtin.PlanOptions{},
	})
}

// registered returns the built-in tools of a session with a form of its answer.
func registered(t *testing.T, o builtin.LoopOptions) []tool.Tool {
	t.Helper()
	s, err := builtin.NewStructured(json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	runner := shell.New(shell.Options{})
	tools := builtin.All(builtin.Options{Dir: t.TempDir()})
	tools = append(tools, builtin.Shell(builtin.ShellOptions{Dir: t.TempDir(), Runner: runner, Jobs: shell.NewJobs(runner)})...)
	o.Structured = s
	tools = append(tools, builtin.Loop(o)...)
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
		{builtin.LoopOptions{Plan: &builtin.PlanOptions{}}, []string{"todo_write", "web_fetch", "enter_plan_mode", "exit_plan_mode"}},
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
		"direct": {"ask_user_question", "enter_plan_mode", "exec", "exit_plan_mode", "structured_output"},
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

// All that a model is sent in code mode has its budget (DESIGN section 3): with
// what a session has where nobody can be asked, and where somebody can, and with
// skills of which the list is as long as it can be.
func TestWeight(t *testing.T) {
	var skills []tool.Tool
	for _, description := range []string{strings.Repeat("w", 1000), strings.Repeat(`say "\x" */ `, 80), strings.Repeat("ä<&", 200)} {
		for _, n := range []int{1, 20, 120} {
			skills = append(skills, builtin.LoadSkills(builtin.SkillDirs(shelf(t, n, description), "", false)).Tool(nil))
		}
	}
	for name, tools := range map[string][]tool.Tool{"headless": registered(t, builtin.LoopOptions{}), "with a person": everything(t)} {
		bare, fullest := weight(t, tools), 0
		for _, skill := range skills {
			full := weight(t, append(slices.Clone(tools), skill))
			fullest = max(fullest, full)
			if full > 9216 {
				t.Errorf("%s: the declarations have %d bytes, of 9,216, with %s", name, full, skill.Spec().Description)
			}
		}
		t.Logf("%s: %d bytes, with skills up to %d", name, bare, fullest)
		if fullest < bare+1200 { // the tool itself, and nearly all of its list
			t.Errorf("%s: no list of skills was as long as it can be: %d bytes without, %d with", name, bare, fullest)
		}
	}
}

func weight(t *testing.T, tools []tool.Tool) int {
	t.Helper()
	b, err := compact(register(t, tools...).View(tool.Code, tool.Scope{}).Declarations())
	if err != nil {
		t.Fatal(err)
	}
	return len(b)
}

// shelf returns a home directory with skills.
func shelf(t *testing.T, n int, description string) string {
	t.Helper()
	home := t.TempDir()
	for i := range n {
		dir := filepath.Join(home, ".capstan", "skills", fmt.Sprintf("s%03d", i))
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("---\ndescription: |\n  "+description+"\n---\nx"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// Every description says what its tool must not be used for, and mostly what
// is for that instead. S3-040 S3-041
func TestDescriptionsSayWhatNot(t *testing.T) {
	tools := everything(t)
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

// person says yes to every question and remembers what was asked.
type person struct{ asked []string }

func (p *person) Approve(_ context.Context, q *sched.Question) (sched.Answer, error) {
	p.asked = append(p.asked, q.Verdict.Reason)
	return sched.Answer{Allow: true}, nil
}

// In plan mode the controls and the task list work without a question, a page
// is asked about by its host, and nothing is written; once the person has said
// yes to the plan, the same call runs. S0-054 S0-057
func TestPlanMode(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("page")) }))
	defer server.Close()
	dir := t.TempDir()
	p, _, err := policy.New(policy.Options{Mode: policy.Plan, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	approve := builtin.PlanAnswer{Words: "smaller"}
	tools := append(builtin.All(builtin.Options{Dir: dir}), builtin.Loop(builtin.LoopOptions{
		Web: builtin.WebOptions{AllowPrivate: true},
		Ask: func(context.Context, []builtin.Question) ([]builtin.Answer, error) {
			return []builtin.Answer{{Chosen: []string{"x"}}}, nil
		},
		Plan: &builtin.PlanOptions{
			Mode:    func() string { return string(p.Mode()) },
			SetMode: func(m string) error { return p.SetMode(policy.Mode(m)) },
			Approve: func(context.Context, string) (builtin.PlanAnswer, error) { return approve, nil },
		},
	})...)
	r := register(t, tools...)
	who := &person{}
	rt := sched.New(sched.Options{Policy: p, Approver: who})
	var got []string
	do := func(name, args string) {
		res := rt.Run(t.Context(), func() *tool.View { return r.View(tool.Direct, tool.Scope{}) }, []tool.Call{{Name: name, Args: json.RawMessage(args)}})[0]
		got = append(got, name+": "+string(res.Status))
	}
	const write = `{"file_path":"a.txt","content":"a"}`
	do("todo_write", `{"todos":[]}`)
	do("ask_user_question", `{"questions":[{"question":"?","options":[{"label":"x"},{"label":"y"}]}]}`)
	do("web_fetch", `{"url":"`+server.URL+`"}`)
	do("write_file", write)
	do("exit_plan_mode", `{"plan":"write"}`)
	do("write_file", write)
	approve = builtin.PlanAnswer{Yes: true, Mode: "auto-edit"}
	do("exit_plan_mode", `{"plan":"write less"}`)
	do("write_file", write)
	do("exit_plan_mode", `{"plan":"again"}`)
	want := []string{
		"todo_write: success", "ask_user_question: success", "web_fetch: success", "write_file: denied",
		"exit_plan_mode: success", "write_file: denied", "exit_plan_mode: success", "write_file: success", "exit_plan_mode: error",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"using web_fetch on 127.0.0.1 needs approval in approval mode plan"}, who.asked); diff != "" {
		t.Error(diff)
	}
}

// What cannot succeed whatever the person says is not asked about. S3-054
func TestNothingToAskAbout(t *testing.T) {
	dir := t.TempDir()
	p, _, err := policy.New(policy.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	run := shell.New(shell.Options{})
	tools := append(builtin.All(builtin.Options{Dir: dir}), builtin.Loop(builtin.LoopOptions{})...)
	tools = append(tools, builtin.Shell(builtin.ShellOptions{Dir: dir, Runner: run, Jobs: shell.NewJobs(run)})...)
	r := register(t, tools...)
	who := &person{}
	rt := sched.New(sched.Options{Policy: p, Approver: who})
	for _, tc := range []struct{ name, args, want string }{
		{"web_fetch", `{"url":""}`, "/url: it has no scheme; write https://HOST/…"},
		{"web_fetch", `{"url":"ftp://example.org/"}`, "/url: its scheme is ftp; only http and https are fetched"},
		{"web_fetch", `{"url":"file:///etc/passwd"}`, "/url: its scheme is file; only http and https are fetched"},
		{"web_fetch", `{"url":"http://example.org/%zz"}`, `/url: it is no web address: invalid URL escape "%zz"`},
		{"read_file", `{"file_path":"/etc/a\u0000b"}`, `/file_path: the path "/etc/a\x00b" holds a NUL byte`},
		{"read_file", `{"file_path":""}`, "/file_path: the path is empty"},
		{"write_file", `{"file_path":"a\u0000b","content":""}`, `/file_path: the path "a\x00b" holds a NUL byte`},
		{"edit", `{"file_path":"a\u0000b","old_string":"a","new_string":"b"}`, `/file_path: the path "a\x00b" holds a NUL byte`},
		{"list_directory", `{"path":"/etc\u0000"}`, `/path: the path "/etc\x00" holds a NUL byte`},
		{"glob", `{"pattern":"*","path":"/etc\u0000"}`, `/path: the path "/etc\x00" holds a NUL byte`},
		{"glob", `{"pattern":"/etc\u0000/*"}`, `the pattern "/etc\x00/*" holds a NUL byte, which no path has`},
		{"glob", `{"pattern":"[","path":"/etc"}`, `the pattern "[" is not a glob: an open [ or { needs its ] or }; write \[ or \{ for the character itself`},
		{"grep_search", `{"pattern":"","path":"/etc"}`, "the pattern is empty: it would match every line"},
		{"grep_search", `{"pattern":"a","glob":"[","path":"/etc"}`, `the glob "[" cannot be used: an open [ or { needs its ] or }`},
		{"grep_search", `{"pattern":"a","path":"/etc\u0000"}`, `/path: the path "/etc\x00" holds a NUL byte`},
		{"run_shell_command", `{"command":" "}`, "/command: the command is empty"},
		{"run_shell_command", `{"command":"echo a\u0000b"}`, "/command: the command contains a NUL byte, which no argument can hold"},
		{"run_shell_command", `{"command":"ls","directory":"a\u0000b"}`, "/directory: the directory contains a NUL byte"},
	} {
		res := rt.Run(t.Context(), func() *tool.View { return r.View(tool.Direct, tool.Scope{}) }, []tool.Call{{Name: tc.name, Args: json.RawMessage(tc.args)}})[0]
		if want := tc.name + " was not run: " + tc.want; res.Code != tool.CodeInvalidArgs || res.Text() != want {
			t.Errorf("%s %s: %s\n got %s\nwant %s", tc.name, tc.args, res.Code, res.Text(), want)
		}
	}
	if len(who.asked) > 0 {
		t.Errorf("asked: %q", who.asked)
	}
}

func compact(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}
