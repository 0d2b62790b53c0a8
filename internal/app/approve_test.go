package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/agent"
	"capstan/internal/sched"
	"capstan/internal/tool"
)

// A surface is what a test asks with.
type surface func(ctx context.Context, q *sched.Question) (sched.Answer, error)

func (f surface) Approve(ctx context.Context, q *sched.Question) (sched.Answer, error) {
	return f(ctx, q)
}

// calls runs calls of a model in a session and returns how each ended.
func calls(t *testing.T, s *Session, list ...tool.Call) (ended []string) {
	t.Helper()
	for _, r := range s.rt.Run(t.Context(), s.View, list) {
		ended = append(ended, strings.TrimSpace(string(r.Status)+" "+r.Code))
	}
	return ended
}

// The rules that are offered are those that let the very call run, where they
// would count; and what the person takes is in force at once, and kept.
//
// S0-250 S0-251
func TestAlways(t *testing.T) {
	touch := call("run_shell_command", map[string]any{"command": "touch a"})
	for _, tc := range []struct {
		name    string
		opt     Options
		files   map[string]string
		offered []string // layers
		take    sched.Grant
		file    string // where the rule is then
	}{
		{name: "for the session", offered: []string{"session", "user"}, take: sched.Grant{Layer: "session", List: "allow", Rule: "Bash(touch a)"}},
		{name: "for the user", files: map[string]string{"~/.capstan/settings.json": "{\n  // mine\n}\n"}, offered: []string{"session", "user"},
			take: sched.Grant{Layer: "user", List: "allow", Rule: "Bash(touch a)"}, file: "~/.capstan/settings.json"},
		{name: "for the project", opt: Options{Trust: true}, offered: []string{"session", "local", "user"},
			take: sched.Grant{Layer: "local", List: "allow", Rule: "Bash(touch a)"}, file: ".capstan/settings.local.json"},
		{name: "for all of the project", opt: Options{Trust: true}, offered: []string{"session", "local", "user"},
			take: sched.Grant{Layer: "project", List: "allow", Rule: "Bash(touch a)"}, file: ".capstan/settings.json"},
		{name: "an ask rule is in the way", files: map[string]string{"~/.capstan/settings.json": `{"permissions": {"ask": ["Bash(touch a)"]}}`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var asked []*sched.Question
			tc.opt.Approver = surface(func(_ context.Context, q *sched.Question) (sched.Answer, error) {
				asked = append(asked, q)
				if tc.take.Layer == "" {
					return sched.Answer{Allow: true}, nil
				}
				return sched.Answer{Allow: true, Grants: []sched.Grant{tc.take}}, nil
			})
			s := open(t, tc.opt, tc.files)
			if got := calls(t, s, touch); got[0] != "success" {
				t.Fatal(got)
			}
			var layers []string
			for _, o := range asked[0].Offers {
				layers = append(layers, o.Layer)
				if diff := cmp.Diff([]string{"Bash(touch a)"}, o.Rules); diff != "" {
					t.Error(diff)
				}
			}
			if diff := cmp.Diff(tc.offered, layers); diff != "" {
				t.Error(diff)
			}
			want := 1
			if tc.take.Layer == "" {
				want = 2
			}
			if got := calls(t, s, touch); got[0] != "success" || len(asked) != want {
				t.Errorf("%v, asked %d times, want %d", got, len(asked), want)
			}
			if tc.file == "" {
				return
			}
			path := filepath.Join(s.project, tc.file)
			if rest, ok := strings.CutPrefix(tc.file, "~/"); ok {
				path = filepath.Join(s.home, rest)
			}
			src, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(src), `"Bash(touch a)"`) || tc.files != nil && !strings.Contains(string(src), "// mine") {
				t.Errorf("%s: %v %s", path, err, src)
			}
		})
	}
}

