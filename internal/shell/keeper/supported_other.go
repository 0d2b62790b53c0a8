//go:build !linux || !(amd64 || arm64)

package keeper

// Supported says whether this build has a keeper.
const Supported = false

// LandlockVersion is that of the running kernel; 0 when it has none.
func LandlockVersion() int { return 0 }
