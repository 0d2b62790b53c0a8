package guest

import (
	_ "embed"

	"capstan/internal/sandbox/bin"
	"capstan/internal/sandbox/guest/qjswasm"
)

// snapshot is the linear memory of a vm whose prelude has run: its handles, its
// size, and each page that is not zero behind its address. TestSnapshot makes
// it.
//
//go:embed snapshot.bin
var snapshot string

const snapshotPage = 4096

// linearMax is the linear memory's maximum in bytes, as the translated module
// has it.
const linearMax = 3072 << 16

// restore makes the vm of the snapshot in mem, an empty slice of fresh memory:
// with the capacity of the maximum,
// growing never copies.
func restore(imp *imports, mem []byte) *vm {
	m := qjswasm.New(imp, imp)
	e := translated{m}
	imp.mem = e.memory
	v := &vm{engine: e}
	s := []byte(nil)
	u32 := func(at int) uint32 { s = append(s[:0], snapshot[at:at+4]...); return bin.LittleEndian.Uint32(s) }
	at := 0
	for _, h := range v.all() {
		*h = int32(u32(at))
		at += 4
	}
	mem = mem[:u32(at)]
	for at += 4; at < len(snapshot); at += 4 + snapshotPage {
		copy(mem[u32(at):], snapshot[at+4:at+4+snapshotPage])
	}
	*m.Slice() = mem
	return v
}
