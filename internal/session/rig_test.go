package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"capstan/internal/msg"
)

// helpers are what a second process of this test binary does.
var helpers = map[string]func(args []string) error{}

// clock returns a time that moves on by a second with each call.
func clock() func() time.Time {
	t := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return func() time.Time {
		t = t.Add(time.Second)
		return t
	}
}

func newStore(t testing.TB) *Store {
	t.Helper()
	s := New(Options{Root: filepath.Join(t.TempDir(), "sessions"), Workspace: "/home/me/project", Now: clock()})
	t.Cleanup(func() { nothingLeft(t, s) })
	return s
}

// nothingLeft fails the test when a lock or an unfinished file was left.
func nothingLeft(t testing.TB, s *Store) {
	t.Helper()
	_ = filepath.WalkDir(s.root, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (strings.Contains(path, ".lock") || strings.Contains(path, unfinished)) {
			t.Errorf("left behind: %s", path)
		}
		return nil
	})
}

func user(text string) msg.Message {
	return msg.Message{Role: msg.User, Parts: []msg.Part{msg.TextPart(text)}}
}

func says(text string) msg.Message {
	return msg.Message{Role: msg.Assistant, Origin: "openai/test", Parts: []msg.Part{msg.TextPart(text)}}
}

func calls(c ...msg.Call) msg.Message {
	m := msg.Message{Role: msg.Assistant, Origin: "openai/test"}
	for i := range c {
		m.Parts = append(m.Parts, msg.Part{Kind: msg.CallPart, Call: &c[i]})
	}
	return m
}

func ok(id, name, text string) msg.Result {
	return msg.Result{CallID: id, Name: name, Status: "success", Parts: []msg.Part{msg.TextPart(text)}}
}

func results(r ...msg.Result) msg.Message { return msg.Message{Role: msg.Tool, Results: r} }

var png = []byte("\x89PNG\r\n\x1a\n\x00 not really a picture")

// story is a session in which most things happen: a picture, two calls at once
// of which one is a program with a nested call, results out of order, three
// turns.
type step func(*Log) error

func story() []step {
	say := func(m msg.Message) step { return func(l *Log) error { return l.Message(m) } }
	start := func(s Start) step { return func(l *Log) error { return l.Start(s) } }
	result := func(parent string, r msg.Result) step { return func(l *Log) error { return l.Result(parent, r) } }
	ask := user("Rename the file\nand tell me.")
	ask.Parts = append(ask.Parts, msg.Part{Kind: msg.Image, MIMEType: "image/png", Data: png, Name: "shot.png"})
	two := calls(msg.Call{ID: "c1", Name: "read_file", Args: `{"path":"a.txt"}`}, msg.Call{ID: "c2", Name: "exec", Args: `{"source":"await tools.write_file({path:'b.txt'})"}`})
	two.Parts = append([]msg.Part{{Kind: msg.Reasoning, Text: "let me see", State: json.RawMessage(`{"signature":"c2lnbmVk"}`)}}, two.Parts...)
	return []step{
		say(ask),
		say(two),
		start(Start{ID: "c1", Name: "read_file"}),
		start(Start{ID: "c2", Name: "exec", Mutates: true}),
		start(Start{ID: "c2.1", Name: "write_file", ParentID: "c2", Args: `{"path":"b.txt"}`, Mutates: true}),
		result("c2", ok("c2.1", "write_file", "written")),
		result("", ok("c2", "exec", "done")),
		func(l *Log) error { return l.Message(results(ok("c1", "read_file", "héllo\n"))) },
		func(l *Log) error { return l.Set("todo", []string{"rename", "tell"}) },
		say(says("Renamed.")),
		func(l *Log) error {
			return l.EndTurn(TurnEnd{"finished", msg.Usage{Input: 100, Cached: 40, Output: 7}})
		},
		say(user("Thanks, and the other one?")),
		say(calls(msg.Call{ID: "c3", Name: "run_shell_command", Args: `{"command": `, Fault: "cut off"})),
		result("", msg.Result{CallID: "c3", Name: "run_shell_command", Status: "error", Code: "INVALID_ARGS", Parts: []msg.Part{msg.TextPart("cut off")}}),
		func(l *Log) error { return l.EndTurn(TurnEnd{"interrupted", msg.Usage{Input: 10, Output: 1}}) },
	}
}

