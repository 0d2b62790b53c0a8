package frame

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func bounds() Bounds { return Bounds{Source: 100, Control: 200, Body: 300} }

// S0-113
func TestReadBack(t *testing.T) {
	for _, f := range []Frame{
		{Head: Head{Type: Started, Flags: 5, ID: 0x01020304}},
		{Head: Head{Type: Output, Flags: Image, A: 9, B: 3}, Bodies: [3][]byte{[]byte("image/png"), {0, 1, 255}}},
		{Head: Head{Type: Done, A: 1}, Bodies: [3][]byte{[]byte("x")}},
	} {
		wire := append(f.Append(nil), bytes.Join(f.Bodies[:], nil)...)
		got, err := Read(bytes.NewReader(wire), bounds().FromChild)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(f.Head, got.Head); d != "" {
			t.Errorf("head (-want +got):\n%s", d)
		}
		for i := range f.Bodies {
			if !bytes.Equal(f.Bodies[i], got.Bodies[i]) {
				t.Errorf("body %d is %q, want %q", i, got.Bodies[i], f.Bodies[i])
			}
		}
		for n := range wire {
			want := io.ErrUnexpectedEOF
			if n == 0 {
				want = io.EOF
			}
			if _, err := Read(bytes.NewReader(wire[:n]), bounds().FromChild); !errors.Is(err, want) {
				t.Errorf("%d of %d bytes: %v, want %v", n, len(wire), err, want)
			}
		}
	}
}

func TestBounds(t *testing.T) {
	b := bounds()
	for _, c := range []struct {
		h     Head
		child bool
		want  error
	}{
		{Head{Type: Calls, A: 300}, true, nil},
		{Head{Type: Calls, A: 301}, true, Error("a body is longer than its limit")},
		{Head{Type: Calls, B: 1}, true, Error("a body is longer than its limit")},
		{Head{Type: Output, A: 256, B: 300}, true, nil},
		{Head{Type: Output, A: 257}, true, Error("a body is longer than its limit")},
		{Head{Type: Done, A: 201}, true, Error("a body is longer than its limit")},
		{Head{Type: Started, A: 1}, true, Error("a body is longer than its limit")},
		{Head{Type: Execute}, true, Error("a child does not send a frame of this type")},
		{Head{Type: Execute, A: 100, B: 300, C: SettingsSize}, false, nil},
		{Head{Type: Execute, A: 101}, false, Error("a body is longer than its limit")},
		{Head{Type: Result, A: 300, B: 300}, false, nil},
		{Head{Type: Result, C: 1}, false, Error("a body is longer than its limit")},
		{Head{Type: Done}, false, Error("a parent does not send a frame of this type")},
		{Head{Type: 255}, false, Error("a parent does not send a frame of this type")},
	} {
		check := b.FromParent
		if c.child {
			check = b.FromChild
		}
		if got := check(c.h); !errors.Is(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.h, got, c.want)
		}
	}
}

// A head that announces gigabytes is refused before anything is allocated.
func TestReadAllocatesLittle(t *testing.T) {
	wire := Head{Type: Output, B: 1<<32 - 1}.Append(nil)
	n := testing.AllocsPerRun(10, func() {
		if _, err := Read(bytes.NewReader(wire), bounds().FromChild); err == nil {
			t.Fatal("a huge frame was accepted")
		}
	})
	if n > 5 {
		t.Errorf("%v allocations", n)
	}
}

// appendCall packs a whole call.
func appendCall(dst []byte, c Call) []byte {
	dst = AppendCallHead(dst, c.ID, len(c.Name), len(c.Args))
	dst = append(dst, c.Name...)
	return append(dst, c.Args...)
}

func TestCallsBack(t *testing.T) {
	want := []Call{{ID: 1, Name: []byte("a"), Args: []byte("{}")}, {ID: 2, Name: []byte{}, Args: []byte{}}, {ID: 3, Name: []byte("né"), Args: []byte(`{"x":1}`)}}
	var b []byte
	for _, c := range want {
		before := len(b)
		b = appendCall(b, c)
		if len(b)-before != CallSize(len(c.Name), len(c.Args)) {
			t.Errorf("CallSize of %q is wrong", c.Name)
		}
	}
	got, err := ParseCalls(b, 3, 3)
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	for n := range b {
		if _, err := ParseCalls(b[:n], 3, 3); err == nil {
			t.Errorf("%d of %d bytes were accepted", n, len(b))
		}
	}
	for _, n := range []uint32{0, 1, 2, 4} {
		if _, err := ParseCalls(b, n, 3); err == nil {
			t.Errorf("%d calls were accepted", n)
		}
	}
}

