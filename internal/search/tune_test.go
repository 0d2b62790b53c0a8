package search

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"capstan/bench/search/sets"
)

var tune = flag.Int("tune", 0, "rounds of fitting the weights")

// task is a set of queries for a set of tools. weight is its part of the figure
// that is raised.
type task struct {
	name    string
	queries []sets.Query
	tools   []sets.Tool
	weight  float64
}

// fitting are the tasks that weights are fitted on: the half of the queries that
// no figure is reported for.
func fitting(d *sets.Data) []task {
	half := func(q []sets.Query, n int) []sets.Query {
		var out []sets.Query
		for _, q := range q {
			if q.Half() && len(out) < n {
				out = append(out, q)
			}
		}
		return out
	}
	mixed, agent := half(d.Mixed(), 1000), half(d.Queries["livemcpbench-agent"], 1000)
	var more []sets.Query // that are not in the sample
	more = append(more, half(d.Queries["bfcl"][100:], 100)...)
	more = append(more, half(d.Queries["stabletoolbench"][79:], 100)...)
	more = append(more, half(d.Queries["sealtools"][56:], 100)...)
	out := []task{
		{"mixed 500", mixed, d.Around(d.Mixed(), 500), 1},
		{"mixed 3000", mixed, d.Around(d.Mixed(), 3000), 1},
		{"mixed all", mixed, d.Tools, 1.5},
		{"more all", more, d.Tools, 1},
		{"agent 527", agent, d.Of("livemcpbench"), 0.7},
		{"agent all", agent, d.Tools, 1},
	}
	for _, f := range sets.Foreigns() {
		out = append(out, task{f.Language, half(f.Queries, 1000), append(f.Tools, d.Tools...), 0.7})
	}
	return out
}

// evaluate is the figure that is raised, and recall@5 of each task.
func evaluate(tasks []task, w weights) (float64, string) {
	indexes := map[string]*Index{}
	total, sum := 0.0, 0.0
	var line strings.Builder
	for _, k := range tasks {
		key := fmt.Sprint(len(k.tools), k.tools[0].Name)
		if indexes[key] == nil {
			indexes[key] = indexed(k.tools, &w)
		}
		s := sets.Measure(k.queries, func(q string) []string { return names(indexes[key].Search(q, 10, nil)) })
		total += k.weight * (0.7*s.At5 + 0.15*s.At10 + 0.15*s.MRR)
		sum += k.weight
		fmt.Fprintf(&line, " %s %.1f", k.name, 100*s.At5)
	}
	return 100 * total / sum, line.String()
}

// TestTune fits the weights one after another and prints what it finds. It is a
// tool, no test:
//
//	go test ./internal/search -run TestTune -v -timeout 1h -tune 2
func TestTune(t *testing.T) {
	if *tune == 0 {
		t.Skip("run with -tune ROUNDS")
	}
	tasks := fitting(shared(t))
	w := fitted
	type knob struct {
		name string
		at   *float32
	}
	knobs := []knob{{"k1", &w.k1}, {"b", &w.b}, {"single", &w.single}, {"synonym", &w.synonym}, {"joined", &w.joined}, {"quoted", &w.quoted},
		{"near", &w.near}, {"repeats", &w.repeats}, {"cover", &w.cover}, {"feedback", &w.feedback},
		{"taken", &w.taken}, {"clause", &w.clause}, {"kin", &w.kin}}
	for f := range fields {
		knobs = append(knobs, knob{fmt.Sprint("field ", f), &w.field[f]}, knob{fmt.Sprint("unbroken ", f), &w.unbroken[f]}, knob{fmt.Sprint("typical ", f), &w.typical[f]})
	}
	best, line := evaluate(tasks, w)
	t.Logf("%.3f%s", best, line)
	for round := range *tune {
		for _, k := range knobs {
			was := *k.at
			for _, by := range []float32{0.6, 0.8, 1.25, 1.6} {
				keep := *k.at
				if *k.at = was * (1 + (by-1)/float32(round+1)); k.name == "b" {
					*k.at = min(*k.at, 1)
				}
				if score, line := evaluate(tasks, w); score > best+0.02 {
					best = score
					t.Logf("%.3f %s = %.3g:%s", best, k.name, *k.at, line)
				} else {
					*k.at = keep
				}
			}
		}
	}
	t.Logf("%+v", w)
}
