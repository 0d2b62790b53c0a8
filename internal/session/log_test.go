package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"capstan/internal/msg"
)

func TestWhatWasWrittenIsRead(t *testing.T) {
	s := newStore(t)
	path := write(t, s, story()...)
	got := read(t, s, path)
	want := &State{
		Info: Info{
			ID: idOf(path), Path: path, Workspace: "/home/me/project", Dir: "/home/me/project/sub",
			Title: "Rename the file", Model: "openai/test", Turns: 2, Bytes: int64(len(contents(t, path))),
			Created: time.Date(2026, 3, 1, 12, 0, 1, 0, time.UTC), Updated: time.Date(2026, 3, 1, 12, 0, 15, 0, time.UTC),
		},
		Header:   Header{Format: 1, ID: idOf(path), Workspace: "/home/me/project", Dir: "/home/me/project/sub", Version: "1.0", Model: "openai/test", Mode: "code"},
		Messages: told(),
		Values:   map[string]json.RawMessage{"todo": json.RawMessage(`["rename","tell"]`)},
		Usage:    msg.Usage{Input: 110, Cached: 40, Output: 8},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// A session is the user's own, and nobody else's.
func TestModes(t *testing.T) {
	s := newStore(t)
	path := write(t, s, story()...)
	for p, want := range map[string]os.FileMode{
		s.root: 0o700 | os.ModeDir, s.dir: 0o700 | os.ModeDir, path: 0o600,
		strings.TrimSuffix(path, suffix) + ".files": 0o700 | os.ModeDir,
	} {
		info, err := os.Stat(p)
		if err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v, want %v", p, info.Mode(), err, want)
		}
	}
}

// A session in which nothing was said leaves nothing behind.
func TestEmptySessionMakesNoFile(t *testing.T) {
	s := newStore(t)
	if err := s.Create(Header{}).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.root); !os.IsNotExist(err) {
		t.Errorf("the root was made: %v", err)
	}
}

