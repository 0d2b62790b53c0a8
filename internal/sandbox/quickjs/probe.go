package quickjs

import (
	"bufio"
	"context"
	"io"
	"strings"
	"syscall"

	"capstan/internal/sandbox"
	"capstan/internal/sandbox/frame"
)

// Layer is one layer of the hardening and whether it holds on this machine.
type Layer struct {
	Name    string
	InForce bool
	Detail  string // what was tried, or why it is missing
}

// Probe starts children that try what each hardening layer forbids, and tells
// which layers hold. An error means that no child could be started.
func (r *Runner) Probe(ctx context.Context) ([]Layer, error) {
	limits, err := r.probe(ctx, frame.ProbeLimits)
	if err != nil {
		return nil, err
	}
	missing := limits.missing.Layers
	socket, err := r.probe(ctx, frame.ProbeSocket)
	if err != nil {
		return nil, err
	}
	layers := []Layer{
		{Name: frame.NoNewPrivs.String(), Detail: "read back from the kernel"},
		{Name: frame.Landlock.String(), Detail: "opening a directory is refused"},
		{Name: frame.Rlimits.String(), Detail: "read back from the kernel"},
		{Name: frame.Seccomp.String(), Detail: "opening a socket ends the process: " + socket.ending},
	}
	for i, l := range frame.Layers() {
		lost := missing&l != 0
		if l == frame.Seccomp {
			lost = socket.answered
		}
		layers[i].InForce = !lost
		if lost {
			layers[i].Detail = "this kernel or system does not give it"
			if errno := limits.missing.Errno(l) | socket.missing.Errno(l); errno != 0 {
				layers[i].Detail += ": " + syscall.Errno(errno).Error()
			}
		}
	}
	return layers, nil
}

type probed struct {
	missing  frame.Missing
	answered bool
	ending   string
}

// probe starts a child as p and reads what it says.
func (r *Runner) probe(ctx context.Context, p frame.Probe) (probed, error) {
	s := r.start
	s.Require, s.Probe = 0, p
	proc, err := r.spawnAs(s)
	if err != nil {
		return probed{}, err
	}
	stop := context.AfterFunc(ctx, proc.kill)
	defer stop()
	in := bufio.NewReader(proc.stdout)
	f, err := frame.Read(in, frame.Bounds{}.FromChild)
	_, _ = io.Copy(io.Discard, in)
	proc.release(sandbox.DefaultLimits().Teardown)
	if cause := context.Cause(ctx); cause != nil {
		return probed{}, cancelled(cause)
	}
	out := probed{answered: err == nil, ending: proc.ending()}
	if err == nil {
		if out.missing, err = frame.ParseMissing(f.Head); err != nil {
			return probed{}, startupError("probing the interpreter", err)
		}
		if out.missing.Layers&frame.CgoChild != 0 {
			return probed{}, startupError("probing the interpreter", errCgo)
		}
		return out, nil
	}
	if p != frame.ProbeLimits && strings.Contains(out.ending, "bad system call") {
		return out, nil
	}
	return probed{}, startupError("probing the interpreter", &childError{ending: out.ending, said: proc.stderr.text()})
}

// childError is the end of a child that did not say why.
type childError struct{ ending, said string }

func (e *childError) Error() string {
	s := "interpreter exited: " + e.ending
	if e.said != "" {
		s += "; it said: " + e.said
	}
	return s
}
