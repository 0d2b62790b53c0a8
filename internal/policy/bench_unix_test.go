//go:build unix

package policy

import (
	"syscall"
	"testing"

	"capstan/internal/sched"
)

// The time of one decision. The targets are 60 µs for a command and 20 µs for a
// path.
func BenchmarkDecide(b *testing.B) {
	w := newWorld(b)
	rules := w.rules("deny Bash(rm -rf:*); deny Bash(sudo:*); deny Read(.env); ask Bash(git push:*); allow Bash(npm run test:*); allow Bash(go test:*); allow Bash(make:*); allow Edit(/src/**); allow mcp__github; deny WebFetch(domain:example.com)")
	for _, c := range []struct{ name, call string }{
		{"command", "sh npm run test -- --watch"},
		{"pipeline", "sh go test ./... 2>&1 | tail -20"},
		{"readers", "sh cat a.txt | grep -n foo | head -5"},
		{"list", "sh cd src && go test ./... && cat main.go"},
		{"denied", "sh sudo rm -rf x"},
		{"git", "sh git status"},
		{"loop", "sh for f in a b c; do echo \"$f\"; done"},
		{"read", "read_file src/main.go"},
		{"write", "edit src/main.go"},
		{"outside", "read_file $OUT/x.txt"},
	} {
		b.Run(c.name, func(b *testing.B) {
			o := w.options(Default)
			o.Rules, o.Environ = rules, []string{"PATH", "HOME"}
			p, _, err := New(o)
			if err != nil {
				b.Fatal(err)
			}
			req := w.request(b, c.call)
			b.ReportAllocs()
			before := processorTime(b)
			for b.Loop() {
				if v := p.Decide(b.Context(), req); v.Decision == sched.Abstain {
					b.Fatal(v)
				}
			}
			b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// processorTime is what this process has used so far, in nanoseconds: on a busy
// machine it says more than a clock.
func processorTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
