package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"capstan/internal/msg"
	"capstan/internal/tool"
)

// listed is a tool that is only looked at.
type listed struct{ spec tool.Spec }

func (l *listed) Spec() *tool.Spec { return &l.spec }
func (l *listed) Run(context.Context, *tool.Invocation) (tool.Result, error) {
	return tool.Result{}, nil
}

// A tool's own name comes before the JavaScript name of another one.
func TestNamed(t *testing.T) {
	var r tool.Registry
	for _, name := range []string{"a-b", "a_b", "c-d"} {
		if err := r.Add(&listed{tool.Spec{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"a-b": "a-b", "a_b": "a_b", "c_d": "c-d", "e": ""} {
		got := ""
		if e := named(r.Tools(), name); e != nil {
			got = e.Spec().Name
		}
		if got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// Nothing that a server declares acts on the terminal.
func TestDeclarationsActOnNothing(t *testing.T) {
	var b strings.Builder
	err := printDeclarations(&b, []msg.Declaration{{Name: "t\u009b", Description: "one\u009b2J\ntwo\x1b[2J", Parameters: json.RawMessage("{\"d\":\"\u009b\u202e\"}")}})
	if want := "## t·\n\none·2J\ntwo·[2J\n\n{\"d\":\"··\"}\n\n"; err != nil || b.String() != want {
		t.Errorf("got %q, %v, want %q", b.String(), err, want)
	}
}
