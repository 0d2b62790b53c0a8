//go:build !cgo

package guest

// Cgo tells that this build links, or may link, the C runtime. Its threads
// cannot be hardened and its start is slow, so it is no child.
const Cgo = false
