package session

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/msg"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestList(t *testing.T) {
	s := newStore(t)
	other := New(Options{Root: s.root, Workspace: "/elsewhere", Now: s.now})
	if l, err := s.List(true); err != nil || len(l) != 0 {
		t.Errorf("of no sessions: %v %v", l, err)
	}
	if _, err := s.Newest(); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "/home/me/project") {
		t.Errorf("the newest of none: %v", err)
	}
	a := write(t, s, story()...)
	b := write(t, other, func(l *Log) error {
		return l.Message(user("\n \x1b[31m\tred\u202e alert " + strings.Repeat("é", 200) + "\nmore"))
	})
	long := write(t, s, func(l *Log) error { return l.Message(user("a title\n" + strings.Repeat("x", 4*maxInline))) },
		func(l *Log) error { return l.Message(says(strings.Repeat("y", maxInline-1000))) })
	// Taken up again, the first becomes the newest.
	l, _, err := s.Resume(idOf(a))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Message(user("again")), l.Close()); err != nil {
		t.Fatal(err)
	}
	junk := plant(t, s, []byte("no log\n"))
	old := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := os.Chtimes(junk, old, old); err != nil {
		t.Fatal(err)
	}
	for _, trap := range []string{"x.txt", "y" + suffix + ".lock"} {
		if err := os.WriteFile(filepath.Join(s.dir, trap), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(filepath.Join(s.dir, trap))
	}
	type line struct {
		ID, Workspace, Title string
		Turns                int
	}
	brief := func(infos []Info) []line {
		var out []line
		for _, i := range infos {
			out = append(out, line{i.ID, i.Workspace, i.Title, i.Turns})
		}
		return out
	}
	first := line{idOf(a), "/home/me/project", "Rename the file", 3}
	second := line{idOf(long), "/home/me/project", "a title", 1}
	third := line{idOf(b), "/elsewhere", "[31m red alert " + strings.Repeat("é", 104) + "…", 1}
	last := line{ID: idOf(junk)}
	for all, want := range map[bool][]line{true: {first, second, third, last}, false: {first, second, last}} {
		infos, err := s.List(all)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, brief(infos)); d != "" {
			t.Errorf("all %v (-want +got)\n%s", all, d)
		}
		// What a list tells is what reading tells.
		for _, i := range infos[:len(infos)-1] {
			if d := cmp.Diff(read(t, s, i.Path).Info, i); d != "" {
				t.Errorf("list and reading differ (-read +list)\n%s", d)
			}
		}
	}
	if n, err := s.Newest(); err != nil || n.ID != idOf(a) {
		t.Errorf("newest: %v %v", n, err)
	}
}

func TestPrefix(t *testing.T) {
	s := newStore(t)
	other := New(Options{Root: s.root, Workspace: "/elsewhere", Now: s.now})
	for dir, ids := range map[string][]string{
		s.dir:     {"aaaa1111-0000-4000-8000-000000000000", "aaaa2222-0000-4000-8000-000000000000"},
		other.dir: {"aaaa1199-0000-4000-8000-000000000000", "bbbb0000-0000-4000-8000-000000000000"},
	} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if err := os.WriteFile(filepath.Join(dir, id+suffix), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		prefix, id string
		err        error
		says       string
	}{
		{"aaaa1", "aaaa1111-0000-4000-8000-000000000000", nil, ""}, // ours comes first
		{" AAAA2222 ", "aaaa2222-0000-4000-8000-000000000000", nil, ""},
		{"b", "bbbb0000-0000-4000-8000-000000000000", nil, ""},
		{"aaaa", "", ErrAmbiguous, "aaaa fits 2, among them aaaa1111-0000-4000-8000-000000000000, aaaa2222"},
		{"cc", "", ErrNotFound, "no such session: cc"},
		{"", "", ErrNotFound, "is not the beginning of a session id"},
		{"../x", "", ErrNotFound, "is not the beginning of a session id"},
	} {
		st, err := s.Read(c.prefix)
		switch {
		case !errors.Is(err, c.err) || err != nil && !strings.Contains(err.Error(), c.says):
			t.Errorf("%q: %v", c.prefix, err)
		case err == nil && st.ID != c.id:
			t.Errorf("%q: %s, want %s", c.prefix, st.ID, c.id)
		}
	}
}

