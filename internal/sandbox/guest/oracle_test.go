package guest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// wazeroEngine is the same wasm under a second runtime: the oracle for the
// translation.
type wazeroEngine struct {
	m     api.Module
	funcs map[string]api.Function
}

func (w *wazeroEngine) call(name string, args ...uint64) uint64 {
	f := w.funcs[name]
	if f == nil {
		f = w.m.ExportedFunction(name)
		w.funcs[name] = f
	}
	r, err := f.Call(context.Background(), args...)
	if err != nil {
		panic(err)
	}
	if len(r) == 0 {
		return 0
	}
	return r[0]
}

func (w *wazeroEngine) i32(name string, args ...int32) int32 {
	u := make([]uint64, len(args))
	for i, a := range args {
		u[i] = api.EncodeI32(a)
	}
	return api.DecodeI32(w.call(name, u...))
}

func (w *wazeroEngine) memory() []byte {
	b, _ := w.m.Memory().Read(0, w.m.Memory().Size())
	return b
}

func (w *wazeroEngine) X_initialize()                      { w.call("_initialize") }
func (w *wazeroEngine) Xqjs_init() int32                   { return w.i32("qjs_init") }
func (w *wazeroEngine) Xqjs_get_context_ptr() int32        { return w.i32("qjs_get_context_ptr") }
func (w *wazeroEngine) Xqjs_get_runtime_ptr() int32        { return w.i32("qjs_get_runtime_ptr") }
func (w *wazeroEngine) Xqjs_set_interrupt_handler(a int32) { w.i32("qjs_set_interrupt_handler", a) }
func (w *wazeroEngine) Xqjs_set_memory_limit(a int32)      { w.i32("qjs_set_memory_limit", a) }
func (w *wazeroEngine) Xqjs_set_promise_rejection_handler(a int32) {
	w.i32("qjs_set_promise_rejection_handler", a)
}
func (w *wazeroEngine) Xqjs_set_max_stack_size(a int32) { w.i32("qjs_set_max_stack_size", a) }
func (w *wazeroEngine) Xqjs_get_undefined() int32       { return w.i32("qjs_get_undefined") }
func (w *wazeroEngine) Xqjs_get_exception() int32       { return w.i32("qjs_get_exception") }
func (w *wazeroEngine) Xqjs_is_exception(a int32) int32 { return w.i32("qjs_is_exception", a) }
func (w *wazeroEngine) Xqjs_is_uncatchable_error(a int32) int32 {
	return w.i32("qjs_is_uncatchable_error", a)
}
func (w *wazeroEngine) Xqjs_is_undefined(a int32) int32 { return w.i32("qjs_is_undefined", a) }
func (w *wazeroEngine) Xqjs_get_float64(a int32) float64 {
	return api.DecodeF64(w.call("qjs_get_float64", api.EncodeI32(a)))
}
func (w *wazeroEngine) Xqjs_get_string_len(a, b int32) int32 {
	return w.i32("qjs_get_string_len", a, b)
}
func (w *wazeroEngine) Xqjs_free_cstring(a int32) { w.i32("qjs_free_cstring", a) }
func (w *wazeroEngine) Xqjs_get_prop_uint32(a, b int32) int32 {
	return w.i32("qjs_get_prop_uint32", a, b)
}
func (w *wazeroEngine) Xqjs_new_number(f float64) int32 {
	return api.DecodeI32(w.call("qjs_new_number", api.EncodeF64(f)))
}
func (w *wazeroEngine) Xqjs_new_string(a, b int32) int32 { return w.i32("qjs_new_string", a, b) }
func (w *wazeroEngine) Xqjs_new_host_function(a, b, c int32) int32 {
	return w.i32("qjs_new_host_function", a, b, c)
}
func (w *wazeroEngine) Xqjs_dup_value(a int32) int32      { return w.i32("qjs_dup_value", a) }
func (w *wazeroEngine) Xqjs_free_value(a int32)           { w.i32("qjs_free_value", a) }
func (w *wazeroEngine) Xqjs_throw(a int32) int32          { return w.i32("qjs_throw", a) }
func (w *wazeroEngine) Xqjs_call(a, b, c, d int32) int32  { return w.i32("qjs_call", a, b, c, d) }
func (w *wazeroEngine) Xqjs_is_job_pending() int32        { return w.i32("qjs_is_job_pending") }
func (w *wazeroEngine) Xqjs_execute_pending_job() int32   { return w.i32("qjs_execute_pending_job") }
func (w *wazeroEngine) Xqjs_promise_state(a int32) int32  { return w.i32("qjs_promise_state", a) }
func (w *wazeroEngine) Xqjs_promise_result(a int32) int32 { return w.i32("qjs_promise_result", a) }
func (w *wazeroEngine) Xwasm_malloc(a int32) int32        { return w.i32("wasm_malloc", a) }
func (w *wazeroEngine) Xwasm_free(a int32)                { w.i32("wasm_free", a) }
func (w *wazeroEngine) XJS_Eval2(a, b, c, d int32) int64 {
	return int64(w.call("JS_Eval2", api.EncodeI32(a), api.EncodeI32(b), api.EncodeI32(c), api.EncodeI32(d)))
}
func (w *wazeroEngine) XJS_EvalFunction(a int32, f int64) int64 {
	return int64(w.call("JS_EvalFunction", api.EncodeI32(a), uint64(f)))
}
func (w *wazeroEngine) XJS_GetUint8Array(a, b int32, v int64) int32 {
	return api.DecodeI32(w.call("JS_GetUint8Array", api.EncodeI32(a), api.EncodeI32(b), uint64(v)))
}
func (w *wazeroEngine) XJS_NewObjectProtoClass(a int32, p int64, c int32) int64 {
	return int64(w.call("JS_NewObjectProtoClass", api.EncodeI32(a), uint64(p), api.EncodeI32(c)))
}
func (w *wazeroEngine) XJS_SetUncatchableError(a int32, v int64) {
	w.call("JS_SetUncatchableError", api.EncodeI32(a), uint64(v))
}

