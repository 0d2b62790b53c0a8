// Package session keeps conversations: an append-only log for each session,
// one event a line, from which the session can be taken up again after any end,
// a crash included. It stores and reads; what a message means to a provider,
// and what is worth recording, others decide. It imports nothing of ours but
// the words of a conversation.
//
// A session is a file <root>/<workspace hash>/<id>.jsonl, and beside it, when
// it holds images or very long texts, a directory <id>.files with one file for
// each, named by its content. The logs of its subagents lie in <id>.agents. Nothing
// in a log is ever changed: a damaged line stays where it is, and what mends it
// is added at the end.
package session

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Format is the version of the log's format. A log with a higher one is
// refused.
const Format = 1

// Errors that a caller may want to tell apart.
var (
	ErrBusy      = errors.New("another process is writing this session")
	ErrNotFound  = errors.New("no such session")
	ErrAmbiguous = errors.New("the id begins more than one session")
)

// Options say where sessions are kept and what must not be in them.
type Options struct {
	Root      string // the directory of all sessions; made when the first is
	Workspace string // absolute, links resolved: sessions belong to it
	// Redact replaces the secrets that the caller knows, provider keys say. It
	// gets every string that is about to be written. Keys of known shapes are
	// replaced after it. Nil means that no secret is known.
	Redact func(string) string
	Now    func() time.Time // nil means time.Now
}

// A Store is the sessions of one user, seen from one workspace. Its methods may
// be called from several goroutines.
type Store struct {
	root, workspace, dir string
	redact               func(string) string
	now                  func() time.Time
	sys                  system
}

// system is what a test replaces to see what happens when it fails.
type system struct {
	open    func(path string, flag int) (file, error)
	lock    func(file) error
	syncDir func(path string)
}

// New returns a Store. It touches no file.
func New(o Options) *Store {
	s := &Store{root: o.Root, workspace: o.Workspace, redact: o.Redact, now: o.Now, sys: system{openFile, lockFile, syncDir}}
	if s.now == nil {
		s.now = time.Now
	}
	if s.redact == nil {
		s.redact = func(t string) string { return t }
	}
	sum := sha256.Sum256([]byte(o.Workspace))
	s.dir = filepath.Join(o.Root, hex.EncodeToString(sum[:8]))
	return s
}

const suffix = ".jsonl"

// newID returns a random UUID (version 4). Its beginning tells sessions apart.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

// checkPrefix refuses what can begin no id, above all anything with a slash.
func checkPrefix(p string) error {
	if p == "" || len(p) > 36 || strings.Trim(p, "0123456789abcdef-") != "" {
		return fmt.Errorf("%w: %q is not the beginning of a session id (hexadecimal digits and hyphens)", ErrNotFound, p)
	}
	return nil
}

// find returns the path of the session whose id begins with prefix. This
// workspace's sessions come first; only when none of them fits are those of
// other workspaces looked at.
func (s *Store) find(prefix string) (string, error) {
	prefix = strings.ToLower(strings.TrimSpace(prefix))
	if err := checkPrefix(prefix); err != nil {
		return "", err
	}
	dirs, err := s.dirs()
	if err != nil {
		return "", err
	}
	var found []string
	for i, dir := range dirs {
		paths, err := logs(dir)
		if err != nil {
			return "", err
		}
		for _, p := range paths {
			if strings.HasPrefix(idOf(p), prefix) {
				found = append(found, p)
			}
		}
		if i == 0 && len(found) > 0 {
			break
		}
	}
	for i := 0; i < len(dirs) && len(found) == 0; i++ { // no session: a subagent of one
		if found, err = subagents(dirs[i], prefix); err != nil {
			return "", err
		}
	}
	switch {
	case len(found) == 0:
		return "", fmt.Errorf("%w: %s", ErrNotFound, prefix)
	case len(found) == 1:
		return found[0], nil
	}
	ids := make([]string, 0, 5)
	for _, p := range found[:min(len(found), 5)] {
		ids = append(ids, idOf(p))
	}
	return "", fmt.Errorf("%w: %s fits %d, among them %s", ErrAmbiguous, prefix, len(found), strings.Join(ids, ", "))
}

// dirs are the directories of all workspaces, this one's first.
func (s *Store) dirs() ([]string, error) {
	dirs := []string{s.dir}
	entries, err := os.ReadDir(s.root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the sessions: %w", err)
	}
	for _, e := range entries {
		if p := filepath.Join(s.root, e.Name()); e.IsDir() && p != s.dir {
			dirs = append(dirs, p)
		}
	}
	return dirs, nil
}

// logs are the logs in one directory; one that does not exist has none. A file
// whose name is no id cannot be asked for, so it is none of ours: a copy, say.
func logs(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the sessions: %w", err)
	}
	var paths []string
	for _, e := range entries {
		// A pipe or a link under that name would be somebody's trap.
		if name, ok := strings.CutSuffix(e.Name(), suffix); ok && checkPrefix(name) == nil && e.Type().IsRegular() {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	slices.Sort(paths)
	return paths, nil
}

func idOf(path string) string { return strings.TrimSuffix(filepath.Base(path), suffix) }
