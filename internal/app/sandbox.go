package app

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"capstan/internal/shell"
)

// sandbox is what confines shell commands; nil when nothing is to, or can. It is
// asked for by --sandbox or sandbox.shell. Where the system has no such thing the
// user is told, and with --sandbox or sandbox.require that is an error.
func (s *Session) sandbox(roots []string) (*shell.Sandbox, error) {
	if !s.opt.Sandbox && !s.set.SandboxShell {
		return nil, nil
	}
	how, ok := shell.SandboxSupport()
	switch {
	case !ok && (s.opt.Sandbox || s.set.SandboxRequire):
		return nil, errors.New("shell commands cannot be confined here: " + how)
	case !ok:
		s.warn("sandbox.shell is on, but %s", how)
		return nil, nil
	}
	box := &shell.Sandbox{NoNetwork: s.set.SandboxNoNetwork}
	for _, dir := range slices.Concat(roots, temporary(), s.set.SandboxWritable) {
		if rest, ok := strings.CutPrefix(dir, "~/"); ok && s.home != "" {
			dir = filepath.Join(s.home, rest)
		}
		if !filepath.IsAbs(dir) {
			s.warn("sandbox.writable: %q is not used: want an absolute path, or one that begins with ~/", dir)
			continue
		}
		if real, err := filepath.EvalSymlinks(dir); err == nil && !slices.Contains(box.Writable, real) {
			box.Writable = append(box.Writable, real)
		}
	}
	return box, nil
}

// temporary are the directories in which everybody may leave something.
func temporary() []string {
	dirs := []string{os.TempDir()}
	if runtime.GOOS != "windows" {
		dirs = append(dirs, "/tmp", "/var/tmp", "/dev/shm")
	}
	return dirs
}

// confinement says what holds for shell commands, for `doctor`.
func confinement(s *Session) Check {
	c := Check{Name: "shell sandbox"}
	how, ok := shell.SandboxSupport()
	c.OK, c.Detail = ok, how
	switch box := s.box; {
	case box == nil && ok:
		c.Detail = "off: commands can do what you can (--sandbox, or sandbox.shell in the settings; " + how + ")"
	case box != nil:
		c.Detail = "on: commands can change files below " + strings.Join(box.Writable, ", ") + " only, and read what you can; "
		if box.NoNetwork {
			c.Detail += "no network; "
		} else {
			c.Detail += "with the network (sandbox.network); "
		}
		c.Detail += how
	}
	return c
}
