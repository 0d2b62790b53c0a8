//go:build linux || darwin

package session

import (
	"errors"
	"syscall"
)

// lockFile locks f for this open file alone; readers need no lock.
func lockFile(f file) error {
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrBusy
		case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.ENOLCK):
			return errNoLocks
		default:
			return err
		}
	}
}

// alive reports whether a process of this machine still runs. One of another
// user's does too.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return pid > 0 && (err == nil || errors.Is(err, syscall.EPERM))
}
