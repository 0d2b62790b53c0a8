package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// environment is that of a user who has nothing, with a home of their own.
func environment(home string, more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}, more...)
}

// answer is a server that answers each request of chat completions so.
func answer(t testing.TB, f http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	return srv.URL + "/v1"
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", text)
	}
}

// runCapstan runs the binary until it ends, which it must.
func runCapstan(t *testing.T, cmd *exec.Cmd) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(90*time.Second, func() { cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait() // the code says it all
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// An answer that does not end is given up on, and takes no memory with it.
func TestEndlessAnswer(t *testing.T) {
	sent := make(chan int, 1)
	url := answer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		piece := []byte(`data: {"choices":[{"index":0,"delta":{"content":"` + strings.Repeat("x", 64<<10) + `"}}]}` + "\n\n")
		n := 0
		for n < 100<<20 {
			m, err := w.Write(piece)
			n += m
			if err != nil {
				break
			}
		}
		sent <- n
	})
	dir := t.TempDir()
	cmd := exec.Command(binary, "-p", "hi", "--model", "openai/m")
	cmd.Dir, cmd.Env = dir, environment(dir, "OPENAI_BASE_URL="+url)
	out, errs, code := runCapstan(t, cmd)
	if code != 1 || out != "" || !strings.Contains(errs, "the answer does not end: the answer is longer than 32 MiB") || len(errs) > 2000 {
		t.Errorf("exit code %d, stdout of %d bytes, stderr %.2000s", code, len(out), errs)
	}
	if n := <-sent; n >= 100<<20 {
		t.Error("all of it was read")
	}
}

// A certificate that nobody has signed, and a server without TLS.
func TestTLS(t *testing.T) {
	srv := httptest.NewUnstartedServer(says("no"))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // the handshakes fail, as they should
	srv.StartTLS()
	defer srv.Close()
	plain := answer(t, says("no"))
	for url, want := range map[string]string{
		srv.URL + "/v1": "the endpoint's certificate is not trusted",
		strings.Replace(plain, "http:", "https:", 1): "the server does not speak TLS at this address",
	} {
		dir := t.TempDir()
		settings(t, dir, `{"providers": {"openai": {"retries": 0}}}`)
		cmd := exec.Command(binary, "-p", "hi", "--model", "openai/m")
		cmd.Dir, cmd.Env = dir, environment(dir, "OPENAI_BASE_URL="+url, "OPENAI_API_KEY=secret-key-123")
		out, errs, code := runCapstan(t, cmd)
		if code != 1 || out != "" || !strings.Contains(errs, want) || strings.Contains(errs, "secret-key-123") {
			t.Errorf("%s: exit code %d, stdout %q, stderr %s", url, code, out, errs)
		}
	}
}

func settings(t *testing.T, home, text string) {
	t.Helper()
	dir := filepath.Join(home, ".capstan")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "settings.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
