package session

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"capstan/internal/msg"
)

func lines(log []byte) []string {
	return strings.SplitAfter(strings.TrimSuffix(string(log), "\n"), "\n")
}

// edit returns a log whose lines f has changed.
func edit(log []byte, f func([]string) []string) []byte {
	return []byte(strings.Join(f(lines(log)), ""))
}

// Damage costs the lines that it is in, is counted, and what follows is used.
// BUG-SR-03
func TestDamage(t *testing.T) {
	s := newStore(t)
	path := write(t, s, story()...)
	log := contents(t, path)
	without := func(i int) []msg.Message { // the messages without the story's line i
		f, _, err := s.foldFrom(bytes.NewReader(edit(log, func(l []string) []string { return append(append([]string{}, l[:i]...), l[i+1:]...) })), path)
		if err != nil {
			t.Fatal(err)
		}
		return f.finish().Messages
	}
	insert := func(at int, line string) []byte {
		return edit(log, func(l []string) []string {
			return append(append(append([]string{}, l[:at]...), line), l[at:]...)
		})
	}
	replace := func(at int, line string) []byte {
		return edit(log, func(l []string) []string { l = append([]string{}, l...); l[at] = line; return l })
	}
	for _, c := range []struct {
		name string
		log  []byte
		want []msg.Message
		note string
	}{
		{"zero bytes on a line of their own", insert(5, strings.Repeat("\x00", 400)+"\n"), told(), "1 line is damaged and skipped (line 6)"},
		{"zero bytes before a line", edit(log, func(l []string) []string { l[5] = strings.Repeat("\x00", 400) + l[5]; return l }), told(), ""},
		{"a line without sense", insert(3, "hello\n"), told(), "1 line is damaged and skipped (line 4)"},
		{"JSON that is no event", insert(3, "null\n[1]\n{}\n"), told(), "3 lines are damaged and skipped (line 4, 5, 6)"},
		{"a line too long", insert(3, strings.Repeat("x", 3*maxLine)+"\n"), told(), "1 line is damaged and skipped (line 4)"},
		{"numbers too large", insert(3, `{"kind":"message","seq":9223372036854775807}`+"\n"), told(), "1 line is damaged and skipped (line 4)"},
		{"empty lines", insert(3, "\n\r\n\n"), told(), ""},
		{"carriage returns", bytes.ReplaceAll(log, []byte("\n"), []byte("\r\n")), told(), ""},
		{"a kind that is not known", insert(3, `{"kind":"mood","seq":2}`+"\n"), told(), "1 event is of a kind that this version does not know, skipped"},
		{"a damaged message", replace(10, "{\"kind\":\"mess\n"), without(10), "1 line is damaged and skipped (line 11)"},
		{"a line taken out", edit(log, func(l []string) []string { return append(append([]string{}, l[:10]...), l[11:]...) }), without(10), "1 event is missing before line 11"},
		{"no header", []byte(strings.Join(lines(log)[1:], "")), told(), "the header is missing"},
		{"a result for no call", insert(3, `{"kind":"result","seq":2,"result":{"callId":"zz","status":"success"}}`+"\n"), told(), "1 result has no call in the log, skipped"},
		{"a second result", insert(9, `{"kind":"result","seq":8,"result":{"callId":"c2","status":"error"}}`+"\n"), told(), "1 result belongs to a call that has one already, skipped"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(path, c.log, 0o600); err != nil {
				t.Fatal(err)
			}
			st := read(t, s, path)
			if d := cmp.Diff(c.want, st.Messages); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			notes := strings.Join(st.Notes, "\n")
			if !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
			resumedTwice(t, s, path)
		})
	}
}