// Wherever a log is cut, resuming it works, loses at most the event that was
// cut, says so, and changes no byte that was there. BUG-SR-01
func TestCutAtEveryByte(t *testing.T) {
	s := newStore(t)
	path := write(t, s, story()...)
	log := contents(t, path)
	s.on(disk{})
	for _, n := range offsets(log, 1) {
		if err := os.WriteFile(path, log[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		l, got, err := s.Resume(idOf(path))
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		checkCut(t, s, path, log, n, got)
		if err := errors.Join(l.Message(user("go on")), l.Close()); err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		after := read(t, s, path)
		if d := cmp.Diff(append(got.Messages, user("go on")), after.Messages); d != "" {
			t.Fatalf("cut at %d, resumed and read again (-want +got)\n%s", n, d)
		}
		if now := contents(t, path); !bytes.HasPrefix(now, log[:n]) {
			t.Fatalf("cut at %d: what was there has changed", n)
		}
		if t.Failed() {
			return
		}
	}
}

// checkCut compares what was read of log[:n] with what its whole lines say.
func checkCut(t *testing.T, s *Store, path string, log []byte, n int, got *State) {
	t.Helper()
	whole := bytes.LastIndexByte(log[:n], '\n') + 1
	torn := n > whole
	if n < len(log) && log[n] == '\n' {
		whole, torn = n, false // only the end of the line is gone
	}
	f, _, err := s.foldFrom(bytes.NewReader(log[:whole]), path)
	if err != nil {
		t.Fatal(err)
	}
	want := f.finish()
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(State{}, "Notes", "Bytes")); d != "" {
		t.Errorf("cut at %d (-want +got)\n%s", n, d)
	}
	damaged := strings.Contains(strings.Join(got.Notes, "\n"), "1 line is damaged and skipped")
	if damaged != torn {
		t.Errorf("cut at %d: torn %v, notes %q", n, torn, got.Notes)
	}
}

// A full disk is an error for every event that does not fit, and when there is
// room again nothing is missing. Where the torn piece can be cut off, no damage
// is left either.
func TestFullDisk(t *testing.T) {
	for _, noTruncate := range []bool{false, true} {
		log := contents(t, write(t, newStore(t), story()...))
		for _, room := range offsets(log, 7) {
			fullDisk(t, room, noTruncate)
			if t.Failed() {
				return
			}
		}
	}
}

func fullDisk(t *testing.T, room int, noTruncate bool) {
	t.Helper()
	left := room
	root, err := os.MkdirTemp("", "capstan-session-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(root)
	s := New(Options{Root: root, Workspace: "/w", Now: clock()}).on(disk{room: &left, noTruncate: noTruncate})
	l := s.Create(Header{})
	var failed error
	for _, f := range story() {
		if err := f(l); err != nil {
			failed = err
		}
	}
	if failed != nil && (!errors.Is(failed, syscall.ENOSPC) && !strings.Contains(failed.Error(), "not written yet")) {
		t.Errorf("room for %d: %v", room, failed)
	}
	if before, err := s.Read(l.ID()); err == nil && !isPrefix(before.Messages, told()) {
		t.Errorf("room for %d: while it is full the log says\n%v", room, before.Messages)
	}
	left = 1 << 30
	if err := errors.Join(l.Message(user("go on")), l.Close()); err != nil {
		t.Errorf("room for %d: there is room again, yet: %v", room, err)
	}
	st, err := s.Read(l.ID())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(append(told(), user("go on")), st.Messages); d != "" {
		t.Errorf("room for %d (-want +got)\n%s", room, d)
	}
	if !noTruncate && st.Notes != nil {
		t.Errorf("room for %d: %q", room, st.Notes)
	}
	nothingLeft(t, s)
}

// isPrefix reports whether got begins want, but for results that are made up.
func isPrefix(got, want []msg.Message) bool {
	for i, m := range got {
		if m.Role != msg.Tool && !cmp.Equal(m, want[i]) {
			return false
		}
	}
	return true
}

// After a failed sync no later one can be believed.
func TestFailedSyncEndsTheLog(t *testing.T) {
	fail := true
	s := newStore(t).on(disk{sync: func() error {
		if fail {
			return syscall.EIO
		}
		return nil
	}})
	l := s.Create(Header{})
	if err := l.Message(user("hi")); err != nil {
		t.Fatal(err)
	}
	if err := l.Start(Start{ID: "c1", Name: "write_file", Mutates: true}); !errors.Is(err, syscall.EIO) {
		t.Errorf("Start: %v", err)
	}
	fail = false
	for _, err := range []error{l.Message(user("more")), l.EndTurn(TurnEnd{}), l.Close()} {
		if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "cannot be resumed safely") {
			t.Errorf("got %v", err)
		}
	}
	if err := l.Message(user("x")); !errors.Is(err, errClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// A log that is removed or replaced while it is written is an error at the next
// sync: what went into it is gone.
func TestRemovedLog(t *testing.T) {
	for _, replace := range []bool{false, true} {
		s := newStore(t)
		l := s.Create(Header{})
		err := errors.Join(l.Message(user("hi")), l.EndTurn(TurnEnd{}), os.Remove(l.Path()))
		if replace {
			err = errors.Join(err, os.WriteFile(l.Path(), nil, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := l.EndTurn(TurnEnd{}); err == nil || !strings.Contains(err.Error(), "somebody removed it") {
			t.Errorf("replaced %v: %v", replace, err)
		}
		if err := l.Close(); err == nil {
			t.Error("Close has forgotten it")
		}
	}
}

// The log is on the disk before a mutating call runs and when a turn is over,
// and at no other time.
func TestWhenItSyncs(t *testing.T) {
	n := 0
	s := newStore(t).on(disk{sync: func() error { n++; return nil }})
	l := s.Create(Header{})
	for _, c := range []struct {
		what string
		do   func() error
		want int
	}{
		{"message", func() error { return l.Message(user("hi")) }, 0},
		{"reading call", func() error { return l.Start(Start{ID: "c1", Name: "read_file"}) }, 0},
		{"mutating call", func() error { return l.Start(Start{ID: "c2", Name: "write_file", Mutates: true}) }, 1},
		{"result", func() error { return l.Result("", ok("c2", "write_file", "")) }, 1},
		{"turn", func() error { return l.EndTurn(TurnEnd{}) }, 2},
		{"compaction", func() error { return l.Compact(nil) }, 3},
		{"close", l.Close, 4},
	} {
		if err := c.do(); err != nil || n != c.want {
			t.Errorf("after %s: %d syncs, want %d (%v)", c.what, n, c.want, err)
		}
	}
}

// Calls that start while another one syncs share the next sync.
func TestSyncsAreShared(t *testing.T) {
	const others = 8
	var n int
	wrote := make(chan struct{}, 100)
	began, release := make(chan struct{}), make(chan struct{})
	s := newStore(t).on(disk{wrote: func() { wrote <- struct{}{} }, sync: func() error {
		if n++; n == 1 {
			close(began)
			<-release
		}
		return nil
	}})
	l := s.Create(Header{})
	var wg sync.WaitGroup
	start := func(i int) {
		wg.Go(func() {
			if err := l.Start(Start{ID: fmt.Sprint(i), Name: "write_file", Mutates: true}); err != nil {
				t.Error(err)
			}
		})
	}
	start(0)
	<-began
	for i := range others {
		start(i + 1)
	}
	for range others + 2 { // the header, and one line each
		<-wrote
	}
	close(release)
	wg.Wait()
	if n != 2 {
		t.Errorf("%d syncs for %d calls, want 2", n, others+1)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestManyWritersOfOneLog(t *testing.T) {
	s := newStore(t)
	l := s.Create(Header{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				if err := l.Message(user(fmt.Sprintf("%d %d", i, j))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	st := read(t, s, l.Path())
	if len(st.Messages) != 400 || st.Notes != nil {
		t.Errorf("%d messages, notes %q", len(st.Messages), st.Notes)
	}
}

// What was compacted away is still in the log, and no longer the model's.
func TestCompact(t *testing.T) {
	s := newStore(t)
	kept := calls(msg.Call{ID: "c9", Name: "glob", Args: "{}"})
	path := write(t, s, append(story(), func(l *Log) error {
		return l.Compact([]msg.Message{user("Summary: renamed."), kept, results(ok("c9", "glob", "a"))})
	}, func(l *Log) error { return l.Message(says("Good.")) })...)
	st := read(t, s, path)
	want := []msg.Message{user("Summary: renamed."), kept, results(ok("c9", "glob", "a")), says("Good.")}
	if d := cmp.Diff(want, st.Messages); d != "" || st.Notes != nil {
		t.Errorf("notes %q (-want +got)\n%s", st.Notes, d)
	}
	var b bytes.Buffer
	if err := s.Export(&b, idOf(path), Markdown); err != nil || !strings.Contains(b.String(), "Thanks, and the other one?") {
		t.Errorf("the export has lost what was compacted (%v):\n%s", err, b.String())
	}
}
