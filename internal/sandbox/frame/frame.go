// Package frame is the wire format between the sandbox's parent and its child.
//
// A frame is a fixed binary head and up to three raw bodies whose lengths the
// head announces, so that a long string crosses without being escaped or
// parsed and a reader can refuse a frame before it allocates for it. Bodies
// hold JSON text, plain text or bytes; this package never looks inside the
// JSON. It is not a protocol: which frame may follow which is the business of
// the two ends, and it knows nothing of tools.
//
// The child links this package before the rest of the program is initialised,
// so it imports io and package bin only.
package frame

import (
	"io"

	"capstan/internal/sandbox/bin"
)

// Version is the protocol version; both ends refuse any other.
const Version = 1

// HeadSize is the length of an encoded Head in bytes.
const HeadSize = 20

// Type says what a frame is.
type Type uint8

// The frames that a parent sends.
const (
	Execute   Type = 1 // A source, B callable names joined by newlines, C Settings
	Result    Type = 2 // ID of the call; FlagOK or not; A JSON object, B text
	Terminate Type = 3 // no body; the child ends
	AllTools  Type = 4 // FlagOK: A JSON array, the answer to AskTools; else it is too long
)

// The frames that a child sends.
const (
	Started  Type = 16 // Flags and ID: the layers that are not in force, see Missing
	Calls    Type = 17 // ID: how many; A packed calls, see AppendCallHead
	Output   Type = 18 // Flags: an output kind; A MIME type, B data
	AskTools Type = 19 // no body; asks for the value of ALL_TOOLS
	Done     Type = 20 // A packed Report; nothing follows it
)

// FlagOK marks a Result that resolves; without it the call rejects. It marks
// AllTools that has a value.
const FlagOK = 1

// Kinds of output, carried in the Flags of an Output frame.
const (
	Text  = 0
	Image = 1
	Audio = 2
	File  = 3
)

// Error is a frame that breaks the format; the text says how.
type Error string

func (e Error) Error() string { return "frame: " + string(e) }

// Head is the fixed part of a frame. A, B and C are the lengths in bytes of
// the bodies that follow it, in that order.
type Head struct {
	Type    Type
	Flags   uint16
	ID      uint32
	A, B, C uint32
}

// Append adds the encoded head to dst.
func (h Head) Append(dst []byte) []byte {
	dst = append(dst, Version, byte(h.Type))
	dst = bin.LittleEndian.AppendUint16(dst, h.Flags)
	dst = bin.LittleEndian.AppendUint32(dst, h.ID)
	dst = bin.LittleEndian.AppendUint32(dst, h.A)
	dst = bin.LittleEndian.AppendUint32(dst, h.B)
	return bin.LittleEndian.AppendUint32(dst, h.C)
}

// ParseHead decodes the first HeadSize bytes of b. It checks the version, not
// whether the type is one that the reader expects: Bounds does.
func ParseHead(b []byte) (Head, error) {
	if len(b) < HeadSize {
		return Head{}, Error("head is cut short")
	}
	if b[0] != Version {
		return Head{}, Error("protocol version is not the one of this build")
	}
	return Head{
		Type:  Type(b[1]),
		Flags: bin.LittleEndian.Uint16(b[2:]),
		ID:    bin.LittleEndian.Uint32(b[4:]),
		A:     bin.LittleEndian.Uint32(b[8:]),
		B:     bin.LittleEndian.Uint32(b[12:]),
		C:     bin.LittleEndian.Uint32(b[16:]),
	}, nil
}

// Size is the number of body bytes that follow the head.
func (h Head) Size() uint64 { return uint64(h.A) + uint64(h.B) + uint64(h.C) }

// Bounds are the largest bodies, in bytes, that a reader accepts.
type Bounds struct {
	Source  uint32 // the program's text
	Control uint32 // bodies that are neither text nor data: reports, names of one output
	Body    uint32 // JSON of a call or a result, text, media
}

