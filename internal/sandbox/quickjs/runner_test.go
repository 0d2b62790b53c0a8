package quickjs

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"capstan/internal/sandbox"
	"capstan/internal/sandbox/frame"
	"capstan/internal/sandbox/guest"
	"capstan/internal/sandbox/sandboxtest"
)

// waitForSpares waits until the Runner has as many spares as it keeps.
func waitForSpares(t *testing.T, r *Runner) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		n := len(r.idle)
		r.mu.Unlock()
		if n == r.spares {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d spares after a minute, want %d", n, r.spares)
		}
	}
}

// Spares are started after the first run, used once each, and gone with Close.
// S0-111 S0-112
func TestSpares(t *testing.T) {
	r := newRunner(t, Options{Spares: 2})
	if n := len(sandboxtest.Children()); n != 0 {
		t.Fatalf("New started %d children", n)
	}
	var used []bool
	for range 4 {
		h := newHost()
		u, err := run(t, r, h, `globalThis.left = (globalThis.left ?? 0) + 1; text(left)`, sandbox.Limits{})
		if d := cmp.Diff([]string{"1"}, h.out); err != nil || d != "" {
			t.Fatalf("Run: %v (-want +got):\n%s", err, d)
		}
		used = append(used, u.Prespawned)
		waitForSpares(t, r)
	}
	if d := cmp.Diff([]bool{false, true, true, true}, used); d != "" {
		t.Errorf("prespawned (-want +got):\n%s", d)
	}
	// A spare that has died is not used.
	r.mu.Lock()
	for _, p := range r.idle {
		p.kill()
		<-p.exited
	}
	r.mu.Unlock()
	if u, err := run(t, r, newHost(), `text(1)`, sandbox.Limits{}); err != nil || u.Prespawned {
		t.Errorf("Run with dead spares: %v, prespawned %v", err, u.Prespawned)
	}
	r.Close()
	if left := sandboxtest.Children(); len(left) > 0 {
		t.Errorf("children are left: %v", left)
	}
	if _, err := run(t, r, newHost(), ``, sandbox.Limits{}); err == nil || err.Message != "starting the interpreter: the runner is closed" {
		t.Errorf("Run after Close: %v", err)
	}
}

func TestPrespawn(t *testing.T) {
	r := newRunner(t, Options{Spares: 1})
	r.Prespawn()
	waitForSpares(t, r)
	if u, err := run(t, r, newHost(), `text(1)`, sandbox.Limits{}); err != nil || !u.Prespawned {
		t.Errorf("Run: %v, prespawned %v", err, u.Prespawned)
	}
	waitForSpares(t, r)
	r.Close()
	if left := sandboxtest.Children(); len(left) > 0 {
		t.Errorf("Close left %v", left)
	}
}

// Nothing of one program is seen by the next, or by one beside it. S0-022
// S0-023 S0-024 S0-149 S0-150 S0-151 S0-226 S0-245 S1-092
func TestIsolation(t *testing.T) {
	r := newRunner(t, Options{Spares: 1})
	seen := map[string]bool{}
	for range 5 {
		h := newHost()
		_, err := run(t, r, h, `text(typeof leak, Object.prototype.leak, Math.random()); leak = 1; Object.prototype.leak = 1; Math.random = () => 4; Promise.prototype.then = null`, sandbox.Limits{})
		if err != nil || len(h.out) != 1 || !strings.HasPrefix(h.out[0], "undefined undefined 0.") {
			t.Fatalf("Run: %v, printed %q", err, h.out)
		}
		seen[h.out[0]] = true
	}
	if len(seen) != 5 {
		t.Errorf("Math.random repeats: %v", seen)
	}
}

