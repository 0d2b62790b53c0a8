//go:build unix

package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// quietSignals makes errors of what would end the process at once, and the
// session's record with it: writing to a pipe that is closed, and beyond the
// size that files may have. They are caught, not ignored, because what is
// ignored would be so in every command that is run.
func quietSignals() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGXFSZ) }

// nobodyReads reports whether an error of writing means that the reader left.
func nobodyReads(err error) bool { return errors.Is(err, syscall.EPIPE) }