// told are the messages of the whole story.
func told() []msg.Message {
	ask := user("Rename the file\nand tell me.")
	ask.Parts = append(ask.Parts, msg.Part{Kind: msg.Image, MIMEType: "image/png", Data: png, Name: "shot.png"})
	two := calls(msg.Call{ID: "c1", Name: "read_file", Args: `{"path":"a.txt"}`}, msg.Call{ID: "c2", Name: "exec", Args: `{"source":"await tools.write_file({path:'b.txt'})"}`})
	two.Parts = append([]msg.Part{{Kind: msg.Reasoning, Text: "let me see", State: json.RawMessage(`{"signature":"c2lnbmVk"}`)}}, two.Parts...)
	return []msg.Message{
		ask, two,
		results(ok("c1", "read_file", "héllo\n"), ok("c2", "exec", "done")),
		says("Renamed."),
		user("Thanks, and the other one?"),
		calls(msg.Call{ID: "c3", Name: "run_shell_command", Args: `{"command": `, Fault: "cut off"}),
		results(msg.Result{CallID: "c3", Name: "run_shell_command", Status: "error", Code: "INVALID_ARGS", Parts: []msg.Part{msg.TextPart("cut off")}}),
	}
}

// write keeps a session with these steps and returns its log's path.
func write(t testing.TB, s *Store, steps ...step) string {
	t.Helper()
	l := s.Create(Header{Dir: "/home/me/project/sub", Version: "1.0", Model: "openai/test", Mode: "code"})
	for i, f := range steps {
		if err := f(l); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Path()
}

func read(t testing.TB, s *Store, path string) *State {
	t.Helper()
	st, err := s.Read(idOf(path))
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func contents(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// plant makes a log with these bytes.
func plant(t testing.TB, s *Store, data []byte) string {
	t.Helper()
	path := filepath.Join(s.dir, "deadbeef-0000-4000-8000-000000000000"+suffix)
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// disk is a file whose faults a test chooses.
type disk struct {
	*os.File
	room       *int // bytes that still fit; nil means no limit
	noTruncate bool
	sync       func() error // nil means that it works, without touching the disk
	wrote      func()
}

func (d *disk) Write(b []byte) (int, error) {
	if d.wrote != nil {
		defer d.wrote()
	}
	if d.room == nil || len(b) <= *d.room {
		if d.room != nil {
			*d.room -= len(b)
		}
		return d.File.Write(b)
	}
	n, err := d.File.Write(b[:*d.room])
	*d.room = 0
	return n, errors.Join(err, syscall.ENOSPC)
}

func (d *disk) Truncate(size int64) error {
	if d.noTruncate {
		return syscall.EIO
	}
	return d.File.Truncate(size)
}

func (d *disk) Sync() error {
	if d.sync != nil {
		return d.sync()
	}
	return nil
}

// on makes the store use d for the files that it writes.
func (s *Store) on(d disk) *Store {
	s.sys.syncDir = func(string) {}
	s.sys.open = func(path string, flag int) (file, error) {
		f, err := os.OpenFile(path, flag, 0o600)
		if err != nil {
			return nil, err
		}
		d := d
		d.File = f
		return &d, nil
	}
	return s
}

// offsets are the bytes at which a log is cut or a disk is full: those about
// the ends of lines, and every nth. The race detector, which is slow, gets
// fewer.
func offsets(log []byte, nth int) []int {
	if raceEnabled {
		nth *= 11
	}
	var at []int
	for n := range len(log) + 1 {
		if n%nth == 0 || bytes.IndexByte(log[max(0, n-2):min(len(log), n+2)], '\n') >= 0 {
			at = append(at, n)
		}
	}
	return at
}
