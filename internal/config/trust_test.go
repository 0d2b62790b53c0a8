package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestTrust(t *testing.T) {
	base := t.TempDir()
	home := filepath.Join(base, "home")
	for _, d := range []string{"home", "ws/sub", "ws2", "other"} {
		if err := os.MkdirAll(filepath.Join(base, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("ws", filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	s := NewTrustStore(home)
	trusted := func(dir string) bool {
		t.Helper()
		ok, err := s.Trusted(filepath.Join(base, dir))
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if trusted("ws") {
		t.Error("trusted before anybody said so")
	}
	if err := s.Trust(filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{"ws": true, "ws/sub": true, "link/sub": true, "ws2": false, "other": false, ".": false} {
		if got := trusted(dir); got != want {
			t.Errorf("%s: trusted %t, want %t", dir, got, want)
		}
	}
	info, err := os.Stat(filepath.Join(home, ".capstan", "trusted.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the store's mode: %v %v", info.Mode(), err)
	}
	if _, err := s.Trusted(filepath.Join(base, "none")); err == nil {
		t.Error("a folder that does not exist is trusted or not")
	}
	if _, err := s.Trusted("ws"); err == nil {
		t.Error("a relative folder is trusted or not")
	}
}

func TestTrustWithoutHome(t *testing.T) {
	s := NewTrustStore("")
	if ok, err := s.Trusted("/"); ok || err != nil {
		t.Error(ok, err)
	}
	if err := s.Trust("/"); err == nil || !strings.Contains(err.Error(), "--trust") {
		t.Error(err)
	}
}

// TestTrustAtOnce: no folder is lost, and no file is left.
func TestTrustAtOnce(t *testing.T) {
	home := t.TempDir()
	const n = 20
	var wg sync.WaitGroup
	for i := range n {
		dir := filepath.Join(home, fmt.Sprint("d", i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if err := NewTrustStore(home).Trust(dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range n {
		if ok, err := NewTrustStore(home).Trusted(filepath.Join(home, fmt.Sprint("d", i))); !ok || err != nil {
			t.Errorf("d%d: %t %v", i, ok, err)
		}
	}
	left, err := os.ReadDir(filepath.Join(home, ".capstan"))
	if err != nil || len(left) != 1 {
		t.Errorf("left: %v %v", left, err)
	}
}

func TestDamagedTrustStore(t *testing.T) {
	for text, want := range map[string]string{"{": "is damaged", `{"folders": 1}`: `is damaged (want {"folders": ["/path"]})`, "": "is damaged"} {
		home := t.TempDir()
		file := filepath.Join(home, ".capstan", "trusted.json")
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if ok, err := NewTrustStore(home).Trusted(home); ok || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %t %v", text, ok, err)
		}
		if err := NewTrustStore(home).Trust(home); err == nil {
			t.Errorf("%q was overwritten", text)
		}
	}
	home := t.TempDir()
	s := NewTrustStore(home)
	if err := s.Trust(home); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o666, 0o620, 0o602} {
		if err := os.Chmod(s.path(), mode); err != nil {
			t.Fatal(err)
		}
		if ok, err := s.Trusted(home); ok || err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("a store with mode %v: %t %v", mode, ok, err)
		}
	}
}
