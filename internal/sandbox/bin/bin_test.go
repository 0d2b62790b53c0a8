package bin

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// The standard library is the authority.
func FuzzAgainstBinary(f *testing.F) {
	f.Add(uint64(0x0102030405060708))
	f.Fuzz(func(t *testing.T, v uint64) {
		std := binary.LittleEndian
		var got, want [14]byte
		LittleEndian.PutUint16(got[:], uint16(v))
		LittleEndian.PutUint32(got[2:], uint32(v))
		LittleEndian.PutUint64(got[6:], v)
		std.PutUint16(want[:], uint16(v))
		std.PutUint32(want[2:], uint32(v))
		std.PutUint64(want[6:], v)
		app := LittleEndian.AppendUint64(LittleEndian.AppendUint32(LittleEndian.AppendUint16(nil, uint16(v)), uint32(v)), v)
		if got != want || !bytes.Equal(app, want[:]) {
			t.Fatalf("%x: wrote %x, appended %x, want %x", v, got, app, want)
		}
		if LittleEndian.Uint16(want[:]) != uint16(v) || LittleEndian.Uint32(want[2:]) != uint32(v) || LittleEndian.Uint64(want[6:]) != v {
			t.Fatalf("%x is read back wrong", v)
		}
	})
}
