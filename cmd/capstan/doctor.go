package main

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"capstan/internal/app"
)

func newDoctor() *cobra.Command {
	var f struct {
		session sessionFlags
		json    bool
		servers bool
	}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Try what this machine can do, and say which protections are in force",
		Long: `Tries each layer of the sandbox, the keeper of shell commands, the settings, the
keys of models, and the directories where texts and sessions are kept, and prints
what it found. MCP servers are listed; --servers starts them too. Exits with 1 when
something that is required does not work.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opt, err := f.session.options()
			if err != nil {
				return err
			}
			checks := app.Doctor(cmd.Context(), opt, f.servers)
			if err := printChecks(checks, f.json); err != nil {
				return failed(err)
			}
			for _, c := range checks {
				if c.Required && !c.OK {
					return &exitError{code: exitFailed}
				}
			}
			return nil
		},
	}
	f.session.register(cmd)
	cmd.Flags().BoolVar(&f.servers, "servers", false, "start the configured MCP servers too")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

func printChecks(checks []app.Check, asJSON bool) error {
	if asJSON {
		return writeJSON(os.Stdout, checks)
	}
	tw := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, c := range checks {
		mark := "ok"
		switch {
		case !c.OK && c.Required:
			mark = "FAILED"
		case !c.OK:
			mark = "missing"
		case c.Warning:
			mark = "warning"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", mark, c.Name, c.Detail)
	}
	return tw.Flush()
}
