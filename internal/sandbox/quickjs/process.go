package quickjs

import (
	"os"
	"slices"
	"time"

	"capstan/internal/sandbox/frame"
	"capstan/internal/sandbox/guest"
)

// process is a child and the three pipes to it.
type process struct {
	os     *os.Process
	stdin  *os.File
	stdout *os.File
	stderr *stderr

	exited chan struct{}    // closed when state is set
	state  *os.ProcessState // nil when waiting for it failed
}

// spawn starts binary as a child, with an empty environment and no files but
// its three pipes.
func spawn(binary string, s frame.Start) (*process, error) {
	var ends []*os.File
	closeAll := func() {
		for _, f := range ends {
			f.Close()
		}
	}
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll()
			return nil, startupError("making a pipe", err)
		}
		ends = append(ends, r, w)
	}
	widen(ends[1])
	widen(ends[2])
	proc, err := os.StartProcess(binary, slices.Concat([]string{"capstan", guest.Marker}, s.Args()), &os.ProcAttr{
		Dir:   "/",
		Env:   []string{},
		Files: []*os.File{ends[0], ends[3], ends[5]},
		Sys:   sysProcAttr(),
	})
	if err != nil {
		closeAll()
		return nil, startupError("starting "+binary, err)
	}
	ends[0].Close()
	ends[3].Close()
	ends[5].Close()
	p := &process{os: proc, stdin: ends[1], stdout: ends[2], stderr: newStderr(ends[4]), exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		p.state, _ = proc.Wait()
	}()
	return p, nil
}

// kill ends the process at once. It may be called more than once.
func (p *process) kill() { _ = p.os.Kill() }

func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// discard kills the process and frees what belongs to it.
func (p *process) discard() {
	p.kill()
	p.release(time.Minute)
}

// release waits for the process to end, kills it when that takes longer than
// d, and frees what belongs to it. It tells whether it ended by itself.
func (p *process) release(d time.Duration) bool {
	_ = p.stdin.Close() // the session has closed it already
	t := time.NewTimer(d)
	defer t.Stop()
	alone := true
	select {
	case <-p.exited:
	case <-t.C:
		alone = false
		p.kill()
		<-p.exited
	}
	p.stdout.Close()
	p.stderr.close()
	return alone
}

// ending says how the process ended, once it has.
func (p *process) ending() string {
	if p.state == nil {
		return "in a way that the system did not tell"
	}
	return p.state.String()
}
