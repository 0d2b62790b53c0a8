package app

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// spill keeps texts that were cut, in a directory of this session under the
// user's state directory. The directory is made when the first text comes.
type spill struct {
	root string // of all sessions
	dir  string // of this one
	now  func() time.Time

	once sync.Once
	err  error

	mu sync.Mutex
	n  int
}

func newSpill(root string, now func() time.Time) *spill {
	name := now().UTC().Format("20060102T150405-") + strings.ToLower(rand.Text()[:10])
	return &spill{root: root, dir: filepath.Join(root, name), now: now}
}

// keepSpilled is how long spilled text outlives its session.
const keepSpilled = 7 * 24 * time.Hour

// keep writes a text to a file that only the user can read, and returns its
// path.
func (s *spill) keep(_, text string) (string, error) {
	return s.write("txt", []byte(text))
}

func (s *spill) write(ext string, data []byte) (string, error) {
	path, err := s.path(ext)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		os.Remove(path) // half a text would pass for the whole
		return "", err
	}
	return path, nil
}

// stream makes a file for a text that is still being written.
func (s *spill) stream(string) (io.WriteCloser, string, error) {
	path, err := s.path("txt")
	if err != nil {
		return nil, "", err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	return f, path, err
}

func (s *spill) path(ext string) (string, error) {
	s.once.Do(func() {
		s.expire()
		if s.err = os.MkdirAll(s.root, 0o700); s.err == nil {
			s.err = errors.Join(ownOnly(s.root), os.Mkdir(s.dir, 0o700)) // not one that somebody else made
		}
	})
	if s.err != nil {
		return "", s.err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	return filepath.Join(s.dir, fmt.Sprintf("%d.%s", s.n, ext)), nil
}

// ownOnly refuses a directory that others can write to, as one among the
// temporary files could be.
func ownOnly(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		err = fmt.Errorf("%s can be written by others, so nothing is kept there: chmod 700 it, or remove it", dir)
	}
	return err
}

// expire removes the directories of sessions that ended long ago.
func (s *spill) expire() {
	entries, err := os.ReadDir(s.root)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && e.IsDir() && e.Type()&fs.ModeSymlink == 0 && s.now().Sub(info.ModTime()) > keepSpilled {
			os.RemoveAll(filepath.Join(s.root, e.Name()))
		}
	}
}

// stateDir is the user's state directory, by the XDG rules. A user without a
// home has one among the temporary files, which only they may read.
func stateDir(env func(string) string, home string) string {
	if dir := env("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "capstan")
	}
	if home == "" {
		return filepath.Join(os.TempDir(), fmt.Sprintf("capstan-state-%d", os.Getuid()))
	}
	return filepath.Join(home, ".local", "state", "capstan")
}
