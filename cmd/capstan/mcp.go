package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"capstan/internal/app"
)

func newMCP() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Look after the MCP servers: list, add, remove, get, test, login",
		Args:  cobra.NoArgs,
		Example: `  capstan mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  capstan mcp add docs https://docs.example.com/mcp --header 'Authorization: Bearer ${DOCS_TOKEN}'
  capstan mcp list
  capstan mcp get files
  capstan mcp test`,
	}
	cmd.AddCommand(newMCPList(), newMCPAdd(), newMCPRemove(), newMCPGet(), newMCPTest(), newMCPLogin())
	return cmd
}

// mcpFlags are the flags of the commands that look at configured servers.
type mcpFlags struct {
	session sessionFlags
	json    bool
}

func (f *mcpFlags) register(cmd *cobra.Command) {
	f.session.register(cmd)
	_ = cmd.Flags().MarkHidden("approval-mode") // nothing is called
	_ = cmd.Flags().MarkHidden("add-dir")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
}

func (f *mcpFlags) open() (*app.Session, error) {
	opt, err := f.session.options()
	if err != nil {
		return nil, err
	}
	s, err := app.Open(opt)
	if err != nil {
		return nil, opening(err)
	}
	for _, w := range s.Warnings {
		warn(s.Redact(w))
	}
	return s, nil
}

func newMCPList() *cobra.Command {
	var f mcpFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the configured servers; none is started",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			s, err := f.open()
			if err != nil {
				return err
			}
			defer s.Close()
			return listServers(os.Stdout, s.Servers(), f.json)
		},
	}
	f.register(cmd)
	return cmd
}

func listServers(w io.Writer, list []app.Server, asJSON bool) error {
	if asJSON {
		return writeJSON(w, list)
	}
	if len(list) == 0 {
		fmt.Fprintln(stderr, "capstan: no MCP server is configured; 'capstan mcp add' adds one")
		return nil
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "NAME\tTYPE\tWHAT\tFROM\n")
	for _, v := range list {
		if v.Fault != "" {
			fmt.Fprintf(tw, "%s\t-\tcannot be used: %s\t\n", oneLine(v.Name, 80), oneLine(v.Fault, 500))
			continue
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", oneLine(v.Name, 80), v.Type, oneLine(strings.Join(v.Target, " "), 100), oneLine(v.From, 300))
	}
	return tw.Flush()
}

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

func newMCPGet() *cobra.Command {
	var f mcpFlags
	cmd := &cobra.Command{
		Use:   "get NAME",
		Short: "Start one server and show what it offers: tools, resources, prompts",
		Args:  arguments(1, 1, "the name of a server"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := f.open()
			if err != nil {
				return err
			}
			defer s.Close()
			r, err := s.Inspect(cmd.Context(), args[0])
			if r == nil {
				return opening(err)
			}
			if err := showServer(os.Stdout, args[0], s, r, err, f.json); err != nil {
				return failed(err)
			}
			return ended(cmd.Context(), args[0], err)
		},
	}
	f.register(cmd)
	return cmd
}

// ended is the error of a command whose server did not come up.
func ended(ctx context.Context, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &exitError{code: exitInterrupted}
	}
	return failed(fmt.Errorf("MCP server %s is missing: %w", oneLine(name, 200), err))
}

// showServer prints what there is to know of a server that was started.
func showServer(w io.Writer, name string, s *app.Session, r *app.ServerReport, fault error, asJSON bool) error {
	var conf app.Server
	for _, c := range s.Servers() {
		if c.Name == name {
			conf = c
		}
	}
	if fault != nil {
		conf.Fault = fault.Error()
	}
	if asJSON {
		return writeJSON(w, struct {
			app.Server
			State        string   `json:"state"`
			Version      string   `json:"version,omitempty"`
			Instructions string   `json:"instructions,omitempty"`
			Tools        any      `json:"tools"`
			Resources    any      `json:"resources"`
			Prompts      any      `json:"prompts"`
			Warnings     []string `json:"warnings"`
		}{conf, string(r.State), r.Server, r.Instructions, list(r.Offered), list(r.Resources), list(r.Prompts), append(r.Warnings, r.Faults...)})
	}
	fmt.Fprintf(w, "%s (%s): %s\nFrom: %s\nState: %s\n", oneLine(name, 200), conf.Type, oneLine(strings.Join(conf.Target, " "), 500), oneLine(conf.From, 500), r.State)
	if r.Server != "" {
		fmt.Fprintf(w, "It calls itself: %s\n", oneLine(r.Server, 200))
	}
	if r.Instructions != "" {
		fmt.Fprintf(w, "It says: %s\n", oneLine(strings.Join(strings.Fields(r.Instructions), " "), 500))
	}
	for _, warning := range append(r.Warnings, r.Faults...) {
		fmt.Fprintf(w, "Warning: %s\n", oneLine(warning, 1000))
	}
	if fault != nil {
		return nil
	}
	showOffers(w, r)
	return nil
}

// list is a list that is never null in JSON.
func list[T any](items []T) []T { return append([]T{}, items...) }

