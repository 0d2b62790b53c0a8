package codemode_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"capstan/internal/codemode"
	"capstan/internal/msg"
	"capstan/internal/sandbox"
	"capstan/internal/sandbox/quickjs"
	"capstan/internal/sandbox/sandboxtest"
	"capstan/internal/sched"
	"capstan/internal/tool"
)

func TestMain(m *testing.M) { sandboxtest.Main(m) }

// fake is a tool whose body is a function.
type fake struct {
	spec    tool.Spec
	overlap bool
	run     func(ctx context.Context, inv *tool.Invocation) (tool.Result, error)
}

func (f *fake) Spec() *tool.Spec              { return &f.spec }
func (f *fake) Access(*tool.Call) tool.Access { return tool.Access{Overlap: f.overlap} }
func (f *fake) Run(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
	return f.run(ctx, inv)
}

// echo answers with its arguments.
func echo(name string) *fake {
	return &fake{
		spec: tool.Spec{Name: name, Description: "Echoes " + name + ".", Effect: tool.EffectRead,
			Input: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)},
		overlap: true,
		run: func(_ context.Context, inv *tool.Invocation) (tool.Result, error) {
			r := tool.Text(string(inv.Call.Args))
			r.Data = inv.Call.Args
			return r, nil
		},
	}
}

// world is a session around one exec tool.
type world struct {
	t    *testing.T
	reg  tool.Registry
	opt  sched.Options
	exec codemode.Options
	mode tool.Mode
	in   tool.Scope

	mu     sync.Mutex
	events []string
}

func newWorld(t *testing.T, tools ...tool.Tool) *world {
	t.Helper()
	w := &world{t: t, mode: tool.Code}
	r := quickjs.New(quickjs.Options{Binary: sandboxtest.Binary(t)})
	t.Cleanup(func() {
		r.Close()
		goleak.VerifyNone(t)
	})
	w.exec.Runner = r
	if err := w.reg.Add(tools...); err != nil {
		t.Fatal(err)
	}
	w.opt.Observe = func(e sched.Event) {
		if e.Kind == sched.Started || e.Kind == sched.Settled {
			line := fmt.Sprintf("%s %s %s parent=%s source=%s", e.Kind, e.Call.ID, e.Call.Name, e.Call.ParentID, e.Call.Source)
			if e.Result != nil {
				line += " " + string(e.Result.Status)
			}
			w.mu.Lock()
			w.events = append(w.events, line)
			w.mu.Unlock()
		}
	}
	return w
}

// run runs one program as the model's call of exec.
func (w *world) run(ctx context.Context, source string) tool.Result {
	w.t.Helper()
	if _, ok := w.find(tool.ExecName); !ok {
		if err := w.reg.Add(codemode.NewExec(w.exec)); err != nil {
			w.t.Fatal(err)
		}
	}
	args, _ := json.Marshal(map[string]string{"source": source})
	results := sched.New(w.opt).Run(ctx, func() *tool.View { return w.reg.View(w.mode, w.in) }, []tool.Call{{ID: "c", Name: tool.ExecName, Args: args}})
	if len(results) != 1 { // S0-073 S0-181: the model gets the one result of exec
		w.t.Fatalf("%d results", len(results))
	}
	return results[0]
}

func (w *world) find(name string) (*tool.Entry, bool) {
	for _, e := range w.reg.Tools() {
		if e.Spec().Name == name {
			return e, true
		}
	}
	return nil, false
}

func (w *world) want(source, output string) {
	w.t.Helper()
	r := w.run(w.t.Context(), source)
	if diff := cmp.Diff(output, r.Text()); diff != "" {
		w.t.Errorf("%s\nprinted (-want +got):\n%s", source, diff)
	}
}

