package tool_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/tool"
)

// What no subagent has is one list, and no scope can add to it.
// S3-031 S3-032 S3-033 S3-034 S3-035
func TestNotForSubagents(t *testing.T) {
	excluded := []string{"agent", "ask_user_question", "create_sub_session", "cron_create", "cron_delete", "cron_list", "enter_plan_mode", "enter_worktree",
		"exit_plan_mode", "exit_worktree", "list_agents", "send_message", "structured_output", "task_list", "task_output", "task_stop", "team_create", "team_delete", "update_goal"}
	r := registry(t, named(append([]string{"exec", "tool_search", "read"}, excluded...)...)...)
	for _, m := range []tool.Mode{tool.Direct, tool.Code, tool.Both} {
		for _, allow := range [][]string{nil, append([]string{"read"}, excluded...), {"*"}} {
			v := r.View(m, tool.Scope{Subagent: true, Allow: allow, Servers: true})
			for _, n := range excluded {
				if direct, nested := v.Reach(n); direct || nested || tool.ForSubagents(n) {
					t.Errorf("%s, %q: a subagent reaches %s", m, allow, n)
				}
				want := "UNKNOWN_TOOL: a subagent has no " + n + ", whether there is such a tool or not: do it yourself, or say in your answer what would be needed"
				if got := resolved(v, n, false); got != want {
					t.Errorf("%s: %s", m, got)
				}
			}
			want := map[tool.Mode][]string{tool.Direct: {"read", "tool_search"}, tool.Code: {"exec", "tool_search"}, tool.Both: {"exec", "read", "tool_search"}}[m]
			if diff := cmp.Diff(want, declared(v)); diff != "" {
				t.Errorf("%s, %q: %s", m, allow, diff)
			}
		}
	}
	if !tool.ForSubagents("read") || !tool.ForSubagents(tool.ExecName) || !tool.ForSubagents(tool.ToolSearchName) {
		t.Error("a subagent may have all else")
	}
}

// The wire, the executor, exec's bindings and search agree in every scope and
// mode that an agent can have: what is declared runs, what is not declared does
// not, what a program can name it can call, and search shows nothing else.
// S2-018 S2-019 S2-042 S2-085 S2-088 S0-205 S0-207 S0-208 S0-209 S0-210
// S1-068 S1-069 S1-070 S1-072 S1-073 S1-075 S1-113 S1-114 S3-028 S3-029 S3-030
func TestWireAndExecutorAgree(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		names := someNames(rnd)
		var tools []tool.Tool
		for _, n := range names {
			tools = append(tools, &plain{tool.Spec{Name: n, Deferred: rnd.IntN(3) == 0, Class: tool.Class(rnd.IntN(8) / 7)}})
		}
		r := registry(t, tools...)
		modes := []tool.Mode{"", tool.Direct, tool.Code, tool.Both}
		p := tool.Preset{Mode: modes[rnd.IntN(4)], Scope: someScope(rnd, names)}
		own, ownMode, global := someScope(rnd, names), modes[rnd.IntN(4)], modes[rnd.IntN(4)]
		m, scope := tool.ModeFor(ownMode, p.Mode, global), p.Under(own)
		v, alone, above := r.View(m, scope), r.View(m, own), r.View(m, p.Scope)
		if want := first(ownMode, p.Mode, global, tool.Direct); m != want {
			t.Fatalf("seed %d: mode %s, the nearest is %s", seed, m, want)
		}
		for _, n := range append(names, "nothing") {
			ran, nested := resolved(v, n, false) == "runs "+n, resolved(v, n, true) == "runs "+n
			onWire, isBound := slices.Contains(declared(v), n), slices.Contains(bound(v), n)
			found := v.Find(n) != nil
			switch {
			case ran != onWire:
				t.Errorf("seed %d, %s: %s is declared: %v, runs: %v", seed, m, n, onWire, ran)
			case nested != isBound:
				t.Errorf("seed %d, %s: programs see %s: %v, it runs: %v", seed, m, n, isBound, nested)
			case m != tool.Direct && found != nested:
				t.Errorf("seed %d, %s: search finds %s: %v, a program can call it: %v", seed, m, n, found, nested)
			case found && alone.Find(n) == nil && above.Find(n) == nil:
				t.Errorf("seed %d, %s: search finds %s, which neither scope has", seed, m, n)
			case nested && slices.Contains([]string{tool.ExecName, tool.ToolSearchName, tool.ToolCallName, tool.AgentName}, n):
				t.Errorf("seed %d: a program reaches %s", seed, n)
			case scope.Subagent && (ran || nested) && !tool.ForSubagents(n):
				t.Errorf("seed %d: a subagent reaches %s", seed, n)
			case (ran || nested) && (out(own, n) || out(p.Scope, n)):
				t.Errorf("seed %d: %s runs though a scope takes it away", seed, n)
			case nested && !(in(own, n) && in(p.Scope, n)):
				t.Errorf("seed %d: %s runs though a scope does not allow it", seed, n)
			}
		}
		if t.Failed() {
			t.Fatalf("own %+v, preset %+v", own, p)
		}
	}
}

func first(modes ...tool.Mode) tool.Mode {
	for _, m := range modes {
		if m != "" {
			return m
		}
	}
	return ""
}

// out and in read a scope's lists in the simplest way.
func out(s tool.Scope, name string) bool { return listed(s.Disallow, name) }
func in(s tool.Scope, name string) bool  { return s.Allow == nil || listed(s.Allow, name) }

func listed(list []string, name string) bool {
	return slices.ContainsFunc(list, func(p string) bool {
		head, pattern := strings.CutSuffix(p, "*")
		return p == name || pattern && strings.HasPrefix(name, head) || p == "mcp__git" && strings.HasPrefix(name, "mcp__git__")
	})
}

// someNames are names of a registry: gateways, controls, tools of servers, and
// names that have the same JavaScript name.
func someNames(rnd *rand.Rand) []string {
	all := []string{"exec", "tool_search", "tool_call", "agent", "task_stop", "cron_create", "exit_plan_mode", "read_file", "read-file", "write_file", "grep", "mcp__git__push", "mcp__git__pull", "mcp__web__get"}
	for i := range rnd.IntN(5) {
		all = append(all, fmt.Sprintf("tool%d", i))
	}
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+rnd.IntN(len(all))]
}

func someScope(rnd *rand.Rand, names []string) tool.Scope {
	list := func() []string {
		l := []string{}
		for range rnd.IntN(6) {
			switch n := names[rnd.IntN(len(names))]; rnd.IntN(5) {
			case 0:
				l = append(l, n[:1+rnd.IntN(len(n))]+"*")
			case 1:
				l = append(l, "mcp__git")
			default:
				l = append(l, n)
			}
		}
		return l
	}
	s := tool.Scope{Servers: rnd.IntN(2) == 0, Subagent: rnd.IntN(2) == 0}
	if rnd.IntN(2) == 0 {
		s.Allow = list()
	}
	if rnd.IntN(2) == 0 {
		s.Disallow = list()
	}
	if rnd.IntN(3) == 0 {
		s.Eager = list()
	}
	s.Visible = list()
	return s
}
