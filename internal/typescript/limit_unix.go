//go:build unix

package typescript

import "syscall"

// limit bounds this process. Where the system does not know a limit, the wall
// time that the parent allows is what is left.
func limit() {
	syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: maxCPU, Max: maxCPU})
	syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: maxMemory, Max: maxMemory})
	syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
}
