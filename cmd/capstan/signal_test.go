//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Whatever ends the agent in the middle of a nested shell call, nothing of it
// survives: not the command, not what left its session, not the interpreter.
// S0-145 S0-146 S0-148 S0-247 BUG-CM-01 BUG-CX-01 BUG-CX-05 BUG-CX-08
func TestSignals(t *testing.T) {
	const program = `const job = await tools.run_shell_command({ command: "sleep 300", is_background: true });
text("started");
await tools.run_shell_command({ command: "sleep 300 & setsid sleep 300 & (setsid sh -c 'sleep 300 & exec sleep 300' &) ; nohup sleep 300 & touch ready; wait" });`
	for _, tc := range []struct {
		signal syscall.Signal
		code   int
	}{
		{syscall.SIGINT, 130},
		{syscall.SIGTERM, 130},
		{syscall.SIGHUP, 130}, // the terminal was closed
		{syscall.SIGKILL, -1},
	} {
		t.Run(tc.signal.String(), func(t *testing.T) {
			mark := fmt.Sprintf("capstan-signal-%d-%d", os.Getpid(), tc.signal)
			w := newWaiting(t, []string{"exec", "--approval-mode", "yolo", "-e", program}, "MARK="+mark)
			var out bytes.Buffer
			w.cmd.Stdin, w.cmd.Stdout = nil, &out
			w.start(t)
			dir := w.cmd.Dir
			w.until(t, "the command runs", func() bool {
				_, err := os.Stat(filepath.Join(dir, "ready"))
				return err == nil && len(sleeping(mark)) >= 6
			})
			w.signal(t, tc.signal)
			if code := w.end(t); code != tc.code {
				t.Errorf("exit code %d, want %d; stderr: %s", code, tc.code, w.stderr())
			}
			until(t, "nothing is left", func() bool { return len(processes(mark, dir)) == 0 })
			if tc.signal == syscall.SIGKILL {
				return
			}
			if out.String() != "started\n" { // what was printed stays
				t.Errorf("stdout %q", out.String())
			}
			if s := w.stderr(); !strings.Contains(s, "error: interrupted") || !strings.Contains(s, "Ended with the run: job-1: sleep 300") {
				t.Errorf("stderr %q", s)
			}
		})
	}
}

func sleeping(mark string) []string {
	var list []string
	for _, p := range processes(mark, "/nowhere") {
		if strings.Contains(p, "sleep 300") {
			list = append(list, p)
		}
	}
	return list
}

// until waits for a condition; how long it takes decides nothing.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 600 {
		if ok() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%s: it never came to that", what)
}

// A signal also ends a run that waits for its program, or whose output nobody
// reads.
func TestSignalWhileBlocked(t *testing.T) {
	for name, args := range map[string][]string{
		"standard input": {"exec", "-"},
		"output":         {"exec", "-e", `text("x".repeat(1 << 20)); await tools.list_directory({}); text("x".repeat(1 << 20))`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWaiting(t, args)
			w.start(t)
			w.until(t, "it waits", w.blocked)
			w.signal(t, syscall.SIGTERM)
			if code := w.end(t); code != 130 {
				t.Errorf("exit code %d, want 130; stderr: %s", code, w.stderr())
			}
		})
	}
}

// Who looks at tools and waits for a server that does not answer is interrupted as
// everywhere.
func TestSignalWhileServersStart(t *testing.T) {
	for _, args := range [][]string{{"tools", "search", "x"}, {"tools", "show", "x"}} {
		t.Run(args[1], func(t *testing.T) {
			w := newWaiting(t, args)
			dir := w.cmd.Dir
			settings := `{"mcpServers": {"silent": {"command": "sh", "args": ["-c", "touch \"$0\"; exec sleep 300", "` + filepath.Join(dir, "ready") + `"]}}}`
			if err := os.MkdirAll(filepath.Join(dir, ".capstan"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, ".capstan", "settings.json"), []byte(settings), 0o600); err != nil {
				t.Fatal(err)
			}
			w.start(t)
			w.until(t, "the server is started", func() bool {
				_, err := os.Stat(filepath.Join(dir, "ready"))
				return err == nil
			})
			w.signal(t, syscall.SIGINT)
			if code := w.end(t); code != 130 {
				t.Errorf("exit code %d, want 130; stderr: %s", code, w.stderr())
			}
		})
	}
}

// blocked says whether a thread of the process waits in a pipe.
func blocked(pid int) bool {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	for _, t := range tasks {
		// read or write of descriptor 0 or 1, as "NUMBER 0xFD …"
		data, _ := os.ReadFile(t)
		f := strings.Fields(string(data))
		if len(f) > 1 && (f[0] == fmt.Sprint(syscall.SYS_READ) && f[1] == "0x0" || f[0] == fmt.Sprint(syscall.SYS_WRITE) && f[1] == "0x1") {
			return true
		}
	}
	return false
}
