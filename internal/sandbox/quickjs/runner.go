// Package quickjs runs Code Mode programs in QuickJS, each in a process of its
// own that is used once.
//
// It is the parent side: it spawns children, keeps spares, moves frames, bounds
// everything that a child says, watches its silence and ends it. The child is
// package guest, in the same binary, which takes over when that is started
// with its marker argument. A child is treated as hostile throughout.
package quickjs

import (
	"context"
	"errors"
	"os"
	"sync"

	"capstan/internal/sandbox"
)

// Options configure a Runner. The zero value is ready to use.
type Options struct {
	// Binary is the executable to start as a child; it must link package
	// guest of the same build. Empty is the running executable.
	Binary string
	// Spares is how many children to keep started ahead. None are started
	// before the first Run or Prespawn.
	Spares int
}

// Runner runs programs in child processes. It is safe for concurrent use.
type Runner struct {
	opts Options

	mu     sync.Mutex
	spares []*process
	closed bool
	wg     sync.WaitGroup // spare spawns under way
}

// New returns a Runner. It starts nothing.
func New(o Options) *Runner { return &Runner{opts: o} }

var errClosed = errors.New("the runner is closed")

// Run implements sandbox.Runner.
func (r *Runner) Run(ctx context.Context, p sandbox.Program, h sandbox.Host) (sandbox.Usage, error) {
	p.Limits = p.Limits.WithDefaults()
	if err := p.Limits.Validate(); err != nil {
		return sandbox.Usage{}, &sandbox.Error{Kind: sandbox.KindStartup, Message: err.Error()}
	}
	if err := checkSource(p); err != nil {
		return sandbox.Usage{}, err
	}
	if err := context.Cause(ctx); err != nil {
		return sandbox.Usage{}, cancelled(err)
	}
	proc, spare, err := r.take()
	if err != nil {
		return sandbox.Usage{}, err
	}
	usage, err := newSession(proc, p, h).run(ctx)
	usage.Prespawned = spare
	return usage, err
}

// take gives a process to use, and tells whether it was started ahead.
func (r *Runner) take() (*process, bool, error) {
	binary := r.opts.Binary
	if binary == "" {
		exe, err := os.Executable()
		if err != nil {
			return nil, false, startupError("finding the executable", err)
		}
		binary = exe
	}
	p, err := spawn(binary)
	return p, false, err
}

// Close ends the spares and waits until they are gone.
func (r *Runner) Close() {}
