//go:build !linux

package typescript

import "os"

// self is the running executable.
func self() (string, error) { return os.Executable() }
