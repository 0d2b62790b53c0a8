package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"capstan/internal/app"
)

type addFlags struct {
	project, replace       bool
	kind, cwd, description string
	env, headers           []string
	include, exclude       []string
	timeout, startup       time.Duration
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
		RunE: func(_ *cobra.Command, args []string) error {
			return f.run(args[0], args[1:])
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.project, "project", false, "write .mcp.json in the workspace's root instead of your settings")
	fl.BoolVar(&f.replace, "replace", false, "put it in the place of a server of this name")
	fl.StringVar(&f.kind, "type", "", "stdio, http or sse; found out when it is not given")
	fl.StringArrayVar(&f.env, "env", nil, "NAME=VALUE for its environment; may be repeated")
	fl.StringArrayVar(&f.headers, "header", nil, "'NAME: VALUE' to send to it; may be repeated")
	fl.StringVar(&f.cwd, "cwd", "", "where it runs; the workspace's root when not given")
	fl.DurationVar(&f.timeout, "timeout", 0, "how long a call may go on without progress, such as 90s")
	fl.DurationVar(&f.startup, "startup-timeout", 0, "how long it may take to start, such as 60s")
	fl.StringArrayVar(&f.include, "include-tools", nil, "take only these tools; may be repeated")
	fl.StringArrayVar(&f.exclude, "exclude-tools", nil, "leave these tools out; may be repeated")
	fl.BoolVar(&f.trust, "trust", false, "believe it which of its tools only read: they run without a question")
	fl.BoolVar(&f.always, "always-load", false, "show its tools to the model instead of having them found")
	fl.StringVar(&f.description, "description", "", "what it is for; helps to find its tools")
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

func (f *addFlags) run(name string, target []string) error {
	e, err := f.entry(target)
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
	fmt.Printf("%s is in %s. 'capstan mcp test %s' tries it.\n", oneLine(name, 200), oneLine(file, 500), oneLine(name, 200))
	if f.project {
		fmt.Println("It is used once the folder is trusted: see 'capstan trust --help'.")
	}
	return nil
}

func (f *addFlags) entry(target []string) (e serverEntry, err error) {
	e = serverEntry{Type: f.kind, Cwd: f.cwd, Timeout: f.timeout.Milliseconds(), Startup: f.startup.Milliseconds(),
		IncludeTools: f.include, ExcludeTools: f.exclude, Trust: f.trust, AlwaysLoad: f.always, Description: f.description}
	low := strings.ToLower(target[0])
	if strings.HasPrefix(low, "http://") || strings.HasPrefix(low, "https://") {
		if len(target) > 1 {
			return e, usage("a server with a URL takes no arguments, got %q", target[1])
		}
		if e.URL = target[0]; len(f.env) > 0 {
			return e, usage("--env is for servers that are started; one with a URL takes --header")
		}
	} else {
		if e.Command, e.Args = target[0], target[1:]; len(f.headers) > 0 {
			return e, usage("--header is for servers with a URL; one that is started takes --env")
		}
	}
	if e.Env, err = pairs("--env", "=", "NAME=VALUE", f.env); err != nil {
		return e, err
	}
	e.Headers, err = pairs("--header", ":", "'NAME: VALUE'", f.headers)
	return e, err
}

func pairs(flag, sep, want string, list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, p := range list {
		name, value, ok := strings.Cut(p, sep)
		if name = strings.TrimSpace(name); !ok || name == "" { // the value may be a secret
			return nil, usage("%s takes %s", flag, want)
		}
		out[name] = strings.TrimSpace(value)
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
