package builtin

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// limitFileSize makes every write beyond so many bytes fail, as on a full disk,
// until the function it returns is called.
func limitFileSize(t *testing.T, n uint64) func() {
	t.Helper()
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: old.Max}); err != nil {
		t.Skipf("setting a limit: %v", err)
	}
	return func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
			t.Error(err)
			os.Exit(1) // nothing after this could be believed
		}
	}
}
