//go:build unix

package quickjs

import "syscall"

// sysProcAttr puts the child into a process group of its own, so that a
// terminal's Ctrl-C reaches the parent only, which then ends it in order.
func sysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
