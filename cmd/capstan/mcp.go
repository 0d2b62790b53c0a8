package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

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
		sayNone()
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

func sayNone() {
	fmt.Fprintln(stderr, "capstan: no MCP server is configured; 'capstan mcp add' adds one")
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
	Denied   bool     `json:"denied,omitempty"` // by a rule, so that it is not started
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
		if names = all; len(all) == 0 && !asJSON {
			sayNone()
		}
	}
	rows, bad := []tried{}, 0
	for _, t := range s.TestServers(ctx, names...) {
		if ctx.Err() != nil {
			return &exitError{code: exitInterrupted}
		}
		if t.Fault != "" && !t.Denied {
			bad++
		}
		rows = append(rows, tried{t.Name, t.Fault == "", t.Denied, t.Tools, t.Fault, list(t.Warnings)})
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
		switch {
		case r.OK:
			fmt.Fprintf(w, "ok      %s: %s\n", oneLine(r.Name, 200), counted(r.Tools, "tool"))
		case r.Denied:
			fmt.Fprintf(w, "denied  %s: %s\n", oneLine(r.Name, 200), oneLine(r.Fault, 1000))
		default:
			fmt.Fprintf(w, "FAILED  %s: %s\n", oneLine(r.Name, 200), strings.ReplaceAll(plainText(r.Fault), "\n", "\n        "))
		}
		for _, warning := range r.Warnings {
			fmt.Fprintf(w, "        warning: %s\n", oneLine(warning, 1000))
		}
	}
	return nil
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
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
