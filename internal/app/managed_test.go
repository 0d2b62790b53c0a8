package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The managed settings hold whatever the user, the folder and flags say.
func TestManagedSettings(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	managed := filepath.Join(t.TempDir(), "managed.json")
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(managed, `{"allowManagedPermissionRulesOnly": true, "permissions": {"allow": ["Bash(make)"], "deny": ["Bash(curl:*)"], "disableBypassPermissionsMode": "disable"}}`)
	write(filepath.Join(home, ".capstan", "settings.json"), `{"permissions": {"allow": ["Bash(curl:*)", "Bash(npm ci)"]}}`)
	open := func(change func(*Options)) (*Session, error) {
		o := Options{Dir: dir, Env: os.Getenv, Environ: os.Environ(), Managed: managed}
		if change != nil {
			change(&o)
		}
		return Open(o)
	}
	s, err := open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for call, want := range map[string]string{
		"Bash(make)":   `rule permissions.allow "Bash(make)" (managed settings ` + managed,
		"Bash(npm ci)": "approval mode default",
		"Bash(curl x)": `rule permissions.deny "Bash(curl:*)" (managed settings `,
	} {
		why, err := s.Why(call)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(why.By, want) {
			t.Errorf("%s: %+v, want it by %s", call, why, want)
		}
	}
	if _, err := open(func(o *Options) { o.ApprovalMode = "yolo" }); err == nil || !strings.Contains(err.Error(), managed) {
		t.Errorf("yolo: %v", err)
	}
	if _, err := open(func(o *Options) { o.Allow = []string{"Bash(ls)"} }); err == nil || !strings.Contains(err.Error(), "--allowed-tools") {
		t.Errorf("--allowed-tools: %v", err)
	}
}
