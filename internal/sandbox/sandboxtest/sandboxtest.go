// Package sandboxtest helps tests that run programs: it gives them a child
// binary, and checks that they leave nothing behind.
package sandboxtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"capstan/internal/sandbox/guest"
)

var (
	once     sync.Once
	dir      string
	buildErr error
)

// Binary is what a test sets quickjs.Options.Binary to. A test built without
// cgo is a child itself and gets the empty string. For one built with cgo, as
// the race detector needs, the child is built once for each test binary; Main
// removes it.
func Binary(t testing.TB) string {
	t.Helper()
	if !guest.Cgo {
		return ""
	}
	return Build(t, "capstan/internal/sandbox/sandboxtest/child")
}

var built sync.Map // of *build, by import path

type build struct {
	once sync.Once
	path string
	err  error
}

// Build builds the command pkg without cgo, once for each test binary, and
// answers its path. Main removes it.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	once.Do(func() { dir, buildErr = os.MkdirTemp("", "capstan-test-*") })
	if buildErr != nil {
		t.Fatal(buildErr)
	}
	v, _ := built.LoadOrStore(pkg, new(build))
	b := v.(*build)
	b.once.Do(func() {
		b.path = filepath.Join(dir, filepath.Base(pkg)+exeSuffix())
		cmd := exec.Command("go", "build", "-o", b.path, pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			b.err = fmt.Errorf("building %s: %w\n%s", pkg, err, out)
		}
	})
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b.path
}

func exeSuffix() string {
	if os.PathSeparator == '\\' {
		return ".exe"
	}
	return ""
}

// Main runs the tests of a package for its TestMain, removes what Build made,
// and fails when a goroutine or a child process is left.
func Main(m *testing.M) {
	code := m.Run()
	if dir != "" {
		os.RemoveAll(dir)
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines are left:", err)
			code = 1
		}
		if left := Children(); len(left) > 0 {
			fmt.Fprintln(os.Stderr, "child processes are left:", left)
			code = 1
		}
	}
	os.Exit(code)
}

// Children lists the process ids of this process's children, zombies too, as
// far as the system has /proc.
func Children() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue
		}
		// The fields behind the command's name, which may hold anything but
		// ends at the last parenthesis: state, then parent.
		_, rest, ok := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
		if fields := strings.Fields(rest); ok && len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			pids = append(pids, pid)
		}
	}
	return pids
}
