package search

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"capstan/bench/search/sets"
)

func TestStopScan(t *testing.T) {
	if *tune != -2 {
		t.Skip()
	}
	d := shared(t)
	var pool []sets.Query
	for _, s := range []string{"livemcpbench", "bfcl", "stabletoolbench", "sealtools", "livemcpbench-agent"} {
		n := 0
		for _, q := range d.Queries[s] {
			if q.Half() && n < 250 {
				pool = append(pool, q)
				n++
			}
		}
	}
	x := indexed(d.Tools, nil)
	rank := func(q string) []string { return names(x.Search(q, 10, nil)) }
	value := func(q sets.Query) float64 {
		s := sets.Measure([]sets.Query{q}, rank)
		return s.At5 + 0.3*s.MRR + 0.3*s.At10
	}
	uses := map[string][]int{}
	base := make([]float64, len(pool))
	for i, q := range pool {
		base[i] = value(q)
		var s scanner
		s.scan(q.Text)
		for _, tk := range s.out {
			if !slices.Contains(uses[tk.plain], i) && !words().stop[tk.plain] {
				uses[tk.plain] = append(uses[tk.plain], i)
			}
		}
	}
	type row struct {
		w         string
		n         int
		sum, z    float64
		good, bad int
	}
	var rows []row
	for w, is := range uses {
		if len(is) < 4 {
			continue
		}
		words().stop[w] = true
		r := row{w: w, n: len(is)}
		sq := 0.0
		for _, i := range is {
			dv := value(pool[i]) - base[i]
			r.sum += dv
			sq += dv * dv
			if dv > 0 {
				r.good++
			}
			if dv < 0 {
				r.bad++
			}
		}
		if sq > 0 {
			r.z = r.sum / math.Sqrt(sq)
		}
		words().stop[w] = false
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b row) int { return int(1000 * (b.sum - a.sum)) })
	for _, r := range rows[:90] {
		fmt.Printf("%s n=%d sum=%.2f +%d -%d\n", r.w, r.n, r.sum, r.good, r.bad)
	}
}
