//go:build amd64 || arm64

package keeper

import (
	"syscall"
	"unsafe"
)

// The system calls of Landlock have the same numbers on amd64 and arm64.
const (
	sysLandlockCreate   = 444
	sysLandlockAdd      = 445
	sysLandlockRestrict = 446
	landlockVersion     = 1
	landlockBeneath     = 1

	sysIoUringSetup = 425 // its rings make sockets too

	prSetNoNewPrivs   = 38
	prSetSeccomp      = 22
	seccompModeFilter = 2

	oPath = 0x200000
)

// The rights of Landlock that change something.
const (
	mayWriteFile = 1 << 1
	mayRefer     = 1 << 13 // since version 2; before that no file moves between directories
	mayTruncate  = 1 << 14 // since version 3
	mayChange    = mayWriteFile | (1<<13 - 1<<4)
)

// scopeSignals keeps signals to processes that are not confined, or otherwise,
// from being sent; since version 6.
const scopeSignals = 1 << 1

// devices are what a program may write to: to say nothing, to use its terminal, to
// draw or to run a machine. Not all of /dev, for in /dev/shm lie files of others.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/console", "/dev/kvm", "/dev/fuse", "/dev/dri"}

// LandlockVersion is that of the running kernel; 0 when it has none.
func LandlockVersion() int {
	v, _, err := syscall.RawSyscall(sysLandlockCreate, 0, 0, landlockVersion)
	if err != 0 {
		return 0
	}
	return int(v)
}

// confine takes rights away from the calling thread, and so from the program that
// it starts, for good: to change what is not below the request's Writable, and to
// reach a network. It is to be called on the thread that forks. Reading and
// running files stay free, so that compilers and shells do their work.
func (k *keeper) confine() syscall.Errno {
	if k.req.Confine == 0 {
		return 0
	}
	if err := prctl(prSetNoNewPrivs, 1); err != 0 { // else a setuid program would undo it
		return err
	}
	if k.req.Confine&ConfineFiles != 0 {
		if err := landlock(k.req.Writable); err != 0 {
			return err
		}
	}
	if k.req.Confine&ConfineNetwork != 0 {
		return noNetwork()
	}
	return 0
}

func landlock(writable []string) syscall.Errno {
	rights := uint64(mayChange)
	v := LandlockVersion()
	switch {
	case v == 0:
		return syscall.ENOSYS
	case v >= 3:
		rights |= mayTruncate | mayRefer
	case v >= 2:
		rights |= mayRefer
	}
	attr, size := [3]uint64{rights, 0, scopeSignals}, unsafe.Sizeof(rights)
	if v >= 6 {
		size = unsafe.Sizeof(attr) // with rights about ports, which are none, and what is scoped
	}
	fd, _, err := syscall.RawSyscall(sysLandlockCreate, uintptr(unsafe.Pointer(&attr)), size, 0)
	if err != 0 {
		return err
	}
	defer syscall.Close(int(fd))
	for _, path := range writable {
		if err := allow(int(fd), path, rights); err != 0 && err != syscall.ENOENT {
			return err
		}
	}
	for _, path := range devices {
		if err := allow(int(fd), path, rights&(mayWriteFile|mayTruncate)); err != 0 && err != syscall.ENOENT && err != syscall.ENXIO && err != syscall.EACCES {
			return err
		}
	}
	_, _, err = syscall.RawSyscall(sysLandlockRestrict, fd, 0, 0)
	return err
}

// allow adds a rule for what lies below a path.
func allow(ruleset int, path string, rights uint64) syscall.Errno {
	fd, err := syscall.Open(path, oPath|syscall.O_CLOEXEC, 0)
	if err != nil {
		return errno(err)
	}
	defer syscall.Close(fd)
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return errno(err)
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		rights &= mayWriteFile | mayTruncate // the kernel refuses those of directories
	}
	// The kernel's struct is packed: 8 bytes of rights, 4 of descriptor.
	var rule [12]byte
	*(*uint64)(unsafe.Pointer(&rule[0])) = rights
	putUint(rule[8:], uint32(fd))
	_, _, e := syscall.RawSyscall6(sysLandlockAdd, uintptr(ruleset), landlockBeneath, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	return e
}

// Parts of a seccomp filter.
const (
	ldWord  = 0x20 // load a word of seccomp_data
	jumpEq  = 0x15
	jumpGe  = 0x35
	retWord = 0x06

	atNr, atArch, atArg0 = 0, 4, 16

	retAllow = 0x7fff0000
	retErrno = 0x00050000

	afUnix, afNetlink = 1, 16
)

type instruction struct {
	code   uint16
	jt, jf uint8
	k      uint32
}

// noNetwork refuses every socket but those of this machine's own (Unix, netlink),
// and whatever could make one by another way: io_uring, and the system calls of
// other architectures.
func noNetwork() syscall.Errno {
	filter := [...]instruction{
		{ldWord, 0, 0, atArch},
		{jumpEq, 1, 0, auditArch},
		{retWord, 0, 0, retErrno | uint32(syscall.EPERM)},
		{ldWord, 0, 0, atNr},
		{jumpGe, 0, 1, 0x40000000}, // x32
		{retWord, 0, 0, retErrno | uint32(syscall.ENOSYS)},
		{jumpEq, 0, 1, sysIoUringSetup},
		{retWord, 0, 0, retErrno | uint32(syscall.ENOSYS)},
		{jumpEq, 1, 0, syscall.SYS_SOCKET},
		{retWord, 0, 0, retAllow},
		{ldWord, 0, 0, atArg0},
		{jumpEq, 2, 0, afUnix},
		{jumpEq, 1, 0, afNetlink},
		{retWord, 0, 0, retErrno | uint32(syscall.EACCES)},
		{retWord, 0, 0, retAllow},
	}
	program := struct {
		n uint16
		_ [6]byte
		p *instruction
	}{uint16(len(filter)), [6]byte{}, &filter[0]}
	_, _, err := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetSeccomp, seccompModeFilter, uintptr(unsafe.Pointer(&program)), 0, 0, 0)
	return err
}
