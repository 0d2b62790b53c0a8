package sched_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

// timed is a tool whose body lasts d, and clock the record of when bodies ran.
type clock struct {
	mu    sync.Mutex
	start time.Time
	spans []string
}

func newClock() *clock { return &clock{start: time.Now()} }

func (c *clock) tool(name string, d time.Duration, access func(*tool.Call) tool.Access) *fake {
	f := &fake{spec: tool.Spec{Name: name}, access: access}
	body := takes(d)
	f.run = func(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
		from := time.Since(c.start)
		res, err := body(ctx, inv)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.spans = append(c.spans, fmt.Sprintf("%s %v-%v", name, from, time.Since(c.start)))
		return res, err
	}
	return f
}

func (c *clock) onPath(name string, d time.Duration, access func(*tool.Call) tool.Access) *fake {
	f := c.tool(name, d, access)
	f.spec.Input = pathArgs
	return f
}

func (c *clock) want(t *testing.T, spans ...string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(spans) // what ends at one moment has no order
	slices.Sort(c.spans)
	if diff := cmp.Diff(spans, c.spans); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

// waiting is a tool that holds no slot.
func waiting(f *fake) *fake { f.spec.Waits = true; return f }

// Nested calls never queue behind the exec that makes them, whatever waits and
// however few slots there are. S0-156 S0-259 BUG-DL-03
func TestNoDeadlock(t *testing.T) {
	gate := func() (*fake, *fake) { // one waits for the other
		open := make(chan struct{})
		key := &fake{spec: tool.Spec{Name: "key"}, access: overlapping, run: func(context.Context, *tool.Invocation) (tool.Result, error) {
			close(open)
			return tool.Text("opened"), nil
		}}
		door := waiting(&fake{spec: tool.Spec{Name: "door"}, access: overlapping, run: func(ctx context.Context, _ *tool.Invocation) (tool.Result, error) {
			select {
			case <-open:
				return tool.Text("through"), nil
			case <-ctx.Done():
				return tool.Result{}, ctx.Err()
			}
		}})
		return key, door
	}
	doors := func(n int) (calls []tool.Call) {
		for range n {
			calls = append(calls, call("door"))
		}
		return calls
	}
	for _, where := range []string{"model", "program"} {
		t.Run("twenty waiting calls at one slot/"+where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, tool.Both).bare(sched.Options{Slots: 1})
				key, door := gate()
				r.add(key, door)
				calls := append(doors(20), call("key"))
				var got []tool.Result
				if where == "model" {
					got = r.run(t.Context(), calls...)
				} else {
					got = r.nested(t.Context(), calls...)
				}
				if diff := cmp.Diff(append(repeat("through", 20), "opened"), texts(got)); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
	t.Run("a call that waits for a job while all slots are taken", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, tool.Direct).bare(sched.Options{Slots: 2})
			output := make(chan struct{})
			r.add(&fake{spec: tool.Spec{Name: "busy"}, access: overlapping, run: func(context.Context, *tool.Invocation) (tool.Result, error) {
				<-output // the slots come free only after job_output
				return tool.Text("free"), nil
			}}, waiting(&fake{spec: tool.Spec{Name: "job_output"}, access: overlapping, run: func(context.Context, *tool.Invocation) (tool.Result, error) {
				time.Sleep(time.Second)
				close(output)
				return tool.Text("the job ended"), nil
			}}))
			got := r.run(t.Context(), call("busy"), call("busy"), call("job_output"))
			if diff := cmp.Diff([]string{"free", "free", "the job ended"}, texts(got)); diff != "" {
				t.Error(diff)
			}
		})
	})
	t.Run("an exclusive call queued between waiting ones", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newClock()
			r := newRig(t, tool.Direct).bare(sched.Options{Slots: 1})
			r.add(waiting(c.tool("wait", time.Second, overlapping)), c.tool("build", time.Minute, exclusively), c.tool("read", time.Second, overlapping))
			r.run(t.Context(), call("wait"), call("wait"), call("build"), call("wait"), call("read"))
			c.want(t, "wait 0s-1s", "wait 0s-1s", "build 1s-1m1s", "wait 1m1s-1m2s", "read 1m1s-1m2s")
		})
	})
	t.Run("one slot, exec inside a turn, hundreds of calls", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, tool.Code).bare(sched.Options{Slots: 1})
			r.add(&fake{spec: tool.Spec{Name: "read"}, access: overlapping, run: says("x")})
			calls := make([]tool.Call, 300)
			for i := range calls {
				calls[i] = call("read")
			}
			if diff := cmp.Diff(repeat("x", 300), texts(r.nested(t.Context(), calls...))); diff != "" {
				t.Error(diff)
			}
		})
	})
}

