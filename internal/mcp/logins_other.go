//go:build !linux && !darwin

package mcp

// lockDir does nothing where directories cannot be locked: of two logins that are
// saved in the same moment one may have to be done again.
func lockDir(string) (unlock func(), err error) { return func() {}, nil }
