// Package sets reads the retrieval sets that search is measured on, and scores
// rankings. It knows no ranker.
package sets

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Tool is one document of a corpus.
type Tool struct {
	Name        string          `json:"name"`
	Short       string          `json:"tool"` // without the server's prefix; may be empty
	Title       string          `json:"title"`
	Server      string          `json:"server"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Corpus      string          `json:"-"`
}

// Query is one query and what it should find.
type Query struct {
	ID           string     `json:"id"`
	Text         string     `json:"query"`
	Relevant     []string   `json:"relevant"`
	Alternatives [][]string `json:"alternatives"` // the others count as the first
}

// Half tells apart the queries that weights are fitted on (true) and those that
// figures are reported on: by the parity of the FNV-1a hash of the id.
func (q *Query) Half() bool {
	h := fnv.New32a()
	h.Write([]byte(q.ID))
	return h.Sum32()%2 == 0
}

// Data is everything under the data directory that search is measured on.
type Data struct {
	Tools   []Tool             // all corpora and the MCP servers, each name once
	Queries map[string][]Query // by set, by id
}

// Sets that have a corpus of the same name.
var corpora = []string{"livemcpbench", "bfcl", "stabletoolbench", "sealtools", "metatool"}

// Load reads dir, which is the shared data directory.
func Load(dir string) (*Data, error) {
	d := &Data{Queries: map[string][]Query{}}
	seen := map[string]bool{}
	add := func(tools []Tool, corpus string) {
		for _, t := range tools {
			if t.Corpus = corpus; !seen[t.Name] {
				seen[t.Name] = true
				d.Tools = append(d.Tools, t)
			}
		}
	}
	for _, set := range corpora {
		tools, err := lines[Tool](filepath.Join(dir, "retrieval", set+".corpus.jsonl"))
		if err != nil {
			return nil, err
		}
		add(tools, set)
	}
	for _, set := range append(slices.Clone(corpora), "livemcpbench-agent") {
		queries, err := lines[Query](filepath.Join(dir, "retrieval", set+".queries.jsonl"))
		if err != nil {
			return nil, err
		}
		slices.SortStableFunc(queries, func(a, b Query) int { return cmp.Compare(a.ID, b.ID) })
		d.Queries[set] = queries
	}
	mcp, err := servers(filepath.Join(dir, "mcp"))
	if err != nil {
		return nil, err
	}
	add(mcp, "mcp")
	return d, nil
}

// servers reads the recorded tool lists of real servers.
func servers(dir string) ([]Tool, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []Tool
	for _, path := range paths {
		if filepath.Base(path) == "INDEX.json" {
			continue
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var s struct {
			Server string
			Tools  []struct {
				Name, Title, Description string
				InputSchema              json.RawMessage
			}
		}
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		for _, t := range s.Tools {
			all = append(all, Tool{Name: "mcp__" + s.Server + "__" + t.Name, Short: t.Name, Title: t.Title, Server: s.Server, Description: t.Description, Parameters: t.InputSchema})
		}
	}
	return all, nil
}

// lines reads one JSON value a line.
func lines[T any](path string) ([]T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []T
	in := bufio.NewScanner(f)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		if strings.TrimSpace(in.Text()) == "" {
			continue
		}
		var v T
		if err := json.Unmarshal(in.Bytes(), &v); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		out = append(out, v)
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return out, nil
}

// Mixed is the sample of 300 queries: all of livemcpbench and the first of the
// other sets by id.
func (d *Data) Mixed() []Query {
	var out []Query
	for _, part := range []struct {
		set string
		n   int
	}{{"livemcpbench", 1 << 30}, {"bfcl", 100}, {"stabletoolbench", 79}, {"sealtools", 56}} {
		q := d.Queries[part.set]
		out = append(out, q[:min(len(q), part.n)]...)
	}
	return out
}

// Others are queries that are neither in the sample nor in the half that weights
// are fitted on: 100 of each set but livemcpbench, which the sample has whole.
// Nothing was fitted on metatool.
func (d *Data) Others() []Query {
	var out []Query
	for _, part := range []struct {
		set  string
		from int
	}{{"bfcl", 100}, {"stabletoolbench", 79}, {"sealtools", 56}, {"metatool", 0}} {
		n := 0
		for _, q := range d.Queries[part.set][part.from:] {
			if !q.Half() && n < 100 {
				out = append(out, q)
				n++
			}
		}
	}
	return out
}

// Around returns size tools: those that the queries should find, and others
// taken by chance with seed 1.
func (d *Data) Around(queries []Query, size int) []Tool {
	need := map[string]bool{}
	for _, q := range queries {
		for _, name := range q.Relevant {
			need[name] = true
		}
		for _, group := range q.Alternatives {
			for _, name := range group {
				need[name] = true
			}
		}
	}
	var out, others []Tool
	for _, t := range d.Tools {
		if need[t.Name] {
			out = append(out, t)
		} else {
			others = append(others, t)
		}
	}
	r := rand.New(rand.NewPCG(1, 0))
	r.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	return append(out, others[:min(len(others), max(0, size-len(out)))]...)
}

// Of returns the tools of one corpus.
func (d *Data) Of(corpus string) []Tool {
	var out []Tool
	for _, t := range d.Tools {
		if t.Corpus == corpus {
			out = append(out, t)
		}
	}
	return out
}

// Score is the mean over queries, each in 0..1.
type Score struct {
	At1, At5, At10, MRR float64
	N                   int
}

// Measure runs all queries through rank, which returns names, the best first.
func Measure(queries []Query, rank func(text string) []string) Score {
	var s Score
	for _, q := range queries {
		r := q.ranks(rank(q.Text))
		s.At1 += r.share(1)
		s.At5 += r.share(5)
		s.At10 += r.share(10)
		if len(r.at) > 0 {
			s.MRR += 1 / float64(slices.Min(r.at)+1)
		}
		s.N++
	}
	n := float64(max(s.N, 1))
	return Score{s.At1 / n, s.At5 / n, s.At10 / n, s.MRR / n, s.N}
}

// ranks are the places at which the tools a query should find were found.
type ranks struct {
	at   []int
	want int
}

func (q *Query) ranks(found []string) ranks {
	r := ranks{want: len(q.Relevant)}
	for _, name := range q.Relevant {
		same := []string{name}
		for _, group := range q.Alternatives {
			if len(group) > 0 && group[0] == name {
				same = group
			}
		}
		if at := slices.IndexFunc(found, func(f string) bool { return slices.Contains(same, f) }); at >= 0 {
			r.at = append(r.at, at)
		}
	}
	return r
}

// share is the recall among the first n.
func (r ranks) share(n int) float64 {
	hit := 0
	for _, at := range r.at {
		if at < n {
			hit++
		}
	}
	return float64(hit) / float64(max(r.want, 1))
}
