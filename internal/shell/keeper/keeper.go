// Package keeper is the process that stands over one shell command and lets
// nothing of it survive.
//
// The running binary is executed a second time with [Marker] as its first
// argument. This package's init takes that process over before the rest of the
// program initialises, which is why it imports next to nothing: a keeper costs
// about a millisecond, not the start of the whole binary. It becomes the
// subreaper of everything below it, starts the command in a session of its own
// without a terminal, and reports how it ended. When its control pipe closes
// (the agent is gone), when it is told to stop, when the deadline passes and
// when the command leaves children behind, it kills every descendant,
// also those that left the process group or the session.
//
// When the request says so it takes rights away from itself, and so from the
// command, before it starts it; else the command has the rights of its user. It knows nothing
// of shells, output or jobs; package shell is its only client and the other end
// of its two pipes. Where the layer does not exist ([Supported] is false) only
// the wire format is compiled.
package keeper

// Marker is the first argument that turns the binary into a keeper.
const Marker = "__capstan_keeper"

// The descriptors that a keeper is started with, beside the command's own
// stdin, stdout and stderr on 0 to 2.
const (
	ControlFD = 3 // read: one Request, then Stop bytes; end of file means that the agent is gone
	ReportFD  = 4 // written: reports, each with a fixed head
)

// Stop is the byte that tells a keeper to end the command.
const Stop = 's'

// MaxNamed bounds how many processes a Report names; it counts the others.
const MaxNamed = 32

// maxBody bounds a frame on either pipe. A command line, its arguments and its
// environment together are limited to a few megabytes by the system.
const maxBody = 64 << 20

// A Request says what to run. Strings must not contain NUL bytes.
type Request struct {
	Path string   // the program, absolute
	Argv []string // its arguments, with the name first
	Env  []string // its whole environment
	Dir  string   // its working directory, absolute

	// TimeoutMS ends the command after so many milliseconds; 0 means never.
	TimeoutMS uint32
	// GraceMS is how long children may outlive the program; Forever lets them
	// run until they end.
	GraceMS uint32
	// TermMS is the time between SIGTERM and SIGKILL when a command is ended.
	TermMS uint32

	// Confine is what the program and all below it cannot do: ConfineFiles,
	// ConfineNetwork. A layer that the kernel refuses is a failure to start.
	Confine uint32
	// Writable are the paths below which files may be changed under ConfineFiles;
	// one that does not exist is left out.
	Writable []string
}

// What Request.Confine may hold.
const (
	ConfineFiles   = 1 << iota // change only what lies below Writable (Landlock)
	ConfineNetwork             // open no socket but Unix ones (seccomp)
)

// Forever as a Request's GraceMS waits for the last descendant.
const Forever = ^uint32(0)

// Kind says what a Report is about.
type Kind byte

const (
	Started  Kind = 'S' // the program runs; Pid is set
	Failed   Kind = 'F' // the program could not be started; Errno is set
	Finished Kind = 'D' // nothing is left; everything but Errno is set. The last report.
)

// A Report is what a keeper tells its agent.
type Report struct {
	Kind     Kind
	Pid      uint32 // of the program, which is also its session and group
	Errno    uint32
	ExitCode uint32 // of the program, when Signal is 0
	Signal   uint32 // that ended the program
	TimedOut bool
	Stopped  bool // by the agent, before the program had ended by itself
	// Killed are the descendants, the program not among them, that had to be
	// ended; at most MaxNamed, KilledCount has all.
	Killed      []Process
	KilledCount uint32
	// Alive are those that could not be ended: another user's, or stuck in the
	// kernel.
	Alive []Process
}

// A Process is a process id and its command line.
type Process struct {
	PID     int
	Command string
}

// appendFrame adds the length of what body appends, then that.
func appendFrame(b []byte, body func([]byte) []byte) []byte {
	at := len(b)
	b = body(append(b, 0, 0, 0, 0))
	putUint(b[at:], uint32(len(b)-at-4))
	return b
}

