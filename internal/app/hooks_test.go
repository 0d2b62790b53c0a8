//go:build unix

package app

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/agent"
	"capstan/internal/msg"
	"capstan/internal/sched"
	"capstan/internal/tool"
)

// A guard of an embedder has the last word, also over a hook's allow, for a
// model's call and a program's alike; a hook of its own comes before the user's.
// S2-025 S2-058 S2-059
func TestGuards(t *testing.T) {
	noEnv(t)
	var guarded []string
	var mu sync.Mutex
	s := open(t, Options{ApprovalMode: "yolo", Mode: tool.Code, Guards: []sched.Guard{func(_ context.Context, r *sched.Request) string {
		mu.Lock()
		defer mu.Unlock()
		guarded = append(guarded, r.Call.Name)
		if r.Call.Name == "write_file" {
			return "the freeze is on"
		}
		return ""
	}}}, map[string]string{"~/.capstan/settings.json": `{"hooks": {"PreToolUse": [{"matcher": "Write", "hooks": [
		{"type": "command", "command": "echo '{\"hookSpecificOutput\": {\"hookEventName\": \"PreToolUse\", \"permissionDecision\": \"allow\"}}'"}]}]}}`})
	calls := []tool.Call{{Name: "write_file", Args: json.RawMessage(`{"file_path":"a","content":"x"}`)}}
	collapsed := s.rt.Run(t.Context(), s.View, calls)[0]
	if collapsed.Code != tool.CodeUnknownTool || guarded != nil { // no guard sees a collapsed call, and none is needed for it
		t.Errorf("%+v %v", collapsed, guarded)
	}
	direct := s.rt.Run(t.Context(), func() *tool.View { return s.Registry.View(tool.Direct, s.scope) }, calls)[0]
	if direct.Text() != "write_file was denied: the freeze is on" {
		t.Errorf("%+v", direct)
	}
	if _, err := os.Stat(filepath.Join(s.opt.Dir, "a")); err == nil {
		t.Error("the file was written")
	}
}

// The hooks of a subagent: they are told of it, may keep it from beginning and
// from ending, and know its calls.
func TestSubagentHooks(t *testing.T) {
	noEnv(t)
	s := open(t, Options{ApprovalMode: "yolo"}, map[string]string{"~/.capstan/settings.json": `{"hooks": {
		"SubagentStart": [{"matcher": "explore", "hooks": [{"type": "command", "command": "echo '{\"hookSpecificOutput\": {\"hookEventName\": \"SubagentStart\", \"additionalContext\": \"be kind\"}}'"}]},
			{"matcher": "fork", "hooks": [{"type": "command", "required": true, "command": "exit 1"}]}],
		"SubagentStop": [{"hooks": [{"type": "command", "command": "cat > stopped; echo 'not yet' >&2; exit 2"}]}],
		"PreToolUse": [{"matcher": "LS", "hooks": [{"type": "command", "command": "cat > called"}]}]}}`})
	m := memberOf(t, s, "explore")
	b := m.Begin(t.Context(), agent.Work{Agent: "agent_1", Kind: "explore", Call: "c0", Record: "/trail"})
	if b.Block != "" || len(b.Add) != 1 || !strings.HasSuffix(b.Add[0], ": be kind") {
		t.Errorf("%+v", b)
	}
	if got := b.Hooks.Stop(t.Context(), "bye", true); got.Block != "not yet" {
		t.Errorf("%+v", got)
	}
	want := map[string]any{"hook_event_name": "SubagentStop", "permission_mode": "bypassPermissions", "agent_id": "agent_1", "agent_type": "explore",
		"parent_tool_use_id": "c0", "stop_hook_active": true, "last_assistant_message": "bye", "agent_transcript_path": "/trail"}
	if d := cmp.Diff(want, told(t, s, "stopped")); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	rt := s.rt.Sub("agent_1", m.Options.Sched)
	call := []tool.Call{{ID: "agent_1/c1", Name: "list_directory", Args: json.RawMessage(`{"path":"."}`), ParentID: "c0"}}
	if res := rt.Run(t.Context(), m.Options.View, call)[0]; res.Status != tool.Success {
		t.Errorf("%+v", res)
	}
	got := told(t, s, "called")
	delete(got, "tool_input")
	want = map[string]any{"hook_event_name": "PreToolUse", "permission_mode": "bypassPermissions", "agent_id": "agent_1", "agent_type": "explore", "source": "model",
		"tool_name": "LS", "canonical_tool_name": "list_directory", "tool_use_id": "agent_1/c1", "parent_tool_use_id": "c0"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	b.End()
	if b := memberOf(t, s, agent.Fork).Begin(t.Context(), agent.Work{Agent: "agent_2", Kind: agent.Fork, Call: "c9"}); !strings.Contains(b.Block, "did not answer: it exited with code 1") {
		t.Errorf("%+v", b)
	}
	// Without hooks there is nothing to ask.
	if m := memberOf(t, open(t, Options{}, nil), "explore"); m.Begin != nil {
		t.Error("hooks out of nothing")
	}
}

func memberOf(t *testing.T, s *Session, kind string) *agent.Member {
	t.Helper()
	m, err := s.member(t.Context(), agent.Order{Kind: kind}, agent.Options{Sched: s.calls})
	if err != nil {
		t.Fatal(err)
	}
	if m.Close != nil {
		t.Cleanup(m.Close)
	}
	return m
}

// told is what a hook was given, without what is the same in all events.
func told(t *testing.T, s *Session, file string) (in map[string]any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.opt.Dir, file))
	if err != nil || json.Unmarshal(raw, &in) != nil {
		t.Fatal(err, string(raw))
	}
	for _, k := range []string{"session_id", "transcript_path", "cwd"} {
		delete(in, k)
	}
	return in
}