// resumedTwice checks that a repair is recorded once, changes nothing that was
// there, and is not needed again.
func resumedTwice(t *testing.T, s *Store, path string) {
	t.Helper()
	before := contents(t, path)
	first := resume(t, s, path)
	once := contents(t, path)
	second := resume(t, s, path)
	if !bytes.HasPrefix(once, before) {
		t.Error("resuming changed what was there")
	}
	if twice := contents(t, path); !bytes.Equal(once, twice) {
		t.Errorf("resuming again added %q", twice[len(once):])
	}
	if d := cmp.Diff(first.Messages, second.Messages); d != "" {
		t.Errorf("the second time is different (-first +second)\n%s", d)
	}
}

func resume(t *testing.T, s *Store, path string) *State {
	t.Helper()
	l, st, err := s.Resume(idOf(path))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return st
}

// A log of a later format is refused as a whole, with the way out.
func TestNewerFormat(t *testing.T) {
	s := newStore(t)
	path := plant(t, s, []byte(`{"kind":"header","seq":0,"header":{"format":2,"id":"x"}}`+"\n"))
	_, err := s.Read(idOf(path))
	if !errors.Is(err, errNewer) || !strings.Contains(err.Error(), "update Capstan") {
		t.Errorf("Read: %v", err)
	}
	if _, _, err := s.Resume(idOf(path)); !errors.Is(err, errNewer) {
		t.Errorf("Resume: %v", err)
	}
	if l, err := s.List(false); err != nil || len(l) != 1 {
		t.Errorf("it is not listed: %v %v", l, err)
	}
}

// A call that never started, one that ran, and a program that ran with calls of
// its own each get the result that says so; the repair is in the log.
func TestCallsWithoutResult(t *testing.T) {
	s := newStore(t)
	three := calls(msg.Call{ID: "a", Name: "write_file", Args: `{"path":"x"}`}, msg.Call{ID: "b", Name: "read_file"}, msg.Call{ID: "p", Name: "exec"}, msg.Call{ID: "d", Name: "glob"})
	path := write(t, s,
		func(l *Log) error { return l.Message(user("go")) },
		func(l *Log) error { return l.Message(three) },
		func(l *Log) error { return l.Start(Start{ID: "a", Name: "write_file", Mutates: true}) },
		func(l *Log) error { return l.Result("", ok("d", "glob", "x")) },
		func(l *Log) error { return l.Start(Start{ID: "p", Name: "exec"}) },
		func(l *Log) error {
			return l.Start(Start{ID: "p.1", Name: "edit", ParentID: "p", Args: `{"path":"y"}`, Mutates: true})
		},
		func(l *Log) error { return l.Result("p", ok("p.1", "edit", "edited")) },
		func(l *Log) error {
			return l.Start(Start{ID: "p.2", Name: "run_shell_command", ParentID: "p", Args: `{"command":"make"}`, Mutates: true})
		})
	gone := func(id, name, code, text string) msg.Result {
		return msg.Result{CallID: id, Name: name, Status: "error", Code: code, Parts: []msg.Part{msg.TextPart(text)}}
	}
	const unknown = "TOOL_OUTCOME_UNKNOWN: the session ended while this call ran. It may have had its effect, wholly, in part or not at all: look before you repeat it."
	a := gone("a", "write_file", "TOOL_OUTCOME_UNKNOWN", unknown)
	b := gone("b", "read_file", "TOOL_NOT_STARTED", "TOOL_NOT_STARTED: the session ended before this call was started. It had no effect.")
	p := gone("p", "exec", "TOOL_OUTCOME_UNKNOWN", unknown+"\nCalls that it had made:\n- success: edit {\"path\":\"y\"}\n- outcome unknown: run_shell_command {\"command\":\"make\"}")
	want := &State{
		Messages:   []msg.Message{user("go"), three, results(a, b, p, ok("d", "glob", "x"))},
		Repaired:   []msg.Result{a, b, p},
		Unfinished: true,
		Notes: []string{
			"call a of write_file has no result: TOOL_OUTCOME_UNKNOWN",
			"call b of read_file has no result: TOOL_NOT_STARTED",
			"call p of exec has no result: TOOL_OUTCOME_UNKNOWN",
		},
	}
	ignore := cmpopts.IgnoreFields(State{}, "Info", "Header", "Values")
	if d := cmp.Diff(want, read(t, s, path), ignore); d != "" {
		t.Errorf("read (-want +got)\n%s", d)
	}
	if d := cmp.Diff(want, resume(t, s, path), ignore); d != "" {
		t.Errorf("resumed (-want +got)\n%s", d)
	}
	want.Repaired, want.Notes = nil, nil
	if d := cmp.Diff(want, resume(t, s, path), ignore); d != "" {
		t.Errorf("resumed again (-want +got)\n%s", d)
	}
	if n := bytes.Count(contents(t, path), []byte(`"repaired":true`)); n != 3 {
		t.Errorf("the log has %d repairs, want 3", n)
	}
}

