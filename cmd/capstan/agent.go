package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"capstan/internal/agent"
	"capstan/internal/app"
	"capstan/internal/llm"
	"capstan/internal/msg"
	"capstan/internal/tool"
	"capstan/internal/ui/headless"
)

// agentFlags are the flags of capstan itself.
type agentFlags struct {
	session sessionFlags

	prompt                    once
	model, mode               string
	outputFormat, inputFormat string
	partial                   bool
	resume                    string
	goOn                      bool // --continue

	turns, sessionTurns  number // two names of one limit
	calls, tokens        number
	wall                 string
	allowed, excluded    []string
	promptTool           string // --permission-prompt-tool
	system, appendSystem string
	schema               string

	cmd *cobra.Command // that was called
}

func newAgent() *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use:   "capstan",
		Short: "A code-mode agent runtime",
		Long: `Capstan gives a language model tools to work with. In Code Mode the model writes
one short JavaScript program that calls the real tools, and only what it prints
comes back.

With -p, or with a task on standard input, it works on the task until it is done
and prints the answer. Nobody is asked anything: a call that needs approval is
denied, and the denial says what would allow it. A program that runs it may answer
instead (--permission-prompt-tool stdio).

Exit codes: 0 finished, 1 failed, 2 usage, 3 finished, but a call was denied
because nobody could be asked, 53 the limit of turns, 55 the limit of calls,
tokens or time, 130 interrupted.`,
		Example: `  OPENAI_BASE_URL=http://127.0.0.1:11434/v1 capstan -p "what does this project do?" --model openai/qwen3
  git diff | capstan -p "write a commit message for this" --model openai/gpt-5
  capstan -p "fix the failing test" --approval-mode auto-edit --allowed-tools 'Bash(go test:*)'
  capstan exec -e 'const r = await tools.glob({pattern: "**/*.go"}); text(r.structuredContent.files.length)'
  capstan doctor`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          f.arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.cmd = cmd
			return f.run(cmd.Context())
		},
	}
	f.register(cmd)
	return cmd
}

func (f *agentFlags) register(cmd *cobra.Command) {
	f.session.register(cmd)
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.VarP(&f.prompt, "prompt", "p", "the task; what standard input holds comes before it")
	fl.StringVar(&f.model, "model", "", "FAMILY/NAME, or PROVIDER/NAME of the settings")
	fl.StringVar(&f.mode, "mode", "", modeHelp)
	f.session.registerAgent(cmd)
	fl.StringVar(&f.outputFormat, "output-format", "text", "text, json or stream-json")
	fl.StringVar(&f.inputFormat, "input-format", "text", "text, or stream-json: a prompt on each line of standard input")
	fl.BoolVar(&f.partial, "include-partial-messages", false, "with stream-json: the pieces of answers as they arrive")
	fl.BoolVarP(&f.goOn, "continue", "c", false, "go on with the newest session of this workspace")
	fl.StringVarP(&f.resume, "resume", "r", "", "go on with the session whose id begins so")
	fl.Var(&f.turns, "max-turns", "end the run after so many answers of the model")
	fl.Var(&f.sessionTurns, "max-session-turns", "the same as --max-turns")
	_ = fl.MarkHidden("max-session-turns")
	fl.Var(&f.calls, "max-tool-calls", "end the run after so many calls, those of programs counted")
	fl.Var(&f.tokens, "max-session-tokens", "end the run after so many tokens, in and out")
	fl.StringVar(&f.wall, "max-wall-time", "", "end the run after so long, such as 90s or 10m")
	fl.StringArrayVar(&f.allowed, "allowed-tools", nil, "rules for what runs without asking, such as 'Edit,Bash(go test:*)'; may be repeated")
	fl.StringArrayVar(&f.excluded, "exclude-tools", nil, "tools that the model does not get; may be repeated")
	fl.StringVar(&f.promptTool, "permission-prompt-tool", "", "stdio: ask whoever reads the stream about calls that need approval; needs stream-json both ways")
	fl.StringVar(&f.system, "system-prompt", "", "in place of what Capstan says of itself")
	fl.StringVar(&f.appendSystem, "append-system-prompt", "", "added to the system prompt")
	fl.StringVar(&f.schema, "json-schema", "", "JSON Schema of the answer, or @FILE")
}

