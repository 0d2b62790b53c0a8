package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A disk that is full under the session's record ends the run before anything
// that a restart would not know of is done.
func TestFullDisk(t *testing.T) {
	url := answer(t, says("done"))
	dir := t.TempDir()
	// Files may have 1 KiB, which the first message does not fit into.
	cmd := exec.Command("bash", "-c", `ulimit -f 1; exec "$0" "$@"`, binary, "-p", strings.Repeat("a long task ", 200), "--model", "openai/m")
	cmd.Dir, cmd.Env = dir, environment(dir, "OPENAI_BASE_URL="+url)
	out, errs, code := runCapstan(t, cmd)
	if code != 1 || out != "" || !strings.Contains(errs, "recording the session failed") || !strings.Contains(errs, "free space on the disk") {
		t.Errorf("exit code %d, stdout %q, stderr %s", code, out, errs)
	}
}

// As JSON such an end is one object, although the end of the record fails too.
func TestNoRecordAsJSON(t *testing.T) {
	url := answer(t, says("done"))
	dir := t.TempDir()
	for _, format := range []string{"json", "stream-json"} {
		cmd := exec.Command(binary, "-p", "hi", "--model", "openai/m", "--output-format", format)
		cmd.Dir, cmd.Env = dir, environment(dir, "OPENAI_BASE_URL="+url, "XDG_DATA_HOME=/proc/none")
		out, errs, code := runCapstan(t, cmd)
		if strings.Contains(errs, "--resume") || !strings.Contains(errs, "XDG_DATA_HOME") {
			t.Errorf("%s: a way is told that leads nowhere, or none: %s", format, errs)
		}
		if n := strings.Count(out, `"type":"result"`); code != 1 || n != 1 || !strings.Contains(out, "recording the session failed") || !strings.Contains(errs, "recording the end of the session") {
			t.Errorf("%s: exit code %d, %d results, stdout %s, stderr %s", format, code, n, out, errs)
		}
	}
}

// Output that cannot be written is an error with its reason, and not the end
// of a reader who has seen enough.
func TestFullOutput(t *testing.T) {
	url := answer(t, says("done"))
	dir := t.TempDir()
	for _, format := range []string{"text", "json", "stream-json"} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skip(err)
		}
		defer full.Close()
		cmd := exec.Command(binary, "-p", "hi", "--model", "openai/m", "--output-format", format)
		cmd.Dir, cmd.Env, cmd.Stdout = dir, environment(dir, "OPENAI_BASE_URL="+url), full
		_, errs, code := runCapstan(t, cmd)
		if code != 1 || strings.Count(errs, "writing the output: ") != 1 || !strings.Contains(errs, "no space left on device") {
			t.Errorf("%s: exit code %d, stderr %s", format, code, errs)
		}
	}
}

// A signal that comes after the answer does not undo it.
func TestSignalAfterAnswer(t *testing.T) {
	var asked atomic.Int64
	url := answer(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 1 {
			says("done")(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		args := `{"command": "trap '' TERM; while :; do sleep 0.2; done", "is_background": true}` // it takes a while to end
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"run_shell_command\",\"arguments\":%q}}]},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n", args)
	})
	dir := t.TempDir()
	reads, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reads.Close()
	cmd := exec.Command(binary, "-p", "hi", "--model", "openai/m", "--approval-mode", "yolo")
	cmd.Dir, cmd.Env, cmd.Stdout = dir, environment(dir, "OPENAI_BASE_URL="+url), out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.Close()
	timer := time.AfterFunc(60*time.Second, func() { cmd.Process.Kill() })
	defer timer.Stop()
	if _, err := io.ReadFull(reads, make([]byte, len("done\n"))); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// A workspace that may not be read is told of, and the run goes on.
func TestNoPermission(t *testing.T) {
	url := answer(t, says("done"))
	base, err := os.MkdirTemp("", "capstan-closed-") // not below TempDir, which others may not enter
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	program := filepath.Join(base, "capstan")
	data, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	home, closed := filepath.Join(base, "home"), filepath.Join(base, "closed")
	for _, err := range []error{os.WriteFile(program, data, 0o755), os.Chmod(base, 0o755), os.Mkdir(home, 0o755), os.Mkdir(closed, 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("sh", "-c", `chmod 0 . && exec "$0" "$@"`, program, "-p", "hi", "--model", "openai/m")
	if os.Getuid() == 0 { // whom no mode stops
		const nobody = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		for _, dir := range []string{home, closed} {
			if err := os.Chown(dir, nobody, nobody); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd.Dir, cmd.Env = closed, environment(home, "OPENAI_BASE_URL="+url)
	out, errs, code := runCapstan(t, cmd)
	if code != 1 || out != "" || !strings.Contains(errs, "permission denied") || !strings.Contains(errs, "closed") {
		t.Errorf("exit code %d, stdout %q, stderr %s", code, out, errs)
	}
}

// When nobody reads the output any more the run ends as by an interrupt, with a
// whole record.
func TestClosedOutput(t *testing.T) {
	gone := make(chan struct{})
	url := answer(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"more \"}}]}\n\n")
			http.NewResponseController(w).Flush()
			time.Sleep(time.Millisecond) // a model takes its time
		}
		close(gone)
	})
	dir := t.TempDir()
	reads, writes, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "-p", "hi", "--model", "openai/m", "--output-format", "stream-json", "--include-partial-messages")
	cmd.Dir, cmd.Env, cmd.Stdout = dir, environment(dir, "OPENAI_BASE_URL="+url), writes
	go func() {
		_, _ = io.ReadFull(reads, make([]byte, 2000))
		reads.Close()
	}()
	_, errs, code := runCapstan(t, cmd)
	writes.Close()
	if code != 130 || !strings.Contains(errs, "nobody reads the output any more") {
		t.Errorf("exit code %d, stderr %s", code, errs)
	}
	<-gone
	list := exec.Command(binary, "sessions", "list", "--json")
	list.Dir, list.Env = dir, environment(dir)
	if out, errs, code := runCapstan(t, list); code != 0 || !strings.Contains(out, `"turns":1`) {
		t.Errorf("the record: %s %s", out, errs)
	}
}

// A signal ends a run whose output nobody reads, and one that waits for its
// input; a second one ends whatever there is.
func TestAgentSignals(t *testing.T) {
	long := answer(t, says(strings.Repeat("x", 1<<20)))
	for name, args := range map[string][]string{
		"output": {"-p", "hi", "--model", "openai/m"},
		"input":  {"--model", "openai/m"},
		"lines":  {"--model", "openai/m", "--input-format", "stream-json"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWaiting(t, args, "OPENAI_BASE_URL="+long)
			if name == "output" {
				w.cmd.Stdin = nil
			}
			w.start(t)
			w.until(t, "it waits", w.blocked)
			w.signal(t, syscall.SIGINT)
			if code := w.end(t); code != 130 {
				t.Errorf("exit code %d, want 130; stderr: %s", code, w.stderr())
			}
		})
	}
}

