package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdClient runs a command and talks to it as a program does that reads its
// stream: client TALK CODE COMMAND [ARG...]. TALK is a file of lines: "expect
// REGEXP" waits for a line of stdout that fits, "send LINE" writes one to stdin,
// in which $1 is what the last REGEXP has found in its parentheses, "end" closes
// stdin, as the end of TALK does. CODE is the exit code wanted. All of stdout
// becomes the file "stream".
func cmdClient(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: client TALK CODE COMMAND [ARG...]")
	}
	cmd := exec.Command(args[2], args[3:]...)
	if args[2] == "capstan" {
		cmd.Path = binary
	}
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "MARK", "XDG_STATE_HOME", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GEMINI_BASE_URL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	stop := time.AfterFunc(60*time.Second, func() { _ = cmd.Process.Kill() }) // decides nothing: the test has failed then
	defer stop.Stop()
	seen, failure := talk(bufio.NewReader(out), in, ts.ReadFile(args[0]))
	_ = in.Close()
	rest, _ := io.ReadAll(out)
	_ = cmd.Wait() // the code says it all
	if code := fmt.Sprint(cmd.ProcessState.ExitCode()); failure == "" && code != args[1] {
		failure = fmt.Sprintf("exit code %s, want %s", code, args[1])
	}
	if failure != "" {
		ts.Fatalf("%s; it said:\n%s%s\nstderr:\n%s", failure, seen, rest, errs.String())
	}
	ts.Check(os.WriteFile(ts.MkAbs("stream"), []byte(seen+string(rest)), 0o644))
	ts.Check(os.WriteFile(ts.MkAbs("errors"), []byte(errs.String()), 0o644))
}

// talk says what the lines of a talk say, and returns what it has heard.
func talk(out *bufio.Reader, in io.WriteCloser, lines string) (seen, failure string) {
	var heard strings.Builder
	found := ""
	for line := range strings.Lines(lines) {
		verb, text, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		switch verb {
		case "expect":
			for {
				got, err := out.ReadString('\n')
				heard.WriteString(got)
				if m := regexp.MustCompile(text).FindStringSubmatch(got); m != nil {
					if len(m) > 1 {
						found = m[1]
					}
					break
				}
				if err != nil {
					return heard.String(), fmt.Sprintf("%q did not come", text)
				}
			}
		case "send":
			if _, err := io.WriteString(in, strings.ReplaceAll(text, "$1", found)+"\n"); err != nil {
				return heard.String(), fmt.Sprintf("sending: %v", err)
			}
		case "end":
			_ = in.Close()
		}
	}
	return heard.String(), ""
}
