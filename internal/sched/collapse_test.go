package sched_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

// outcome is all that a collapse case is judged by.
type outcome struct {
	Status tool.Status
	Code   string
	Text   string
	Seen   []string // by which stages, in order
}

// everything is what sees a call that runs.
var everything = []string{"started", "before", "policy", "approver", "guard", "running", "body", "after", "finalizer", "result"}

const route = "only exec and the direct controls can be called directly; run ordinary inside exec: `const r = await tools.ordinary({}); text(r.output)`"

// collapseRig has a tool of every kind, all with finalizers, and stages that
// let everything through after asking everybody.
func collapseRig(t *testing.T, m tool.Mode) *rig {
	r := newRig(t, m)
	strict := r.tool("strict", tool.Ordinary)
	strict.spec.Input = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"}},"required":["n","s"],"additionalProperties":false}`)
	source := r.tool(tool.ExecName, tool.Gateway)
	source.spec.Input = json.RawMessage(`{"type":"object","properties":{"source":{"type":"string"}},"required":["source"]}`)
	deferred := r.tool("deferred", tool.Ordinary)
	deferred.spec.Deferred = true
	r.add(r.tool("ordinary", tool.Ordinary), strict, deferred, r.tool("mcp__a__b", tool.Ordinary), source,
		r.tool("agent", tool.Ordinary), r.tool("tool_search", tool.Ordinary), r.tool("tool_call", tool.Ordinary),
		r.tool("mcp__a.b", tool.Ordinary), r.tool("mcp__a_b", tool.Ordinary), r.tool("forbidden", tool.Ordinary))
	r.scp.Disallow = []string{"forbidden"}
	r.rule = sched.Verdict{Decision: sched.Ask, Reason: "it changes things", Suggestion: "Run with --approval-mode yolo to allow it."}
	r.opt.Approver = approver{r}
	r.answer = func(context.Context, *sched.Question) (sched.Answer, error) { return sched.Answer{Allow: true}, nil }
	return r
}

