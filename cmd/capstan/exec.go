package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"capstan/internal/app"
	"capstan/internal/sandbox"
	"capstan/internal/tool"
	"capstan/internal/ui/terminal"
)

type execFlags struct {
	session sessionFlags
	source  once
	json    bool
	trace   bool
	wall    string // --timeout
	timeout time.Duration
}

func newExec() *cobra.Command {
	var f execFlags
	cmd := &cobra.Command{
		Use:   "exec [FILE | - | -e SOURCE]",
		Short: "Run one Code Mode program against the real tools; no model",
		Long: `Runs a JavaScript program in the sandbox. It calls tools as
await tools.NAME(args) and prints with text(value); what it prints goes to stdout
and everything else to stderr. See 'capstan tools types' for what it can call.

Exit codes: 0 finished, 1 failed or timed out, 2 usage, 3 a call was denied
because nobody could be asked and the program did not catch it, 130 interrupted.`,
		Example: `  capstan exec -e 'text((await tools.read_file({file_path: "go.mod"})).output)'
  capstan exec --trace program.js
  echo 'return 6 * 7' | capstan exec -
  capstan exec --approval-mode auto-edit fix.js`,
		Args: arguments(0, 1, "one FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			var err error
			if f.timeout, err = duration("--timeout", f.wall); err != nil {
				return err
			}
			if f.timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeoutCause(ctx, f.timeout, errTimeout)
				defer cancel()
			}
			var source string
			err = giveWay(ctx, func() (err error) {
				source, err = f.read(cmd, args)
				return err
			})
			if err != nil {
				return err
			}
			return f.run(ctx, source)
		},
	}
	f.session.register(cmd)
	cmd.Flags().VarP(&f.source, "eval", "e", "the program itself")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object with output, calls and limits")
	cmd.Flags().BoolVar(&f.trace, "trace", false, "print the tree of nested calls with timings to stderr")
	cmd.Flags().StringVar(&f.wall, "timeout", "", "wall time of the run, such as 30s or 10m; none by default")
	return cmd
}

// maxSource is read of a source so that one that is too large is told from one
// that never ends. The sandbox has the limit itself.
const maxSource = 1 << 20

func (f *execFlags) read(cmd *cobra.Command, args []string) (string, error) {
	inline := cmd.Flags().Changed("eval")
	if err := f.source.read("-e"); err != nil {
		return "", err
	}
	switch {
	case inline && len(args) > 0:
		return "", usage("exec takes a file or -e SOURCE, not both")
	case inline:
		return f.source.text, nil
	case len(args) == 0:
		return "", usage("exec needs a program: a FILE, - for standard input, or -e SOURCE")
	}
	in := io.Reader(os.Stdin)
	if args[0] != "-" {
		file, err := os.Open(args[0])
		if err != nil {
			return "", usage("reading the program: %w", err)
		}
		defer file.Close()
		if info, err := file.Stat(); err == nil && info.IsDir() {
			return "", usage("reading the program: %s is a directory", args[0])
		}
		in = file
	}
	src, err := io.ReadAll(io.LimitReader(in, maxSource+1))
	switch {
	case err != nil:
		return "", usage("reading the program: %w", err)
	case len(src) > maxSource:
		return "", usage("reading the program: it is longer than %d bytes; a program has at most %d", maxSource, sandbox.DefaultLimits().Source)
	case !utf8.Valid(src):
		return "", usage("reading the program: it is not valid UTF-8")
	}
	return string(bytes.TrimPrefix(src, []byte("\ufeff"))), nil
}

func (f *execFlags) run(outer context.Context, source string) (err error) {
	opt, err := f.session.options()
	if err != nil {
		return err
	}
	opt.Program = true
	trace := &trace{withArgs: f.trace}
	opt.Observe = trace.observe
	opt.HookNotice = warn
	ctx, interrupt := context.WithCancelCause(outer)
	defer interrupt(nil)
	if t, err := terminal.Open(terminal.Options{Color: color(), Interrupt: func() { interrupt(terminal.ErrInterrupted) }}); err == nil {
		defer t.Close()
		opt.Approver, opt.Ask = t, t.Ask // without a terminal nobody can be asked
	}
	s, err := app.Open(opt)
	if err != nil {
		return opening(err)
	}
	defer s.Close()
	for _, w := range s.Warnings {
		warn(s.Redact(w))
	}
	run := s.Exec(ctx, source)
	interrupted := context.Cause(ctx) // what comes later does not undo a program that has finished
	if run.Result.Status == tool.Success {
		interrupted = nil
	}
	ended := s.EndJobs()
	if f.trace {
		trace.print(stderr)
	}
	report := report{run: run, calls: trace.calls(), ended: ended, interrupted: interrupted, timeout: f.timeout}
	err = giveWay(outer, func() error {
		if f.json {
			return report.json(os.Stdout)
		}
		return report.text(os.Stdout, stderr, s.Keep)
	})
	if _, ok := errors.AsType[*exitError](err); ok {
		return err
	}
	if err != nil {
		return failed(fmt.Errorf("writing the output: %w", err))
	}
	if code := report.code(); code != exitOK {
		return &exitError{code: code}
	}
	return nil
}

// color follows the NO_COLOR convention.
func color() bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

var errTimeout = errors.New("the time given by --timeout is over")
