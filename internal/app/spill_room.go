package app

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// maxSpilled bounds what is kept of all sessions together, in bytes. Beyond it
// the oldest texts go, so that a session which prints without end fills no disk.
const maxSpilled = 1 << 30

// A kept is one file of a session's directory.
type kept struct {
	path string
	size int64
	at   time.Time
}

// grew counts bytes that were written, and makes room when there are too many.
// Other sessions write too, so the directories are counted anew then.
func (s *spill) grew(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total += n; s.total > s.most {
		s.total = s.makeRoom()
	}
}

// makeRoom removes the oldest files until a tenth is free, and returns how many
// bytes are left. What this session is still writing stays.
func (s *spill) makeRoom() int64 {
	files, total := s.kept()
	slices.SortFunc(files, func(a, b kept) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.path, b.path))
	})
	for _, f := range files {
		if total <= s.most-s.most/10 {
			break
		}
		if s.open[f.path] || os.Remove(f.path) != nil {
			continue // somebody else removed it, or nobody can
		}
		total -= f.size
		if dir := filepath.Dir(f.path); dir != s.dir {
			_ = os.Remove(dir) // fails while there is something in it
		}
	}
	return total
}

// kept lists the files of all sessions, and their size together.
func (s *spill) kept() (files []kept, total int64) {
	for _, dir := range s.sessions() {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // it went meanwhile
		}
		for _, e := range entries {
			if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
				files = append(files, kept{filepath.Join(dir, e.Name()), info.Size(), info.ModTime()})
				total += info.Size()
			}
		}
	}
	return files, total
}

// sessions lists the directories of sessions.
func (s *spill) sessions() []string {
	entries, _ := os.ReadDir(s.root) // what cannot be read cannot be cleared up either
	var dirs []string
	for _, e := range entries {
		if e.IsDir() && spilled().MatchString(e.Name()) {
			dirs = append(dirs, filepath.Join(s.root, e.Name()))
		}
	}
	return dirs
}

// expire removes the directories of sessions that ended long ago.
func (s *spill) expire() {
	for _, dir := range s.sessions() {
		info, err := os.Lstat(dir)
		if err == nil && s.now().Sub(info.ModTime()) > keepSpilled {
			_ = os.RemoveAll(dir) // or the next session does
		}
	}
}

// spillFile is a file that is being written. What it grows by is counted, and
// secrets do not get into it.
type spillFile struct {
	file  *os.File // not embedded: there is no other way into it
	spill *spill
	clean redactor
}

func (f *spillFile) Write(b []byte) (int, error) {
	n, err := f.file.WriteString(f.clean.push(string(b)))
	f.spill.grew(int64(n))
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

func (f *spillFile) Close() error {
	n, err := f.file.WriteString(f.clean.flush())
	f.spill.grew(int64(n))
	f.spill.closed(f.file.Name())
	if closing := f.file.Close(); err == nil {
		err = closing
	}
	return err
}