func showOffers(w io.Writer, r *app.ServerReport) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer tw.Flush()
	fmt.Fprintf(tw, "\nTools: %d\n", len(r.Offered))
	for _, t := range r.Offered {
		fmt.Fprintf(tw, "  %s\t%s\n", t.Name, firstSentence(t.Description))
	}
	fmt.Fprintf(tw, "\nResources: %d\n", len(r.Resources))
	for _, v := range r.Resources {
		fmt.Fprintf(tw, "  %s%s\t%s\n", oneLine(v.URI, 200), oneLine(v.Template, 200), oneLine(strings.Join(strings.Fields(v.Name+" "+v.Description), " "), 100))
	}
	fmt.Fprintf(tw, "\nPrompts: %d\n", len(r.Prompts))
	for _, p := range r.Prompts {
		gaps := ""
		for _, a := range p.Arguments {
			if a.Required {
				gaps += " " + oneLine(a.Name, 100)
			} else {
				gaps += " [" + oneLine(a.Name, 100) + "]"
			}
		}
		fmt.Fprintf(tw, "  %s%s\t%s\n", oneLine(p.Name, 200), gaps, firstSentence(p.Description))
	}
}

func newMCPTest() *cobra.Command {
	var f mcpFlags
	cmd := &cobra.Command{
		Use:   "test [NAME...]",
		Short: "Start the servers, all when none is named, and say which of them work",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := f.open()
			if err != nil {
				return err
			}
			defer s.Close()
			return testServers(cmd.Context(), s, args, f.json)
		},
	}
	f.register(cmd)
	return cmd
}

// A tried server is how a start of it went.
type tried struct {
	Name     string   `json:"name"`
	OK       bool     `json:"ok"`
	Tools    int      `json:"tools"`
	Fault    string   `json:"fault,omitempty"`
	Warnings []string `json:"warnings"`
}

func testServers(ctx context.Context, s *app.Session, names []string, asJSON bool) error {
	configured := map[string]app.Server{}
	var all []string
	for _, c := range s.Servers() {
		configured[c.Name] = c
		all = append(all, c.Name)
	}
	for _, n := range names {
		if _, ok := configured[n]; !ok {
			return usage("there is no MCP server %q; 'capstan mcp list' names them", n)
		}
	}
	if len(names) == 0 {
		names = all
	}
	rows, bad := []tried{}, 0
	for _, t := range s.TestServers(ctx, names...) {
		if ctx.Err() != nil {
			return &exitError{code: exitInterrupted}
		}
		if t.Fault != "" {
			bad++
		}
		rows = append(rows, tried{t.Name, t.Fault == "", t.Tools, t.Fault, list(t.Warnings)})
	}
	if err := printTried(os.Stdout, rows, asJSON); err != nil {
		return failed(err)
	}
	if bad > 0 {
		return failed(fmt.Errorf("%d of %d servers cannot be used", bad, len(rows)))
	}
	return nil
}

func printTried(w io.Writer, rows []tried, asJSON bool) error {
	if asJSON {
		return writeJSON(w, rows)
	}
	for _, r := range rows {
		if r.OK {
			fmt.Fprintf(w, "ok      %s: %d tools\n", oneLine(r.Name, 200), r.Tools)
		} else {
			fmt.Fprintf(w, "FAILED  %s: %s\n", oneLine(r.Name, 200), strings.ReplaceAll(plainText(r.Fault), "\n", "\n        "))
		}
		for _, warning := range r.Warnings {
			fmt.Fprintf(w, "        warning: %s\n", oneLine(warning, 1000))
		}
	}
	return nil
}

func newMCPLogin() *cobra.Command {
	var f mcpFlags
	var forget bool
	cmd := &cobra.Command{
		Use:   "login NAME",
		Short: "Log in to a server over HTTP with a browser",
		Long: `Prints an address to open in a browser on this machine and waits until you have
logged in there. The login is kept in ~/.capstan/mcp-logins.json, which only you
can read, and refreshed by itself. --forget removes it.`,
		Args: arguments(1, 1, "the name of a server"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := f.open()
			if err != nil {
				return err
			}
			defer s.Close()
			name := oneLine(args[0], 200)
			if forget {
				was, err := s.Logout(args[0])
				if err == nil && !was {
					err = fmt.Errorf("there is no login of %s", name)
				}
				if err != nil {
					return failed(err)
				}
				fmt.Printf("The login of %s is forgotten.\n", name)
				return nil
			}
			err = s.Login(cmd.Context(), args[0], func(address string) error {
				fmt.Fprintf(stderr, "Open this address in a browser on this machine:\n\n%s\n\n", address)
				return nil
			})
			if _, bad := errors.AsType[*app.UsageError](err); bad {
				return opening(err)
			}
			if cmd.Context().Err() != nil {
				return &exitError{code: exitInterrupted}
			}
			if err != nil {
				return failed(errors.New(s.Redact(err.Error())))
			}
			fmt.Printf("Logged in to %s.\n", name)
			return nil
		},
	}
	f.register(cmd)
	_ = cmd.Flags().MarkHidden("json")
	cmd.Flags().BoolVar(&forget, "forget", false, "remove the login instead")
	return cmd
}
