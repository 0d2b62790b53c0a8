//go:build !linux

package quickjs

import "os"

// self is the running executable.
func self() (string, error) { return os.Executable() }
