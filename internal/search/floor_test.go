package search

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"capstan/bench/search/sets"
)

// shared is the directory of the big sets, which a stranger does not have.
func shared(t testing.TB) *sets.Data {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "data")
	if at := os.Getenv("CAPSTAN_DATA"); at != "" {
		dir = at
	}
	d, err := sets.Load(dir)
	if err != nil {
		t.Skipf("the retrieval sets are not here: %v", err)
	}
	return d
}

func document(t sets.Tool) Document {
	return Document{Name: t.Name, Short: t.Short, Title: t.Title, Server: t.Server, Description: t.Description, Schema: t.Parameters}
}

func indexed(tools []sets.Tool, w *weights) *Index {
	by := map[string][]Document{}
	for _, t := range tools {
		source := t.Server
		if source == "" {
			source = t.Corpus
		}
		by[source] = append(by[source], document(t))
	}
	x := &Index{weights: w}
	for source, docs := range by {
		x.Replace(source, docs)
	}
	return x
}

func names(hits []Hit) []string {
	var out []string
	for _, h := range hits {
		out = append(out, h.Name)
	}
	return out
}

func TestFloor(t *testing.T) {
	d := shared(t)
	mixed := d.Mixed()
	for _, size := range []int{500, 3000, len(d.Tools)} {
		start := time.Now()
		x := indexed(d.Around(mixed, size), nil)
		built := time.Since(start)
		start = time.Now()
		s := sets.Measure(mixed, func(q string) []string { return names(x.Search(q, 10, nil)) })
		t.Logf("mixed %d: %+.3v built %v, query %v", size, s, built, time.Since(start)/time.Duration(len(mixed)))
	}
	for _, tools := range [][]sets.Tool{d.Of("livemcpbench"), d.Tools} {
		x := indexed(tools, nil)
		s := sets.Measure(d.Queries["livemcpbench-agent"], func(q string) []string { return names(x.Search(q, 10, nil)) })
		t.Logf("agent %d: %+.3v", len(tools), s)
	}
}
