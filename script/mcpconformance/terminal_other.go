//go:build !unix

package main

import (
	"errors"
	"io"
	"os/exec"
)

func onTerminal(*exec.Cmd, io.Writer) error {
	return errors.New("there are no pseudo-terminals on this system")
}
