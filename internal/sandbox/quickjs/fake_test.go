package quickjs

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/sandbox"
	"capstan/internal/sandbox/frame"
	"capstan/internal/sandbox/sandboxtest"
)

// fakeChild is the argument with which the test binary plays a hostile child.
const fakeChild = "fake-child"

func runFake(name string) {
	for _, f := range fakes {
		if f.name == name {
			f.play(os.Stdin, os.Stdout)
		}
	}
}

// fakeRunner starts the test binary as the named fake. The Runner's own
// arguments are for a real child, so a script stands between.
func fakeRunner(t *testing.T, name string) *Runner {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "child")
	if err := os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\nexec '%s' %s '%s'\n", exe, fakeChild, name), 0o755); err != nil {
		t.Fatal(err)
	}
	return newRunner(t, Options{Binary: script})
}

func send(w io.Writer, h frame.Head, bodies ...string) {
	sizes := [3]*uint32{&h.A, &h.B, &h.C}
	for i, b := range bodies {
		*sizes[i] = uint32(len(b))
	}
	_, _ = w.Write(append(h.Append(nil), strings.Join(bodies, "")...))
}

func started(w io.Writer) { send(w, frame.Head{Type: frame.Started}) }

// packed is a call as it stands in a Calls frame.
func packed(id uint32, name, args string) string {
	return string(frame.AppendCallHead(nil, id, len(name), len(args))) + name + args
}

func sendCalls(w io.Writer, ids ...uint32) {
	var b string
	for _, id := range ids {
		b += packed(id, "echo", "{}")
	}
	send(w, frame.Head{Type: frame.Calls, ID: uint32(len(ids))}, b)
}

// sendCall sends one call whose argument is a string of size bytes.
func sendCall(w io.Writer, id uint32, name string, size int) {
	send(w, frame.Head{Type: frame.Calls, ID: 1}, packed(id, name, `"`+strings.Repeat("x", size)+`"`))
}

func sendDone(w io.Writer, r frame.Report) {
	send(w, frame.Head{Type: frame.Done}, string(r.Append(nil)))
}

// untilEOF keeps the fake alive until the parent lets go of it.
func untilEOF(in io.Reader) { _, _ = io.Copy(io.Discard, in) }

func protocol(message string) *sandbox.Error {
	return &sandbox.Error{Kind: sandbox.KindProtocol, Message: message}
}

const tooLong = "a body is longer than its limit"

