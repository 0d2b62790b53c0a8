package guest

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"flag"
	"os"
	"testing"
	"time"

	"capstan/internal/sandbox/guest/qjswasm"
)

var update = flag.Bool("update", false, "write the snapshot anew")

//go:embed prelude.js
var preludeSource string

// boot makes a fresh runtime and runs the prelude in it.
func (v *vm) boot() error {
	v.X_initialize()
	if v.Xqjs_init() != 0 {
		return errNoMemory{}
	}
	v.Len, v.Args = v.Xwasm_malloc(8), v.Xwasm_malloc(4*maxArgs)
	v.Undefined, v.Context = v.Xqjs_get_undefined(), v.Xqjs_get_context_ptr()
	v.Zero, v.One = v.Xqjs_new_number(0), v.Xqjs_new_number(1)
	v.Xqjs_set_interrupt_handler(1)
	v.Xqjs_set_promise_rejection_handler(1)
	name, err := v.put("host")
	if err != nil {
		return err
	}
	host := v.Xqjs_new_host_function(name, 4, 4)
	v.Xwasm_free(name)
	prelude, err := v.eval(preludeSource, "capstan", 1)
	if err != nil {
		return err
	}
	parts, err := v.call(prelude, host)
	if err != nil {
		return err
	}
	for i, h := range []*int32{&v.Settle, &v.Describe, &v.Text, &v.ErrProto} {
		*h = v.Xqjs_get_prop_uint32(parts, int32(i))
	}
	v.Xqjs_free_value(parts)
	v.Xqjs_free_value(prelude)
	v.Xqjs_free_value(host)
	return nil
}

// eval evaluates src. line is the number of its first line.
func (v *vm) eval(src, file string, line int32) (int32, error) {
	p, err := v.put(src)
	if err != nil {
		return 0, err
	}
	defer v.Xwasm_free(p)
	return v.evalAt(p, int32(len(src)), file, 0, line)
}

// freshVM boots a vm in this process, with a clock that stands still, as the
// snapshot has it.
func freshVM(t testing.TB, call func(argc, argv int32) int32) *vm {
	t.Helper()
	imp := &imports{now: func() time.Time { return time.Unix(0, 0) }, interrupt: func() bool { return false }, rejected: func(_, _ int32, _ bool) {}, call: call}
	m := qjswasm.New(imp, imp)
	e := translated{m}
	imp.mem = e.memory
	v := &vm{engine: e}
	if err := v.boot(); err != nil {
		t.Fatal(shown(v, err))
	}
	return v
}

// shown is the text of an error of v.
func shown(v *vm, err error) string {
	if x, ok := err.(*exception); ok { //nolint:errorlint // never wrapped, and package errors is not the child's
		return v.str(x.value, 1000)
	}
	return err.Error()
}

// findRandom finds the address of the state of Math.random: the one aligned
// word that a call to it moves one step of xorshift64*.
func findRandom(t *testing.T, v *vm) int32 {
	t.Helper()
	before := bytes.Clone(v.memory())
	h, err := v.eval("Math.random()", "find", 1)
	if err != nil {
		t.Fatal(shown(v, err))
	}
	v.Xqjs_free_value(h)
	var found []int32
	for i := 0; i+8 <= len(before); i += 8 {
		x := binary.LittleEndian.Uint64(before[i:])
		if x == 0 {
			continue
		}
		x ^= x >> 12
		x ^= x << 25
		x ^= x >> 27
		if x == binary.LittleEndian.Uint64(v.memory()[i:]) {
			found = append(found, int32(i))
		}
	}
	if len(found) != 1 {
		t.Fatalf("found %d places that may be the state of Math.random, want 1", len(found))
	}
	return found[0]
}

// The committed snapshot is what the committed engine and prelude make.
// Run with -update after a change of either.
func TestSnapshot(t *testing.T) {
	random := findRandom(t, freshVM(t, nil))
	v := freshVM(t, nil)
	v.Random = random
	made := v.snapshot()
	if *update {
		if err := os.WriteFile("snapshot.bin", made, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(made) != snapshot {
		t.Fatal("snapshot.bin is not what prelude.js and the engine make: run go test ./internal/sandbox/guest -run TestSnapshot -update")
	}
}

// snapshot encodes the vm's handles and memory, without its zero pages.
func (v *vm) snapshot() []byte {
	var b []byte
	for _, h := range v.all() {
		b = binary.LittleEndian.AppendUint32(b, uint32(*h))
	}
	mem := v.memory()
	b = binary.LittleEndian.AppendUint32(b, uint32(len(mem)))
	zero := make([]byte, snapshotPage)
	for at := 0; at < len(mem); at += snapshotPage {
		page := mem[at : at+snapshotPage]
		if !bytes.Equal(page, zero) {
			b = binary.LittleEndian.AppendUint32(b, uint32(at))
			b = append(b, page...)
		}
	}
	return b
}
