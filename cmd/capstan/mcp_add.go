package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"capstan/internal/app"
)

type addFlags struct {
	project, replace       bool
	kind, cwd, description string
	env, headers           []string
	include, exclude       []string
	timeout, startup       string // durations
	trust, always          bool
}

func newMCPAdd() *cobra.Command {
	var f addFlags
	cmd := &cobra.Command{
		Use:   "add NAME URL | NAME -- COMMAND [ARG...]",
		Short: "Add a server to your settings, or to the project's .mcp.json",
		Long: `Writes a server into ~/.capstan/settings.json, or with --project into .mcp.json in
the workspace's root, and leaves all else in the file as it is. It is not started:
'capstan mcp test NAME' does that.

Write secrets as ${VARIABLE}: then they stay out of the file.`,
		Example: `  capstan mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  capstan mcp add github --env 'GITHUB_TOKEN=${GITHUB_TOKEN}' -- github-mcp-server stdio
  capstan mcp add docs https://docs.example.com/mcp --project`,
		Args: arguments(2, math.MaxInt, "a name, and a URL or a command"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(args[0], args[1:], cmd.ArgsLenAtDash() >= 0)
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.project, "project", false, "write .mcp.json in the workspace's root instead of your settings")
	fl.BoolVar(&f.replace, "replace", false, "put it in the place of a server of this name")
	fl.StringVar(&f.kind, "type", "", "stdio, http or sse; found out when it is not given")
	fl.StringArrayVar(&f.env, "env", nil, "NAME=VALUE for its environment; may be repeated")
	fl.StringArrayVar(&f.headers, "header", nil, "'NAME: VALUE' to send to it; may be repeated")
	fl.StringVar(&f.cwd, "cwd", "", "where it runs; the workspace's root when not given")
	fl.StringVar(&f.timeout, "timeout", "", "how long a call may go on without progress, such as 90s")
	fl.StringVar(&f.startup, "startup-timeout", "", "how long it may take to start, such as 60s")
	fl.StringArrayVar(&f.include, "include-tools", nil, "take only these tools, NAME or BEGINNING*; several with commas, or repeated")
	fl.StringArrayVar(&f.exclude, "exclude-tools", nil, "leave these tools out, as with --include-tools")
	fl.BoolVar(&f.trust, "trust", false, "believe it which of its tools only read: they run without a question")
	fl.BoolVar(&f.always, "always-load", false, "show its tools to the model instead of having them found")
	fl.StringVar(&f.description, "description", "", "what it is for; helps to find its tools")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if _, unknown := errors.AsType[*pflag.NotExistError](err); unknown {
			return usage("%w; the command of a server comes after --", flagError(cmd, err))
		}
		return flagError(cmd, err)
	})
	return cmd
}

// serverEntry is a server as it is written into a file.
type serverEntry struct {
	Type         string            `json:"type,omitempty"`
	Command      string            `json:"command,omitempty"`
	Args         []string          `json:"args,omitempty"`
	URL          string            `json:"url,omitempty"`
	Headers      map[string]string `json:"headers,omitempty"`
	Env          map[string]string `json:"env,omitempty"`
	Cwd          string            `json:"cwd,omitempty"`
	Timeout      int64             `json:"timeout,omitempty"`        // milliseconds
	Startup      int64             `json:"startupTimeout,omitempty"` // milliseconds
	IncludeTools []string          `json:"includeTools,omitempty"`
	ExcludeTools []string          `json:"excludeTools,omitempty"`
	Trust        bool              `json:"trust,omitempty"`
	AlwaysLoad   bool              `json:"alwaysLoad,omitempty"`
	Description  string            `json:"description,omitempty"`
}

func (f *addFlags) run(name string, target []string, dashed bool) error {
	e, err := f.entry(name, target, dashed)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return failed(err)
	}
	dir, err := workingDirectory()
	if err != nil {
		return err
	}
	file, err := app.AddServer(dir, f.project, name, raw, f.replace)
	if err != nil {
		return opening(err)
	}
	fmt.Printf("%s is in %s. To try it: capstan mcp test %s\n", oneLine(name, 200), oneLine(file, 500), app.ServerWord(oneLine(name, 200)))
	if f.project {
		fmt.Println("It is used once the folder is trusted: see 'capstan trust --help'.")
	}
	return nil
}

