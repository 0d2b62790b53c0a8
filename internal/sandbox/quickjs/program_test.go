package quickjs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"capstan/internal/sandbox"
)

// programs are whole programs and everything that comes of them.
var programs = []struct {
	name    string
	source  string
	out     []string
	batches []string
	err     *sandbox.Error // its Stack is not compared unless given
}{
	// S0-008 S0-235 S0-237 S0-101 S0-102 S0-103 S0-104 S0-105: a nested call and its result.
	{name: "nested call",
		source:  `const r = await tools.echo({a: 1}); text(r.callId); text(r.name); text(r.status); text(r.output); text(r.content); text(typeof r.output)`,
		out:     []string{"call-1", "echo", "success", `{"a":1}`, `[{"type":"text","text":"{\"a\":1}"}]`, "string"},
		batches: []string{`echo({"a":1})`}},
	{name: "a result prints its text once",
		source:  `text(await tools.echo({}))`,
		out:     []string{`{"callId":"call-1","name":"echo","status":"success","output":"{}"}`},
		batches: []string{`echo({})`}},
	// S0-106
	{name: "structured content",
		source:  `const r = await tools.data({json: '{"a":[1,null,"x"],"__proto__":{"b":1}}'}); text(r.structuredContent.a[2], r.structuredContent.b, r.output === '')`,
		out:     []string{"x undefined true"},
		batches: []string{`data({"json":"{\"a\":[1,null,\"x\"],\"__proto__\":{\"b\":1}}"})`}},
	// S0-171 S0-172 S0-238: batches are turns of the job queue.
	{name: "sequential awaits are sequential batches",
		source:  `await tools.echo(1); await tools.echo(2)`,
		batches: []string{"echo(1)", "echo(2)"}},
	{name: "calls of one turn are one batch",
		source: `const all = Promise.all([1,2,3].map(i => tools.echo(i)));
Promise.resolve().then(() => tools.echo(4));
text((await all).map(r => r.output).join())`,
		out:     []string{"1,2,3"},
		batches: []string{"echo(1) echo(2) echo(3) echo(4)"}},
	// What is in the queue when the program's promise is fulfilled still runs.
	{name: "a function that is not awaited",
		source: `(async () => { text('one'); await null; text('two'); await 0; text('three') })(); queueMicrotask(() => text('micro'))`,
		out:    []string{"one", "two", "micro", "three"}},
	{name: "an endless one does not keep the program",
		source: `(async () => { for (;;) await null })(); text('done')`,
		out:    []string{"done"}},
	// S0-107 S0-108 S0-240 BUG-SB-18: rejections.
	{name: "a rejection is caught",
		source: `try { await tools.deny({}) } catch (e) { text(e.name, e.code, e.tool, e.callId, e.message, e instanceof Error); text(e); text({e}) }`,
		out: []string{"ToolCallError DENIED deny call-1 a rule denies this call true", "ToolCallError: a rule denies this call",
			`{"e":{"name":"ToolCallError","message":"a rule denies this call","tool":"deny","callId":"call-1","code":"DENIED"}}`},
		batches: []string{"deny({})"}},
	{name: "a rejection is not caught",
		source:  "text('before')\n\nconst x = await tools.deny({})",
		out:     []string{"before"},
		batches: []string{"deny({})"},
		err: &sandbox.Error{Kind: sandbox.KindException, Name: "ToolCallError", Message: "a rule denies this call",
			Line: 3, Column: 23, Stack: "at <anonymous> (exec.js:3:23)\n", Code: "DENIED", Tool: "deny", CallID: "call-1"}},
	{name: "allSettled",
		source:  `text(await Promise.allSettled([tools.deny({}), tools.echo({})].map(async p => (await p).output)))`,
		out:     []string{`[{"status":"rejected","reason":{"name":"ToolCallError","message":"a rule denies this call","tool":"deny","callId":"call-1","code":"DENIED"}},{"status":"fulfilled","value":"{}"}]`},
		batches: []string{"deny({}) echo({})"}},
	// S0-214 to S0-218 are the Host's; the engine hands every name to it, S0-116.
	{name: "every name reaches the host",
		source: `for (const n of ['exec', '__proto__', 'constructor', 'toString', 'no such\u0000\u{1F600}'])
  try { await tools[n]() } catch (e) { text(e.code, e.tool) }`,
		out:     []string{"UNKNOWN_TOOL exec", "UNKNOWN_TOOL __proto__", "UNKNOWN_TOOL constructor", "UNKNOWN_TOOL toString", "UNKNOWN_TOOL no such\x00\U0001F600"},
		batches: []string{"exec({})", "__proto__({})", "constructor({})", "toString({})", "no such\x00\U0001F600({})"}},
	{name: "tools knows the callable names only",
		source: `text(tools.then, tools[Symbol.iterator], tools[Symbol.toPrimitive]);
text(Object.keys(tools).join(), 'echo' in tools, 'exec' in tools, Object.hasOwn(tools, 'echo'), Object.hasOwn(tools, 'x'));
text(Object.entries(tools).every(([k, f]) => tools[k] === f), Object.getPrototypeOf(tools));
for (const k in tools) text(k)`,
		out: []string{"undefined undefined undefined", "data,deny,echo,hang true false true false", "true null", "data", "deny", "echo", "hang"}},
	{name: "tools is read-only",
		source: `for (const f of [() => { tools.x = 1 }, () => delete tools.x, () => Object.defineProperty(tools, 'x', {}),
  () => Object.freeze(tools), () => Object.setPrototypeOf(tools, {})]) try { f(); text('no') } catch (e) { text(String(e)) }
tools = 1; text = 2; text(typeof tools, typeof text)`,
		out: []string{"TypeError: tools is read-only", "TypeError: tools is read-only", "TypeError: tools is read-only",
			"TypeError: tools is read-only", "TypeError: tools is read-only", "object function"}},
	// S0-096
	{name: "ALL_TOOLS",
		source: `text(ALL_TOOLS, ALL_TOOLS === ALL_TOOLS, Object.keys(globalThis).length)`,
		out:    []string{`[{"name":"echo","jsName":"echo"}] true 0`}},
	{name: "ALL_TOOLS while calls are out",
		source:  `const p = tools.echo(1); await null; const q = tools.echo(2); await tools.echo(3); text(ALL_TOOLS.length, (await p).output, (await q).output)`,
		out:     []string{"1 1 2"},
		batches: []string{"echo(1) echo(2) echo(3)"}},

	// S0-097 S0-239: text().
	{name: "text of every type",
		source: `text('a\nb'); text(''); text(1.5); text(-0); text(NaN); text(true); text(null); text(undefined); text(1n << 70n);
text(Symbol('s')); text(function f() {}); text({a: [1, 'x', null, undefined]}); text([]); text(new Date(0)); text(); text('a', 1, {b: 2})`,
		out: []string{"a\nb", "", "1.5", "0", "NaN", "true", "null", "undefined", "1180591620717411303424",
			"Symbol(s)", "[function f]", `{"a":[1,"x",null,null]}`, "[]", `"1970-01-01T00:00:00.000Z"`, "", `a 1 {"b":2}`}},
	{name: "text of what JSON would lose",
		source: `text({n: 9007199254740993n}); text(new Map([['k', 1]])); text({s: new Set([1, 'a'])}); text(new TypeError('bad')); text([new RangeError('r')]);
const o = {list: []}; o.self = o; o.list.push(o, {o}); text(o); text({a: o.list, b: 1n})`,
		out: []string{`{"n":9007199254740993}`, `[["k",1]]`, `{"s":[1,"a"]}`, "TypeError: bad", `[{"name":"RangeError","message":"r"}]`,
			`{"list":["[Circular]",{"o":"[Circular]"}],"self":"[Circular]"}`,
			`{"a":[{"list":"[Circular]","self":"[Circular]"},{"o":{"list":"[Circular]","self":"[Circular]"}}],"b":1}`}},
	{name: "a BigInt goes in and out (BUG-MC-26)",
		source:  `text({id: 10n}, (await tools.echo({id: 10n})).output)`,
		out:     []string{`{"id":10} {"id":10}`},
		batches: []string{`echo({"id":10})`}},
	{name: "a lone surrogate is replaced",
		source: `text('a\uD800b')`, out: []string{"a\uFFFDb"}},
	// BUG-CM-18
	{name: "a promise in text",
		source: "text(1)\ntext(tools.echo({}))", out: []string{"1"},
		err: &sandbox.Error{Kind: sandbox.KindException, Name: "TypeError", Line: 2, Column: 12,
			Message: "the value is a Promise: write await before the call that made it"}},
	{name: "a promise inside a value",
		source: `try { text([1, tools.echo({})]) } catch (e) { text(e) }`,
		out:    []string{`TypeError: the value at "1" is a Promise: write await before the call that made it`}},
	{name: "a promise as an argument",
		source: `try { await tools.echo(tools.echo(1)) } catch (e) { text(e.code, e.message) }`,
		out:    []string{"INVALID_ARGS arguments of tools.echo: TypeError: the argument is a Promise: write await before the call that made it"}},

	// BUG-CM-26: numbers.
	{name: "integers that a double cannot hold",
		source: `const r = await tools.data({json: '{"id":7960607143101464576,"n":-9007199254740993,"safe":9007199254740991,"s":"12345678901234567890"}'});
const {id, n, safe, s} = r.structuredContent; text(typeof id, id, typeof n, n, typeof safe, typeof s); text(r.structuredContent);
text((await tools.echo({id, list: [n]})).output)`,
		out: []string{"bigint 7960607143101464576 bigint -9007199254740993 number string",
			`{"id":7960607143101464576,"n":-9007199254740993,"safe":9007199254740991,"s":"12345678901234567890"}`,
			`{"id":7960607143101464576,"list":[-9007199254740993]}`},
		batches: []string{`data({"json":"{\"id\":7960607143101464576,\"n\":-9007199254740993,\"safe\":9007199254740991,\"s\":\"12345678901234567890\"}"})`,
			`echo({"id":7960607143101464576,"list":[-9007199254740993]})`}},
	{name: "decimals that a double cannot hold",
		source: `const v = (await tools.data({json: '[0.1234567890123456789, 0.30000000000000004, 1e400, 2.50, 1e23, -0.0]'})).structuredContent;
text(v); text(v[0] * 2, v[0] + 1, typeof v[1], typeof v[3], typeof v[4], String(v[0]), typeof v[5])`,
		out: []string{"[0.1234567890123456789,0.30000000000000004,1e400,2.5,1e+23,0]",
			"0.24691357802469135 1.1234567890123457 number number number 0.1234567890123456789 number"},
		batches: []string{`data({"json":"[0.1234567890123456789, 0.30000000000000004, 1e400, 2.50, 1e23, -0.0]"})`}},

	// S0-098 S0-099: media.
	{name: "images and audio",
		source: `image('data:image/png;base64,AAEC'); image({type: 'image', mimeType: 'image/jpeg', data: '_-8'.replace('_-8', '/+8=')});
image('data:image/svg+xml,%3Csvg%2F%3E\u00e9'); audio({mimeType: 'audio/wav', data: new Uint8Array([1, 255])});
image({content: [{type: 'text', text: 'x'}, {type: 'image', mimeType: 'image/gif', data: 'AA=='}]})`,
		out: []string{"[image image/png 000102]", "[image image/jpeg ffef]", "[image image/svg+xml 3c7376672f3ec3a9]", "[audio audio/wav 01ff]", "[image image/gif 00]"}},
	{name: "what is no image",
		source: `for (const v of ['x', 'data:image/png;base64,***', {mimeType: 'text/html', data: ''}, {mimeType: 'image/png\r\nX: 1', data: ''}, null, {content: []}, tools.echo(1)])
  try { image(v); text('no') } catch (e) { text(e.message.replace(/^image\(value\) takes .* base64 data/, 'usage')) }`,
		out: []string{"usage", "image(value): the data is not valid base64", "usage; the mimeType must be image/…", "usage; the mimeType must be image/…",
			"usage; it got null", "usage; the result has no image", "the value is a Promise: write await before the call that made it"}},

	// S0-100: exit().
	{name: "exit cannot be caught",
		source: `text(1); try { exit() } catch { text('caught') } finally { text('finally') } text(2)`, out: []string{"1"}},
	{name: "exit from a job",
		source: `text(1); Promise.resolve().then(() => { try { exit() } finally { text('finally') } }); await tools.hang({}); text(2)`, out: []string{"1"}},
	{name: "exit that the engine swallows",
		source: `new Promise(() => exit()); text('after'); await tools.echo(1); for (;;);`},
	// S0-248 BUG-CM-11, ruling 13: a returned value is printed when nothing else was.
	{name: "a returned value", source: `return {a: 1n}`, out: []string{`{"a":1}`}},
	{name: "a returned promise", source: `return tools.echo('x')`, out: []string{`{"callId":"call-1","name":"echo","status":"success","output":"\"x\""}`}, batches: []string{`echo("x")`}},
	{name: "a returned value and output", source: `text(1); return 2`, out: []string{"1"}},
	{name: "nothing", source: ``},

	// S0-236: syntax errors at the author's own place.
	{name: "syntax error on line 1", source: `const = 1`,
		err: &sandbox.Error{Kind: sandbox.KindSyntax, Name: "SyntaxError", Message: "variable name expected", Line: 1, Column: 7}},
	{name: "syntax error on line 3", source: "text(1)\n\nlet a b",
		err: &sandbox.Error{Kind: sandbox.KindSyntax, Name: "SyntaxError", Message: "expecting ';'", Line: 3, Column: 7}},
	{name: "an end that is missing", source: "text(1)\nif (true) {",
		err: &sandbox.Error{Kind: sandbox.KindSyntax, Name: "SyntaxError", Message: "unexpected end of the program", Line: 2, Column: 12}},
	{name: "a brace too many", source: "text(1)\n}",
		err: &sandbox.Error{Kind: sandbox.KindSyntax, Name: "SyntaxError", Message: "unexpected token in expression: '}'", Line: 2, Column: 1}},
	// No source closes its wrapper; nothing of it runs.
	{name: "closes the arrow", source: `}); text('ran'); (async()=>{`,
		err: &sandbox.Error{Kind: sandbox.KindSyntax, Name: "SyntaxError", Message: "unexpected token in expression: ')'", Line: 1, Column: 2}},
	{name: "closes the arrow and throws", source: `}); throw 1; (async()=>{`,
		err: &sandbox.Error{Kind: sandbox.KindSyntax, Name: "SyntaxError", Message: "unexpected token in expression: ')'", Line: 1, Column: 2}},
	{name: "closes the arrow with a comma", source: `}, text('ran'), async()=>{`,
		err: &sandbox.Error{Kind: sandbox.KindSyntax, Name: "SyntaxError", Message: "unexpected token in expression: ','", Line: 1, Column: 2}},
	{name: "closes the function", source: `} text('ran'); async function g(){`,
		err: &sandbox.Error{Kind: sandbox.KindSyntax, Name: "SyntaxError", Message: "Unexpected identifier 'text'", Line: 1, Column: 3}},
	{name: "hides the end in a comment", source: `text(1) /*`,
		err: &sandbox.Error{Kind: sandbox.KindSyntax, Name: "SyntaxError", Message: "unexpected end of comment", Line: 1, Column: 9}},
	{name: "a comment at the end", source: `text(1) // }`, out: []string{"1"}},
	{name: "hides the end in a template", source: "text(`a",
		err: &sandbox.Error{Kind: sandbox.KindSyntax, Name: "SyntaxError", Message: "unexpected end of string", Line: 1, Column: 6}},
	// S0-130 S0-129 S0-243: no module loader.
	{name: "static import", source: `import fs from 'fs'`,
		err: &sandbox.Error{Kind: sandbox.KindSyntax, Name: "SyntaxError", Message: "Unexpected identifier 'fs'", Line: 1, Column: 8}},
	{name: "dynamic import", source: `await import('fs')`,
		err: &sandbox.Error{Kind: sandbox.KindException, Name: "ReferenceError", Message: "could not load module 'fs'"}},

	{name: "exception on line 1", source: `null.x`,
		err: &sandbox.Error{Kind: sandbox.KindException, Name: "TypeError", Message: "cannot read property 'x' of null", Line: 1, Column: 1, Stack: "at <anonymous> (exec.js:1:1)\n"}},
	{name: "exception in a callback", source: "text(1)\nconst f = x => {\n  return x.y.z\n}\n;[{}].map(f)", out: []string{"1"},
		err: &sandbox.Error{Kind: sandbox.KindException, Name: "TypeError", Message: "cannot read property 'z' of undefined", Line: 3, Column: 10,
			Stack: "at f (exec.js:3:10)\nat <anonymous> (exec.js:5:11)\n"}},
	{name: "a thrown string", source: `throw 'x'`, err: &sandbox.Error{Kind: sandbox.KindException, Message: "x"}},
	{name: "a thrown object", source: `throw {a: 1n}`, err: &sandbox.Error{Kind: sandbox.KindException, Message: `{"a":1}`}},
	{name: "an aggregate error", source: `await Promise.any([Promise.reject(new Error('a')), Promise.reject(1)])`,
		err: &sandbox.Error{Kind: sandbox.KindException, Name: "AggregateError", Message: "  Error: a\n  1", Line: 1, Column: 60}},
	{name: "a cause", source: `throw new Error('a', {cause: new TypeError('b')})`,
		err: &sandbox.Error{Kind: sandbox.KindException, Name: "Error", Message: "a\n  caused by TypeError: b", Line: 1, Column: 34}},
	{name: "hostile errors", source: `const e = new Error('x'); Object.defineProperty(e, 'message', {get() { throw 1 }}); e.name = {toString() { throw 2 }};
Error.prepareStackTrace = () => ({}); throw e`,
		err: &sandbox.Error{Kind: sandbox.KindException, Name: "Error", Message: "", Line: 1, Column: 15}},
	{name: "strict programs stay strict", source: " 'use strict'\nundeclared = 1",
		err: &sandbox.Error{Kind: sandbox.KindException, Name: "ReferenceError", Message: "undeclared is not defined", Line: 2, Column: 1}},

	// The program awaits what nothing can settle.
	{name: "stalled", source: "text(1)\nawait new Promise(() => {})", out: []string{"1"},
		err: &sandbox.Error{Kind: sandbox.KindStalled, Message: "the program awaits a promise that nothing can settle", Line: 2, Column: 11, Stack: "at <anonymous> (exec.js:2:11)\n"}},
	{name: "stalled behind try", source: "const f = async () => {\n  await null\n  try { await new Promise(() => {}) } finally { text('inner') }\n}\ntry {\n  await f()\n} catch { text('catch') } finally { text('finally'); tools.echo(1) }",
		err: &sandbox.Error{Kind: sandbox.KindStalled, Message: "the program awaits a promise that nothing can settle", Line: 6, Column: 9}},
	{name: "stalled after calls", source: "await tools.echo(1);\nawait Promise.all([tools.echo(2), new Promise(() => {})])", batches: []string{"echo(1)", "echo(2)"},
		err: &sandbox.Error{Kind: sandbox.KindStalled, Message: "the program awaits a promise that nothing can settle", Line: 2, Column: 39}},
}

func TestPrograms(t *testing.T) {
	r := newRunner(t, Options{})
	for _, c := range programs {
		t.Run(c.name, func(t *testing.T) {
			h := newHost()
			_, err := run(t, r, h, c.source, sandbox.Limits{})
			var opts []cmp.Option
			opts = append(opts, cmpopts.IgnoreFields(sandbox.Error{}, "Err"))
			if c.err == nil || c.err.Stack == "" {
				opts = append(opts, cmpopts.IgnoreFields(sandbox.Error{}, "Stack"))
			}
			if d := cmp.Diff(c.err, err, opts...); d != "" {
				t.Errorf("error (-want +got):\n%s", d)
			}
			if d := cmp.Diff(c.out, h.out, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("output (-want +got):\n%s", d)
			}
			if d := cmp.Diff(c.batches, h.batches, cmpopts.EquateEmpty()); d != "" && !strings.Contains(c.source, "ALL_TOOLS") {
				t.Errorf("batches (-want +got):\n%s", d)
			}
		})
	}
}
