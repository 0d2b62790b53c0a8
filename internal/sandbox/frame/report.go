package frame

import "capstan/internal/sandbox/bin"

// Settings are the limits and the seed of one program, as they cross to the
// child. Sizes are bytes, CPU nanoseconds.
type Settings struct {
	Source, Control, Body uint64
	Media, MediaBytes     uint64
	Memory, Stack         uint64
	CPU                   uint64
	Calls, Outstanding    uint64
	Output                uint64
	Seed                  uint64 // for Math.random, never zero
}

const settingsFields = 12

// SettingsSize is the length of encoded Settings.
const SettingsSize = 8 * settingsFields

func (s *Settings) fields() [settingsFields]*uint64 {
	return [...]*uint64{
		&s.Source, &s.Control, &s.Body, &s.Media, &s.MediaBytes, &s.Memory,
		&s.Stack, &s.CPU, &s.Calls, &s.Outstanding, &s.Output, &s.Seed,
	}
}

// Append adds the encoded settings to dst.
func (s Settings) Append(dst []byte) []byte {
	for _, f := range s.fields() {
		dst = bin.LittleEndian.AppendUint64(dst, *f)
	}
	return dst
}

// ParseSettings decodes what Append encoded.
func ParseSettings(b []byte) (Settings, error) {
	if len(b) != SettingsSize {
		return Settings{}, Error("settings have the wrong length")
	}
	var s Settings
	for i, f := range s.fields() {
		*f = bin.LittleEndian.Uint64(b[8*i:])
	}
	return s, nil
}

// How a program ended, in Report.Kind.
const (
	OK uint8 = iota
	Syntax
	Exception
	Timeout
	Memory
	StackOverflow
	Stalled
	Crash
	kinds // one past the last
)

// Report is what a child says when its program has ended. All of it is the
// word of an untrusted process.
type Report struct {
	Kind         uint8
	Printed      bool   // something was printed, a returned value included
	Line, Column uint32 // the author's own, from 1; 0 unknown
	CPU          uint64 // nanoseconds used since Execute
	Peak         uint64 // largest size of the linear memory in bytes
	Unsent       uint32 // calls that never left the guest
	Unhandled    uint32 // failures that nothing has handled
	Name         string // of the exception
	Message      string
	Stack        string
	Code         string // of an uncaught ToolCallError or limit
	Tool         string
	CallID       string
	UnsentNames  []string // of the first calls that never left the guest
	Failures     []string // what the first unhandled failures were
}

// MaxNames bounds Report.UnsentNames and Report.Failures.
const MaxNames = 20

func (r *Report) strings() [6]*string {
	return [...]*string{&r.Name, &r.Message, &r.Stack, &r.Code, &r.Tool, &r.CallID}
}

// Append adds the encoded report to dst.
func (r Report) Append(dst []byte) []byte {
	printed := byte(0)
	if r.Printed {
		printed = 1
	}
	dst = append(dst, r.Kind, printed)
	for _, n := range [...]uint32{r.Line, r.Column, r.Unsent, r.Unhandled} {
		dst = bin.LittleEndian.AppendUint32(dst, n)
	}
	for _, n := range [...]uint64{r.CPU, r.Peak} {
		dst = bin.LittleEndian.AppendUint64(dst, n)
	}
	for _, s := range r.strings() {
		dst = appendString(dst, *s)
	}
	for _, list := range [...][]string{r.UnsentNames, r.Failures} {
		dst = append(dst, byte(len(list)))
		for _, s := range list {
			dst = appendString(dst, s)
		}
	}
	return dst
}

// ParseReport decodes what Append encoded and refuses anything else.
func ParseReport(b []byte) (Report, error) {
	const fixed = 2 + 4*4 + 2*8
	short := Error("a report is cut short")
	if len(b) < fixed {
		return Report{}, short
	}
	r := Report{Kind: b[0], Printed: b[1] == 1}
	if r.Kind >= kinds || b[1] > 1 {
		return Report{}, Error("a report has an unknown kind")
	}
	r.Line = bin.LittleEndian.Uint32(b[2:])
	r.Column = bin.LittleEndian.Uint32(b[6:])
	r.Unsent = bin.LittleEndian.Uint32(b[10:])
	r.Unhandled = bin.LittleEndian.Uint32(b[14:])
	r.CPU = bin.LittleEndian.Uint64(b[18:])
	r.Peak = bin.LittleEndian.Uint64(b[26:])
	b = b[fixed:]
	var ok bool
	for _, s := range r.strings() {
		if *s, b, ok = cutString(b); !ok {
			return Report{}, short
		}
	}
	for _, list := range [...]*[]string{&r.UnsentNames, &r.Failures} {
		if len(b) == 0 {
			return Report{}, short
		}
		n := int(b[0])
		if b = b[1:]; n > MaxNames {
			return Report{}, Error("a report names too many calls or failures")
		}
		for range n {
			var s string
			if s, b, ok = cutString(b); !ok {
				return Report{}, short
			}
			*list = append(*list, s)
		}
	}
	if len(b) != 0 {
		return Report{}, Error("a report has bytes left over")
	}
	return r, nil
}

func appendString(dst []byte, s string) []byte {
	dst = bin.LittleEndian.AppendUint32(dst, uint32(len(s)))
	return append(dst, s...)
}

func cutString(b []byte) (string, []byte, bool) {
	if len(b) < 4 {
		return "", nil, false
	}
	n := bin.LittleEndian.Uint32(b)
	if b = b[4:]; uint64(n) > uint64(len(b)) {
		return "", nil, false
	}
	return string(b[:n]), b[n:], true
}
