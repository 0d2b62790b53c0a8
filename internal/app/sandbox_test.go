package app

import (
	"path/filepath"
	"strings"
	"testing"

	"capstan/internal/shell"
	"capstan/internal/tool"
)

// What the settings and the flag say is in force for the model's commands, and
// doctor says so; a folder can make it stricter only.
func TestShellSandbox(t *testing.T) {
	if how, ok := shell.SandboxSupport(); !ok {
		t.Skip(how)
	}
	outside := t.TempDir()
	write := func(dir string) tool.Call {
		return call("run_shell_command", map[string]any{"command": "echo x > " + filepath.Join(dir, "f")})
	}
	// The temporary directory is writable, so "outside" has to lie elsewhere.
	t.Setenv("TMPDIR", t.TempDir())
	for name, tc := range map[string]struct {
		opt     Options
		files   map[string]string
		on, net bool
	}{
		"off":                        {},
		"by the flag":                {opt: Options{Sandbox: true}, on: true, net: true},
		"by the user's settings":     {files: map[string]string{"~/.capstan/settings.json": `{"sandbox": {"shell": true, "network": false}}`}, on: true},
		"by the folder's":            {files: map[string]string{".capstan/settings.json": `{"sandbox": {"shell": true}}`}, on: true, net: true},
		"not undone by the folder's": {files: map[string]string{"~/.capstan/settings.json": `{"sandbox": {"shell": true, "network": false}}`, ".capstan/settings.json": `{"sandbox": {"shell": false, "network": true, "writable": ["/"]}}`}, on: true},
	} {
		t.Run(name, func(t *testing.T) {
			tc.opt.ApprovalMode, tc.opt.Trust = "yolo", true
			s := open(t, tc.opt, tc.files)
			if (s.box != nil) != tc.on || tc.on && s.box.NoNetwork == tc.net {
				t.Fatalf("%+v; %v", s.box, s.Warnings)
			}
			if tc.on { // /tmp itself is where tests have their directories
				s.box.Writable = []string{s.project}
			}
			r := s.rt.Run(t.Context(), s.View, []tool.Call{write(s.opt.Dir), write(outside)})
			if text := r[0].Text(); !strings.Contains(text, "exit code 0") {
				t.Error(text)
			}
			if text := r[1].Text(); strings.Contains(text, "exit code 0") == tc.on || tc.on && !strings.Contains(text, "hint: commands run in a sandbox: files can be changed only below "+s.project) {
				t.Error(text)
			}
			want := "off: commands can do what you can"
			switch {
			case tc.on && tc.net:
				want = "with the network"
			case tc.on:
				want = "no network"
			}
			if c := confinement(s); !c.OK || !strings.Contains(c.Detail, want) {
				t.Errorf("%+v", c)
			}
		})
	}
}
