package frame

// Layer is one layer of the child's hardening; layers form a bit set.
type Layer uint16

// The layers, in the order in which a child puts them on.
const (
	NoNewPrivs Layer = 1 << iota // no gain of privileges by exec
	Landlock                     // no file system, no network, no signals outwards
	Rlimits                      // kernel limits on CPU, memory, files, cores
	Seccomp                      // an allowlist of system calls
	layerEnd
)

// AllLayers is every layer.
const AllLayers = layerEnd - 1

// CgoChild is set in a Started frame beside the layers by a child that was
// built with cgo, which it cannot harden, and which therefore ends.
const CgoChild Layer = 1 << 15

// Layers lists every layer in order.
func Layers() []Layer { return []Layer{NoNewPrivs, Landlock, Rlimits, Seccomp} }

func (l Layer) String() string {
	switch l {
	case NoNewPrivs:
		return "no_new_privs"
	case Rlimits:
		return "rlimits"
	case Landlock:
		return "landlock"
	case Seccomp:
		return "seccomp"
	}
	return "unknown layer"
}

// Missing are the layers that are not in force, each with the error number of
// the system that refused it. It fits a Started head: the layers are its
// Flags, the numbers one byte each its ID.
type Missing struct {
	Layers Layer
	errnos uint32
}

// Add records that a layer is not in force. errno 0 means that it was not tried.
func (m *Missing) Add(l Layer, errno uint8) {
	m.Layers |= l
	for i, x := range Layers() {
		if x == l {
			m.errnos |= uint32(errno) << (8 * i)
		}
	}
}

// Errno is the error number recorded for l.
func (m Missing) Errno(l Layer) uint8 {
	for i, x := range Layers() {
		if x == l {
			return uint8(m.errnos >> (8 * i))
		}
	}
	return 0
}

// Head is the Started head that carries m.
func (m Missing) Head() Head { return Head{Type: Started, Flags: uint16(m.Layers), ID: m.errnos} }

// ParseMissing reads what a Started head carries.
func ParseMissing(h Head) (Missing, error) {
	m := Missing{Layers: Layer(h.Flags), errnos: h.ID}
	if m.Layers&^(AllLayers|CgoChild) != 0 {
		return Missing{}, Error("the child names an unknown layer")
	}
	return m, nil
}

// Start is how a child is to start: the words behind its marker.
type Start struct {
	Off     Layer // layers not to put on; a test's or a probe's switch
	Require Layer // layers without which it must not run a program
	Probe   Probe // what to try instead of running a program
}

// Probe is an attempt that a hardened child makes to show that it fails.
type Probe uint8

// The probes. All but ProbeLimits try one system call that seccomp kills for.
const (
	NoProbe     Probe = iota
	ProbeLimits       // report which layers hold, by trying them; seccomp is off
	ProbeSocket
	ProbeOpen
	ProbeFork
	ProbeExec
	ProbeKill
	ProbeSignal     // signal a thread of another process
	ProbeExecutable // map executable memory
	probeEnd
)

// Args encodes s as arguments.
func (s Start) Args() []string {
	return []string{string('0' + rune(Version)), string('a' + rune(s.Off)), string('a' + rune(s.Require)), string('0' + rune(s.Probe))}
}

// ParseStart decodes what Args encoded.
func ParseStart(args []string) (Start, error) {
	if len(args) != 4 {
		return Start{}, Error("a child's arguments are not those of this build")
	}
	for _, a := range args {
		if len(a) != 1 {
			return Start{}, Error("a child's arguments are not those of this build")
		}
	}
	s := Start{Off: Layer(args[1][0] - 'a'), Require: Layer(args[2][0] - 'a'), Probe: Probe(args[3][0] - '0')}
	if args[0][0] != '0'+Version || s.Off > AllLayers || s.Require > AllLayers || s.Probe >= probeEnd {
		return Start{}, Error("a child's arguments are not those of this build")
	}
	return s, nil
}