// frontGuarded is an agent with hooks of its own.
const frontGuarded = `---
name: guarded
description: d
hooks:
  PreToolUse:
    - matcher: LS
      hooks:
        - {type: command, command: "echo own >> asked"}
  Stop:
    - hooks:
        - {type: command, command: "cat > ended; echo 'own wants more' >&2; exit 2"}
---
Go.
`

// The hooks of a definition run for its subagents and for no others; its Stop is
// their SubagentStop. Of the session's own agent they are the session's, also for
// its subagents. They are off where hooks are switched off.
func TestAgentOwnHooks(t *testing.T) {
	const user = `{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "echo user >> asked"}]}],
		"SubagentStop": [{"hooks": [{"type": "command", "command": "echo 'user wants more' >&2; exit 2"}]}]}}`
	const both, mine, his = "user\nown\n", "user\n", "own\n"
	for name, tc := range map[string]struct {
		settings, project, self string
		guarded, general, lead  string // which hooks see a call of each
		stop                    agent.Steer
	}{
		"of subagents":            {settings: user, guarded: both, general: mine, lead: mine, stop: agent.Steer{Block: "user wants more", Add: []string{"own wants more"}}},
		"alone":                   {guarded: his, stop: agent.Steer{Block: "own wants more"}},
		"of the session":          {self: "guarded", guarded: his, general: his, lead: his, stop: agent.Steer{Block: "own wants more"}},
		"all switched off":        {settings: `{"disableAllHooks": true}`},
		"the folder's are off":    {project: `{"disableAllHooks": true}`, settings: user, guarded: mine, general: mine, lead: mine, stop: agent.Steer{Block: "user wants more"}},
		"off, and of the session": {settings: `{"disableAllHooks": true}`, self: "guarded"},
	} {
		t.Run(name, func(t *testing.T) {
			noEnv(t)
			files := map[string]string{".claude/agents/guarded.md": frontGuarded}
			for path, text := range map[string]string{"~/.capstan/settings.json": tc.settings, ".capstan/settings.json": tc.project} {
				if text != "" {
					files[path] = text
				}
			}
			s := open(t, Options{ApprovalMode: "yolo", Trust: true, Agent: tc.self}, files)
			asked := func(m *agent.Member, who string) string {
				t.Helper()
				rt, view := s.rt, s.View
				if m != nil {
					rt, view = s.rt.Sub(who, m.Options.Sched), m.Options.View
				}
				if res := rt.Run(t.Context(), view, []tool.Call{{Name: "list_directory", Args: json.RawMessage(`{"path":"."}`)}})[0]; res.Status != tool.Success {
					t.Errorf("%+v", res)
				}
				raw, _ := os.ReadFile(filepath.Join(s.opt.Dir, "asked"))
				_ = os.Remove(filepath.Join(s.opt.Dir, "asked"))
				return string(raw)
			}
			guarded := memberOf(t, s, "guarded")
			if d := cmp.Diff([]string{tc.guarded, tc.general, tc.lead}, []string{asked(guarded, "agent_1"), asked(memberOf(t, s, agent.General), "agent_2"), asked(nil, "")}); d != "" {
				t.Error(d)
			}
			if tc.guarded == "" {
				if guarded.Begin != nil {
					t.Error("hooks that are switched off")
				}
				return
			}
			b := guarded.Begin(t.Context(), agent.Work{Agent: "agent_1", Kind: "guarded", Call: "c0"})
			defer b.End()
			if d := cmp.Diff(tc.stop, b.Hooks.Stop(t.Context(), "bye", false)); d != "" {
				t.Error(d)
			}
			if tc.stop.Block != "user wants more" || tc.stop.Add != nil {
				if in := told(t, s, "ended"); in["hook_event_name"] != "SubagentStop" || in["agent_type"] != "guarded" {
					t.Errorf("%v", in)
				}
			}
		})
	}
}

