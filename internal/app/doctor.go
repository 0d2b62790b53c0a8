package app

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"capstan/internal/mcp"
	"capstan/internal/shell"
	"capstan/internal/tool"
)

// A Check is one thing that `capstan doctor` tried.
type Check struct {
	Name     string `json:"name"`
	OK       bool   `json:"ok"`
	Required bool   `json:"required"` // capstan cannot do its work without it
	Detail   string `json:"detail"`
	// Warning says that it works, but perhaps not as it was meant.
	Warning bool `json:"warning,omitempty"`
}

// Doctor tries what a session needs on this machine. Nothing is concluded from
// a version or a file: each layer is shown by what it prevents. MCP servers are
// started only when servers is set.
func Doctor(ctx context.Context, o Options, servers bool) []Check {
	checks := []Check{build()}
	o.Program = true
	s, err := Open(o)
	if err != nil {
		return append(checks, Check{Name: "settings", OK: false, Required: true, Detail: err.Error()})
	}
	defer s.Close()
	checks = append(checks, settings(s), models(s))
	checks = append(checks, sandboxLayers(ctx, s)...)
	checks = append(checks, program(ctx, s))
	return append(checks, append(tryServers(ctx, s, servers), keeper(ctx, s), confinement(s), stateDirectory(s), sessionDirectory(s))...)
}

// tryServers lists the configured servers, or starts them and says how that went.
func tryServers(ctx context.Context, s *Session, start bool) []Check {
	var names []string
	for _, v := range s.Servers() {
		names = append(names, v.Name)
	}
	switch {
	case len(names) == 0:
		return nil
	case !start:
		return []Check{{Name: "MCP servers", OK: true, Detail: fmt.Sprintf("%d configured: %s (not started: --servers tries them)", len(names), strings.Join(names, ", "))}}
	}
	var checks []Check
	for _, t := range s.TestServers(ctx, names...) {
		c := Check{Name: "MCP server " + t.Name, OK: t.Fault == "", Detail: fmt.Sprintf("%d tools", t.Tools)}
		if !c.OK {
			c.Detail = strings.Join(strings.Fields(t.Fault), " ")
		}
		if n := len(t.Warnings); n > 0 {
			c.Detail += fmt.Sprintf("; %d warnings, run capstan mcp get %s to see them", n, mcp.Word(t.Name))
		}
		checks = append(checks, c)
	}
	return checks
}

func build() Check {
	c := Check{Name: "build", OK: true, Required: true, Detail: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "CGO_ENABLED" && s.Value == "1" {
				c.OK = false
				c.Detail += ", with cgo: programs cannot run; build with CGO_ENABLED=0"
			}
		}
	}
	return c
}

func settings(s *Session) Check {
	if len(s.Warnings) > 0 {
		return Check{Name: "settings", OK: true, Warning: true, Detail: strings.Join(s.Warnings, "; ")}
	}
	return Check{Name: "settings", OK: true, Detail: "read without a warning"}
}

// models looks at the endpoints that are configured and their keys. It asks none
// of them.
func models(s *Session) Check {
	all, err := s.configured()
	if err != nil {
		return Check{Name: "models", OK: false, Required: false, Detail: err.Error()}
	}
	var found, faults []string
	for _, e := range all {
		c, err := s.client(e)
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		c.Close()
		u, _ := url.Parse(e.base) // endpoint has tried it; all but the host may hold a key
		found = append(found, e.name+" at "+u.Host)
	}
	switch {
	case len(faults) > 0:
		return Check{Name: "models", OK: false, Required: false, Detail: strings.Join(faults, "; ")}
	case len(found) == 0:
		return Check{Name: "models", OK: false, Required: false, Detail: "no endpoint is configured, so there is no agent; " + howToConfigure()}
	}
	return Check{Name: "models", OK: true, Required: false, Detail: strings.Join(found, ", ")}
}

func sandboxLayers(ctx context.Context, s *Session) []Check {
	layers, err := s.runner.Probe(ctx)
	if err != nil {
		return []Check{{Name: "sandbox", OK: false, Required: true, Detail: err.Error()}}
	}
	var checks []Check
	for _, l := range layers {
		checks = append(checks, Check{Name: "sandbox: " + l.Name, OK: l.InForce, Required: s.requireLayers, Detail: l.Detail})
	}
	return checks
}

func program(ctx context.Context, s *Session) Check {
	start := time.Now()
	r := s.Exec(ctx, "return 6 * 7")
	took := time.Since(start)
	if r.Result.Status != tool.Success || r.Result.Text() != "42" {
		return Check{Name: "program", OK: false, Required: true, Detail: r.Result.Text()}
	}
	return Check{Name: "program", OK: true, Required: true, Detail: fmt.Sprintf("ran one in %.1f ms", float64(took.Microseconds())/1000)}
}

// keeper starts a command that leaves a process in a session of its own.
func keeper(ctx context.Context, s *Session) Check {
	c := Check{Name: "shell keeper"}
	if runtime.GOOS == "windows" {
		c.Detail = "not on this system: what leaves a command's process group survives it"
		return c
	}
	r, err := shell.New(shell.Options{Grace: 20 * time.Millisecond}).Run(ctx, shell.Command{
		Line: "setsid sleep 60 >/dev/null 2>&1 &", Dir: s.opt.Dir, Timeout: 10 * time.Second})
	switch {
	case err != nil:
		c.Detail = err.Error()
	case r.LeftoverCount == 0:
		c.Detail = "a process that left its command's session was not found: it survives the command"
	default:
		c.OK, c.Detail = true, "found and ended a process that left its command's session"
	}
	return c
}

func stateDirectory(s *Session) Check {
	c := Check{Name: "state directory", Detail: s.spill.root}
	err := s.spill.prepare()
	if err == nil {
		err = tryWriting(s.spill.root)
	}
	if err != nil {
		c.Detail = fmt.Sprintf("texts that are cut cannot be kept: %v", err)
		return c
	}
	c.OK = true
	return c
}

// sessionDirectory tries to write where sessions are recorded: an agent whose
// session cannot be recorded does nothing.
func sessionDirectory(s *Session) Check {
	c := Check{Name: "session directory"}
	root, err := sessionRoot(s.opt.Env, s.home)
	if err != nil {
		c.Detail = err.Error()
		return c
	}
	if err = os.MkdirAll(root, 0o700); err == nil {
		err = tryWriting(root)
	}
	if err != nil {
		c.Detail = fmt.Sprintf("no session can be recorded, so there is no agent: %v; make it writable, or name another with XDG_DATA_HOME", err)
		return c
	}
	c.OK, c.Detail = true, root
	return c
}

// tryWriting makes a file and takes it away.
func tryWriting(dir string) error {
	f, err := os.CreateTemp(dir, ".doctor-")
	if err != nil {
		return err
	}
	_, err = f.WriteString("x")
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}
