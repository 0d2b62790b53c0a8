// Command table measures what Capstan exists for and prints a Markdown table:
//
//	CGO_ENABLED=0 go run ./bench/table [-n RUNS]
//
// Whole processes are the real binary, built here as it is shipped and started
// as a child process; times inside a program are read from `exec --json`. The
// load of the machine stands beside the figures. The targets are for a quiet
// machine with two cores.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"capstan/internal/sandbox"
	"capstan/internal/sandbox/quickjs"
)

func main() {
	runs := flag.Int("n", 50, "runs of each measurement")
	flag.Parse()
	if err := run(context.Background(), *runs); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

// row is one measurement: a figure in ms, or whatever unit its name says.
type row struct {
	name   string
	target string
	sample func() (float64, error)
}

func run(ctx context.Context, runs int) error {
	dir, err := os.MkdirTemp("", "capstan-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "capstan")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s", "-o", bin, "./cmd/capstan")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building capstan: %w\n%s", err, out)
	}
	work := filepath.Join(dir, "work")
	if err := files(work); err != nil {
		return err
	}
	c := &capstan{bin: bin, dir: work, home: dir}
	info, err := os.Stat(bin)
	if err != nil {
		return err
	}
	fmt.Printf("%s %s/%s, %d cores, %s, binary %.1f MB, load before %s\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), model(), float64(info.Size())/1e6, load())
	fmt.Println("| what | target | p50 | p90 | load |")
	fmt.Println("|---|---|---|---|---|")
	for _, r := range rows(ctx, c) {
		if err := measure(r, runs); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	for _, r := range inProcess() {
		fmt.Println(r)
	}
	return nil
}

func rows(ctx context.Context, c *capstan) []row {
	runner := func(spares int) *quickjs.Runner { return quickjs.New(quickjs.Options{Binary: c.bin, Spares: spares}) }
	cold, warm := runner(0), runner(1)
	return []row{
		{"start of the whole binary (`--version`), ms", "–", c.wall("--version")},
		{"cold `capstan exec -e 'text(1)'`, ms", "12", c.wall("exec", "-e", "text(1)")},
		{"child: spawn to first result, ms", "2", func() (float64, error) { return once(ctx, cold) }},
		{"child: spawned ahead, program to result, ms", "0.4", func() (float64, error) {
			warm.Prespawn()
			time.Sleep(20 * time.Millisecond) // until it is ready and waits
			return once(ctx, warm)
		}},
		{"1,000 sequential read_file calls in one program, ms", "50", c.span(`for (let i = 0; i < 1000; i++) await tools.read_file({ file_path: "tiny.txt" })`)},
		{"Promise.all of 100 read_file calls, ms", "6", c.span(`await Promise.all(Array.from({ length: 100 }, (_, i) => tools.read_file({ file_path: "f" + i + ".txt" })))`)},
		{"1,000 sequential job_list calls (a trivial tool), ms", "–", c.span(`for (let i = 0; i < 1000; i++) await tools.job_list({})`)},
		{"cold exec that reads 1 MB, ms", "–", c.wall("exec", "-e", `text((await tools.read_file({ file_path: "big.txt" })).output.length)`)},
		{"cold exec that prints 1 MB, ms", "–", c.wall("exec", "-e", `text("x".repeat(1e6))`)},
		{"memory of the parent while a program waits, MB", "–", func() (float64, error) { return c.idle(false) }},
		{"memory of an idle child, MB", "8", func() (float64, error) { return c.idle(true) }},
	}
}

func measure(r row, runs int) error {
	var got []float64
	for i := range runs + 1 {
		v, err := r.sample()
		if err != nil {
			return err
		}
		if i > 0 { // the first warms the caches
			got = append(got, v)
		}
	}
	slices.Sort(got)
	fmt.Printf("| %s | %s | %.2f | %.2f | %s |\n", r.name, r.target, got[len(got)/2], got[len(got)*9/10], load())
	return nil
}

// capstan is the real binary and where it runs.
type capstan struct{ bin, dir, home string }

func (c *capstan) command(args ...string) *exec.Cmd {
	cmd := exec.Command(c.bin, args...)
	cmd.Dir = c.dir
	cmd.Env = []string{"HOME=" + c.home, "PATH=" + os.Getenv("PATH")}
	return cmd
}

// wall times a whole process.
func (c *capstan) wall(args ...string) func() (float64, error) {
	return func() (float64, error) {
		cmd := c.command(args...)
		start := time.Now()
		out, err := cmd.CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("%w: %s", err, out)
		}
		return ms(time.Since(start)), nil
	}
}

// span times the calls of a program from the start of the first to the end of
// the last, as the real binary saw them.
func (c *capstan) span(program string) func() (float64, error) {
	return func() (float64, error) {
		out, err := c.command("exec", "--json", "-e", program).Output()
		if err != nil {
			return 0, fmt.Errorf("%w: %s", err, out)
		}
		var report struct {
			Calls []struct{ StartMs, DurationMs float64 }
		}
		if err := json.Unmarshal(out, &report); err != nil {
			return 0, err
		}
		if len(report.Calls) == 0 {
			return 0, errors.New("no calls were made")
		}
		from, to := report.Calls[0].StartMs, 0.0
		for _, call := range report.Calls {
			from, to = min(from, call.StartMs), max(to, call.StartMs+call.DurationMs)
		}
		return to - from, nil
	}
}

// idle reads the resident memory of a run that waits for a command, or of its
// child.
func (c *capstan) idle(child bool) (float64, error) {
	if child {
		r := quickjs.New(quickjs.Options{Binary: c.bin, Spares: 1})
		defer r.Close()
		r.Prespawn()
		time.Sleep(50 * time.Millisecond)
		pids := childrenOf(os.Getpid())
		if len(pids) == 0 {
			return 0, errors.New("there is no child")
		}
		return rss(pids[len(pids)-1]) // the last one started; an earlier measurement may have a spare of its own
	}
	cmd := c.command("exec", "--approval-mode", "yolo", "-e", `await tools.run_shell_command({ command: "sleep 0.5" })`)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	time.Sleep(200 * time.Millisecond)
	v, err := rss(cmd.Process.Pid)
	return v, errors.Join(err, cmd.Wait())
}

func childrenOf(pid int) []int {
	var pids []int
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, t := range tasks {
		data, _ := os.ReadFile(t)
		for _, f := range strings.Fields(string(data)) {
			if n, err := strconv.Atoi(f); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

func rss(pid int) (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024, err
		}
	}
	return 0, errors.New("no VmRSS")
}

func once(ctx context.Context, r *quickjs.Runner) (float64, error) {
	start := time.Now()
	_, err := r.Run(ctx, sandbox.Program{Source: "text(1)"}, silent{})
	return ms(time.Since(start)), err
}

// silent is a host without tools.
type silent struct{}

func (silent) Call(context.Context, []sandbox.Call, func(int, sandbox.Reply)) {}
func (silent) Output(sandbox.Output)                                          {}
func (silent) AllTools() []byte                                               { return []byte("[]") }

func files(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	write := func(name, text string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644) }
	err := errors.Join(write("tiny.txt", "hello\n"), write("big.txt", strings.Repeat("0123456789abcde\n", 1<<16)))
	for i := range 100 {
		err = errors.Join(err, write(fmt.Sprintf("f%d.txt", i), fmt.Sprintf("file %d\n", i)))
	}
	return err
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	return string(bytes.Fields(data)[0])
}

func model() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(rest, " \t:"))
		}
	}
	return "unknown processor"
}
