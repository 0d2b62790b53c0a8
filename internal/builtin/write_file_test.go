package builtin

import (
	"context"
	"os"
	"testing"

	"capstan/internal/tool"
)

func TestWrite(t *testing.T) {
	for _, tt := range []struct {
		name, before, content, after, text string
	}{
		{"new text", "a\n", "b\nc", "b\nc", "Replaced f (2 lines, 3 bytes)."},
		{"crlf kept", "a\r\nb\r\n", "b\nc\n", "b\r\nc\r\n", "Replaced f (2 lines, 6 bytes); with CRLF line ends, as before."},
		{"crlf given", "a\r\n", "b\r\nc\n", "b\r\nc\n", "Replaced f (2 lines, 5 bytes)."},
		{"mixed becomes what is given", "a\r\nb\n", "b\nc\n", "b\nc\n", "Replaced f (2 lines, 4 bytes)."},
		{"bom kept", "\uFEFFa\n", "b\n", "\uFEFFb\n", "Replaced f (1 line, 5 bytes); as utf-8 with BOM, as before."},
		{"bom given", "\uFEFFa\n", "\uFEFFb\n", "\uFEFFb\n", "Replaced f (1 line, 5 bytes); as utf-8 with BOM, as before."},
		{"utf-16", "\xfe\xff\x00a", "你", "\xfe\xff\x4f\x60", "Replaced f (1 line, 4 bytes); as utf-16be with BOM, as before."},
		{"windows-1252", "caf\xe9", "thé", "th\xe9", "Replaced f (1 line, 3 bytes); as windows-1252, as before."},
		{"windows-1252 too small", "caf\xe9", "你", "你", "Replaced f (1 line, 3 bytes); it was windows-1252 and is UTF-8 now."},
		{"no change", "a\n", "a\n", "a\n", "f holds exactly this already; nothing was written."},
		{"escapes stay", "a\n", `a\nb`, `a\nb`, "Replaced f (1 line, 4 bytes)."}, // BUG-ED-08
		{"binary replaced", "\x7fELF\x00", "x", "x", "Replaced f (1 line, 1 byte)."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSession(t)
			s.write("f", tt.before)
			s.call("read_file", obj{"file_path": "f"})
			if got := s.ok("write_file", obj{"file_path": "f", "content": tt.content}); got != tt.text {
				t.Errorf("got %q\nwant %q", got, tt.text)
			}
			s.holds("f", tt.after)
			s.clean(".", "f")
		})
	}
}