// fakes are children that break the protocol, each in one way, and what the
// run makes of it. S0-221 S0-224 S0-142
var fakes = []struct {
	name string
	play func(in io.Reader, out io.Writer)
	want *sandbox.Error
}{
	{"garbage", func(in io.Reader, out io.Writer) {
		fmt.Fprint(out, strings.Repeat("GET / HTTP/1.1\r\n", 4))
		untilEOF(in)
	}, protocol("protocol version is not the one of this build")},
	{"type of a parent", func(in io.Reader, out io.Writer) {
		started(out)
		send(out, frame.Head{Type: frame.Result, ID: 1}, "{}")
		untilEOF(in)
	}, protocol("a child does not send a frame of this type")},
	{"type 0", func(in io.Reader, out io.Writer) { send(out, frame.Head{}); untilEOF(in) },
		protocol("a child does not send a frame of this type")},
	{"calls before its start", func(in io.Reader, out io.Writer) { sendCalls(out, 1); untilEOF(in) },
		protocol("the child did not say first that it has started")},
	{"two starts", func(in io.Reader, out io.Writer) { started(out); started(out); untilEOF(in) },
		protocol("the child started twice")},
	{"unknown layers", func(in io.Reader, out io.Writer) {
		send(out, frame.Head{Type: frame.Started, Flags: 0x40})
		untilEOF(in)
	}, protocol("the child names an unknown layer")},
	{"huge calls", func(in io.Reader, out io.Writer) {
		started(out)
		_, _ = out.Write(frame.Head{Type: frame.Calls, ID: 1, A: 1<<32 - 1}.Append(nil))
		untilEOF(in)
	}, protocol(tooLong)},
	{"huge output", func(in io.Reader, out io.Writer) {
		started(out)
		_, _ = out.Write(frame.Head{Type: frame.Output, B: 16<<20 + 1}.Append(nil))
		untilEOF(in)
	}, protocol(tooLong)},
	{"huge report", func(in io.Reader, out io.Writer) {
		started(out)
		_, _ = out.Write(frame.Head{Type: frame.Done, A: 1<<20 + 1}.Append(nil))
		untilEOF(in)
	}, protocol(tooLong)},
	{"a body where none belongs", func(in io.Reader, out io.Writer) {
		started(out)
		send(out, frame.Head{Type: frame.AskTools}, "x")
		untilEOF(in)
	}, protocol(tooLong)},
	{"output of no kind", func(in io.Reader, out io.Writer) {
		started(out)
		send(out, frame.Head{Type: frame.Output, Flags: 4}, "", "x")
		untilEOF(in)
	}, protocol("output of an unknown kind")},
	{"too much output", func(in io.Reader, out io.Writer) {
		started(out)
		for range 17 {
			send(out, frame.Head{Type: frame.Output}, "", strings.Repeat("x", 1<<20))
		}
		untilEOF(in)
	}, protocol("the child printed more than the limit allows")},
	{"too many images", func(in io.Reader, out io.Writer) {
		started(out)
		for range 17 {
			send(out, frame.Head{Type: frame.Output, Flags: frame.Image}, "image/png", "x")
		}
		untilEOF(in)
	}, protocol("the child printed more than the limit allows")},
	{"too large images", func(in io.Reader, out io.Writer) {
		started(out)
		send(out, frame.Head{Type: frame.Output, Flags: frame.Audio}, "audio/wav", strings.Repeat("x", 10<<20+1))
		untilEOF(in)
	}, protocol("the child printed more than the limit allows")},
	{"id 0", func(in io.Reader, out io.Writer) { started(out); sendCalls(out, 0); untilEOF(in) },
		protocol("a call's id is not the next one")},
	{"an id again", func(in io.Reader, out io.Writer) { started(out); sendCalls(out, 1, 1); untilEOF(in) },
		protocol("a call's id is not the next one")},
	{"an id again later", func(in io.Reader, out io.Writer) {
		started(out)
		sendCalls(out, 1)
		sendCalls(out, 1)
		untilEOF(in)
	}, protocol("a call's id is not the next one")},
	{"ids out of order", func(in io.Reader, out io.Writer) { started(out); sendCalls(out, 2, 1); untilEOF(in) },
		protocol("a call's id is not the next one")},
	{"an empty batch", func(in io.Reader, out io.Writer) { started(out); sendCalls(out); untilEOF(in) },
		protocol("a batch of calls has none or more than the limit")},
	{"a batch that lies about its number", func(in io.Reader, out io.Writer) {
		started(out)
		send(out, frame.Head{Type: frame.Calls, ID: 2}, packed(1, "", ""))
		untilEOF(in)
	}, protocol("a batch of calls is cut short")},
	{"a batch with bytes left over", func(in io.Reader, out io.Writer) {
		started(out)
		send(out, frame.Head{Type: frame.Calls, ID: 1}, packed(1, "", "")+"x")
		untilEOF(in)
	}, protocol("a batch of calls has bytes left over")},
	{"too many calls at once", func(in io.Reader, out io.Writer) {
		started(out)
		ids := make([]uint32, 257)
		for i := range ids {
			ids[i] = uint32(i + 1)
		}
		sendCalls(out, ids...)
		untilEOF(in)
	}, protocol("a batch of calls has none or more than the limit")},
	{"calls without reading answers", func(in io.Reader, out io.Writer) {
		started(out)
		for id := range uint32(9999) {
			sendCall(out, id+1, "echo", 100<<10)
		}
		time.Sleep(time.Hour)
	}, protocol("the child made more calls than the limit allows")},
	{"more calls than the limit", func(in io.Reader, out io.Writer) {
		started(out)
		bounds := frame.Bounds{Source: 1 << 20, Control: 1 << 20, Body: 1 << 20}
		_, err := frame.Read(in, bounds.FromParent) // the program
		for id := uint32(1); id <= 4 && err == nil; id++ {
			sendCalls(out, id)
			_, err = frame.Read(in, bounds.FromParent)
		}
		sendDone(out, frame.Report{})
	}, protocol("the child made more calls than the limit allows")},
	{"calls and ALL_TOOLS without reading answers", func(in io.Reader, out io.Writer) {
		started(out)
		sendCall(out, 1, "echo", 4<<20)
		_, _ = frame.Read(in, frame.Bounds{Source: 1 << 20, Body: 1 << 20}.FromParent) // the program
		_, _ = io.ReadFull(in, make([]byte, frame.HeadSize))                           // of the answer, which now blocks the parent's writer
		for id := uint32(2); id <= 256; id++ {
			sendCalls(out, id)
		}
		time.Sleep(300 * time.Millisecond) // so that they are answered; what follows is one too many anyhow
		sendCalls(out, 257, 258, 259)
		send(out, frame.Head{Type: frame.AskTools})
		time.Sleep(time.Hour)
	}, protocol("the child made more calls than the limit allows")},
	{"it does not read while a call is open", func(in io.Reader, out io.Writer) {
		started(out)
		sendCall(out, 1, "hang", 0)
		sendCall(out, 2, "echo", 4<<20)
		time.Sleep(time.Hour)
	}, &sandbox.Error{Kind: sandbox.KindTimeout, Message: "the interpreter was silent for 600ms and was killed"}},
	{"ALL_TOOLS twice", func(in io.Reader, out io.Writer) {
		started(out)
		send(out, frame.Head{Type: frame.AskTools})
		send(out, frame.Head{Type: frame.AskTools})
		untilEOF(in)
	}, protocol("the child asked for ALL_TOOLS twice")},
	{"more after its end", func(in io.Reader, out io.Writer) {
		started(out)
		sendDone(out, frame.Report{})
		sendCalls(out, 1)
		untilEOF(in)
	}, protocol("the child went on after its end")},
	{"an end of no kind", func(in io.Reader, out io.Writer) { started(out); sendDone(out, frame.Report{Kind: 99}); untilEOF(in) },
		protocol("a report has an unknown kind")},
	{"an end cut short", func(in io.Reader, out io.Writer) {
		started(out)
		send(out, frame.Head{Type: frame.Done}, "x")
		untilEOF(in)
	}, protocol("a report is cut short")},
	{"a body cut short", func(in io.Reader, out io.Writer) {
		started(out)
		_, _ = out.Write(append(frame.Head{Type: frame.Output, B: 100}.Append(nil), "only this"...))
	}, &sandbox.Error{Kind: sandbox.KindCrash, Message: "interpreter exited: exit status 0"}},
	{"it says why it died", func(in io.Reader, out io.Writer) {
		started(out)
		fmt.Fprint(os.Stderr, "fatal error: first words\n"+strings.Repeat("x", 1<<20)+"\nlast words\n")
		os.Exit(3)
	}, &sandbox.Error{Kind: sandbox.KindCrash, Message: "interpreter exited: exit status 3; it said: fatal error: first words\n" +
		strings.Repeat("x", 999) + "\n…\n" + strings.Repeat("x", 1012) + "\nlast words"}},
	{"it dies before its start", func(io.Reader, io.Writer) { os.Exit(4) },
		&sandbox.Error{Kind: sandbox.KindStartup, Message: "interpreter exited: exit status 4"}},
	{"it says nothing", func(io.Reader, io.Writer) { time.Sleep(time.Hour) },
		&sandbox.Error{Kind: sandbox.KindStartup, Message: "the interpreter did not start within 2s"}},
	{"it says nothing more", func(_ io.Reader, out io.Writer) { started(out); time.Sleep(time.Hour) },
		&sandbox.Error{Kind: sandbox.KindTimeout, Message: "the interpreter was silent for 600ms and was killed"}},
	{"it closes its output and stays", func(_ io.Reader, out io.Writer) {
		started(out)
		os.Stdout.Close()
		time.Sleep(time.Hour)
	}, &sandbox.Error{Kind: sandbox.KindCrash, Message: "interpreter exited: signal: killed"}},
	{"it does not end", func(_ io.Reader, out io.Writer) { started(out); sendDone(out, frame.Report{}); time.Sleep(time.Hour) },
		&sandbox.Error{Kind: sandbox.KindTeardown, Message: "the interpreter did not end with its program and was killed"}},
	{"it is built with cgo", func(_ io.Reader, out io.Writer) {
		send(out, frame.Head{Type: frame.Started, Flags: uint16(frame.AllLayers | frame.CgoChild)})
	}, &sandbox.Error{Kind: sandbox.KindStartup, Message: "starting the interpreter: this program was built with cgo, which cannot be hardened: rebuild it with CGO_ENABLED=0"}},
	{"an honest one", func(in io.Reader, out io.Writer) { started(out); sendDone(out, frame.Report{}) }, nil},
}

