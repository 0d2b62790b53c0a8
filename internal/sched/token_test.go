package sched_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

func withToken(p *tool.Parent) tool.Call {
	c := call("work")
	c.Parent = p
	return c
}

// A token is good for nothing but the Dispatch of the exec that it was minted
// for. Whoever has another one gets INVALID_PARENT, and no stage sees the call.
// S2-027 S2-028 S2-081 S0-157 S0-158
func TestTokens(t *testing.T) {
	refused := func(t *testing.T, r *rig, got tool.Result) {
		t.Helper()
		want := outcome{tool.Failed, "INVALID_PARENT", "work was called in the name of an exec that is not running, or not this one", []string{"result"}}
		if diff := cmp.Diff(want, outcome{got.Status, got.Code, got.Text(), r.stages("work")}); diff != "" {
			t.Errorf("want -, got +:\n%s", diff)
		}
		if got.CallID == "" {
			t.Error("the refusal has no id")
		}
	}
	setup := func(t *testing.T) *rig {
		r := newRig(t, tool.Both)
		t.Cleanup(r.settledOnce)
		return r.add(r.tool("work", tool.Ordinary))
	}
	t.Run("made up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t)
			refused(t, r, r.run(t.Context(), withToken(new(tool.Parent)))[0])
		})
	})
	t.Run("made up, in a program", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t)
			refused(t, r, r.nested(t.Context(), withToken(new(tool.Parent)))[0])
		})
	})
	t.Run("stolen from a running exec, by a model", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t)
			r.program(t.Context(), func(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
				refused(t, r, r.run(ctx, withToken(r.rt.Tokens()[0]))[0])
				return tool.Text("ok"), nil
			})
		})
	})
	t.Run("stolen from another exec, by a program", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t)
			r.program(t.Context(), func(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
				stolen := r.rt.Tokens()[0]
				r.add(execTool(func(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
					refused(t, r, collect(inv.Dispatch(ctx, []tool.Call{withToken(stolen)}), 1)[0])
					return tool.Text("ok"), nil
				}))
				r.run(ctx, call(tool.ExecName))
				return tool.Text("ok"), nil
			})
		})
	})
	t.Run("of another runtime", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, other := setup(t), setup(t)
			other.program(t.Context(), func(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
				refused(t, r, r.nested(ctx, withToken(other.rt.Tokens()[0]))[0])
				return tool.Text("ok"), nil
			})
		})
	})
	t.Run("stale: exec has returned", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t)
			var late func(context.Context, []tool.Call) <-chan tool.Settled
			var token *tool.Parent
			r.program(t.Context(), func(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
				late, token = inv.Dispatch, r.rt.Tokens()[0]
				return tool.Text("ok"), nil
			})
			if left := r.rt.Tokens(); len(left) != 0 {
				t.Errorf("%d tokens outlive their exec", len(left))
			}
			c := call("work")
			got := collect(late(t.Context(), []tool.Call{c}), 1)[0]
			if got.CallID != "call_1/1" {
				t.Errorf("its trace is lost: %q", got.CallID)
			}
			refused(t, r, got)
			r.lines = nil
			refused(t, r, collect(late(t.Context(), []tool.Call{withToken(token)}), 1)[0])
		})
	})
}

// A gateway does not get to see the token that its calls go out with, and its
// slice stays as it was.
func TestGatewaySeesNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tool.Code)
		r.add(r.tool("work", tool.Ordinary))
		r.program(t.Context(), func(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
			calls := []tool.Call{call("work")}
			collect(inv.Dispatch(ctx, calls), 1)
			if calls[0].Parent != nil || inv.Call.Parent != nil {
				t.Error("the gateway sees a token")
			}
			return tool.Text("ok"), nil
		})
	})
}

