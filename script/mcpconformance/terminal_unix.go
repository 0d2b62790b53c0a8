//go:build unix

package main

import (
	"bytes"
	"io"
	"os/exec"

	"github.com/creack/pty"
)

// onTerminal runs a command on a pseudo-terminal and copies what it shows to
// said. A form of a server is accepted, and of its fields each left as it is.
func onTerminal(cmd *exec.Cmd, said io.Writer) error {
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 500})
	if err != nil {
		return err
	}
	defer master.Close()
	var question []byte // what was shown since the last answer
	buf := make([]byte, 4096)
	for {
		n, err := master.Read(buf)
		_, _ = said.Write(bytes.ReplaceAll(buf[:n], []byte("\r\n"), []byte("\n")))
		if err != nil { // EIO when the other side is closed
			break
		}
		question = append(question, buf[:n]...)
		if !bytes.HasSuffix(question, []byte("> ")) {
			continue
		}
		answer := "\n"
		if bytes.Contains(question, []byte("y = yes")) {
			answer = "y\n"
		}
		question = nil
		if _, err := io.WriteString(master, answer); err != nil {
			break
		}
	}
	return cmd.Wait()
}
