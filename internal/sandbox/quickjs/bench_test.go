package quickjs

import (
	"context"
	"slices"
	"testing"
	"time"

	"capstan/internal/sandbox"
)

func percentiles(b *testing.B, times []time.Duration) {
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(times[len(times)*9/10].Microseconds())/1000, "p90-ms")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkCold(b *testing.B) {
	r := New(Options{})
	defer r.Close()
	var times []time.Duration
	for b.Loop() {
		start := time.Now()
		h := newHost()
		if _, err := r.Run(context.Background(), sandbox.Program{Source: `text(1)`}, h); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(start))
	}
	percentiles(b, times)
}

func BenchmarkSequentialCalls(b *testing.B) {
	r := New(Options{})
	defer r.Close()
	for b.Loop() {
		u, err := r.Run(context.Background(), sandbox.Program{Source: `for (let i=0;i<1000;i++) await tools.echo({i})`}, newHost())
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(u.CPU.Microseconds()), "cpu-us")
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "us/call")
}

func BenchmarkAll100(b *testing.B) {
	r := New(Options{})
	defer r.Close()
	for b.Loop() {
		if _, err := r.Run(context.Background(), sandbox.Program{Source: `for (let i=0;i<10;i++) await Promise.all(Array.from({length:100},(_, i)=>tools.echo({i})))`}, newHost()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/10000, "ms/100")
}
