package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/msg"
	"capstan/internal/shell"
	"capstan/internal/tool"
)

// A shellSession is the shell tools of one session in a directory of their own.
type shellSession struct {
	*testing.T
	dir   string
	jobs  *shell.Jobs
	tools map[string]*tool.Entry
	src   tool.Source
	id    string
	said  strings.Builder // progress
}

func newShellSession(t *testing.T, mend ...func(*ShellOptions)) *shellSession {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := shell.New(shell.Options{Grace: 100 * time.Millisecond, Idle: 400 * time.Millisecond})
	s := &shellSession{T: t, dir: dir, jobs: shell.NewJobs(r), tools: map[string]*tool.Entry{}, src: tool.FromModel, id: "call_1"}
	t.Cleanup(func() { s.jobs.Close() })
	o := ShellOptions{Dir: dir, Runner: r, Jobs: s.jobs}
	for _, m := range mend {
		m(&o)
	}
	var reg tool.Registry
	if err := reg.Add(Shell(o)...); err != nil {
		t.Fatal(err)
	}
	for _, e := range reg.Tools() {
		s.tools[e.Spec().Name] = e
	}
	return s
}

// callCtx validates and runs a call as sched does, without its pipeline.
func (s *shellSession) callCtx(ctx context.Context, name string, args obj) tool.Result {
	s.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		s.Fatal(err)
	}
	raw, _, err = s.tools[name].Validate(raw)
	if err != nil {
		return tool.Fail(tool.CodeInvalidArgs, "%v", err)
	}
	c := &tool.Call{ID: s.id, Name: name, Args: raw, Source: s.src}
	r, err := s.tools[name].Tool().Run(ctx, &tool.Invocation{Call: c, Progress: func(p msg.Part) { s.said.WriteString(p.Text) }})
	if err != nil {
		return tool.Fail(tool.CodeAborted, "%v", err)
	}
	return r
}

func (s *shellSession) call(name string, args obj) tool.Result {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return s.callCtx(ctx, name, args)
}

// seen is what a caller gets, with what differs from run to run made equal.
type seen struct {
	Status tool.Status
	Code   string
	Text   string
	Data   string
}

var varying = regexp.MustCompile(`\b[0-9]+ (sleep 300)|running for \d+s`)

func (s *shellSession) see(r tool.Result) seen {
	text := strings.ReplaceAll(r.Text(), s.dir, "$DIR")
	text = varying.ReplaceAllStringFunc(text, func(m string) string {
		if strings.HasPrefix(m, "running") {
			return "running for $TIME"
		}
		return "$PID sleep 300"
	})
	return seen{r.Status, r.Code, text, string(r.Data)}
}

