package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"capstan/internal/app"
	"capstan/internal/codemode"
	"capstan/internal/tool"
)

// showTool prints all that there is to know of one tool.
func showTool(w io.Writer, s *app.Session, e *tool.Entry, v *tool.View, asJSON bool) error {
	d := s.Describe(e, v)
	callers, err := callersOf(s, e)
	if err != nil {
		return failed(err)
	}
	if asJSON {
		return writeJSON(w, struct {
			toolRow
			Description string   `json:"description"`
			Signature   string   `json:"signature"`
			Input       any      `json:"input"`
			Output      any      `json:"output,omitempty"`
			Bytes       int      `json:"bytes"`
			Callers     []caller `json:"callers"`
		}{rowOf(s, e, v), d.Description, d.Signature, d.Input, d.Output, d.Bytes, callers})
	}
	row := rowOf(s, e, v)
	title := ""
	if t := e.Spec().Title; t != "" {
		title = " (" + oneLine(t, 100) + ")"
	}
	fmt.Fprintf(w, "%s%s\n\n%s\n\n", oneLine(e.Spec().Name, 1024), title, plainText(d.Description))
	fmt.Fprintf(w, "From: %s.\n", sourceName(row.Server))
	fmt.Fprintf(w, "Called by the model in mode %s: %s. Called by programs: %s.\n", v.Mode(), yes(row.Direct), yes(row.Program))
	for _, c := range callers {
		fmt.Fprintf(w, "In mode %s: %s.\n", c.Mode, c.How)
	}
	if err := e.Compile(); err != nil {
		fmt.Fprintf(w, "It cannot be called: %s\n", plainText(err.Error()))
	}
	fmt.Fprintf(w, "Declared directly it costs %d bytes.\n\n%s\n\nInput schema:\n%s\n", d.Bytes, d.Signature, cmp.Or(plainText(d.InputText), "none: it takes no arguments"))
	if d.OutputText != "" {
		fmt.Fprintf(w, "\nOutput schema:\n%s\n", plainText(d.OutputText))
	}
	return nil
}

// A caller says who may call a tool in one mode, and how.
type caller struct {
	Mode     tool.Mode `json:"mode"`
	Model    bool      `json:"model"`   // by its name
	Program  bool      `json:"program"` // as tools.<jsName>
	Deferred bool      `json:"deferred"`
	How      string    `json:"how"`
}

func callersOf(s *app.Session, e *tool.Entry) ([]caller, error) {
	name := e.Spec().Name
	var all []caller
	for _, m := range []tool.Mode{tool.Direct, tool.Code, tool.Both} {
		v, err := s.InMode(m)
		if err != nil {
			return nil, err
		}
		c := caller{Mode: m, Deferred: v.Deferred(name)}
		c.Model, c.Program = v.Reach(name)
		switch {
		case c.Model && c.Program:
			c.How = "by the model and by programs"
		case c.Model:
			c.How = "by the model"
		case c.Program && c.Deferred:
			c.How = "by programs; " + tool.ToolSearchName + " finds it"
		case c.Program:
			c.How = "by programs"
		case v.Find(name) != nil:
			c.How = "by the model through " + tool.ToolCallName + "; " + tool.ToolSearchName + " finds it"
		case s.Forbidden(name) != "":
			c.How = "not at all: " + s.Forbidden(name) + " takes it away"
		default:
			c.How = "not at all"
		}
		all = append(all, c)
	}
	return all, nil
}

func sourceName(server string) string {
	if server == "" {
		return "built in"
	}
	return "the MCP server " + oneLine(server, 100)
}

// plainText is foreign text without what acts on a terminal.
func plainText(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = oneLine(l, len(l)+1)
	}
	return strings.Join(lines, "\n")
}

func newToolsSearch() *cobra.Command {
	var f viewFlags
	most := 5
	cmd := &cobra.Command{
		Use:   "search QUERY",
		Short: "Search the tools as tool_search does",
		Long:  "Search the tools as tool_search does. +WORD has to match; select:NAME,NAME gives\ntools by their registered names. --json prints what a model is given.",
		Example: `  capstan tools search 'open an issue'
  capstan tools search '+issue open' --json
  capstan tools search select:read_file,edit`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if most < 1 || most > 20 {
				return usage("--max-results: want 1 to 20, got %d", most)
			}
			s, v, err := f.open("")
			if err != nil {
				return err
			}
			defer s.Close()
			return searchTools(cmd.Context(), os.Stdout, s, v, strings.Join(args, " "), most, f.json)
		},
	}
	f.register(cmd, modeHelp)
	cmd.Flags().IntVar(&most, "max-results", most, "how many tools are given whole, 1 to 20")
	return cmd
}

