package sched_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

// Where a call is when it is cancelled decides between ABORTED_BEFORE_DISPATCH
// (its body never ran) and ABORTED. S0-247 S2-063
func TestCancel(t *testing.T) {
	ended := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for _, tc := range []struct {
		name    string
		prepare func(*rig)
		code    string
		text    string
		seen    []string
	}{
		{"in a hook", func(r *rig) {
			r.hookCtx = ended
		}, "ABORTED_BEFORE_DISPATCH", "work was cancelled before it was started", []string{"started", "before", "finalizer", "result"}},
		{"while a person is asked", func(r *rig) {
			r.rule.Decision, r.opt.Approver = sched.Ask, approver{r}
			r.answer = func(ctx context.Context, _ *sched.Question) (sched.Answer, error) {
				return sched.Answer{Allow: true}, ended(ctx)
			}
		}, "ABORTED_BEFORE_DISPATCH", "work was cancelled before it was started", []string{"started", "before", "policy", "approver", "finalizer", "result"}},
		{"while it waits for a slot", func(r *rig) {
			r.opt.Slots = 1
			r.add(&fake{spec: tool.Spec{Name: "hog"}, access: overlapping, run: takes(time.Hour)})
			go r.run(context.Background(), call("hog"))
			synctest.Wait()
		}, "ABORTED_BEFORE_DISPATCH", "work was cancelled before it was started", []string{"started", "before", "policy", "guard", "finalizer", "result"}},
		{"in its body", func(r *rig) {
			r.body(func(ctx context.Context, _ *tool.Invocation) (tool.Result, error) { return tool.Result{}, ended(ctx) })
		}, "ABORTED", "work was cancelled while it ran", []string{"started", "before", "policy", "guard", "running", "after", "finalizer", "result"}},
		{"in its body, which fails of it", func(r *rig) {
			r.body(func(ctx context.Context, _ *tool.Invocation) (tool.Result, error) {
				<-ctx.Done()
				return tool.Result{}, errors.New("signal: killed")
			})
		}, "ABORTED", "work was cancelled while it ran: signal: killed", []string{"started", "before", "policy", "guard", "running", "after", "finalizer", "result"}},
		{"in its body, which ends all the same", func(r *rig) {
			r.body(func(ctx context.Context, _ *tool.Invocation) (tool.Result, error) {
				<-ctx.Done()
				return tool.Text("half of it"), nil
			})
		}, "", "half of it", []string{"started", "before", "policy", "guard", "running", "after", "finalizer", "result"}},
		{"in its body, which does not listen", func(r *rig) {
			r.body(func(context.Context, *tool.Invocation) (tool.Result, error) {
				time.Sleep(time.Hour)
				return tool.Text("too late"), nil
			})
		}, "ABORTED", "work was cancelled but did not stop within 5s and was given up on; what it still does is not known", []string{"started", "before", "policy", "guard", "running", "after", "finalizer", "result"}},
		{"in its body, which listens late", func(r *rig) {
			r.body(func(context.Context, *tool.Invocation) (tool.Result, error) {
				time.Sleep(5 * time.Second)
				return tool.Text("in time"), nil
			})
		}, "", "in time", []string{"started", "before", "policy", "guard", "running", "after", "finalizer", "result"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, tool.Direct)
				r.add(r.tool("work", 0))
				tc.prepare(r)
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				got := r.run(ctx, call("work"))[0]
				if got.Code != tc.code || got.Text() != tc.text {
					t.Errorf("%s %q", got.Code, got.Text())
				}
				if diff := cmp.Diff(tc.seen, r.stages("work")); diff != "" {
					t.Error(diff)
				}
				time.Sleep(2 * time.Hour) // what was left running ends
				r.settledOnce()
			})
		})
	}
}

// body gives the tool work another body, with its finalizer as it is.
func (r *rig) body(run func(context.Context, *tool.Invocation) (tool.Result, error)) {
	w := r.tool("work", tool.Ordinary)
	w.run = run
	r.add(w)
}

