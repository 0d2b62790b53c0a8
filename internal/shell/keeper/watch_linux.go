//go:build amd64 || arm64

package keeper

import (
	"syscall"
	"time"
	"unsafe"
)

// killLimit bounds how long a keeper tries to end processes that do not die:
// those of another user, or stuck in the kernel.
const killLimit = 5 * time.Second

// keeper holds the state of one command.
type keeper struct {
	req     Request
	pid     int                // of the program, until it is reaped; then 0
	status  syscall.WaitStatus // of the program, once pid is 0
	result  Report
	names   map[int]bool // descendants counted in result.Killed
	scanner scanner
}

// start becomes subreaper and starts the program with the keeper's own stdin,
// stdout and stderr, then lets go of them: the output ends when the last
// descendant closes it.
func (k *keeper) start() syscall.Errno {
	if err := prctl(prSetChildSubreaper, 1); err != 0 {
		return err
	}
	if err := k.confine(); err != 0 {
		return err
	}
	pid, err := syscall.ForkExec(k.req.Path, k.req.Argv, &syscall.ProcAttr{
		Dir: k.req.Dir, Env: k.req.Env, Files: []uintptr{0, 1, 2},
		// A new session has no controlling terminal, so nothing can prompt on
		// /dev/tty. Pdeathsig is the second line should the keeper be killed;
		// init runs on the main thread, which lives as long as the process.
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		if errno, ok := err.(syscall.Errno); ok {
			return errno
		}
		return syscall.EINVAL
	}
	k.pid = pid
	k.result.Pid = uint32(pid)
	k.names = map[int]bool{}
	null, err := syscall.Open("/dev/null", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	for fd := range 3 {
		if err != nil {
			syscall.Close(fd)
		} else {
			syscall.Dup3(null, fd, 0)
		}
	}
	return 0
}

// watch returns when the command is over: the program and its children have
// ended, or their time is up, or the agent wants an end or is gone.
func (k *keeper) watch() {
	var deadline time.Time
	if k.req.TimeoutMS > 0 {
		deadline = time.Now().Add(time.Duration(k.req.TimeoutMS) * time.Millisecond)
	}
	program := pidfdOpen(k.pid)
	defer syscall.Close(program)
	for {
		running := k.pid != 0
		if k.reap() {
			return
		}
		if running && k.pid == 0 {
			deadline = k.afterProgram(deadline)
		}
		now := time.Now()
		if !deadline.IsZero() && !now.Before(deadline) {
			k.result.TimedOut = k.pid != 0 || k.req.GraceMS == Forever
			return
		}
		if k.sleep(program, deadline.Sub(now), !deadline.IsZero()) {
			k.result.Stopped = k.pid != 0 || k.req.GraceMS == Forever
			return
		}
	}
}

// afterProgram gives the time until which children may outlive the program. A
// job's children count as the job: its own deadline stays.
func (k *keeper) afterProgram(deadline time.Time) time.Time {
	if k.req.GraceMS == Forever {
		return deadline
	}
	return time.Now().Add(time.Duration(k.req.GraceMS) * time.Millisecond)
}

// sleep waits until something may have happened, at most for left when bounded
// is set. It reports whether the agent wants an end or is gone.
func (k *keeper) sleep(program int, left time.Duration, bounded bool) (stop bool) {
	fds := []pollFD{{fd: ControlFD, events: pollIn}}
	wait := 5 * time.Second // orphans that ended unnoticed are reaped then
	if k.pid != 0 {
		fds = append(fds, pollFD{fd: int32(program), events: pollIn})
	} else {
		// The children that are left hold the end up: wait for any of them.
		for _, p := range k.scanner.children(syscall.Getpid()) {
			if len(fds) > MaxNamed {
				break
			}
			fd := pidfdOpen(p.pid)
			defer syscall.Close(fd)
			fds = append(fds, pollFD{fd: int32(fd), events: pollIn})
		}
	}
	for _, f := range fds {
		if f.fd < 0 { // a kernel without pidfd_open: look again soon
			wait = 10 * time.Millisecond
		}
	}
	if bounded {
		wait = min(wait, left)
	}
	poll(fds, wait)
	if fds[0].revents == 0 {
		return false
	}
	var b [1]byte
	n, err := syscall.Read(ControlFD, b[:])
	return err != syscall.EINTR && (err != nil || n == 0 || b[0] == Stop)
}

// reap collects every child that has ended, the adopted ones too, and reports
// whether none is left. A subreaper without children has no descendants.
func (k *keeper) reap() (none bool) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil: // ECHILD
			return true
		case pid == 0:
			return false
		case pid == k.pid:
			k.pid, k.status = 0, ws
		}
	}
}

// finish ends what is left and makes the last report.
func (k *keeper) finish() *Report {
	if !k.reap() {
		k.end()
	}
	k.result.Kind = Finished
	switch {
	case k.pid != 0: // could not be killed
		k.result.Signal = uint32(syscall.SIGKILL)
	case k.status.Signaled():
		k.result.Signal = uint32(k.status.Signal())
	default:
		k.result.ExitCode = uint32(k.status.ExitStatus())
	}
	return &k.result
}

const (
	sysPidfdSendSignal = 424 // the same number on amd64 and arm64
	sysPidfdOpen       = 434
	pollIn             = 1
)

type pollFD struct {
	fd      int32
	events  int16
	revents int16
}

// pidfdOpen gives a descriptor that becomes readable when pid ends, or -1.
func pidfdOpen(pid int) int {
	if pid <= 1 {
		return -1
	}
	fd, _, err := syscall.Syscall(sysPidfdOpen, uintptr(pid), 0, 0)
	if err != 0 {
		return -1
	}
	return int(fd)
}

// poll waits for one of fds; negative descriptors are skipped by the kernel. A
// signal ends it early, which SIGCHLD for an adopted child often does.
func poll(fds []pollFD, wait time.Duration) {
	ts := syscall.NsecToTimespec(int64(max(wait, 0)))
	syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)),
		uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
}
