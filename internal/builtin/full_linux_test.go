package builtin

import (
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"capstan/internal/tool"
)

// A full disk leaves the old file and nothing else. A limit on the size of
// files stands for the disk; it binds a whole process, so the test is one of
// its own.
func TestWriteFullDisk(t *testing.T) {
	const child = "CAPSTAN_TEST_FULL_DISK"
	if os.Getenv(child) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestWriteFullDisk$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestWriteFullDisk") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	s := newSession(t)
	s.write("f", "a")
	s.ok("read_file", obj{"file_path": "f"})
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1 << 16, Max: 1 << 16}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"f", "new/file"} {
		r := s.call("write_file", obj{"file_path": name, "content": strings.Repeat("x", 1<<20)})
		if r.Status != tool.Failed || !strings.HasSuffix(r.Text(), "file too large; nothing was changed") {
			t.Errorf("%s: %s", r.Status, r.Text())
		}
	}
	s.holds("f", "a")
	s.clean(".", "f")
}
