//go:build amd64 || arm64

package keeper

import (
	"syscall"
	"time"
)

// end stops every descendant: SIGTERM and TermMS for those that clean up behind
// themselves (git removes its lock file), then SIGKILL until none is left.
func (k *keeper) end() {
	if k.req.TermMS > 0 {
		k.signalAll(syscall.SIGTERM)
		k.signalAll(syscall.SIGCONT) // a stopped process gets its SIGTERM only then
		for until := time.Now().Add(time.Duration(k.req.TermMS) * time.Millisecond); ; {
			if k.reap() {
				return
			}
			left := time.Until(until)
			if left <= 0 {
				break
			}
			poll([]pollFD{{fd: -1}}, min(left, time.Millisecond))
		}
	}
	pause := 200 * time.Microsecond
	for pass, until := 0, time.Now().Add(killLimit); time.Now().Before(until); pass++ {
		if pass >= 2 {
			// They multiply. Stopped ones cannot fork, and unlike killed ones
			// they free no place under a process limit for others.
			k.freeze()
		}
		k.signalAll(syscall.SIGKILL)
		poll([]pollFD{{fd: -1}}, pause)
		pause = min(2*pause, 20*time.Millisecond)
		if k.reap() {
			return
		}
	}
	for _, p := range k.scanner.descendants(syscall.Getpid()) {
		if p.state != 'Z' && len(k.result.Alive) < MaxNamed {
			k.result.Alive = append(k.result.Alive, Process{p.pid, p.Command()})
		}
	}
}

// freeze stops descendants until a look finds only stopped ones, or for a few
// rounds; the kill that follows is repeated anyhow.
func (k *keeper) freeze() {
	for range 10 {
		moving := 0
		for _, p := range k.scanner.descendants(syscall.Getpid()) {
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

// signalAll sends sig to every living descendant and remembers who got it.
func (k *keeper) signalAll(sig syscall.Signal) {
	for _, p := range k.scanner.descendants(syscall.Getpid()) {
		if p.state == 'Z' {
			continue
		}
		if p.pid != k.pid && !k.names[p.pid] && sig != syscall.SIGCONT {
			k.names[p.pid] = true
			k.result.KilledCount++
			if len(k.result.Killed) < MaxNamed {
				k.result.Killed = append(k.result.Killed, Process{p.pid, p.Command()})
			}
		}
		p.Signal(sig)
	}
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
