//go:build unix

package builtin

import (
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// Nothing that is not a file is opened, and nothing waits.
func TestOddFiles(t *testing.T) {
	eachWay(t, func(t *testing.T, s *session) {
		if err := syscall.Mkfifo(s.path("pipe"), 0o666); err != nil {
			t.Fatal(err)
		}
		s.write("f", "x")
		for p, what := range map[string]string{"pipe": "a named pipe", "/dev/zero": "a device", "/dev/tty": "a device"} {
			if _, err := os.Lstat(p); p != "pipe" && err != nil {
				continue
			}
			s.fails("reading "+p+": "+p+" is "+what+", not a file", "read_file", obj{"file_path": p})
			s.fails("edit "+p+": "+p+" is "+what+", not a file; nothing was changed", "edit", obj{"file_path": p, "old_string": "a", "new_string": "b"})
			s.fails("write_file "+p+": "+p+" is "+what+", not a file; nothing was changed", "write_file", obj{"file_path": p, "content": "b"})
			s.fails("searching "+p+": "+p+" is "+what+", not a file", "grep_search", obj{"pattern": "a", "path": p})
		}
		if got, want := s.ok("list_directory", obj{}), "f (1 byte)\npipe (not a file)\n"; got != want {
			t.Errorf("got %q", got)
		}
		if got, want := s.ok("grep_search", obj{"pattern": "x"}), "f\n  1: x\n"; got != want {
			t.Errorf("got %q", got)
		}
		if runtime.GOOS == "linux" {
			// A file of /proc says it is empty and is not.
			if got := s.ok("read_file", obj{"file_path": "/proc/self/status"}); !strings.HasPrefix(got, "Name:") {
				t.Errorf("got %q", got)
			}
		}
	})
}

// Neither does a repository whose `.git` or ignore file is a pipe.
func TestHostileRepository(t *testing.T) {
	s := newSession(t)
	s.write("f", "x")
	for _, name := range []string{".git", ".gitignore", ".capstanignore"} {
		if err := syscall.Mkfifo(s.path(name), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := s.ok("grep_search", obj{"pattern": "x"}), "f\n  1: x\n"; got != want {
		t.Errorf("got %q", got)
	}
}
