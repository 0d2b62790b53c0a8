package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"capstan/internal/app"
)

func newToolsWhy() *cobra.Command {
	var f viewFlags
	cmd := &cobra.Command{
		Use:   "why CALL",
		Short: "Say whether a call would run, which rule or mode decides, and what would change it",
		Long: `Says whether a call would run, be asked about or be denied; which rule (with its
file) or approval mode decides; and what would change that. It names the hooks that
would be asked too. Nothing runs, and no hook is asked.

CALL is TOOL(TEXT) as in a rule, where TEXT is the command, path or address, or
JSON: {"name": "…", "arguments": {…}}.`,
		Example: `  capstan tools why 'Bash(git push origin main)'
  capstan tools why 'Read(.env)' --json
  capstan tools why --approval-mode auto-edit 'Edit(src/main.go)'
  capstan tools why '{"name": "run_shell_command", "arguments": {"command": "make"}}'`,
		Args: arguments(1, 1, "a call, such as 'Bash(git status)'"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, _, err := f.open("")
			if err != nil {
				return err
			}
			defer s.Close()
			if strings.Contains(args[0], "mcp__") { // tools of servers are there once these have answered
				for _, line := range s.AwaitServers(cmd.Context()) {
					warn(line)
				}
			}
			why, err := s.Why(args[0])
			if usageErr, ok := errors.AsType[*app.UsageError](err); ok {
				return usage("%w", usageErr.Err)
			}
			if err != nil {
				return failed(err)
			}
			if why.Wrong != nil {
				warn(fmt.Sprintf("a call with these arguments is refused before any rule is looked at: %v", why.Wrong))
			}
			return printWhy(os.Stdout, why, f.json)
		},
	}
	f.register(cmd, "")
	return cmd
}

func printWhy(w io.Writer, why *app.Reasoning, asJSON bool) error {
	if asJSON {
		return writeJSON(w, why)
	}
	fmt.Fprintf(w, "%s: %s, by %s\n", oneLine(why.Tool, 1024), why.Decision, why.By)
	if why.Reason != "" {
		fmt.Fprintf(w, "Why: %s.\n", plainText(why.Reason))
	}
	if s := why.Suggestion; s != "" {
		fmt.Fprintf(w, "%s.\n", plainText(strings.ToUpper(s[:1])+s[1:]))
	}
	for _, h := range why.Hooks {
		when := "before the rules"
		if h.Event == "PermissionRequest" {
			when = "in place of you"
		}
		fmt.Fprintf(w, "A hook is asked %s, %s: %s.\n", when, h.Event, plainText(h.Hook))
	}
	return nil
}
