//go:build amd64 || arm64

package keeper

import (
	"syscall"
	"time"
)

// bomb is the number of descendants from which on a command gets no time to
// clean up: by then it only multiplies.
const bomb = 500

// end stops every descendant: SIGTERM and TermMS for those that clean up behind
// themselves (git removes its lock file), then SIGKILL until none is left.
func (k *keeper) end() {
	// Among thousands of hungry processes each look at /proc takes seconds, so
	// nothing here needs a whole one before the first SIGKILL.
	list := k.scanner.descendants(250 * time.Millisecond)
	k.name(list)
	if len(list) < bomb && k.req.TermMS > 0 && k.terminate(list) {
		return
	}
	signalGroup(int(k.result.Pid), syscall.SIGKILL)
	pause := 200 * time.Microsecond
	for pass, until := 0, time.Now().Add(killLimit); time.Now().Before(until); pass++ {
		if pass >= 2 {
			// They multiply. Stopped ones cannot fork, and unlike killed ones
			// they free no place under a process limit for others.
			k.freeze()
		}
		list := k.scanner.descendants(killLimit)
		k.name(list)
		signalGroups(list, syscall.SIGKILL)
		for _, p := range list {
			p.Signal(syscall.SIGKILL)
		}
		poll([]pollFD{{fd: -1}}, pause)
		pause = min(2*pause, 20*time.Millisecond)
		if k.reap() {
			return
		}
	}
	for _, p := range k.scanner.descendants(killLimit) {
		if !p.Zombie() && len(k.result.Alive) < MaxNamed {
			k.result.Alive = append(k.result.Alive, Process{p.pid, p.Command()})
		}
	}
}

// terminate sends SIGTERM once to each process of list, and reports whether
// all descendants ended in the time for that.
func (k *keeper) terminate(list []Proc) (all bool) {
	for _, p := range list {
		p.Signal(syscall.SIGTERM)
		p.Signal(syscall.SIGCONT) // a stopped process gets its SIGTERM only then
	}
	for until := time.Now().Add(time.Duration(k.req.TermMS) * time.Millisecond); !k.reap(); {
		left := time.Until(until)
		if left <= 0 {
			return false
		}
		poll([]pollFD{{fd: -1}}, min(left, time.Millisecond))
	}
	return true
}

// name remembers the living processes of list as ended by the keeper.
func (k *keeper) name(list []Proc) {
	for _, p := range list {
		if p.Zombie() || p.pid == k.pid || k.names[p.pid] {
			continue
		}
		k.names[p.pid] = true
		k.result.KilledCount++
		if len(k.result.Killed) < MaxNamed {
			k.result.Killed = append(k.result.Killed, Process{p.pid, p.Command()})
		}
	}
}

// freeze stops descendants until a look finds only stopped ones, or for a few
// rounds; the kill that follows is repeated anyhow.
func (k *keeper) freeze() {
	for range 10 {
		moving := 0
		list := k.scanner.descendants(killLimit)
		signalGroups(list, syscall.SIGSTOP)
		for _, p := range list {
			if p.state != 'T' && p.state != 'Z' {
				moving++
				p.Signal(syscall.SIGSTOP)
			}
		}
		if moving == 0 {
			return
		}
	}
}

// signalGroups sends sig to the groups of the processes in list. The kernel does
// that in one step, so a process that forks and exits all the time cannot slip
// away under a new id. A group of a descendant holds descendants only: the
// keeper gave them a session of their own, and no group spans two.
func signalGroups(list []Proc, sig syscall.Signal) {
	done := map[int]bool{}
	for _, p := range list {
		if !done[p.group] {
			done[p.group] = true
			signalGroup(p.group, sig)
		}
	}
}

// signalGroup refuses group 0, which means the caller's own, and 1, for which
// kill would take everybody, and the caller's own by its number (BUG-CX-03).
func signalGroup(group int, sig syscall.Signal) syscall.Errno {
	if group <= 1 || group == syscall.Getpgrp() {
		return syscall.EPERM
	}
	return errno(syscall.Kill(-group, sig))
}

// Signal sends sig to the process that was found, never to another that has
// taken its id since, and never to pid 0 or 1 (which mean the own group and
// init) or to the calling process. It returns ESRCH for a process that is gone.
func (p Proc) Signal(sig syscall.Signal) syscall.Errno {
	if p.pid <= 1 || p.pid == syscall.Getpid() {
		return syscall.EPERM
	}
	if p.parent == syscall.Getpid() {
		// A child's id is free for others only after the caller has reaped it.
		return errno(syscall.Kill(p.pid, sig))
	}
	fd := pidfdOpen(p.pid)
	if fd < 0 {
		if !p.same() {
			return syscall.ESRCH
		}
		return errno(syscall.Kill(p.pid, sig))
	}
	defer syscall.Close(fd)
	if !p.same() {
		return syscall.ESRCH
	}
	_, _, err := syscall.Syscall6(sysPidfdSendSignal, uintptr(fd), uintptr(sig), 0, 0, 0, 0)
	if err == syscall.ENOSYS {
		return errno(syscall.Kill(p.pid, sig))
	}
	return err
}

func errno(err error) syscall.Errno {
	if e, ok := err.(syscall.Errno); ok {
		return e
	}
	return 0
}
