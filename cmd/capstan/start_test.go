//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// hanging is a server that tells when a request has come, and answers nothing
// until the client goes away.
func hanging(t testing.TB) (url string, came chan time.Time) {
	t.Helper()
	came = make(chan time.Time, 100)
	return answer(t, func(w http.ResponseWriter, r *http.Request) {
		came <- time.Now()
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}), came
}

// From the start of the process to the first request on the wire: p50 is in
// ms-p50. The target is 15 ms, with configured servers too: none is waited for.
func BenchmarkStart(b *testing.B) {
	url, came := hanging(b)
	for _, c := range []struct {
		mode    string
		servers int
	}{{"direct", 0}, {"code", 0}, {"code", 20}} {
		name := c.mode
		if c.servers > 0 {
			name += fmt.Sprintf("-%d-servers", c.servers)
		}
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			list := map[string]any{}
			for i := range c.servers {
				list[fmt.Sprint("s", i)] = map[string]any{"command": os.Args[0], "env": map[string]string{serverMode: "silent"}}
			}
			text, err := json.Marshal(map[string]any{"mcpServers": list})
			if err != nil {
				b.Fatal(err)
			}
			file := filepath.Join(dir, "servers.json")
			if err := os.WriteFile(file, text, 0o600); err != nil {
				b.Fatal(err)
			}
			var took []float64
			for b.Loop() {
				cmd := exec.Command(binary, "-p", "hi", "--model", "openai/m", "--mode", c.mode, "--mcp-config", file)
				cmd.Dir, cmd.Env = dir, environment(dir, "OPENAI_BASE_URL="+url)
				begun := time.Now()
				if err := cmd.Start(); err != nil {
					b.Fatal(err)
				}
				at := <-came
				took = append(took, float64(at.Sub(begun).Microseconds())/1000)
				_ = cmd.Process.Signal(os.Interrupt) // so that it ends its servers
				_ = cmd.Wait()
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2], "ms-p50")
			b.ReportMetric(took[len(took)*95/100], "ms-p95")
		})
	}
}

// The loop's own work between a model's call of exec and the request with its
// result: reading the call, recording it, running text("hi"), recording the result,
// asking again. The model takes 50 ms for its answer. The target is 1 ms.
func BenchmarkRound(b *testing.B) {
	came := make(chan time.Duration, 1000)
	var sent time.Time
	turn := 0
	url := answer(b, func(w http.ResponseWriter, r *http.Request) {
		now := time.Now()
		if _, _ = io.Copy(io.Discard, r.Body); turn > 0 {
			came <- now.Sub(sent)
		}
		turn++
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":{"content":"I look."}}]}`+"\n\n")
		_ = http.NewResponseController(w).Flush()
		time.Sleep(50 * time.Millisecond)
		fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c%d","function":{"name":"exec","arguments":"{\"source\": \"text('hi %d')\"}"}}]},"finish_reason":"tool_calls"}]}`+"\n\ndata: [DONE]\n\n", turn, turn)
		_ = http.NewResponseController(w).Flush()
		sent = time.Now()
	})
	dir := b.TempDir()
	cmd := exec.Command(binary, "-p", "hi", "--model", "openai/m", "--mode", "code", "--approval-mode", "yolo")
	cmd.Dir, cmd.Env = dir, environment(dir, "OPENAI_BASE_URL="+url)
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	var took []float64
	for b.Loop() {
		took = append(took, float64((<-came).Microseconds())/1000)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "ms-p50")
	b.ReportMetric(took[len(took)*95/100], "ms-p95")
}

// What an agent takes that has run a program and waits for its model, with the
// child that it keeps ready: the proportional set size of all its processes. The
// target is 30 MB.
func BenchmarkIdleMemory(b *testing.B) {
	came := make(chan time.Time, 100)
	url := answer(b, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"name":"exec"`) && !strings.Contains(string(body), `"role":"tool"`) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"exec","arguments":"{\"source\": \"text(1)\"}"}}]},"finish_reason":"tool_calls"}]}`+"\n\ndata: [DONE]\n\n")
			return
		}
		came <- time.Now()
		<-r.Context().Done()
	})
	for _, mode := range []string{"direct", "code"} {
		b.Run(mode, func(b *testing.B) {
			var kb int
			for b.Loop() {
				dir := b.TempDir()
				cmd := exec.Command(binary, "-p", "hi", "--model", "openai/m", "--mode", mode)
				cmd.Dir, cmd.Env = dir, environment(dir, "OPENAI_BASE_URL="+url)
				if err := cmd.Start(); err != nil {
					b.Fatal(err)
				}
				<-came
				time.Sleep(200 * time.Millisecond) // for a spare child to be there
				kb = memory(b, cmd.Process.Pid)
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}
			b.ReportMetric(float64(kb)/1000, "MB")
		})
	}
}

// memory adds up a process and those below it, in kB.
func memory(b *testing.B, pid int) int {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		b.Skip(err)
	}
	kb := 0
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			if _, err := fmt.Sscan(rest, &kb); err != nil {
				b.Fatal(err)
			}
		}
	}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, t := range tasks {
		list, _ := os.ReadFile(t)
		for _, child := range strings.Fields(string(list)) {
			var n int
			if _, err := fmt.Sscan(child, &n); err == nil {
				kb += memory(b, n)
			}
		}
	}
	return kb
}