// What a program does not have, by no way. S0-021 S0-026 S0-027 S0-028 S0-029
// S0-033 S0-114 S0-118 S0-119 S0-120 S0-121 S0-122 S0-123 S0-124 S0-125 S0-126
// S0-127 S0-128 S0-153 S0-154 S0-244
func TestGlobals(t *testing.T) {
	h := newHost()
	_, err := run(t, newRunner(t, Options{}), h, `
for (const n of ['require', 'process', 'global', 'module', 'exports', 'Buffer', 'fetch', 'XMLHttpRequest', 'WebSocket', 'Deno', 'Bun', 'std', 'os', 'bjson',
	'console', 'print', 'setTimeout', 'setInterval', 'setImmediate', 'clearTimeout', 'Atomics', 'SharedArrayBuffer', 'WebAssembly', 'performance', 'navigator',
	'wait', 'yield_', 'store', 'load', 'host', 'scriptArgs', 'gc', '__loadScript'])
	for (const f of [() => globalThis[n], () => eval('typeof ' + n + ' === "undefined" ? undefined : ' + n), () => Function('return typeof ' + n + ' === "undefined" ? undefined : ' + n)(),
		() => (async () => {}).constructor, ])
		if (f() !== undefined && f().name !== 'AsyncFunction') text(n);
for (const [n, f] of Object.entries({import: () => import('os'), eval: () => eval('import("os")'), Function: () => Function('return import("os")')()}))
	try { await f(); text('imported by ' + n) } catch (e) { text(n, e.name) }
text(Object.getOwnPropertyNames(globalThis).filter(n => !/^[A-Z]|^(eval|parse|is|decode|encode|un)/.test(n)).sort().join())`, sandbox.Limits{})
	want := []string{"import ReferenceError", "eval ReferenceError", "Function ReferenceError",
		"atob,audio,btoa,escape,exit,globalThis,image,queueMicrotask,text,tools"}
	if d := cmp.Diff(want, h.out); err != nil || d != "" {
		t.Errorf("Run: %v (-want +got):\n%s", err, d)
	}
}

// What a program changes before a call breaks no call and reaches nothing.
func TestTampering(t *testing.T) {
	r := newRunner(t, Options{})
	for _, tamper := range []string{
		`Promise.prototype.then = null; Promise.resolve = null; globalThis.Promise = null`,
		`JSON.stringify = JSON.parse = () => 'x'; globalThis.JSON = null`,
		`Array.prototype[Symbol.iterator] = null; Map.prototype.get = Map.prototype.set = Map.prototype.delete = null; Set.prototype.has = Set.prototype.add = null`,
		`Array.prototype.push = Array.prototype.map = Array.prototype.join = null; Object.defineProperty(Array.prototype, Symbol.isConcatSpreadable, {value: 1})`,
		`Reflect.apply = Reflect.defineProperty = null; Function.prototype.call = Function.prototype.apply = Function.prototype.bind = null`,
		`Object.defineProperty(Promise, Symbol.hasInstance, {value: null}); Error.isError = null; Object.keys = Object.freeze = null`,
		`for (const k of ['get', 'set', 'value', 'writable', 'enumerable', 'configurable']) Object.defineProperty(Object.prototype, k, {__proto__: null, get() { throw k }, configurable: true})`,
		`Object.prototype.then = undefined; Object.prototype.code = 'X'; Object.prototype.content = 'X'`,
		`String.prototype.slice = String.prototype.charCodeAt = null; globalThis.BigInt = Number = String = Symbol = null`,
		`Object.setPrototypeOf(Array.prototype, null); Object.setPrototypeOf(Function.prototype, null)`,
		`Error.prepareStackTrace = () => { throw 1 }; Error.stackTraceLimit = 0; Error.captureStackTrace = null`,
	} {
		h := newHost()
		h.tools["data"] = func(_ context.Context, c sandbox.Call) sandbox.Reply {
			return structured(c, `[12345678901234567890, 0.12345678901234567890]`)
		}
		_, err := run(t, r, h, tamper+`;
const a = await tools.echo({a: 1}); text(a.output); text(a.content[0].text)
const d = await tools.data(); text(d.structuredContent)
try { await tools.deny() } catch (e) { text(e.code) }`, sandbox.Limits{})
		want := []string{`{"a":1}`, `{"a":1}`, "[12345678901234567890,0.12345678901234567890]", "DENIED"}
		if strings.Contains(tamper, "'content'") || strings.Contains(tamper, "Object.prototype.content") {
			want[1] = h.out[min(1, len(h.out)-1)]
		}
		if d := cmp.Diff(want, h.out); err != nil || d != "" {
			t.Errorf("after %s\nRun: %v (-want +got):\n%s", tamper, err, d)
		}
	}
}

