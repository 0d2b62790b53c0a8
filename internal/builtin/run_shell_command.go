package builtin

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"capstan/internal/msg"
	"capstan/internal/shell"
	"capstan/internal/tool"
)

//go:embed run_shell_command.md
var runShellText string

// The time-outs of a command, in milliseconds. Others are refused by the
// schema, never clamped (BUG-CM-05).
const runShellInput = `{"type":"object","properties":{` +
	`"command":{"type":"string"},` +
	`"timeout":{"type":"integer","minimum":1,"maximum":600000,"description":"ms, default 120000, none for a job"},` +
	`"directory":{"type":"string"},` +
	`"is_background":{"type":"boolean","description":"run as a job that outlives the call"},` +
	`"description":{"type":"string"}` +
	`},"required":["command"],"additionalProperties":false}`

const runShellOutput = `{"type":"object","properties":{` +
	`"exitCode":{"type":"integer"},"signal":{"type":"string"},"jobId":{"type":"string"}}}`

const (
	defaultTimeout = 120 * time.Second
	maxTimeout     = 600 * time.Second
	// jobGlance is how long the start of a job waits for it to fail.
	jobGlance = 250 * time.Millisecond
)

// ShellOptions configure the tools that run commands, for one session.
type ShellOptions struct {
	// Dir is the working directory, absolute: relative directories start there.
	Dir    string
	Place  *Place // when not nil, where the session is instead of Dir
	Runner *shell.Runner
	Jobs   *shell.Jobs // the session's; its owner closes it
	// Spill makes a file for output of more than 16 MiB, which gets the first
	// 256 MiB of it. Nil:
	// the middle of such output is lost, and the result says so.
	Spill func(callID string) (w io.WriteCloser, path string, err error)
}

// Shell returns the tools of one session that run commands.
func Shell(o ShellOptions) []tool.Tool {
	return []tool.Tool{
		newRunShell(o),
		newJobList(o.Jobs),
		newJobOutput(o.Jobs),
		newJobStop(o.Jobs),
	}
}

type runShell struct {
	o    ShellOptions
	spec tool.Spec
	room int64 // of a spill, in bytes
}

// maxSpill is how much of one command's output is kept in a file, in bytes.
const maxSpill = 256 << 20

func newRunShell(o ShellOptions) tool.Tool {
	if o.Place == nil {
		o.Place = NewPlace(o.Dir, nil)
	}
	return &runShell{o: o, room: maxSpill, spec: tool.Spec{
		Name: "run_shell_command", Title: "Shell", Description: text(runShellText),
		Input: json.RawMessage(runShellInput), Output: json.RawMessage(runShellOutput),
		Effect: tool.EffectExec, Hint: "bash terminal execute run process git npm docker make test build",
	}}
}

type shellArgs struct {
	Command      string `json:"command"`
	Timeout      int    `json:"timeout"`
	Directory    string `json:"directory"`
	IsBackground bool   `json:"is_background"`
	Description  string `json:"description"`
}

func (t *runShell) Spec() *tool.Spec { return &t.spec }

// Check refuses what no process can be given.
func (t *runShell) Check(c *tool.Call) error {
	var in shellArgs
	switch {
	case json.Unmarshal(c.Args, &in) != nil: // which the body says better
		return nil
	case strings.TrimSpace(in.Command) == "":
		return errors.New("/command: the command is empty")
	case strings.IndexByte(in.Command, 0) >= 0:
		return errors.New("/command: the command contains a NUL byte, which no argument can hold")
	case strings.IndexByte(in.Directory, 0) >= 0:
		return errors.New("/directory: the directory contains a NUL byte")
	}
	return nil
}

// Access lets the commands of a program overlap: keeping dependent ones in order
// is the program's affair (S0-173, S0-174). Of a model's own commands only those
// overlap that are known to change nothing.
func (t *runShell) Access(c *tool.Call) tool.Access {
	var in shellArgs
	_ = json.Unmarshal(c.Args, &in) // an empty command is exclusive, and fails later
	return tool.Access{Outside: true, Dir: t.o.Place.Dir(), Overlap: c.Source == tool.FromProgram || in.IsBackground || changesNothing(in.Command)}
}

