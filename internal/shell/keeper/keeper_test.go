package keeper

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

var requests = []Request{
	{},
	{Path: "/bin/sh", Argv: []string{"sh", "-c", "true"}, Env: []string{"A=1", ""}, Dir: "/", TimeoutMS: 1, GraceMS: Forever, TermMS: 200, Confine: ConfineFiles, Writable: []string{"/tmp", ""}},
}

var reports = []Report{
	{},
	{Kind: Finished, Pid: 7, Errno: 2, ExitCode: 3, Signal: 9, TimedOut: true, Stopped: true, KilledCount: 40,
		Killed: []Process{{PID: 8, Command: "sleep 1"}, {PID: 9}}, Alive: []Process{{PID: 10, Command: "sudo"}}},
	{Kind: Started, Stopped: true},
}

func body(t testing.TB, frame []byte) []byte {
	t.Helper()
	if n := FrameSize([4]byte(frame)); n != len(frame)-4 {
		t.Fatalf("the head says %d bytes, the body has %d", n, len(frame)-4)
	}
	return frame[4:]
}

func TestRoundTrip(t *testing.T) {
	for _, want := range requests {
		got, ok := ParseRequest(body(t, want.Append(nil)))
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("ok %v (-want +got):\n%s", ok, diff)
		}
	}
	for _, want := range reports {
		got, ok := ParseReport(body(t, want.Append(nil)))
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("ok %v (-want +got):\n%s", ok, diff)
		}
	}
	if n := FrameSize([4]byte{255, 255, 255, 255}); n != -1 {
		t.Errorf("a frame of 4 GB has size %d, want -1", n)
	}
}

// Every cut or prolonged body is refused.
func TestParseRefuses(t *testing.T) {
	for _, r := range requests {
		b := body(t, r.Append(nil))
		for n := range b {
			if _, ok := ParseRequest(b[:n]); ok {
				t.Errorf("a request cut to %d of %d bytes was read", n, len(b))
			}
		}
		if _, ok := ParseRequest(append(b, 0)); ok {
			t.Error("a request with a byte too many was read")
		}
	}
	for _, r := range reports {
		b := body(t, r.Append(nil))
		for n := range b {
			if _, ok := ParseReport(b[:n]); ok {
				t.Errorf("a report cut to %d of %d bytes was read", n, len(b))
			}
		}
	}
}

// What parses means the same when it is written and read again.
func FuzzParse(f *testing.F) {
	for _, r := range requests {
		f.Add(r.Append(nil)[4:])
	}
	for _, r := range reports {
		f.Add(r.Append(nil)[4:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, ok := ParseRequest(b); ok {
			again, ok := ParseRequest(r.Append(nil)[4:])
			if diff := cmp.Diff(r, again); !ok || diff != "" {
				t.Errorf("ok %v (-first +again):\n%s", ok, diff)
			}
		}
		if r, ok := ParseReport(b); ok {
			again, ok := ParseReport(r.Append(nil)[4:])
			if diff := cmp.Diff(r, again); !ok || diff != "" {
				t.Errorf("ok %v (-first +again):\n%s", ok, diff)
			}
		}
	})
}
