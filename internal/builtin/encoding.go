package builtin

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// An encoding is how a text file spells its characters.
type encoding struct {
	name  string
	mark  string    // its byte order mark, if the file has one
	order byteOrder // of UTF-16; nil otherwise
	table *[32]rune // what 0x80 to 0x9F mean in a one-byte encoding; nil otherwise
}

var (
	utf8Plain = &encoding{name: "utf-8"}
	utf8Mark  = &encoding{name: "utf-8 with BOM", mark: "\xef\xbb\xbf"}
	win1252   = &encoding{name: "windows-1252", table: &c1}

	utf16LEMark = &encoding{name: "utf-16le with BOM", mark: "\xff\xfe", order: binary.LittleEndian}
	utf16BEMark = &encoding{name: "utf-16be with BOM", mark: "\xfe\xff", order: binary.BigEndian}
	utf16LE     = &encoding{name: "utf-16le", order: binary.LittleEndian}
	utf16BE     = &encoding{name: "utf-16be", order: binary.BigEndian}
)

// c1 is windows-1252 where it differs from ISO 8859-1, after the WHATWG
// encoding standard, in which every byte means something: so any file can be
// decoded and encoded again without loss.
var c1 = [32]rune{
	'€', 0x81, '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', 0x8d, 'Ž', 0x8f,
	0x90, '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', 0x9d, 'ž', 'Ÿ',
}

// markOf returns the encoding whose byte order mark the bytes begin with.
func markOf(b []byte) *encoding {
	for _, e := range []*encoding{utf8Mark, utf16LEMark, utf16BEMark} {
		if bytes.HasPrefix(b, []byte(e.mark)) {
			return e
		}
	}
	return nil
}

// guessUTF16 recognises UTF-16 without a mark by what Latin text looks like in
// it: every second byte is a NUL.
func guessUTF16(b []byte) *encoding {
	var nul [2]int
	pairs := min(len(b), 1024) / 2
	for i := range pairs * 2 {
		if b[i] == 0 {
			nul[i%2]++
		}
	}
	switch {
	case pairs < 2 || nul[0]+nul[1] > pairs:
		return nil
	case nul[1] >= pairs-pairs/8 && nul[0] == 0:
		return utf16LE
	case nul[0] >= pairs-pairs/8 && nul[1] == 0:
		return utf16BE
	}
	return nil
}

// decode returns the text of a file without its byte order mark. What is
// neither UTF-8 nor UTF-16 is taken for windows-1252, and said to be.
func decode(b []byte) (string, *encoding) {
	e := markOf(b)
	if e == nil && bytes.IndexByte(b, 0) >= 0 {
		e = guessUTF16(b)
	}
	switch {
	case e == nil && utf8.Valid(b):
		return string(b), utf8Plain
	case e == utf8Mark && utf8.Valid(b):
		return string(b[len(e.mark):]), e
	case e == nil || e == utf8Mark || len(b)%2 != 0:
		return win1252.widen(b), win1252
	}
	body := b[len(e.mark):]
	units := make([]uint16, len(body)/2)
	for i := range units {
		units[i] = e.order.Uint16(body[2*i:])
	}
	return string(utf16.Decode(units)), e
}

func (e *encoding) widen(b []byte) string {
	var s strings.Builder
	s.Grow(len(b) + len(b)/8)
	for _, c := range b {
		switch {
		case c < 0x80:
			s.WriteByte(c)
		case c < 0xa0:
			s.WriteRune(e.table[c-0x80])
		default:
			s.WriteRune(rune(c))
		}
	}
	return s.String()
}

// encode is the way back. It fails, naming the character, when the encoding
// has no place for one.
func (e *encoding) encode(s string) ([]byte, error) {
	switch {
	case e.table != nil:
		return e.narrow(s)
	case e.order == nil:
		return append([]byte(e.mark), s...), nil
	}
	units := utf16.Encode([]rune(s))
	out := make([]byte, len(e.mark), len(e.mark)+2*len(units))
	copy(out, e.mark)
	for _, u := range units {
		out = e.order.AppendUint16(out, u)
	}
	return out, nil
}

func (e *encoding) narrow(s string) ([]byte, error) {
	out := make([]byte, 0, len(s))
next:
	for _, r := range s {
		if r < 0x80 || r >= 0xa0 && r <= 0xff {
			out = append(out, byte(r))
			continue
		}
		for i, c := range e.table {
			if c == r {
				out = append(out, byte(0x80+i))
				continue next
			}
		}
		return nil, fmt.Errorf("the file is not UTF-8 (read as %s), which has no %q", e.name, r)
	}
	return out, nil
}

// byteOrder reads and appends units of UTF-16; both orders of encoding/binary
// do.
type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}
