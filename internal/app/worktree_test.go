package app

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"capstan/internal/agent"
	"capstan/internal/msg"
	"capstan/internal/sched"
	"capstan/internal/shell"
	"capstan/internal/tool"
)

// inRepository opens a session in the directory sub of a repository with one
// commit.
func inRepository(t *testing.T, o Options, settings string) *Session {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	noEnv(t)
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("XDG_CONFIG_HOME", "")
	url, _ := recorder(t)
	t.Setenv("OPENAI_BASE_URL", url)
	first := open(t, Options{}, map[string]string{"~/.capstan/settings.json": settings, "sub/a.txt": "one\n", "secret/key": "k", "sub/.env": "e", "gen/x": "x"})
	git(t, first.opt.Dir, "init", "-q", "-b", "main")
	git(t, first.opt.Dir, "add", "-A")
	git(t, first.opt.Dir, "commit", "-qm", "first")
	o.Dir, o.Env = filepath.Join(first.opt.Dir, "sub"), os.Getenv
	return again(t, o)
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x@x.test"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func branches(t *testing.T, repo string) string {
	t.Helper()
	return git(t, repo, "for-each-ref", "--format=%(refname:short)", "refs/heads/capstan")
}

// does makes one call and returns its status and text.
func does(t *testing.T, s *Session, name string, args map[string]any) string {
	t.Helper()
	r := s.rt.Run(t.Context(), s.View, []tool.Call{call(name, args)})[0]
	return string(r.Status) + ": " + r.Text()
}

func wants(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			t.Errorf("%q has no %q", got, p)
		}
	}
}

// A session goes into a worktree with its tools, its rules and its prompt, and
// comes back; what would be lost by that is lost only when somebody said so.
// S0-061 S0-064
func TestWorktree(t *testing.T) {
	var asked []string
	s := inRepository(t, Options{ApprovalMode: "auto-edit", Mode: tool.Direct, Approver: surface(func(_ context.Context, q *sched.Question) (sched.Answer, error) {
		asked = append(asked, q.Call.Name+" "+string(q.Call.Args))
		return sched.Answer{Allow: !strings.Contains(string(q.Call.Args), "nope")}, nil
	})}, `{"permissions": {"deny": ["Read(/secret/**)", "Read(./.env)", "Edit(/gen/**)"], "allow": ["Bash(pwd)"]}}`)
	home, repo := s.opt.Dir, s.project
	prompt := s.prompt(AgentOptions{}, nil)
	before := prompt()

	wants(t, does(t, s, "exit_worktree", map[string]any{"action": "keep"}), "the session is in no worktree")
	wants(t, does(t, s, "enter_worktree", map[string]any{"name": "../x"}), "error: ", "/name: want up to 64 letters")
	wants(t, does(t, s, "enter_worktree", map[string]any{"name": "nope"}), "denied: ")
	wants(t, does(t, s, "enter_worktree", map[string]any{"name": "try"}), "success: ", "on the new branch capstan/try")
	tree := s.inWorktree().Path
	sub := filepath.Join(tree, "sub")
	wants(t, does(t, s, "run_shell_command", map[string]any{"command": "pwd"}), sub)
	wants(t, does(t, s, "read_file", map[string]any{"file_path": "a.txt"}), "success: one")
	wants(t, does(t, s, "read_file", map[string]any{"file_path": ".env"}), "denied: ", "Read(./.env)")
	wants(t, does(t, s, "read_file", map[string]any{"file_path": filepath.Join(home, ".env")}), "denied: ", "Read(./.env)")
	wants(t, does(t, s, "run_shell_command", map[string]any{"command": "cat ../secret/key"}), "denied: ", "Read(/secret/**)")
	wants(t, does(t, s, "run_shell_command", map[string]any{"command": "cat " + filepath.Join(repo, "secret/key")}), "denied: ", "Read(/secret/**)")
	wants(t, does(t, s, "write_file", map[string]any{"file_path": "../gen/y", "content": "x"}), "denied: ", "Edit(/gen/**)")
	wants(t, does(t, s, "write_file", map[string]any{"file_path": "new", "content": "x"}), "success: ")
	wants(t, prompt(), "Working directory: "+sub)
	wants(t, does(t, s, "enter_worktree", map[string]any{}), "error: ", "is in the worktree "+tree+" already")
	if _, err := os.Stat(filepath.Join(home, "new")); err == nil {
		t.Error("it was written to the old place")
	}

	wants(t, does(t, s, "exit_worktree", map[string]any{"action": "keep", "discard_changes": true}), "error: ", "/discard_changes: only with")
	wants(t, does(t, s, "exit_worktree", map[string]any{"action": "remove"}), "error: ", "nothing was removed", "not committed: ?? sub/new", "discard_changes")
	git(t, sub, "add", "-A")
	git(t, sub, "commit", "-qm", "second")
	wants(t, does(t, s, "exit_worktree", map[string]any{"action": "remove"}), "error: ", "on no other branch: ", "second")
	wants(t, does(t, s, "exit_worktree", map[string]any{"action": "keep"}), "success: ", "You are back in "+home, "are kept")
	if after := prompt(); after != before {
		t.Errorf("the prompt is not as it was:\n%s", after)
	}
	wants(t, does(t, s, "run_shell_command", map[string]any{"command": "pwd"}), home)
	wants(t, does(t, s, "read_file", map[string]any{"file_path": filepath.Join(sub, ".env")}), "denied: ") // still

	// Another one, of which the changes are discarded.
	asked = nil
	wants(t, does(t, s, "enter_worktree", map[string]any{}), "success: ")
	tree = s.inWorktree().Path
	wants(t, does(t, s, "write_file", map[string]any{"file_path": "new", "content": "x"}), "success: ")
	wants(t, does(t, s, "exit_worktree", map[string]any{"action": "remove", "discard_changes": true}), "success: ", "are removed", "Discarded:\nnot committed: ?? sub/new")
	if _, err := os.Stat(tree); !os.IsNotExist(err) || branches(t, repo) != "capstan/try" {
		t.Errorf("%v, branches %s", err, branches(t, repo))
	}
	if want := []string{"enter_worktree {}", `exit_worktree {"action":"remove","discard_changes":true}`}; strings.Join(asked, "; ") != strings.Join(want, "; ") {
		t.Errorf("asked about %q, want %q", asked, want)
	}
}

