package shell

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"capstan/internal/shell/keeper"
)

// Run runs c and waits until it has ended, nothing of it is left, and all its
// output was handed on. A done ctx ends it at once: SIGTERM, then SIGKILL after
// Options.Term.
//
// A command that fails, times out or is cancelled is a Result, not an error.
// The error is a *CommandError when c cannot be run as it is, and wraps
// ErrKeeper when the command ran and its keeper did not see its end; the Result
// is then what is known. (S0-145, S0-148)
func (r *Runner) Run(ctx context.Context, c Command) (Result, error) {
	select {
	case <-ctx.Done():
		return Result{ExitCode: -1, Cancelled: true}, nil
	default:
	}
	x, err := r.launch(c)
	if err != nil {
		return Result{}, err
	}
	return x.wait(ctx)
}

// An execution is one command that has been started.
type execution struct {
	r       *Runner
	dir     string
	timeout time.Duration
	started time.Time
	sup     supervisor
	out     collector
	streams []*stream
	moved   atomic.Int64 // pieces of output so far: no change means idle
	unfeed  func()
	sandbox *Sandbox // that it runs in; nil: none
}

// launch starts c.
func (r *Runner) launch(c Command) (_ *execution, err error) {
	req, err := r.request(c)
	if err != nil {
		return nil, err
	}
	x := &execution{r: r, dir: req.Dir, timeout: c.Timeout, started: time.Now()}
	if c.Confined {
		x.sandbox = r.box.Load()
	}
	x.out = collector{keep: cmp.Or(max(c.Keep, 0), DefaultKeep), spill: c.Spill}

	stdin, unfeed, err := feed(c.Stdin)
	if err != nil {
		return nil, fmt.Errorf("preparing the command's stdin: %w", err)
	}
	defer stdin.Close()
	x.unfeed = unfeed
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		unfeed()
		return nil, fmt.Errorf("making the output pipe: %w", err)
	}
	defer outWrite.Close()
	stdio := [3]*os.File{stdin, outWrite, outWrite}
	var errRead *os.File
	if c.Stderr != nil {
		var errWrite *os.File
		if errRead, errWrite, err = os.Pipe(); err != nil {
			unfeed()
			outRead.Close()
			return nil, fmt.Errorf("making the stderr pipe: %w", err)
		}
		defer errWrite.Close()
		stdio[2] = errWrite
	}
	if x.sup, err = r.start(req, stdio); err != nil {
		unfeed()
		outRead.Close()
		if errRead != nil {
			errRead.Close()
		}
		return nil, err
	}
	x.read(c, req, outRead, errRead)
	return x, nil
}

// read starts to read the output.
func (x *execution) read(c Command, req keeper.Request, outRead, errRead *os.File) {
	dec := decoder{legacy: legacyEncoding(req.Env)}
	var one sync.Mutex // at most one callback at a time
	x.streams = append(x.streams, newStream(outRead, dec, func(b []byte) {
		one.Lock()
		defer one.Unlock()
		x.moved.Add(1)
		x.out.write(b)
		if c.Output != nil {
			c.Output(b)
		}
	}))
	if errRead != nil {
		x.streams = append(x.streams, newStream(errRead, dec, func(b []byte) {
			one.Lock()
			defer one.Unlock()
			x.moved.Add(1)
			c.Stderr(b)
		}))
	}
}

// wait sees the command to its end.
func (x *execution) wait(ctx context.Context) (Result, error) {
	res := Result{}
	end, waiting := x.watch(ctx, &res)
	for _, s := range x.streams {
		s.finish()
	}
	for _, s := range x.streams {
		res.HeldOpen = s.heldOpen() || res.HeldOpen
	}
	x.unfeed()
	x.out.fill(&res)
	res.TimedOut = end.TimedOut
	res.Duration = time.Since(x.started)
	res.ExitCode, res.Signal = end.status()
	res.Leftovers, res.LeftoverCount, res.Alive = end.Killed, int(end.KilledCount), end.Alive
	res.Waiting, res.Interrupted = waiting, waiting != ""
	if end.err == nil && waiting == "" && !res.Cancelled && !res.TimedOut {
		res.Waiting = wantedPerson(res.Output, res.ExitCode)
	}
	if x.sandbox != nil && (res.ExitCode != 0 || res.Signal != "") {
		res.Confined = x.sandbox.Explain(res.Output)
	}
	return res, end.err
}

// watch waits for the ending. It passes on a cancellation, ends a command that
// waits for a person, and ends a supervisor that is overdue.
func (x *execution) watch(ctx context.Context, res *Result) (end ending, waiting string) {
	var overdue <-chan time.Time
	if x.timeout > 0 {
		timer := time.NewTimer(x.timeout + x.r.o.Grace + x.r.longest())
		defer timer.Stop()
		overdue = timer.C
	}
	var idle idleWatch
	look := time.NewTicker(max(x.r.o.Idle/4, time.Millisecond))
	defer look.Stop()
	cancel, cancelled := ctx.Done(), false
	stop := func() {
		cancel = nil
		look.Stop()
		x.sup.stop()
		overdue = time.After(x.r.longest())
	}
	for {
		select {
		case end = <-x.sup.ended():
			// What had ended by itself before the stop came was not stopped.
			res.Cancelled = cancelled && (end.Stopped || end.err != nil)
			if !end.Stopped && end.err == nil {
				waiting = ""
			}
			return end, waiting
		case <-cancel:
			cancelled = true
			stop()
		case <-look.C:
			if waiting = idle.look(x.sup.root(), x.moved.Load()); waiting != "" {
				stop()
			}
		case <-overdue:
			overdue = nil
			x.sup.abandon()
		}
	}
}