// A replaced file keeps its mode, links lead to it as before, and a new one gets
// its directories.
func TestWriteInPlace(t *testing.T) {
	s := newSession(t)
	s.write("real/script", "#!/bin/sh\n")
	if err := os.Chmod(s.path("real/script"), 0o750); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"link": "real/script", "dangling": "real/new", "dirlink": "real"} {
		if err := os.Symlink(to, s.path(from)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(s.path("real/script"), s.path("hard")); err != nil {
		t.Fatal(err)
	}
	s.ok("read_file", obj{"file_path": "link"})
	if got, want := s.ok("write_file", obj{"file_path": "link", "content": "x"}), "Replaced real/script (1 line, 1 byte); its other hard links keep the old content."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s.holds("real/script", "x")
	s.holds("hard", "#!/bin/sh\n")
	if fi, err := os.Stat(s.path("real/script")); err != nil || fi.Mode() != 0o750 {
		t.Errorf("mode %v (%v)", fi.Mode(), err)
	}
	if got, want := s.ok("write_file", obj{"file_path": "dangling", "content": "y"}), "Created real/new (1 line, 1 byte)."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s.ok("write_file", obj{"file_path": "dirlink/a/b/c", "content": "z"})
	s.holds("real/a/b/c", "z")
	s.ok("write_file", obj{"file_path": "real/../dirlink/../up", "content": "z"})
	s.holds("up", "z")
	s.clean(".", "dangling", "dirlink", "hard", "link", "real", "up")
	s.clean("real", "a", "new", "script")
}

func TestWriteRefuses(t *testing.T) {
	s := newSession(t)
	s.write("ro", "a")
	s.write("f", "a")
	if err := os.Chmod(s.path("ro"), 0o444); err != nil {
		t.Fatal(err)
	}
	s.ok("read_file", obj{"file_path": "ro"})
	s.fails("write_file ro: it is read-only (mode 0444): chmod it first if it is meant to be changed; nothing was changed", "write_file", obj{"file_path": "ro", "content": "b"})
	s.fails("write_file .: . is a directory, not a file; nothing was changed", "write_file", obj{"file_path": ".", "content": "b"})
	s.fails("write_file f/x: resolving $DIR/f/x: lstat $DIR/f/x: not a directory; nothing was changed", "write_file", obj{"file_path": "f/x", "content": "b"})
	s.clean(".", "f", "ro")
	if os.Getuid() == 0 {
		t.Log("root may write everywhere: the read-only directory is skipped")
		return
	}
	s.write("closed/f", "a")
	s.ok("read_file", obj{"file_path": "closed/f"})
	if err := os.Chmod(s.path("closed"), 0o555); err != nil {
		t.Fatal(err)
	}
	s.fails("write_file closed/f: closed/f: permission denied; nothing was changed", "write_file", obj{"file_path": "closed/f", "content": "b"})
	s.fails("write_file closed/new: closed/new: permission denied; nothing was changed", "write_file", obj{"file_path": "closed/new", "content": "b"})
	s.clean("closed", "f")
}

// Whatever goes wrong between planning a change and publishing it, the file is
// as somebody else left it, and no temporary file or directory stays.
func TestWriteInterrupted(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, tt := range []struct {
		name   string
		change change
		ctx    context.Context
		before func(s *session)
		want   string
		holds  map[string]string
	}{
		{"cancelled", change{path: "f", before: []byte("a"), after: []byte("b")}, cancelled, nil, "context canceled", map[string]string{"f": "a"}},
		{"written by somebody else", change{path: "f", before: []byte("a"), after: []byte("b")}, t.Context(),
			func(s *session) { s.write("f", "c") }, "something else wrote the file in this moment; read it again", map[string]string{"f": "c"}},
		{"created by somebody else", change{path: "d/new", creates: true, after: []byte("b")}, t.Context(),
			func(s *session) { s.write("d/new", "c") }, "something else created the file in this moment; read it first", map[string]string{"d/new": "c"}},
		{"directories undone", change{path: "x/y/new", creates: true, after: []byte("b")}, cancelled, nil, "context canceled", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSession(t)
			s.write("f", "a")
			if tt.before != nil {
				tt.before(s)
			}
			tt.change.path = s.path(tt.change.path)
			err := s.f.write(tt.ctx, &tt.change)
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			for name, want := range tt.holds {
				s.holds(name, want)
			}
			names := []string{"f"}
			if _, made := tt.holds["d/new"]; made {
				names = []string{"d", "f"}
				s.clean("d", "new")
			}
			s.clean(".", names...)
		})
	}
}

// Two writers of one path that sched keeps apart lose nothing.
func TestEditsOneByOne(t *testing.T) { // BUG-CC-01
	s := newSession(t)
	s.write("f", "1\n50\n75\n")
	s.ok("read_file", obj{"file_path": "f"})
	s.ok("edit", obj{"file_path": "f", "old_string": "50", "new_string": "FIFTY"})
	s.ok("edit", obj{"file_path": "f", "old_string": "75", "new_string": "SEVENTY"})
	s.holds("f", "1\nFIFTY\nSEVENTY\n")
	for _, name := range []string{"edit", "write_file"} {
		c := &tool.Call{ID: name, Args: []byte(`{"file_path":"f"}`)}
		a := s.tools[name].(tool.Accessor).Access(c)
		if !a.Overlap || len(a.Reads) > 0 || len(a.Writes) != 1 || a.Writes[0] != s.path("f") {
			t.Errorf("%s touches %+v", name, a)
		}
	}
}
