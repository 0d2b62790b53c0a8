package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"capstan/bench/search/sets"
	"capstan/internal/search"
)

// costs prints times and memory of the index over all tools.
func costs(d *sets.Data) {
	docs := documents(d.Tools)
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		load = []byte("unknown") // not Linux
	}
	fmt.Printf("\n%s %s/%s, %d cores, load %s\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), bytes.TrimSpace(load))
	fmt.Printf("| %d tools, %d sources | target | p50 | p99 |\n|---|---|---|---|\n", len(d.Tools), len(docs))
	build := sample(15, func(int) { fill(new(search.Index), docs) })
	row("index built, ms", "400", build, time.Millisecond)
	x := new(search.Index)
	before := heap()
	fill(x, docs)
	size := heap() - before
	var sources []string
	for _, t := range d.Of("mcp") {
		if !slices.Contains(sources, t.Server) {
			sources = append(sources, t.Server)
		}
	}
	row("updated for one server of MCP, ms", "10", sample(len(sources), func(i int) { x.Replace(sources[i], docs[sources[i]]) }), time.Millisecond)
	for _, q := range []struct {
		name    string
		queries []sets.Query
	}{{"a query, agent-written, ms", d.Queries["livemcpbench-agent"]}, {"a query, a user's message, ms", d.Mixed()}} {
		row(q.name, "1", sample(len(q.queries), func(i int) { x.Search(q.queries[i].Text, 15, nil) }), time.Millisecond)
	}
	fmt.Printf("| memory, MB | 40 | %.1f | – |\n", float64(size)/1e6)
	runtime.KeepAlive(x)
	runtime.KeepAlive(docs)
}

func fill(x *search.Index, docs map[string][]search.Document) {
	for source, d := range docs {
		x.Replace(source, d)
	}
}

// heap is what is in use once garbage is gone.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// sample times f(0) to f(n-1), in order of duration.
func sample(n int, f func(int)) []time.Duration {
	out := make([]time.Duration, n)
	for i := range out {
		start := time.Now()
		f(i)
		out[i] = time.Since(start)
	}
	slices.Sort(out)
	return out
}

func row(name, target string, times []time.Duration, unit time.Duration) {
	at := func(p int) float64 { return float64(times[len(times)*p/100]) / float64(unit) }
	fmt.Printf("| %s | %s | %.2f | %.2f |\n", name, target, at(50), at(99))
}