// FromChild refuses a frame that a child never sends or that is too large.
func (b Bounds) FromChild(h Head) error {
	switch h.Type {
	case Started, AskTools:
		return b.fit(h, 0, 0, 0)
	case Calls:
		return b.fit(h, b.Body, 0, 0)
	case Output:
		if h.Flags > File {
			return Error("output of an unknown kind")
		}
		return b.fit(h, 256, b.Body, 0)
	case Done:
		return b.fit(h, b.Control, 0, 0)
	}
	return Error("a child does not send a frame of this type")
}

// FromParent refuses a frame that a parent never sends or that is too large.
func (b Bounds) FromParent(h Head) error {
	switch h.Type {
	case Execute:
		return b.fit(h, b.Source, b.Body, SettingsSize)
	case Result:
		return b.fit(h, b.Body, b.Body, 0)
	case Terminate:
		return b.fit(h, 0, 0, 0)
	case AllTools:
		return b.fit(h, b.Body, 0, 0)
	}
	return Error("a parent does not send a frame of this type")
}

func (b Bounds) fit(h Head, maxA, maxB, maxC uint32) error {
	if h.A > maxA || h.B > maxB || h.C > maxC {
		return Error("a body is longer than its limit")
	}
	return nil
}

// Frame is a frame read whole. Its bodies share one fresh allocation.
type Frame struct {
	Head
	Bodies [3][]byte
}

// Read reads one frame from r. check sees the head before the bodies are
// allocated. At the end of the input between two frames it returns io.EOF,
// inside one io.ErrUnexpectedEOF.
func Read(r io.Reader, check func(Head) error) (Frame, error) {
	var raw [HeadSize]byte
	if _, err := io.ReadFull(r, raw[:]); err != nil {
		return Frame{}, err
	}
	h, err := ParseHead(raw[:])
	if err != nil {
		return Frame{}, err
	}
	if err := check(h); err != nil {
		return Frame{}, err
	}
	f := Frame{Head: h}
	if h.Size() == 0 {
		return f, nil
	}
	buf := make([]byte, h.Size())
	if _, err := io.ReadFull(r, buf); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return Frame{}, err
	}
	f.Bodies[0], buf = buf[:h.A:h.A], buf[h.A:]
	f.Bodies[1], buf = buf[:h.B:h.B], buf[h.B:]
	f.Bodies[2] = buf
	return f, nil
}

// Call is one call of a Calls frame.
type Call struct {
	ID   uint32
	Name []byte // as the guest spelled it
	Args []byte // JSON text
}

// callHead is the length of what precedes a packed call's name.
const callHead = 12

// AppendCallHead packs onto the body of a Calls frame what precedes a call's
// name and arguments, which the caller adds.
func AppendCallHead(dst []byte, id uint32, name, args int) []byte {
	dst = bin.LittleEndian.AppendUint32(dst, id)
	dst = bin.LittleEndian.AppendUint32(dst, uint32(name))
	return bin.LittleEndian.AppendUint32(dst, uint32(args))
}

// CallSize is the number of bytes of a packed call.
func CallSize(name, args int) int { return callHead + name + args }

// ParseCalls unpacks a Calls body that announces n calls, at most limit. The
// calls alias b.
func ParseCalls(b []byte, n, limit uint32) ([]Call, error) {
	if n == 0 || n > limit {
		return nil, Error("a batch of calls has none or more than the limit")
	}
	calls := make([]Call, 0, n)
	for range n {
		if len(b) < callHead {
			return nil, Error("a batch of calls is cut short")
		}
		id := bin.LittleEndian.Uint32(b)
		name := uint64(bin.LittleEndian.Uint32(b[4:]))
		args := uint64(bin.LittleEndian.Uint32(b[8:]))
		b = b[callHead:]
		if name+args > uint64(len(b)) {
			return nil, Error("a batch of calls is cut short")
		}
		calls = append(calls, Call{ID: id, Name: b[:name:name], Args: b[name : name+args : name+args]})
		b = b[name+args:]
	}
	if len(b) != 0 {
		return nil, Error("a batch of calls has bytes left over")
	}
	return calls, nil
}