// wazeroVM boots the engine under wazero.
func wazeroVM(t *testing.T, cache wazero.CompilationCache, call func(v *vm, argc, argv int32) int32) *vm {
	t.Helper()
	wasm, err := os.ReadFile("qjswasm/quickjs.wasm")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCompilationCache(cache))
	t.Cleanup(func() { _ = rt.Close(ctx) })
	e := &wazeroEngine{funcs: map[string]api.Function{}}
	v := &vm{engine: e}
	imp := &imports{mem: e.memory, now: func() time.Time { return time.Unix(0, 0) }, interrupt: func() bool { return false }, rejected: func(_, _ int32, _ bool) {},
		call: func(argc, argv int32) int32 { return call(v, argc, argv) }}
	_, err = rt.NewHostModuleBuilder("env").
		NewFunctionBuilder().WithFunc(imp.Xhost_call).Export("host_call").
		NewFunctionBuilder().WithFunc(imp.Xhost_get_timezone_offset).Export("host_get_timezone_offset").
		NewFunctionBuilder().WithFunc(imp.Xhost_interrupt).Export("host_interrupt").
		NewFunctionBuilder().WithFunc(imp.Xhost_module_load).Export("host_module_load").
		NewFunctionBuilder().WithFunc(imp.Xhost_module_normalize).Export("host_module_normalize").
		NewFunctionBuilder().WithFunc(imp.Xhost_promise_rejection).Export("host_promise_rejection").
		Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, err = rt.NewHostModuleBuilder("wasi_snapshot_preview1").
		NewFunctionBuilder().WithFunc(imp.Xclock_time_get).Export("clock_time_get").
		NewFunctionBuilder().WithFunc(imp.Xfd_close).Export("fd_close").
		NewFunctionBuilder().WithFunc(imp.Xfd_fdstat_get).Export("fd_fdstat_get").
		NewFunctionBuilder().WithFunc(imp.Xfd_seek).Export("fd_seek").
		NewFunctionBuilder().WithFunc(imp.Xfd_write).Export("fd_write").
		NewFunctionBuilder().WithFunc(imp.Xrandom_get).Export("random_get").
		Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	e.m, err = rt.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	if err := v.boot(); err != nil {
		t.Fatal(shown(v, err))
	}
	return v
}

