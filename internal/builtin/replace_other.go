//go:build !unix

package builtin

import (
	"context"
	"io/fs"
	"os"
)

// lock has no lock to take here.
func lock(context.Context, *os.File) error { return nil }

// links returns how many names a file has, as far as can be told.
func links(fs.FileInfo) uint64 { return 1 }

// keepOwner has nothing to do where files have no owner of this kind.
func keepOwner(*os.File, fs.FileInfo) bool { return true }
