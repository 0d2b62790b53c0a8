// The prelude: everything a program gets from outside, and nothing else.
//
// It runs once, when the snapshot is made; the child restores the memory that
// it left. It is called with one function, host(op, ...), and answers the
// functions that the child calls, in the order of the constants in vm.go.
//
// A program may replace every global and every prototype method before it
// makes a call. So all intrinsics are captured here, methods are called
// through Reflect.apply or as bound functions, arrays are never iterated or
// pushed to, and objects handed to intrinsics have no prototype.
(host) => {
'use strict';
const CALL = 1, TEXT = 2, MEDIA = 3, TOOLS = 4, NAMES = 5, EXIT = 6;

const G = globalThis, P = Promise, E = Error, T = TypeError, B = BigInt, S = String, N = Number, U8 = Uint8Array;
const { stringify, parse, rawJSON } = JSON;
const { apply, defineProperty, getOwnPropertyDescriptor, ownKeys } = Reflect;
const { isError } = E, { isArray } = Array, { isSafeInteger } = N;
const freeze = Object.freeze, keys = Object.keys;
const getStack = getOwnPropertyDescriptor(E.prototype, 'stack').get;
const hasInstance = Function.prototype[Symbol.hasInstance];
const mapForEach = Map.prototype.forEach, setForEach = Set.prototype.forEach;
const fromBase64 = U8.fromBase64, decode = decodeURIComponent, M = Map, MSet = Set;
const is = (C, v) => apply(hasInstance, C, [v]);
const data = (value, enumerable = true) => ({ __proto__: null, value, writable: true, enumerable, configurable: true });

// ---- values as text ----

const notAwaited = (what) => new T(`${what} is a Promise: write await before the call that made it`);

const brief = (e) => {
  try {
    if (!isError(e)) return show(e);
    const name = S(e.name), message = S(e.message);
    return message === '' ? name : name + ': ' + message;
  } catch { return 'an error that cannot be shown'; }
};

// What JSON.stringify alone would lose: digits, errors, maps, sets, and the
// mistake of printing a promise.
const replace = (key, v) => {
  if (typeof v === 'bigint') return rawJSON(S(v));
  if (typeof v !== 'object' || v === null) return v;
  if (is(P, v)) throw notAwaited(key === '' ? 'the value' : `the value at ${stringify(key)}`);
  if (isError(v)) return errorFields(v);
  if (is(M, v)) return entries(mapForEach, v, true);
  if (is(MSet, v)) return entries(setForEach, v, false);
  return v;
};
const errorFields = (e) => {
  const out = { name: e.name, message: e.message }, own = keys(e);
  for (let i = 0; i < own.length; i++) defineProperty(out, own[i], data(e[own[i]]));
  return out;
};
const entries = (each, coll, pairs) => {
  const out = [];
  apply(each, coll, [(v, k) => { defineProperty(out, out.length, data(pairs ? [k, v] : v)); }]);
  return out;
};

// The second try, when the first found a cycle: the path of holders is kept.
const replaceCycles = () => {
  const path = [];
  let depth = 0;
  return function (key, v) {
    v = replace(key, v);
    if (typeof v !== 'object' || v === null) return v;
    while (depth > 0 && path[depth - 1] !== this) depth--;
    for (let i = 0; i < depth; i++) if (path[i] === v) return '[Circular]';
    defineProperty(path, depth++, data(v));
    return v;
  };
};

const json = (v) => {
  let s;
  try { s = stringify(v, replace); } catch (e) {
    if (!is(T, e)) throw e;
    s = stringify(v, replaceCycles());
  }
  return s === undefined ? 'undefined' : s;
};

const show = (v) => {
  if (typeof v === 'string') return v;
  if (typeof v === 'function') return `[function ${S(v.name)}]`;
  if (typeof v !== 'object' || v === null) return S(v);
  if (is(P, v)) throw notAwaited('the value');
  return isError(v) ? brief(v) : json(v);
};

// ---- printing ----

const limit = (message) => {
  const e = new E(message);
  defineProperty(e, 'code', data('OUTPUT_LIMIT'));
  return e;
};
const text = (...values) => {
  if (values.length === 1 && document(values[0])) return;
  let line = values.length > 0 ? show(values[0]) : '';
  for (let i = 1; i < values.length; i++) line += ' ' + show(values[i]);
  if (host(TEXT, line) !== 0) throw limit('the program has printed more text than the limit allows; print less, or write it to a file');
};

// A document that a tool answered with is printed as one, with its name before it:
// as JSON it would be base64 that nobody can read.
const document = (v) => {
  if (typeof v !== 'object' || v === null || is(P, v) || v.type !== 'resource') return false;
  const r = v.resource;
  if (typeof r !== 'object' || r === null || typeof r.blob !== 'string' || r.blob === '') return false;
  let { uri, mimeType, blob } = r;
  try { blob = apply(fromBase64, U8, [blob]); } catch { return false; }
  if (typeof mimeType !== 'string' || !mediaType('', mimeType)) mimeType = 'application/octet-stream';
  text(json({ type: 'resource', resource: { uri, mimeType } }));
  send('file', mimeType, blob);
  return true;
};
const send = (kind, mimeType, bytes) => {
  if (host(MEDIA, kinds[kind], mimeType, bytes) !== 0) throw limit('the program has printed more images, audio and documents than the limits allow');
};

const kinds = { __proto__: null, image: 1, audio: 2, file: 3 };
const media = (kind, v) => {
  const usage = `${kind}(value) takes a content block of a nested result, a data: URL, or {mimeType, data} with base64 data`;
  if (typeof v === 'string') v = dataURL(v, usage);
  if (typeof v !== 'object' || v === null) throw new T(usage + `; it got ${v === null ? 'null' : typeof v}`);
  if (is(P, v)) throw notAwaited('the value');
  let { mimeType, data } = v;
  if (data === undefined && isArray(v.content)) return blocks(kind, v.content, usage);
  if (typeof mimeType !== 'string' || !mediaType(kind, mimeType)) throw new T(usage + `; the mimeType must be ${kind}/…`);
  if (typeof data === 'string') {
    try { data = apply(fromBase64, U8, [data]); } catch { throw new T(`${kind}(value): the data is not valid base64`); }
  }
  if (!is(U8, data)) throw new T(usage);
  send(kind, mimeType, data);
};
const blocks = (kind, content, usage) => {
  let found = 0;
  for (let i = 0; i < content.length; i++) {
    const b = content[i];
    if (b !== null && typeof b === 'object' && b.type === kind) { media(kind, b); found++; }
  }
  if (found === 0) throw new T(usage + `; the result has no ${kind}`);
};
// type/subtype, where the subtype holds letters, digits and . + - only. An empty
// kind takes any type.
const mediaType = (kind, mime) => {
  const at = kind === '' ? find(mime, '/', 0) : kind.length;
  if (at < 1) return false;
  for (let i = 0; kind === '' && i < at; i++) if (!(mime[i] >= 'a' && mime[i] <= 'z')) return false;
  if (mime.length <= at + 1 || mime.length > 128 || mime[at] !== '/') return false;
  for (let i = 0; i < kind.length; i++) if (mime[i] !== kind[i]) return false;
  for (let i = at + 1; i < mime.length; i++) {
    const c = mime[i];
    if (!(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c === '.' || c === '+' || c === '-')) return false;
  }
  return true;
};
const find = (s, c, from) => { for (let i = from; i < s.length; i++) if (s[i] === c) return i; return -1; };
const cut = (s, from, to) => { let r = ''; for (let i = from; i < to; i++) r += s[i]; return r; };
const dataURL = (s, usage) => {
  const comma = cut(s, 0, s.length < 5 ? s.length : 5) === 'data:' ? find(s, ',', 5) : -1;
  if (comma < 0) throw new T(usage);
  const head = cut(s, 5, comma), semi = find(head, ';', 0);
  const mimeType = semi < 0 ? head : cut(head, 0, semi);
  const base64 = head.length >= 7 && cut(head, head.length - 7, head.length) === ';base64';
  return { mimeType, data: base64 ? apply(slice, s, [comma + 1]) : utf8(apply(slice, s, [comma + 1])) };
};
const slice = S.prototype.slice;
// Bytes of a percent-encoded body: UTF-8, as encodeURIComponent and SVG use it.
const utf8 = (s) => {
  let r;
  try { r = encode(decode(s)); } catch { throw new T('the data: URL is not valid percent-encoding'); }
  const out = new U8(r.length);
  let n = 0;
  for (let i = 0; i < r.length; i++, n++) {
    if (r[i] === '%') { out[n] = +('0x' + r[i + 1] + r[i + 2]); i += 2; } else out[n] = code(r, i);
  }
  return apply(subarray, out, [0, n]);
};
const encode = encodeURIComponent, charCodeAt = S.prototype.charCodeAt, subarray = U8.prototype.subarray;
const code = (s, i) => apply(charCodeAt, s, [i]);

// ---- nested calls ----

class ToolCallError extends E {
  constructor(fields) { super(fields.message); fill(this, fields); }
}
defineProperty(ToolCallError.prototype, 'name', data('ToolCallError', false));
const fill = (e, { message, tool, callId, code }) => {
  defineProperty(e, 'name', data('ToolCallError'));
  defineProperty(e, 'message', data(typeof message === 'string' ? message : 'the call failed'));
  defineProperty(e, 'tool', data(tool));
  defineProperty(e, 'callId', data(callId));
  defineProperty(e, 'code', data(code));
  return e;
};

const pending = new M();
const getPending = M.prototype.get.bind(pending), setPending = M.prototype.set.bind(pending), deletePending = M.prototype.delete.bind(pending);

const toArgs = (x) => {
  if (x === undefined) return '{}';
  if (is(P, x)) throw notAwaited('the argument');
  let s;
  try { s = stringify(x); } catch (e) {
    if (!is(T, e)) throw e;
    s = stringify(x, (k, v) => typeof v === 'bigint' ? rawJSON(S(v)) : v);
  }
  if (s === undefined) throw new T(`a ${typeof x} cannot be an argument`);
  return s;
};

// Calls beyond the limit share one rejected promise for each name, so that a
// program that makes a million of them does not spend its time on it.
let full = false, overName, over;
const overLimit = (name) => {
  if (name !== overName) {
    overName = name;
    over = new P((_, reject) => reject(new ToolCallError({ message: 'the program has made more nested calls than the limit allows; do more in each call', tool: name, callId: '', code: 'CALL_LIMIT' })));
  }
  return over;
};

const call = (name, x) => full ? overLimit(name) : new P((resolve, reject) => {
  let args;
  try { args = toArgs(x); } catch (e) {
    return reject(new ToolCallError({ message: `arguments of tools.${name}: ${brief(e)}`, tool: name, callId: '', code: 'INVALID_ARGS' }));
  }
  const id = host(CALL, name, args);
  if (id > 0) setPending(id, [resolve, reject]);
  else if (id === 0) {
    full = true;
    resolve(overLimit(name));
  }
  else reject(new ToolCallError({ message: `arguments of tools.${name} are longer than the limit allows; pass a file instead`, tool: name, callId: '', code: 'INVALID_ARGS' }));
});

// Numbers that a double cannot hold: integers become BigInt, decimals a Number
// object that computes as a number and prints with every digit.
const exact = (k, v, c) => {
  if (typeof v !== 'number' || c === undefined || typeof c.source !== 'string') return v;
  const s = c.source;
  let integer = true;
  for (let i = 0; i < s.length; i++) if (s[i] === '.' || s[i] === 'e' || s[i] === 'E') integer = false;
  if (integer) return isSafeInteger(v) ? v : B(s);
  return decimal(s) === decimal(S(v)) ? v : precise(v, s);
};
const precise = (v, s) => {
  const n = new N(v), raw = rawJSON(s);
  defineProperty(n, 'toJSON', data(() => raw, false));
  defineProperty(n, 'toString', data(() => s, false));
  return n;
};
// A decimal's digits without outer zeros, and its exponent: equal values, equal text.
const decimal = (s) => {
  const sign = s[0] === '-' ? '-' : '';
  let digits = '', exp = 0, zeros = '', point = false, i = sign.length;
  for (; i < s.length && s[i] !== 'e' && s[i] !== 'E'; i++) {
    if (s[i] === '.') { point = true; continue; }
    if (point) exp--;
    if (s[i] === '0') { if (digits !== '') zeros += '0'; } else { digits += zeros + s[i]; zeros = ''; }
  }
  if (i < s.length) exp += +apply(slice, s, [i + 1]);
  return digits === '' ? '0' : sign + digits + 'e' + (exp + zeros.length);
};

const contentOf = { __proto__: null, configurable: true, enumerable: false,
  get() { const c = [{ type: 'text', text: this.output }]; defineProperty(this, 'content', data(c)); return c; },
  set(c) { defineProperty(this, 'content', data(c)); },
};

// settle answers call id. blank is an error object without a stack, so that
// the engine fills in the author's own await when it is thrown there.
const settle = (id, ok, value, output, long, blank) => {
  const p = getPending(id);
  if (p === undefined) return;
  deletePending(id);
  let v;
  try {
    v = long ? parse(value, exact) : parse(value);
    if (typeof v !== 'object' || v === null) throw 0;
  } catch {
    ok = false;
    v = { message: 'the result of the call is not a JSON object', code: 'TOOL_FAILED' };
  }
  if (!ok) return p[1](blank === undefined ? new ToolCallError(v) : fill(blank, v));
  defineProperty(v, 'output', data(output));
  if (v.content === undefined) defineProperty(v, 'content', contentOf);
  p[0](v);
};

// ---- tools ----

const functions = new M();
const getFunction = M.prototype.get.bind(functions), setFunction = M.prototype.set.bind(functions);
const toolFunction = (name) => {
  let f = getFunction(name);
  if (f === undefined) setFunction(name, f = (x) => call(name, x));
  return f;
};
const addName = MSet.prototype.add, hasName = MSet.prototype.has;
let nameList, nameSet;
const names = () => {
  if (nameList === undefined) {
    const list = parse(host(NAMES)), set = new MSet();
    for (let i = 0; i < list.length; i++) apply(addName, set, [list[i]]);
    nameSet = set;
    nameList = list; // last: what comes before may fail for want of stack
  }
  return nameList;
};
const known = (k) => typeof k === 'string' && (names(), apply(hasName, nameSet, [k]));
const readOnly = () => { throw new T('tools is read-only'); };
const tools = new Proxy({ __proto__: null }, {
  __proto__: null,
  get: (t, k) => typeof k === 'string' && k !== 'then' ? toolFunction(k) : undefined,
  has: (t, k) => known(k),
  ownKeys: () => { const n = names(), out = []; for (let i = 0; i < n.length; i++) defineProperty(out, i, data(n[i])); return out; },
  getOwnPropertyDescriptor: (t, k) => known(k) ? { __proto__: null, value: toolFunction(k), writable: false, enumerable: true, configurable: true } : undefined,
  set: readOnly, defineProperty: readOnly, deleteProperty: readOnly, setPrototypeOf: readOnly, preventExtensions: readOnly,
});

// ---- the globals ----

for (const name of ['SharedArrayBuffer', 'Atomics', 'WebAssembly', 'performance']) delete G[name];
const define = (name, value) => defineProperty(G, name, { __proto__: null, value, writable: false, enumerable: false, configurable: false });
define('tools', tools);
define('text', text);
define('image', (value) => { media('image', value); });
define('audio', (value) => { media('audio', value); });
define('exit', () => { host(EXIT); });
// The parent answers once, so its answer is kept until it has been parsed: that
// may fail for want of stack.
let allText, allTools;
const readAllTools = () => {
  if (allTools !== undefined) return allTools;
  allText ??= host(TOOLS) ?? '';
  if (allText === '') throw new E('ALL_TOOLS is longer than the limit allows; Object.keys(tools) lists the callable names');
  allTools = parse(allText);
  allText = undefined;
  return allTools;
};
defineProperty(G, 'ALL_TOOLS', { __proto__: null, get: readAllTools, set: undefined, enumerable: false, configurable: false });

// ---- how a program ended ----

// describe tells name, message, stack, code, tool and callId of what was thrown.
const describe = (e) => {
  const field = (o, k) => { try { const v = o[k]; return typeof v === 'string' ? v : ''; } catch { return ''; } };
  if (!isError(e)) {
    let message;
    try { message = show(e); } catch (x) { message = brief(x); }
    return ['', message, '', '', '', ''];
  }
  let stack;
  try { stack = apply(getStack, e, []); } catch { }
  const name = field(e, 'name');
  const message = join(field(e, 'message'), inner(e));
  return [name === '' ? 'Error' : name, message, typeof stack === 'string' ? stack : '', field(e, 'code'), field(e, 'tool'), field(e, 'callId')];
};
const join = (message, more) => message === '' ? more : more === '' ? message : message + '\n' + more;
const inner = (e) => {
  let s = '';
  try {
    const all = e.errors;
    if (isArray(all)) for (let i = 0; i < all.length && i < 5; i++) s = join(s, '  ' + brief(all[i]));
    for (let i = 0, c = e.cause; i < 3 && isError(c); i++, c = c.cause) s = join(s, '  caused by ' + brief(c));
  } catch { }
  return s;
};

return [settle, describe, text, ToolCallError.prototype];
}
