// Command capstan is a code-mode agent runtime. This package holds the command
// line only: flags, what goes to stdout and stderr, and exit codes. Package app
// puts the parts together.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"capstan/internal/app"
)

// The exit codes (docs/cli.md).
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnasked     = 3
	exitTurns       = 53
	exitLimit       = 55
	exitInterrupted = 130
)

// exitError ends the process with a code. Its text, when it has one, has not
// been printed yet.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usage(format string, a ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, a...)}
}

func failed(err error) error { return &exitError{exitFailed, err} }

// opening is the error of a session that could not be opened.
func opening(err error) error {
	if _, ok := errors.AsType[*app.UsageError](err); ok {
		return &exitError{exitUsage, err}
	}
	return failed(err)
}

func main() { os.Exit(run()) }

func run() int {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process, whatever it is doing
	root, running := newRoot(), false
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if cmd != root { // which shows such errors as its output format has it
			if err := noValue(cmd); err != nil {
				return err
			}
		}
		running = true
		return nil
	}
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	code := exitUsage // what cobra finds wrong before a command runs is how it was called
	if running {
		code = exitFailed
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		code = e.code
	}
	if text := err.Error(); text != "" {
		fmt.Fprintf(stderr, "capstan: %s\n", text)
		if code == exitUsage {
			fmt.Fprintln(stderr, "Try 'capstan --help', or --help after a command.")
		}
	}
	return code
}

func newRoot() *cobra.Command {
	root := newAgent()
	root.AddCommand(newExec(), newTools(), newAgents(), newMCP(), newSessions(), newDoctor(), newTrust())
	root.InitDefaultCompletionCmd()
	root.SetFlagErrorFunc(flagError)
	root.SuggestionsMinimumDistance = suggestWithin
	for _, c := range root.Commands() {
		if c.HasSubCommands() { // without one of them there is nothing to do
			c.Args, c.RunE, c.SuggestionsMinimumDistance = cobra.ArbitraryArgs, wantSubcommand, suggestWithin
		}
	}
	return root
}

// wantSubcommand answers a command that was given none of its subcommands.
func wantSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return usage("unknown command %q for %q%s", args[0], cmd.CommandPath(), didYouMean(cmd.SuggestionsFor(args[0])))
}

// version is the module's version and the commit it was built from, as far as
// the build knows them.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v += " " + s.Value
		}
	}
	return v
}
