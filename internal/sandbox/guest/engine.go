package guest

import (
	"time"

	"capstan/internal/sandbox/bin"
	"capstan/internal/sandbox/guest/qjswasm"
)

// engine is the part of the QuickJS module that a vm uses. Values are pointers
// to heap cells that hold a JSValue; 64-bit arguments are JSValues themselves.
// The translated module is one implementation; the tests have another, the
// same wasm under wazero, as the oracle for the translation.
type engine interface {
	X_initialize()
	Xqjs_init() int32
	Xqjs_get_context_ptr() int32
	Xqjs_get_runtime_ptr() int32
	Xqjs_set_interrupt_handler(on int32)
	Xqjs_set_memory_limit(bytes int32)
	Xqjs_set_promise_rejection_handler(on int32)
	Xqjs_set_max_stack_size(bytes int32)
	Xqjs_get_undefined() int32
	Xqjs_get_exception() int32
	Xqjs_is_exception(v int32) int32
	Xqjs_is_uncatchable_error(v int32) int32
	Xqjs_is_undefined(v int32) int32
	Xqjs_get_float64(v int32) float64
	Xqjs_get_string_len(v, lenPtr int32) int32
	Xqjs_free_cstring(p int32)
	Xqjs_get_prop_uint32(v, i int32) int32
	Xqjs_new_number(f float64) int32
	Xqjs_new_string(p, n int32) int32
	Xqjs_new_host_function(name, n, args int32) int32
	Xqjs_dup_value(v int32) int32
	Xqjs_free_value(v int32)
	Xqjs_throw(v int32) int32
	Xqjs_call(f, this, argc, argv int32) int32
	Xqjs_is_job_pending() int32
	Xqjs_execute_pending_job() int32
	Xqjs_promise_state(v int32) int32
	Xqjs_promise_result(v int32) int32
	XJS_Eval2(ctx, src, n, options int32) int64
	XJS_EvalFunction(ctx int32, f int64) int64
	XJS_GetUint8Array(ctx, lenPtr int32, v int64) int32
	XJS_NewObjectProtoClass(ctx int32, proto int64, class int32) int64
	XJS_SetUncatchableError(ctx int32, v int64)
	Xwasm_malloc(n int32) int32
	Xwasm_free(p int32)

	// memory is the linear memory; it moves when the module grows it.
	memory() []byte
}

// translated is the module that wasm2go made.
type translated struct {
	*qjswasm.Module
}

func (t translated) memory() []byte { return *t.Slice() }

// imports are what the module asks of its host. There is no file, no
// environment and no randomness: those calls fail as they would for a closed
// descriptor.
type imports struct {
	mem       func() []byte
	now       func() time.Time
	interrupt func() bool
	call      func(argc, argv int32) int32
	rejected  func(promise, reason int32, handled bool) // it owns both handles
}

func (i *imports) Xhost_interrupt() int32 {
	if i.interrupt() {
		return 1
	}
	return 0
}

func (i *imports) Xhost_call(_, _, _, argc, argv int32) int32 { return i.call(argc, argv) }

func (i *imports) Xhost_promise_rejection(promise, reason, handled int32) {
	i.rejected(promise, reason, handled != 0)
}

func (i *imports) Xclock_time_get(_ int32, _ int64, p int32) int32 {
	bin.LittleEndian.PutUint64(i.mem()[uint32(p):], uint64(i.now().UnixNano()))
	return 0
}

const errBadf = 8 // WASI's "bad file descriptor"

func (*imports) Xhost_get_timezone_offset(_, _ int32) int32  { return 0 }
func (*imports) Xhost_module_load(_, _ int32) int32          { return 0 }
func (*imports) Xhost_module_normalize(_, _ int32) int32     { return 0 }
func (*imports) Xfd_close(int32) int32                       { return errBadf }
func (*imports) Xfd_fdstat_get(_, _ int32) int32             { return errBadf }
func (*imports) Xfd_seek(_ int32, _ int64, _, _ int32) int32 { return errBadf }
func (*imports) Xfd_write(_, _, _, _ int32) int32            { return errBadf }
func (*imports) Xrandom_get(_, _ int32) int32                { return errBadf }