func TestHostileChild(t *testing.T) {
	for _, f := range fakes {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			h := newHost()
			l := sandbox.Limits{CPU: 50 * time.Millisecond, Watchdog: 400 * time.Millisecond, Teardown: time.Second}
			switch f.name {
			case "it says nothing":
				l.Startup = 2 * time.Second
			case "it says nothing more", "it does not read while a call is open":
			case "more calls than the limit":
				l = sandbox.Limits{Calls: 3}
			default: // no clock decides
				l.Watchdog = 0
				l.CPU = 0
			}
			if f.name != "it does not end" {
				l.Teardown = 0
			}
			_, err := run(t, fakeRunner(t, f.name), h, "", l)
			if err != nil {
				err.Err = nil
			}
			if d := cmp.Diff(f.want, err); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// What a fake is not started for: a binary that is none.
func TestNoBinary(t *testing.T) {
	_, err := run(t, newRunner(t, Options{Binary: "/nonexistent/binary"}), newHost(), "", sandbox.Limits{})
	if err == nil || err.Kind != sandbox.KindStartup || !strings.Contains(err.Message, "/nonexistent/binary: no such file or directory") {
		t.Fatalf("got %v, want a startup error that names the file", err)
	}
	if left := sandboxtest.Children(); len(left) > 0 {
		t.Fatalf("children are left: %v", left)
	}
}
