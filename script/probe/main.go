// Command probe asks a real model over the Responses API to use tools that it has
// to find first, and judges what it did:
//
//	OPENAI_BASE_URL=… OPENAI_API_KEY=… go run ./script/probe -model NAME
//
// The model is driven by the real binary (`capstan -p --mode code`), the tools are
// those of an MCP server that is this command once more, and what goes over the
// wire is recorded by a proxy in between. So what is judged is what the model was
// sent and what reached the tools, not what anybody says of it. docs/e2e has the
// plan; probes.go the probes.
//
// Exit codes: 0 every probe passed, 1 one failed, 2 there is nothing to probe.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	if file := os.Getenv(serverVariable); file != "" {
		if err := serve(file); err != nil {
			fmt.Fprintln(os.Stderr, "probe:", err)
			os.Exit(1)
		}
		return
	}
	model := flag.String("model", os.Getenv("CAPSTAN_PROBE_MODEL"), "the model; CAPSTAN_PROBE_MODEL is the default")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, *model, os.Getenv, os.Stdout, os.Stderr))
}

// errNothing says that there is no endpoint to probe.
var errNothing = errors.New("no endpoint to probe: set OPENAI_BASE_URL (with /v1), OPENAI_API_KEY unless it wants none, and name a model with -model or CAPSTAN_PROBE_MODEL")

func run(ctx context.Context, model string, getenv func(string) string, out, errs io.Writer) int {
	ok, err := probeAll(ctx, model, getenv, out)
	switch {
	case errors.Is(err, errNothing):
		fmt.Fprintln(errs, "probe:", err)
		return 2
	case err != nil:
		fmt.Fprintln(errs, "probe:", err)
		return 1
	case !ok:
		return 1
	}
	return 0
}

// probeAll runs the probes against the endpoint that the environment names.
func probeAll(ctx context.Context, model string, getenv func(string) string, out io.Writer) (bool, error) {
	base, key := strings.TrimRight(getenv("OPENAI_BASE_URL"), "/"), getenv("OPENAI_API_KEY")
	if base == "" && key != "" {
		base = "https://api.openai.com/v1"
	}
	if base == "" || model == "" {
		return false, errNothing
	}
	dir, err := os.MkdirTemp("", "capstan-probe-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "capstan")
	if err := build(ctx, bin); err != nil {
		return false, err
	}
	return (&rig{dir: dir, bin: bin, base: base, key: key, model: model}).all(ctx, probes, out)
}

// build makes the binary as it is shipped.
func build(ctx context.Context, bin string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", bin, "capstan/cmd/capstan")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building capstan: %w\n%s", err, said)
	}
	return nil
}

// all runs probes, one after the other, and prints a table.
func (r *rig) all(ctx context.Context, probes []probe, out io.Writer) (bool, error) {
	fmt.Fprintln(out, "| probe | result | requests | searches | input tokens | of them cached | |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|")
	good := true
	for _, p := range probes {
		s, err := r.ask(ctx, p)
		if err != nil {
			return false, fmt.Errorf("probe %s: %w", p.name, err)
		}
		faults := p.judge(s)
		verdict := "passed"
		if len(faults) > 0 {
			verdict, good = "FAILED", false
		}
		fmt.Fprintf(out, "| %s | %s | %d | %d | %d | %d | %s |\n", p.name, verdict, len(s.requests), s.searches(), s.input, s.cached, strings.Join(faults, "; "))
	}
	return good, nil
}
