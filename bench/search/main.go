// Command search measures how well tools are found, beside how other agents look
// for them, on the sets of ../shared/data:
//
//	go run ./bench/search [-data DIR]
//
// It prints Markdown tables: recall among the first 1, 5 and 10 hits in percent
// and the mean reciprocal rank, for the half of the queries that no weight was
// fitted on and for all; then times and memory.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"

	"capstan/bench/search/sets"
	"capstan/internal/search"
)

func main() {
	dir := flag.String("data", "../shared/data", "directory of the shared sets")
	flag.Parse()
	if err := run(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "search:", err)
		os.Exit(1)
	}
}

// ours is the product.
func ours(tools []sets.Tool) ranker {
	x := index(tools)
	return func(text string) []string {
		var out []string
		for _, h := range x.Search(text, 10, nil) {
			out = append(out, h.Name)
		}
		return out
	}
}

// index puts the tools of each server, or corpus without servers, into a source
// of its own.
func index(tools []sets.Tool) *search.Index {
	x := new(search.Index)
	for source, docs := range documents(tools) {
		x.Replace(source, docs)
	}
	return x
}

func documents(tools []sets.Tool) map[string][]search.Document {
	by := map[string][]search.Document{}
	for _, t := range tools {
		source := cmp.Or(t.Server, t.Corpus)
		by[source] = append(by[source], search.Document{
			Name: t.Name, Short: t.Short, Title: t.Title, Server: t.Server, Description: t.Description, Schema: t.Parameters,
		})
	}
	return by
}

func run(dir string) error {
	d, err := sets.Load(dir)
	if err != nil {
		return fmt.Errorf("reading the sets (give their directory by -data): %w", err)
	}
	fmt.Println("| set at tools | ranker | R@1 | R@5 | R@10 | MRR | R@5 unseen |")
	fmt.Println("|---|---|---|---|---|---|---|")
	mixed := d.Mixed()
	for _, size := range []int{500, 3000, len(d.Tools)} {
		table("mixed", mixed, d.Around(mixed, size))
	}
	table("others", d.Others(), d.Tools)
	agent := d.Queries["livemcpbench-agent"]
	table("agent-written", agent, d.Of("livemcpbench"))
	table("agent-written", agent, d.Tools)
	for _, f := range sets.Foreigns() {
		table(f.Language, f.Queries, append(f.Tools, d.Of("livemcpbench")...))
		table(f.Language, f.Queries, append(f.Tools, d.Tools...))
	}
	costs(d)
	return nil
}

// remember runs a ranker once for each text.
func remember(rank ranker) ranker {
	known := map[string][]string{}
	return func(text string) []string {
		if _, ok := known[text]; !ok {
			known[text] = rank(text)
		}
		return known[text]
	}
}

// table prints the rows of one set.
func table(name string, queries []sets.Query, tools []sets.Tool) {
	var unseen []sets.Query
	for _, q := range queries {
		if !q.Half() {
			unseen = append(unseen, q)
		}
	}
	for _, b := range append(baselines, baseline{"**capstan**", ours}) {
		rank := remember(b.make(tools))
		s, u := sets.Measure(queries, rank), sets.Measure(unseen, rank)
		fmt.Printf("| %s %d at %d | %s | %.1f | %.1f | %.1f | %.3f | %.1f |\n", name, s.N, len(tools), b.name, 100*s.At1, 100*s.At5, 100*s.At10, s.MRR, 100*u.At5)
	}
}
