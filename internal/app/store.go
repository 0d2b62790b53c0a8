package app

import (
	"errors"
	"os"
	"path/filepath"

	"capstan/internal/policy"
	"capstan/internal/session"
)

// Sessions returns the sessions that were recorded, seen from the workspace
// around a directory. They lie under the user's data directory. No settings are
// read: a session can be looked at whatever is wrong with them.
func Sessions(dir string, env func(string) string) (*session.Store, error) {
	home, _ := os.UserHomeDir() // without one XDG_DATA_HOME may say where
	project, err := policy.Workspace(dir)
	if err != nil {
		return nil, err
	}
	return store(env, home, project, nil)
}

// errNoData is the answer to a user without any place for data.
var errNoData = errors.New("there is no directory to record sessions in: set HOME or XDG_DATA_HOME")

func store(env func(string) string, home, project string, redact func(string) string) (*session.Store, error) {
	root := env("XDG_DATA_HOME") // a relative one does not count, by the XDG rules
	switch {
	case filepath.IsAbs(root):
	case home != "":
		root = filepath.Join(home, ".local", "share")
	default:
		return nil, errNoData
	}
	return session.New(session.Options{Root: filepath.Join(root, "capstan", "sessions"), Workspace: project, Redact: redact}), nil
}
