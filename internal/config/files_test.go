//go:build linux || darwin

package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestFilesThatCannotBeRead(t *testing.T) {
	base := lay(t, nil)
	fifo := filepath.Join(base, projectFile)
	if err := syscall.Mkfifo(fifo, 0o644); err != nil {
		t.Skip(err)
	}
	big := filepath.Join(base, "big.json")
	if err := os.WriteFile(big, make([]byte, maxFile+1), 0o644); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]Options{
		"is not a regular file": {Project: filepath.Join(base, "ws")},
		"no such file":          {Files: []string{filepath.Join(base, "none.json")}},
		"is larger than":        {Files: []string{big}},
		"home is not":           {Files: []string{filepath.Join(base, "home")}},
		"unknown mode \"x\"":    {Mode: "x"},
	} {
		if _, _, err := Load(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", o, err, want)
		}
	}
	if os.Getuid() != 0 {
		if err := os.Chmod(filepath.Join(base, "home", ".capstan"), 0); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Load(Options{Home: filepath.Join(base, "home")}); err == nil {
			t.Error("settings that cannot be looked at are taken as missing")
		}
	}
}