// arguments refuses what is neither a flag nor a command.
func (f *agentFlags) arguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usage("unknown command %q for %q%s (a task is given with -p \"…\")", args[0], cmd.CommandPath(), didYouMean(cmd.SuggestionsFor(args[0])))
}

// run leads one conversation.
func (f *agentFlags) run(outer context.Context) error {
	format, err := headless.ParseFormat(f.outputFormat)
	if err != nil {
		return usage("--output-format: %w", err)
	}
	ctx, end := context.WithCancelCause(outer)
	defer end(nil)
	quietSignals()
	stdout := newPatient(outer, os.Stdout)
	defer stdout.close()
	out := headless.New(headless.Options{Out: stdout, Format: format, Partial: f.partial, Failed: func(err error) { end(outputError(err)) }})
	opt, ao, err := f.options(format)
	if err == nil && f.promptTool != "" {
		opt.Approver, opt.Consult = out, out.Consult
	}
	if err == nil {
		err = f.converse(ctx, opt, ao, out, stdout)
	}
	if e, ok := errors.AsType[*exitError](err); err != nil && format != headless.Text && (!ok || e.err != nil) {
		reason := agent.Failed
		if ok && e.code == exitInterrupted {
			reason = agent.Interrupted
		}
		out.Result(&agent.Outcome{Reason: reason, Err: err}) // who reads JSON gets also this as JSON (BUG-AH-06)
	}
	return err
}

// options checks the flags.
func (f *agentFlags) options(format headless.Format) (opt app.Options, ao app.AgentOptions, err error) {
	if err := noValue(f.cmd); err != nil {
		return opt, ao, err
	}
	if f.inputFormat != "text" && f.inputFormat != "stream-json" {
		return opt, ao, usage("--input-format %q: want text or stream-json", f.inputFormat)
	}
	if f.partial && format != headless.Stream {
		return opt, ao, usage("--include-partial-messages needs --output-format stream-json")
	}
	if err := f.prompting(format); err != nil {
		return opt, ao, err
	}
	ao = app.AgentOptions{Model: f.model, Continue: f.goOn, Resume: f.resume, Headless: f.promptTool == "", Version: version()}
	if ao.Limits, err = f.limits(); err != nil {
		return opt, ao, err
	}
	if f.there("system-prompt") {
		ao.System = &f.system
	}
	if f.there("append-system-prompt") {
		ao.Append = &f.appendSystem
	}
	if opt, err = f.session.options(); err != nil {
		return opt, ao, err
	}
	if f.mode != "" {
		if opt.Mode, err = tool.ParseMode(f.mode); err != nil {
			return opt, ao, usage("--mode: %w", err)
		}
	}
	if f.schema != "" {
		if opt.Structured, err = readSchema(f.schema); err != nil {
			return opt, ao, err
		}
	}
	opt.Allow, opt.Exclude = splitLists(f.allowed), splitLists(f.excluded)
	return opt, ao, nil
}

// prompting checks whether the client can be asked.
func (f *agentFlags) prompting(format headless.Format) error {
	switch {
	case !f.there("permission-prompt-tool"):
		return nil
	case f.promptTool != "stdio":
		return usage("--permission-prompt-tool %q: want stdio", f.promptTool)
	case format != headless.Stream || f.inputFormat != "stream-json":
		return usage("--permission-prompt-tool stdio needs --output-format stream-json and --input-format stream-json: the questions and the answers are lines of them")
	}
	return nil
}

func (f *agentFlags) there(flag string) bool { return f.cmd.Flags().Changed(flag) }

// limits reads those of the run.
func (f *agentFlags) limits() (l agent.Limits, err error) {
	for _, v := range []struct {
		flag  string
		value *number
	}{{"max-turns", &f.turns}, {"max-session-turns", &f.sessionTurns}, {"max-tool-calls", &f.calls}, {"max-session-tokens", &f.tokens}} {
		if err := v.value.read("--"+v.flag, f.there(v.flag)); err != nil {
			return l, err
		}
	}
	if f.turns.n > 0 && f.sessionTurns.n > 0 && f.turns.n != f.sessionTurns.n {
		return l, usage("--max-turns %d and --max-session-turns %d mean the same: give one of them", f.turns.n, f.sessionTurns.n)
	}
	l = agent.Limits{Turns: max(f.turns.n, f.sessionTurns.n), Calls: f.calls.n, Tokens: f.tokens.n}
	l.Wall, err = duration("--max-wall-time", f.wall)
	return l, err
}

