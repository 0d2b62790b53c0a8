package app

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSpill(t *testing.T) {
	root := filepath.Join(t.TempDir(), "state", "spill")
	now := time.Date(2026, 1, 20, 0, 0, 0, 0, time.UTC)
	s := newSpill(root, func() time.Time { return now })
	if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal("something was made before there was a text")
	}
	others := filepath.Join(root, "precious")
	old, fresh := filepath.Join(root, "20260101T000000-abcdefghij"), filepath.Join(root, "20260119T000000-abcdefghij")
	for dir, at := range map[string]time.Time{old: now.Add(-8 * 24 * time.Hour), fresh: now.Add(-time.Hour), others: now.Add(-999 * time.Hour)} {
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "1.txt"), nil, 0o600), os.Chtimes(dir, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	one, err := s.keep("c", "text")
	if err != nil {
		t.Fatal(err)
	}
	w, two, err := s.stream("c")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("more")); errors.Join(err, w.Close()) != nil {
		t.Fatal(err)
	}
	if one == two || filepath.Dir(one) != s.dir || filepath.Dir(two) != s.dir {
		t.Errorf("files %s and %s, want two in %s", one, two, s.dir)
	}
	for path, want := range map[string]string{one: "text", two: "more"} {
		got, err := os.ReadFile(path)
		info, statErr := os.Stat(path)
		if errors.Join(err, statErr) != nil || string(got) != want || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %q %v %v", path, got, info.Mode(), err)
		}
	}
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a directory of more than 7 days ago is still there")
	}
	for _, dir := range []string{fresh, others} {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("%s is gone", dir)
		}
	}
}

func TestSpillFails(t *testing.T) {
	root := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(root, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSpill(root, time.Now)
	if path, err := s.keep("c", "text"); err == nil {
		t.Errorf("kept in %s", path)
	}
}

func TestSpillRefusesWhatOthersCanWrite(t *testing.T) {
	for _, mode := range []os.FileMode{0o777, 0o770, 0o702} {
		root := filepath.Join(t.TempDir(), "spill")
		if err := errors.Join(os.MkdirAll(root, 0o700), os.Chmod(root, mode)); err != nil {
			t.Fatal(err)
		}
		if path, err := newSpill(root, time.Now).keep("c", "text"); err == nil {
			t.Errorf("mode %v: kept in %s", mode, path)
		}
	}
}

// What is kept of all sessions has an end: the oldest texts go, at the start and
// while one is written; what is being written stays.
func TestSpillRoom(t *testing.T) {
	root := filepath.Join(t.TempDir(), "spill")
	now := time.Date(2026, 1, 20, 0, 0, 0, 0, time.UTC)
	put := func(name string, size int, age time.Duration) string {
		t.Helper()
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, make([]byte, size), 0o600), os.Chtimes(path, now.Add(-age), now.Add(-age))); err != nil {
			t.Fatal(err)
		}
		return path
	}
	left := func(step string, want ...string) {
		t.Helper()
		var got []string
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				name, _ := filepath.Rel(root, path)
				got = append(got, filepath.ToSlash(name))
			}
			return err
		})
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", step, err, diff)
		}
	}
	const one, two, foreign = "20260118T000000-aaaaaaaaaa", "20260119T000000-bbbbbbbbbb", "precious"
	put(foreign+"/1.txt", 5000, 99*time.Hour)
	put(one+"/1.txt", 400, 48*time.Hour)
	put(one+"/2.txt", 400, 47*time.Hour)
	put(two+"/1.txt", 400, 24*time.Hour)
	s := newSpill(root, func() time.Time { return now })
	s.most = 1000
	name := func(path string) string {
		if path == "" {
			t.Fatal("nothing was kept")
		}
		old := now.Add(time.Duration(s.n) * time.Minute) // in the order of writing, however fast
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		return filepath.Base(s.dir) + "/" + filepath.Base(path)
	}
	first, err := s.keep("c", strings.Repeat("x", 90))
	if err != nil {
		t.Fatal(err)
	}
	a := name(first)
	left("at the start", foreign+"/1.txt", one+"/2.txt", two+"/1.txt", a)
	w, path, err := s.stream("c")
	if err != nil {
		t.Fatal(err)
	}
	b := name(path)
	write := func(n int) {
		t.Helper()
		if _, err := io.WriteString(w, strings.Repeat("y", n)); err != nil {
			t.Fatal(err)
		}
	}
	write(200)
	left("while one is written", foreign+"/1.txt", two+"/1.txt", a, b)
	if _, err := os.Stat(filepath.Join(root, one)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty directory is left: %v", err)
	}
	write(900)
	left("more than there is room for", foreign+"/1.txt", b)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if third, err := s.keep("c", strings.Repeat("z", 200)); err != nil {
		t.Fatal(err)
	} else {
		left("after it", foreign+"/1.txt", name(third))
	}
	if got, want := s.total, int64(200); got != want {
		t.Errorf("%d bytes are counted, %d are there", got, want)
	}
}

// What the session knows to be secret does not get into a text that is kept.
func TestSpillRedacts(t *testing.T) {
	s := newSpill(filepath.Join(t.TempDir(), "spill"), time.Now)
	s.secrets = func() []string { return []string{"secret-key-1"} }
	one, err := s.keep("c", "a secret-key-1 b")
	if err != nil {
		t.Fatal(err)
	}
	w, two, err := s.stream("c")
	if err != nil {
		t.Fatal(err)
	}
	for _, piece := range []string{"a secret", "-key-1", " b"} {
		if n, err := io.WriteString(w, piece); err != nil || n != len(piece) {
			t.Fatal(n, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{one, two} {
		if got, err := os.ReadFile(path); err != nil || string(got) != "a [redacted] b" {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}

// A session hands its secrets on.
func TestSessionSpillRedacts(t *testing.T) {
	noEnv(t)
	t.Setenv("OPENAI_API_KEY", "secret-key-1")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	s := open(t, Options{}, nil)
	path, err := s.spill.keep("c", "a secret-key-1 b")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "a [redacted] b" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestStateDir(t *testing.T) {
	if got := stateDir(func(string) string { return "" }, ""); !filepath.IsAbs(got) {
		t.Errorf("without a home: %s", got)
	}
	for _, tc := range []struct{ xdg, want string }{
		{"", "/home/u/.local/state/capstan"},
		{"/x", "/x/capstan"},
		{"relative", "/home/u/.local/state/capstan"}, // the XDG rules: ignore it
	} {
		if got := stateDir(func(string) string { return tc.xdg }, "/home/u"); got != tc.want {
			t.Errorf("XDG_STATE_HOME=%q: %s, want %s", tc.xdg, got, tc.want)
		}
	}
}