// A hook of a definition that ends the run ends that of its subagent, and no other.
func TestAgentHookHalts(t *testing.T) {
	noEnv(t)
	s := open(t, Options{ApprovalMode: "yolo"}, map[string]string{"~/.claude/agents/guarded.md": strings.ReplaceAll(frontGuarded, "echo own >> asked", `echo '{\"continue\": false, \"stopReason\": \"enough\"}'`)})
	m := memberOf(t, s, "guarded")
	b := m.Begin(t.Context(), agent.Work{Agent: "agent_1", Kind: "guarded", Call: "c0"})
	call := []tool.Call{{Name: "list_directory", Args: json.RawMessage(`{"path":"."}`)}}
	if res := s.rt.Sub("agent_1", m.Options.Sched).Run(t.Context(), m.Options.View, call)[0]; res.Status != tool.Denied || b.Hooks.Halted() != "enough" {
		t.Errorf("%q %+v", b.Hooks.Halted(), res)
	}
	b.End()
	if res := s.rt.Run(t.Context(), s.View, call)[0]; res.Status != tool.Success {
		t.Errorf("%+v", res)
	}
	if b := m.Begin(t.Context(), agent.Work{Agent: "agent_1", Kind: "guarded", Call: "c1"}); b.Hooks.Halted() != "" {
		t.Error("its next work is over before it begins")
	}
}

// A definition whose hooks cannot be understood cannot be used, neither as a
// subagent nor as the session's agent; all else can.
func TestAgentBadHooks(t *testing.T) {
	noEnv(t)
	files := map[string]string{
		"~/.claude/agents/guarded.md": strings.ReplaceAll(frontGuarded, "PreToolUse", "PreTooluse"),
		"~/.claude/agents/heir.md":    "---\nname: heir\ndescription: d\npreset: guarded\n---\n",
		"~/.claude/agents/once.md":    "---\nname: once\ndescription: d\nhooks: {SessionEnd: [{hooks: [{type: command, command: x}]}]}\n---\n",
	}
	s := open(t, Options{}, files)
	fault := filepath.Join(s.home, ".claude/agents/guarded.md") + `: hooks.PreTooluse: there is no event "PreTooluse"`
	var odd []string
	for _, w := range s.Warnings {
		if strings.HasPrefix(w, "agents: ") {
			odd = append(odd, strings.Split(w, ": want one of")[0])
		}
	}
	want := []string{
		"agents: guarded cannot be used: its hooks cannot be understood: " + fault,
		"agents: heir cannot be used: its hooks cannot be understood: " + fault,
		"agents: " + filepath.Join(s.home, ".claude/agents/once.md") + ": hooks.SessionEnd: SessionEnd does not happen in a subagent, so these hooks run only where the agent is the session's own (--agent)",
	}
	if d := cmp.Diff(want, odd); d != "" {
		t.Error(d)
	}
	for _, kind := range []string{"guarded", "heir"} {
		if _, err := s.member(t.Context(), agent.Order{Kind: kind}, agent.Options{}); err == nil || !strings.Contains(err.Error(), "the agent "+kind+" cannot be used until its hooks are mended: "+fault) {
			t.Errorf("%v", err)
		}
	}
	var names []string
	for _, x := range s.startable() {
		names = append(names, x.Name)
	}
	if d := cmp.Diff([]string{"explore", "general-purpose", "once"}, names); d != "" {
		t.Error(d)
	}
	memberOf(t, s, "once")
	o := s.opt
	o.Agent = "guarded"
	if _, err := Open(o); err == nil || !strings.HasPrefix(err.Error(), "--agent: the hooks of guarded cannot be used: "+fault) {
		t.Errorf("%v", err)
	}
	// In a folder that is not trusted its agents are not read, whatever they hold.
	s = open(t, Options{}, map[string]string{".claude/agents/guarded.md": frontGuarded, ".claude/agents/x.md": files["~/.claude/agents/guarded.md"]})
	if _, err := s.member(t.Context(), agent.Order{Kind: "guarded"}, agent.Options{}); err == nil || len(s.agentHooks) > 0 {
		t.Errorf("%v %v", err, s.agentHooks)
	}
}