// What ruling 8 says of the calls of one turn. S0-169 S0-172 S0-194 S3-057
// S3-058 S3-059
func TestTurnOrder(t *testing.T) {
	for _, tc := range []struct {
		name  string
		slots int
		calls []tool.Call
		want  []string
	}{
		{"reads overlap", 10, []tool.Call{call("read"), call("read"), call("read")}, []string{"read 0s-1s", "read 0s-1s", "read 0s-1s"}},
		{"up to the number of slots", 2, []tool.Call{call("read"), call("read"), call("read")}, []string{"read 0s-1s", "read 0s-1s", "read 1s-2s"}},
		{"an exclusive call parts them", 10, []tool.Call{call("read"), call("build"), call("read")}, []string{"read 0s-1s", "build 1s-1m1s", "read 1m1s-1m2s"}},
		{"without a word a tool is exclusive", 10, []tool.Call{call("silent"), call("silent")}, []string{"silent 0s-1s", "silent 1s-2s"}},
		{"a panic in Access is a no", 10, []tool.Call{call("confused"), call("confused")}, []string{"confused 0s-1s", "confused 1s-2s"}},
		{"two exec run one after the other", 10, []tool.Call{call("exec"), call("exec")}, []string{"exec 0s-1s", "exec 1s-2s"}},
		{"agents overlap", 1, []tool.Call{call("agent"), call("agent")}, []string{"agent 0s-1s", "agent 0s-1s"}},
		{"write, read and edit of one path keep their order", 10,
			[]tool.Call{callOn("write", "/a"), callOn("look", "/a"), callOn("look", "/a"), callOn("edit", "/a"), callOn("look", "/a"), callOn("look", "/b")},
			[]string{"look 0s-1s", "write 0s-2s", "look 2s-3s", "look 2s-3s", "edit 3s-6s", "look 6s-7s"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newClock()
				r := newRig(t, tool.Both).bare(sched.Options{Slots: tc.slots})
				silent := c.tool("silent", time.Second, nil)
				confused := c.tool("confused", time.Second, func(*tool.Call) tool.Access { panic("confused") })
				r.add(c.tool("read", time.Second, overlapping), c.tool("build", time.Minute, exclusively), confused,
					struct{ tool.Tool }{silent}, // hides Access
					c.tool("exec", time.Second, exclusively), waiting(c.tool("agent", time.Second, overlapping)),
					c.onPath("write", 2*time.Second, writing), c.onPath("edit", 3*time.Second, writing), c.onPath("look", time.Second, reading))
				r.run(t.Context(), tc.calls...)
				c.want(t, tc.want...)
			})
		})
	}
}

