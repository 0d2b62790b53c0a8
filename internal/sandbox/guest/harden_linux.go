package guest

import (
	"syscall"
	"unsafe"

	"capstan/internal/sandbox/frame"
)

// System calls and constants that package syscall does not have. They are the
// same on amd64 and arm64.
const (
	sysLandlockCreate   = 444
	sysLandlockRestrict = 446
	sysCloseRange       = 436
	landlockVersion     = 1

	prSetNoNewPrivs = 38
	prGetNoNewPrivs = 39
)

// Kernel limits of a child. They stand behind the limits of a program, which
// are smaller.
const (
	maxCPU   = 45        // seconds
	maxData  = 640 << 20 // private writable memory: the linear memory, Go's heap and stacks
	maxFiles = 16        // its three pipes, and what Go's own poller opens
)

// harden puts on the layers that are not in off and tells which are missing.
// What it does holds for every thread of the process.
func harden(off frame.Layer) frame.Missing {
	var missing frame.Missing
	for _, step := range [...]struct {
		layer frame.Layer
		apply func() syscall.Errno
	}{
		{frame.NoNewPrivs, noNewPrivs},
		{frame.Landlock, landlock},
		{frame.Rlimits, rlimits},
		{frame.Seccomp, seccomp},
	} {
		switch {
		case off&step.layer != 0:
			missing.Add(step.layer, 0)
		default:
			if errno := step.apply(); errno != 0 {
				missing.Add(step.layer, uint8(errno))
			}
		}
	}
	return missing
}

// closeInherited closes every file but the three pipes: what the parent may
// have inherited itself without knowing, and what the runtime has opened to
// watch the number of processors.
func closeInherited() {
	const first, last = 3, 1<<32 - 1
	if _, _, e := syscall.RawSyscall(sysCloseRange, first, last, 0); e != 0 {
		for fd := first; fd < 256; fd++ {
			_ = syscall.Close(fd)
		}
	}
}

func noNewPrivs() syscall.Errno {
	_, _, e := syscall.AllThreadsSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0)
	return e
}

func rlimits() syscall.Errno {
	for _, l := range [...]struct {
		which int
		max   uint64
	}{
		{syscall.RLIMIT_CORE, 0}, {syscall.RLIMIT_FSIZE, 0}, {syscall.RLIMIT_CPU, maxCPU},
		{syscall.RLIMIT_DATA, maxData}, {syscall.RLIMIT_NOFILE, maxFiles},
	} {
		if err := syscall.Setrlimit(l.which, &syscall.Rlimit{Cur: l.max, Max: l.max}); err != nil {
			errno, _ := err.(syscall.Errno) //nolint:errorlint // never wrapped, and package errors is not the child's
			return errno
		}
	}
	return 0
}

// landlock gives up the file system, TCP, and signals and abstract sockets to
// the outside, as far as the kernel knows them. No rule allows anything.
func landlock() syscall.Errno {
	abi, _, e := syscall.RawSyscall(sysLandlockCreate, 0, 0, landlockVersion)
	if e != 0 {
		return e
	}
	rules := struct{ fs, net, scoped uint64 }{fs: 1<<13 - 1}
	size := uintptr(8)
	if abi >= 2 {
		rules.fs |= 1 << 13 // refer
	}
	if abi >= 3 {
		rules.fs |= 1 << 14 // truncate
	}
	if abi >= 4 {
		rules.net, size = 1<<2-1, 16 // bind and connect TCP
	}
	if abi >= 5 {
		rules.fs |= 1 << 15 // ioctl on devices
	}
	if abi >= 6 {
		rules.scoped, size = 1<<2-1, 24 // abstract sockets, signals
	}
	fd, _, e := syscall.RawSyscall(sysLandlockCreate, uintptr(unsafe.Pointer(&rules)), size, 0)
	if e != 0 {
		return e
	}
	_, _, e = syscall.AllThreadsSyscall(sysLandlockRestrict, fd, 0, 0)
	_ = syscall.Close(int(fd))
	return e
}

// probe tries what the layers other than seccomp forbid and tells which hold.
func probe() frame.Missing {
	var missing frame.Missing
	if v, _, e := syscall.RawSyscall6(syscall.SYS_PRCTL, prGetNoNewPrivs, 0, 0, 0, 0, 0); e != 0 || v != 1 {
		missing.Add(frame.NoNewPrivs, uint8(e))
	}
	var cpu syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CPU, &cpu); err != nil || cpu.Max > maxCPU {
		missing.Add(frame.Rlimits, 0)
	}
	if fd, err := syscall.Open("/", syscall.O_RDONLY|syscall.O_DIRECTORY, 0); err != syscall.EACCES {
		if err == nil {
			_ = syscall.Close(fd)
		}
		missing.Add(frame.Landlock, 0)
	}
	return missing
}

// attempt makes the system call that p stands for, which seccomp kills for.
func attempt(p frame.Probe) {
	path := []byte("/\x00")
	root := uintptr(unsafe.Pointer(&path[0]))
	const atFdCwd = ^uintptr(99) // -100
	switch p {
	case frame.ProbeSocket:
		_, _, _ = syscall.RawSyscall(syscall.SYS_SOCKET, syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	case frame.ProbeOpen:
		_, _, _ = syscall.RawSyscall6(syscall.SYS_OPENAT, atFdCwd, root, syscall.O_RDONLY, 0, 0, 0)
	case frame.ProbeFork:
		_, _, _ = syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	case frame.ProbeExec:
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXECVE, root, 0, 0)
	case frame.ProbeKill:
		_, _, _ = syscall.RawSyscall(syscall.SYS_KILL, uintptr(syscall.Getpid()), 0, 0)
	case frame.ProbeSignal: // signal 0: should it get through, nothing happens
		_, _, _ = syscall.RawSyscall(syscall.SYS_TGKILL, 1, 1, 0)
	case frame.ProbeExecutable:
		_, _, _ = syscall.RawSyscall6(syscall.SYS_MMAP, 0, 4096, syscall.PROT_READ|syscall.PROT_EXEC, syscall.MAP_PRIVATE|syscall.MAP_ANON, ^uintptr(0), 0)
	}
}

// parentGone tells whether the other end of stdin has been closed.
func parentGone() bool {
	fds := [1]struct {
		fd      int32
		events  int16
		revents int16
	}{}
	const pollHup = 0x10
	var now syscall.Timespec
	n, _, _ := syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&fds)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	return n == 1 && fds[0].revents&pollHup != 0
}
