//go:build unix

package main

import "syscall"

// onTerminal makes the child the leader of a session whose terminal is its
// standard input.
func onTerminal() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
}

func leaveTerminal() { syscall.Setsid() } // fails for a process group's leader, which go test does not start