// A conversation that waits for its next prompt when a signal comes ends as
// interrupted, although all that was asked has been answered.
func TestInterruptBetweenPrompts(t *testing.T) {
	url := answer(t, says("done"))
	w := newWaiting(t, []string{"-p", "hi", "--model", "openai/m", "--input-format", "stream-json", "--output-format", "stream-json"}, "OPENAI_BASE_URL="+url)
	var out locked
	w.cmd.Stdout = &out
	w.start(t)
	w.until(t, "the prompt is answered", func() bool { return strings.Contains(out.String(), `"type":"result","subtype":"success"`) })
	w.signal(t, syscall.SIGINT)
	if code := w.end(t); code != 130 {
		t.Errorf("exit code %d, want 130; stdout: %s; stderr: %s", code, out.String(), w.stderr())
	}
	if n := strings.Count(out.String(), `"type":"result"`); n != 1 {
		t.Errorf("%d results, want 1: %s", n, out.String())
	}
}

// What a slow writer pipes in is waited for, and a person is told of it.
func TestSlowInput(t *testing.T) {
	asked := make(chan string, 1)
	url := answer(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- string(body)
		says("done")(w, r)
	})
	in, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	dir := t.TempDir()
	cmd := exec.Command(binary, "-p", "hi", "--model", "openai/m")
	cmd.Dir, cmd.Env, cmd.Stdin = dir, environment(dir, "OPENAI_BASE_URL="+url), in
	diagnostics, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(60*time.Second, func() { cmd.Process.Kill() })
	defer timer.Stop()
	line, err := bufio.NewReader(diagnostics).ReadString('\n')
	if err != nil || !strings.Contains(line, "waiting for the end of standard input; ") || !strings.Contains(line, "</dev/null") {
		t.Errorf("stderr %q, %v", line, err)
	}
	if _, err := io.WriteString(pipe, "late words"); err != nil {
		t.Error(err)
	}
	pipe.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if body := <-asked; !strings.Contains(body, "late words") {
		t.Errorf("the request has not what was piped: %s", body)
	}
}

// The time of a run is over also when nobody reads its output, be it the lines of
// a run that goes on or the answer of one that is done.
func TestWallTimeUnread(t *testing.T) {
	url := answer(t, says(strings.Repeat("x", 1<<20)))
	for _, format := range []string{"text", "json", "stream-json"} {
		reads, out, err := os.Pipe() // never read
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		cmd := exec.Command(binary, "-p", "hi", "--model", "openai/m", "--max-wall-time", "2s", "--output-format", format)
		cmd.Dir, cmd.Env, cmd.Stdout = dir, environment(dir, "OPENAI_BASE_URL="+url), out
		_, errs, code := runCapstan(t, cmd)
		if code != 55 || !strings.Contains(errs, "--max-wall-time") {
			t.Errorf("%s: exit code %d, stderr %s", format, code, errs)
		}
		reads.Close()
		out.Close()
	}
}

// An interrupt while the task is still read is an object all the same for who
// reads JSON.
func TestInterruptBeforeTask(t *testing.T) {
	for _, args := range [][]string{
		{"--output-format", "json"},
		{"--output-format", "stream-json"},
		{"--output-format", "json", "--input-format", "stream-json"},
	} {
		w := newWaiting(t, append(args, "--model", "openai/m"), "OPENAI_BASE_URL=http://127.0.0.1:9/v1")
		var out bytes.Buffer
		w.cmd.Stdout = &out
		w.start(t)
		w.until(t, "it waits for its task", w.blocked)
		w.signal(t, syscall.SIGINT)
		code := w.end(t)
		var result struct {
			Type, Subtype, Reason string
			IsError               bool `json:"is_error"`
		}
		if err := json.Unmarshal(out.Bytes(), &result); err != nil {
			t.Errorf("%q: %v: %s", args, err, out.String())
		}
		if got := fmt.Sprint(code, result); got != "130 {result error_during_execution interrupted true}" {
			t.Errorf("%q: %s: %s", args, got, w.stderr())
		}
	}
}
