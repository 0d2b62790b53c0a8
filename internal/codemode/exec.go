// Package codemode is Code Mode: the exec tool, whose argument is a program
// that calls the other tools, and the text that tells a model about it. A call
// that a program makes is an ordinary call: exec maps its JavaScript name to
// the tool's name and hands it to the executor that runs exec itself. What may
// be called is not decided here (package tool) and neither is what is allowed
// (package sched).
package codemode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"capstan/internal/msg"
	"capstan/internal/sandbox"
	"capstan/internal/tool"
	"capstan/internal/typescript"
)

// Options configure Exec.
type Options struct {
	Runner sandbox.Runner
	Limits sandbox.Limits // zero: the defaults
	// Servers are the names of the configured MCP servers, for the
	// description: it names them whatever they answer.
	Servers []string
	// Registry is where the tools are while a program runs: a server may answer
	// after it has begun. Nil: they are those of the view that admitted exec.
	Registry *tool.Registry
	// ServersOf names the configured servers that a property of `tools` may belong
	// to, which is no tool's; several when their names are written alike in
	// JavaScript. Await returns when those servers, or every one when none is named,
	// have answered or had their time, or ctx ended, with a line for each that is
	// missing. Nil: nothing is waited for.
	ServersOf func(js string) []string
	Await     func(ctx context.Context, servers ...string) (missing []string)
	// Changing says whether a server has other tools by now than the registry
	// knows of; nil when none can.
	Changing func(server string) bool
	// Jobs returns a line for each background job that calls below the given
	// call id started and that still runs (ruling 9). Nil: there are no jobs.
	Jobs func(callID string) []string
}

// Exec is the tool that runs programs. It keeps nothing between two calls
// (S0-022 to S0-029).
type Exec struct {
	opt  Options
	spec tool.Spec
	docs docs
}

// NewExec returns the exec tool.
func NewExec(o Options) *Exec {
	return &Exec{opt: o, spec: tool.Spec{
		Name:  tool.ExecName,
		Title: "Exec",
		// What a model is told is made by Describe, for its view.
		Description: "Runs a JavaScript program that calls the other tools, and returns what it prints.",
		Class:       tool.Gateway,
		Effect:      tool.EffectNone, // each of its calls is judged by itself
		Waits:       true,
		Input: json.RawMessage(`{"type":"object","properties":{` +
			`"source":{"type":"string"},` +
			`"description":{"type":"string","description":"For the user: what it does, in a few words."}},` +
			`"required":["source"],"additionalProperties":false}`),
	}}
}

// Spec implements tool.Tool.
func (x *Exec) Spec() *tool.Spec { return &x.spec }

// Outcome is how a program ended, for surfaces. It is the Display of exec's
// result.
type Outcome struct {
	Err    *sandbox.Error // nil when it finished
	Source string         // the program that ran, which Err's position refers to
	Usage  sandbox.Usage
	// Printed is what the program printed, before any budget.
	Printed []msg.Part
	Notes   []string // what is to be known beside that, less the error
	// Denied says that the program failed for a denial that nobody could be
	// asked about, and that it did not catch.
	Denied bool
}

// Run implements tool.Tool. What the program printed is in the result whether
// it finished or not. A program that fails is a PROGRAM_ERROR.
func (x *Exec) Run(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
	var args struct{ Source string }
	if err := json.Unmarshal(inv.Call.Args, &args); err != nil {
		return tool.Fail(tool.CodeInvalidArgs, "reading the arguments of exec: %v", err), nil
	}
	h := &host{ctx: ctx, inv: inv, exec: x}
	out := &Outcome{}
	err := x.runForgiving(ctx, args.Source, h, out)
	h.replies.Wait() // nothing of this call outlives it
	if err != nil && ctx.Err() != nil {
		return cancelled(h, out), nil
	}
	var fault *sandbox.Error
	if err != nil && !errors.As(err, &fault) {
		fault = &sandbox.Error{Kind: sandbox.KindStartup, Name: "Error", Message: err.Error()}
	}
	out.Err = fault
	out.Denied = fault != nil && h.unasked(fault.CallID) || h.lostDenial(out.Usage.Unhandled)
	return x.result(h, out), nil
}

