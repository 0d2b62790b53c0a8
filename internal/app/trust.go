package app

import (
	"path/filepath"

	"capstan/internal/config"
	"capstan/internal/policy"
)

// Trust remembers that the user trusts a folder, or the workspace around it,
// and returns which that is.
func Trust(dir string, workspace bool) (string, error) {
	home, err := homeDirectory() // without one the store says what is missing
	if err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	if workspace {
		if dir, err = policy.Workspace(dir); err != nil {
			return "", err
		}
	}
	return dir, config.NewTrustStore(home).Trust(dir)
}
