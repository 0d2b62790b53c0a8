package quickjs

import (
	"os"
	"sync"
	"time"

	"capstan/internal/sandbox"
	"capstan/internal/sandbox/guest"
)

// process is a child and the three pipes to it.
type process struct {
	os     *os.Process
	stdin  *os.File
	stdout *os.File
	errors *tail

	exited chan struct{} // closed when state is set
	state  *os.ProcessState
	once   sync.Once
}

// spawn starts binary as a child.
func spawn(binary string) (*process, error) {
	var files [6]*os.File // read and write ends of stdin, stdout, stderr
	closeAll := func() {
		for _, f := range files {
			if f != nil {
				f.Close()
			}
		}
	}
	for i := 0; i < len(files); i += 2 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll()
			return nil, startupError("making a pipe", err)
		}
		files[i], files[i+1] = r, w
	}
	proc, err := os.StartProcess(binary, []string{"capstan", guest.Marker}, &os.ProcAttr{
		Dir:   "/",
		Env:   []string{},
		Files: []*os.File{files[0], files[3], files[5]},
		Sys:   sysProcAttr(),
	})
	if err != nil {
		closeAll()
		return nil, startupError("starting "+binary, err)
	}
	files[0].Close()
	files[3].Close()
	files[5].Close()
	p := &process{os: proc, stdin: files[1], stdout: files[2], errors: newTail(files[4]), exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		p.state, _ = proc.Wait()
	}()
	return p, nil
}

// kill ends the process at once. It may be called more than once.
func (p *process) kill() { p.once.Do(func() { _ = p.os.Kill() }) }

// release waits for the process to end, kills it when it takes longer than d,
// and frees what belongs to it. It tells whether it ended by itself.
func (p *process) release(d time.Duration) bool {
	p.stdin.Close()
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
	p.errors.close()
	return alone
}

func startupError(doing string, err error) error {
	return &sandbox.Error{Kind: sandbox.KindStartup, Message: doing + ": " + err.Error(), Err: err}
}