func TestReportBack(t *testing.T) {
	want := Report{Kind: Memory, Printed: true, Line: 1, Column: 2, CPU: 1 << 40, Peak: 1 << 33, Unsent: 7, Unhandled: 8,
		Name: "n", Message: "m", Stack: "s", Code: "c", Tool: "t", CallID: "i", UnsentNames: []string{"a", "", "b"}, Failures: []string{"f"}}
	b := want.Append(nil)
	got, err := ParseReport(b)
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	for n := range b {
		if _, err := ParseReport(b[:n]); err == nil {
			t.Errorf("%d of %d bytes were accepted", n, len(b))
		}
	}
	if _, err := ParseReport(append(b, 0)); err == nil {
		t.Error("bytes left over were accepted")
	}
	names := strings.Split(strings.Repeat("x", MaxNames+1), "")
	for _, many := range []Report{{UnsentNames: names}, {Failures: names}} {
		if _, err := ParseReport(many.Append(nil)); err == nil {
			t.Error("too many names were accepted")
		}
	}
}

func TestSettingsBack(t *testing.T) {
	want := Settings{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1 << 63}
	got, err := ParseSettings(want.Append(nil))
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if _, err := ParseSettings(nil); err == nil {
		t.Error("empty settings were accepted")
	}
}

func TestStartBack(t *testing.T) {
	for _, want := range []Start{{}, {Off: Seccomp | Landlock, Require: AllLayers, Probe: ProbeExecutable}} {
		got, err := ParseStart(want.Args())
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("%v (-want +got):\n%s", err, d)
		}
	}
	for _, args := range [][]string{nil, {"1"}, {"9", "a", "a", "0"}, {"1", "z", "a", "0"}, {"1", "a", "a", "z"}, {"1", "", "a", "0"}, {"1", "aa", "a", "0"}} {
		if _, err := ParseStart(args); err == nil {
			t.Errorf("%q were accepted", args)
		}
	}
}

func TestMissingBack(t *testing.T) {
	var m Missing
	m.Add(Landlock, 38)
	m.Add(Seccomp, 0)
	got, err := ParseMissing(m.Head())
	if err != nil || got != m || got.Errno(Landlock) != 38 || got.Errno(Seccomp) != 0 || got.Layers != Landlock|Seccomp {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := ParseMissing(Head{Flags: 1 << 9}); err == nil {
		t.Error("an unknown layer was accepted")
	}
}

// Whatever the bytes, reading ends without a panic, and what is accepted reads
// back as it was written.
func FuzzRead(f *testing.F) {
	f.Add(Head{Type: Started, Flags: 3}.Append(nil))
	f.Add(append(Head{Type: Output, A: 1, B: 2}.Append(nil), "abc"...))
	call := appendCall(nil, Call{ID: 1, Name: []byte("x"), Args: []byte("{}")})
	f.Add(append(Head{Type: Calls, ID: 1, A: uint32(len(call))}.Append(nil), call...))
	report := Report{Kind: Stalled, Name: "x"}.Append(nil)
	f.Add(append(Head{Type: Done, A: uint32(len(report))}.Append(nil), report...))
	f.Fuzz(func(t *testing.T, b []byte) {
		fr, err := Read(bytes.NewReader(b), bounds().FromChild)
		if err != nil {
			return
		}
		wire := append(fr.Append(nil), bytes.Join(fr.Bodies[:], nil)...)
		if !bytes.Equal(wire, b[:len(wire)]) {
			t.Errorf("%x reads as %x", b[:len(wire)], wire)
		}
		switch fr.Type {
		case Calls:
			calls, err := ParseCalls(fr.Bodies[0], fr.ID, 256)
			if err != nil {
				return
			}
			var again []byte
			for _, c := range calls {
				again = appendCall(again, c)
			}
			if !bytes.Equal(again, fr.Bodies[0]) {
				t.Errorf("%x unpacks to %x", fr.Bodies[0], again)
			}
		case Done:
			r, err := ParseReport(fr.Bodies[0])
			if err == nil && !bytes.Equal(r.Append(nil), fr.Bodies[0]) {
				t.Errorf("%x unpacks to %+v", fr.Bodies[0], r)
			}
		case Started:
			if m, err := ParseMissing(fr.Head); err == nil && m.Head() != fr.Head {
				t.Errorf("%+v reads as %+v", fr.Head, m)
			}
		}
	})
}
