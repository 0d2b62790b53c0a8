// Package bin reads and writes little-endian integers, as encoding/binary does,
// and imports nothing. encoding/binary needs reflect, which Go initialises only
// after many packages of a big program; the sandbox child takes over before
// them, so it cannot wait for reflect.
package bin

// Order has the methods of encoding/binary's LittleEndian that the child uses.
type Order struct{}

// LittleEndian is the only order there is here.
var LittleEndian Order

// Uint16 reads two bytes.
func (Order) Uint16(b []byte) uint16 {
	_ = b[1]
	return uint16(b[0]) | uint16(b[1])<<8
}

// Uint32 reads four bytes.
func (Order) Uint32(b []byte) uint32 {
	_ = b[3]
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// Uint64 reads eight bytes.
func (o Order) Uint64(b []byte) uint64 {
	_ = b[7]
	return uint64(o.Uint32(b)) | uint64(o.Uint32(b[4:]))<<32
}

// PutUint16 writes two bytes.
func (Order) PutUint16(b []byte, v uint16) {
	_ = b[1]
	b[0], b[1] = byte(v), byte(v>>8)
}

// PutUint32 writes four bytes.
func (Order) PutUint32(b []byte, v uint32) {
	_ = b[3]
	b[0], b[1], b[2], b[3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
}

// PutUint64 writes eight bytes.
func (o Order) PutUint64(b []byte, v uint64) {
	_ = b[7]
	o.PutUint32(b, uint32(v))
	o.PutUint32(b[4:], uint32(v>>32))
}

// AppendUint16 appends two bytes.
func (Order) AppendUint16(b []byte, v uint16) []byte { return append(b, byte(v), byte(v>>8)) }

// AppendUint32 appends four bytes.
func (Order) AppendUint32(b []byte, v uint32) []byte {
	return append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
}

// AppendUint64 appends eight bytes.
func (o Order) AppendUint64(b []byte, v uint64) []byte {
	return o.AppendUint32(o.AppendUint32(b, uint32(v)), uint32(v>>32))
}
