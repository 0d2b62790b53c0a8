package main

import (
	"errors"
	"syscall"
)

// quietSignals has nothing to do: here such writes are errors anyway.
func quietSignals() {}

// nobodyReads reports whether an error of writing means that the reader left.
func nobodyReads(err error) bool {
	const noData = syscall.Errno(232) // ERROR_NO_DATA: the pipe is being closed
	return errors.Is(err, syscall.ERROR_BROKEN_PIPE) || errors.Is(err, noData)
}
