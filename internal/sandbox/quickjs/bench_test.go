package quickjs

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"capstan/internal/sandbox"
	"capstan/internal/sandbox/sandboxtest"
)

// The benchmarks start the real binary as their child. Times of starts are
// percentiles of single runs, because the mean of a loaded machine says little.

func benchRunner(b *testing.B, spares int) *Runner {
	return newRunner(b, Options{Binary: sandboxtest.Build(b, "capstan/cmd/capstan"), Spares: spares})
}

func bench(b *testing.B, r *Runner, source string) sandbox.Usage {
	b.Helper()
	h := newHost()
	h.tools["echo"] = nil
	u, err := r.Run(context.Background(), sandbox.Program{Source: source}, &quick{host: h})
	if err != nil {
		b.Fatal(err)
	}
	return u
}

// quick answers at once, in the call.
type quick struct{ *host }

var big = strings.Repeat("x", 1<<20)

func (q *quick) Call(_ context.Context, batch []sandbox.Call, reply func(int, sandbox.Reply)) {
	for i, c := range batch {
		r := sandbox.Reply{OK: true, Value: fmt.Appendf(nil, `{"callId":"c%d","name":"echo","status":"success"}`, c.ID), Text: "ok"}
		if c.Name == "big" {
			r.Text = big
		}
		reply(i, r)
	}
}

func report(b *testing.B, times []time.Duration) {
	slices.Sort(times)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(times[len(times)/10]), "p10-ms")
	b.ReportMetric(ms(times[len(times)/2]), "p50-ms")
	b.ReportMetric(ms(times[len(times)*9/10]), "p90-ms")
	b.ReportMetric(0, "ns/op")
}

// first is a Host that takes the time of the first result.
type first struct {
	*host
	at time.Time
}

func (f *first) Output(sandbox.Output) { f.at = time.Now() }

func benchStart(b *testing.B, spares int) {
	r := benchRunner(b, spares)
	var result, whole []time.Duration
	for b.Loop() {
		if spares > 0 {
			b.StopTimer()
			r.Prespawn()
			for r.idleCount() < spares {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(5 * time.Millisecond) // a spare gets ready before it waits
			b.StartTimer()
		}
		f := &first{host: newHost()}
		start := time.Now()
		if _, err := r.Run(context.Background(), sandbox.Program{Source: `text(1)`}, f); err != nil {
			b.Fatal(err)
		}
		result = append(result, f.at.Sub(start))
		whole = append(whole, time.Since(start))
	}
	report(b, result)
	slices.Sort(whole)
	b.ReportMetric(float64(whole[len(whole)/2].Microseconds())/1000, "whole-p50-ms")
}

// BenchmarkStart is from the start of a child to its first result.
func BenchmarkStart(b *testing.B) { benchStart(b, 0) }

// BenchmarkStartSpare is the same with a child that was started ahead.
func BenchmarkStartSpare(b *testing.B) { benchStart(b, 1) }

func BenchmarkSequentialCalls1000(b *testing.B) {
	r := benchRunner(b, 0)
	var times []time.Duration
	for b.Loop() {
		start := time.Now()
		bench(b, r, `for (let i = 0; i < 1000; i++) await tools.echo({i})`)
		times = append(times, time.Since(start))
	}
	report(b, times)
}

func BenchmarkParallelCalls100(b *testing.B) {
	r := benchRunner(b, 0)
	var times []time.Duration
	for b.Loop() {
		start := time.Now()
		bench(b, r, `await Promise.all(Array.from({length: 100}, (_, i) => tools.echo({i})))`)
		times = append(times, time.Since(start))
	}
	report(b, times)
}

func BenchmarkText1MB(b *testing.B) {
	r := benchRunner(b, 0)
	b.SetBytes(16 << 20)
	for b.Loop() {
		bench(b, r, `const s = 'x'.repeat(2**20 - 1); for (let i = 0; i < 16; i++) text(s)`)
	}
}

func BenchmarkResult1MB(b *testing.B) {
	r := benchRunner(b, 0)
	b.SetBytes(16 << 20)
	for b.Loop() {
		bench(b, r, `for (let i = 0; i < 16; i++) await tools.big({})`)
	}
}

// BenchmarkIdle is the resident memory of a child that waits.
func BenchmarkIdle(b *testing.B) {
	r := benchRunner(b, 1)
	for b.Loop() {
		r.Prespawn()
		for r.idleCount() < 1 {
			time.Sleep(time.Millisecond)
		}
	}
	time.Sleep(50 * time.Millisecond)
	for _, pid := range sandboxtest.Children() {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			b.Fatal(err)
		}
		for line := range strings.Lines(string(status)) {
			var kb float64
			if n, _ := fmt.Sscanf(line, "VmRSS: %f kB", &kb); n == 1 {
				b.ReportMetric(kb/1024, "rss-MB")
			}
		}
	}
	b.ReportMetric(0, "ns/op")
}

func (r *Runner) idleCount() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.idle)
}