// Permission to start and cancellation at one moment: the body does not run.
func TestCancelAtTheStart(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, tool.Direct)
			r.add(r.tool("work", 0))
			ctx, cancel := context.WithCancel(t.Context())
			r.opt.Guards = []sched.Guard{func(context.Context, *sched.Request) string { cancel(); return "" }}
			if got := r.run(ctx, call("work"))[0]; got.Code != tool.CodeAbortedBefore || len(r.order("body")) > 0 {
				t.Errorf("%s, bodies %q", got.Code, r.order("body"))
			}
		})
	}
}

// A body that was given up on gives its slot and its turn back, and keeps its
// paths until it really ends.
func TestAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		r := newRig(t, tool.Direct).bare(sched.Options{Slots: 1})
		deaf := c.onPath("deaf", 0, writing)
		deaf.run = func(context.Context, *tool.Invocation) (tool.Result, error) {
			time.Sleep(time.Minute)
			return tool.Text("never read"), nil
		}
		r.add(deaf, c.onPath("write", time.Second, writing), c.onPath("look", time.Second, reading))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if got := r.run(ctx, callOn("deaf", "/a"))[0]; got.Code != tool.CodeAborted || time.Since(c.start) != 6*time.Second {
			t.Errorf("%s after %v", got.Code, time.Since(c.start))
		}
		got := r.run(t.Context(), callOn("look", "/b"), callOn("write", "/a"))
		if diff := cmp.Diff([]string{"done", "done"}, texts(got)); diff != "" {
			t.Error(diff)
		}
		c.want(t, "look 6s-7s", "write 1m0s-1m1s")
	})
}

// Cancelling an exec gives up on the nested body that does not listen, after
// 5 s, and not on the exec that waits for it.
func TestAbandonedNested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tool.Code).bare(sched.Options{})
		start := time.Now()
		r.add(&fake{spec: tool.Spec{Name: "deaf"}, access: overlapping, run: func(context.Context, *tool.Invocation) (tool.Result, error) {
			time.Sleep(time.Minute)
			return tool.Text(""), nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		var nested []tool.Result
		res := r.program(ctx, func(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
			nested = collect(inv.Dispatch(ctx, []tool.Call{call("deaf")}), 1)
			return tool.Text("printed before"), nil
		})
		if nested[0].Code != tool.CodeAborted || res.Text() != "printed before" || time.Since(start) != 6*time.Second {
			t.Errorf("nested %s, exec %q after %v", nested[0].Code, res.Text(), time.Since(start))
		}
		time.Sleep(time.Hour)
	})
}

// A body that ends its goroutine instead of returning still settles.
func TestGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tool.Direct)
		r.body(func(context.Context, *tool.Invocation) (tool.Result, error) { runtime.Goexit(); panic("unreachable") })
		if got := r.run(t.Context(), call("work"))[0]; got.Code != tool.CodeFailed || got.Text() != "work failed: it ended without a result" {
			t.Errorf("%+v", got)
		}
	})
}

// Hooks after and finalizers may finish what they do after a cancellation, for
// a while; then they are cancelled, too.
func TestAfterwardsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tool.Direct)
		r.add(r.tool("work", 0))
		r.after = func(ctx context.Context, _ *sched.Request, _ *tool.Result) error { <-ctx.Done(); return nil }
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		time.AfterFunc(time.Second, cancel)
		got := r.run(ctx, call("work"))[0]
		if got.Text() != "ran work" || time.Since(start) != 6*time.Second {
			t.Errorf("%q after %v", got.Text(), time.Since(start))
		}
	})
}

// A path stays locked until hooks after and the finalizer are done with it.
func TestLockedUntilDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		r := newRig(t, tool.Direct)
		r.add(c.onPath("write", time.Second, writing), c.onPath("look", time.Second, reading))
		r.after = func(context.Context, *sched.Request, *tool.Result) error { time.Sleep(time.Second); return nil } // a formatter
		r.run(t.Context(), callOn("write", "/a"), callOn("look", "/a"))
		c.want(t, "write 0s-1s", "look 2s-3s")
	})
}

// Whoever starts calls may walk away: they settle, and nothing waits for a
// reader of the channel.
func TestNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tool.Direct)
		r.add(r.tool("work", 0))
		r.runtime().Start(t.Context(), r.view, []tool.Call{call("work"), call("work"), call("nobody")})
		synctest.Wait()
		if n := len(r.order("result")); n != 3 {
			t.Errorf("%d results", n)
		}
	})
}