// converse runs prompts until there are no more.
func (f *agentFlags) converse(ctx context.Context, opt app.Options, ao app.AgentOptions, out *headless.Writer, stdout *patient) error {
	var first []msg.Part
	err := giveWay(ctx, func() (err error) {
		first, err = f.firstPrompt()
		return err
	})
	if ctx.Err() != nil && err != nil {
		return &exitError{exitInterrupted, errNoTask}
	}
	if err != nil {
		return err
	}
	opt.Notice = warn
	s, err := app.Open(opt)
	if err != nil {
		return opening(err)
	}
	defer s.Close()
	for _, w := range s.Warnings {
		fmt.Fprintf(stderr, "capstan: warning: %s\n", s.Redact(w))
	}
	ao.Emit = func(e agent.Event) {
		notice(s, e)
		out.Event(e)
	}
	c, err := s.Agent(ctx, ao)
	if err != nil {
		return opening(err)
	}
	for _, n := range c.Notes {
		fmt.Fprintf(stderr, "capstan: note: %s\n", s.Redact(n))
	}
	out.Describe(headless.Session{ID: c.ID, Dir: opt.Dir, Model: c.Model.String(), Mode: s.Mode(), ApprovalMode: s.ApprovalMode(), Version: ao.Version, Structured: opt.Structured != nil, Tools: func() []string { return names(s.View()) }, Skills: s.Skills, Agents: func() []string { return agentNames(s) }, Servers: func() []headless.Server { return serverStates(s) }})
	ended := &runs{session: s}
	bad := f.serve(ctx, s, c, &shown{out, stdout, ao.Limits.Wall}, first, ended)
	cause := context.Cause(ctx) // what comes later does not undo what has finished
	if err := out.Err(); err != nil {
		cause = outputError(err)
	}
	for _, job := range s.EndJobs() {
		fmt.Fprintf(stderr, "capstan: Ended with the run: %s\n", job)
	}
	code := ended.conclude(c)
	if err := c.Close(); err != nil { // no error of converse: the run has been shown as JSON, and is one object
		fmt.Fprintf(stderr, "capstan: %s\n", s.Redact(fmt.Sprintf("recording the end of the session: %v", err)))
		return &exitError{code: exitFailed}
	}
	return f.ending(code, cause, bad, ended)
}

// ending is how the command ends after its runs, of which the last one gives
// code. cause is why their context or their output ended, if one did.
func (f *agentFlags) ending(code int, cause error, bad int, ended *runs) error {
	switch {
	case errors.Is(cause, headless.ErrClosed):
		code = exitInterrupted
	case errors.Is(cause, errLate):
		return &exitError{exitLimit, errLate}
	case errors.Is(cause, errOutput):
		if !ended.output {
			return failed(cause) // nothing was said of it yet
		}
		code = exitFailed
	case cause != nil && ended.ended == 0:
		return &exitError{exitInterrupted, errNoTask}
	case cause != nil && code == exitOK && f.inputFormat != "text": // it waited for a prompt
		code = exitInterrupted
	case code == exitOK && bad > 0:
		code = exitFailed
	case ended.ended == 0:
		return usage("there was no prompt on standard input: each is a line {\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"…\"}}")
	}
	if code == exitOK && ended.denied { // all went well but for that
		code = exitUnasked
	}
	if code != exitOK {
		return &exitError{code: code}
	}
	return nil
}

// errNoTask is why the command ends that is interrupted before anything was asked.
var errNoTask = errors.New("interrupted while it waited for a task")

// errOutput is the error of output that cannot be written although somebody
// wants it.
var errOutput = errors.New("writing the output")

