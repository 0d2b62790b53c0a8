package search

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"

	"capstan/bench/search/sets"
)

// shared reads the big sets, which a stranger does not have. CAPSTAN_SHARED
// names their directory where it is not beside the repository.
func shared(t testing.TB) *sets.Data {
	t.Helper()
	dir := cmp.Or(os.Getenv("CAPSTAN_SHARED"), filepath.Join("..", "..", "..", "shared"))
	d, err := sets.Load(filepath.Join(dir, "data"))
	if err != nil {
		t.Skipf("the retrieval sets are not here: %v", err)
	}
	return d
}

func document(t sets.Tool) Document {
	return Document{Name: t.Name, Short: t.Short, Title: t.Title, Server: t.Server, Description: t.Description, Schema: t.Parameters}
}

// indexed makes an index of the tools, one source for each server.
func indexed(tools []sets.Tool, w *weights) *Index {
	by := map[string][]Document{}
	for _, t := range tools {
		source := cmp.Or(t.Server, t.Corpus)
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

// The weights, lists and stems together find this many tools; what was measured
// stands in docs/BENCHMARKS.md. A figure that drops by two points fails.
func TestFloor(t *testing.T) {
	d := shared(t)
	for _, test := range []struct {
		name    string
		queries []sets.Query
		tools   []sets.Tool
		at5     float64
	}{
		{"mixed at 3,000", d.Mixed(), d.Around(d.Mixed(), 3000), 0.74},
		{"agent-written at 527", d.Queries["livemcpbench-agent"], d.Of("livemcpbench"), 0.47},
		{"Chinese at 527", sets.Foreigns()[0].Queries, d.Of("livemcpbench"), 0.95},
	} {
		x := indexed(test.tools, nil)
		s := sets.Measure(test.queries, func(q string) []string { return names(x.Search(q, 10, nil)) })
		if t.Logf("%s: %+.3v", test.name, s); s.At5 < test.at5 {
			t.Errorf("%s: recall@5 is %.3f, want %.3f", test.name, s.At5, test.at5)
		}
	}
}

// Each of 3,000 real tools is first for its own name.
func TestExactNamesOfRealTools(t *testing.T) {
	d := shared(t)
	tools := d.Around(d.Mixed(), 3000)
	x := indexed(tools, nil)
	keys := map[string]int{} // spellings that differ in case and separators alone are one name
	for _, tool := range tools {
		keys[squash(tool.Name)]++
	}
	for _, tool := range tools {
		hits := x.Search(tool.Name, 1, nil)
		if len(hits) == 0 || !hits[0].Exact || hits[0].Name != tool.Name && keys[squash(tool.Name)] == 1 {
			t.Errorf("search %q: %+v", tool.Name, hits)
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	d := shared(b)
	b.ReportAllocs()
	for b.Loop() {
		indexed(d.Tools, nil)
	}
}

func BenchmarkSearch(b *testing.B) {
	d := shared(b)
	x, queries := indexed(d.Tools, nil), d.Mixed()
	for i := 0; b.Loop(); i++ {
		x.Search(queries[i%len(queries)].Text, 15, nil)
	}
}

// BenchmarkReplace updates the server with the longest list.
func BenchmarkReplace(b *testing.B) {
	d := shared(b)
	x := indexed(d.Tools, nil)
	var docs []Document
	for _, t := range d.Of("mcp") {
		if t.Server == "azure_mcp" {
			docs = append(docs, document(t))
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		x.Replace("azure_mcp", docs)
	}
}
