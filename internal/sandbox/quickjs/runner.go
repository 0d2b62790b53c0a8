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
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"capstan/internal/sandbox"
	"capstan/internal/sandbox/frame"
	"capstan/internal/sandbox/guest"
)

// Options configure a Runner. The zero value is ready to use.
type Options struct {
	// Binary is the executable to start as a child; it must link package
	// guest of the same build, without cgo. Empty is the running executable.
	Binary string
	// Spares is how many children to keep started ahead. None is started
	// before the first Run has ended or Prespawn is called.
	Spares int
	// Require makes a hardening layer that is not in force an error: a
	// program runs with all of them or not at all.
	Require bool
	// Off are layers not to put on, by name; for tests of what happens on a
	// system that lacks them.
	Off []string
}

// Runner runs programs in child processes. It is safe for concurrent use.
type Runner struct {
	binary string
	spares int
	start  frame.Start
	err    error // of the options

	mu     sync.Mutex
	idle   []*process
	closed bool
	wg     sync.WaitGroup // refills under way
}

// New returns a Runner. It starts nothing and opens nothing.
func New(o Options) *Runner {
	r := &Runner{binary: o.Binary, spares: o.Spares}
	for _, name := range o.Off {
		l, err := layerOf(name)
		r.start.Off |= l
		r.err = errors.Join(r.err, err)
	}
	if o.Require {
		r.start.Require = frame.AllLayers
	}
	return r
}

func layerOf(name string) (frame.Layer, error) {
	for _, l := range frame.Layers() {
		if l.String() == name {
			return l, nil
		}
	}
	return 0, fmt.Errorf("hardening layer %q does not exist", name)
}

// Run implements sandbox.Runner.
func (r *Runner) Run(ctx context.Context, p sandbox.Program, h sandbox.Host) (sandbox.Usage, error) {
	p.Limits = p.Limits.WithDefaults()
	if err := p.Limits.Validate(); err != nil {
		return sandbox.Usage{}, startupError("checking the limits", err)
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
	defer r.refill()
	usage, err := newSession(proc, p, h, r.start.Require != 0).run(ctx)
	usage.Prespawned = spare
	return usage, err
}

// Prespawn starts the spares, in the background.
func (r *Runner) Prespawn() { r.refill() }

// Close ends the spares and waits until they are gone. Programs that run are
// their contexts' business; a later Run fails.
func (r *Runner) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.wg.Wait()
	r.mu.Lock()
	idle := r.idle
	r.idle = nil
	r.mu.Unlock()
	for _, p := range idle {
		p.discard()
	}
}

// take gives a process to use, and tells whether it was started ahead.
func (r *Runner) take() (*process, bool, error) {
	for {
		r.mu.Lock()
		if r.closed {
			r.mu.Unlock()
			return nil, false, startupError("starting the interpreter", errors.New("the runner is closed"))
		}
		n := len(r.idle)
		if n == 0 {
			r.mu.Unlock()
			p, err := r.spawn()
			return p, false, err
		}
		p := r.idle[0]
		r.idle = append(r.idle[:0], r.idle[1:]...)
		r.mu.Unlock()
		if p.alive() {
			return p, true, nil
		}
		p.discard()
	}
}

// refill starts spares in the background until there are enough.
func (r *Runner) refill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || len(r.idle) >= r.spares {
		return
	}
	r.wg.Go(func() {
		for {
			r.mu.Lock()
			enough := r.closed || len(r.idle) >= r.spares
			r.mu.Unlock()
			if enough {
				return
			}
			p, err := r.spawn()
			if err != nil {
				return // the next Run meets the same error and says it
			}
			r.mu.Lock()
			if r.closed || len(r.idle) >= r.spares {
				r.mu.Unlock()
				p.discard()
				return
			}
			r.idle = append(r.idle, p)
			r.mu.Unlock()
		}
	})
}

func (r *Runner) spawn() (*process, error) { return r.spawnAs(r.start) }

// spawnAs starts a child as s says.
func (r *Runner) spawnAs(s frame.Start) (*process, error) {
	if r.err != nil {
		return nil, startupError("checking the options", r.err)
	}
	binary := r.binary
	if binary == "" {
		if guest.Cgo {
			return nil, startupError("starting the interpreter", errCgo)
		}
		var err error
		if binary, err = self(); err != nil {
			return nil, startupError("finding the executable", err)
		}
	}
	return spawn(binary, s)
}

var errCgo = errors.New("this program was built with cgo, which cannot be hardened: rebuild it with CGO_ENABLED=0")

func cancelled(cause error) error { return fmt.Errorf("running the program: %w", cause) }

func startupError(doing string, err error) error {
	return &sandbox.Error{Kind: sandbox.KindStartup, Message: doing + ": " + err.Error(), Err: err}
}

func checkSource(p sandbox.Program) error {
	if len(p.Source) > p.Limits.Source {
		return &sandbox.Error{Kind: sandbox.KindSyntax, Name: "SyntaxError",
			Message: fmt.Sprintf("the program has %d bytes; the limit is %d: read the data with a tool instead of writing it into the program", len(p.Source), p.Limits.Source)}
	}
	if !utf8.ValidString(p.Source) {
		return &sandbox.Error{Kind: sandbox.KindSyntax, Name: "SyntaxError", Message: "the program is not valid UTF-8"}
	}
	return nil
}

func validUTF8[T string | []byte](s T) string { return strings.ToValidUTF8(string(s), "\uFFFD") }