// transcript runs a program in v with a host that echoes, in one turn for each
// call, and writes down all that comes of it.
type transcript struct {
	v     *vm
	lines []string
	calls []string // arguments of calls to be answered
}

func (tr *transcript) host(v *vm, argc, argv int32) int32 {
	arg := func(i int32) string { return v.str(v.load32(argv+4*i), 1<<20) }
	switch op := int(v.Xqjs_get_float64(v.load32(argv))); op {
	case opCall:
		tr.calls = append(tr.calls, arg(2))
		tr.lines = append(tr.lines, fmt.Sprintf("call %s %s", arg(1), arg(2)))
		return v.Xqjs_new_number(float64(len(tr.calls)))
	case opText:
		tr.lines = append(tr.lines, "text "+arg(1))
	case opMedia:
		p := v.XJS_GetUint8Array(v.Context, v.Len, v.raw(v.load32(argv+12)))
		tr.lines = append(tr.lines, fmt.Sprintf("media %s %x", arg(2), v.memory()[uint32(p):uint32(p)+uint32(v.load32(v.Len))]))
	case opTools, opNames:
		s := `["echo"]`
		p, err := v.put(s)
		if err != nil {
			panic(err)
		}
		return v.Xqjs_new_string(p, int32(len(s)))
	}
	return v.Xqjs_new_number(accepted)
}

func (tr *transcript) run(source string) {
	v := tr.v
	v.Xqjs_set_memory_limit(64 << 20)
	v.Xqjs_set_max_stack_size(512 << 10)
	tr.lines, tr.calls = nil, nil
	promise, err := v.eval(arrowOpen+begin+source+arrowClose[:len(arrowClose)-1]+")()", fileName, wrapperLine)
	for answered := 0; err == nil; {
		for v.Xqjs_is_job_pending() != 0 {
			if v.Xqjs_execute_pending_job() < 0 {
				tr.fail(v.pendingException())
				return
			}
		}
		if v.Xqjs_promise_state(promise) != 0 || answered == len(tr.calls) {
			break
		}
		value, _ := json.Marshal(map[string]any{"callId": fmt.Sprint(answered + 1), "structuredContent": json.RawMessage(tr.calls[answered])})
		err = tr.answer(answered+1, string(value), tr.calls[answered])
		answered++
	}
	switch {
	case err != nil:
		tr.fail(err)
	case v.Xqjs_promise_state(promise) == 2:
		tr.fail(&exception{value: v.Xqjs_promise_result(promise)})
	case v.Xqjs_promise_state(promise) == 0:
		tr.lines = append(tr.lines, "pending")
	default:
		tr.lines = append(tr.lines, "fulfilled "+v.str(v.Xqjs_promise_result(promise), 1000))
	}
}

func (tr *transcript) answer(id int, value, text string) error {
	v := tr.v
	str := func(s string) int32 {
		p, err := v.put(s)
		if err != nil {
			panic(err)
		}
		return v.Xqjs_new_string(p, int32(len(s)))
	}
	long := v.Zero
	if longNumber([]byte(value)) {
		long = v.One
	}
	_, err := v.call(v.Settle, v.Xqjs_new_number(float64(id)), v.One, str(value), str(text), long, v.Undefined)
	return err
}

func (tr *transcript) fail(err error) {
	e, ok := err.(*exception) //nolint:errorlint // never wrapped, and package errors is not the child's
	if !ok {
		tr.lines = append(tr.lines, "failed: "+err.Error())
		return
	}
	r := tr.v.describe(e.value)
	tr.lines = append(tr.lines, fmt.Sprintf("thrown %q %q %q uncatchable %v", r.Name, r.Message, r.Stack, e.uncatchable))
}

