//go:build !windows

package shell

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"capstan/internal/shell/keeper"
)

// groupAttr starts a session of its own, which also has no terminal.
func groupAttr(keeper.Request) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// signalGroup sends SIGTERM or, with force, SIGKILL to a process group, but
// never to group 0 (the caller's own), 1 (kill takes -1 for everybody) or the
// caller's (BUG-CX-03).
func signalGroup(pid int, force bool) {
	if pid <= 1 || pid == syscall.Getpgrp() {
		return
	}
	sig := syscall.SIGTERM
	if force {
		sig = syscall.SIGKILL
	}
	syscall.Kill(-pid, sig)
	if !force {
		syscall.Kill(-pid, syscall.SIGCONT)
	}
}

func groupAlive(pid int) bool {
	return pid > 1 && syscall.Kill(-pid, 0) != syscall.ESRCH
}

// groupMembers names the living processes of a group as ps shows them.
func groupMembers(pid int) (list []Process) {
	if !groupAlive(pid) {
		return nil
	}
	out, err := exec.Command("ps", "-A", "-o", "pid=,pgid=,stat=,args=").Output()
	if err != nil {
		return []Process{{PID: pid, Command: "(process group)"}}
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 4 || f[1] != strconv.Itoa(pid) || strings.HasPrefix(f[2], "Z") {
			continue
		}
		if id, err := strconv.Atoi(f[0]); err == nil {
			list = append(list, Process{PID: id, Command: strings.Join(f[3:], " ")})
		}
	}
	return list
}

func exitStatus(state *os.ProcessState) (code, signal uint32) {
	if state == nil {
		return 0, uint32(syscall.SIGKILL)
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 0, uint32(ws.Signal())
	}
	return uint32(state.ExitCode()), 0
}
