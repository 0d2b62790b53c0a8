package sched_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

// asks is a tool that works, waits for a person with its slot lent to others, and
// works again.
func asks(c *clock, name string, before, wait, after time.Duration) *fake {
	f := c.tool(name, after, overlapping)
	work := f.run
	f.run = func(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
		time.Sleep(before)
		resume := inv.Yield()
		defer resume() // a second time: it counts once
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
		resume()
		return work(ctx, inv)
	}
	return f
}

// oneByOne runs calls, each submitted once the one before it runs or waits for a
// slot, and wants them to succeed.
func (r *rig) oneByOne(ctx context.Context, names ...string) {
	r.t.Helper()
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() {
			if got := r.run(ctx, call(name))[0]; got.Code != "" {
				r.t.Errorf("%s: %s", name, got.Text())
			}
		})
		synctest.Wait()
	}
	all.Wait()
}

// While a call waits for a person, with one slot for all, another one runs; when
// the answer comes it goes on at once, and nothing starts before there is a slot
// again.
func TestYield(t *testing.T) {
	const s = time.Second
	for name, test := range map[string]struct {
		wait, other time.Duration
		want        []string
	}{
		"the other ends first": {10 * s, 3 * s, []string{"other 1s-4s", "other 4s-7s", "person 11s-13s"}},
		"the answer first":     {2 * s, 5 * s, []string{"other 1s-6s", "person 3s-5s", "other 6s-11s"}},
		"slots stay as many":   {1 * s, 2 * s, []string{"other 1s-3s", "person 2s-4s", "other 4s-6s"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, c := newRig(t, tool.Direct).bare(sched.Options{Slots: 1}), newClock()
				r.add(asks(c, "person", s, test.wait, 2*s), c.tool("other", test.other, overlapping))
				r.oneByOne(t.Context(), "person", "other", "other")
				c.want(t, test.want...)
				r.settledOnce()
			})
		})
	}
}

// Two questions of one call lend one slot; a call that is cancelled while it
// waits, or whose question ends after it, takes none back.
func TestYieldCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := newRig(t, tool.Direct).bare(sched.Options{Slots: 1}), newClock()
		var late func()
		r.add(&fake{spec: tool.Spec{Name: "twice"}, access: overlapping, run: func(_ context.Context, inv *tool.Invocation) (tool.Result, error) {
			first, second := inv.Yield(), inv.Yield()
			time.Sleep(time.Second)
			first()
			time.Sleep(time.Second)
			second()
			time.Sleep(time.Second) // nothing starts in this one
			late = inv.Yield()
			return tool.Text("done"), nil
		}}, asks(c, "person", 0, time.Hour, 0), c.tool("work", 3*time.Second, overlapping), c.tool("next", time.Second, overlapping))
		r.oneByOne(t.Context(), "twice", "work", "next")
		late()
		c.want(t, "work 0s-3s", "next 3s-4s")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r.run(ctx, call("person"))
		r.run(t.Context(), call("next"), call("next"))
		c.want(t, "work 0s-3s", "next 3s-4s", "next 5s-6s", "next 6s-7s")
	})
}

// A call that holds no slot has none to lend.
func TestYieldWithoutASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := newRig(t, tool.Direct).bare(sched.Options{Slots: 1}), newClock()
		r.add(waiting(asks(c, "person", 0, time.Second, time.Second)), c.tool("work", 5*time.Second, overlapping))
		r.oneByOne(t.Context(), "person", "work", "work")
		c.want(t, "person 1s-2s", "work 0s-5s", "work 5s-10s")
	})
}
