//go:build linux || darwin

package mcp

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// maxLockWait bounds how long the logins are waited for. Who changes them holds
// them for milliseconds, unless it was stopped just then.
const maxLockWait = 10 * time.Second

// lockDir keeps other processes from changing the logins until unlock. It locks
// the directory itself, so no lock file is left. Where a file system has no locks
// there is none.
func lockDir(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(maxLockWait); ; time.Sleep(2 * time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return func() { _ = f.Close() }, nil
		}
		if time.Now().After(end) {
			_ = f.Close()
			return nil, errors.New("another process has locked " + dir + " and does not let go")
		}
	}
}