// In plan mode there is no new worktree, and nobody who could be asked means no.
func TestWorktreeDenied(t *testing.T) {
	for mode, why := range map[string]string{"plan": "approval mode plan", "default": "nobody can be asked", "auto-edit": "nobody can be asked"} {
		s := inRepository(t, Options{ApprovalMode: mode, Mode: tool.Direct}, `{}`)
		wants(t, does(t, s, "enter_worktree", map[string]any{"name": "try"}), "denied: ", why)
		if s.inWorktree() != nil || branches(t, s.project) != "" {
			t.Error("it was made")
		}
	}
	if s := open(t, Options{Mode: tool.Direct}, nil); s.View().Visible("enter_worktree") != nil {
		t.Error("there is no repository, and the control is offered")
	}
}

// Calls of one turn are bound to where they were made: a command that comes after
// the move was judged, and runs, in the old place.
func TestWorktreeTurn(t *testing.T) {
	s := inRepository(t, Options{ApprovalMode: "yolo", Mode: tool.Direct}, `{}`)
	home := s.opt.Dir
	rs := s.rt.Run(t.Context(), s.View, []tool.Call{call("enter_worktree", map[string]any{"name": "try"}), call("run_shell_command", map[string]any{"command": "pwd"}), call("write_file", map[string]any{"file_path": "b", "content": "x"})})
	if _, err := os.Stat(filepath.Join(home, "b")); err != nil || !strings.Contains(rs[1].Text(), home) || s.inWorktree() == nil {
		t.Errorf("%v; %s", err, rs[1].Text())
	}
}

// A sandbox moves along: the worktree and the repository can be written, the old
// workspace cannot.
func TestWorktreeSandbox(t *testing.T) {
	if how, ok := shell.SandboxSupport(); !ok {
		t.Skip(how)
	}
	s := inRepository(t, Options{ApprovalMode: "yolo", Mode: tool.Direct, Sandbox: true}, `{}`)
	s.box.Writable = []string{s.project} // tests have their directories in /tmp
	wants(t, does(t, s, "enter_worktree", map[string]any{"name": "try"}), "success: ")
	wants(t, does(t, s, "run_shell_command", map[string]any{"command": "echo x > b && git add b && git -c user.name=x -c user.email=x commit -qm b && echo done"}), "done", "exit code 0")
	wants(t, does(t, s, "run_shell_command", map[string]any{"command": "echo x > " + filepath.Join(s.opt.Dir, "b")}), "commands run in a sandbox")
	wants(t, does(t, s, "exit_worktree", map[string]any{"action": "keep"}), "success: ")
	wants(t, does(t, s, "run_shell_command", map[string]any{"command": "echo x > b && echo done"}), "done", "exit code 0")
}

// A session that ends in a worktree says so, and goes on there.
func TestWorktreeResume(t *testing.T) {
	var notices []string
	s := inRepository(t, Options{ApprovalMode: "yolo", Notice: func(n string) { notices = append(notices, n) }}, `{}`)
	c := converse(t, s, AgentOptions{Model: "openai/m"}, call("enter_worktree", map[string]any{"name": "try"}))
	tree := s.inWorktree().Path
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	wants(t, strings.Join(notices, "\n"), "the worktree "+tree+" with the branch capstan/try is kept")
	resume := func() (*Session, string) {
		t.Helper()
		s := again(t, s.opt)
		c, err := s.Agent(t.Context(), AgentOptions{Resume: c.ID})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}()
		if out := c.Run(t.Context(), []msg.Part{msg.TextPart("go on")}); out.Reason != agent.Failed {
			t.Errorf("%+v", out)
		}
		return s, strings.Join(c.Notes, "\n")
	}
	s2, notes := resume()
	wants(t, notes, "goes on in the worktree "+tree)
	wants(t, does(t, s2, "read_file", map[string]any{"file_path": "a.txt"}), "one")
	if s2.place.Dir() != filepath.Join(tree, "sub") {
		t.Error(s2.place.Dir())
	}
	git(t, s.project, "worktree", "remove", tree)
	s3, notes := resume()
	wants(t, notes, "the session was in the worktree "+tree+", which cannot be used", "it goes on in "+s.opt.Dir)
	if s3.inWorktree() != nil {
		t.Error("it is in one")
	}
}

// A worktree is not removed while a job of the session runs.
func TestWorktreeJob(t *testing.T) {
	s := inRepository(t, Options{ApprovalMode: "yolo", Mode: tool.Direct}, `{}`)
	job := does(t, s, "run_shell_command", map[string]any{"command": "sleep 100", "is_background": true})
	wants(t, job, "job-1")
	wants(t, does(t, s, "enter_worktree", map[string]any{"name": "try"}), "success: ")
	wants(t, does(t, s, "exit_worktree", map[string]any{"action": "remove"}), "error: ", "job-1 runs: job_stop it first")
	wants(t, does(t, s, "job_stop", map[string]any{"job_id": "job-1"}), "success: ")
	wants(t, does(t, s, "exit_worktree", map[string]any{"action": "remove"}), "success: ")
}
