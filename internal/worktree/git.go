package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"capstan/internal/shell"
)

const (
	patience  = 10 * time.Minute // for one git command
	maxOutput = 16 << 20         // bytes of it
)

// quiet are the settings that keep git from running what a repository names.
var quiet = []string{"--no-pager", "-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c", "submodule.recurse=false", "-c", "core.quotePath=true"}

// An exitError is a git that failed.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

// git runs one command and returns what it printed, without the last line end.
func (r *Repo) git(ctx context.Context, dir string, args ...string) (string, error) {
	var stderr bytes.Buffer
	c := shell.Command{Argv: slices.Concat([]string{"git"}, quiet, args), Dir: dir, Env: r.environ(), Timeout: patience, Keep: maxOutput,
		Stderr: func(b []byte) { stderr.Write(b[:min(len(b), 4096-stderr.Len())]) }}
	res, err := r.opt.Shell.Run(ctx, c)
	what := "git " + args[0]
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", what, err)
	case res.Cancelled:
		return "", fmt.Errorf("%s: %w", what, context.Cause(ctx))
	case res.TimedOut:
		return "", fmt.Errorf("%s: no end after %v", what, patience)
	case res.ExitCode != 0:
		text := strings.TrimSpace(stderr.String())
		if text == "" {
			text = fmt.Sprintf("exit code %d", res.ExitCode)
		}
		return "", &exitError{res.ExitCode, what + ": " + text}
	case res.Omitted > 0:
		return "", errors.New(what + ": it prints more than can be looked at")
	}
	return strings.TrimRight(res.Output, "\r\n"), nil
}

// environ is git's environment: nothing in it names another repository, and it
// neither asks nor fetches.
func (r *Repo) environ() []string {
	env := slices.DeleteFunc(slices.Clone(r.opt.Environ), func(v string) bool { return strings.HasPrefix(strings.ToUpper(v), "GIT_") })
	return append(env, "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C")
}
