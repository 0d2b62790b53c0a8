//go:build unix

package guest

import (
	"syscall"
	"time"
)

// prepare makes the pipes block, whatever the parent left them at.
func prepare() {
	for fd := range 3 {
		_ = syscall.SetNonblock(fd, false)
	}
}

func readInput(b []byte) (int, error) {
	for {
		n, err := syscall.Read(0, b)
		if err != syscall.EINTR {
			return n, err
		}
	}
}

func writeOutput(b []byte) (int, error) {
	for {
		n, err := syscall.Write(1, b)
		if err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}

func writeError(b []byte) (int, error) { return syscall.Write(2, b) }

func exit(code int) { syscall.Exit(code) }

// cpuTime is the CPU time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// reserve reserves size bytes of address space; pages become real when touched.
func reserve(size int) []byte {
	b, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON|mapNoReserve)
	if err != nil {
		return make([]byte, 0, size)
	}
	return b[:0]
}
