//go:build !linux

package builtin

import (
	"errors"
	"os"
)

func linkFree(string) bool { return false }

func openNoLinks(string) (*handle, error) { return nil, errors.ErrUnsupported }

func openDirNoLinks(string) (*os.File, error) { return nil, errors.ErrUnsupported }
