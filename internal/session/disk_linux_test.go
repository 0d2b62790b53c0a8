package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// nobody is any user but root, whom no mode stops.
const nobody = 65534

// asNobody runs f on a thread whose file accesses are those of another user,
// when the test runs as root.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETFSUID, nobody, 0, 0); errno != 0 {
			t.Error(errno)
			return
		}
		f()
	}()
	<-done
}

// A directory that may only be read is a clear error; reading goes on.
func TestReadOnlyDirectory(t *testing.T) {
	root, err := os.MkdirTemp("", "capstan-session-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(root)
	s := New(Options{Root: root, Workspace: "/w", Now: clock()})
	path := write(t, s, story()...)
	if os.Getuid() == 0 {
		err := filepath.WalkDir(root, func(p string, _ fs.DirEntry, err error) error { return errors.Join(err, os.Chown(p, nobody, -1)) })
		if err != nil {
			t.Fatal(err)
		}
	}
	before := contents(t, path)
	if err := errors.Join(os.Chmod(path, 0o400), os.Chmod(s.dir, 0o500)); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(s.dir, 0o700)
	asNobody(t, func() {
		if st, err := s.Read(idOf(path)); err != nil || !cmp.Equal(st.Messages, told()) {
			t.Errorf("Read: %v", err)
		}
		if _, _, err := s.Resume(idOf(path)); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "it can still be shown and exported") {
			t.Errorf("Resume: %v", err)
		}
		l := s.Create(Header{})
		if err := l.Message(user("hi")); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), l.Path()) {
			t.Errorf("Create: %v", err)
		}
		if err := l.Close(); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("Close, with a message that was never written: %v", err)
		}
	})
	if entries, err := os.ReadDir(s.dir); err != nil || len(entries) != 2 {
		t.Errorf("the directory has %v (%v), want the log and its files", entries, err)
	}
	if string(before) != string(contents(t, path)) {
		t.Error("the log has changed")
	}
}

func init() {
	childLeft = func() bool {
		_, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		return !errors.Is(err, syscall.ECHILD)
	}
	helpers["small"] = func(args []string) error {
		signal.Ignore(syscall.SIGXFSZ)
		limit := syscall.Rlimit{Cur: 1000, Max: 1 << 40}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		s := New(Options{Root: args[0], Workspace: "/home/me/project"})
		l := s.Create(Header{})
		failed := 0
		for _, f := range story() {
			if f(l) != nil {
				failed++
			}
		}
		if err := l.Close(); !errors.Is(err, syscall.EFBIG) {
			return fmt.Errorf("closing: %w", err)
		}
		fmt.Println(l.ID(), failed > 0)
		return nil
	}
}

// A file that the system itself lets grow no further holds whole lines only.
func TestRealLimit(t *testing.T) {
	s := newStore(t)
	cmd := exec.Command(os.Args[0], s.root)
	cmd.Env = append(os.Environ(), "CAPSTAN_SESSION_HELPER=small")
	out, err := cmd.CombinedOutput()
	id, failed, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || failed != "true" {
		t.Fatalf("%v: %s", err, out)
	}
	st, err := s.Read(id)
	if err != nil {
		t.Fatal(err)
	}
	if !isPrefix(st.Messages, told()) || strings.Contains(strings.Join(st.Notes, ""), "damaged") {
		t.Errorf("messages %v\nnotes %q", st.Messages, st.Notes)
	}
}