// An approval holds back what it must, and nothing else: in a turn an exclusive
// call counts from its submission, in a program from the moment it is allowed;
// on one path the order of submission holds everywhere. S0-050 S2-055 BUG-CC-01
// BUG-CC-03
func TestHeldBackByAQuestion(t *testing.T) {
	for _, tc := range []struct {
		name   string
		nested bool
		calls  []tool.Call
		want   []string
	}{
		{"turn, exclusive", false, []tool.Call{call("build"), call("read")}, []string{"build 10s-1m10s", "read 1m10s-1m11s"}},
		{"program, exclusive", true, []tool.Call{call("build"), call("read")}, []string{"read 0s-1s", "build 10s-1m10s"}},
		{"turn, an exclusive call waits for those before it", false, []tool.Call{call("asking"), call("build2")}, []string{"asking 10s-11s", "build2 11s-1m11s"}},
		{"program, it waits only for those that run", true, []tool.Call{call("asking"), call("read"), call("build2")}, []string{"read 0s-1s", "build2 1s-1m1s", "asking 1m1s-1m2s"}},
		{"program, it holds back what came later", true, []tool.Call{call("read"), call("build2"), call("late")}, []string{"read 0s-1s", "build2 1s-1m1s", "late 1m1s-1m2s"}},
		{"program, and nothing from before it runs beside it", true, []tool.Call{call("late"), call("build2"), call("late")}, []string{"build2 250ms-1m0.25s", "late 1m0.25s-1m1.25s", "late 1m0.25s-1m1.25s"}},
		{"turn, one path", false, []tool.Call{callOn("write", "/a"), callOn("look", "/a"), callOn("look", "/b")}, []string{"look 0s-1s", "write 10s-12s", "look 12s-13s"}},
		{"program, one path", true, []tool.Call{callOn("write", "/a"), callOn("look", "/a"), callOn("edit", "/a")}, []string{"write 10s-12s", "look 12s-13s", "edit 13s-16s"}},
		{"program, readers wait for no reader", true, []tool.Call{callOn("lookAsking", "/a"), callOn("look", "/a"), callOn("edit", "/a")}, []string{"look 0s-1s", "lookAsking 10s-11s", "edit 11s-14s"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newClock()
				r := newRig(t, tool.Both)
				r.add(c.tool("read", time.Second, overlapping), c.tool("build", time.Minute, exclusively), c.tool("build2", time.Minute, exclusively),
					c.tool("late", time.Second, overlapping), c.tool("asking", time.Second, overlapping), c.onPath("lookAsking", time.Second, reading),
					c.onPath("write", 2*time.Second, writing), c.onPath("edit", 3*time.Second, writing), c.onPath("look", time.Second, reading))
				asks := map[string]bool{"build": true, "write": true, "asking": true, "lookAsking": true}
				r.opt.Policy = policyFunc(func(q *sched.Request) sched.Verdict {
					switch q.Call.Name { // allowed, but not at once: so the order is certain
					case "build2":
						time.Sleep(time.Second / 4)
					case "late":
						time.Sleep(time.Second / 2)
					}
					if asks[q.Call.Name] {
						return sched.Verdict{Decision: sched.Ask}
					}
					return sched.Verdict{Decision: sched.Allow}
				})
				r.opt.Approver = approver{r}
				r.answer = func(context.Context, *sched.Question) (sched.Answer, error) {
					time.Sleep(10 * time.Second)
					return sched.Answer{Allow: true}, nil
				}
				if tc.nested {
					r.nested(t.Context(), tc.calls...)
				} else {
					r.run(t.Context(), tc.calls...)
				}
				c.want(t, tc.want...)
			})
		})
	}
}

type policyFunc func(*sched.Request) sched.Verdict

func (f policyFunc) Decide(_ context.Context, q *sched.Request) sched.Verdict { return f(q) }

// A refused call gives up its place in the queue of its path, so that what came
// after it runs.
func TestRefusedLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		r := newRig(t, tool.Direct)
		r.add(c.onPath("write", time.Second, writing), c.onPath("look", time.Second, reading), c.tool("build", time.Second, exclusively))
		r.opt.Policy = policyFunc(func(q *sched.Request) sched.Verdict {
			if q.Call.Name != "look" {
				time.Sleep(10 * time.Second)
				return sched.Verdict{Decision: sched.Deny}
			}
			return sched.Verdict{Decision: sched.Allow}
		})
		got := r.run(t.Context(), callOn("write", "/a"), call("build"), callOn("look", "/a"))
		c.want(t, "look 10s-11s")
		if diff := cmp.Diff([]string{"DENIED", "DENIED", ""}, codes(got)); diff != "" {
			t.Error(diff)
		}
	})
}

// Two agents share slots and path locks, and nothing else: neither an exclusive
// call nor a question of one holds back the other.
func TestTwoAgents(t *testing.T) {
	both := func(r *rig, first, second []tool.Call) {
		var wg sync.WaitGroup
		wg.Go(func() { r.run(r.t.Context(), first...) })
		synctest.Wait()
		wg.Go(func() { r.run(r.t.Context(), second...) })
		wg.Wait()
	}
	for _, tc := range []struct {
		name          string
		slots         int
		first, second []tool.Call
		want          []string
	}{
		{"an exclusive call of another", 10, []tool.Call{call("build")}, []tool.Call{call("read"), call("build")}, []string{"read 0s-1s", "build 0s-1m0s", "build 1s-1m1s"}},
		{"a writer of another", 10, []tool.Call{callOn("write", "/a")}, []tool.Call{callOn("look", "/a"), callOn("look", "/b")}, []string{"look 0s-1s", "write 0s-2s", "look 2s-3s"}},
		{"a reader of another", 10, []tool.Call{callOn("look", "/a")}, []tool.Call{callOn("look", "/a"), callOn("write", "/a")}, []string{"look 0s-1s", "look 0s-1s", "write 1s-3s"}},
		{"a writer is not overtaken for ever", 10, []tool.Call{callOn("look", "/a"), callOn("write", "/a")}, []tool.Call{callOn("edit", "/a"), callOn("look", "/a")},
			[]string{"look 0s-1s", "write 1s-3s", "edit 3s-6s", "look 6s-7s"}},
		{"a question of another on the same path", 10, []tool.Call{callOn("asking", "/a")}, []tool.Call{callOn("write", "/a")}, []string{"write 0s-2s", "asking 10s-11s"}},
		{"one slot", 1, []tool.Call{call("read"), call("read")}, []tool.Call{call("read")}, []string{"read 0s-1s", "read 1s-2s", "read 2s-3s"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newClock()
				r := newRig(t, tool.Direct)
				r.opt.Slots = tc.slots
				r.opt.Policy = policyFunc(func(q *sched.Request) sched.Verdict {
					if q.Call.Name == "asking" {
						time.Sleep(10 * time.Second)
					}
					return sched.Verdict{Decision: sched.Allow}
				})
				r.add(c.tool("read", time.Second, overlapping), c.tool("build", time.Minute, exclusively), c.onPath("asking", time.Second, writing),
					c.onPath("write", 2*time.Second, writing), c.onPath("edit", 3*time.Second, writing), c.onPath("look", time.Second, reading))
				r.runtime()
				both(r, tc.first, tc.second)
				c.want(t, tc.want...)
			})
		})
	}
}