// Every row of the table of collapse cases, through the executor.
// S0-160 S0-161 S2-009 S2-033 S2-034 S2-075
// S2-001 S2-003 S2-004 S2-005 S2-006 S2-007 S2-008 S2-010 to S2-017 S2-020 to
// S2-027 S2-029 S2-032 S2-035 S2-036 S2-043 to S2-050 S2-056 S2-058 to S2-067 S2-078 S2-089
// S2-090 S2-095 S0-215 S0-216 S0-217 S0-218 S0-249 S0-020
func TestCollapse(t *testing.T) {
	for _, tc := range []struct {
		name    string
		mode    tool.Mode // code, unless said
		call    tool.Call
		aborted bool
		nested  bool
		prepare func(*rig)
		want    outcome
	}{
		{
			name: "direct call of an ordinary tool", call: call("ordinary"),
			want: outcome{tool.Failed, "UNKNOWN_TOOL", route, []string{"result"}},
		},
		{
			name: "of a deferred tool", call: call("deferred"),
			want: outcome{tool.Failed, "UNKNOWN_TOOL", strings.ReplaceAll(route, "ordinary", "deferred"), []string{"result"}},
		},
		{
			name: "with arguments that break its schema", call: call("strict"),
			want: outcome{tool.Failed, "UNKNOWN_TOOL", strings.ReplaceAll(route, "ordinary", "strict"), []string{"result"}},
		},
		{
			name: "the route repeats the arguments, on one line", call: tool.Call{Name: "strict", Args: json.RawMessage("{ \"n\": 12345678901234567890,\n\"s\":\"a\\nb\"}")},
			want: outcome{tool.Failed, "UNKNOWN_TOOL", strings.ReplaceAll(strings.ReplaceAll(route, "{}", `{"n":12345678901234567890,"s":"a\nb"}`), "ordinary", "strict"), []string{"result"}},
		},
		{
			name: "the route shortens long arguments", call: tool.Call{Name: "strict", Args: json.RawMessage(`{"s":"` + strings.Repeat("x", 5000) + `"}`)},
			want: outcome{tool.Failed, "UNKNOWN_TOOL", strings.ReplaceAll(strings.ReplaceAll(route, "{}", `{…}`), "ordinary", "strict") + " (with the arguments you gave)", []string{"result"}},
		},
		{
			name: "already aborted", call: call("ordinary"), aborted: true, prepare: unfinished("ordinary"),
			want: outcome{tool.Cancelled, "ABORTED_BEFORE_DISPATCH", "ordinary was cancelled before it was started", []string{"result"}},
		},
		{
			name: "already aborted, with a finalizer", call: call("ordinary"), aborted: true,
			want: outcome{tool.Cancelled, "ABORTED_BEFORE_DISPATCH", "ordinary was cancelled before it was started", []string{"finalizer", "result"}},
		},
		{
			name: "already aborted, a callable tool", call: call("agent"), aborted: true,
			want: outcome{tool.Cancelled, "ABORTED_BEFORE_DISPATCH", "agent was cancelled before it was started", []string{"finalizer", "result"}},
		},
		{
			name: "already aborted, an unregistered name", call: call("nobody"), aborted: true,
			want: outcome{tool.Cancelled, "ABORTED_BEFORE_DISPATCH", "nobody was cancelled before it was started", []string{"result"}},
		},
		{
			name: "arguments that are not lossless JSON", call: tool.Call{Name: "ordinary", Args: json.RawMessage(`{"a":1,"a":2}`)},
			want: outcome{tool.Failed, "INVALID_ARGS", "", []string{"result"}},
		},
		{
			name: "the same, already aborted", call: tool.Call{Name: "ordinary", Args: json.RawMessage(`{"a":`)}, aborted: true, prepare: unfinished("ordinary"),
			want: outcome{tool.Failed, "INVALID_ARGS", "", []string{"result"}},
		},
		{
			name: "the same, already aborted, with a finalizer", call: tool.Call{Name: "ordinary", Args: json.RawMessage(`{"a":`)}, aborted: true,
			want: outcome{tool.Failed, "INVALID_ARGS", "", []string{"finalizer", "result"}},
		},
		{
			name: "not JSON, a callable tool", call: tool.Call{Name: "agent", Args: json.RawMessage(`{"a":`)},
			want: outcome{tool.Failed, "INVALID_ARGS", "", []string{"finalizer", "result"}},
		},
		{
			name: "not JSON, an unregistered name", call: tool.Call{Name: "nobody", Args: json.RawMessage(`{"a":`)},
			want: outcome{tool.Failed, "INVALID_ARGS", "", []string{"result"}},
		},
		{
			name: "unregistered", call: call("nobody"),
			want: outcome{tool.Failed, "UNKNOWN_TOOL", `there is no tool "nobody" here`, []string{"result"}},
		},
		{
			name: "unregistered in direct", mode: tool.Direct, call: call("ordinery"),
			want: outcome{tool.Failed, "UNKNOWN_TOOL", `there is no tool "ordinery" here; the nearest names are ordinary`, []string{"result"}},
		},
		{
			name: "outside the scope", call: call("forbidden"),
			want: outcome{tool.Failed, "UNKNOWN_TOOL", `there is no tool "forbidden" here`, []string{"result"}},
		},
		{
			name: "outside the scope in both", mode: tool.Both, call: call("forbidden"),
			want: outcome{tool.Failed, "UNKNOWN_TOOL", `there is no tool "forbidden" here`, []string{"result"}},
		},
		{
			name: "exec in direct", mode: tool.Direct, call: call("exec"),
			want: outcome{tool.Failed, "UNKNOWN_TOOL", `there is no tool "exec" here`, []string{"result"}},
		},
		{
			name: "the bridge in code", call: call("tool_call"),
			want: outcome{tool.Failed, "UNKNOWN_TOOL", `there is no tool "tool_call" here`, []string{"result"}},
		},
		{
			name: "no exec in the scope, so no route", call: call("ordinary"),
			prepare: func(r *rig) { r.scp.Disallow = []string{"exec"} },
			want:    outcome{tool.Failed, "UNKNOWN_TOOL", `there is no tool "ordinary" here`, []string{"result"}},
		},
		{
			name: "exec without its argument", call: call("exec"),
			want: outcome{tool.Failed, "INVALID_ARGS", "", []string{"finalizer", "result"}},
		},
		{
			name: "arguments that break the schema of a callable tool", mode: tool.Both, call: call("strict"),
			want: outcome{tool.Failed, "INVALID_ARGS", "", []string{"finalizer", "result"}},
		},
		{
			name: "exec runs", call: tool.Call{Name: "exec", Args: json.RawMessage(`{"source":"1"}`)},
			want: outcome{tool.Success, "", "ran exec", everything},
		},
		{
			name: "a control runs", call: call("agent"),
			want: outcome{tool.Success, "", "ran agent", everything},
		},
		{
			name: "direct call in direct", mode: tool.Direct, call: call("ordinary"),
			want: outcome{tool.Success, "", "ran ordinary", everything},
		},
		{
			name: "direct call in both", mode: tool.Both, call: call("ordinary"),
			want: outcome{tool.Success, "", "ran ordinary", everything},
		},
		{
			name: "a deferred tool in both", mode: tool.Both, call: call("deferred"),
			want: outcome{tool.Failed, "UNKNOWN_TOOL", strings.ReplaceAll(strings.ReplaceAll(route, "ordinary", "deferred"), "exec and the direct controls", "the tools declared to you"), []string{"result"}},
		},
		{
			name: "a deferred tool in direct", mode: tool.Direct, call: call("deferred"),
			want: outcome{tool.Failed, "UNKNOWN_TOOL", "deferred is not loaded: find it with tool_search first, then call it through tool_call", []string{"result"}},
		},
		{
			name: "the mode flips in mid-flight", mode: tool.Both, call: call("ordinary"),
			prepare: func(r *rig) {
				r.hookFn = func(*sched.Request) (sched.HookVerdict, error) { r.flip(tool.Code); return sched.HookVerdict{}, nil }
			},
			want: outcome{tool.Failed, "UNKNOWN_TOOL", route, []string{"started", "before", "policy", "approver", "guard", "finalizer", "result"}},
		},
		{
			name: "an ask that nobody can answer", mode: tool.Direct, call: call("ordinary"),
			prepare: func(r *rig) { r.opt.Approver = nil },
			want: outcome{tool.Denied, "DENIED", "ordinary needs approval and nobody can be asked: it changes things. Run with --approval-mode yolo to allow it.",
				[]string{"started", "before", "policy", "finalizer", "result"}},
		},
		{
			name: "nested call of an ordinary tool", nested: true, call: call("ordinary"),
			want: outcome{tool.Success, "", "ran ordinary", everything},
		},
		{
			name: "nested call of a deferred tool", nested: true, call: call("deferred"),
			want: outcome{tool.Success, "", "ran deferred", everything},
		},
		{
			name: "nested call in both", mode: tool.Both, nested: true, call: call("ordinary"),
			want: outcome{tool.Success, "", "ran ordinary", everything},
		},
		{
			name: "nested call of exec", nested: true, call: tool.Call{Name: "exec", Args: json.RawMessage(`{"source":"1"}`)},
			want: outcome{tool.Failed, "UNKNOWN_TOOL", "exec cannot be called from a program; it is a tool of its own: call it directly, outside of exec", []string{"result"}},
		},
		{
			name: "nested call of a control", nested: true, call: call("agent"),
			want: outcome{tool.Failed, "UNKNOWN_TOOL", "agent cannot be called from a program; it is a tool of its own: call it directly, outside of exec", []string{"result"}},
		},
		{
			name: "nested call of a bridge", nested: true, call: call("tool_call"),
			want: outcome{tool.Failed, "UNKNOWN_TOOL", `there is no tool "tool_call" here`, []string{"result"}},
		},
		{
			name: "nested call of tool_search", nested: true, call: call("tool_search"),
			want: outcome{tool.Failed, "UNKNOWN_TOOL", "tool_search cannot be called from a program; it is a tool of its own: call it directly, outside of exec", []string{"result"}},
		},
		{
			name: "nested call of a collided name", nested: true, call: call("mcp__a_b"),
			want: outcome{tool.Failed, "UNKNOWN_TOOL", `there is no tool "mcp__a_b" here; the nearest names are mcp__a_b and mcp__a__b`, []string{"result"}},
		},
		{
			name: "nested call outside the scope", nested: true, call: call("forbidden"),
			want: outcome{tool.Failed, "UNKNOWN_TOOL", `there is no tool "forbidden" here`, []string{"result"}},
		},
		{
			name: "nested call that breaks the schema", nested: true, call: call("strict"),
			want: outcome{tool.Failed, "INVALID_ARGS", "", []string{"finalizer", "result"}},
		},
		{
			name: "nested call of a control, aborted", nested: true, aborted: true, call: call("agent"),
			want: outcome{tool.Cancelled, "ABORTED_BEFORE_DISPATCH", "agent was cancelled before it was started", []string{"result"}},
		},
		{
			name: "nested call, aborted", nested: true, aborted: true, call: call("ordinary"),
			want: outcome{tool.Cancelled, "ABORTED_BEFORE_DISPATCH", "ordinary was cancelled before it was started", []string{"finalizer", "result"}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if tc.mode == "" {
					tc.mode = tool.Code
				}
				r := collapseRig(t, tc.mode)
				if tc.prepare != nil {
					tc.prepare(r)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var got tool.Result
				switch {
				case tc.nested:
					got = r.oneNested(ctx, tc.call, tc.aborted)
				case tc.aborted:
					cancel()
					fallthrough
				default:
					got = r.run(ctx, tc.call)[0]
				}
				seen := r.stages(tc.call.Name)
				if tc.nested && tc.call.Name == "exec" {
					seen = r.sawNested
				}
				text := got.Text()
				if tc.want.Code == tool.CodeInvalidArgs { // the words are package schema's
					text = ""
				}
				if diff := cmp.Diff(tc.want, outcome{got.Status, got.Code, text, seen}); diff != "" {
					t.Errorf("want -, got +:\n%s", diff)
				}
				r.settledOnce()
			})
		})
	}
}