// The exit status is always the last line for a model, and for a program
// whenever there is something to say. (BUG-OT-03)
func TestRunShellCommand(t *testing.T) {
	tests := []struct {
		name        string
		args        obj
		model, prog seen
	}{
		{"success", obj{"command": "echo hi; echo err >&2", "description": "say hi"},
			seen{tool.Success, "", "hi\nerr\n[exit code 0]", `{"exitCode":0}`},
			seen{tool.Success, "", "hi\nerr\n", `{"exitCode":0}`}},
		{"no output", obj{"command": "true"},
			seen{tool.Success, "", "[exit code 0]", `{"exitCode":0}`},
			seen{tool.Success, "", "", `{"exitCode":0}`}},
		{"failure", obj{"command": "printf out; exit 3"},
			seen{tool.Success, "", "out\n[exit code 3]", `{"exitCode":3}`},
			seen{tool.Success, "", "out\n[exit code 3]", `{"exitCode":3}`}},
		{"signal", obj{"command": "kill -SEGV $$"},
			seen{tool.Success, "", "[killed by SIGSEGV]", `{"exitCode":-1,"signal":"SIGSEGV"}`},
			seen{tool.Success, "", "[killed by SIGSEGV]", `{"exitCode":-1,"signal":"SIGSEGV"}`}},
		{"time-out", obj{"command": "echo a; sleep 300", "timeout": 200},
			seen{tool.Failed, tool.CodeTimeout, "a\n[timed out after 200 ms and ended; pass a greater timeout (at most 600000), or is_background: true]\n[killed by SIGTERM]", `{"exitCode":-1,"signal":"SIGTERM"}`},
			seen{tool.Failed, tool.CodeTimeout, "a\n[timed out after 200 ms and ended; pass a greater timeout (at most 600000), or is_background: true]\n[killed by SIGTERM]", `{"exitCode":-1,"signal":"SIGTERM"}`}},
		// Ruling 9: what is left behind is killed and named.
		{"leftovers", obj{"command": "sleep 300 & echo a"},
			seen{tool.Success, "", "a\n[killed what it left running: $PID sleep 300; is_background: true is for what should go on]\n[exit code 0]", `{"exitCode":0}`},
			seen{tool.Success, "", "a\n[killed what it left running: $PID sleep 300; is_background: true is for what should go on]\n[exit code 0]", `{"exitCode":0}`}},
		{"wants a person", obj{"command": "echo 'sudo: a password is required'; exit 1"},
			seen{tool.Success, "", "sudo: a password is required\n[hint: sudo needs a password, and nobody can type one; have the user run it]\n[exit code 1]", `{"exitCode":1}`},
			seen{tool.Success, "", "sudo: a password is required\n[hint: sudo needs a password, and nobody can type one; have the user run it]\n[exit code 1]", `{"exitCode":1}`}},
		{"relative directory", obj{"command": "pwd", "directory": "sub"},
			seen{tool.Success, "", "$DIR/sub\n[exit code 0]", `{"exitCode":0}`},
			seen{tool.Success, "", "$DIR/sub\n", `{"exitCode":0}`}},
		{"absolute directory", obj{"command": "pwd", "directory": "/"},
			seen{tool.Success, "", "/\n[exit code 0]", `{"exitCode":0}`},
			seen{tool.Success, "", "/\n", `{"exitCode":0}`}},
		{"no directory", obj{"command": "pwd", "directory": "nowhere"},
			seen{tool.Failed, tool.CodeFailed, "The command was not run: the directory $DIR/nowhere does not exist.", ""},
			seen{tool.Failed, tool.CodeFailed, "The command was not run: the directory $DIR/nowhere does not exist.", ""}},
		{"empty", obj{"command": " "},
			seen{tool.Failed, tool.CodeFailed, "The command was not run: the command is empty.", ""},
			seen{tool.Failed, tool.CodeFailed, "The command was not run: the command is empty.", ""}},
	}
	for _, tt := range tests {
		for src, want := range map[tool.Source]seen{tool.FromModel: tt.model, tool.FromProgram: tt.prog} {
			t.Run(tt.name+"/"+string(src), func(t *testing.T) {
				s := newShellSession(t)
				s.src = src
				if err := os.Mkdir(s.dir+"/sub", 0o700); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, s.see(s.call("run_shell_command", tt.args))); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

// BUG-CM-05, S0-139: a declared time-out is kept as it is or refused, never
// changed on the quiet.
func TestRunShellCommandTimeout(t *testing.T) {
	s := newShellSession(t)
	for _, timeout := range []any{0, -1, 600_001, 1.5, "soon"} {
		if r := s.call("run_shell_command", obj{"command": "echo ran >ran", "timeout": timeout}); r.Code != tool.CodeInvalidArgs {
			t.Errorf("timeout %v: %s %s", timeout, r.Code, r.Text())
		}
	}
	if _, err := os.Stat(s.dir + "/ran"); err == nil {
		t.Error("a refused command ran")
	}
	if r := s.call("run_shell_command", obj{"command": "sleep 0.5; echo done", "timeout": 600_000}); r.Text() != "done\n[exit code 0]" {
		t.Errorf("the longest timeout: %s", r.Text())
	}
}

// S0-145: cancelling ends the command at once, and says so.
func TestRunShellCommandCancelled(t *testing.T) {
	s := newShellSession(t)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(300*time.Millisecond, cancel)
	r := s.callCtx(ctx, "run_shell_command", obj{"command": "echo a; sleep 300"})
	want := seen{tool.Cancelled, tool.CodeAborted, "a\n[cancelled and ended]\n[killed by SIGTERM]", `{"exitCode":-1,"signal":"SIGTERM"}`}
	if diff := cmp.Diff(want, s.see(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A program that waits at a terminal is ended and fails with what to do.
func TestRunShellCommandWaits(t *testing.T) {
	if _, err := os.Stat("/usr/bin/script"); err != nil {
		t.Skip("script is not installed")
	}
	s := newShellSession(t)
	r := s.call("run_shell_command", obj{"command": `script -qec 'bash -c "read x"' /dev/null < <(sleep 300)`})
	if r.Code != tool.CodeFailed || !strings.Contains(r.Text(), "[ended, since bash waited for a person to type at a terminal") {
		t.Errorf("%s: %s", r.Code, r.Text())
	}
}

// BUG-CM-06: output is told while the command runs.
func TestRunShellCommandProgress(t *testing.T) {
	s := newShellSession(t)
	s.call("run_shell_command", obj{"command": "echo one; echo two"})
	if got := s.said.String(); got != "one\ntwo\n" {
		t.Errorf("progress %q", got)
	}
}

type file struct {
	bytes.Buffer
	closed int
	fail   error
}

func (f *file) Close() error { f.closed++; return f.fail }

// The whole of very long output is in the file that the result names.
func TestRunShellCommandSpills(t *testing.T) {
	const size = maxKept + 1
	command := fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x; exit 2", size)
	for _, fail := range []error{nil, errors.New("disk full")} {
		f := &file{fail: fail}
		s := newShellSession(t, func(o *ShellOptions) {
			o.Spill = func(string) (io.WriteCloser, string, error) { return f, "/spill/1.txt", nil }
		})
		s.src = tool.FromProgram
		r := s.call("run_shell_command", obj{"command": command})
		if f.closed != 1 || f.Len() != size || !r.Truncated || !strings.HasSuffix(r.Text(), "[exit code 2]") {
			t.Errorf("closed %d times, %d bytes, truncated %v, ends %q", f.closed, f.Len(), r.Truncated, r.Text()[len(r.Text())-40:])
		}
		if want := map[bool]string{true: "/spill/1.txt", false: ""}[fail == nil]; r.File != want {
			t.Errorf("the file is %q, want %q", r.File, want)
		}
		if fail != nil && !strings.Contains(r.Text(), "[the whole output could not be kept: disk full]") {
			t.Errorf("ends %q", r.Text()[len(r.Text())-120:])
		}
	}
}

// A file is not filled without end: it gets the beginning, and the result says
// so. A character is kept whole or not at all.
func TestRunShellCommandSpillIsBounded(t *testing.T) {
	const size = maxKept + 1<<20
	f := &file{}
	s := newShellSession(t, func(o *ShellOptions) {
		o.Spill = func(string) (io.WriteCloser, string, error) { return f, "/spill/1.txt", nil }
	})
	s.src = tool.FromProgram
	s.tools["run_shell_command"].Tool().(*runShell).room = maxKept + 1000 // an odd place in what follows
	r := s.call("run_shell_command", obj{"command": fmt.Sprintf("yes 'é€' | head -c %d", size)})
	whole := strings.Repeat("é€\n", size/6+1)
	if f.closed != 1 || !strings.HasPrefix(whole, f.String()) || f.Len() < maxKept+998 || f.Len() > maxKept+1000 || !utf8.Valid(f.Bytes()) {
		t.Errorf("closed %d times, %d bytes", f.closed, f.Len())
	}
	note := "\n[only the first 16.0 MiB of the 17.0 MiB of output are in /spill/1.txt; redirect it to a file to have all of it]\n[exit code 0]"
	if !strings.HasSuffix(r.Text(), note) || r.File != "/spill/1.txt" || !r.Truncated {
		t.Errorf("file %q, truncated %v, ends %q", r.File, r.Truncated, r.Text()[len(r.Text())-200:])
	}
}

// Ruling 9: a job belongs to the session; each tool for jobs says where it stands.
func TestJobTools(t *testing.T) {
	s := newShellSession(t)
	step := func(name string, args obj, want seen) {
		t.Helper()
		if diff := cmp.Diff(want, s.see(s.call(name, args))); diff != "" {
			t.Errorf("%s %v (-want +got):\n%s", name, args, diff)
		}
	}
	step("job_list", obj{}, seen{tool.Success, "", "There are no background jobs.", `{"jobs":[]}`})

	s.id = "call_1/1"
	step("run_shell_command", obj{"command": "echo up; sleep 300", "is_background": true}, seen{tool.Success, "",
		"up\n[job-1: running for $TIME; since: 3 continues here]\n[Started in the background as job_id job-1. job_output {job_id, wait?: ms} shows what it prints and, with wait, waits for its end; job_stop {job_id} ends it.]",
		`{"jobId":"job-1","running":true,"next":3}`})
	s.id = "call_12"
	step("run_shell_command", obj{"command": "no-such-program-anywhere", "is_background": true}, seen{tool.Success, "",
		"/usr/bin/bash: line 1: no-such-program-anywhere: command not found\n[job-2: ended with exit code 127]", `{"jobId":"job-2","running":false,"exitCode":127,"next":67}`})
	step("run_shell_command", obj{"command": "true", "is_background": true, "directory": "nowhere"}, seen{tool.Failed, tool.CodeFailed,
		"The command was not run: the directory $DIR/nowhere does not exist.", ""})

	step("job_list", obj{}, seen{tool.Success, "",
		"job-1: running for $TIME, 3 bytes of output: echo up; sleep 300\njob-2: ended with exit code 127, 67 bytes of output: no-such-program-anywhere",
		`{"jobs":[{"jobId":"job-1","command":"echo up; sleep 300","running":true,"bytes":3},{"jobId":"job-2","command":"no-such-program-anywhere","running":false,"exitCode":127,"bytes":67}]}`})
	if diff := cmp.Diff([]string{"job-1: echo up; sleep 300"}, RunningJobs(s.jobs, "call_1")); diff != "" {
		t.Errorf("running below call_1 (-want +got):\n%s", diff)
	}
	if got := RunningJobs(s.jobs, "call_12"); got != nil { // its job has ended; call_1's is another's
		t.Errorf("running below call_12: %q", got)
	}
	for _, other := range []string{"call", "call_", "call_1/11", "call_1/1/1", "call_1#2"} { // of which call_1/1 is no part
		if got := RunningJobs(s.jobs, other); got != nil {
			t.Errorf("running below %s: %q", other, got)
		}
	}

	step("job_output", obj{"job_id": "job-1", "since": 1}, seen{tool.Success, "", "p\n[job-1: running for $TIME; since: 3 continues here]", `{"jobId":"job-1","running":true,"next":3}`})
	step("job_output", obj{"job_id": "job-9"}, seen{tool.Failed, tool.CodeFailed, `job_output: no such job as "job-9" (running: job-1).`, ""})
	step("job_stop", obj{"job_id": "job-1"}, seen{tool.Success, "", "job-1 was stopped after 3 bytes of output.", ""})
	step("job_stop", obj{"job_id": "job-1"}, seen{tool.Success, "", "job-1 was stopped after 3 bytes of output.", ""})
	step("job_stop", obj{"job_id": "job-2"}, seen{tool.Success, "", "job-2 had ended before: ended with exit code 127.", ""})
	step("job_stop", obj{"job_id": "x"}, seen{tool.Failed, tool.CodeFailed, `job_stop: no such job as "x" (no job is running).`, ""})
	step("job_output", obj{"job_id": "job-1"}, seen{tool.Success, "", "up\n[job-1: stopped]", `{"jobId":"job-1","running":false,"exitCode":-1,"next":3}`})
}

// job_output waits for the end of a job, and does so without a slot.
func TestJobOutputWaits(t *testing.T) {
	s := newShellSession(t)
	s.call("run_shell_command", obj{"command": "while [ ! -e go ]; do sleep 0.02; done; echo end; exit 5", "is_background": true})
	time.AfterFunc(300*time.Millisecond, func() { os.WriteFile(s.dir+"/go", nil, 0o600) })
	got := s.see(s.call("job_output", obj{"job_id": "job-1", "wait": 60_000}))
	want := seen{tool.Success, "", "end\n[job-1: ended with exit code 5]", `{"jobId":"job-1","running":false,"exitCode":5,"next":4}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, e := range s.tools {
		if waits := name == "job_output"; e.Spec().Waits != waits {
			t.Errorf("%s: Waits is %v", name, e.Spec().Waits)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.call("run_shell_command", obj{"command": "sleep 300", "is_background": true})
	if r := s.callCtx(ctx, "job_output", obj{"job_id": "job-2", "wait": 60_000}); r.Code != tool.CodeAborted {
		t.Errorf("cancelled: %s %s", r.Code, r.Text())
	}
}

// S0-173, S0-174: commands of a program overlap whatever they are; of a
// model's only those that change nothing.
func TestShellOverlap(t *testing.T) {
	s := newShellSession(t)
	access := s.tools["run_shell_command"].Tool().(tool.Accessor)
	for command, want := range map[string]bool{
		"ls -la src": true, "cat a.txt": true, "git status": true, "git log --oneline -5": true, "git diff HEAD~1": false, "pwd": true,
		"": false, "rm x": false, "ls; rm x": false, "ls > x": false, "cat $(rm x)": false, "ls\nrm x": false, "git": false, "git push": false,
		"git diff --output=x": false, "git diff --outp=x": false, "git log --ext-diff": false, "git -c a=b log": false, "ls & rm x": false, "ls | sh": false, "FOO=1 ls": false, "lsx": false, "cat 'a'": false,
	} {
		raw, err := json.Marshal(obj{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		for src, want := range map[tool.Source]bool{tool.FromModel: want, tool.FromProgram: true} {
			if got := access.Access(&tool.Call{Args: raw, Source: src}); got.Overlap != want || !got.Outside {
				t.Errorf("%q from %s: %+v, want overlap %v", command, src, got, want)
			}
		}
	}
}

// S3-040 to S3-044: the descriptions steer, and cost little.
func TestShellDescriptions(t *testing.T) {
	s := newShellSession(t)
	d := s.tools["run_shell_command"].Spec().Description
	for _, want := range []string{"git, npm, docker", "Must not be used for", "reading (read_file)", "writing (write_file)", "editing (edit)", "searching (grep_search)", "finding files (glob"} {
		if !strings.Contains(d, want) {
			t.Errorf("the description of run_shell_command lacks %q", want)
		}
	}
	size := 0
	for name, e := range s.tools {
		if !regexp.MustCompile(`(?i)must not|never`).MatchString(e.Spec().Description) {
			t.Errorf("%s does not say what it must not be used for", name)
		}
		b, err := json.Marshal(msg.Declaration{Name: name, Description: e.Spec().Description, Parameters: e.Spec().Input})
		if err != nil {
			t.Fatal(err)
		}
		size += len(b)
	}
	if size > 1900 {
		t.Errorf("the declarations have %d bytes, and 1,900 are given", size)
	}
	t.Logf("%d bytes", size)
}
