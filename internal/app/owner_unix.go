//go:build unix

package app

import (
	"io/fs"
	"os"
	"syscall"
)

// ours says whether a file is the user's own.
func ours(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid()
}
