//go:build unix

package app

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A key file that is a named pipe is refused: opening it would wait for ever.
func TestKeyFilePipe(t *testing.T) {
	noEnv(t)
	s := open(t, Options{}, map[string]string{"~/.capstan/settings.json": `{"providers": {"o": {"family": "openai", "baseUrl": "http://127.0.0.1:1", "keyFile": "~/o.key"}}}`})
	if err := syscall.Mkfifo(filepath.Join(s.home, "o.key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Model(t.Context(), "o/m"); err == nil || !strings.Contains(err.Error(), "is no regular file") {
		t.Errorf("error %v", err)
	}
}
