package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"capstan/internal/app"
)

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