// unfinished takes a tool's finalizer away.
func unfinished(name string) func(*rig) {
	return func(r *rig) { r.add(r.tool(name, tool.Ordinary).fake) }
}

// oneNested makes one call from a program. The batch is aborted alone, not the
// program.
func (r *rig) oneNested(ctx context.Context, c tool.Call, aborted bool) (res tool.Result) {
	r.add(&fake{spec: tool.Spec{Name: tool.ExecName}, access: exclusively, run: func(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if aborted {
			cancel()
		}
		before := len(r.stages(c.Name))
		res = collect(inv.Dispatch(ctx, []tool.Call{c}), 1)[0]
		r.sawNested = r.stages(c.Name)[before:]
		return tool.Text("ok"), nil
	}})
	r.run(ctx, call(tool.ExecName))
	return res
}

// A subagent's model has no token, so its calls are judged as a model's, in its
// own scope (ruling 3). S2-028
func TestSubagentIsAModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tool.Both)
		sub := func() *tool.View { return r.reg.View(tool.Code, tool.Scope{Allow: []string{"ordinary"}}) }
		var got []tool.Result
		r.add(r.tool("ordinary", tool.Ordinary), r.tool("other", tool.Ordinary), execTool(says("")),
			&fake{spec: tool.Spec{Name: "agent", Waits: true}, access: overlapping, run: func(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
				if inv.Dispatch != nil {
					t.Error("a control can dispatch")
				}
				got = r.runtime().Run(ctx, sub, []tool.Call{
					{Name: "ordinary", Args: json.RawMessage(`{}`), ParentID: inv.Call.ID, Source: tool.FromProgram},
					{Name: "other", Args: json.RawMessage(`{}`), ParentID: inv.Call.ID},
				})
				return tool.Text("ok"), nil
			}})
		r.run(t.Context(), call("agent"))
		want := []string{route, `there is no tool "other" here`}
		if diff := cmp.Diff(want, texts(got)); diff != "" {
			t.Error(diff)
		}
		for _, e := range r.events {
			if e.Call.Name == "ordinary" && (e.Call.Source != tool.FromModel || e.Call.ParentID == "") {
				t.Errorf("trace of the subagent's call: %+v", *e.Call)
			}
		}
	})
}

// A collapsed call takes no place in the schedule and is never asked what it
// touches; a nested one overlaps as its tool declares. S2-031 S2-068 S2-069
// S0-175
func TestConcurrencyClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tool.Code)
		asked := 0
		safe := r.tool("safe", tool.Ordinary)
		safe.access = func(*tool.Call) tool.Access { asked++; return tool.Access{Overlap: true} }
		r.add(safe, execTool(says("ran exec")))
		got := r.run(t.Context(), call("safe"), call("exec"), call("safe"))
		if diff := cmp.Diff([]string{"UNKNOWN_TOOL", "", "UNKNOWN_TOOL"}, codes(got)); diff != "" || asked != 0 {
			t.Errorf("asked %d times, %s", asked, diff)
		}
		r.nested(t.Context(), call("safe"), call("safe"))
		if asked != 2 {
			t.Errorf("Access of two nested calls was asked %d times", asked)
		}
	})
}
