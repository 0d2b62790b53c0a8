package builtin

import (
	"hash/maphash"
	"sync"
)

// A tracker knows the content of each file as the session last saw it, by a
// hash: times of modification are too coarse to tell two writes within one
// tick apart. The hash is keyed anew for each session, so no file can be made
// to collide with another.
type tracker struct {
	seed maphash.Seed
	mu   sync.Mutex
	sums map[string]uint64 // by resolved path
}

func (t *tracker) init() {
	t.seed = maphash.MakeSeed()
	t.sums = map[string]uint64{}
}

// note records what a file holds, after reading or writing it.
func (t *tracker) note(path string, content []byte) {
	t.set(path, maphash.Bytes(t.seed, content))
}

func (t *tracker) set(path string, sum uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sums[path] = sum
}

// check says whether the session has read a file, and whether it still holds
// what it held then.
func (t *tracker) check(path string, content []byte) (read, same bool) {
	t.mu.Lock()
	sum, read := t.sums[path]
	t.mu.Unlock()
	return read, read && sum == maphash.Bytes(t.seed, content)
}