// What a hook for an address is given of the environment is a secret: nobody is
// shown it, and no command gets it.
func TestHookSecrets(t *testing.T) {
	noEnv(t)
	t.Setenv("HOOK_TOKEN", "t0ken-0123456789")
	t.Setenv("AGENT_TOKEN", "t0ken-9876543210") // of an agent's own hook
	s := open(t, Options{ApprovalMode: "yolo", Environ: os.Environ()}, map[string]string{"~/.capstan/settings.json": `{"hooks": {"Stop": [{"hooks": [
		{"type": "http", "url": "http://127.0.0.1:1/", "headers": {"Authorization": "Bearer $HOOK_TOKEN", "X-Home": "$HOME"}, "allowedEnvVars": ["HOOK_TOKEN", "HOME"]}]}]}}`,
		"~/.claude/agents/x.md": "---\ndescription: d\nhooks: {Stop: [{hooks: [{type: http, url: 'http://127.0.0.1:1/', headers: {A: $AGENT_TOKEN}, allowedEnvVars: [AGENT_TOKEN]}]}]}\n---\n"})
	if got := s.Redact("a t0ken-0123456789, t0ken-9876543210 in " + s.home); got != "a [redacted], [redacted] in "+s.home {
		t.Error(got)
	}
	res := s.rt.Run(t.Context(), s.View, []tool.Call{{Name: "run_shell_command", Args: json.RawMessage(`{"command":"echo [$HOOK_TOKEN$AGENT_TOKEN]"}`)}})[0]
	if text := msg.JoinText(res.Parts); !strings.HasPrefix(text, "[]") {
		t.Errorf("%s", text)
	}
}

// A person who is asked is announced to Notification hooks. Where a rule answers
// the question, nobody is asked: this hook runs once, and is left for another.
func TestNotification(t *testing.T) {
	noEnv(t)
	told := make(chan string, 10)
	s := open(t, Options{Approver: yes{}, HookNotice: func(text string) { told <- text }}, map[string]string{"~/.capstan/settings.json": `{"permissions": {"allow": ["Bash(make)"]},
		"hooks": {"Notification": [{"matcher": "permission_prompt", "hooks": [
			{"type": "command", "name": "bell", "once": true, "command": "cat > note; echo '{\"systemMessage\": \"rung\"}'"}]}]}}`})
	// A question that was on its way when the rule came.
	q := &sched.Question{Request: sched.Request{Call: &tool.Call{Name: "run_shell_command", Args: json.RawMessage(`{"command":"make"}`)}, Entry: s.entry("run_shell_command")}}
	q.Judge = func(ctx context.Context) sched.Verdict { return s.rules.Decide(ctx, &q.Request) }
	if a, err := s.calls.Approver.Approve(t.Context(), q); err != nil || !a.Allow || !a.Ruled {
		t.Errorf("%+v %v", a, err)
	}
	res := s.rt.Run(t.Context(), s.View, []tool.Call{{Name: "write_file", Args: json.RawMessage(`{"file_path":"a","content":"x"}`)}})[0]
	if res.Status != tool.Success {
		t.Errorf("%+v", res)
	}
	if got := <-told; !strings.HasPrefix(got, `the hook "bell" (user settings `) || !strings.HasSuffix(got, ") says: rung") {
		t.Error(got)
	}
	if raw, err := os.ReadFile(filepath.Join(s.opt.Dir, "note")); err != nil || !strings.Contains(string(raw), `"message":"Capstan needs your permission to use write_file"`) {
		t.Errorf("%s %v", raw, err)
	}
}