// runForgiving runs the source. A Markdown fence around it is taken away at
// once: as JavaScript it parses, as template literals that are called. What does
// not parse as JavaScript, and so has not run, is tried again without its types.
func (x *Exec) runForgiving(ctx context.Context, source string, h *host, out *Outcome) error {
	out.Source = source
	limits := x.opt.Limits.WithDefaults()
	if len(source) > limits.Source { // S0-141: before any reading of it could make it shorter
		return &sandbox.Error{Kind: sandbox.KindSyntax, Name: "SyntaxError", Message: fmt.Sprintf("the program has %d bytes; at most %d are allowed", len(source), limits.Source)}
	}
	source, _ = unfence(source)
	run := func(source string) (fault *sandbox.Error, err error) {
		out.Usage, err = x.opt.Runner.Run(ctx, sandbox.Program{Source: source, Names: h.names(), Limits: limits}, h)
		errors.As(err, &fault)
		return fault, err
	}
	var plain *sandbox.Error
	if !needsTypes(source) {
		fault, err := run(source)
		if fault == nil || fault.Kind != sandbox.KindSyntax {
			return err
		}
		plain = fault
	}
	read, err := typescript.Parse(ctx, source)
	switch {
	case ctx.Err() != nil:
		return err
	case err != nil && plain == nil:
		return &sandbox.Error{Kind: sandbox.KindSyntax, Name: "SyntaxError", Message: fmt.Sprintf("it has type arguments, and its types could not be taken away: %v", err)}
	case err != nil:
		plain.Message += fmt.Sprintf(" (it was not tried as TypeScript: %v)", err)
		return plain
	case !read.OK:
		return notUnderstood(source, plain, read.Fault, run)
	}
	fault, err := run(read.Code)
	if fault != nil && fault.Line > 0 {
		fault.Line, fault.Column = read.Position(fault.Line, fault.Column)
	}
	if fault != nil && fault.Kind == sandbox.KindSyntax && plain != nil {
		return plain // what is left of it is no better: the author's own text is what counts
	}
	return err
}

// notUnderstood returns the syntax error of a source that is neither JavaScript
// nor TypeScript, with what the parser knows about it.
func notUnderstood(source string, plain *sandbox.Error, known typescript.Fault, run func(string) (*sandbox.Error, error)) error {
	if plain == nil { // it has type arguments, or what looks like them
		fault, err := run(source)
		if fault == nil || fault.Kind != sandbox.KindSyntax {
			return err
		}
		plain = fault
	}
	if known.Text != "" {
		plain.Message, plain.Line, plain.Column = known.Text, known.Line, known.Column
	}
	return plain
}

// cancelled is the result of a program that was ended from outside. What it
// printed until then is not lost.
func cancelled(h *host, out *Outcome) tool.Result {
	r := tool.Fail(tool.CodeAborted, "the program was cancelled")
	r.Display = out
	printed := h.parts()
	out.Printed = slices.Clip(printed)
	if done := h.changed(); done != "" {
		out.Notes = []string{"[Done before, and not undone: " + done + ".]"}
		printed = append(printed, msg.TextPart(out.Notes[0]))
	}
	r.Parts = append(printed, r.Parts...)
	return r
}

// result is what the model reads: what was printed, then what has to be known
// about how it ended.
func (x *Exec) result(h *host, out *Outcome) tool.Result {
	r := tool.Result{Status: tool.Success, Parts: h.parts(), Display: out}
	out.Printed = slices.Clip(r.Parts)
	out.Notes = x.notes(h, out)
	after := out.Notes
	if out.Err != nil {
		r.Status, r.Code = tool.Failed, tool.CodeProgramError
		after = append([]string{ErrorText(out.Err, out.Source)}, after...)
	}
	if len(after) > 0 {
		r.Parts = append(r.Parts, msg.TextPart(strings.Join(after, "\n")))
	}
	return r
}

// notes are what the author has to know beside the output and the error.
func (x *Exec) notes(h *host, out *Outcome) []string {
	var notes []string
	if done := h.changed(); done != "" && out.Err != nil {
		notes = append(notes, "[Done before, and not undone: "+done+".]")
	}
	if missing := h.absent(); missing != "" {
		notes = append(notes, "[Not in ALL_TOOLS: "+missing+"]")
	}
	if out.Err == nil && len(out.Printed) == 0 {
		notes = append(notes, "[The program finished and printed nothing. Print with text(value), or return a value.]")
	}
	if n := out.Usage.UnawaitedCount; n > 0 {
		notes = append(notes, unawaited(h, out.Usage.Unawaited, n))
	}
	if n := out.Usage.UnhandledCount; n > 0 {
		notes = append(notes, unhandled(out.Usage.Unhandled, n))
	}
	if x.opt.Jobs != nil {
		if jobs := x.opt.Jobs(h.inv.Call.ID); len(jobs) > 0 {
			notes = append(notes, "[Still running in the background: "+strings.Join(jobs, "; ")+".]")
		}
	}
	return notes
}

// unawaited names the calls that ended with the program because nothing waited
// for them (S0-147).
func unawaited(h *host, calls []sandbox.Unawaited, n int) string {
	const most = 5
	var names []string
	for _, c := range calls[:min(most, len(calls))] {
		names = append(names, h.canonical(c.Name))
	}
	list := strings.Join(names, ", ")
	if n > len(names) {
		list += ", …"
	}
	return fmt.Sprintf("[%d call(s) were not awaited and have been cancelled: %s. Put await in front of them, or await Promise.all([…]).]", n, list)
}

// unhandled says which failures went unseen: without it a call that was refused
// and that nothing awaited would look like one that worked.
func unhandled(failures []string, n int) string {
	const most = 5
	list := strings.Join(failures[:min(most, len(failures))], "; ")
	if n > most {
		list += "; …"
	}
	return fmt.Sprintf("[%d failure(s) that nothing handled: %s. Put await in front of what may fail, or catch it.]", n, list)
}
