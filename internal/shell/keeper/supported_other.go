//go:build !linux || !(amd64 || arm64)

package keeper

// Supported says whether this build has a keeper.
const Supported = false
