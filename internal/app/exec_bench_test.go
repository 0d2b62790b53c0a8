package app

import (
	"fmt"
	"testing"

	"capstan/internal/sandbox/guest"
	"capstan/internal/tool"
)

// One program whose calls go through the whole pipeline.
func BenchmarkCalls(b *testing.B) {
	if guest.Cgo {
		b.Skip("a cgo build cannot run programs")
	}
	for _, call := range []string{`tools.read_file({file_path: "tiny.txt"})`, `tools.job_list()`} {
		b.Run(call, func(b *testing.B) {
			s := open(b, Options{Program: true}, map[string]string{"tiny.txt": "hello\n"})
			left := b.N
			b.ResetTimer()
			for ; left > 0; left -= 5000 {
				r := s.Exec(b.Context(), fmt.Sprintf("for (let i = 0; i < %d; i++) await %s", min(left, 5000), call))
				if r.Result.Status != tool.Success {
					b.Fatal(r.Result.Text())
				}
			}
		})
	}
}