// A program calls tools, and gets what it needs to know of each result.
// BUG-CM-13
// S0-008 S0-101 S0-102 S0-103 S0-104 S0-105 S0-106 S0-235 S0-239 S3-002
func TestNestedResult(t *testing.T) {
	media := &fake{spec: tool.Spec{Name: "shot"}, run: func(context.Context, *tool.Invocation) (tool.Result, error) {
		return tool.Result{Parts: []msg.Part{msg.TextPart("two parts"), {Kind: msg.Image, MIMEType: "image/png", Data: []byte{1, 2}}}}, nil
	}}
	w := newWorld(t, echo("get-it"), media)
	w.want(`const r = await tools.get_it({n: 1}); text(r); text(r.content)`,
		`{"callId":"c/1","name":"get-it","status":"success","structuredContent":{"n":1},"output":"{\"n\":1}"}`+"\n"+`[{"type":"text","text":"{\"n\":1}"}]`)
	r := w.run(t.Context(), `const r = await tools.shot(); text(r.output, r.content.length); image(r.content[1])`)
	want := []msg.Part{msg.TextPart("two parts 2"), {Kind: msg.Image, MIMEType: "image/png", Data: []byte{1, 2}}}
	if diff := cmp.Diff(want, r.Parts); diff != "" { // S0-098
		t.Error(diff)
	}
}

// A failed or denied call rejects with what the executor says.
// S0-107 S0-108 S0-219 S0-240 S0-254 S2-062
func TestNestedFailure(t *testing.T) {
	fails := &fake{spec: tool.Spec{Name: "fails"}, run: func(context.Context, *tool.Invocation) (tool.Result, error) {
		return tool.Result{}, fmt.Errorf("no luck")
	}}
	w := newWorld(t, fails, echo("get"))
	w.want(`try { await tools.fails() } catch (e) { text(e.name, e.code, e.tool, e.callId, e.message) }
try { await tools.get({n: "x"}) } catch (e) { text(e.code, e.message) }
try { await tools.gett() } catch (e) { text(e.code, e.message) }`,
		"ToolCallError TOOL_FAILED fails c/1 fails failed: no luck\n"+
			"INVALID_ARGS get was not run: /n: must be an integer, got string \"x\"\n"+
			`UNKNOWN_TOOL there is no tool "gett" here; the nearest names are get`)
	r := w.run(t.Context(), "text('kept');\nawait tools.fails()")
	want := "kept\nerror: exception: ToolCallError: fails failed: no luck\nat line 2, column 13\nawait tools.fails()\n            ^"
	if diff := cmp.Diff(want, r.Text()); diff != "" || r.Code != tool.CodeProgramError || r.Status != tool.Failed {
		t.Errorf("%s %s %s", r.Status, r.Code, diff)
	}
}

// policyFunc and the like are stages as functions.
type policyFunc func(*sched.Request) sched.Verdict

func (f policyFunc) Decide(_ context.Context, r *sched.Request) sched.Verdict { return f(r) }

type approverFunc func(*sched.Question) (sched.Answer, error)

func (f approverFunc) Approve(_ context.Context, q *sched.Question) (sched.Answer, error) {
	return f(q)
}

type hook struct {
	before func(*sched.Request) (sched.HookVerdict, error)
	after  func(*sched.Request, *tool.Result) error
}

func (h hook) Before(_ context.Context, r *sched.Request) (sched.HookVerdict, error) {
	return h.before(r)
}
func (h hook) After(_ context.Context, r *sched.Request, res *tool.Result) error {
	return h.after(r, res)
}

