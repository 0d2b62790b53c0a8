//go:build unix

package quickjs

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"capstan/internal/sandbox"
	"capstan/internal/sandbox/sandboxtest"
)

// maxRSS is what no child may ever take, in bytes.
const maxRSS = 200 << 20

var (
	timeout    = &sandbox.Error{Kind: sandbox.KindTimeout, Message: "the program used up its CPU time"}
	native     = &sandbox.Error{Kind: sandbox.KindTimeout, Message: "the program used up its CPU time in a native function"}
	outOfMem   = &sandbox.Error{Kind: sandbox.KindMemory, Name: "InternalError", Message: "out of memory"}
	overflowed = &sandbox.Error{Kind: sandbox.KindStack, Name: "RangeError", Message: "Maximum call stack size exceeded"}
)

// hostile programs attack time, memory and stack. Each prints before it does,
// and what it printed is kept. S0-131 S0-132 S0-133 S0-140 S0-222 S0-223 S0-241
// S0-242 BUG-SB-01 BUG-SB-05 BUG-SB-15 BUG-SB-16
var hostile = []struct {
	name, source string
	want         *sandbox.Error
	out          string // printed behind "before"
}{
	{name: "loop", source: `for (;;);`, want: timeout},
	{name: "loop in try", source: `try { while (true) { } } catch { text('caught') } finally { text('finally') }`, want: timeout},
	{name: "loop after await", source: `await null; await tools.echo({}); for (;;);`, want: timeout},
	{name: "loop of jobs", source: `const f = () => Promise.resolve().then(f); await f()`, want: timeout},
	{name: "loop of awaits", source: `for (;;) await null`, want: timeout},
	{name: "unawaited loop of awaits", source: `(async () => { for (;;) await null })(); await tools.hang({})`, want: timeout},
	{name: "regular expression", source: `/^(a+)+$/.test('a'.repeat(40) + 'b')`, want: timeout},
	{name: "generator", source: `function* g() { for (;;) yield 1 } for (const x of g());`, want: timeout},
	{name: "indexOf", source: `new Array(4294967295).indexOf(1); Array.prototype.indexOf.call({length: 2**53 - 1}, 1)`, want: timeout},
	{name: "lastIndexOf", source: `('a'.repeat(1e6)).lastIndexOf('a'.repeat(5e5) + 'b')`, want: native},
	{name: "join", source: `Array.prototype.join.call({length: 2**53 - 1})`, want: native},

	{name: "deep recursion", source: "const f = () => f() + 1;\nf()", want: overflowed},
	{name: "deep recursion caught", source: `let d = 0; const f = () => { d++; f() }; try { f() } catch (e) { text(e.name, d > 500) }`, out: "RangeError true"},
	{name: "deep apply", source: `const f = (...a) => f.apply(null, [...a]); f(1, 2)`, want: overflowed},
	{name: "deep toString", source: `const o = {toString() { return '' + this }}; '' + o`, want: overflowed},
	{name: "deep proxies", source: `let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x`, want: overflowed},
	{name: "deep stringify", source: `const o = {toJSON: () => JSON.stringify(o)}; JSON.stringify(o)`, want: overflowed},
	{name: "deep parse", source: `JSON.parse('['.repeat(1e5))`, want: overflowed},
	{name: "deep flat", source: `let a = []; for (let i = 0; i < 1e5; i++) a = [a]; a.flat(Infinity)`, want: overflowed},
	{name: "deep source", source: `eval('['.repeat(1e5) + ']'.repeat(1e5))`, want: overflowed},
	{name: "deep parentheses", source: strings.Repeat("(", 60_000) + "1" + strings.Repeat(")", 60_000), want: overflowed},
	{name: "deep await", source: `const f = async n => n ? await f(n - 1) : 0; await f(1e5)`, want: overflowed},
	{name: "deep free", source: `let o = null; for (let i = 0; i < 5e5; i++) o = {o}; o = null; text('freed')`, out: "freed"},

	{name: "array", source: `const a = []; for (;;) a.push('x'.repeat(1000) + a.length)`, want: outOfMem},
	// The limit is 64 MiB, well below what the linear memory has.
	{name: "40 MiB", source: `const a = []; for (let i = 0; i < 40; i++) a.push(new Uint8Array(1 << 20)); text(a.length)`, out: "40"},
	{name: "80 MiB", source: `const a = []; for (let i = 0; i < 80; i++) a.push(new Uint8Array(1 << 20)); text(a.length)`, want: outOfMem},
	{name: "array caught", source: `const a = []; for (;;) try { a.push({a: 1}) } catch { }`, want: outOfMem},
	{name: "string", source: `let s = 'x'; for (;;) { s += s; s.charCodeAt(3) }`, want: &sandbox.Error{Kind: sandbox.KindMemory}},
	{name: "buffers", source: `const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))`, want: outOfMem},
	{name: "fill", source: `new Array(1e9).fill(0)`, want: outOfMem},
	{name: "spread", source: `function* g() { for (;;) yield 1 } [...g()]`, want: outOfMem},
	{name: "split", source: `const l = []; for (;;) l.push('a,'.repeat(1e7).split(','))`, want: outOfMem},
	{name: "promises", source: `const l = []; for (;;) l.push(new Promise(() => {}))`, want: outOfMem},
	{name: "pad", source: `const l = []; for (let i = 0;; i++) l.push('x'.padEnd(1e6 + i))`, want: outOfMem},
	{name: "results", source: `const l = []; for (;;) l.push((await tools.big({})).output + '!'.repeat(l.length))`, want: outOfMem},
}

