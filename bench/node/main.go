// Command node measures calls of a tool of an MCP server over stdio: in a program
// of Capstan, and in a bare loop of the official TypeScript client, in turn, with
// the same server, which is made with the official SDK and runs in node:
//
//	CGO_ENABLED=0 go run ./bench/node [-calls N] [-pairs N] [-dir DIR]
//
// Both measure inside the program, from the first call to the last result, after
// 50 calls to warm up. The ratio is taken pair by pair, so that a machine whose
// speed drifts moves both. It needs node, npm and the network; -dir keeps what was
// installed for the next time.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// packages are what the server and the bare loop are made of.
var packages = []string{"@modelcontextprotocol/sdk@1.32.2", "zod@4.6.7"}

var (
	//go:embed echo.mjs
	echo []byte
	//go:embed loop.mjs
	bareLoop []byte
	//go:embed loop.js
	nestedLoop string
)

func main() {
	b := &bench{}
	flag.IntVar(&b.calls, "calls", 1000, "calls in a run, one after the other")
	flag.IntVar(&b.pairs, "pairs", 9, "runs of each of the two")
	flag.StringVar(&b.dir, "dir", "", "where to install the SDK; empty means a temporary directory")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := b.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
}

type bench struct {
	calls, pairs int
	dir          string // where the SDK is
	work         string // where the binary is, and its home
}

func (b *bench) run(ctx context.Context) error {
	work, err := os.MkdirTemp("", "capstan-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	b.work = work
	if b.dir == "" {
		b.dir = work
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	before := load()
	var nested, bare, ratio, spent []float64
	for i := range b.pairs + 1 {
		n, err := b.nested(ctx)
		if err != nil {
			return fmt.Errorf("capstan exec: %w", err)
		}
		r, err := b.bare(ctx)
		if err != nil {
			return fmt.Errorf("the bare loop: %w", err)
		}
		if i > 0 { // the first warms the caches
			nested, bare = append(nested, n.ms), append(bare, r.ms)
			ratio, spent = append(ratio, n.ms/r.ms), append(spent, n.cpu/r.cpu)
		}
	}
	fmt.Printf("%s %s/%s, %d cores, node %s, %s, load before %s, after %s\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), output(ctx, "node", "--version"), packages[0], before, load())
	fmt.Printf("| %d sequential calls of an echo server in node | min | p50 | max |\n|---|---|---|---|\n", b.calls)
	for _, r := range []struct {
		name string
		got  []float64
	}{{"nested calls of a program, ms", nested}, {"bare loop of the TypeScript client, ms", bare}, {"ratio, pair by pair", ratio}, {"ratio of processor time, starts and servers included", spent}} {
		slices.Sort(r.got)
		fmt.Printf("| %s | %.3g | %.3g | %.3g |\n", r.name, r.got[0], r.got[len(r.got)/2], r.got[len(r.got)-1])
	}
	return nil
}

// prepare installs the SDK, and builds the binary as it is shipped.
func (b *bench) prepare(ctx context.Context) error {
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return err
	}
	for name, src := range map[string][]byte{"echo.mjs": echo, "loop.mjs": bareLoop} {
		if err := os.WriteFile(filepath.Join(b.dir, name), src, 0o644); err != nil {
			return err
		}
	}
	install := exec.CommandContext(ctx, "npm", append([]string{"install", "--no-audit", "--no-fund", "--silent", "--prefix", b.dir}, packages...)...)
	if out, err := install.CombinedOutput(); err != nil {
		return fmt.Errorf("npm install: %w\n%s", err, out)
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s", "-o", filepath.Join(b.work, "capstan"), "./cmd/capstan")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building capstan: %w\n%s", err, out)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return err
	}
	server, err := filepath.Abs(filepath.Join(b.dir, "echo.mjs"))
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"echo": map[string]any{"command": node, "args": []string{server}}}})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.work, "servers.json"), config, 0o644)
}

// A cost is what a run took: milliseconds of the calls as the program saw them,
// and seconds of processor time of all that was started.
type cost struct{ ms, cpu float64 }

// nested runs the calls in a program.
func (b *bench) nested(ctx context.Context) (cost, error) {
	source := fmt.Sprintf("const CALLS = %d;\n%s", b.calls, nestedLoop)
	cmd := exec.CommandContext(ctx, filepath.Join(b.work, "capstan"), "exec", "--approval-mode", "yolo", "--mcp-config", "servers.json", "-e", source)
	cmd.Dir = b.work
	cmd.Env = []string{"HOME=" + b.work, "PATH=" + os.Getenv("PATH")}
	return printed(cmd)
}

// bare runs the same calls in the official client.
func (b *bench) bare(ctx context.Context) (cost, error) {
	cmd := exec.CommandContext(ctx, "node", "loop.mjs", "echo.mjs", strconv.Itoa(b.calls))
	cmd.Dir = b.dir
	return printed(cmd)
}

// printed runs a command that prints the time of its calls.
func printed(cmd *exec.Cmd) (cost, error) {
	var errs bytes.Buffer
	cmd.Stderr = &errs
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return cost{}, fmt.Errorf("%w\n%s%s", err, out, errs.Bytes())
	}
	ms, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil || ms <= 0 {
		return cost{}, fmt.Errorf("it printed %q, not a time", out)
	}
	return cost{ms, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}, nil
}

func output(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(b), " ")
	return one
}
