//go:build !unix

package main

import (
	"io"
	"os/exec"
)

func onTerminal(*exec.Cmd, io.Writer) error { return errNoTerminal }
