package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
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
