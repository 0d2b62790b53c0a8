package guest

import "capstan/internal/sandbox/frame"

// A program is the body of an async function. Two wrappers that close
// differently must both compile: after a brace of the source that closes the
// first, only a comma or a parenthesis can follow, and after one that closes
// the second, neither can. So no source leaves its wrapper, and nothing of it
// runs before that is known. The blank lines put the author's first line at
// line 1, column 1, where a wrapper that starts at line -1 has it. The await is
// what findResume needs.
const (
	arrowOpen, arrowClose       = "(async()=>{", "\n})"
	functionOpen, functionClose = "async function f(){", "\n}"
	useStrict                   = "'use strict';"
	begin                       = "await 0;\n\n"
	wrapperLine                 = -1
)

// compile makes the program's function.
func (c *child) compile() (int32, error) {
	v := c.vm
	first := begin
	if c.strict() {
		first = useStrict + begin
	}
	arrow, err := c.compileAs(arrowOpen+first, arrowClose, evalCompileOnly, wrapperLine)
	if err != nil {
		c.syntaxError(err)
	}
	f, err := c.compileAs(functionOpen+first, functionClose, evalCompileOnly, wrapperLine)
	if err != nil {
		c.syntaxError(err)
	}
	v.Xqjs_free_value(f)
	h, err := v.cell(v.XJS_EvalFunction(v.Context, v.raw(arrow)))
	if err != nil {
		return 0, err
	}
	return v.check(h)
}

// strict tells whether the source begins with the directive, which the
// wrapper's own first statement would otherwise switch off.
func (c *child) strict() bool {
	src := c.sourceText()
	for len(src) > 0 && (src[0] == ' ' || src[0] == '\t' || src[0] == '\n' || src[0] == '\r') {
		src = src[1:]
	}
	const n = len(`"use strict"`)
	return len(src) >= n && (string(src[:n]) == `"use strict"` || string(src[:n]) == `'use strict'`)
}

func (c *child) sourceText() []byte {
	return c.vm.memory()[uint32(c.source) : uint32(c.source)+uint32(c.sourceN)]
}

func (c *child) compileAs(open, end string, flags, line int32) (int32, error) {
	v := c.vm
	n := len(open) + c.sourceN + len(end)
	p, err := v.alloc(n)
	if err != nil {
		return 0, err
	}
	defer v.Xwasm_free(p)
	mem := v.memory()
	src := c.sourceText()
	copy(mem[uint32(p):], open)
	copy(mem[int(uint32(p))+len(open):], src)
	copy(mem[int(uint32(p))+len(open)+len(src):], end)
	return v.evalAt(p, int32(n), fileName, flags, line)
}

// syntaxError reports that the source does not compile. An error that lies in
// the text of a wrapper is looked for again in the source alone.
func (c *child) syntaxError(err error) {
	e, ok := err.(*exception) //nolint:errorlint // never wrapped, and package errors is not the child's
	if !ok || e.uncatchable {
		c.fail(err)
	}
	lines, lastLen := c.sourceEnd()
	r, _ := c.describe(e.value)
	if r.Line > lines {
		if _, err := c.compileAs("", "", evalCompileOnly|evalAsync, 1); err != nil {
			if bare, ok := err.(*exception); ok && !bare.uncatchable { //nolint:errorlint // never wrapped, and package errors is not the child's
				r, _ = c.describe(bare.value)
			}
		}
	}
	const atEnd = "unexpected token in expression: ''"
	if r.Line > lines || r.Message == atEnd {
		r.Message = "unexpected end of the program"
		r.Line, r.Column = lines, lastLen+1
	}
	r.Kind, r.Stack = frame.Syntax, ""
	if stackOverflow(r) {
		r.Kind = frame.StackOverflow
	}
	c.finish(r)
}

// sourceEnd counts the lines of the source and the characters of its last.
func (c *child) sourceEnd() (lines, lastLen uint32) {
	lines = 1
	for _, b := range c.sourceText() {
		switch {
		case b == '\n':
			lines++
			lastLen = 0
		case b&0xc0 != 0x80: // not a continuation byte
			lastLen++
		}
	}
	return lines, lastLen
}

// authorFrames keeps the frames of a stack trace that are the author's own or
// native functions between them, and finds the position of the first.
func authorFrames(stack string) (kept string, line, column uint32) {
	for len(stack) > 0 {
		end := 0
		for end < len(stack) && stack[end] != '\n' {
			end++
		}
		one := stack[:end]
		stack = stack[min(end+1, len(stack)):]
		l, col, ok := position(one)
		if !ok {
			continue
		}
		if line == 0 {
			line, column = l, col
		}
		kept += trim(one) + "\n"
	}
	return kept, line, column
}

// position reads LINE:COLUMN at the end of a frame of the author's file.
func position(s string) (line, column uint32, ok bool) {
	if len(s) > 0 && s[len(s)-1] == ')' {
		s = s[:len(s)-1]
	}
	column, s, ok = number(s)
	if !ok {
		return 0, 0, false
	}
	line, s, ok = number(s)
	if !ok || line == 0 || len(s) < len(fileName) || s[len(s)-len(fileName):] != fileName {
		return 0, 0, false
	}
	return line, column, true
}

// number cuts ":DIGITS" off the end of s.
func number(s string) (n uint32, rest string, ok bool) {
	i := len(s)
	for i > 0 && s[i-1] >= '0' && s[i-1] <= '9' && len(s)-i < 9 {
		i--
	}
	if i == len(s) || i == 0 || s[i-1] != ':' {
		return 0, s, false
	}
	for _, c := range s[i:] {
		n = n*10 + uint32(c-'0')
	}
	return n, s[:i-1], true
}

func trim(s string) string {
	for len(s) > 0 && s[0] == ' ' {
		s = s[1:]
	}
	return s
}
