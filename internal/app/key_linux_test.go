package app

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A key file is judged by what was opened, and opening it waits for nothing.
func TestKeyFileIsNoPipe(t *testing.T) {
	noEnv(t)
	s := open(t, Options{}, map[string]string{"~/.capstan/settings.json": `{"providers": {
		"pipe": {"family": "openai", "baseUrl": "http://127.0.0.1:1", "keyFile": "pipe"},
		"link": {"family": "openai", "baseUrl": "http://127.0.0.1:1", "keyFile": "link"},
		"dir": {"family": "openai", "baseUrl": "http://127.0.0.1:1", "keyFile": "dir"}}}`})
	dir := filepath.Join(s.home, ".capstan")
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pipe", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pipe", "link", "dir"} {
		if _, err := s.Model(t.Context(), name+"/m"); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, name)+" is no regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