// A nested call passes every stage that a direct one does, under its true name.
// S0-009 S0-010 S0-011 S0-012 S0-013 S0-162 S0-163 S0-164 S0-165 S0-166 S0-168 S0-170 S0-180
// S0-117 S0-250 S0-251 S0-252 S0-253 S0-256 S0-257 S1-093 S1-094 S1-095 S1-096
func TestNestedCallPassesEveryStage(t *testing.T) {
	w := newWorld(t, echo("get"))
	var seen []string
	note := func(stage string, r *sched.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		seen = append(seen, stage+" "+r.Call.Name+" "+r.Call.ID+" "+string(r.Call.Args))
	}
	w.opt.Hooks = []sched.Hook{hook{
		before: func(r *sched.Request) (sched.HookVerdict, error) {
			note("before", r)
			if r.Call.Name == "get" {
				return sched.HookVerdict{Args: json.RawMessage(`{"n":"2"}`)}, nil // validated again, and coerced
			}
			return sched.HookVerdict{}, nil
		},
		after: func(r *sched.Request, res *tool.Result) error {
			note("after", r)
			if r.Call.Name == "get" {
				res.Parts = append(res.Parts, msg.TextPart("seen"))
			}
			return nil
		},
	}}
	w.opt.Policy = policyFunc(func(r *sched.Request) sched.Verdict {
		note("rules", r)
		if r.Call.Name == "get" {
			return sched.Verdict{Decision: sched.Ask, Reason: "why not"}
		}
		return sched.Verdict{Decision: sched.Allow}
	})
	w.opt.Approver = approverFunc(func(q *sched.Question) (sched.Answer, error) {
		note("person", &q.Request)
		return sched.Answer{Allow: true}, nil
	})
	w.opt.Guards = []sched.Guard{func(_ context.Context, r *sched.Request) string { note("guard", r); return "" }}
	w.want(`const r = await tools.get({n: 1}); text(r.output, r.notes)`, "{\"n\":2}\nseen [\"/n: the string \\\"2\\\" was taken as number 2\"]")
	nested := slices.DeleteFunc(seen, func(s string) bool { return strings.Contains(s, " exec ") })
	want := []string{`before get c/1 {"n":1}`, `rules get c/1 {"n":2}`, `person get c/1 {"n":2}`, `guard get c/1 {"n":2}`, `after get c/1 {"n":2}`}
	if diff := cmp.Diff(want, nested); diff != "" {
		t.Error(diff)
	}
	// S0-176 S0-177 S0-178 S0-179
	events := []string{
		"started c exec parent= source=model",
		"started c/1 get parent=c source=code_mode",
		"settled c/1 get parent=c source=code_mode success",
		"settled c exec parent= source=model success",
	}
	if diff := cmp.Diff(events, w.events); diff != "" {
		t.Error(diff)
	}
}

// A denial can be caught; uncaught and unasked it is known as such.
func TestDenial(t *testing.T) {
	w := newWorld(t, echo("get"))
	w.opt.Policy = policyFunc(func(r *sched.Request) sched.Verdict {
		if r.Call.Name == "get" {
			return sched.Verdict{Decision: sched.Ask, Reason: "it asks", Suggestion: "use --yes"}
		}
		return sched.Verdict{Decision: sched.Allow}
	})
	w.want(`try { await tools.get() } catch (e) { text(e.code) }`, "DENIED")
	r := w.run(t.Context(), `await tools.get()`)
	if o := r.Display.(*codemode.Outcome); !o.Denied || !strings.Contains(r.Text(), "use --yes") {
		t.Errorf("denied %v: %s", o.Denied, r.Text())
	}
	// What fails afterwards is a failure of its own.
	r = w.run(t.Context(), `await tools.get().catch(() => {}); null.x`)
	if o := r.Display.(*codemode.Outcome); o.Denied || o.Err == nil {
		t.Errorf("a denial that was caught: denied %v, %v", o.Denied, o.Err)
	}
	// A rule or a person that says no has been asked.
	w.opt.Policy = policyFunc(func(r *sched.Request) sched.Verdict {
		if r.Call.Name == "get" {
			return sched.Verdict{Decision: sched.Deny, Reason: "never"}
		}
		return sched.Verdict{Decision: sched.Allow}
	})
	r = w.run(t.Context(), `await tools.get()`)
	if o := r.Display.(*codemode.Outcome); o.Denied || o.Err == nil || o.Err.Code != tool.CodeDenied {
		t.Errorf("a denial by rule: denied %v, %v", o.Denied, o.Err)
	}
}

// A denial in a function that nobody awaits was not caught either.
func TestLostDenial(t *testing.T) {
	w := newWorld(t, echo("get"))
	w.opt.Policy = policyFunc(func(r *sched.Request) sched.Verdict {
		if r.Call.Name == "get" {
			return sched.Verdict{Decision: sched.Ask, Reason: "it asks"}
		}
		return sched.Verdict{Decision: sched.Allow}
	})
	for source, want := range map[string]bool{
		`const r = tools.get(); (async () => { await r })(); try { await r } catch {}`: true,
		`try { await tools.get() } catch {}; Promise.reject(new Error("other"))`:       false,
	} {
		r := w.run(t.Context(), source)
		if o := r.Display.(*codemode.Outcome); o.Denied != want || o.Usage.UnhandledCount != 1 {
			t.Errorf("%s: denied %v, %d unhandled: %s", source, o.Denied, o.Usage.UnhandledCount, r.Text())
		}
	}
}

