//go:build unix

package builtin

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
)

const maxLockWait = 2 * time.Second

// lock locks a file against other processes of ours, which hold it for
// milliseconds. Whoever holds it longer means something else by it. Where a file
// system has no locks there is none.
func lock(ctx context.Context, h *os.File) error {
	for end := time.Now().Add(maxLockWait); ; {
		err := syscall.Flock(int(h.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil
		}
		if time.Now().After(end) {
			return errors.New("another process has locked the file and does not let go")
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// links returns how many names a file has.
func links(fi fs.FileInfo) uint64 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink) //nolint:unconvert // its type differs from system to system
	}
	return 1
}

// keepOwner gives a new file the owner and group of the one it replaces, and
// says whether it has them.
func keepOwner(h *os.File, was fs.FileInfo) bool {
	now, err := h.Stat()
	if err != nil {
		return false
	}
	a, okA := was.Sys().(*syscall.Stat_t)
	b, okB := now.Sys().(*syscall.Stat_t)
	if !okA || !okB || a.Uid == b.Uid && a.Gid == b.Gid {
		return true
	}
	if h.Chown(int(a.Uid), int(a.Gid)) == nil {
		return true
	}
	return h.Chown(-1, int(a.Gid)) == nil && a.Uid == b.Uid
}
