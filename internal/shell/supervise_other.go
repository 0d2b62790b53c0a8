//go:build !linux || !(amd64 || arm64)

package shell

import (
	"errors"
	"os"

	"capstan/internal/shell/keeper"
)

// startKeeper is never called: New sets Portable where there is no keeper.
func startKeeper(string, keeper.Request, [3]*os.File) (supervisor, error) {
	return nil, errors.ErrUnsupported
}
