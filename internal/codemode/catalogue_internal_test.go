package codemode

import (
	"context"
	"testing"

	"capstan/internal/tool"
)

// named is a tool that is only looked for.
type named struct{ spec tool.Spec }

func (n *named) Spec() *tool.Spec { return &n.spec }
func (n *named) Run(context.Context, *tool.Invocation) (tool.Result, error) {
	return tool.Result{}, nil
}

// The index holds the ordinary tools that there are, and no others: what is gone
// would still count for how rare a word is.
func TestCatalogueForgets(t *testing.T) {
	var r tool.Registry
	var c catalogue
	has := func(want int) {
		t.Helper()
		c.update(r.Tools())
		if got := c.index.Len(); got != want {
			t.Errorf("%d documents, want %d", got, want)
		}
	}
	has(0)
	if err := r.Add(&named{tool.Spec{Name: "own"}}, &named{tool.Spec{Name: "agent"}}, &named{tool.Spec{Name: "mcp__a__x", Server: "a"}}, &named{tool.Spec{Name: "mcp__b__x", Server: "b"}}); err != nil {
		t.Fatal(err)
	}
	has(3)
	has(3)
	if err := r.Replace(func(sp *tool.Spec) bool { return sp.Server == "a" }); err != nil {
		t.Fatal(err)
	}
	has(2)
	if err := r.Replace(func(sp *tool.Spec) bool { return true }); err != nil {
		t.Fatal(err)
	}
	has(0)
}