// oracle are programs whose outcome must be the same under both runtimes.
var oracle = []string{
	`text(1 + 1); return 3`,
	`for (let i = 0; i < 5; i++) text((await tools.echo({i})).output)`,
	`text((await Promise.all([1, 2, 3].map(i => tools.echo(i)))).map(r => r.output))`,
	`text((await tools.echo({id: 12345678901234567890n, d: JSON.rawJSON('0.12345678901234567890')})).structuredContent)`,
	`text(Object.keys(tools), ALL_TOOLS, 'echo' in tools, tools.then)`,
	`image('data:image/png;base64,AAECAwQF')`,
	`null.x`, `throw {a: [1n]}`, `const = 1`, `await new Promise(() => {})`, `text([tools.echo(1)])`,
	`let d = 0; const f = () => { d++; f() }; try { f() } catch (e) { text(e.name, e.message, d) }`,
	`const a = []; for (;;) a.push('x'.repeat(1000) + a.length)`,
	`try { new Array(1e9).fill(0) } catch (e) { text(String(e)) }`,
	`try { JSON.parse('['.repeat(1e5)) } catch (e) { text(String(e)) }`,
	`try { text((3n ** 100000n).toString().length) } catch (e) { text(String(e)) }`,
	`text('ab'.repeat(1000).replace(/(a)(b)/g, '$2$1').slice(0, 10), /^(?:(a)|b)*$/.exec('ab'.repeat(100)).length)`,
	`text([..."x".repeat(1000)].map((_, i) => (i * 7919) % 1000).sort((a, b) => a - b).slice(0, 5), [3, 1, 2].toSorted())`,
	`text(Math.sin(1), Math.pow(2, 0.5), Math.fround(0.1), 0.1 + 0.2, 1e21, 1 / 3, parseFloat('1e-7'), (25).toString(36), Math.hypot(3, 4), Math.exp(1), Math.log(2), Math.atan2(1, 2), Math.cbrt(27), (123.456).toFixed(2), (0.000001234).toPrecision(3))`,
	`text(new Date(0).toISOString(), Date.parse('2024-02-29T12:00:00Z'), new Date(2024, 1, 29).toString())`,
	`text('ß'.toUpperCase(), 'ǅ'.toLowerCase(), '\u1e9b\u0323'.normalize('NFKD').length, 'z'.localeCompare('a'), /\p{Lu}/v.test('É'))`,
	`const m = new Map(); for (let i = 0; i < 1000; i++) m.set('k' + i, i); let s = 0; for (const [, v] of m) s += v; text(s)`,
	`class A { #x = 1; static s = 2; get x() { return this.#x } } text(new A().x, A.s, Object.groupBy([1, 2, 3], x => x % 2 ? 'odd' : 'even'))`,
	`async function* g() { for (let i = 0; i < 3; i++) yield i } for await (const x of g()) text(x)`,
	`text(eval('1+1'), new Function('a', 'return a * 2')(4), typeof globalThis.SharedArrayBuffer)`,
	`const w = new Float64Array(4).map((_, i) => i / 3); text([...w], new Uint8Array(w.buffer).slice(0, 16).toHex(), Uint8Array.fromBase64('AAEC').length)`,
	`text(structuredCloneLike({a: [1, {b: 2}]})); function structuredCloneLike(x) { return JSON.parse(JSON.stringify(x)) }`,
	`text(Array.from({length: 20}, (_, i) => i ** 3n === 1), 1)`,
}

// The translated engine does what the same wasm does under wazero.
func TestOracle(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("it compiles the engine under wazero, which the race detector makes very slow")
	}
	cache := wazero.NewCompilationCache()
	defer cache.Close(t.Context())
	for _, source := range oracle {
		a, b := &transcript{}, &transcript{}
		a.v = freshVM(t, func(argc, argv int32) int32 { return a.host(a.v, argc, argv) })
		b.v = wazeroVM(t, cache, b.host)
		a.run(source)
		b.run(source)
		if d := cmp.Diff(b.lines, a.lines); d != "" {
			t.Errorf("%s\n(-wazero +translated):\n%s", source, d)
		}
		if len(a.lines) == 0 {
			t.Errorf("%s\nhas no outcome", source)
		}
	}
}