// Calls made at once are siblings: every result is loaded, whatever the order
// in which they settled. BUG-SR-05
func TestParallelCalls(t *testing.T) {
	const n = 20
	s := newStore(t)
	var cs []msg.Call
	var want []msg.Result
	for i := range n {
		id := fmt.Sprintf("c%d", i)
		cs = append(cs, msg.Call{ID: id, Name: "exec", Args: "{}"})
		want = append(want, ok(id, "exec", id))
	}
	path := write(t, s, func(l *Log) error {
		err := l.Message(calls(cs...))
		for i := range n {
			err = errors.Join(err, l.Start(Start{ID: cs[i].ID, Name: "exec"}), l.Start(Start{ID: cs[i].ID + ".1", Name: "glob", ParentID: cs[i].ID}))
		}
		for i := range n {
			id := cs[(i*7)%n].ID
			err = errors.Join(err, l.Result(id, ok(id+".1", "glob", "x")), l.Result("", ok(id, "exec", id)))
		}
		return errors.Join(err, l.Message(says("done")))
	})
	st := read(t, s, path)
	if d := cmp.Diff([]msg.Message{calls(cs...), results(want...), says("done")}, st.Messages); d != "" || st.Notes != nil {
		t.Errorf("notes %q (-want +got)\n%s", st.Notes, d)
	}
}

// A picture lies beside the log, once, and is told of when it is lost.
func TestBlobs(t *testing.T) {
	s := newStore(t)
	pic := msg.Part{Kind: msg.Image, MIMEType: "image/png", Data: png}
	twice := msg.Message{Role: msg.User, Parts: []msg.Part{pic, msg.TextPart("and"), pic}}
	long := says(strings.Repeat("é", maxInline))
	path := write(t, s,
		func(l *Log) error { return l.Message(twice) },
		func(l *Log) error { return l.Message(long) },
		func(l *Log) error { return l.Message(user("end")) })
	if d := cmp.Diff([]msg.Message{twice, long, user("end")}, read(t, s, path).Messages); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	for i, line := range lines(contents(t, path)) {
		if len(line) > maxInline || strings.Contains(line, "iVBOR") {
			t.Errorf("line %d has %d bytes: %.200s", i+1, len(line), line)
		}
	}
	files, err := filepath.Glob(strings.TrimSuffix(path, suffix) + ".files/*")
	if err != nil || len(files) != 2 {
		t.Fatalf("files: %v %v, want the picture and the long message", files, err)
	}
	for _, f := range files {
		data := contents(t, f)
		data[len(data)-1] ^= 1
		if err := os.WriteFile(f, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	st := read(t, s, path)
	lost := msg.TextPart("[image image/png, 30 bytes, lost]")
	want := []msg.Message{{Role: msg.User, Parts: []msg.Part{lost, msg.TextPart("and"), lost}}, user("end")}
	if d := cmp.Diff(want, st.Messages); d != "" {
		t.Errorf("with changed files (-want +got)\n%s", d)
	}
	if n := strings.Join(st.Notes, "\n"); !strings.Contains(n, "has changed") || !strings.Contains(n, "1 line is damaged and skipped (line 3)") {
		t.Errorf("notes: %s", n)
	}
	// A session that is gone on with has the picture again.
	l, _, err := s.Resume(idOf(path))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Message(twice), l.Close()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]msg.Message{twice, user("end"), twice}, read(t, s, path).Messages); d != "" {
		t.Errorf("with the picture again (-want +got)\n%s", d)
	}
}

