package sched_test

import (
	"context"
	"encoding/json"
	"testing"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

// BenchmarkNestedCall is one trivial call of a running program, one after the
// other, with arguments to validate and nobody to ask.
func BenchmarkNestedCall(b *testing.B) { nestedCalls(b, 1) }

// BenchmarkNestedBatch is the same, a hundred at once; the figure is for all.
func BenchmarkNestedBatch(b *testing.B) { nestedCalls(b, 100) }

func nestedCalls(b *testing.B, n int) {
	reg := &tool.Registry{}
	calls := make([]tool.Call, n)
	for i := range calls {
		calls[i] = tool.Call{Name: "work", Args: json.RawMessage(`{"path":"/some/where/file.txt","limit":20}`)}
	}
	work := &fake{spec: tool.Spec{Name: "work", Input: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer","minimum":0}},"required":["path"],"additionalProperties":false}`)},
		access: func(*tool.Call) tool.Access {
			return tool.Access{Overlap: true, Reads: []string{"/some/where/file.txt"}}
		}, run: says("ok")}
	exec := execTool(func(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
		b.ReportAllocs()
		for b.Loop() {
			for range inv.Dispatch(ctx, calls) {
			}
		}
		return tool.Text("ok"), nil
	})
	if err := reg.Add(work, exec); err != nil {
		b.Fatal(err)
	}
	rt := sched.New(sched.Options{Policy: policyFunc(func(*sched.Request) sched.Verdict { return sched.Verdict{Decision: sched.Allow} })})
	view := func() *tool.View { return reg.View(tool.Code, tool.Scope{}) }
	if r := rt.Run(b.Context(), view, []tool.Call{call(tool.ExecName)})[0]; r.Text() != "ok" {
		b.Fatalf("%+v", r)
	}
}

// BenchmarkHostileBatch is what a program can do to the gate at worst: ten
// thousand calls on one path behind one that nobody answers, and then the
// answer. The figure is for all.
func BenchmarkHostileBatch(b *testing.B) {
	reg := &tool.Registry{}
	work := &fake{spec: tool.Spec{Name: "work", Input: pathArgs}, access: reading, run: says("ok")}
	write := &fake{spec: tool.Spec{Name: "write", Input: pathArgs}, access: func(c *tool.Call) tool.Access {
		return tool.Access{Writes: []string{pathOf(c)}}
	}, run: says("ok")}
	var calls []tool.Call
	for i := range 10_000 {
		name := "work"
		if i%2 == 0 {
			name = "write"
		}
		calls = append(calls, callOn(name, "/a"))
	}
	if err := reg.Add(work, write, execTool(func(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
		for b.Loop() {
			for range inv.Dispatch(ctx, calls) {
			}
		}
		return tool.Text("ok"), nil
	})); err != nil {
		b.Fatal(err)
	}
	rt := sched.New(sched.Options{})
	rt.Run(b.Context(), func() *tool.View { return reg.View(tool.Code, tool.Scope{}) }, []tool.Call{call(tool.ExecName)})
}
