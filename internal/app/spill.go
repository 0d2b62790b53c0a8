package app

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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
	most int64 // bytes of all sessions

	secrets func() []string // that must not be written, the longest first

	once sync.Once
	err  error

	mu    sync.Mutex
	n     int
	total int64           // bytes of all sessions, when they were last counted and what came since
	open  map[string]bool // files that are being written
}

func newSpill(root string, now func() time.Time) *spill {
	name := now().UTC().Format("20060102T150405-") + strings.ToLower(rand.Text()[:10])
	return &spill{root: root, dir: filepath.Join(root, name), now: now, most: maxSpilled,
		secrets: func() []string { return nil }, open: map[string]bool{}}
}

// keepSpilled is how long spilled text outlives its session.
const keepSpilled = 7 * 24 * time.Hour

// keep writes a text to a file that only the user can read, and returns its
// path.
func (s *spill) keep(_, text string) (string, error) {
	clean := redactor{secrets: s.secrets()}
	return s.write("txt", []byte(clean.push(text)+clean.flush()))
}

func (s *spill) write(ext string, data []byte) (string, error) {
	path, err := s.path(ext)
	if err != nil {
		return "", err
	}
	defer s.closed(path)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		os.Remove(path) // half a text would pass for the whole
		return "", err
	}
	s.grew(int64(len(data)))
	return path, nil
}

// stream makes a file for a text that is still being written.
func (s *spill) stream(string) (io.WriteCloser, string, error) {
	path, err := s.path("txt")
	if err != nil {
		return nil, "", err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		s.closed(path)
		return nil, "", err
	}
	return &spillFile{file: f, spill: s, clean: redactor{secrets: s.secrets()}}, path, nil
}

// closed says that a file that path gave is written.
func (s *spill) closed(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, path)
}

// path returns the name of the next file. It counts as open until closed.
func (s *spill) path(ext string) (string, error) {
	s.once.Do(func() {
		if s.err = s.prepare(); s.err == nil {
			s.expire()
			s.err = os.Mkdir(s.dir, 0o700) // not one that somebody else made
			_, total := s.kept()
			s.grew(total)
		}
	})
	if s.err != nil {
		return "", s.err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	path := filepath.Join(s.dir, fmt.Sprintf("%d.%s", s.n, ext))
	s.open[path] = true
	return path, nil
}

// prepare makes the directory of all sessions and sees that it is the user's
// alone: it may lie among the temporary files, where anybody can make one of its
// name first.
func (s *spill) prepare() error {
	parent := filepath.Dir(s.root)
	if err := os.MkdirAll(filepath.Dir(parent), 0o700); err != nil {
		return err
	}
	for _, dir := range []string{parent, s.root} {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := ownOnly(dir); err != nil {
			return err
		}
	}
	return nil
}

// ownOnly refuses a directory, or a link to one, that is not the user's or that
// others can write to.
func ownOnly(dir string) error {
	for _, look := range []func(string) (fs.FileInfo, error){os.Lstat, os.Stat} {
		info, err := look(dir)
		if err != nil {
			return err
		}
		loose := info.Mode()&fs.ModeSymlink == 0 && runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0
		if loose || !ours(info) {
			return fmt.Errorf("%s belongs to somebody else or can be written by others, so nothing is kept there: remove it, or chmod 700 it", dir)
		}
	}
	return nil
}

// spilled is the form of the names that newSpill makes.
var spilled = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d{8}T\d{6}-[a-z2-7]{10}$`) })

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
