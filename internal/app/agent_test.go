package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/agent"
	"capstan/internal/msg"
	"capstan/internal/policy"
	"capstan/internal/tool"
)

// talked returns a session in which something was said, and closes it. The model
// answers with an error.
func talked(t *testing.T, model string, calls ...tool.Call) (o Options, id string) {
	t.Helper()
	noEnv(t)
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	url, _ := recorder(t)
	t.Setenv("OPENAI_BASE_URL", url)
	s := open(t, Options{ApprovalMode: "yolo"}, nil)
	c := converse(t, s, AgentOptions{Model: model}, calls...)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return s.opt, c.ID
}

// converse says something in a session and makes calls in it.
func converse(t *testing.T, s *Session, o AgentOptions, calls ...tool.Call) *Conversation {
	t.Helper()
	c, err := s.Agent(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range c.Runtime().Run(t.Context(), s.View, calls) {
		if r.Status != tool.Success {
			t.Fatalf("%s: %s", r.Name, r.Text())
		}
	}
	if out := c.Run(t.Context(), []msg.Part{msg.TextPart("hi")}); out.Reason != agent.Failed {
		t.Fatalf("%+v", out)
	}
	return c
}

// again opens a session in the same place.
func again(t *testing.T, o Options) *Session {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func call(name string, args map[string]any) tool.Call {
	raw, _ := json.Marshal(args) // strings and lists only
	return tool.Call{Name: name, Args: raw}
}

// The task list is there again when a session goes on.
func TestResumeTodos(t *testing.T) {
	todo := func(status ...string) tool.Call {
		list := []any{}
		for _, st := range status {
			list = append(list, map[string]string{"content": "a step", "status": st})
		}
		return call("todo_write", map[string]any{"todos": list})
	}
	o, id := talked(t, "openai/m", todo("completed", "in_progress"))
	s := again(t, o)
	c, err := s.Agent(t.Context(), AgentOptions{Resume: id})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil { // so that the list stays as it is, and is told of
		t.Fatal(err)
	}
	next := todo()
	r, err := s.View().Visible("todo_write").Tool().Run(t.Context(), &tool.Invocation{Call: &next})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.Text(), "the list is as it was, 2 steps: 1 completed, 1 in progress, 0 pending") {
		t.Errorf("%s", r.Text())
	}
}

// The system prompt names the approval mode in force, also when it has changed
// since the conversation began.
func TestPromptFollowsTheMode(t *testing.T) {
	s := open(t, Options{ApprovalMode: "plan"}, nil)
	prompt := s.prompt(AgentOptions{}, nil)
	for _, mode := range []policy.Mode{policy.Plan, policy.AutoEdit, policy.Default} {
		if err := s.rules.SetMode(mode); err != nil {
			t.Fatal(err)
		}
		got := prompt()
		if !strings.Contains(got, "Approval mode: "+string(mode)) || strings.Contains(got, "Plan mode:") != (mode == policy.Plan) {
			t.Errorf("in mode %s: %s", mode, got)
		}
	}
}

// A model that was chosen for a session that goes on is that of the session from
// then on.
func TestResumeModel(t *testing.T) {
	o, id := talked(t, "openai/first")
	for _, step := range []struct{ asked, want string }{
		{"", "openai/first"}, {"openai/second", "openai/second"}, {"", "openai/second"}, {"", "openai/second"}, {"openai/first", "openai/first"}, {"", "openai/first"},
	} {
		c := converse(t, again(t, o), AgentOptions{Model: step.asked, Resume: id})
		if got := c.Model.String(); got != step.want {
			t.Errorf("asked for %q: %s, want %s", step.asked, got, step.want)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What was read, or written, in a session need not be read again when it goes on,
// unless it has changed since.
func TestResumeReads(t *testing.T) {
	create := func(name string) tool.Call {
		return call("write_file", map[string]any{"file_path": name, "content": "one\n"})
	}
	o, id := talked(t, "openai/m", create("a"), create("b"))
	edit := func(name string) tool.Call {
		return call("edit", map[string]any{"file_path": name, "old_string": "one", "new_string": "two"})
	}
	for name, text := range map[string]string{"b": "one, changed\n", "c": "one\n"} {
		if err := os.WriteFile(filepath.Join(o.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := again(t, o)
	c, err := s.Agent(t.Context(), AgentOptions{Resume: id})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range c.Runtime().Run(t.Context(), s.View, []tool.Call{edit("a"), edit("b"), edit("c")}) {
		line, _, _ := strings.Cut(r.Text(), ";")
		got = append(got, line)
	}
	want := []string{"Edited a at line 1:\n1: two", "edit b: it has changed since it was read: read_file it again, then edit", "edit c: it has not been read in this session: read_file it first, then edit"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}
