package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"capstan/internal/app"
	"capstan/internal/msg"
	"capstan/internal/session"
)

func newSessions() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "Look at recorded sessions",
		Args:  cobra.NoArgs,
		Example: `  capstan sessions list
  capstan sessions show 3f2a
  capstan sessions export 3f2a --format json > session.json
  capstan sessions audit 3f2a`,
	}
	cmd.AddCommand(newSessionsList(), newSessionsShow(), newSessionsExport(), newSessionsAudit())
	return cmd
}

func openStore() (*session.Store, error) {
	dir, err := workingDirectory()
	if err != nil {
		return nil, err
	}
	store, err := app.Sessions(dir, os.Getenv)
	if err != nil {
		return nil, opening(err)
	}
	return store, nil
}

// looking is the error of a session that cannot be read.
func looking(err error) error {
	if errors.Is(err, session.ErrNotFound) || errors.Is(err, session.ErrAmbiguous) {
		return failed(fmt.Errorf("%w; 'capstan sessions list --all' lists them", err))
	}
	return failed(err)
}

func newSessionsList() *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the sessions of this workspace, the newest first",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			store, err := openStore()
			if err != nil {
				return err
			}
			infos, err := store.List(all)
			if err != nil {
				return failed(err)
			}
			if asJSON {
				return writeJSON(os.Stdout, infos)
			}
			return listSessions(os.Stdout, infos, all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "of all workspaces")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func listSessions(w io.Writer, infos []session.Info, all bool) error {
	if len(infos) == 0 {
		fmt.Fprintln(stderr, "No sessions were recorded here yet.")
		return nil
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	where := ""
	if all {
		where = "DIRECTORY\t"
	}
	fmt.Fprintf(tw, "ID\tUSED\tTURNS\tMODEL\t%sTITLE\n", where)
	ids := shortIDs(infos)
	for i, s := range infos {
		if all {
			where = dash(oneLine(s.Dir, 60)) + "\t"
		}
		fmt.Fprintf(tw, "%s\t%s\t%d\t%s\t%s%s\n", ids[i], s.Updated.Local().Format(time.DateTime), s.Turns, dash(oneLine(s.Model, 40)), where, dash(oneLine(s.Title, 60)))
	}
	return tw.Flush()
}

// shortIDs are beginnings of the ids that name one session each.
func shortIDs(infos []session.Info) []string {
	const usual = 8
	begins := map[string]int{}
	for _, s := range infos {
		begins[s.ID[:min(len(s.ID), usual)]]++
	}
	var ids []string
	for _, s := range infos {
		id := s.ID[:min(len(s.ID), usual)]
		if begins[id] > 1 {
			id = s.ID
		}
		ids = append(ids, oneLine(id, 80))
	}
	return ids
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func newSessionsShow() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one session: what was said and done, what it cost, what is damaged",
		Long:  "Shows one session. The beginning of an ID is enough when it begins only one.",
		Args:  arguments(1, 1, "the ID of a session"),
		RunE: func(_ *cobra.Command, args []string) error {
			store, err := openStore()
			if err != nil {
				return err
			}
			state, err := store.Read(args[0])
			if err != nil {
				return looking(err)
			}
			if asJSON {
				return writeJSON(os.Stdout, struct {
					session.Info
					Usage      msg.Usage `json:"usage"`
					Messages   int       `json:"messages"`
					Unfinished bool      `json:"unfinished"`
					Repaired   int       `json:"repaired"`
					Notes      []string  `json:"notes"`

					Agents []session.AgentInfo `json:"agents,omitempty"`
				}{state.Info, state.Usage, len(state.Messages), state.Unfinished, len(state.Repaired), append([]string{}, state.Notes...), state.Agents})
			}
			return exported(store.Export(visible{os.Stdout}, args[0], session.Markdown))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what is known of the session as JSON; export has the transcript")
	return cmd
}

func newSessionsExport() *cobra.Command {
	var format string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "export ID",
		Short: "Write one session to stdout, as Markdown or as JSON with everything in it",
		Args:  arguments(1, 1, "the ID of a session"),
		RunE: func(_ *cobra.Command, args []string) error {
			if asJSON {
				format = string(session.JSON)
			}
			if f := session.ExportFormat(format); f != session.Markdown && f != session.JSON {
				return usage("--format %q: want %s", format, strings.Join([]string{string(session.Markdown), string(session.JSON)}, " or "))
			}
			store, err := openStore()
			if err != nil {
				return err
			}
			return exported(store.Export(os.Stdout, args[0], session.ExportFormat(format)))
		},
	}
	cmd.Flags().StringVar(&format, "format", string(session.Markdown), "markdown or json")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the same as --format json")
	return cmd
}

func exported(err error) error {
	if err != nil {
		return looking(err)
	}
	return nil
}
