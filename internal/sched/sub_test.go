package sched_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

// A subagent's calls take the same slots and the same turns on a path as those
// of the session, and are judged and told of by its own options.
// S1-076 S3-057 S3-058 S3-059
func TestSub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg tool.Registry
		var mu sync.Mutex
		running, most := 0, 0
		var order []string
		body := func(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
			mu.Lock()
			running++
			most = max(most, running)
			order = append(order, inv.Call.Agent+" "+inv.Call.Name)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			running--
			mu.Unlock()
			return tool.Text("done"), nil
		}
		write := func(c *tool.Call) tool.Access { return tool.Access{Overlap: true, Writes: []string{pathOf(c)}} }
		err := reg.Add(
			&fake{spec: tool.Spec{Name: "work"}, access: overlapping, run: body},
			&fake{spec: tool.Spec{Name: "write", Input: pathArgs}, access: write, run: body})
		if err != nil {
			t.Fatal(err)
		}
		view := func() *tool.View { return reg.View(tool.Direct, tool.Scope{}) }
		seen := map[string][]string{}
		watch := func(who string) func(sched.Event) {
			return func(e sched.Event) { // one at a time, whoever's they are
				if e.Kind == sched.Settled {
					seen[who] = append(seen[who], e.Call.Agent+" "+e.Call.Name+" "+string(e.Result.Status))
				}
			}
		}
		lead := sched.New(sched.Options{Slots: 2, Observe: watch("lead")})
		sub := lead.Sub("agent_1", sched.Options{Slots: 9, Observe: watch("sub"), Guards: []sched.Guard{func(_ context.Context, r *sched.Request) string {
			if r.Call.ID == "refused" {
				return "the subagent may not"
			}
			return ""
		}}})
		both := func(name, args string) []tool.Call {
			return slices.Repeat([]tool.Call{{Name: name, Args: []byte(args)}}, 3)
		}
		began := time.Now()
		first := lead.Start(t.Context(), view, both("work", `{}`))
		second := sub.Start(t.Context(), view, append(both("work", `{}`), tool.Call{ID: "refused", Name: "work", Args: []byte(`{}`)}))
		for range first {
		}
		for range second {
		}
		if took := time.Since(began); most != 2 || took != 3*time.Second {
			t.Errorf("six calls of a second, two at once: %d at once, %v", most, took)
		}
		most, order = 0, nil
		first = lead.Start(t.Context(), view, both("write", `{"path":"/a"}`)[:1])
		second = sub.Start(t.Context(), view, both("write", `{"path":"/a"}`)[:1])
		for range second {
		}
		for range first {
		}
		if slices.Sort(order); most != 1 || !slices.Equal(order, []string{" write", "agent_1 write"}) {
			t.Errorf("two writers of one file: %d at once, %q", most, order)
		}
		for _, list := range seen {
			slices.Sort(list)
		}
		want := map[string][]string{
			"lead": {" work success", " work success", " work success", " write success"},
			"sub":  {"agent_1 work denied", "agent_1 work success", "agent_1 work success", "agent_1 work success", "agent_1 write success"},
		}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Error(diff)
		}
	})
}
