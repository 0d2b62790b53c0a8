package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"capstan/internal/session"
)

func newSessionsAudit() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "audit ID",
		Short: "Say of each call of a session who decided what, and why",
		Long: `Prints every decision about a call: of the model, of a program and of subagents;
those of rules, modes, hooks, guards and people, and the calls that were refused
before anybody was asked. The beginning of an ID is enough.`,
		Args: arguments(1, 1, "the ID of a session"),
		RunE: func(_ *cobra.Command, args []string) error {
			store, err := openStore()
			if err != nil {
				return err
			}
			entries, notes, err := store.Audit(args[0])
			if err != nil {
				return looking(err)
			}
			for _, n := range notes {
				fmt.Fprintf(stderr, "capstan: note: %s\n", oneLine(n, 1000))
			}
			if asJSON {
				return writeJSON(os.Stdout, append([]session.AuditEntry{}, entries...))
			}
			if len(entries) == 0 {
				fmt.Fprintln(stderr, "No call was decided in this session.")
			}
			for _, e := range entries {
				if err := writeAudit(os.Stdout, &e); err != nil {
					return failed(err)
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// writeAudit writes one decision: a line of what was decided, and indented below
// it what else there is to know.
func writeAudit(w io.Writer, e *session.AuditEntry) error {
	var b strings.Builder
	word := "denied"
	switch {
	case e.Allowed:
		word = "allowed"
	case e.Stage == session.StageRefused:
		word = "refused"
	}
	call := strings.TrimSpace(oneLine(e.Name, 80) + " " + oneLine(e.Args, 120))
	fmt.Fprintf(&b, "%s  %s  %s%s\n", e.Time.UTC().Format("2006-01-02T15:04:05.000Z"), word, call, origin(e))
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(&b, "    %s: %s\n", label, oneLine(text, 500))
		}
	}
	who := e.Stage
	if e.By != "" {
		who += ", " + e.By
	}
	line("decided by", who)
	var stages []string
	if e.Hooks != "" {
		stages = append(stages, "hooks "+e.Hooks)
	}
	if e.Rules != "" {
		stages = append(stages, "rules "+e.Rules)
	}
	line("said", strings.Join(stages, ", "))
	line("asked because", e.Asked)
	if e.Answered != e.By {
		line("answered by", e.Answered)
	}
	if e.WaitMS > 0 {
		line("answered after", (time.Duration(e.WaitMS) * time.Millisecond).String())
	}
	line("their words", e.Said)
	for _, g := range e.Grants {
		line("rule added", g)
	}
	if e.Changed {
		line("arguments", "rewritten before it ran")
	}
	if !e.Allowed {
		line("told", e.Reason)
	}
	line("ended", strings.TrimSpace(e.Status+" "+e.Code))
	_, err := io.WriteString(w, b.String())
	return err
}

// origin says who made the call.
func origin(e *session.AuditEntry) string {
	s := "  (" + oneLine(e.Call, 80)
	if e.Source == "code_mode" {
		s += ", by the program of " + oneLine(e.ParentID, 80)
	}
	if e.Agent != "" {
		s += ", of subagent " + oneLine(e.Agent, 80)
	}
	return s + ")"
}
