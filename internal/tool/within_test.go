package tool_test

import (
	"path/filepath"
	"testing"

	"capstan/internal/tool"
)

// What begins with the same letters does not lie in a directory.
func TestWithin(t *testing.T) {
	for _, tc := range []struct {
		dir, path string
		want      bool
	}{
		{"/a", "/a", true}, {"/a", "/a/b", true}, {"/a", "/a/..b", true}, {"/", "/a", true}, {"/", "/", true},
		{"/a", "/ab", false}, {"/a/b", "/a", false}, {"/a/b", "/a/c", false}, {"/a", "/", false}, {"", "/a", false}, {"/a", "a", false},
	} {
		dir, path := filepath.FromSlash(tc.dir), filepath.FromSlash(tc.path)
		if got := tool.Within(dir, path); got != tc.want {
			t.Errorf("Within(%q, %q) = %t", dir, path, got)
		}
	}
}