// A call that waits for nothing but a path is not overtaken on it, so that a
// stream of readers cannot starve a writer.
func TestNotOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		r := newRig(t, tool.Direct).bare(sched.Options{})
		r.add(c.onPath("write", 2*time.Second, writing), c.onPath("look", time.Second, reading))
		r.runtime()
		var wg sync.WaitGroup
		for _, calls := range [][]tool.Call{{callOn("look", "/a")}, {callOn("write", "/a")}, {callOn("look", "/a"), callOn("look", "/b")}} {
			wg.Go(func() { r.run(t.Context(), calls...) })
			synctest.Wait()
		}
		wg.Wait()
		c.want(t, "look 0s-1s", "look 0s-1s", "write 1s-3s", "look 3s-4s")
	})
}

// A hook that moves a call to another path moves its place, too.
func TestRewriteMovesTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		r := newRig(t, tool.Direct)
		r.add(c.onPath("write", 2*time.Second, writing), c.onPath("look", time.Second, reading))
		r.hookFn = func(q *sched.Request) (sched.HookVerdict, error) {
			if q.Call.Name == "write" {
				time.Sleep(time.Second)
				return sched.HookVerdict{Args: []byte(`{"path":"/b"}`)}, nil
			}
			return sched.HookVerdict{}, nil
		}
		r.run(t.Context(), callOn("write", "/a"), callOn("look", "/a"), callOn("look", "/b"))
		c.want(t, "look 0s-1s", "look 1s-2s", "write 1s-3s")
	})
}

// A program goes on with the result that came first, while the slow call of the
// same batch still runs: results come as they settle, and a later batch waits
// for no earlier one. S0-159 S0-171 S0-172
func TestRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		r := newRig(t, tool.Code).bare(sched.Options{})
		r.add(c.tool("slow", time.Hour, overlapping), c.tool("fast", time.Second, overlapping), c.tool("next", time.Second, overlapping))
		r.program(t.Context(), func(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
			race := inv.Dispatch(ctx, []tool.Call{call("slow"), call("fast")})
			if first := <-race; first.Index != 1 || first.Name != "fast" {
				t.Errorf("first: %+v", first)
			}
			<-inv.Dispatch(ctx, []tool.Call{call("next")})
			if d := time.Since(c.start); d != 2*time.Second {
				t.Errorf("next ended after %v", d)
			}
			<-race
			return tool.Text("ok"), nil
		})
		c.want(t, "fast 0s-1s", "next 1s-2s", "slow 0s-1h0m0s")
	})
}

// Results are sent as they settle; Run puts them into the order of the calls.
func TestAsTheySettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		r := newRig(t, tool.Direct).bare(sched.Options{})
		r.add(c.tool("a", 3*time.Second, overlapping), c.tool("b", time.Second, overlapping), c.tool("c", 2*time.Second, overlapping))
		var got []int
		for s := range r.runtime().Start(t.Context(), r.view, []tool.Call{call("a"), call("b"), call("c"), call("nobody")}) {
			got = append(got, s.Index)
		}
		if diff := cmp.Diff([]int{3, 1, 2, 0}, got); diff != "" {
			t.Error(diff)
		}
		var names []string
		for _, res := range r.run(t.Context(), call("a"), call("b"), call("c")) {
			names = append(names, res.Name)
		}
		if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" {
			t.Error(diff)
		}
	})
}
