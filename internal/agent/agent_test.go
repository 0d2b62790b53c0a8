package agent_test

import (
	"testing"

	"capstan/internal/agent"
	"capstan/internal/llm"
	"capstan/internal/tool"
)

// A program's calls are counted under their own names, exec too.
func TestProgram(t *testing.T) {
	r := newRig(t, tool.Code).programs()
	r.model.turns = []turn{
		events(llm.Text{Text: "Let me see."}, calls("c1", "exec", `{"source":"const [a,b]=await Promise.all([tools.read_file({path:'a'}),tools.read_file({path:'b'})]); text(a.output+b.output)"}`)),
		events(llm.Text{Text: "Done."}),
	}
	out := r.run("Go")
	if out.Reason != agent.Finished || out.Calls != 3 || out.Text != "Done." {
		t.Errorf("%+v", out)
	}
}