func TestHostilePrograms(t *testing.T) {
	big := strings.Repeat("x", 4<<20)
	r := newRunner(t, Options{})
	for _, c := range hostile {
		t.Run(c.name, func(t *testing.T) {
			if raceEnabled && strings.HasPrefix(c.name, "deep p") {
				t.Parallel()
			}
			h := newHost()
			h.tools["big"] = func(_ context.Context, c sandbox.Call) sandbox.Reply { return succeed(c, big) }
			l := sandbox.Limits{CPU: 300 * time.Millisecond}
			if c.want == nil || c.want.Kind != sandbox.KindTimeout {
				l.CPU = 0
			}
			_, err := run(t, r, h, "text('before');\n"+c.source, l)
			if d := cmp.Diff(c.want, err, cmpopts.IgnoreFields(sandbox.Error{}, "Line", "Column", "Stack", "Err"), ifKindOnly(c.want)); d != "" {
				t.Errorf("error (-want +got):\n%s", d)
			}
			want := []string{"before"}
			if c.out != "" {
				want = append(want, c.out)
			}
			if c.name == "deep parentheses" {
				want = nil // it does not compile
			}
			if d := cmp.Diff(want, h.out, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("output (-want +got):\n%s", d)
			}
		})
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		t.Fatal(err)
	}
	if rss := u.Maxrss << 10; runtime.GOOS == "linux" && rss > maxRSS && !raceEnabled {
		t.Errorf("a child took %d MiB, the limit is %d", rss>>20, maxRSS>>20)
	}
	if left := sandboxtest.Children(); len(left) > 0 {
		t.Errorf("children are left: %v", left)
	}
}

// ifKindOnly ignores the texts when only the kind is wanted.
func ifKindOnly(want *sandbox.Error) cmp.Option {
	if want != nil && want.Message == "" {
		return cmpopts.IgnoreFields(sandbox.Error{}, "Name", "Message")
	}
	return cmp.Options{}
}

