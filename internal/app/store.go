package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"capstan/internal/policy"
	"capstan/internal/session"
)

// Sessions returns the sessions that were recorded, seen from the workspace
// around a directory. They lie under the user's data directory. No settings are
// read: a session can be looked at whatever is wrong with them.
func Sessions(dir string, env func(string) string) (*session.Store, error) {
	home, err := homeDirectory()
	if err != nil {
		return nil, err
	}
	project, err := policy.Workspace(dir)
	if err != nil {
		return nil, err
	}
	return store(env, home, project, nil)
}

// errNoData is the answer to a user without any place for data.
var errNoData = errors.New("there is no directory to record sessions in: set HOME or XDG_DATA_HOME")

func store(env func(string) string, home, project string, redact func(string) string) (*session.Store, error) {
	root, err := sessionRoot(env, home)
	if err != nil {
		return nil, err
	}
	return session.New(session.Options{Root: root, Workspace: project, Redact: redact}), nil
}

// sessionRoot is the directory of all sessions.
func sessionRoot(env func(string) string, home string) (string, error) {
	root := env("XDG_DATA_HOME") // a relative one does not count, by the XDG rules
	switch {
	case filepath.IsAbs(root):
	case home != "":
		root = filepath.Join(home, ".local", "share")
	default:
		return "", errNoData
	}
	return filepath.Join(root, "capstan", "sessions"), nil
}

// homeDirectory returns the user's home, which is empty when there is none: then
// only what lies there is missing. A relative one would make the settings of
// whatever directory capstan is started in the user's own.
func homeDirectory() (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", nil
	}
	if !filepath.IsAbs(home) {
		return "", &UsageError{fmt.Errorf("the home directory %q is no absolute path: set HOME to one", home)}
	}
	return home, nil
}
