package guest

import "capstan/internal/sandbox/bin"

// Operations of the host function; the prelude has the same numbers.
const (
	opCall  = 1
	opText  = 2
	opMedia = 3
	opTools = 4
	opNames = 5
	opExit  = 6
)

// fileName is how the program is called in stack traces.
const fileName = "exec.js"

// Flags of an evaluation, from quickjs.h.
const (
	evalCompileOnly = 1 << 5
	evalAsync       = 1 << 7
)

// classError is the class id of error objects.
const classError = 3

// handles are addresses in the linear memory that stay valid for the life of a
// vm. The snapshot begins with them, in this order.
type handles struct {
	Len, Args int32 // scratch: one size_t, and the arguments of a call
	Undefined int32
	Zero, One int32
	Context   int32
	Settle    int32
	Describe  int32
	Text      int32
	ErrProto  int32
	Random    int32 // address of the state of Math.random
}

func (h *handles) all() []*int32 {
	return []*int32{
		&h.Len, &h.Args, &h.Undefined, &h.Zero, &h.One, &h.Context,
		&h.Settle, &h.Describe, &h.Text, &h.ErrProto, &h.Random,
	}
}

// maxArgs is the largest number of arguments that vm.call passes.
const maxArgs = 6

// vm drives one QuickJS runtime. It is not safe for concurrent use.
type vm struct {
	engine
	handles
}

// exception is a JavaScript exception, as a handle, or an engine failure.
type exception struct {
	value       int32
	uncatchable bool
}

func (*exception) Error() string { return "javascript exception" }

// errNoMemory means that the linear memory is at its own maximum.
type errNoMemory struct{}

func (errNoMemory) Error() string { return "the linear memory is full" }

// alloc reserves n bytes and a final zero in the linear memory.
func (v *vm) alloc(n int) (int32, error) {
	p := v.Xwasm_malloc(int32(n + 1))
	if p == 0 {
		return 0, errNoMemory{}
	}
	v.memory()[uint32(p)+uint32(n)] = 0
	return p, nil
}

// put copies s into the linear memory.
func (v *vm) put(s string) (int32, error) {
	p, err := v.alloc(len(s))
	if err != nil {
		return 0, err
	}
	copy(v.memory()[uint32(p):], s)
	return p, nil
}

func (v *vm) load32(p int32) int32 {
	return int32(bin.LittleEndian.Uint32(v.memory()[uint32(p):]))
}

func (v *vm) store32(p, x int32) {
	bin.LittleEndian.PutUint32(v.memory()[uint32(p):], uint32(x))
}

// raw is the JSValue in the cell h.
func (v *vm) raw(h int32) int64 {
	return int64(bin.LittleEndian.Uint64(v.memory()[uint32(h):]))
}

// cell makes a handle of a JSValue that the caller owns.
func (v *vm) cell(x int64) (int32, error) {
	if h := v.Xqjs_new_number(0); h != 0 {
		bin.LittleEndian.PutUint64(v.memory()[uint32(h):], uint64(x))
		return h, nil
	}
	return 0, errNoMemory{}
}

// check turns a handle that may stand for an exception into an error.
func (v *vm) check(h int32) (int32, error) {
	if h == 0 {
		return 0, errNoMemory{}
	}
	if v.Xqjs_is_exception(h) == 0 {
		return h, nil
	}
	v.Xqjs_free_value(h)
	return 0, v.pendingException()
}

func (v *vm) pendingException() error {
	e := v.Xqjs_get_exception()
	if e == 0 {
		return errNoMemory{}
	}
	return &exception{value: e, uncatchable: v.Xqjs_is_uncatchable_error(e) != 0}
}

// evalAt evaluates or compiles the n bytes at p. line is the number of its first
// line.
func (v *vm) evalAt(p, n int32, file string, flags, line int32) (int32, error) {
	f, err := v.put(file)
	if err != nil {
		return 0, err
	}
	defer v.Xwasm_free(f)
	const optionsVersion = 1
	opts := v.Args
	v.store32(opts, optionsVersion)
	v.store32(opts+4, flags)
	v.store32(opts+8, f)
	v.store32(opts+12, line)
	h, err := v.cell(v.XJS_Eval2(v.Context, p, n, opts))
	if err != nil {
		return 0, err
	}
	return v.check(h)
}

// call calls the function f; the arguments stay the caller's.
func (v *vm) call(f int32, args ...int32) (int32, error) {
	for i, a := range args {
		v.store32(v.Args+4*int32(i), a)
	}
	return v.check(v.Xqjs_call(f, v.Undefined, int32(len(args)), v.Args))
}

// withBytes calls use with the UTF-8 of the string in the cell h, which stays
// in the linear memory: use must not keep it and must not run JavaScript.
func (v *vm) withBytes(h int32, use func(b []byte)) error {
	p := v.Xqjs_get_string_len(h, v.Len)
	if p == 0 {
		return v.pendingException()
	}
	n := uint32(v.load32(v.Len))
	use(v.memory()[uint32(p) : uint32(p)+n])
	v.Xqjs_free_cstring(p)
	return nil
}

// str is the string in the cell h, cut at limit bytes.
func (v *vm) str(h int32, limit int) string {
	var s string
	if v.withBytes(h, func(b []byte) { s = string(b[:min(len(b), limit)]) }) != nil {
		return ""
	}
	return s
}

// newString makes a string of the n bytes at p.
func (v *vm) newString(p int32, n int) (int32, error) {
	return v.check(v.Xqjs_new_string(p, int32(n)))
}

// blankError makes a ToolCallError without fields and without a stack: the
// engine gives it one where it is first thrown.
func (v *vm) blankError() (int32, error) {
	return v.cell(v.XJS_NewObjectProtoClass(v.Context, v.raw(v.ErrProto), classError))
}
