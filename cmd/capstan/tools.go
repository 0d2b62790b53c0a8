package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"capstan/internal/app"
	"capstan/internal/msg"
	"capstan/internal/tool"
)

func newTools() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "Look at the tools: what there is, what they take, what a model is told",
		Args:  cobra.NoArgs,
		Example: `  capstan tools list
  capstan tools show edit
  capstan tools search 'open an issue'
  capstan tools cost
  capstan tools types > tools.d.ts
  capstan tools declarations --mode code --json | wc -c
  capstan tools why 'Bash(git push)'`,
	}
	cmd.AddCommand(newToolsList(), newToolsShow(), newToolsSearch(), newToolsCost(), newToolsTypes(), newToolsDeclarations(), newToolsWhy())
	return cmd
}

// viewFlags are the flags of the commands that look at a view.
type viewFlags struct {
	session sessionFlags
	mode    string
	json    bool
}

func (f *viewFlags) register(cmd *cobra.Command, mode string) {
	f.session.register(cmd)
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	if mode != "" {
		cmd.Flags().StringVar(&f.mode, "mode", "", mode)
		f.session.registerAgent(cmd)
	}
}

// open returns the session and its view. fallback is the mode when no flag
// names one; empty means what the settings say.
func (f *viewFlags) open(fallback tool.Mode) (*app.Session, *tool.View, error) {
	opt, err := f.session.options()
	if err != nil {
		return nil, nil, err
	}
	opt.Mode = fallback
	if f.mode != "" {
		if opt.Mode, err = tool.ParseMode(f.mode); err != nil {
			return nil, nil, usage("--mode: %w", err)
		}
	}
	s, err := app.Open(opt)
	if err != nil {
		return nil, nil, opening(err)
	}
	for _, w := range s.Warnings {
		warn(s.Redact(w))
	}
	return s, s.View(), nil
}

// openReady is open once the servers have answered, or had their time: whoever
// looks at the tools wants to see theirs.
func (f *viewFlags) openReady(ctx context.Context, fallback tool.Mode) (*app.Session, *tool.View, error) {
	s, _, err := f.open(fallback)
	if err != nil {
		return nil, nil, err
	}
	for _, line := range s.AwaitServers(ctx) {
		warn(line)
	}
	if ctx.Err() != nil {
		s.Close()
		return nil, nil, &exitError{code: exitInterrupted}
	}
	return s, s.View(), nil
}

const modeHelp = "direct, code or both; the settings decide when it is not given"

func newToolsList() *cobra.Command {
	var f viewFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tools and who may call them from where",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, v, err := f.openReady(cmd.Context(), "")
			if err != nil {
				return err
			}
			defer s.Close()
			return listTools(os.Stdout, s, v, f.json)
		},
	}
	f.register(cmd, modeHelp)
	return cmd
}

type toolRow struct {
	Name     string `json:"name"`
	JSName   string `json:"jsName"`
	Title    string `json:"title"`
	Direct   bool   `json:"direct"`
	Program  bool   `json:"program"`
	Deferred bool   `json:"deferred"`
	Server   string `json:"server,omitempty"`
	Summary  string `json:"summary"`
}

// rowOf says who may call a tool: the model, in the mode of v, and programs,
// which those of capstan exec are whatever the mode.
func rowOf(s *app.Session, e *tool.Entry, v *tool.View) toolRow {
	sp := e.Spec()
	direct, _ := v.Reach(sp.Name)
	_, nested := s.Registry.View(tool.Code, v.Scope()).Reach(sp.Name)
	return toolRow{sp.Name, tool.JSName(sp.Name), sp.Title, direct, nested, v.Deferred(sp.Name), sp.Server, firstSentence(sp.Description)}
}

func firstSentence(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if i := strings.Index(s, ". "); i > 0 {
		s = s[:i+1]
	}
	return oneLine(s, 100)
}

func listTools(w io.Writer, s *app.Session, v *tool.View, asJSON bool) error {
	rows := []toolRow{}
	for _, e := range s.Registry.Tools() {
		rows = append(rows, rowOf(s, e, v))
	}
	if asJSON {
		return writeJSON(w, rows)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "NAME\tMODEL\tPROGRAM\tWHAT IT DOES\n")
	for _, r := range rows {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", oneLine(r.Name, 80), yes(r.Direct), yes(r.Program), r.Summary)
	}
	return tw.Flush()
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "-"
}

func newToolsShow() *cobra.Command {
	var f viewFlags
	cmd := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show one tool: description, signature, schema, who may call it",
		Example: "  capstan tools show read_file",
		Args:    arguments(1, 1, "the name of a tool"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, v, err := f.openReady(cmd.Context(), "")
			if err != nil {
				return err
			}
			defer s.Close()
			if e := named(s.Registry.Tools(), args[0]); e != nil {
				return showTool(os.Stdout, s, e, v, f.json)
			}
			if args[0] == tool.ExecName { // the only one that there is not in every mode
				return failed(fmt.Errorf("%s is there in the modes code and both: add --mode code", tool.ExecName))
			}
			_, refusal := v.Resolve(&tool.Call{Name: args[0]}, false)
			return failed(fmt.Errorf("%s; 'capstan tools list' names them all", refusal.Text()))
		},
	}
	f.register(cmd, modeHelp)
	return cmd
}

// named is the tool of this name, else the first whose JavaScript name it is; nil
// when there is none.
func named(all []*tool.Entry, name string) *tool.Entry {
	for _, as := range []func(string) string{func(name string) string { return name }, tool.JSName} {
		for _, e := range all {
			if as(e.Spec().Name) == name {
				return e
			}
		}
	}
	return nil
}

func newToolsTypes() *cobra.Command {
	var f viewFlags
	cmd := &cobra.Command{
		Use:   "types",
		Short: "Print TypeScript declarations of everything a program can use",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, v, err := f.openReady(cmd.Context(), tool.Code)
			if err != nil {
				return err
			}
			defer s.Close()
			types := s.Types(v)
			if f.json {
				return writeJSON(os.Stdout, map[string]string{"types": types})
			}
			_, err = io.WriteString(os.Stdout, types)
			return err
		},
	}
	f.register(cmd, "")
	return cmd
}

func newToolsDeclarations() *cobra.Command {
	var f viewFlags
	cmd := &cobra.Command{
		Use:   "declarations",
		Short: "Print the tools as a model is told of them, with --json exactly so",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, v, err := f.openReady(cmd.Context(), "")
			if err != nil {
				return err
			}
			defer s.Close()
			decls := v.Declarations()
			if f.json {
				return writeJSON(os.Stdout, decls)
			}
			return printDeclarations(os.Stdout, decls)
		},
	}
	f.register(cmd, modeHelp)
	return cmd
}

// printDeclarations is for a person at a terminal, on which nothing in them acts.
func printDeclarations(w io.Writer, decls []msg.Declaration) error {
	for _, d := range decls {
		if _, err := fmt.Fprintf(w, "## %s\n\n%s\n\n%s\n\n", oneLine(d.Name, 1024), plainText(d.Description), plainText(string(d.Parameters))); err != nil {
			return failed(err)
		}
	}
	return nil
}
