//go:build linux && (amd64 || arm64)

package guest

import (
	"syscall"
	"unsafe"
)

// The allowlist: what the Go runtime, reading, writing and reading clocks need.
// Everything else kills the process, but for prctl, which the runtime tries,
// and which fails.
var allowed = [...]uint32{
	syscall.SYS_READ, syscall.SYS_WRITE, syscall.SYS_FUTEX,
	syscall.SYS_MUNMAP, syscall.SYS_MADVISE,
	syscall.SYS_RT_SIGRETURN, syscall.SYS_RT_SIGPROCMASK, syscall.SYS_RT_SIGACTION, syscall.SYS_SIGALTSTACK,
	syscall.SYS_GETPID, syscall.SYS_GETTID,
	syscall.SYS_NANOSLEEP, syscall.SYS_CLOCK_GETTIME, syscall.SYS_SCHED_YIELD, syscall.SYS_RESTART_SYSCALL,
	syscall.SYS_EXIT, syscall.SYS_EXIT_GROUP,
	syscall.SYS_EPOLL_CREATE1, syscall.SYS_EPOLL_CTL, syscall.SYS_EPOLL_PWAIT, syscall.SYS_EVENTFD2,
	syscall.SYS_SET_ROBUST_LIST, syscall.SYS_GETRUSAGE, syscall.SYS_PPOLL, sysRseq,
}

// filter is one instruction of classic BPF.
type filter struct {
	code   uint16
	jt, jf uint8
	k      uint32
}

// Instructions and answers of a seccomp filter.
const (
	bpfLoad   = 0x20 // load the word at k of the call's description
	bpfEqual  = 0x15
	bpfAnyBit = 0x45
	bpfReturn = 0x06

	retKill  = 0x80000000 // the whole process
	retAllow = 0x7fff0000
	retEPERM = 0x00050000 | uint32(syscall.EPERM)

	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16 // 8 bytes each, low word first
)

const (
	protExec    = 4
	cloneThread = 0x10000

	seccompSetFilter  = 1
	seccompAllThreads = 1
)

// program is the filter of the process pid.
func program(pid uint32) []filter {
	p := []filter{
		{bpfLoad, 0, 0, offsetArch}, {bpfEqual, 1, 0, auditArch}, {bpfReturn, 0, 0, retKill},
		{bpfLoad, 0, 0, offsetNumber},
	}
	for _, n := range allowed {
		p = append(p, filter{bpfEqual, 0, 1, n}, filter{bpfReturn, 0, 0, retAllow})
	}
	p = append(p, filter{bpfEqual, 0, 1, syscall.SYS_PRCTL}, filter{bpfReturn, 0, 0, retEPERM})
	for _, n := range [...]uint32{syscall.SYS_MMAP, syscall.SYS_MPROTECT} { // no executable memory
		p = append(p, filter{bpfEqual, 0, 4, n}, filter{bpfLoad, 0, 0, offsetArgs + 8*2},
			filter{bpfAnyBit, 0, 1, protExec}, filter{bpfReturn, 0, 0, retKill}, filter{bpfReturn, 0, 0, retAllow})
	}
	p = append(p, filter{bpfEqual, 0, 4, syscall.SYS_TGKILL}, filter{bpfLoad, 0, 0, offsetArgs}, // the runtime preempts its own threads by signals
		filter{bpfEqual, 1, 0, pid}, filter{bpfReturn, 0, 0, retKill}, filter{bpfReturn, 0, 0, retAllow})
	p = append(p, filter{bpfEqual, 0, 4, syscall.SYS_CLONE}, filter{bpfLoad, 0, 0, offsetArgs}, // threads only
		filter{bpfAnyBit, 1, 0, cloneThread}, filter{bpfReturn, 0, 0, retKill}, filter{bpfReturn, 0, 0, retAllow})
	return append(p, filter{bpfReturn, 0, 0, retKill})
}

// seccomp installs the allowlist on every thread. It needs no_new_privs or
// privileges.
func seccomp() syscall.Errno {
	f := program(uint32(syscall.Getpid()))
	p := struct {
		n uint16
		f *filter
	}{uint16(len(f)), &f[0]}
	r, _, e := syscall.RawSyscall(sysSeccomp, seccompSetFilter, seccompAllThreads, uintptr(unsafe.Pointer(&p)))
	if e == 0 && r != 0 {
		return syscall.ESRCH // a thread that could not be brought in line
	}
	return e
}