// A pipe or a link in a log's place hangs nothing and leads nowhere.
func TestTraps(t *testing.T) {
	s := newStore(t)
	path := plant(t, s, nil)
	target := filepath.Join(s.root, "target")
	if err := errors.Join(os.Remove(path), os.WriteFile(target, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Skip(err)
	}
	if _, err := s.Read(idOf(path)); !errors.Is(err, ErrNotFound) {
		t.Errorf("Read: %v", err)
	}
	if _, _, err := s.resume(path); err == nil {
		t.Error("a link was opened to write")
	}
	if i := peek(path); i.Bytes != 0 || !i.Updated.IsZero() {
		t.Errorf("listed: %v", i)
	}
}

// Where no directory can be made, the first event says so, and nothing is lost
// when it can be made later.
func TestNoDirectory(t *testing.T) {
	s := newStore(t)
	if err := os.WriteFile(s.root, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l := s.Create(Header{})
	if err := l.Message(user("hi")); err == nil || !strings.Contains(err.Error(), "writing the session log "+l.Path()) {
		t.Errorf("got %v", err)
	}
	if err := os.Remove(s.root); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Message(user("there?")), l.Close()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]msg.Message{user("hi"), user("there?")}, read(t, s, l.Path()).Messages); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestExport(t *testing.T) {
	s := newStore(t)
	path := write(t, s, append(story(), func(l *Log) error {
		return l.Message(calls(msg.Call{ID: "c4", Name: "a`b", Args: "```\n# not a title\n```"}))
	}, func(l *Log) error {
		return l.Message(says("bye\x1b[2J\u202e"))
	})...)
	for format, golden := range map[ExportFormat]string{Markdown: "export.md", JSON: "export.json"} {
		var b bytes.Buffer
		if err := s.Export(&b, idOf(path), format); err != nil {
			t.Fatal(err)
		}
		got := strings.NewReplacer(idOf(path), "ID", filepath.ToSlash(s.dir), "DIR").Replace(b.String())
		name := filepath.Join("testdata", golden)
		if *update {
			if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if d := cmp.Diff(string(contents(t, name)), got); d != "" {
			t.Errorf("%s (-want +got)\n%s", golden, d)
		}
	}
	if err := s.Export(io.Discard, idOf(path), "yaml"); err == nil || !strings.Contains(err.Error(), `markdown or json, not "yaml"`) {
		t.Errorf("yaml: %v", err)
	}
	if err := s.Export(failing{}, idOf(path), Markdown); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a closed pipe: %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func init() {
	helpers["end"] = func([]string) error { return nil }
	helpers["hold"] = func(args []string) error {
		s := New(Options{Root: args[0], Workspace: "/home/me/project"})
		if args[2] == "beside" {
			s.sys.lock = func(file) error { return errNoLocks }
		}
		l, _, err := s.Resume(args[1])
		if err != nil {
			return err
		}
		if err := l.Message(user("from the other process")); err != nil {
			return err
		}
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return l.Close()
	}
}

// While one process writes, another one can read but not write; when it is
// killed, the session is free again. The second way is for systems without
// locks.
func TestTwoProcesses(t *testing.T) {
	for _, way := range []string{"flock", "beside"} {
		t.Run(way, func(t *testing.T) {
			s := newStore(t)
			if way == "beside" {
				s.sys.lock = func(file) error { return errNoLocks }
			}
			path := write(t, s, story()...)
			cmd := exec.Command(os.Args[0], s.root, idOf(path), way)
			cmd.Env = append(os.Environ(), "CAPSTAN_SESSION_HELPER=hold")
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer stdin.Close()
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
				t.Fatalf("%q %v", line, err)
			}
			if _, _, err := s.Resume(idOf(path)); !errors.Is(err, ErrBusy) {
				t.Errorf("while it is written: %v", err)
			}
			if d := cmp.Diff(append(told(), user("from the other process")), read(t, s, path).Messages); d != "" {
				t.Errorf("read meanwhile (-want +got)\n%s", d)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if st := resume(t, s, path); len(st.Messages) != len(told())+1 || st.Notes != nil {
				t.Errorf("after the kill: %d messages, notes %q", len(st.Messages), st.Notes)
			}
		})
	}
}

// Two logs of one process are two writers as well.
func TestSameProcess(t *testing.T) {
	s := newStore(t)
	path := write(t, s, story()...)
	l, _, err := s.Resume(idOf(path))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Resume(idOf(path)); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	resume(t, s, path)
}

// A lock file goes by who made it.
func TestLockBeside(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	gone := exec.Command(os.Args[0])
	gone.Env = append(os.Environ(), "CAPSTAN_SESSION_HELPER=end")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, text string
		busy       bool
	}{
		{"of a process that is gone", holderText(gone.Process.Pid, host), false},
		{"of this process", holderText(os.Getpid(), host), true},
		{"of another machine", holderText(gone.Process.Pid, host+"-2"), true},
		{"of nobody", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "x.lock")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			unlock, err := lockBeside(path)
			if c.busy {
				if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "remove "+path) || string(contents(t, path)) != c.text {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := lockBeside(path); !errors.Is(err, ErrBusy) {
				t.Errorf("a second time: %v", err)
			}
			unlock()
			if left, _ := os.ReadDir(dir); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func holderText(pid int, host string) string {
	b, _ := json.Marshal(holder{PID: pid, Host: host})
	return string(b)
}
