package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
)

// cmdPty runs a command on a pseudo-terminal of its own: pty TALK CODE COMMAND
// [ARG...]. TALK is a file of lines: "expect TEXT" waits until the terminal has
// shown TEXT since the last expect, "type TEXT" types it (\n, \x03 and the like
// are escapes). CODE is the exit code wanted. What the terminal showed becomes
// the file "screen"; the command's stdout is the file "printed", not the terminal.
func cmdPty(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: pty TALK CODE COMMAND [ARG...]")
	}
	master, slave, err := pty.Open()
	ts.Check(err)
	defer master.Close()
	ts.Check(pty.Setsize(slave, &pty.Winsize{Rows: 50, Cols: 250})) // so wide that paths of this machine fold nothing
	stdout, err := os.Create(ts.MkAbs("printed"))
	ts.Check(err)
	defer stdout.Close()
	cmd := exec.Command(args[2], args[3:]...)
	if args[2] == "capstan" {
		cmd = exec.Command(binary, args[3:]...)
	}
	cmd.Dir = ts.Getenv("WORK")
	if d := ts.MkAbs("."); d != "" {
		cmd.Dir = d
	}
	for _, name := range []string{"PATH", "HOME", "MARK", "REPO", "SERVER", "XDG_STATE_HOME"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.Env = append(cmd.Env, "TERM=dumb")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, stdout, slave
	cmd.SysProcAttr = onTerminal()
	ts.Check(cmd.Start())
	slave.Close()

	shown := make(chan []byte)
	go func() {
		defer close(shown)
		for {
			buf := make([]byte, 4096)
			n, err := master.Read(buf)
			if n > 0 {
				shown <- buf[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	var screen, since bytes.Buffer
	deadline := time.After(60 * time.Second)
	fail := func(format string, a ...any) {
		cmd.Process.Kill()
		ts.Fatalf("%s; the terminal shows:\n%s", fmt.Sprintf(format, a...), screen.String())
	}
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		verb, text, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		switch verb {
		case "expect":
			for !strings.Contains(since.String(), text) {
				select {
				case b, ok := <-shown:
					if !ok {
						fail("the command ended before %q came", text)
					}
					screen.Write(b)
					since.Write(b)
				case <-deadline:
					fail("%q did not come", text)
				}
			}
			since.Reset()
		case "type":
			text = strings.NewReplacer(`\n`, "\n", `\x03`, "\x03", `\x04`, "\x04", `\r`, "\r").Replace(text)
			if _, err := master.WriteString(text); err != nil {
				fail("typing: %v", err)
			}
		case "":
		default:
			fail("unknown line %q", line)
		}
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var waitErr error
wait:
	for {
		select {
		case b, ok := <-shown:
			if !ok {
				waitErr = <-done
				break wait
			}
			screen.Write(b)
		case <-deadline:
			fail("it did not end")
		}
	}
	_ = waitErr // the code says it all
	if code := fmt.Sprint(cmd.ProcessState.ExitCode()); code != args[1] {
		fail("exit code %s, want %s", code, args[1])
	}
	clean := strings.NewReplacer("\r\n", "\n", ts.Getenv("WORK"), "$WORK").Replace(screen.String())
	ts.Check(os.WriteFile(ts.MkAbs("screen"), []byte(clean), 0o644))
}
