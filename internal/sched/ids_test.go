package sched_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

// Whatever ids a model gives its calls, every stage sees one that no other live
// call has, nested ids begin with their parent's, and the result has the id
// that the caller gave. S0-176
func TestSameIDs(t *testing.T) {
	r := newRig(t, tool.Both).bare(sched.Options{})
	together := make(chan string)
	r.add(&fake{spec: tool.Spec{Name: "work", Waits: true}, access: overlapping, run: func(_ context.Context, inv *tool.Invocation) (tool.Result, error) {
		together <- inv.Call.ID
		return tool.Text(inv.Call.ID), nil
	}})
	r.add(execTool(func(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
		nested := collect(inv.Dispatch(ctx, []tool.Call{call("work")}), 1)[0]
		if nested.CallID != nested.Text() {
			t.Errorf("the nested call %s has the result of %s", nested.Text(), nested.CallID)
		}
		return nested, nil
	}))
	given := []string{"x", "x", "", "call_1", "x", "x/1", "x#1", "y"}
	calls := make([]tool.Call, 0, len(given))
	for i, id := range given {
		c := call("work")
		if i == len(given)-1 { // a barrier: it comes last
			c = call(tool.ExecName)
			id = "x"
		}
		c.ID = id
		calls = append(calls, c)
	}
	done := make(chan []tool.Result)
	go func() { done <- r.run(t.Context(), calls...) }()
	seen := map[string]bool{}
	for range given {
		id := <-together
		if seen[id] {
			t.Errorf("two live calls are called %s", id)
		}
		seen[id] = true
	}
	var got []string
	for _, res := range <-done {
		got = append(got, res.CallID)
	}
	want := []string{"x", "x", got[2], "call_1", "x", "x/1", "x#1", "x"}
	if diff := cmp.Diff(want, got); diff != "" || got[2] == "" {
		t.Errorf("ids of the results: want -, got +:\n%s", diff)
	}
	r.settledOnce()

	// An id that is free again is taken as it is.
	again := call("work")
	again.ID = "x"
	go func() { done <- r.run(t.Context(), again) }()
	if id := <-together; id != "x" {
		t.Errorf("the id of a lone call became %s", id)
	}
	<-done
}

// A body is told what its call was judged and locked by, after all rewriting,
// and cannot change what the gate counts with.
func TestInvocationAccess(t *testing.T) {
	r := newRig(t, tool.Both)
	var judged, told []tool.Access
	r.hookFn = func(q *sched.Request) (sched.HookVerdict, error) {
		if q.Call.Name != "work" {
			return sched.HookVerdict{}, nil
		}
		return sched.HookVerdict{Args: json.RawMessage(`{"path":"/rewritten"}`)}, nil
	}
	r.opt.Guards = append(r.opt.Guards, func(_ context.Context, q *sched.Request) string {
		judged = append(judged, q.Access)
		return ""
	})
	r.add(&fake{spec: tool.Spec{Name: "work", Input: pathArgs}, access: writing, run: func(_ context.Context, inv *tool.Invocation) (tool.Result, error) {
		told = append(told, inv.Access)
		inv.Access.Writes[0] = "/spoilt"
		return tool.Text(fmt.Sprint(inv.Access)), nil
	}})
	r.run(t.Context(), callOn("work", "/given"))
	want := []tool.Access{{Overlap: true, Writes: []string{"/rewritten"}}}
	if diff := cmp.Diff(want, judged); diff != "" {
		t.Errorf("judged by: want -, got +:\n%s", diff)
	}
	want[0].Writes[0] = "/spoilt"
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told: want -, got +:\n%s", diff)
	}
	if got := r.run(t.Context(), callOn("work", "/given")); got[0].Status != tool.Success { // the lock is free again
		t.Errorf("%+v", got)
	}
}