// Calls that are submitted together run together; those that are awaited one by
// one run one by one.
// S0-015 S0-169 S0-171 S0-172 S0-175 S0-194 S0-237 S0-238
func TestBatches(t *testing.T) {
	var mu sync.Mutex
	live, peak := 0, 0
	meet := echo("meet")
	both := make(chan struct{})
	meet.run = func(ctx context.Context, _ *tool.Invocation) (tool.Result, error) {
		mu.Lock()
		if live++; live == 2 {
			close(both)
		}
		mu.Unlock()
		select {
		case <-both: // only when two are here at once
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
		return tool.Text("met"), nil
	}
	alone := echo("alone")
	alone.overlap = false
	count := 0
	alone.run = func(context.Context, *tool.Invocation) (tool.Result, error) {
		mu.Lock()
		count++
		peak = max(peak, count)
		mu.Unlock()
		time.Sleep(time.Millisecond) // room for a second one, if there were one
		mu.Lock()
		count--
		mu.Unlock()
		return tool.Text("ok"), nil
	}
	w := newWorld(t, meet, alone, echo("get"))
	w.want(`const r = await Promise.all([tools.meet(), tools.meet()]); text(r.length, r[0].output)`, "2 met")
	w.want(`await Promise.all([1, 2, 3, 4].map(() => tools.alone())); text("done")`, "done")
	if peak != 1 {
		t.Errorf("%d exclusive calls at once", peak)
	}
	w.want(`let log = []; for (const n of [1, 2]) log.push((await tools.get({n})).callId); text(log)`, `["c/1","c/2"]`)
}

// Cancelling the exec call cancels what it started and ends it.
// S0-014 S0-145 S0-146 S0-148 S0-247 S1-097
func TestCancel(t *testing.T) {
	started, ended := make(chan struct{}), make(chan struct{})
	slow := echo("slow")
	slow.run = func(ctx context.Context, _ *tool.Invocation) (tool.Result, error) {
		close(started)
		<-ctx.Done()
		close(ended)
		return tool.Result{}, ctx.Err()
	}
	writes := echo("write")
	writes.spec.Effect = tool.EffectWrite
	w := newWorld(t, slow, writes)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	r := w.run(ctx, `text("before"); await tools.write(); await tools.slow()`)
	<-ended
	if r.Status != tool.Cancelled || r.Code != tool.CodeAborted || !strings.HasPrefix(r.Text(), "before\n[Done before, and not undone: write.]\n") {
		t.Errorf("%s %s %q", r.Status, r.Code, r.Text())
	}
}

// Calls that nobody awaits are cancelled when the program settles.
// S0-025 S0-147 S0-248
func TestUnawaited(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	slow, seen := echo("slow"), echo("seen")
	slow.run = func(ctx context.Context, _ *tool.Invocation) (tool.Result, error) {
		close(begun)
		<-ctx.Done()
		close(ended)
		return tool.Result{}, ctx.Err()
	}
	seen.run = func(ctx context.Context, _ *tool.Invocation) (tool.Result, error) {
		<-begun
		return tool.Text("it runs"), nil
	}
	w := newWorld(t, slow, seen)
	w.want(`tools.slow(); text((await tools.seen()).output)`, "it runs\n[1 call(s) were not awaited and have been cancelled: slow. Put await in front of them, or await Promise.all([…]).]")
	<-ended
}

// Failures that nobody awaits or catches do not go unseen.
func TestUnhandled(t *testing.T) {
	w := newWorld(t, echo("seen"))
	w.want(`(async () => { null.x })(); Promise.reject('why'); await tools.seen(); text("ok")`,
		"ok\n[2 failure(s) that nothing handled: TypeError: cannot read property 'x' of null at line 1, column 16; why. Put await in front of what may fail, or catch it.]")
	w.want(`for (let i = 0; i < 7; i++) Promise.reject(i); text("ok")`,
		"ok\n[7 failure(s) that nothing handled: 0; 1; 2; 3; 4; …. Put await in front of what may fail, or catch it.]")
}

// The two budgets: a program gets a nested text whole, the model gets exec's cut.
// S0-016 S0-143 S0-144 S0-167 S0-246 S0-255 S1-098
func TestBudgets(t *testing.T) {
	big := echo("big")
	big.run = func(context.Context, *tool.Invocation) (tool.Result, error) {
		return tool.Text(strings.Repeat("é", 40_000)), nil
	}
	w := newWorld(t, big)
	kept := ""
	w.opt.Spill = func(id, text string) (string, error) { kept = id + " " + text; return "/spilled", nil }
	r := w.run(t.Context(), `const r = await tools.big(); text([...r.output].length, r.truncated); text(r.output)`)
	text := r.Text()
	if !strings.HasPrefix(text, "40000 undefined\néé") || !strings.Contains(text, "the whole is in /spilled") || !r.Truncated || r.File != "/spilled" {
		t.Errorf("%.200q … truncated %v, file %q", text, r.Truncated, r.File)
	}
	if n := len([]rune(text)); n > 30_200 {
		t.Errorf("%d characters", n)
	}
	if want := "c 40000 undefined\n" + strings.Repeat("é", 40_000); kept != want {
		t.Errorf("kept %d bytes, want %d", len(kept), len(want))
	}
	w.opt.NestedBytes = 1000
	w.want(`const r = await tools.big(); text(r.truncated, r.file, r.output.length < 700)`, "true /spilled true")
}

// What a program may not call it cannot call, whatever it was told.
// S0-032 S0-045 S0-047 S0-051 S0-205 S0-207 S0-208 S0-209 S0-210 S0-215 S0-216 S0-217 S0-218 S0-249 BUG-CM-15
func TestRefused(t *testing.T) {
	control := echo("ask_user_question")
	search, bridge := echo(tool.ToolSearchName), echo(tool.ToolCallName)
	w := newWorld(t, control, search, bridge, echo("a-b"), echo("a.b"), echo("a_b"), echo("other"))
	w.in = tool.Scope{Disallow: []string{"other"}}
	w.want(`for (const n of ["exec", "ask_user_question", "tool_search", "tool_call", "other", "a.b", "nothing"]) {
  try { text(n, (await tools[n]({})).name) } catch (e) { text(n, e.code) }
}
text((await tools.a_b()).name);
text(Object.keys(tools), ALL_TOOLS.map((t) => t.jsName));`,
		"exec UNKNOWN_TOOL\nask_user_question UNKNOWN_TOOL\ntool_search UNKNOWN_TOOL\ntool_call UNKNOWN_TOOL\nother UNKNOWN_TOOL\na.b UNKNOWN_TOOL\nnothing UNKNOWN_TOOL\n"+
			"a-b\n"+`["a_b"] ["a_b"]`)
	for _, e := range w.events {
		if strings.HasPrefix(e, "started c/") && !strings.Contains(e, "a-b") {
			t.Errorf("%s: it was scheduled", e)
		}
	}
}

// Deferred tools are registered, listed and callable. S0-068 S0-069 S0-070 S0-072 S0-096 S0-231 S1-016 S1-017 S1-018
func TestDeferred(t *testing.T) {
	late := echo("late")
	late.spec.Deferred = true
	w := newWorld(t, late, echo("get"), echo(tool.ToolSearchName))
	w.want(`text(ALL_TOOLS); text((await tools.late({n: 1})).output)`,
		`[{"name":"get","jsName":"get","description":"Echoes get.","deferred":false},{"name":"late","jsName":"late","description":"Echoes late.","deferred":true}]`+"\n"+`{"n":1}`)
	e, _ := w.find("late")
	if !e.Spec().Deferred {
		t.Error("calling it changed its registry state")
	}
}

// brokenRunner is an engine that cannot do its work.
type brokenRunner struct{ err error }

func (b brokenRunner) Run(context.Context, sandbox.Program, sandbox.Host) (sandbox.Usage, error) {
	return sandbox.Usage{}, b.err
}

// A failure of the sandbox is an error of exec, whatever the engine is (S2-051). S0-220 S0-221 S0-222 S0-223 S0-224 BUG-CM-08
func TestSandboxFailure(t *testing.T) {
	for _, kind := range []sandbox.Kind{sandbox.KindStartup, sandbox.KindProtocol, sandbox.KindTimeout, sandbox.KindMemory, sandbox.KindTeardown, sandbox.KindCrash} {
		w := newWorld(t)
		w.exec.Runner = brokenRunner{&sandbox.Error{Kind: kind, Name: "Error", Message: "it broke"}}
		r := w.run(t.Context(), `text(1)`)
		want := "error: " + string(kind) + ": Error: it broke"
		if r.Status != tool.Failed || r.Code != tool.CodeProgramError || r.Text() != want {
			t.Errorf("%s: %s %s %q", kind, r.Status, r.Code, r.Text())
		}
	}
	w := newWorld(t)
	w.exec.Runner = brokenRunner{fmt.Errorf("no such thing")}
	if r := w.run(t.Context(), `text(1)`); r.Text() != "error: startup: Error: no such thing" {
		t.Errorf("%q", r.Text())
	}
}

// A program that prints nothing says so; a returned value is output (ruling 13).
func TestSilence(t *testing.T) {
	w := newWorld(t, echo("get"))
	w.want(`await tools.get()`, "[The program finished and printed nothing. Print with text(value), or return a value.]")
	w.want(`return {a: 1n}`, `{"a":1}`)
	w.want(`text("x"); return 2`, "x")
	w.want(`text("")`, "")
}

// What was changed before an error is named; jobs that are left are too.
func TestNotes(t *testing.T) {
	writes := echo("write")
	writes.spec.Effect = tool.EffectWrite
	w := newWorld(t, writes, echo("get"))
	w.exec.Jobs = func(id string) []string { return []string{id + ": job-1 sleep 5"} }
	w.want(`await tools.get(); await tools.write(); await tools.write(); null.x`,
		"error: exception: TypeError: cannot read property 'x' of null\nat line 1, column 62\nawait tools.get(); await tools.write(); await tools.write(); null.x\n"+
			strings.Repeat(" ", 61)+"^\n[Done before, and not undone: write (2 times).]\n[Still running in the background: c: job-1 sleep 5.]")
}

// Source that is no JavaScript as it stands. Nothing runs before it is understood.
// S0-236 and the wrapper-closing sources of DESIGN section 3.
func TestForgiving(t *testing.T) {
	w := newWorld(t, echo("get"))
	w.want("```js\ntext(1)\n```", "1")
	w.want("interface A { n: number }\nconst a: A = {n: 1};\ntext((await tools.get<A>(a)).output)", `{"n":1}`)
	// As JavaScript this is two comparisons, which call nothing.
	w.want("text((await tools.get<Foo>({n: 1})).output)", `{"n":1}`)
	w.want("const a: number = 1;\n\n  text(a.b.c)", "error: exception: TypeError: cannot read property 'c' of undefined\nat line 3, column 8\n  text(a.b.c)\n       ^")
	// S0-141: the source as it was given counts, not what is left without its fence.
	r := w.run(t.Context(), "```js\ntext('ran')\n```"+strings.Repeat("\n", 128<<10))
	if want := "error: syntax: SyntaxError: the program has 131093 bytes; at most 131072 are allowed"; r.Text() != want {
		t.Errorf("%q, want %q", r.Text(), want)
	}
	for _, source := range []string{
		"}); text('ran'); (async()=>{", "}, text('ran'), async()=>{", "} text('ran'); async function g(){",
		"}); throw 1; (async()=>{", "*/ text('ran') /*", "`${text('ran')}", "text('ran')\n//\u2028}", "text('ran'); }//",
	} {
		r := w.run(t.Context(), source)
		if strings.HasPrefix(r.Text(), "ran") || source[0] == '}' && !strings.HasPrefix(r.Text(), "error: syntax") {
			t.Errorf("%q: %q", source, r.Text())
		}
	}
}
