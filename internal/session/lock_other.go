//go:build !linux && !darwin

package session

import "os"

// lockFile says that a lock file is needed.
func lockFile(file) error { return errNoLocks }

// alive reports whether a process of this machine still runs. Where that
// cannot be asked, every process counts as running, and its lock file has to
// be removed by hand.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	_ = p.Release()
	return true
}