// entry makes the entry of flags and target. dashed says that there was a `--`, which
// a command needs: without it an address with a slip would become one.
func (f *addFlags) entry(name string, target []string, dashed bool) (e serverEntry, err error) {
	e = serverEntry{Type: f.kind, Cwd: f.cwd,
		IncludeTools: parts(f.include), ExcludeTools: parts(f.exclude), Trust: f.trust, AlwaysLoad: f.always, Description: f.description}
	if e.Timeout, err = milliseconds("--timeout", f.timeout); err != nil {
		return e, err
	}
	if e.Startup, err = milliseconds("--startup-timeout", f.startup); err != nil {
		return e, err
	}
	low := strings.ToLower(target[0])
	switch {
	case strings.HasPrefix(low, "http://"), strings.HasPrefix(low, "https://"):
		e.URL = target[0]
		_, rest, _ := strings.Cut(e.URL, "://")
		switch {
		case strings.Trim(rest, "/") == "":
			return e, usage("the URL names no host: %q", e.URL)
		case len(target) > 1:
			return e, usage("a server with a URL takes no arguments, got %q", target[1])
		case len(f.env) > 0:
			return e, usage("--env is for servers that are started; one with a URL takes --header")
		case f.cwd != "":
			return e, usage("--cwd is for servers that are started; one with a URL runs already")
		}
	case strings.Contains(target[0], "://"): // it may hold a password
		return e, usage("a server is reached over http:// or https://, not %q", oneLine(target[0][:strings.Index(target[0], "://")+3], 100))
	case !dashed:
		return e, usage("%q is no URL that begins with http:// or https://; a command comes after --: capstan mcp add %s -- COMMAND [ARG...]", target[0], app.ServerWord(oneLine(name, 200)))
	default:
		if e.Command, e.Args = target[0], target[1:]; len(f.headers) > 0 {
			return e, usage("--header is for servers with a URL; one that is started takes --env")
		}
	}
	if e.Env, err = pairs("--env", "=", "NAME=VALUE", f.env); err != nil {
		return e, err
	}
	if e.Headers, err = pairs("--header", ":", "'NAME: VALUE'", f.headers); err != nil {
		return e, err
	}
	for name, value := range e.Headers {
		e.Headers[name] = strings.TrimSpace(value)
	}
	return e, nil
}

// milliseconds reads a duration; of less than one, nothing would be left in the file.
func milliseconds(flag, s string) (int64, error) {
	d, err := duration(flag, s)
	if err == nil && d > 0 && d < time.Millisecond {
		err = usage("%s: want 1ms or more, such as 90s, got %v", flag, d)
	}
	return d.Milliseconds(), err
}

// parts takes lists of names apart at their commas, which no name of a tool has.
func parts(lists []string) []string {
	var out []string
	for _, l := range lists {
		for _, name := range strings.Split(l, ",") {
			if name = strings.TrimSpace(name); name != "" {
				out = append(out, name)
			}
		}
	}
	return out
}

func pairs(flag, sep, want string, list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, p := range list {
		name, value, ok := strings.Cut(p, sep)
		if name = strings.TrimSpace(name); !ok || name == "" { // the value may be a secret
			return nil, usage("%s takes %s", flag, want)
		}
		out[name] = value
	}
	return out, nil
}

func newMCPRemove() *cobra.Command {
	var project bool
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a server from your settings, or from the project's .mcp.json",
		Args:  arguments(1, 1, "the name of a server"),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := workingDirectory()
			if err != nil {
				return err
			}
			file, err := app.RemoveServer(dir, project, args[0])
			if err != nil {
				return failed(err)
			}
			fmt.Printf("%s is not in %s any more.\n", oneLine(args[0], 200), oneLine(file, 500))
			return nil
		},
	}
	cmd.Flags().BoolVar(&project, "project", false, "from .mcp.json in the workspace's root instead of your settings")
	return cmd
}