type yes struct{}

func (yes) Approve(context.Context, *sched.Question) (sched.Answer, error) {
	return sched.Answer{Allow: true}, nil
}

// Which hooks would be asked about a call is known without asking them.
func TestAskedHooks(t *testing.T) {
	noEnv(t)
	s := open(t, Options{}, map[string]string{"~/.capstan/settings.json": `{"hooks": {
		"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "name": "guard", "command": "touch ran"}]},
			{"matcher": "Edit", "hooks": [{"type": "command", "command": "touch ran"}]}, {"hooks": [{"type": "command", "name": "log", "command": "touch ran # too"}]}],
		"PermissionRequest": [{"matcher": "Bash|Edit", "hooks": [{"type": "command", "name": "desk", "command": "touch ran"}]}]}}`})
	short := func(list []AskedHook) (out []string) {
		for _, h := range list {
			name, place, _ := strings.Cut(h.Hook, " (")
			if !strings.HasPrefix(place, "user settings ") || !strings.HasSuffix(place, ")") {
				t.Errorf("%+v says no place", h)
			}
			out = append(out, string(h.Event)+" "+name)
		}
		return out
	}
	for name, tc := range map[string]struct {
		decision sched.Decision
		want     []string
	}{
		"run_shell_command": {sched.Ask, []string{`PreToolUse "guard"`, `PreToolUse "log"`, `PermissionRequest "desk"`}},
		"edit":              {sched.Allow, []string{`PreToolUse "touch ran"`, `PreToolUse "log"`}},
		"read_file":         {sched.Ask, []string{`PreToolUse "log"`}},
	} {
		if d := cmp.Diff(tc.want, short(s.askedHooks(name, tc.decision))); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	if got := open(t, Options{}, nil).askedHooks("edit", sched.Ask); len(got) > 0 {
		t.Errorf("%v", got)
	}
	if _, err := os.Stat(filepath.Join(s.opt.Dir, "ran")); err == nil {
		t.Error("a hook ran")
	}
}

// The hooks of a folder, and those of its agents, are not given the user's keys
// for models, trusted or not.
func TestFolderHooksKeys(t *testing.T) {
	noEnv(t)
	post := func(name string) string {
		return `{"Stop": [{"hooks": [{"type": "http", "url": "http://127.0.0.1:1/` + name + `", "headers": {"A": "$MY_KEY"}, "allowedEnvVars": ["OPENAI_API_KEY", "MY_KEY", "V", "ITS_KEY", "FREE"]}]}]}`
	}
	s := open(t, Options{Trust: true}, map[string]string{
		"~/.capstan/settings.json":     `{"providers": {"mine": {"family": "openai", "baseUrl": "http://127.0.0.1:1", "keyEnv": "MY_KEY", "headers": {"X": "${V}"}}}, "hooks": ` + post("mine") + `}`,
		".capstan/settings.json":       `{"providers": {"its": {"family": "openai", "baseUrl": "http://127.0.0.1:1"}}, "hooks": ` + post("its") + `}`,
		".claude/agents/guarded.md":    "---\nname: guarded\ndescription: Looks.\nhooks: " + post("agent") + "\n---\nGo.\n",
		".capstan/settings.local.json": `{"hooks": ` + post("local") + `}`,
	})
	var keys []string
	for _, w := range s.Warnings {
		if strings.Contains(w, "is not given to a hook of the folder") {
			keys = append(keys, w[strings.LastIndex(w, "allowedEnvVars: ")+len("allowedEnvVars: "):])
		}
	}
	if len(keys) != 9 {
		t.Errorf("%d warnings, want three for each of three: %q", len(keys), s.Warnings)
	}
}
