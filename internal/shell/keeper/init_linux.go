//go:build amd64 || arm64

package keeper

import (
	"syscall"
	"unsafe"
)

// Supported says whether this build has a keeper.
const Supported = true

// runtimeArgs gives os.Args without package os, whose initialisation comes
// later than this package's.
//
//go:linkname runtimeArgs os.runtime_args
func runtimeArgs() []string

// init takes the process over. Go initialises packages in the order of their
// import paths as dependencies allow, so this one, with its path and its few
// imports, comes before nearly everything else in the binary.
func init() {
	if args := runtimeArgs(); len(args) == 2 && args[1] == Marker {
		main()
		syscall.Exit(0)
	}
}

const (
	prSetName           = 15
	prSetChildSubreaper = 36
	maxSignal           = 31
	sigIgnore           = 1
	sysCloseRange       = 436 // the same number on amd64 and arm64
	closeRangeCloexec   = 4
)

// main is the whole life of a keeper. It uses one goroutine and never starts
// another: a fork bomb below it may leave no thread to be had.
func main() {
	ignoreSignals()
	name := [16]byte{}
	copy(name[:15], "capstan-keeper")
	prctl(prSetName, uintptr(unsafe.Pointer(&name[0])))
	// Also what the agent itself inherited: a command gets 0 to 2 only.
	syscall.RawSyscall(sysCloseRange, ControlFD, ^uintptr(0)>>32, closeRangeCloexec)
	syscall.CloseOnExec(ControlFD) // for kernels before 5.11
	syscall.CloseOnExec(ReportFD)

	body, ok := readFrame(ControlFD)
	if !ok {
		return // the agent went before it said anything
	}
	req, ok := ParseRequest(body)
	if !ok {
		report(&Report{Kind: Failed, Errno: uint32(syscall.EPROTO)})
		return
	}
	k := &keeper{req: req}
	if err := k.start(); err != 0 {
		report(&Report{Kind: Failed, Errno: uint32(err)})
		return
	}
	report(&Report{Kind: Started, Pid: uint32(k.pid)})
	k.watch()
	report(k.finish())
}

// ignoreSignals makes the keeper deaf to what a command, or a terminal, sends
// to its parent or its group; only SIGKILL and the pipes end it. The Go runtime
// resets these signals to their default in the process that it forks.
func ignoreSignals() {
	// The kernel's struct sigaction: handler, flags, restorer, mask.
	act := [4]uintptr{sigIgnore}
	for sig := uintptr(1); sig <= maxSignal; sig++ {
		switch syscall.Signal(sig) {
		case syscall.SIGCHLD, syscall.SIGURG, syscall.SIGKILL, syscall.SIGSTOP,
			syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGTRAP,
			syscall.SIGCONT, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU:
			// Needed by the Go runtime or by wait4, or fixed. The job control
			// signals would stay ignored in the command, and the kernel drops
			// them anyhow for a session leader without a terminal.
			continue
		}
		syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&act)), 0, 8, 0, 0)
	}
}

func prctl(option, arg uintptr) syscall.Errno {
	_, _, err := syscall.RawSyscall6(syscall.SYS_PRCTL, option, arg, 0, 0, 0, 0)
	return err
}

// readFrame reads one whole frame.
func readFrame(fd int) (body []byte, ok bool) {
	var head [4]byte
	if !readFull(fd, head[:]) {
		return nil, false
	}
	n := FrameSize(head)
	if n < 0 {
		return nil, false
	}
	body = make([]byte, n)
	return body, readFull(fd, body)
}

func readFull(fd int, b []byte) bool {
	for len(b) > 0 {
		n, err := syscall.Read(fd, b)
		switch {
		case err == syscall.EINTR:
		case err != nil || n == 0:
			return false
		default:
			b = b[n:]
		}
	}
	return true
}

// report writes r. A failure is not an error: the agent that would read it is
// gone, and the keeper's work is the same without it.
func report(r *Report) {
	for b := r.Append(nil); len(b) > 0; {
		n, err := syscall.Write(ReportFD, b)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return
		default:
			b = b[n:]
		}
	}
}