func searchTools(ctx context.Context, w io.Writer, s *app.Session, v *tool.View, query string, most int, asJSON bool) error {
	found, err := s.Search(ctx, v, query, most)
	if ctx.Err() != nil {
		return &exitError{code: exitInterrupted}
	}
	if err != nil {
		return failed(fmt.Errorf("searching: %w", err))
	}
	if asJSON {
		text, err := found.Text()
		if err != nil {
			return failed(err)
		}
		_, err = fmt.Fprintln(w, text)
		return err
	}
	for _, t := range found.Tools {
		fmt.Fprintf(w, "%s\n  %s\n", oneLine(t.Name, 1024), firstSentence(t.Description))
		if t.Signature != "" {
			fmt.Fprintf(w, "  %s\n", strings.ReplaceAll(plainText(t.Signature), "\n", "\n  "))
		}
		fmt.Fprintln(w)
	}
	for _, l := range found.More {
		fmt.Fprintf(w, "%s: %s\n", oneLine(l.Name, 1024), oneLine(l.Summary, 200))
	}
	for _, name := range found.Missing {
		fmt.Fprintf(w, "Not found: %s\n", oneLine(name, 200))
	}
	if found.Hint != "" && len(found.Tools)+len(found.More) == 0 {
		fmt.Fprintln(w, found.Hint)
	}
	for _, line := range found.NotReady {
		fmt.Fprintf(stderr, "capstan: warning: %s\n", line)
	}
	fmt.Fprintln(w, searchedText(found.Searched))
	return nil
}

func searchedText(n codemode.Searched) string {
	tools := n.BuiltIn
	for _, c := range n.Servers {
		tools += c
	}
	if len(n.Servers) == 0 {
		return fmt.Sprintf("Searched %d tools.", tools)
	}
	return fmt.Sprintf("Searched %d tools: %d built in, %d of %d servers.", tools, n.BuiltIn, tools-n.BuiltIn, len(n.Servers))
}

func newToolsCost() *cobra.Command {
	var f viewFlags
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "Show what the tools take of every request, by mode and server",
		Long:  "Show what the declarations of the tools take of every request to a model, by mode\nand by server. Bytes are those of compact JSON; tokens are estimated at four bytes\neach. IF SHOWN is what the deferred tools would add.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, _, err := f.openReady(cmd.Context(), "")
			if err != nil {
				return err
			}
			defer s.Close()
			costs, err := s.Costs()
			if err != nil {
				return failed(err)
			}
			return printCosts(os.Stdout, costs, f.json)
		},
	}
	f.register(cmd, "")
	return cmd
}

func printCosts(w io.Writer, costs []app.Cost, asJSON bool) error {
	if asJSON {
		return writeJSON(w, costs)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "MODE\tTOOLS\tSHOWN\tDEFERRED\tBYTES\tTOKENS\tIF SHOWN\t  FROM\n")
	for _, c := range costs {
		var sum app.SourceCost
		for _, r := range c.Sources {
			sum.Tools, sum.Shown, sum.Deferred, sum.IfShown = sum.Tools+r.Tools, sum.Shown+r.Shown, sum.Deferred+r.Deferred, sum.IfShown+r.IfShown
			from := "built in"
			if r.Server != "" {
				from = oneLine(r.Server, 100)
			}
			costLine(tw, c.Mode, r, from)
		}
		sum.Bytes, sum.Tokens = c.Bytes, c.Tokens
		all := "all"
		if c.InForce {
			all = "all (the mode in force)"
		}
		costLine(tw, c.Mode, sum, all)
	}
	return tw.Flush()
}

func costLine(w io.Writer, m tool.Mode, r app.SourceCost, from string) {
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t  %s\n", m, r.Tools, r.Shown, r.Deferred, r.Bytes, r.Tokens, r.IfShown, from)
}
