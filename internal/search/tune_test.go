package search

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"capstan/bench/search/sets"
)

var tune = flag.Int("tune", 0, "rounds of fitting the weights; prints what it finds")

// task is a set of queries against a set of tools.
type task struct {
	name    string
	queries []sets.Query
	tools   []sets.Tool
	weight  float64
}

// fitting are the tasks that weights are fitted on: the half of the queries that
// no figure is reported for.
func fitting(t *testing.T, d *sets.Data) []task {
	half := func(q []sets.Query, n int) []sets.Query {
		var out []sets.Query
		for _, q := range q {
			if q.Half() && len(out) < n {
				out = append(out, q)
			}
		}
		return out
	}
	mixed, agent := d.Mixed(), d.Queries["livemcpbench-agent"]
	more := half(d.Queries["bfcl"][100:], 100)
	more = append(more, half(d.Queries["stabletoolbench"][79:], 100)...)
	more = append(more, half(d.Queries["sealtools"][56:], 100)...)
	out := []task{
		{"mixed 500", half(mixed, 1000), d.Around(mixed, 500), 1},
		{"mixed 3000", half(mixed, 1000), d.Around(mixed, 3000), 1},
		{"mixed all", half(mixed, 1000), d.Tools, 1.5},
		{"more all", more, d.Tools, 1},
		{"agent 527", half(agent, 1000), d.Of("livemcpbench"), 0.7},
		{"agent all", half(agent, 1000), d.Tools, 1},
	}
	for _, f := range sets.Foreigns() {
		out = append(out, task{f.Language, half(f.Queries, 1000), append(f.Tools, d.Tools...), 0.7})
	}
	return out
}

func evaluate(tasks []task, w weights) (float64, string) {
	indexes := map[string]*Index{}
	total, sum := 0.0, 0.0
	var line strings.Builder
	for _, k := range tasks {
		key := fmt.Sprint(len(k.tools), k.tools[0].Name)
		x := indexes[key]
		if x == nil {
			x = indexed(k.tools, &w)
			indexes[key] = x
		}
		s := sets.Measure(k.queries, func(q string) []string { return names(x.Search(q, 10, nil)) })
		total += k.weight * (0.7*s.At5 + 0.15*s.At10 + 0.15*s.MRR)
		sum += k.weight
		fmt.Fprintf(&line, " %s %.1f", k.name, 100*s.At5)
	}
	return 100 * total / sum, line.String()
}

// TestTune fits the weights one after another. It is a tool, no test:
//
//	go test ./internal/search -run TestTune -tune 2 -v -timeout 1h
func TestTune(t *testing.T) {
	if *tune == 0 {
		t.Skip("run with -tune ROUNDS")
	}
	tasks := fitting(t, shared(t))
	w := fitted
	knobs := map[string]*float32{
		"k1": &w.k1, "b": &w.b, "single": &w.single, "synonym": &w.synonym, "joined": &w.joined, "quoted": &w.quoted, "near": &w.near,
		"repeats": &w.repeats, "cover": &w.cover, "match": &w.match, "number": &w.number, "sharp": &w.sharp, "rare": &w.rare,
	}
	order := []string{"k1", "b", "synonym", "joined", "quoted", "near", "repeats", "cover", "match", "number", "sharp"}
	for f := range fields {
		name := fmt.Sprintf("field%d", f)
		knobs[name] = &w.field[f]
		order = append(order, name)
		name = fmt.Sprintf("typical%d", f)
		knobs[name] = &w.typical[f]
		order = append(order, name)
	}
	best, line := evaluate(tasks, w)
	fmt.Printf("%.3f%s\n", best, line)
	for round := range *tune {
		for _, name := range order {
			knob := knobs[name]
			was := *knob
			for _, by := range []float32{0.6, 1.6, 0, 2.5} {
				if round > 0 {
					by = 1 + (by-1)*0.5
				}
				from := was
				if was == 0 {
					from = 0.2
				}
				keep := *knob
				*knob = from * by
				if name == "b" {
					*knob = min(*knob, 1)
				}
				if score, l := evaluate(tasks, w); score > best+0.02 {
					best, line = score, l
					fmt.Printf("%.3f %s=%.3g%s\n", best, name, *knob, line)
				} else {
					*knob = keep
				}
			}
		}
	}
	fmt.Printf("%+v\n", w)
}

func TestTry(t *testing.T) {
	if *tune != -1 {
		t.Skip()
	}
	tasks := fitting(t, shared(t))
	for name, change := range map[string]func(*weights){
		"base":     func(*weights) {},
		"joinTo":   func(w *weights) { w.joinTo = fieldLead },
		"brief4":   func(w *weights) { w.brief = 4 },
		"rare5":    func(w *weights) { w.rare = 5 },
		"rare20":   func(w *weights) { w.rare = 20 },
		"sharp.8":  func(w *weights) { w.sharp = .8 },
		"sharp1.2": func(w *weights) { w.sharp = 1.2 },
		"number1":  func(w *weights) { w.number = 1 },
		"number0":  func(w *weights) { w.number = 0 },
		"match.3":  func(w *weights) { w.match = .3 },
		"cover.3":  func(w *weights) { w.cover = .3 },
		"join0":    func(w *weights) { w.joined = 0 },
		"join1":    func(w *weights) { w.joined = 1 },
	} {
		w := fitted
		change(&w)
		s, l := evaluate(tasks, w)
		fmt.Printf("%.3f %s%s\n", s, name, l)
	}
}
