package guest

import (
	"syscall"
	"time"
)

func prepare() {}

func readInput(b []byte) (int, error)   { return syscall.Read(syscall.Stdin, b) }
func writeOutput(b []byte) (int, error) { return syscall.Write(syscall.Stdout, b) }

func writeError(b []byte) (int, error) { return syscall.Write(syscall.Stderr, b) }

func exit(code int) { syscall.Exit(code) }

// cpuTime is the CPU time that this process has used.
func cpuTime() time.Duration {
	self, err := syscall.GetCurrentProcess()
	if err != nil {
		return 0
	}
	var created, exited, kernel, user syscall.Filetime
	if syscall.GetProcessTimes(self, &created, &exited, &kernel, &user) != nil {
		return 0
	}
	ticks := func(f syscall.Filetime) time.Duration {
		return time.Duration(uint64(f.HighDateTime)<<32|uint64(f.LowDateTime)) * 100
	}
	return ticks(kernel) + ticks(user)
}

func reserve(size int) []byte { return make([]byte, 0, size) }