// Append adds the request's frame to b.
func (r *Request) Append(b []byte) []byte {
	return appendFrame(b, func(b []byte) []byte {
		b = appendString(b, r.Path)
		b = appendStrings(b, r.Argv)
		b = appendStrings(b, r.Env)
		b = appendString(b, r.Dir)
		b = appendUint(b, r.TimeoutMS)
		b = appendUint(b, r.GraceMS)
		b = appendUint(b, r.TermMS)
		b = appendUint(b, r.Confine)
		return appendStrings(b, r.Writable)
	})
}

// Append adds the report's frame to b.
func (r *Report) Append(b []byte) []byte {
	return appendFrame(b, func(b []byte) []byte {
		b = append(b, byte(r.Kind), bit(r.TimedOut)|bit(r.Stopped)<<1)
		for _, v := range []uint32{r.Pid, r.Errno, r.ExitCode, r.Signal, r.KilledCount} {
			b = appendUint(b, v)
		}
		b = appendProcesses(b, r.Killed)
		return appendProcesses(b, r.Alive)
	})
}

// FrameSize reads the length of a frame's body from its four-byte head. It
// returns -1 for a length that no honest peer sends.
func FrameSize(head [4]byte) int {
	n := getUint(head[:])
	if n > maxBody {
		return -1
	}
	return int(n)
}

// ParseRequest reads the body of a request's frame.
func ParseRequest(body []byte) (r Request, ok bool) {
	d := decoder{b: body}
	r = Request{Path: d.string(), Argv: d.strings(), Env: d.strings(), Dir: d.string(),
		TimeoutMS: d.uint(), GraceMS: d.uint(), TermMS: d.uint(), Confine: d.uint(), Writable: d.strings()}
	return r, !d.bad && len(d.b) == 0
}

// ParseReport reads the body of a report's frame.
func ParseReport(body []byte) (r Report, ok bool) {
	d := decoder{b: body}
	r.Kind = Kind(d.byte())
	flags := d.byte()
	r.TimedOut, r.Stopped = flags&1 != 0, flags&2 != 0
	for _, p := range []*uint32{&r.Pid, &r.Errno, &r.ExitCode, &r.Signal, &r.KilledCount} {
		*p = d.uint()
	}
	r.Killed, r.Alive = d.processes(), d.processes()
	return r, !d.bad && len(d.b) == 0 && flags < 4
}

func bit(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// Numbers are little-endian. (encoding/binary needs reflect, and that would put
// much of the binary's initialisation before this package's.)
func putUint(b []byte, v uint32) {
	b[0], b[1], b[2], b[3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
}

func getUint(b []byte) uint32 {
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

func appendUint(b []byte, v uint32) []byte {
	return append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
}

func appendString(b []byte, s string) []byte {
	return append(appendUint(b, uint32(len(s))), s...)
}

func appendStrings(b []byte, list []string) []byte {
	b = appendUint(b, uint32(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

func appendProcesses(b []byte, list []Process) []byte {
	b = appendUint(b, uint32(len(list)))
	for _, p := range list {
		b = appendString(appendUint(b, uint32(p.PID)), p.Command)
	}
	return b
}

// A decoder takes fields from the front of b; after the first fault every field
// is empty and bad stays set.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) take(n int) []byte {
	if d.bad || n < 0 || n > len(d.b) {
		d.bad = true
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) byte() byte {
	if v := d.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (d *decoder) uint() uint32 {
	if v := d.take(4); v != nil {
		return getUint(v)
	}
	return 0
}

func (d *decoder) string() string { return string(d.take(int(d.uint()))) }

func (d *decoder) strings() (list []string) {
	for n := d.uint(); n > 0 && !d.bad; n-- {
		list = append(list, d.string())
	}
	return list
}

func (d *decoder) processes() (list []Process) {
	for n := d.uint(); n > 0 && !d.bad; n-- {
		list = append(list, Process{PID: int(int32(d.uint())), Command: d.string()})
	}
	return list
}
