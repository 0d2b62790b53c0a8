package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"capstan/internal/msg"
	"capstan/internal/schema"
	"capstan/internal/tool"
)

// A remote is one tool of a server.
type remote struct {
	s        *server
	spec     tool.Spec
	real     string // its name there
	readOnly bool
	again    bool // it says that it may be called twice for once
	output   *schema.Schema
	patterns int // bytes that the compiled patterns of its schemas take
}

// Spec returns the definition.
func (t *remote) Spec() *tool.Spec { return &t.spec }

// Access: a tool that says that it only reads may run beside others. What it
// touches nobody can know.
func (t *remote) Access(*tool.Call) tool.Access {
	return tool.Access{Overlap: t.readOnly, Outside: true}
}

// Run calls the tool, once: a call that may have had an effect is never
// repeated. Only one that surely was not run, because the connection was over
// before or an HTTP server had forgotten the session, is sent once more
// (BUG-MC-03, BUG-MC-05).
func (t *remote) Run(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
	for again := false; ; again = true {
		c, err := t.s.acquire(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return tool.Result{}, ctx.Err()
			}
			return t.s.m.redactResult(tool.Fail(tool.CodeFailed, "%v", err), true), nil
		}
		res, err := t.call(ctx, c, inv)
		if unsent(err) {
			c.drop()
			if !again {
				continue
			}
			err = &lostError{err}
		}
		if err != nil {
			res, err := t.failed(ctx, err)
			return t.s.m.redactResult(res, true), err
		}
		return t.s.m.redactResult(res, false), nil
	}
}

// errTimeout marks a call that took too long.
var errTimeout = errors.New("it took too long")

// call makes the call and waits for its result, as long as there is progress.
func (t *remote) call(ctx context.Context, c *conn, inv *tool.Invocation) (tool.Result, error) {
	idle := c.cfg.timeout()
	whole := max(longestCall, idle)
	w := newWatch(idle, whole)
	defer w.stop()
	ctx, f := c.flights.begin(ctx, w.alive, func(p progress) { p.message = t.s.m.redact(p.message); w.show(inv, p) }, inv.Yield)
	defer f.land()
	w.start(f.cancel)
	p := &params{Name: t.real, Arguments: inv.Call.Args}
	p.Meta = sdk.Meta{"progressToken": f.token}
	raw, err := c.rounds(ctx, callTool, p)
	if err != nil {
		if unsent(err) && ctx.Err() == nil {
			return tool.Result{}, err
		}
		return tool.Result{}, c.explain(ctx, err)
	}
	return t.result(raw), nil
}

// failed makes a Result of a call that brought none.
func (t *remote) failed(ctx context.Context, err error) (tool.Result, error) {
	var rpc *rpcError
	var lost *lostError
	switch {
	case ctx.Err() != nil:
		return tool.Result{}, ctx.Err()
	case errors.Is(err, errTimeout):
		return tool.Fail(tool.CodeTimeout, "tool %s of MCP server %s: %v; the call was cancelled, and whether it had an effect is not known%s", t.real, t.s.cfg.Name, err, t.repeatable()), nil
	case errors.Is(err, errCut), errors.As(err, &lost) && !errors.As(err, &rpc) && t.s.cfg.Type != Stdio:
		return tool.Fail(tool.CodeFailed, "tool %s of MCP server %s: %v\nWhether the call had an effect is not known%s. The next call connects anew.", t.real, t.s.cfg.Name, err, t.repeatable()), nil
	case errors.As(err, &lost) && !errors.As(err, &rpc):
		return tool.Fail(tool.CodeFailed, "MCP server %s ended during the call: %v\nWhether the call had an effect is not known%s. The server is restarted, and the next call works if it comes up.", t.s.cfg.Name, err, t.repeatable()), nil
	}
	return tool.Fail(tool.CodeFailed, "MCP server %s: %v", t.s.cfg.Name, err), nil
}

// repeatable tells the caller of a lost call what the server says of doing it
// again. We never do by ourselves: it is the server's word.
func (t *remote) repeatable() string {
	if !t.again {
		return ""
	}
	return ", but the server says that it can be repeated without harm"
}

// A watch ends a call that makes no progress, or that takes too long in all.
type watch struct {
	idle, whole time.Duration
	timer, end  *time.Timer

	mu    sync.Mutex
	over  bool
	seen  int // progress notifications
	shown time.Time
}

func newWatch(idle, whole time.Duration) *watch {
	return &watch{idle: idle, whole: whole}
}

func (w *watch) start(cancel context.CancelCauseFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(w.idle, func() { cancel(w.late(false)) })
	w.end = time.AfterFunc(w.whole, func() { cancel(w.late(true)) })
}

func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
	w.end.Stop()
}

// late says what was waited for (BUG-MC-11).
func (w *watch) late(all bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if all {
		return fmt.Errorf("%w: more than %v in all, however much progress it reported", errTimeout, w.whole)
	}
	return fmt.Errorf("%w: there was no result and no progress for %v (timeout of the server; in all it may take %v, with progress; it reported some %d times)",
		errTimeout, w.idle, w.whole, w.seen)
}

// alive moves the deadline.
func (w *watch) alive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil && !w.over {
		w.timer.Reset(w.idle)
	}
}

// show tells observers, at most ten times a second.
func (w *watch) show(inv *tool.Invocation, p progress) {
	w.mu.Lock()
	w.seen++
	now := time.Now()
	due := now.Sub(w.shown) >= 100*time.Millisecond
	if due {
		w.shown = now
	}
	w.mu.Unlock()
	if due {
		inv.Progress(msg.TextPart(p.String()))
	}
}

// String is the progress in a line.
func (p progress) String() string {
	s := fmt.Sprintf("%g", p.done)
	if p.total > 0 {
		s += fmt.Sprintf("/%g", p.total)
	}
	if p.message != "" {
		s += " " + excerpt(p.message, 300)
	}
	return s
}
