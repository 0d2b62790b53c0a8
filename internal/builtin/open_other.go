//go:build !linux

package builtin

import "errors"

func linkFree(string) bool { return false }

func openNoLinks(string) (*handle, error) { return nil, errors.ErrUnsupported }
