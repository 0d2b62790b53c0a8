//go:build !unix

package policy

import "io/fs"

// ownedBy says whether a file belongs to the user. Here no directory that
// holds another user's ones is open to all, so the question is not asked.
func ownedBy(int, fs.FileInfo) bool { return true }
