package search

import "testing"

func BenchmarkBuild(b *testing.B) {
	d := shared(b)
	b.ReportAllocs()
	for b.Loop() {
		indexed(d.Tools, nil)
	}
}
func BenchmarkQuery(b *testing.B) {
	d := shared(b)
	x := indexed(d.Tools, nil)
	q := d.Mixed()
	i := 0
	for b.Loop() {
		x.Search(q[i%len(q)].Text, 15, nil)
		i++
	}
}
