package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// A TrustStore remembers which folders the user trusts, in
// ~/.capstan/trusted.json. A folder is known by its resolved path, and what
// lies in a trusted folder is trusted.
//
// Trust decides only whether a folder's own settings, servers, hooks, agents
// and skills are used. --trust is for one run and does not come here.
type TrustStore struct{ home string }

// NewTrustStore returns the store of a user; home is empty when there is none,
// and then nothing is trusted.
func NewTrustStore(home string) *TrustStore { return &TrustStore{home} }

var errNoHome = errors.New("there is no home directory to remember trusted folders in: set HOME, or use --trust for one run")

// trustFile is the format of the store.
type trustFile struct {
	Folders []string `json:"folders"`
}

// Trusted says whether the folder, or one that holds it, is trusted. A store
// that cannot be read or that others could have written is an error, and
// trusts nothing.
func (s *TrustStore) Trusted(dir string) (bool, error) {
	if s.home == "" {
		return false, nil
	}
	real, err := resolveDir(dir)
	if err != nil {
		return false, err
	}
	f, err := s.load()
	if err != nil {
		return false, err
	}
	for at := real; ; at = filepath.Dir(at) {
		if slices.Contains(f.Folders, at) {
			return true, nil
		}
		if at == filepath.Dir(at) {
			return false, nil
		}
	}
}

// Trust remembers a folder. The file is replaced as a whole; two processes
// that trust at once both succeed.
func (s *TrustStore) Trust(dir string) error {
	if s.home == "" {
		return errNoHome
	}
	real, err := resolveDir(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.path()), 0o700); err != nil {
		return fmt.Errorf("remembering a trusted folder: %w", err)
	}
	unlock, err := lockDir(filepath.Dir(s.path()))
	if err != nil {
		return fmt.Errorf("remembering a trusted folder: %w", err)
	}
	defer unlock()
	f, err := s.load()
	if err != nil {
		return err
	}
	if slices.Contains(f.Folders, real) {
		return nil
	}
	f.Folders = append(f.Folders, real)
	slices.Sort(f.Folders)
	if err := s.store(f); err != nil {
		return fmt.Errorf("remembering a trusted folder: %w", err)
	}
	return nil
}

func (s *TrustStore) path() string { return filepath.Join(s.home, ".capstan", "trusted.json") }

func (s *TrustStore) load() (trustFile, error) {
	src, info, err := readFile(s.path())
	if errors.Is(err, fs.ErrNotExist) {
		return trustFile{}, nil
	}
	if err != nil {
		return trustFile{}, fmt.Errorf("reading the trusted folders: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return trustFile{}, fmt.Errorf("reading the trusted folders: others can write %s: check it, then run chmod 600 on it", s.path())
	}
	var f trustFile
	err = json.Unmarshal(src, &f)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = errors.New(`want {"folders": ["/path"]}`)
	}
	if err != nil {
		return trustFile{}, fmt.Errorf("reading the trusted folders: %s is damaged (%w): mend it, or delete it and trust your folders again", s.path(), err)
	}
	return f, nil
}

func (s *TrustStore) store(f trustFile) error {
	src, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(s.path(), append(src, '\n'), 0o600)
}

func resolveDir(dir string) (string, error) {
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("whether %q is trusted cannot be said: want an absolute path", dir)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("finding the folder: %w", clean(err))
	}
	return real, nil
}