// CPU time stops while the program waits for a tool, and is counted again
// after. S0-135 S0-137 S0-138 S0-139 BUG-CM-05 BUG-CM-20 BUG-CM-21 BUG-SB-03
// BUG-CM-03
func TestBudgetPauses(t *testing.T) {
	r := newRunner(t, Options{})
	h := newHost()
	budget := 100 * time.Millisecond
	h.tools["slow"] = func(_ context.Context, c sandbox.Call) sandbox.Reply {
		time.Sleep(6 * budget) // wall time: longer than CPU time and watchdog allow
		return succeed(c, "done")
	}
	u, err := run(t, r, h, `text((await tools.slow({})).output); text((await tools.slow({})).output)`,
		sandbox.Limits{CPU: budget, Watchdog: time.Millisecond})
	if err != nil || u.CPU >= budget {
		t.Fatalf("Run: %v after %v of CPU time", err, u.CPU)
	}
	h = newHost()
	_, err = run(t, r, h, "await tools.echo({});\nfor (;;);", sandbox.Limits{CPU: budget})
	if d := cmp.Diff(timeout, err); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// slowHost takes its time with each batch, as one does whose events go to a pipe
// that is not read.
type slowHost struct {
	*host
	pause time.Duration
}

func (h slowHost) Call(ctx context.Context, batch []sandbox.Call, reply func(int, sandbox.Reply)) {
	time.Sleep(h.pause)
	h.host.Call(ctx, batch, reply)
}

// A Host that is slow to take a call does not make the child a silent one.
func TestSlowHost(t *testing.T) {
	r := newRunner(t, Options{})
	h := newHost()
	budget := 100 * time.Millisecond
	_, err := r.Run(t.Context(), sandbox.Program{Source: `text((await tools.echo("a")).output); text((await tools.echo("b")).output)`, Names: []string{"echo"}, Limits: sandbox.Limits{CPU: budget, Watchdog: time.Millisecond}},
		slowHost{h, 8 * budget}) // longer than the watchdog allows
	h.replies.Wait()
	if err != nil || len(h.out) != 2 {
		t.Fatalf("Run: %v, printed %q", err, h.out)
	}
}

// The parent's watchdog ends a child that is stopped. S0-134 S0-136 BUG-CM-03
func TestStoppedChild(t *testing.T) {
	r := newRunner(t, Options{})
	h := newHost()
	h.tools["stop"] = func(_ context.Context, c sandbox.Call) sandbox.Reply {
		for _, pid := range sandboxtest.Children() {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
		}
		return succeed(c, "")
	}
	_, err := run(t, r, h, `await tools.stop({}); text('went on')`, sandbox.Limits{CPU: 100 * time.Millisecond, Watchdog: 100 * time.Millisecond})
	want := &sandbox.Error{Kind: sandbox.KindTimeout, Message: "the interpreter was silent for 500ms and was killed"}
	if d := cmp.Diff(want, err); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if len(h.out) > 0 {
		t.Errorf("it printed %q", h.out)
	}
}

// A child that is killed is one failed run; the next works. S0-155 BUG-CM-08
// S0-110
func TestKilledChild(t *testing.T) {
	killAll := func() {
		for _, pid := range sandboxtest.Children() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	want := &sandbox.Error{Kind: sandbox.KindCrash, Message: "interpreter exited: signal: killed"}
	for _, when := range []string{"in a call", "at output", "in ALL_TOOLS", "while computing", "with calls open"} {
		t.Run(when, func(t *testing.T) {
			r := newRunner(t, Options{})
			h := &killer{host: newHost(), when: when, kill: killAll}
			src := map[string]string{
				"in a call":       `text(1); await tools.kill({}); for (;;);`,
				"at output":       `text('kill'); for (;;);`,
				"in ALL_TOOLS":    `text(1); ALL_TOOLS; for (;;);`,
				"while computing": `text(1); tools.later({}); await null; await tools.echo({}); for (;;);`,
				"with calls open": `text(1); await Promise.all([tools.hang({}), tools.hang({}), tools.kill({})])`,
			}[when]
			h.tools["kill"] = func(ctx context.Context, c sandbox.Call) sandbox.Reply {
				killAll()
				<-ctx.Done()
				return succeed(c, "")
			}
			h.tools["later"] = func(ctx context.Context, c sandbox.Call) sandbox.Reply {
				time.Sleep(20 * time.Millisecond)
				killAll()
				<-ctx.Done()
				return succeed(c, "")
			}
			_, err := r.Run(t.Context(), sandbox.Program{Source: src}, h)
			h.replies.Wait()
			var e *sandbox.Error
			if !errors.As(err, &e) {
				t.Fatalf("Run: %v", err)
			}
			if d := cmp.Diff(want, e, cmpopts.IgnoreFields(sandbox.Error{}, "Err")); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			good := newHost()
			if _, err := run(t, r, good, `text('next')`, sandbox.Limits{}); err != nil || cmp.Diff([]string{"next"}, good.out) != "" {
				t.Errorf("the next run: %v, printed %q", err, good.out)
			}
		})
	}
}

type killer struct {
	*host
	when string
	kill func()
}

func (k *killer) Output(o sandbox.Output) {
	k.host.Output(o)
	if k.when == "at output" {
		k.kill()
	}
}

func (k *killer) AllTools() []byte {
	k.kill()
	return k.host.AllTools()
}

// Cancelling ends the child and every call at once. S0-145 S0-146 S0-148 S0-247 BUG-SB-10
// BUG-SB-06
func TestCancel(t *testing.T) {
	r := newRunner(t, Options{})
	cause := errors.New("the user pressed a key")
	for _, src := range []string{
		`text(1); await tools.cancel({}); text(2)`,
		`text(1); tools.cancel({}); await null; await tools.hang({})`,
		`text(1); tools.cancel({}); await tools.echo({}); for (;;);`,
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		h := newHost()
		late := make(chan struct{})
		h.tools["cancel"] = func(ctx context.Context, c sandbox.Call) sandbox.Reply {
			cancel(cause)
			<-ctx.Done()
			<-late // this answer comes when the run is over
			return succeed(c, "late")
		}
		_, err := r.Run(ctx, sandbox.Program{Source: src}, h)
		if !errors.Is(err, cause) {
			t.Errorf("Run: %v, want the cause of the cancellation", err)
		}
		if h.ctx.Err() == nil {
			t.Error("the calls' context has not ended")
		}
		if left := sandboxtest.Children(); len(left) > 0 {
			t.Errorf("children are left: %v", left)
		}
		close(late)
		h.replies.Wait()
		if d := cmp.Diff([]string{"1"}, h.out); d != "" {
			t.Errorf("output (-want +got):\n%s", d)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := r.Run(ctx, sandbox.Program{Source: `text(1)`}, newHost()); !errors.Is(err, cause) {
		t.Errorf("Run with a context that has ended: %v", err)
	}
}

// Settling cancels what was not awaited and names it. S0-147 S0-248 BUG-CM-01
func TestUnawaited(t *testing.T) {
	r := newRunner(t, Options{})
	for _, c := range []struct {
		source  string
		want    []sandbox.Unawaited
		count   int
		batches []string
	}{
		{`tools.hang(1); await tools.echo(2); tools.hang(3)`, []sandbox.Unawaited{{ID: 1, Name: "hang"}, {Name: "hang"}}, 2, []string{"hang(1) echo(2)"}},
		{`tools.echo(1)`, []sandbox.Unawaited{{Name: "echo"}}, 1, nil},
		{`tools.hang(1); await tools.echo(2); throw 1`, []sandbox.Unawaited{{ID: 1, Name: "hang"}}, 1, []string{"hang(1) echo(2)"}},
		{`tools.hang(1); await tools.echo(2); exit()`, []sandbox.Unawaited{{ID: 1, Name: "hang"}}, 1, []string{"hang(1) echo(2)"}},
		{`await tools.echo(1)`, nil, 0, []string{"echo(1)"}},
	} {
		h := newHost()
		u, _ := run(t, r, h, c.source, sandbox.Limits{})
		if d := cmp.Diff(c.want, u.Unawaited); d != "" || u.UnawaitedCount != c.count {
			t.Errorf("%s: %d unawaited (-want +got):\n%s", c.source, u.UnawaitedCount, d)
		}
		if d := cmp.Diff(c.batches, h.batches, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: batches (-want +got):\n%s", c.source, d)
		}
	}
	// A long list is cut, the count is not.
	u, _ := run(t, r, newHost(), `await tools.echo({}); for (let i = 0; i < 300; i++) tools.hang(i)`, sandbox.Limits{Outstanding: 10})
	if len(u.Unawaited) != 20 || u.UnawaitedCount != 300 {
		t.Errorf("%d of %d unawaited calls are named, want 20 of 300", len(u.Unawaited), u.UnawaitedCount)
	}
}

// A failure that nothing handled is named, however the program ended.
func TestUnhandled(t *testing.T) {
	r := newRunner(t, Options{})
	const later = "\nawait tools.echo(1); await tools.echo(2)"
	for _, c := range []struct {
		name, source string
		want         []string
		count        int
	}{
		{"a call and a function", "tools.deny({}); (async () => { null.x })();" + later,
			[]string{"TypeError: cannot read property 'x' of null at line 1, column 32", "ToolCallError: a rule denies this call (deny)"}, 2},
		{"handled at once", `tools.deny({}).catch(() => {}); Promise.allSettled([tools.deny({})]); try { await tools.deny({}) } catch { }` + later, nil, 0},
		{"handled later", `const p = Promise.reject(new Error('a')), q = tools.deny({}); await tools.echo(1); try { await p } catch { } await q.catch(() => {})`, nil, 0},
		{"a promise of it", `const p = Promise.reject('x'); p.catch(() => {}); p.then(() => {}); p.finally(() => {})` + later, []string{"x", "x"}, 2},
		{"the failure itself", "const e = new Error('main'); Promise.reject(e); Promise.reject(new Error('other')); await null; throw e", []string{"Error: other at line 1, column 68"}, 1},
		{"before exit", `Promise.reject(new Error('x')); exit()`, []string{"Error: x at line 1, column 20"}, 1},
		{"why it stalls", `await new Promise(async () => { await tools.deny({}) })`, []string{"ToolCallError: a rule denies this call (deny) at line 1, column 45"}, 1},
		{"freed", `for (let i = 0; i < 3; i++) Promise.reject(i)`, []string{"0", "1", "2"}, 3},
		{"freed, and its place handled", `Promise.reject(1); let p = Promise.reject(2); p.catch(() => {})` + later, []string{"1"}, 1},
		{"many", `const all = []; for (let i = 0; i < 1000; i++) all.push(Promise.reject(i)); for (let i = 1; i < 1000; i++) all[i].catch(() => {})`, []string{"0"}, 1},
		{"what it says is the guest's", `Promise.reject({toJSON() { text('reached'); return 1 }}); Promise.reject(new Error('long'.repeat(1000)))`,
			[]string{"something that cannot be shown", "Error: " + strings.Repeat("long", 254) + "l"}, 2},
		{"calls over the limit", `for (let i = 0; i < 20; i++) tools.hang(i)`, []string{"ToolCallError: the program has made more nested calls than the limit allows; do more in each call (hang) at line 1, column 41"}, 1},
	} {
		h := newHost()
		u, _ := run(t, r, h, c.source, sandbox.Limits{Calls: 10})
		if d := cmp.Diff(c.want, u.Unhandled); d != "" || u.UnhandledCount != c.count || len(h.out) > 0 {
			t.Errorf("%s: %d unhandled, printed %q (-want +got):\n%s", c.name, u.UnhandledCount, h.out, d)
		}
	}
	// A long list is cut, the count is not; a flood of them costs little.
	u, err := run(t, r, newHost(), `const keep = []; for (let i = 0; i < 10000; i++) { Promise.reject(i); keep.push(Promise.reject(i)) }`, sandbox.Limits{})
	if err != nil || len(u.Unhandled) != 20 || u.UnhandledCount != 20_000 {
		t.Errorf("%v: %d of %d unhandled failures are named, want 20 of 20000", err, len(u.Unhandled), u.UnhandledCount)
	}
}

// More calls than may be with the parent wait in the guest, in order; the call
// beyond the limit rejects. A million calls that nobody awaits neither
// exhaust nor lock anything.
func TestManyCalls(t *testing.T) {
	r := newRunner(t, Options{})
	h := newHost()
	var open, most int
	h.tools["one"] = func(_ context.Context, c sandbox.Call) sandbox.Reply {
		h.mu.Lock()
		open++
		most = max(most, open)
		h.mu.Unlock()
		defer func() { h.mu.Lock(); open--; h.mu.Unlock() }()
		return succeed(c, string(c.Args))
	}
	_, err := run(t, r, h, `const all = await Promise.all(Array.from({length: 1000}, (_, i) => tools.one(i)));
text(all.every((r, i) => r.output === String(i)))`, sandbox.Limits{Outstanding: 16})
	if err != nil || cmp.Diff([]string{"true"}, h.out) != "" || most > 16 {
		t.Errorf("1,000 calls: %v, printed %q, %d at once", err, h.out, most)
	}
	var order []string
	for _, b := range h.batches {
		order = append(order, strings.Fields(b)...)
	}
	for i, c := range order {
		if want := fmt.Sprintf("one(%d)", i); c != want {
			t.Fatalf("call %d is %s", i, c)
		}
	}

	h = newHost()
	u, err := run(t, r, h, `let e; for (let i = 0; i < 101; i++) await tools.echo(i).catch(x => e = x); text(e.name, e.code, e.tool)`, sandbox.Limits{Calls: 100})
	if err != nil || u.Calls != 100 || cmp.Diff([]string{"ToolCallError CALL_LIMIT echo"}, h.out) != "" {
		t.Errorf("101 calls: %v, %d calls, printed %q", err, u.Calls, h.out)
	}

	h = newHost()
	n := 1_000_000
	if raceEnabled {
		n = 50_000
	}
	u, err = run(t, r, h, fmt.Sprintf(`for (let i = 0; i < %d; i++) tools.hang(i); text('made'); await null; await tools.echo({}).catch(e => text(e.code))`, n), sandbox.Limits{})
	if err != nil || u.UnawaitedCount != 10_000 || cmp.Diff([]string{"made", "CALL_LIMIT"}, h.out) != "" {
		t.Errorf("a million calls: %v, %d unawaited, printed %q", err, u.UnawaitedCount, h.out)
	}
}

// Output and arguments have limits that a program can catch. S0-141 S0-143 S0-246
func TestSizes(t *testing.T) {
	r := newRunner(t, Options{})
	h := newHost()
	u, err := run(t, r, h, `const line = 'x'.repeat((1 << 20) - 1); let e; for (let i = 0; i < 17; i++) try { text(line) } catch (x) { e = x } text2 = e.code; try { text('y') } catch (x) { } return`, sandbox.Limits{})
	if err != nil || len(h.out) != 16 || u.OutputBytes != 16<<20 {
		t.Errorf("17 MiB of output: %v, %d items, %d bytes", err, len(h.out), u.OutputBytes)
	}
	h = newHost()
	_, err = run(t, r, h, `text('x'.repeat(100)); text('y'.repeat(100))`, sandbox.Limits{Output: 150})
	want := &sandbox.Error{Kind: sandbox.KindException, Name: "Error", Code: "OUTPUT_LIMIT", Line: 1, Column: 26,
		Message: "the program has printed more text than the limit allows; print less, or write it to a file"}
	if d := cmp.Diff(want, err, cmpopts.IgnoreFields(sandbox.Error{}, "Stack", "Column")); d != "" || len(h.out) != 1 {
		t.Errorf("output over its limit printed %d items (-want +got):\n%s", len(h.out), d)
	}
	h = newHost()
	_, err = run(t, r, h, `for (let i = 0; i < 17; i++) try { image('data:image/png;base64,AAAA') } catch (e) { text(i, e.code) }
try { image({mimeType: 'image/png', data: new Uint8Array(10 * 2**20 + 1)}) } catch (e) { text(e.code) }`, sandbox.Limits{})
	if err != nil || len(h.out) != 18 || h.out[16] != "16 OUTPUT_LIMIT" || h.out[17] != "OUTPUT_LIMIT" {
		t.Errorf("17 images: %v, printed %d: %q", err, len(h.out), h.out[len(h.out)-2:])
	}
	h = newHost()
	_, err = run(t, r, h, `try { await tools.echo('x'.repeat(1000)) } catch (e) { text(e.code, e.tool) } text((await tools.echo('y'.repeat(900))).output.length)`, sandbox.Limits{Body: 1000})
	if err != nil || cmp.Diff([]string{"INVALID_ARGS echo", "902"}, h.out) != "" {
		t.Errorf("long arguments: %v, printed %q", err, h.out)
	}
	_, err = run(t, r, newHost(), "//"+strings.Repeat("x", 128<<10), sandbox.Limits{})
	want = &sandbox.Error{Kind: sandbox.KindSyntax, Name: "SyntaxError", Message: "the program has 131074 bytes; the limit is 131072: read the data with a tool instead of writing it into the program"}
	if d := cmp.Diff(want, err); d != "" {
		t.Errorf("a long source (-want +got):\n%s", d)
	}
	_, err = run(t, r, newHost(), "\xff", sandbox.Limits{})
	if err == nil || err.Message != "the program is not valid UTF-8" {
		t.Errorf("a source that is not UTF-8: %v", err)
	}
	_, err = run(t, r, newHost(), "", sandbox.Limits{Memory: 1 << 40})
	if err == nil || err.Kind != sandbox.KindStartup || err.Message != "checking the limits: limit Memory is 1099511627776; it must be from 1 to 67108864" {
		t.Errorf("a limit above the default: %v", err)
	}
}

// ALL_TOOLS that is too long fails that read only. What failed for lack of
// stack works later.
func TestAllToolsFails(t *testing.T) {
	r := newRunner(t, Options{})
	const read = `const read = () => { try { return ALL_TOOLS.length } catch (e) { return e.message } };
`
	for _, c := range []struct {
		name, all, source string
		limits            sandbox.Limits
		want              []string
	}{
		{"too long", `["` + strings.Repeat("x", 1000) + `"]`, read + `text(read()); text(read()); text((await tools.echo(1)).output)`, sandbox.Limits{Body: 1000},
			[]string{allToolsTooLong, allToolsTooLong, "1"}},
		{"longer than any frame", `["` + strings.Repeat("x", 16<<20) + `"]`, read + `text(read())`, sandbox.Limits{}, []string{allToolsTooLong}},
		{"no stack left", strings.Repeat("[", 300) + strings.Repeat("]", 300),
			read + `const f = () => { try { f() } catch { } read(); }; f(); text(read())`, sandbox.Limits{}, []string{"1"}},
	} {
		h := newHost()
		h.all = c.all
		_, err := run(t, r, h, c.source, c.limits)
		if d := cmp.Diff(c.want, h.out); err != nil || d != "" {
			t.Errorf("%s: %v (-want +got):\n%s", c.name, err, d)
		}
	}
}

const allToolsTooLong = "ALL_TOOLS is longer than the limit allows; Object.keys(tools) lists the callable names"

// 16 MiB of result come through whole, and go out again. S0-144
func TestBigResults(t *testing.T) {
	r := newRunner(t, Options{})
	h := newHost()
	big := strings.Repeat("é€x\n", (16<<20)/8)
	h.tools["big"] = func(_ context.Context, c sandbox.Call) sandbox.Reply { return succeed(c, big) }
	h.tools["huge"] = func(_ context.Context, c sandbox.Call) sandbox.Reply { return succeed(c, big+big+big) }
	h.tools["bad"] = func(_ context.Context, c sandbox.Call) sandbox.Reply {
		return sandbox.Reply{OK: true, Value: []byte("[1"), Text: "x"}
	}
	_, err := run(t, r, h, `text((await tools.big({})).output.length); try { await tools.huge({}) } catch (e) { text(e.code) } try { await tools.bad({}) } catch (e) { text(e.code, e.message) }`, sandbox.Limits{})
	want := []string{fmt.Sprint(len([]rune(big))), "OUTPUT_LIMIT", "TOOL_FAILED the result of the call is not a JSON object"}
	if d := cmp.Diff(want, h.out); err != nil || d != "" {
		t.Errorf("Run: %v (-want +got):\n%s", err, d)
	}
	h.out = nil
	if _, err := run(t, r, h, `text((await tools.big({})).output.slice(0, 4e6))`, sandbox.Limits{}); err != nil || len(h.out) != 1 || h.out[0] != big[:len(h.out[0])] || len(h.out[0]) < 4e6 {
		t.Errorf("a big text: %v", err)
	}
}