// What cannot hold is said, and what cannot be kept holds for the session.
func TestGrantsThatFail(t *testing.T) {
	touch := call("run_shell_command", map[string]any{"command": "touch a"})
	for _, tc := range []struct {
		name        string
		grant       sched.Grant
		want        string
		text, heard string
	}{
		{"a rule that is none", sched.Grant{Layer: "session", List: "allow", Rule: "Bash("}, "denied DENIED", "Bash(", ""},
		{"a list that is none", sched.Grant{Layer: "session", List: "permit", Rule: "Edit"}, "denied DENIED", "want allow, ask or deny", ""},
		{"a folder that is not trusted", sched.Grant{Layer: "local", List: "allow", Rule: "Edit"}, "denied DENIED", "not trusted", ""},
		{"a layer that is none", sched.Grant{Layer: "managed", List: "allow", Rule: "Edit"}, "denied DENIED", "not trusted", ""},
		{"a file that is no directory", sched.Grant{Layer: "user", List: "allow", Rule: "Edit"}, "success", "", "holds in this session only"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			heard := ""
			s := open(t, Options{Notice: func(text string) { heard += text }, Approver: surface(func(context.Context, *sched.Question) (sched.Answer, error) {
				return sched.Answer{Allow: true, Grants: []sched.Grant{tc.grant}}, nil
			})}, nil)
			if err := os.WriteFile(filepath.Join(s.home, ".capstan"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			r := s.rt.Run(t.Context(), s.View, []tool.Call{touch})[0]
			if got := strings.TrimSpace(string(r.Status) + " " + r.Code); got != tc.want || !strings.Contains(r.Text(), tc.text) || !strings.Contains(heard, tc.heard) {
				t.Errorf("%s: %s; told: %q", got, r.Text(), heard)
			}
		})
	}
}

// gateway stands for exec: its program makes two calls at once.
type gateway struct{}

func (gateway) Spec() *tool.Spec {
	return &tool.Spec{Name: tool.ExecName, Class: tool.Gateway, Effect: tool.EffectNone, Waits: true, Description: "d"}
}

func (gateway) Run(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
	var ended []string
	for r := range inv.Dispatch(ctx, []tool.Call{call("run_shell_command", map[string]any{"command": "touch b"}), call("run_shell_command", map[string]any{"command": "touch c"})}) {
		ended = append(ended, string(r.Result.Status))
	}
	return tool.Text(strings.Join(ended, " ")), nil
}

// One queue for all depths: calls of the model and of a program wait in it at
// once, and a rule that one answer brings answers the others too; so does another
// approval mode. An answer that comes with a deny rule denies them.
//
// S0-180 S0-251
func TestOneQueue(t *testing.T) {
	grant := func(list string) func(*Session) sched.Answer {
		return func(*Session) sched.Answer {
			return sched.Answer{Allow: true, Grants: []sched.Grant{{Layer: "session", List: list, Rule: "Bash(touch:*)"}}}
		}
	}
	for name, tc := range map[string]struct {
		answer  func(*Session) sched.Answer
		program string
	}{
		"a rule allows": {grant("allow"), "success success"},
		"a rule denies": {grant("deny"), "denied denied"},
		"another mode": {func(s *Session) sched.Answer {
			if err := s.SetApprovalMode("yolo"); err != nil {
				t.Error(err)
			}
			return sched.Answer{Allow: true}
		}, "success success"},
	} {
		t.Run(name, func(t *testing.T) {
			var s *Session
			waiting := make(chan string, 3)
			open3 := make(chan struct{})
			withdrawn := make(chan string, 3)
			s = open(t, Options{Mode: tool.Both, Approver: surface(func(ctx context.Context, q *sched.Question) (sched.Answer, error) {
				waiting <- q.Call.ID
				if string(q.Call.Source) == string(tool.FromModel) {
					<-open3 // until all three are there
					return tc.answer(s), nil
				}
				<-ctx.Done()
				withdrawn <- q.Call.ID
				return sched.Answer{}, ctx.Err()
			})}, nil)
			touch := call("run_shell_command", map[string]any{"command": "touch a"})
			one := s.rt.Start(t.Context(), s.View, []tool.Call{touch})
			if err := s.Registry.Replace(func(sp *tool.Spec) bool { return sp.Name == tool.ExecName }, gateway{}); err != nil {
				t.Fatal(err)
			}
			two := s.rt.Start(t.Context(), s.View, []tool.Call{call(tool.ExecName, map[string]any{})})
			for range 3 {
				<-waiting
			}
			close(open3)
			if r := <-one; r.Result.Status != tool.Success {
				t.Error(r.Result.Text())
			}
			if r := <-two; r.Result.Text() != tc.program {
				t.Errorf("%q, want %q", r.Result.Text(), tc.program)
			}
			if len(withdrawn) != 2 {
				t.Errorf("%d questions were withdrawn", len(withdrawn))
			}
		})
	}
}

// What a hook wants asked, no rule answers, and none is offered.
func TestHookedQuestion(t *testing.T) {
	s := open(t, Options{Approver: surface(func(_ context.Context, q *sched.Question) (sched.Answer, error) {
		if q.Offers != nil {
			t.Errorf("%+v", q.Offers)
		}
		return sched.Answer{Reason: "no"}, nil
	})}, map[string]string{"~/.capstan/settings.json": `{"permissions": {"allow": ["Bash(touch:*)"]}}`})
	v := s.View()
	c := call("run_shell_command", map[string]any{"command": "touch a"})
	q := &sched.Question{Request: sched.Request{Call: &c, Entry: v.Visible("run_shell_command")}, Hooked: true}
	q.Judge = func(ctx context.Context) sched.Verdict { return s.rules.Decide(ctx, &q.Request) }
	if a, err := s.desk.Approve(t.Context(), q); a.Allow || a.Ruled || err != nil {
		t.Errorf("%+v %v", a, err)
	}
	q.Hooked = false
	if a, err := s.desk.Approve(t.Context(), q); !a.Allow || !a.Ruled || err != nil {
		t.Errorf("%+v %v", a, err)
	}
}

// A question whose call is cancelled ends with it, and nothing waits on.
func TestCancelledQuestion(t *testing.T) {
	asked := make(chan struct{})
	s := open(t, Options{Approver: surface(func(ctx context.Context, _ *sched.Question) (sched.Answer, error) {
		close(asked)
		<-ctx.Done()
		return sched.Answer{}, ctx.Err()
	})}, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	out := s.rt.Start(ctx, s.View, []tool.Call{call("run_shell_command", map[string]any{"command": "touch a"})})
	<-asked
	cancel(errors.New("enough"))
	if r := <-out; r.Result.Code != tool.CodeAbortedBefore {
		t.Errorf("%+v", r.Result)
	}
	if len(s.desk.open) != 0 {
		t.Error("a question is still open")
	}
}

// A subagent whose definition is stricter than the session is asked about under its
// own mode: neither the desk nor a person's change of the session's mode answers for
// it. The rules that are offered are those of its own mode too.
//
// S0-171 S0-172 S0-250
func TestDefinitionStricter(t *testing.T) {
	list := []tool.Call{
		call("run_shell_command", map[string]any{"command": "touch a"}),
		call("write_file", map[string]any{"file_path": "b", "content": "b"}),
	}
	const yes, asks, no = "success", "asked", "denied DENIED"
	for _, tc := range []struct {
		session, own string
		want         [2]string
	}{
		{"plan", "default", [2]string{no, no}},
		{"plan", "bypassPermissions", [2]string{no, no}},
		{"default", "plan", [2]string{no, no}},
		{"default", "default", [2]string{asks, asks}},
		{"default", "bypassPermissions", [2]string{asks, asks}},
		{"auto-edit", "default", [2]string{asks, asks}},
		{"auto-edit", "bypassPermissions", [2]string{asks, yes}},
		{"yolo", "plan", [2]string{no, no}},
		{"yolo", "default", [2]string{asks, asks}},
		{"yolo", "acceptEdits", [2]string{asks, yes}},
		{"yolo", "bypassPermissions", [2]string{yes, yes}},
		{"yolo", "", [2]string{yes, yes}},
	} {
		for i, c := range list {
			mode := ""
			if tc.own != "" {
				mode = "permissionMode: " + tc.own + "\n"
			}
			asked := 0
			var s *Session
			s = open(t, Options{Trust: true, ApprovalMode: tc.session, Approver: surface(func(ctx context.Context, q *sched.Question) (sched.Answer, error) {
				asked++
				if len(q.Offers) == 0 || len(q.Offers[0].Rules) != 1 {
					t.Errorf("%+v: offered %+v", tc, q.Offers)
				}
				if err := s.SetApprovalMode(tc.session); err != nil { // which looks at what is open again
					t.Error(err)
				}
				if ctx.Err() != nil {
					t.Errorf("%+v: the session's mode has answered", tc)
				}
				return sched.Answer{Reason: "no"}, nil
			})}, map[string]string{".claude/agents/x.md": "---\nname: x\ndescription: d\n" + mode + "---\nDo it.\n"})
			m, err := s.member(t.Context(), agent.Order{Kind: "x"}, agent.Options{Sched: s.calls})
			if err != nil {
				t.Fatal(err)
			}
			r := sched.New(m.Options.Sched).Run(t.Context(), m.Options.View, []tool.Call{c})[0]
			m.Close()
			got := strings.TrimSpace(string(r.Status) + " " + r.Code)
			if asked > 0 {
				got = asks
			}
			if got != tc.want[i] || asked > 1 {
				t.Errorf("session %s, definition %q: %s: %s (asked %d times), want %s", tc.session, tc.own, c.Name, r.Text(), asked, tc.want[i])
			}
		}
	}
}

// A no opens nothing, and an answer of which one rule cannot be in force puts none
// into force; what it forbids counts with a no too.
//
// S0-251
func TestGrantsOfANo(t *testing.T) {
	grant := func(list, rule string) sched.Grant { return sched.Grant{Layer: "session", List: list, Rule: rule} }
	for name, tc := range map[string]struct {
		answer sched.Answer
		want   sched.Decision // of the same call, afterwards
		kept   []sched.Grant  // what the record says
	}{
		"yes, with a rule that is none":    {sched.Answer{Allow: true, Grants: []sched.Grant{grant("allow", "Bash(touch:*)"), grant("allow", "Bash(")}}, sched.Ask, nil},
		"yes, with a list that is none":    {sched.Answer{Allow: true, Grants: []sched.Grant{grant("deny", "Bash(touch:*)"), grant("permit", "Edit")}}, sched.Ask, nil},
		"no, with a rule that would allow": {sched.Answer{Grants: []sched.Grant{grant("allow", "Bash(touch:*)")}}, sched.Ask, nil},
		"no, with one that forbids too": {sched.Answer{Grants: []sched.Grant{grant("allow", "Edit"), grant("deny", "Bash(touch:*)")}}, sched.Deny,
			[]sched.Grant{grant("deny", "Bash(touch:*)")}},
		"nobody's answer": {sched.Answer{Allow: true, Unasked: true, Grants: []sched.Grant{grant("allow", "Bash(touch:*)"), grant("deny", "Bash(touch:*)")}}, sched.Ask, nil},
		"yes": {sched.Answer{Allow: true, Grants: []sched.Grant{grant("allow", "Bash(touch:*)")}}, sched.Allow,
			[]sched.Grant{grant("allow", "Bash(touch:*)")}},
	} {
		t.Run(name, func(t *testing.T) {
			var kept []sched.Grant
			s := open(t, Options{Observe: func(e sched.Event) {
				if e.Decided != nil {
					kept = append(kept, e.Decided.Answer.Grants...)
				}
			}, Approver: surface(func(context.Context, *sched.Question) (sched.Answer, error) { return tc.answer, nil })}, nil)
			touch := call("run_shell_command", map[string]any{"command": "touch a"})
			if got, want := calls(t, s, touch)[0] == "success", tc.want == sched.Allow; got != want {
				t.Errorf("it ran: %t", got)
			}
			got := s.rules.Decide(t.Context(), &sched.Request{Call: &touch, Entry: s.View().Visible("run_shell_command")})
			if got.Decision != tc.want {
				t.Errorf("%+v, want %d", got, tc.want)
			}
			if diff := cmp.Diff(tc.kept, kept); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A definition that says dontAsk asks nobody, as a subagent and as the session's own
// agent.
func TestSilentDefinition(t *testing.T) {
	files := map[string]string{".claude/agents/x.md": "---\nname: x\ndescription: d\npermissionMode: dontAsk\n---\nDo it.\n"}
	touch := call("run_shell_command", map[string]any{"command": "touch a"})
	for _, self := range []string{"", "x"} {
		s := open(t, Options{Trust: true, Agent: self, Approver: surface(func(context.Context, *sched.Question) (sched.Answer, error) {
			t.Error("somebody was asked")
			return sched.Answer{Allow: true}, nil
		})}, files)
		rt := s.rt
		if self == "" {
			m, err := s.member(t.Context(), agent.Order{Kind: "x"}, agent.Options{Sched: s.calls})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			rt = sched.New(m.Options.Sched)
		}
		if r := rt.Run(t.Context(), s.View, []tool.Call{touch})[0]; !r.Unasked || r.Code != tool.CodeDenied {
			t.Errorf("as %q: %+v", self, r)
		}
	}
}