// outputError says why a run ends whose output failed: whoever left is no error
// of ours, a full disk is.
func outputError(err error) error {
	switch {
	case errors.Is(err, errLate):
		return errLate
	case errors.Is(err, errGone) || nobodyReads(err):
		return headless.ErrClosed
	}
	return fmt.Errorf("%w: %w", errOutput, err)
}

func names(v *tool.View) []string {
	var out []string
	for _, d := range v.Declarations() {
		out = append(out, d.Name)
	}
	return out
}

func agentNames(s *app.Session) (names []string) {
	for _, x := range s.Agents() {
		names = append(names, x.Name)
	}
	return names
}

func serverStates(s *app.Session) []headless.Server {
	var list []headless.Server
	for _, st := range s.ServerStates() {
		list = append(list, headless.Server{Name: st.Name, Status: st.State})
	}
	return list
}

// shown is where runs are shown, and how long each may take with that.
type shown struct {
	*headless.Writer
	stdout *patient
	wall   time.Duration // 0: without end
}

// serve answers the prompts, and counts the lines of input that were none.
func (f *agentFlags) serve(ctx context.Context, s *app.Session, c *app.Conversation, out *shown, first []msg.Part, ended *runs) (bad int) {
	run := func(ctx context.Context, parts []msg.Part) *agent.Outcome {
		out.stdout.waitFor(out.wall)
		o := c.Run(ctx, parts)
		if o.Err != nil {
			o.Err = c.Model.Explain(o.Err)
		}
		return o
	}
	if f.inputFormat == "text" {
		out.Begin()
		o := run(ctx, first)
		out.Result(o)
		ended.add(o)
		return 0
	}
	done := func(o *agent.Outcome) {
		out.stdout.waitFor(0) // it waits for a prompt now
		ended.add(o)
	}
	out.Serve(ctx, os.Stdin, first, headless.Conversation{Run: run, Queue: c.Queue, Ended: done, SetMode: s.SetApprovalMode, Bad: func(err error) {
		bad++
		fmt.Fprintf(stderr, "capstan: %v\n", err)
	}})
	return bad
}

// notice tells a person what does not go as it should.
func notice(s *app.Session, e agent.Event) {
	text := ""
	switch e := e.(type) {
	case agent.Noticed:
		text = e.Text
	case agent.Delegated:
		notice(s, e.Event)
	case agent.Streamed:
		switch e := e.Event.(type) {
		case llm.Warning:
			text = "warning: " + e.Text
		case llm.Retry:
			text = fmt.Sprintf("%s; trying again in %v", oneLine(strings.Split(e.Err.Error(), "\n")[0], 300), e.After.Round(100*time.Millisecond))
		}
	}
	if text != "" {
		fmt.Fprintf(stderr, "capstan: %s\n", s.Redact(text))
	}
}

func exitCode(o *agent.Outcome) int {
	switch o.Reason {
	case agent.Finished:
		return exitOK
	case agent.MaxTurns:
		return exitTurns
	case agent.MaxCalls, agent.MaxTokens, agent.MaxWall:
		return exitLimit
	case agent.Interrupted:
		return exitInterrupted
	}
	return exitFailed
}

// maxSchema bounds the schema of an answer, in bytes.
const maxSchema = 1 << 20

// readSchema reads the schema of the answer: the text itself, or a file.
func readSchema(arg string) (json.RawMessage, error) {
	text := []byte(arg)
	if name, ok := cutFile(arg); ok {
		info, err := os.Stat(name)
		if err == nil && (!info.Mode().IsRegular() || info.Size() > maxSchema) {
			err = fmt.Errorf("%s is no regular file of at most %d bytes", name, maxSchema)
		}
		if err == nil {
			text, err = os.ReadFile(name)
		}
		if err != nil {
			return nil, usage("--json-schema: %w (a schema begins with {, a file may be written as @FILE)", err)
		}
	}
	var schema map[string]json.RawMessage
	err := json.Unmarshal(text, &schema)
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return nil, usage("--json-schema: the schema is no JSON object: at byte %d: %w", e.Offset, err)
	}
	if err != nil || schema == nil {
		return nil, usage("--json-schema: the schema is no JSON object: it begins with %s", oneLine(strings.TrimSpace(string(text[:min(len(text), 40)])), 20))
	}
	return text, nil
}
