//go:build !windows

package shell

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// signalName gives a name such as SIGTERM, or "" for 0.
func signalName(sig uint32) string {
	if sig == 0 {
		return ""
	}
	if name := unix.SignalName(unix.Signal(sig)); name != "" {
		return name
	}
	return "signal " + strconv.Itoa(int(sig))
}
