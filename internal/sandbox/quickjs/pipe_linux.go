package quickjs

import (
	"os"
	"syscall"
)

const setPipeSize = 1031 // F_SETPIPE_SZ

// widen gives a pipe room for more than the usual 64 KiB, so that a long body
// crosses with fewer turns of the two processes. A system that refuses loses
// time only.
func widen(f *os.File) {
	c, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = c.Control(func(fd uintptr) {
		_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, fd, setPipeSize, 512<<10)
	})
}