func (t *runShell) Run(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
	var in shellArgs
	if err := json.Unmarshal(inv.Call.Args, &in); err != nil {
		return tool.Fail(tool.CodeInvalidArgs, "reading the arguments of run_shell_command: %v", err), nil
	}
	c := shell.Command{Line: in.Command, Timeout: time.Duration(in.Timeout) * time.Millisecond, Confined: true}
	if c.Timeout < 0 || c.Timeout > maxTimeout {
		return tool.Fail(tool.CodeInvalidArgs, "timeout is in milliseconds, from 1 to %d", maxTimeout.Milliseconds()), nil
	}
	dir := in.Directory
	if !filepath.IsAbs(dir) {
		dir = cmp.Or(inv.Access.Dir, t.o.Place.Dir()) + string(filepath.Separator) + dir // not Join, which takes link/.. away before links are followed
	}
	var err error
	if c.Dir, err = follow(dir); err != nil {
		return tool.Fail(tool.CodeFailed, "the directory %s cannot be used: %v", in.Directory, err), nil
	}
	if in.IsBackground {
		return t.start(ctx, inv.Call, c)
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	c.Keep = maxKept
	s := spilling{open: t.o.Spill, call: inv.Call.ID, room: t.room}
	if t.o.Spill != nil {
		c.Spill = s.start
	}
	c.Output = func(b []byte) { inv.Progress(msg.TextPart(string(b))) }
	res, err := t.o.Runner.Run(ctx, c)
	s.close(&res)
	if err != nil && res.Duration == 0 { // it never ran
		return refused(err), nil
	}
	return shellResult(res, err, c.Timeout, inv.Call.Source == tool.FromProgram, &s), nil
}

// refused is the result of a command that could not be started.
func refused(err error) tool.Result {
	var bad *shell.CommandError
	if errors.As(err, &bad) {
		return tool.Fail(tool.CodeFailed, "The command was not run: %v.", err)
	}
	return tool.Fail(tool.CodeFailed, "The command could not be started: %v.", err)
}

// start starts a job and waits a moment, since what fails mostly fails at once.
func (t *runShell) start(ctx context.Context, call *tool.Call, c shell.Command) (tool.Result, error) {
	job, err := t.o.Jobs.Start(c, call.ID)
	if err != nil {
		return refused(err), nil
	}
	out, err := t.o.Jobs.Output(ctx, job.ID, 0, jobGlance)
	if err != nil { // cancelled meanwhile: the job is the session's and goes on
		out = shell.JobOutput{Job: job}
	}
	r := jobResult(out, 0)
	if out.Running {
		r.Parts = append(r.Parts, msg.TextPart(fmt.Sprintf("[Started in the background as job_id %s. job_output {job_id, wait?: ms} shows what it prints and, with wait, waits for its end; job_stop {job_id} ends it.]", job.ID)))
	}
	return r, nil
}

// spilling keeps the whole of a long output in a file, or its beginning if it
// is longer than there is room for.
type spilling struct {
	open func(string) (io.WriteCloser, string, error)
	call string
	room int64 // in the file
	file io.WriteCloser
	path string
	kept int64
	lost bool // what there was no room for
}

func (s *spilling) start() (w io.Writer, err error) {
	s.file, s.path, err = s.open(s.call)
	return s, err
}

// Write takes everything, so that the command goes on, and keeps what there is
// room for.
func (s *spilling) Write(b []byte) (int, error) {
	if s.lost {
		return len(b), nil
	}
	keep := b
	if left := s.room - s.kept; int64(len(b)) > left {
		for keep = b[:left]; len(keep) > 0 && !utf8.RuneStart(b[len(keep)]); { // no character is cut in two
			keep = keep[:len(keep)-1]
		}
		s.lost = true
	}
	s.kept += int64(len(keep))
	if _, err := s.file.Write(keep); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (s *spilling) close(res *shell.Result) {
	if s.file == nil {
		return
	}
	if err := s.file.Close(); err != nil {
		res.Spilled, res.SpillErr = false, err
	}
	if !res.Spilled {
		s.path, s.lost = "", false
	}
}

// shellResult puts into words how a command ended. What it printed comes first
// and the exit status last, where no budget cuts it off (BUG-OT-03). A program
// gets nothing but the output of a command that went well, so that it can use
// it as it is.
func shellResult(res shell.Result, failed error, limit time.Duration, program bool, s *spilling) tool.Result {
	notes := leftBehind(res)
	if s.lost {
		notes = append(notes, fmt.Sprintf("only the first %s of the %s of output are in %s; redirect it to a file to have all of it", size(s.kept), size(res.Total), s.path))
	}
	code := ""
	switch {
	case failed != nil:
		code = tool.CodeFailed
		notes = append(notes, failed.Error())
	case res.Cancelled:
		code = tool.CodeAborted
		notes = append(notes, "cancelled and ended")
	case res.TimedOut:
		code = tool.CodeTimeout
		notes = append(notes, fmt.Sprintf("timed out after %d ms and ended; pass a greater timeout (at most %d), or is_background: true",
			limit.Milliseconds(), maxTimeout.Milliseconds()))
	case res.Interrupted:
		code = tool.CodeFailed
		notes = append(notes, "ended, since "+res.Waiting)
	case res.Waiting != "":
		notes = append(notes, "hint: "+res.Waiting)
	}
	if res.Confined != "" {
		notes = append(notes, "hint: "+res.Confined)
	}
	status := exitText(res)
	if len(notes) > 0 || !program || status != "exit code 0" {
		notes = append(notes, status)
	}
	r := tool.Text(withNotes(res.Output, notes))
	if code != "" {
		r = tool.Fail(code, "%s", withNotes(res.Output, notes))
	}
	r.File, r.Truncated = s.path, res.Omitted > 0
	r.Data = encodeData(struct {
		ExitCode int    `json:"exitCode"`
		Signal   string `json:"signal,omitempty"`
	}{res.ExitCode, res.Signal})
	return r
}

// leftBehind names what a command did not end by itself, and what was lost.
func leftBehind(res shell.Result) (notes []string) {
	if res.LeftoverCount > 0 && !res.TimedOut && !res.Cancelled && !res.Interrupted {
		notes = append(notes, fmt.Sprintf("killed what it left running: %s; is_background: true is for what should go on",
			processes(res.Leftovers, res.LeftoverCount)))
	}
	if len(res.Alive) > 0 {
		notes = append(notes, "could not be killed, as another user's or stuck in the kernel: "+processes(res.Alive, len(res.Alive)))
	}
	if res.HeldOpen {
		notes = append(notes, "a process outside the command still holds its output open; what that prints from now on is not shown")
	}
	if res.SpillErr != nil {
		notes = append(notes, fmt.Sprintf("the whole output could not be kept: %v", res.SpillErr))
	}
	return notes
}

// processes names up to five processes of count.
func processes(list []shell.Process, count int) string {
	var names []string
	for _, p := range list[:min(len(list), 5)] {
		names = append(names, fmt.Sprintf("%d %s", p.PID, p.Command))
	}
	if more := count - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

func exitText(res shell.Result) string {
	if res.Signal != "" {
		return "killed by " + res.Signal
	}
	return fmt.Sprintf("exit code %d", res.ExitCode)
}

// withNotes adds notes in brackets, each on a line.
func withNotes(output string, notes []string) string {
	if len(notes) == 0 {
		return output
	}
	var b strings.Builder
	b.WriteString(output)
	for _, n := range notes {
		if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
			b.WriteByte('\n')
		}
		b.WriteString("[" + n + "]\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func encodeData(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // numbers and valid strings only
	}
	return b
}

// plainCommands and plainGit are commands that change nothing, whatever their
// arguments are, as long as the shell sees nothing in them.
var (
	plainCommands = []string{"ls", "cat", "pwd", "head", "tail", "wc", "stat", "file", "du", "df", "which", "uname", "whoami", "true"}
	plainGit      = []string{"status", "log", "diff", "show", "rev-parse", "ls-files", "blame", "describe"}
)

// changesNothing says yes only to one simple command of the lists above,
// without quotes, expansions, redirections or anything else for a shell. It
// decides what may overlap, never what is allowed.
func changesNothing(line string) bool {
	for _, r := range line {
		plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(" ./_-=:@^,+%", r)
		if !plain {
			return false
		}
	}
	words := strings.Fields(line)
	switch {
	case len(words) == 0:
		return false
	case slices.Contains(plainCommands, words[0]):
		return true
	case words[0] != "git" || len(words) < 2 || !slices.Contains(plainGit, words[1]):
		return false
	}
	for _, w := range words[2:] {
		if strings.HasPrefix(w, "--ou") || strings.HasPrefix(w, "--ex") { // --output writes, --ext-diff runs
			return false
		}
	}
	return true
}
