package llm

import (
	"encoding/json"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// Piece is a JSON string, or a part of one, as a server cut it: in the middle
// of a UTF-8 sequence or between the halves of a surrogate pair. Decoding keeps
// the halves, where encoding/json would replace them, so that a Joiner can put
// them together. A value that is no string is kept as its own text; Whole says
// so. null is empty.
type Piece struct {
	Text  []byte
	Whole bool // a value that is no string: an object, a number
}

// UnmarshalJSON takes any JSON value.
func (p *Piece) UnmarshalJSON(raw []byte) error {
	p.Text, p.Whole = nil, false
	switch {
	case string(raw) == "null":
	case raw[0] == '"':
		p.Text = unquote(raw)
	default:
		p.Text, p.Whole = append([]byte(nil), raw...), true
	}
	return nil
}

// unquote decodes a JSON string that is known to be well formed. Half surrogate
// pairs become three bytes each, which are not UTF-8.
func unquote(raw []byte) []byte {
	raw = raw[1 : len(raw)-1]
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		i++
		switch raw[i] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			out = appendUnit(out, hex4(raw[i+1:]))
			i += 4
		default:
			out = append(out, raw[i])
		}
	}
	return out
}

func hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		r <<= 4
		switch {
		case c >= 'a':
			r |= rune(c - 'a' + 10)
		case c >= 'A':
			r |= rune(c - 'A' + 10)
		default:
			r |= rune(c - '0')
		}
	}
	return r
}

// appendUnit appends a UTF-16 unit, together with the half before it if that
// makes a pair.
func appendUnit(out []byte, u rune) []byte {
	if !utf16.IsSurrogate(u) {
		return utf8.AppendRune(out, u)
	}
	if n := len(out) - 3; n >= 0 {
		if first, ok := half(out[n:]); ok {
			if r := utf16.DecodeRune(first, u); r != utf8.RuneError {
				return utf8.AppendRune(out[:n], r)
			}
		}
	}
	return append(out, 0xE0|byte(u>>12), 0x80|byte(u>>6)&0x3F, 0x80|byte(u)&0x3F)
}

// half reads half a surrogate pair from the three bytes that appendUnit wrote.
func half(b []byte) (rune, bool) {
	if len(b) < 3 || b[0] != 0xED || b[1] < 0xA0 || b[1] > 0xBF || b[2]&0xC0 != 0x80 {
		return 0, false
	}
	return 0xD000 | rune(b[1]&0x3F)<<6 | rune(b[2]&0x3F), true
}

// A Joiner puts pieces of a text together. What it returns is always valid
// UTF-8; a character that is not complete is kept for the next piece.
type Joiner struct{ tail []byte }

// Push takes a piece and returns what is complete.
func (j *Joiner) Push(piece []byte) string {
	if len(j.tail) == 0 && utf8.Valid(piece) {
		return string(piece)
	}
	b := append(j.tail, piece...)
	keep := incomplete(b)
	out := repair(b[:len(b)-keep])
	j.tail = append([]byte(nil), b[len(b)-keep:]...)
	return out
}

// Flush returns what is left at the end of the text.
func (j *Joiner) Flush() string {
	out := repair(j.tail)
	j.tail = nil
	return out
}

// incomplete is the number of bytes at the end of b that may be the beginning
// of a character.
func incomplete(b []byte) int {
	if len(b) >= 3 {
		if u, ok := half(b[len(b)-3:]); ok && u < 0xDC00 {
			return 3
		}
	}
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// repair joins halves and replaces what is no UTF-8.
func repair(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	out := make([]byte, 0, len(b)+3)
	for len(b) > 0 {
		if first, ok := half(b); ok {
			if second, ok := half(b[3:]); ok {
				if r := utf16.DecodeRune(first, second); r != utf8.RuneError {
					out, b = utf8.AppendRune(out, r), b[6:]
					continue
				}
			}
			out, b = utf8.AppendRune(out, utf8.RuneError), b[3:]
			continue
		}
		r, n := utf8.DecodeRune(b)
		out, b = utf8.AppendRune(out, r), b[n:]
	}
	return string(out)
}

// A Loose string takes what servers send where the API promises a string: a
// number, a boolean, null.
type Loose string

// UnmarshalJSON takes any JSON value; one that is no string keeps its text.
func (l *Loose) UnmarshalJSON(raw []byte) error {
	var s string
	if raw[0] != '"' {
		if string(raw) != "null" {
			*l = Loose(raw)
		}
		return nil
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("reading a string: %w", err)
	}
	*l = Loose(s)
	return nil
}