// The scope of a program is that of its exec: what the scope leaves out fails
// closed in the executor, at the moment of the call. S0-205 S0-207 S0-208 S0-234
func TestProgramScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tool.Code)
		r.add(r.tool("work", 0), r.tool("other", 0), r.tool("late", 0))
		r.scp = tool.Scope{Allow: []string{"work", "late"}}
		var bound []string
		var got []tool.Result
		r.program(t.Context(), func(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
			for _, b := range inv.View.Bindings() {
				bound = append(bound, b.JS)
			}
			got = collect(inv.Dispatch(ctx, []tool.Call{call("work"), call("other")}), 2)
			r.mu.Lock()
			r.scp = tool.Scope{Allow: []string{"work"}}
			r.mu.Unlock()
			got = append(got, collect(inv.Dispatch(ctx, []tool.Call{call("late")}), 1)...)
			return tool.Text("ok"), nil
		})
		if diff := cmp.Diff([]string{"late", "work"}, bound); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"ran work", `there is no tool "other" here`, `there is no tool "late" here`}, texts(got)); diff != "" {
			t.Error(diff)
		}
	})
}

// Only a tool of class Gateway can make calls, whatever its name or its Spec
// says. S2-028
func TestOnlyGatewaysDispatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tool.Both)
		got := map[string]bool{}
		see := func(name string, class tool.Class) *fake {
			return &fake{spec: tool.Spec{Name: name, Class: class}, access: overlapping, run: func(_ context.Context, inv *tool.Invocation) (tool.Result, error) {
				got[name] = inv.Dispatch != nil
				return tool.Text("ok"), nil
			}}
		}
		r.add(see("exec", tool.Ordinary), see("relay", tool.Gateway), see("agent", tool.Gateway), see("work", tool.Ordinary))
		for _, n := range []string{"exec", "relay", "agent", "work"} {
			r.run(t.Context(), call(n))
		}
		if diff := cmp.Diff(map[string]bool{"exec": true, "relay": true, "agent": false, "work": false}, got); diff != "" {
			t.Error(diff)
		}
	})
}

// Calls that a program did not await are cancelled when it ends, and have
// settled before its exec does. S0-248 S0-150
func TestUnawaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		r := newRig(t, tool.Code)
		r.add(c.tool("slow", time.Hour, overlapping))
		var in <-chan tool.Settled
		res := r.program(t.Context(), func(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
			in = inv.Dispatch(ctx, []tool.Call{call("slow"), call("slow")})
			time.Sleep(time.Second)
			return tool.Text("ok"), nil
		})
		if res.Text() != "ok" || time.Since(c.start) != time.Second {
			t.Errorf("%q after %v", res.Text(), time.Since(c.start))
		}
		c.want(t, "slow 0s-1s", "slow 0s-1s")
		if diff := cmp.Diff(repeat("ABORTED", 2), codes(collect(in, 2))); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"slow", "slow", "exec"}, r.order("result")); diff != "" {
			t.Error(diff)
		}
		r.settledOnce()
	})
}

// A program that the person ended cannot start anything more, even where it was
// given up on.
func TestNothingAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tool.Code).bare(sched.Options{})
		r.add(r.tool("work", 0))
		ctx, cancel := context.WithCancel(t.Context())
		stubborn := make(chan tool.Result)
		res := r.program(ctx, func(_ context.Context, inv *tool.Invocation) (tool.Result, error) {
			cancel()
			time.Sleep(time.Minute)
			go func() { stubborn <- tool.Result{} }()
			got := collect(inv.Dispatch(context.Background(), []tool.Call{call("work")}), 1)[0]
			<-stubborn
			if got.Code != tool.CodeAbortedBefore {
				t.Errorf("a dead program's call: %+v", got)
			}
			return tool.Text("ok"), nil
		})
		if want := "exec was cancelled but did not stop within 10s and was given up on; what it still does is not known"; res.Text() != want || res.Code != tool.CodeAborted {
			t.Errorf("%+v", res)
		}
		time.Sleep(time.Hour)
	})
}
