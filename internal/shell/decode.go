package shell

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding"
)

// The sizes that the decoder looks at or holds back.
const (
	sniffLen = 64      // bytes that decide whether output is UTF-16
	maxLine  = 8 << 10 // bytes of a line that are held until its encoding is known
)

// A decoder turns a command's bytes into valid UTF-8, however they are split.
// Valid UTF-8 is kept as it is. Output that begins with a byte order mark or is
// rich in NUL bytes is UTF-16. Of everything else, a line that is not UTF-8 is
// in the legacy encoding, if there is one, and each run of wrong bytes is one
// U+FFFD if there is not; ASCII always stays what it is.
type decoder struct {
	legacy encoding.Encoding // nil: none

	form     form
	held     []byte // bytes that could not be decoded yet
	replaced bool   // the last thing written was U+FFFD for wrong bytes
	out      []byte
}

type form int

const (
	unknown form = iota
	eightBit
	utf16LE
	utf16BE
)

// write decodes b, but for a rest that needs what comes next. The result is
// valid until the next call.
func (d *decoder) write(b []byte) []byte { return d.decode(b, false) }

// flush decodes what is left.
func (d *decoder) flush() []byte { return d.decode(nil, true) }

func (d *decoder) decode(b []byte, final bool) []byte {
	d.out = d.out[:0]
	if len(d.held) > 0 {
		b = append(d.held, b...)
	}
	if d.form == unknown {
		if d.form = sniff(b, final); d.form == unknown {
			d.hold(b)
			return nil
		}
		if d.form >= utf16LE && hasUTF16Mark(b) {
			b = b[2:]
		}
	}
	switch {
	case d.form != eightBit:
		b = d.decodeUTF16(b, final)
	case d.legacy != nil:
		b = d.decodeLines(b, final)
	default:
		b = d.decodeUTF8(b, final)
	}
	d.hold(b)
	return d.out
}

// hold keeps b, which may be a part of what is held.
func (d *decoder) hold(b []byte) { d.held = append(d.held[:0], b...) }

func hasUTF16Mark(b []byte) bool {
	return len(b) >= 2 && (b[0] == 0xFF && b[1] == 0xFE || b[0] == 0xFE && b[1] == 0xFF)
}

// sniff looks at the beginning of the output. Text in ASCII or UTF-8 is known
// after two bytes; what holds a NUL or a wrong byte early needs more.
func sniff(b []byte, final bool) form {
	if len(b) < 2 {
		if final {
			return eightBit
		}
		return unknown
	}
	if hasUTF16Mark(b) {
		if b[0] == 0xFF {
			return utf16LE
		}
		return utf16BE
	}
	start := b[:2]
	if !bytes.ContainsRune(start, 0) && (utf8.Valid(start) || incomplete(start) > 0) {
		return eightBit
	}
	if len(b) < sniffLen && !final {
		return unknown
	}
	b = b[:min(len(b), sniffLen)&^1]
	var nul [2]int
	for i, c := range b {
		if c == 0 {
			nul[i&1]++
		}
	}
	switch pairs := len(b) / 2; {
	case pairs < 2:
	case nul[1]*5 >= pairs && nul[0]*8 <= nul[1]:
		return utf16LE
	case nul[0]*5 >= pairs && nul[1]*8 <= nul[0]:
		return utf16BE
	}
	return eightBit
}

// incomplete gives the length of a UTF-8 sequence that b ends in the middle of,
// when all before it is valid.
func incomplete(b []byte) int {
	for n := 1; n <= min(len(b), utf8.UTFMax-1); n++ {
		rest := b[len(b)-n:]
		if utf8.RuneStart(rest[0]) {
			if !utf8.FullRune(rest) && utf8.Valid(b[:len(b)-n]) {
				return n
			}
			return 0
		}
	}
	return 0
}

func (d *decoder) decodeUTF8(b []byte, final bool) (rest []byte) {
	if utf8.Valid(b) { // nearly always, and many times faster
		d.out, d.replaced = append(d.out, b...), d.replaced && len(b) == 0
		return nil
	}
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r != utf8.RuneError || n > 1 {
			d.out = append(d.out, b[:n]...)
			d.replaced = false
			b = b[n:]
			continue
		}
		if !final && !utf8.FullRune(b) {
			return b
		}
		if !d.replaced {
			d.out = utf8.AppendRune(d.out, utf8.RuneError)
			d.replaced = true
		}
		b = b[1:]
	}
	return nil
}

// decodeLines lets ASCII through at once and holds the rest of a line from its
// first other byte on, until it is known whether the line is UTF-8.
func (d *decoder) decodeLines(b []byte, final bool) (rest []byte) {
	for len(b) > 0 {
		ascii := bytes.IndexFunc(b, func(r rune) bool { return r >= utf8.RuneSelf })
		if ascii < 0 {
			d.out = append(d.out, b...)
			return nil
		}
		d.out = append(d.out, b[:ascii]...)
		b = b[ascii:]
		end := bytes.IndexByte(b, '\n')
		switch {
		case end >= 0:
			end++
		case final:
			end = len(b)
		case len(b) > maxLine:
			// No multi-byte encoding has space or punctuation inside a
			// character.
			end = bytes.LastIndexFunc(b, func(r rune) bool { return r <= '/' }) + 1
			if end == 0 {
				end = len(b)
			}
		default:
			return b
		}
		d.decodeLine(b[:end])
		b = b[end:]
	}
	return nil
}

func (d *decoder) decodeLine(line []byte) {
	if utf8.Valid(line) {
		d.out = append(d.out, line...)
		return
	}
	text, err := d.legacy.NewDecoder().Bytes(line)
	if err != nil {
		text = bytes.ToValidUTF8(line, []byte(string(utf8.RuneError)))
	}
	d.out = append(d.out, text...)
}

func (d *decoder) decodeUTF16(b []byte, final bool) (rest []byte) {
	unit := func(i int) rune {
		if d.form == utf16LE {
			return rune(b[i]) | rune(b[i+1])<<8
		}
		return rune(b[i])<<8 | rune(b[i+1])
	}
	for len(b) >= 2 {
		r, n := unit(0), 2
		if utf16.IsSurrogate(r) {
			if len(b) < 4 && !final {
				return b
			}
			low := rune(0)
			if len(b) >= 4 {
				low = unit(2)
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				n = 4
			}
		}
		d.out = utf8.AppendRune(d.out, r)
		b = b[n:]
	}
	if final && len(b) > 0 {
		d.out = utf8.AppendRune(d.out, utf8.RuneError)
		return nil
	}
	return b
}
