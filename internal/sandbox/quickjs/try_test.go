package quickjs

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"capstan/internal/sandbox"
)

func TestTry(t *testing.T) {
	b, err := os.ReadFile("/tmp/sbx/try.js")
	if err != nil {
		t.Skip()
	}
	r := New(Options{})
	defer r.Close()
	for _, src := range strings.Split(string(b), "\n----\n") {
		h := &echo{}
		u, err := r.Run(context.Background(), sandbox.Program{Source: src, Names: []string{"a", "hello"}, Limits: sandbox.Limits{CPU: time.Second}}, h)
		for i := range h.out {
			if len(h.out[i]) > 300 {
				h.out[i] = h.out[i][:300]
			}
		}
		t.Logf("%s\n  %q\n  %+v\n  %v", src, h.out, u, err)
		if e, ok := err.(*sandbox.Error); ok {
			t.Logf("STACK %q CODE %q %q %q", e.Stack, e.Code, e.Tool, e.CallID)
		}
	}
}
