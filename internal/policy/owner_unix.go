//go:build unix

package policy

import (
	"io/fs"
	"syscall"
)

// ownedBy says whether a file belongs to the user or to the administrator.
func ownedBy(uid int, info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (int(st.Uid) == uid || st.Uid == 0)
}