// Names cross as data, whatever they say. BUG-CM-16
func TestHostileNames(t *testing.T) {
	names := []string{"__proto__", "a b", "x\"]=1;text('pwned');//", "\u2028", "\xff"}
	h := newHost()
	_, err := newRunner(t, Options{}).Run(t.Context(), sandbox.Program{Names: names,
		Source: `text(Object.keys(tools)); text('__proto__' in tools, typeof tools.__proto__)`}, h)
	want := []string{`["__proto__","a b","x\"]=1;text('pwned');//","` + "\u2028\",\"\uFFFD" + `"]`, "true function"}
	if d := cmp.Diff(want, h.out); err != nil || d != "" {
		t.Errorf("Run: %v (-want +got):\n%s", err, d)
	}
}

// One Runner runs many programs at once.
func TestConcurrentRuns(t *testing.T) {
	r := newRunner(t, Options{Spares: 2})
	for i := range 8 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			h := newHost()
			_, err := run(t, r, h, fmt.Sprintf(`for (let i = 0; i < 20; i++) text((await tools.echo({n: %d, i})).output)`, i), sandbox.Limits{})
			var want []string
			for k := range 20 {
				want = append(want, fmt.Sprintf(`{"n":%d,"i":%d}`, i, k))
			}
			if d := cmp.Diff(want, h.out); err != nil || d != "" {
				t.Errorf("Run: %v (-want +got):\n%s", err, d)
			}
		})
	}
}

// Layers that are off are reported, and refused when they are required. S0-115 S0-152
// S0-220
func TestLayers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the layers are Linux's")
	}
	all := []string{"no_new_privs", "landlock", "rlimits", "seccomp"}
	layers, err := newRunner(t, Options{}).Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names, lost []string
	for _, l := range layers {
		names = append(names, l.Name)
		if !l.InForce {
			lost = append(lost, l.Name)
		}
	}
	if d := cmp.Diff(all, names); d != "" {
		t.Errorf("layers (-want +got):\n%s", d)
	}
	for _, off := range [][]string{nil, {"landlock"}, {"seccomp"}, {"rlimits"}, all} {
		h := newHost()
		u, err := run(t, newRunner(t, Options{Off: off}), h, `text((await tools.echo(1)).output)`, sandbox.Limits{})
		if d := cmp.Diff([]string{"1"}, h.out); err != nil || d != "" {
			t.Errorf("off %v: %v (-want +got):\n%s", off, err, d)
		}
		want := slices.DeleteFunc(slices.Clone(all), func(n string) bool { return !slices.Contains(off, n) && !slices.Contains(lost, n) })
		if d := cmp.Diff(want, u.Missing, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("off %v: missing (-want +got):\n%s", off, d)
		}
		h = newHost()
		_, err = run(t, newRunner(t, Options{Off: off, Require: true}), h, `text('ran')`, sandbox.Limits{})
		if len(want) == 0 {
			if err != nil {
				t.Errorf("required and given: %v", err)
			}
			continue
		}
		message := "hardening the interpreter: sandbox.require is set and this system does not give: " + strings.Join(want, ", ")
		if err == nil || err.Kind != sandbox.KindStartup || err.Message != message || len(h.out) > 0 {
			t.Errorf("off %v and required: %v, printed %q", off, err, h.out)
		}
	}
	off, err := newRunner(t, Options{Off: all}).Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range off {
		if l.InForce && l.Name != "no_new_privs" { // a container may have it on already
			t.Errorf("%s is off and said to hold: %s", l.Name, l.Detail)
		}
	}
	if _, err := run(t, newRunner(t, Options{Off: []string{"x"}}), newHost(), ``, sandbox.Limits{}); err == nil || !strings.Contains(err.Message, `hardening layer "x" does not exist`) {
		t.Errorf("an unknown layer: %v", err)
	}
}

// Each thing that the allowlist leaves out ends the process.
func TestSeccomp(t *testing.T) {
	r := newRunner(t, Options{})
	layers, err := r.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !layers[len(layers)-1].InForce {
		t.Skipf("no seccomp here: %s", layers[len(layers)-1].Detail)
	}
	for _, p := range []frame.Probe{frame.ProbeSocket, frame.ProbeOpen, frame.ProbeFork, frame.ProbeExec, frame.ProbeKill, frame.ProbeSignal, frame.ProbeExecutable} {
		got, err := r.probe(t.Context(), p)
		if err != nil || got.answered || !strings.Contains(got.ending, "bad system call") {
			t.Errorf("probe %d: %+v, %v", p, got, err)
		}
	}
}