// A line cannot name a file outside of its session.
func TestBlobNames(t *testing.T) {
	s := newStore(t)
	secret := filepath.Join(s.root, "secret.txt")
	path := plant(t, s, nil)
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, b := range []blob{
		{SHA256: "../../secret", Ext: ".txt", Bytes: 1},
		{SHA256: strings.Repeat("a", 64), Ext: "/../../secret.txt", Bytes: 1},
		{SHA256: strings.Repeat(".", 64), Ext: ".txt", Bytes: 1},
	} {
		if data, err := s.files(path).get(b); err == nil || !strings.Contains(err.Error(), "named by no hash") {
			t.Errorf("%v: %q %v", b, data, err)
		}
	}
}

// What a crash left unfinished goes when the session is taken up again.
func TestUnfinishedFilesGo(t *testing.T) {
	s := newStore(t)
	path := write(t, s, story()...)
	left := filepath.Join(strings.TrimSuffix(path, suffix)+".files", unfinished+"X")
	if err := os.WriteFile(left, png, 0o600); err != nil {
		t.Fatal(err)
	}
	resume(t, s, path)
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// Of a nested result the beginning is kept.
func TestNestedResultsAreAbridged(t *testing.T) {
	s := newStore(t)
	r := ok("p.1", "read_file", strings.Repeat("é", 1<<20))
	r.Parts = append(r.Parts, msg.Part{Kind: msg.Image, MIMEType: "image/png", Data: png})
	path := write(t, s, func(l *Log) error { return l.Result("p", r) })
	log := string(contents(t, path))
	if len(log) > 8<<10 || !strings.Contains(log, "é\\n[2097152 bytes, the rest is not kept]") || !strings.Contains(log, "[image image/png, 30 bytes, not kept]") {
		t.Errorf("%d bytes: %.300s … %.300s", len(log), log, log[max(0, len(log)-300):])
	}
	if len(r.Parts[0].Text) != 2<<20 {
		t.Error("the caller's result was changed")
	}
}

func FuzzRead(f *testing.F) {
	dir := f.TempDir()
	s := New(Options{Root: dir, Workspace: "/w", Now: clock()})
	log := contents(f, write(f, s, story()...))
	f.Add(log)
	f.Add(log[:len(log)/2])
	f.Add(bytes.ReplaceAll(log, []byte("c1"), []byte("c2")))
	f.Add(bytes.ReplaceAll(log, []byte(`"message"`), []byte(`"compact"`)))
	f.Add([]byte("\x00\x00\n{}\nnull\n{\"kind\":\"whole\",\"whole\":{}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := New(Options{Root: filepath.Join(t.TempDir(), "s"), Workspace: "/w", Now: clock()}).on(disk{})
		path := plant(t, s, data)
		_ = peek(path)
		st, err := s.Read(idOf(path))
		if errors.Is(err, errNewer) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		answered(t, st.Messages)
		resumedTwice(t, s, path)
		for _, format := range []ExportFormat{Markdown, JSON} {
			if err := s.Export(new(bytes.Buffer), idOf(path), format); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// answered checks that each call has exactly one result, right behind it.
func answered(t *testing.T, messages []msg.Message) {
	t.Helper()
	for i, m := range messages {
		var want, got []string
		for _, c := range m.Calls() {
			want = append(want, c.ID)
		}
		if m.Role == msg.Tool || len(want) == 0 {
			continue
		}
		if i+1 < len(messages) {
			for _, r := range messages[i+1].Results {
				got = append(got, r.CallID)
			}
		}
		if !cmp.Equal(want, got) {
			t.Fatalf("message %d: calls %v, results %v", i, want, got)
		}
	}
}
