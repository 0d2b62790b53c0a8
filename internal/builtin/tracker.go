package builtin

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"slices"
	"sync"
)

// Seen knows the content of each file as a session last saw it, by a hash: times
// of modification are too coarse to tell two writes within one tick apart. edit,
// and write_file over an existing file, need it. Its methods may be called from
// several goroutines. Its zero value is ready to use.
type Seen struct {
	mu    sync.Mutex
	files map[string]sighting // by resolved path
	last  int                 // number of the newest sighting
	fresh bool                // something that Fresh has not returned
}

// A sighting is what a file held, and when it was noted.
type sighting struct {
	sum    sum
	number int
}

// A sum is the beginning of a SHA-256: enough that nobody can make another
// content with it.
type sum [16]byte

func sumOf(content []byte) sum {
	h := sha256.Sum256(content)
	return sum(h[:])
}

// A SeenFile is one file in the record of a session.
type SeenFile struct {
	Path string `json:"path"` // resolved, absolute
	Sum  string `json:"sum"`  // of its content, in hexadecimal digits
}

// maxSeen is how many files a record holds. Of those that were seen before the
// others, a session that goes on says that they have to be read again.
const maxSeen = 256

// Fresh returns the files that the session saw last, the newest at the end, and
// whether that is news since it was called before.
func (s *Seen) Fresh() ([]SeenFile, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := s.fresh
	if s.fresh = false; !fresh {
		return nil, false
	}
	var list []SeenFile
	for path, f := range s.files {
		list = append(list, SeenFile{path, hex.EncodeToString(f.sum[:])})
	}
	slices.SortFunc(list, func(a, b SeenFile) int { return cmp.Compare(s.files[a.Path].number, s.files[b.Path].number) })
	return list[max(0, len(list)-maxSeen):], true
}

// Restore adds what another process saw in the same session. What it cannot
// understand it leaves out: that file has to be read again. A file that has
// changed since then is found out by its content.
func (s *Seen) Restore(list []SeenFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range list {
		if h, err := hex.DecodeString(f.Sum); err == nil && len(h) == len(sum{}) && filepath.IsAbs(f.Path) {
			s.set(f.Path, sum(h))
		}
	}
}

// note records what a file holds, after reading or writing it.
func (s *Seen) note(path string, content []byte) { s.noteSum(path, sumOf(content)) }

func (s *Seen) noteSum(path string, now sum) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.files[path]
	s.fresh = s.fresh || !known || before.sum != now
	s.set(path, now)
}

func (s *Seen) set(path string, now sum) {
	if s.files == nil {
		s.files = map[string]sighting{}
	}
	s.last++
	s.files[path] = sighting{now, s.last}
}

// check says whether the session has read a file, and whether it still holds
// what it held then.
func (s *Seen) check(path string, content []byte) (read, same bool) {
	s.mu.Lock()
	f, read := s.files[path]
	s.mu.Unlock()
	now := sumOf(content)
	return read, read && f.sum == now
}
