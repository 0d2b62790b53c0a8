package guest

import (
	"testing"
	"time"
)

// BenchmarkFreshRuntime is what a child does before it can read a program.
func BenchmarkFreshRuntime(b *testing.B) {
	for b.Loop() {
		restore(&imports{now: time.Now}, make([]byte, 0, 2<<20))
	}
}

// BenchmarkNestedCall is a nested call without its pipes: from the program to
// the host and back.
func BenchmarkNestedCall(b *testing.B) {
	tr := &transcript{}
	tr.v = restore(&imports{now: time.Now, interrupt: func() bool { return false }, rejected: func(_, _ int32, _ bool) {}, call: func(argc, argv int32) int32 {
		v := tr.v
		tr.calls = append(tr.calls, "")
		v.Xqjs_free_cstring(v.Xqjs_get_string_len(v.load32(argv+8), v.Len))
		return v.Xqjs_new_number(float64(len(tr.calls)))
	}}, make([]byte, 0, 8<<20))
	v := tr.v
	if _, err := v.eval("(async()=>{for(let i=0;;i++) await tools.x({i})})()", fileName, 1); err != nil {
		b.Fatal(shown(v, err))
	}
	c := &child{vm: v}
	value := `{"callId":"c1","name":"x","status":"success"}`
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		for v.Xqjs_is_job_pending() != 0 {
			v.Xqjs_execute_pending_job()
		}
		n++
		p, _ := v.put(value)
		q, _ := v.put("{}")
		a := answer{value: p, text: q}
		a.head.ID, a.head.Flags, a.head.A, a.head.B = uint32(n), 1, uint32(len(value)), 2
		if err := c.settle(a); err != nil {
			b.Fatal(shown(v, err))
		}
	}
}
