package agent

import (
	"syscall"
	"testing"
)

// Nothing that is no file is opened, so nothing waits: a named pipe without a
// writer would, for ever.
func TestMemoryPipe(t *testing.T) {
	p := newPlace(t, map[string]string{"ws/AGENTS.md": "@pipe.md @/proc/kmsg @loose"})
	for _, name := range []string{"ws/QWEN.md", "ws/pipe.md", "ws/loose"} {
		if err := syscall.Mkfifo(p.path(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.want(`
ws/AGENTS.md: "@pipe.md @/proc/kmsg @loose"
! ws/AGENTS.md, line 1: @pipe.md: not read: it is no regular file
! ws/AGENTS.md, line 1: @/proc/kmsg: not read: it lies outside of the workspace, and only your own files may import from ~/.capstan
! ws/QWEN.md: not read: it is no regular file
`)
	files, warnings := LoadMemory(MemoryOptions{Root: "/", Dir: p.path("ws/a/b")})
	if len(files) != 1 || len(warnings) != 3 {
		t.Errorf("with / as the root: %v %q", files, warnings)
	}
}
