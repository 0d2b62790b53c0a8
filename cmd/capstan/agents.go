package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"capstan/internal/agent"
	"capstan/internal/app"
	"capstan/internal/tool"
)

func newAgents() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "Look at the agents that tasks can be given to",
		Long: `Agents are defined in .capstan/agents/NAME.md, also in .claude/agents and
.qwen/agents, of this workspace and of your home directory. The model starts them
as subagents; capstan --agent NAME is one itself.`,
		Args: cobra.NoArgs,
		Example: `  capstan agents list
  capstan agents show explore`,
	}
	cmd.AddCommand(newAgentsList(), newAgentsShow())
	return cmd
}

func newAgentsList() *cobra.Command {
	var f viewFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the agents",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			s, _, err := f.open("")
			if err != nil {
				return err
			}
			defer s.Close()
			return listAgents(os.Stdout, s, f.json)
		},
	}
	f.register(cmd, "")
	return cmd
}

type agentRow struct {
	Name        string `json:"name"`
	Path        string `json:"path"` // empty: built in
	Description string `json:"description"`
}

func listAgents(w io.Writer, s *app.Session, asJSON bool) error {
	rows := []agentRow{}
	for _, x := range s.Agents() {
		rows = append(rows, agentRow{x.Name, x.Path, x.Description})
	}
	if asJSON {
		return writeJSON(w, rows)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "NAME\tFROM\tDESCRIPTION\n")
	for _, r := range rows {
		from := "built in"
		if r.Path != "" {
			from = oneLine(r.Path, 200)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", oneLine(r.Name, 64), from, oneLine(r.Description, 80))
	}
	return tw.Flush()
}

func newAgentsShow() *cobra.Command {
	var f viewFlags
	cmd := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show one agent: what it is told, and what it may call as a subagent",
		Example: "  capstan agents show explore --mode code",
		Args:    arguments(1, 1, "the name of an agent"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, _, err := f.openReady(cmd.Context(), "")
			if err != nil {
				return err
			}
			defer s.Close()
			x, err := s.Definition(args[0])
			if err != nil {
				return failed(err)
			}
			return showAgent(os.Stdout, s, x, f.json)
		},
	}
	f.register(cmd, modeHelp)
	return cmd
}

// agentDetails is an agent as `agents show --json` has it. Direct and Program are
// what it may call, as a subagent, by itself and from its programs.
type agentDetails struct {
	agentRow
	Mode     tool.Mode `json:"mode"`
	Model    string    `json:"model,omitempty"`
	Approval string    `json:"approvalMode"`
	MaxTurns int       `json:"maxTurns,omitempty"`
	Preset   string    `json:"preset,omitempty"`
	Direct   []string  `json:"direct"`
	Program  []string  `json:"program"`
	Prompt   string    `json:"prompt"`
}

func showAgent(w io.Writer, s *app.Session, x *agent.Definition, asJSON bool) error {
	v := s.SubagentView(x)
	d := agentDetails{agentRow: agentRow{x.Name, x.Path, x.Description}, Mode: v.Mode(), Model: x.Model, Approval: agent.Stricter(x.Approval, s.ApprovalMode()),
		MaxTurns: x.MaxTurns, Preset: x.Preset, Direct: append([]string{}, names(v)...), Program: []string{}, Prompt: x.Prompt}
	for _, b := range v.Bindings() {
		d.Program = append(d.Program, b.Entry.Spec().Name)
	}
	if asJSON {
		return writeJSON(w, d)
	}
	from := "built in"
	if d.Path != "" {
		from = d.Path
	}
	fmt.Fprintf(w, "%s\n\n%s\n\nFrom: %s\nMode: %s\nApproval mode: %s\n", d.Name, oneLine(d.Description, 2000), oneLine(from, 400), d.Mode, d.Approval)
	for _, l := range [][2]string{{"Model", d.Model}, {"Preset", d.Preset}, {"It calls directly", strings.Join(d.Direct, ", ")}, {"Its programs call", strings.Join(d.Program, ", ")}} {
		if l[1] != "" {
			fmt.Fprintf(w, "%s: %s\n", l[0], oneLine(l[1], 4000))
		}
	}
	if d.MaxTurns > 0 {
		fmt.Fprintf(w, "Turns: at most %d\n", d.MaxTurns)
	}
	if d.Prompt != "" {
		fmt.Fprintf(visible{w}, "\n%s\n", d.Prompt)
	}
	return nil
}
