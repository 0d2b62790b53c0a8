// Command mcpconformance runs the client scenarios of the official conformance
// suite (@modelcontextprotocol/conformance, from npm) against the real binary:
//
//	go run ./script/mcpconformance [-dir DIR] [-v] [SCENARIO...]
//
// For each scenario the suite starts a server and runs this command again as the
// client, with the server's address. The client configures that server in a home
// of its own, runs `capstan exec`, and `capstan mcp login` when it is told to;
// see client.go. A table of the checks goes to stdout. It fails when a scenario
// has a failed check, or none at all, and is not in expected.go; and when one that
// is there passes.
//
// It needs npm and the network. -dir keeps what was installed for the next time.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
)

// packages are what is installed: the suite, and the node that it needs.
var packages = []string{"@modelcontextprotocol/conformance@0.1.16", "node@22.23.3"}

// binVariable tells the client which binary it tests.
const binVariable = "CAPSTAN_CONFORMANCE_BINARY"

func main() {
	dir := flag.String("dir", "", "where to install the suite; empty means a temporary directory")
	verbose := flag.Bool("v", false, "show what the clients said")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if os.Getenv("MCP_CONFORMANCE_SCENARIO") != "" {
		err = client(ctx, flag.Arg(0))
	} else {
		err = run(ctx, *dir, flag.Args(), *verbose)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mcpconformance:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string, names []string, verbose bool) error {
	work, err := os.MkdirTemp("", "capstan-conformance-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if dir == "" {
		dir = work
	}
	s := &suite{dir: dir, work: work, verbose: verbose}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	if len(names) == 0 {
		if names, err = s.scenarios(ctx); err != nil {
			return err
		}
	}
	bad := 0
	fmt.Println("| scenario | checks passed | failed | warnings | |")
	fmt.Println("|---|---|---|---|---|")
	for _, name := range names {
		r, err := s.try(ctx, name)
		if err != nil {
			return fmt.Errorf("scenario %s: %w", name, err)
		}
		note, ok := r.judge(expected[name])
		if !ok {
			bad++
		}
		fmt.Printf("| %s | %d | %d | %d | %s |\n", name, r.passed, r.failed, r.warned, note)
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d scenarios are not as expected", bad, len(names))
	}
	return nil
}

// A suite is the installed conformance suite and the binary to hold against it.
type suite struct {
	dir, work string // installed packages; the binary and the results
	verbose   bool
}

// prepare installs the suite and builds the binary as it is shipped.
func (s *suite) prepare(ctx context.Context) error {
	install := exec.CommandContext(ctx, "npm", append([]string{"install", "--no-audit", "--no-fund", "--silent", "--prefix", s.dir}, packages...)...)
	if out, err := install.CombinedOutput(); err != nil {
		return fmt.Errorf("npm install: %w\n%s", err, out)
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", filepath.Join(s.work, "capstan"), "./cmd/capstan")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building capstan: %w\n%s", err, out)
	}
	return nil
}

// command runs the suite.
func (s *suite) command(ctx context.Context, args ...string) *exec.Cmd {
	bin := filepath.Join(s.dir, "node_modules", ".bin")
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "conformance"), args...)
	cmd.Dir = s.work
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), binVariable+"="+filepath.Join(s.work, "capstan"))
	return cmd
}

var listed = regexp.MustCompile(`(?m)^\s+- (\S+) \[`)

// scenarios are all that the suite has for clients.
func (s *suite) scenarios(ctx context.Context) ([]string, error) {
	out, err := s.command(ctx, "list").Output()
	if err != nil {
		return nil, fmt.Errorf("listing the scenarios: %w", err)
	}
	_, clients, ok := strings.Cut(string(out), "Client scenarios")
	var names []string
	for _, m := range listed.FindAllStringSubmatch(clients, -1) {
		names = append(names, m[1])
	}
	if !ok || len(names) == 0 {
		return nil, fmt.Errorf("listing the scenarios: the suite names none:\n%s", out)
	}
	return names, nil
}

// A result is how a scenario went.
type result struct {
	passed, failed, warned int
	faults                 []string // descriptions of what failed or was warned of
	clientErr              string   // how the client ended, when not well and that counts
}

// try runs one scenario and counts its checks.
func (s *suite) try(ctx context.Context, name string) (*result, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	out := filepath.Join(s.work, "results", strings.ReplaceAll(name, "/", "-"))
	cmd := s.command(ctx, "client", "--command", self, "--scenario", name, "--timeout", "60000", "-o", out, "--verbose")
	said, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	if s.verbose {
		fmt.Fprintf(os.Stderr, "=== %s\n%s\n", name, said)
	}
	files, _ := filepath.Glob(filepath.Join(out, "*", "checks.json"))
	if deep, _ := filepath.Glob(filepath.Join(out, "*", "*", "checks.json")); files == nil {
		files = deep
	}
	if len(files) != 1 {
		return nil, fmt.Errorf("it left %d files of checks:\n%s", len(files), said)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		return nil, err
	}
	r, err := count(raw)
	if err == nil && r.failed+r.warned == 0 && cmd.ProcessState.ExitCode() != 0 {
		r.clientErr = fmt.Sprintf("the checks passed, but the suite's exit code was %d", cmd.ProcessState.ExitCode())
	}
	return r, err
}

// count reads a file of checks. Those of status INFO say what went on and check
// nothing.
func count(raw []byte) (*result, error) {
	var checks []struct{ ID, Status, Description string }
	if err := json.Unmarshal(raw, &checks); err != nil {
		return nil, fmt.Errorf("reading the checks: %w", err)
	}
	r := &result{}
	for _, c := range checks {
		switch c.Status {
		case "SUCCESS":
			r.passed++
			continue
		case "FAILURE":
			r.failed++
		case "WARNING":
			r.warned++
		default:
			continue
		}
		r.faults = append(r.faults, c.ID+": "+c.Description)
	}
	return r, nil
}

// judge says whether a result is as expected, and what to note beside it.
func (r *result) judge(why string) (note string, ok bool) {
	good := r.failed == 0 && r.passed > 0 && r.clientErr == ""
	switch {
	case why != "" && good:
		return "passes now: take it out of expected.go", false
	case why != "" && r.passed+r.failed+r.warned == 0:
		return "no check was counted", false
	case why != "":
		return why, true
	case !good && r.failed+r.passed == 0:
		return "no check was counted", false
	case !good:
		return strings.Join(append(r.faults, r.clientErr), "; "), false
	}
	return strings.Join(r.faults, "; "), true
}
