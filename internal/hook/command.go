package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"capstan/internal/shell"
)

// errFlood is why a command was ended that printed without end.
var errFlood = fmt.Errorf("it printed more than %d MiB and was ended", maxFlood>>20)

// command runs a command hook. It gets the payload on stdin; that it reads none
// or half of it is no fault (BUG-HK-06).
func (d *Dispatcher) command(ctx context.Context, h *handler, in []byte) reply {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var stderr bytes.Buffer
	printed := 0
	count := func(b []byte) {
		if printed += len(b); printed > maxFlood {
			end(errFlood)
		}
	}
	c := shell.Command{Dir: d.dir(), Env: d.environ(h), Timeout: h.timeout, Stdin: bytes.NewReader(in), Keep: maxOutput, Output: count,
		Stderr: func(b []byte) {
			count(b)
			stderr.Write(b[:min(len(b), maxStderr-stderr.Len())])
		}}
	d.line(h, &c)
	res, err := d.opt.Shell.Run(ctx, c)
	var bad *shell.CommandError
	switch {
	case errors.As(err, &bad):
		return reply{err: fmt.Errorf("it cannot be started: %w", err)}
	case context.Cause(ctx) == errFlood:
		return reply{err: errFlood}
	case ctx.Err() != nil:
		return reply{err: context.Cause(ctx)}
	case err != nil:
		return reply{err: err}
	}
	r := d.ended(h, &res, strings.TrimSpace(string(whole(stderr.Bytes()))))
	if n := res.LeftoverCount; n > 0 {
		r.notes = append(r.notes, fmt.Sprintf("left %d of its processes running, and they were ended (%s)", n, short(res.Leftovers[0].Command)))
	}
	return r
}

// whole drops a character that was cut at the end.
func whole(b []byte) []byte {
	for n := 0; n < utf8.UTFMax && len(b) > 0 && !utf8.Valid(b[max(0, len(b)-utf8.UTFMax):]); n++ {
		b = b[:len(b)-1]
	}
	return b
}

// ended reads the reply from how the command ended.
func (d *Dispatcher) ended(h *handler, res *shell.Result, stderr string) reply {
	said := ""
	if stderr != "" {
		said = ": " + stderr
	}
	switch code := res.ExitCode; {
	case res.TimedOut:
		return reply{err: fmt.Errorf("it did not end within %v and was ended%s", h.timeout, said)}
	case res.Interrupted:
		return reply{err: fmt.Errorf("it waited for a person and was ended: %s", res.Waiting)}
	case res.Signal != "":
		return reply{err: fmt.Errorf("it was ended by %s%s", res.Signal, said)}
	case code == 2:
		return blocked(h.event, stderr)
	case code == 126 || code == 127:
		return reply{err: fmt.Errorf("it cannot be run (exit code %d)%s", code, said)}
	case code != 0:
		return reply{err: fmt.Errorf("it exited with code %d%s", code, said)}
	case res.Omitted > 0 && strings.HasPrefix(strings.TrimSpace(res.Output), "{"):
		return reply{err: fmt.Errorf("it printed %d bytes; its JSON may have %d", res.Total, maxOutput)}
	}
	return understand(h.event, res.Output)
}

// line says what to run: a line for a shell, or a program and its arguments.
func (d *Dispatcher) line(h *handler, c *shell.Command) {
	switch {
	case h.args != nil:
		c.Argv = []string{d.placed(h.command)}
		for _, a := range h.args {
			c.Argv = append(c.Argv, d.placed(a))
		}
	case h.power:
		c.Argv = []string{"pwsh", "-NoProfile", "-NonInteractive", "-Command", h.command}
	default:
		c.Line = h.command
	}
}

// placed puts the project's directory into a word that no shell sees.
func (d *Dispatcher) placed(s string) string {
	if !strings.Contains(s, "$") {
		return s
	}
	return os.Expand(s, func(name string) string {
		for _, v := range d.places() {
			if n, value, _ := strings.Cut(v, "="); n == name {
				return value
			}
		}
		return "${" + name + "}"
	})
}

func (d *Dispatcher) places() []string {
	var out []string
	for _, product := range []string{"CAPSTAN", "CLAUDE", "QWEN", "GEMINI"} {
		out = append(out, product+"_PROJECT_DIR="+d.opt.Project)
	}
	return out
}

// environ is the environment of a hook: that of the session with where the
// project is. The Runner takes the keys out of it.
func (d *Dispatcher) environ(h *handler) []string {
	env := append(d.opt.Environ[:len(d.opt.Environ):len(d.opt.Environ)], h.env...)
	return append(append(env, d.places()...), "CAPSTAN_HOOK_EVENT="+string(h.event))
}