// A build with cgo is no child, and says how to get one.
func TestCgo(t *testing.T) {
	if !guest.Cgo {
		t.Skip("this test is built without cgo")
	}
	r := New(Options{})
	defer r.Close()
	_, err := r.Run(t.Context(), sandbox.Program{}, newHost())
	var e *sandbox.Error
	if !errors.As(err, &e) || e.Kind != sandbox.KindStartup || !strings.Contains(e.Message, "rebuild it with CGO_ENABLED=0") {
		t.Errorf("Run: %v", err)
	}
}

// The child takes the process over before the rest of the program is
// initialised: these packages, and none of another, in the real binary.
func TestInitOrder(t *testing.T) {
	const module = "capstan" // the module's path
	if testing.Short() {
		t.Skip("it builds the whole binary")
	}
	binary := sandboxtest.Build(t, "capstan/cmd/capstan")
	cmd := exec.Command(binary, slices.Concat([]string{guest.Marker}, frame.Start{}.Args())...)
	cmd.Env = []string{"GODEBUG=inittrace=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var first []string
	for line := range strings.Lines(string(out)) {
		if i := strings.Index(line, "init "); i >= 0 {
			if fields := strings.Fields(line[i:]); len(fields) > 4 {
				first = append(first, fields[1])
			}
		}
	}
	// Packages of the standard library that need no reflection may come first;
	// their inits are trivial. Nothing else may.
	if len(first) == 0 || len(first) > 30 {
		t.Errorf("%d packages are initialised before the child: %v", len(first), first)
	}
	for _, pkg := range first {
		root, _, _ := strings.Cut(pkg, "/")
		own := strings.HasPrefix(pkg, module+"/")
		if strings.Contains(root, ".") && !own || slices.Contains([]string{"fmt", "os", "reflect", "unicode", "regexp", "net", "text", "html", "go", "log", "testing"}, root) ||
			own && !strings.HasPrefix(pkg, module+"/internal/sandbox/") && pkg != module+"/internal/shell/keeper" { // as lean, and only looks at the arguments
			t.Errorf("%s is initialised before the child takes over", pkg)
		}
	}
}

// A broken parent does not keep a child: it ends, quietly, whatever comes.
func TestHostileParent(t *testing.T) {
	start := func(t *testing.T) *process {
		t.Helper()
		r := newRunner(t, Options{})
		p, err := r.spawn()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	execute := func(src string) []byte {
		l := sandbox.DefaultLimits()
		s := settings(l)
		s.Seed = 1
		body := s.Append(nil)
		return append(frame.Head{Type: frame.Execute, A: uint32(len(src)), B: 2, C: uint32(len(body))}.Append(nil), src+"[]"+string(body)...)
	}
	for name, wire := range map[string][]byte{
		"nothing":            nil,
		"garbage":            []byte(strings.Repeat("x", 100)),
		"half a head":        frame.Head{Type: frame.Execute}.Append(nil)[:7],
		"a child's frame":    frame.Head{Type: frame.Done}.Append(nil),
		"a result first":     frame.Head{Type: frame.Result, ID: 1}.Append(nil),
		"huge source":        frame.Head{Type: frame.Execute, A: 1 << 31}.Append(nil),
		"no settings":        frame.Head{Type: frame.Execute}.Append(nil),
		"half a program":     execute("text(1)")[:25],
		"terminate":          frame.Head{Type: frame.Terminate}.Append(nil),
		"gone while waiting": execute("await tools.x()"),
		"an answer unasked":  append(execute("await tools.x(); await tools.x()"), frame.Head{Type: frame.Terminate}.Append(nil)...),
		"gone in a loop":     execute("for(;;);"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t)
			_, _ = p.stdin.Write(wire)
			if !p.release(20 * time.Second) {
				t.Error("the child did not end with its parent")
			}
			if text := p.stderr.text(); text != "" {
				t.Errorf("it said %q", text)
			}
		})
	}
}
