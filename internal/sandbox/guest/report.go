package guest

import (
	"time"

	"capstan/internal/sandbox/frame"
)

// Bounds of the texts of a report, in bytes.
const (
	maxName    = 256
	maxMessage = 64 << 10
	maxStack   = 16 << 10
)

// finish sends the report and ends the process.
func (c *child) finish(r frame.Report) {
	r.Unsent = uint32(len(c.queue))
	for _, q := range c.queue[:min(len(c.queue), frame.MaxNames)] {
		name := c.vm.memory()[uint32(q.name):]
		r.UnsentNames = append(r.UnsentNames, string(name[:min(q.nameN, maxName)]))
	}
	switch r.Kind {
	case frame.OK, frame.Exception, frame.Stalled: // the engine is sound
		c.unhandled(&r)
	}
	c.out.mu.Lock()
	c.finishLocked(r)
}

// finishLocked is finish for a caller that holds the output. The watch calls
// it beside a running interpreter, so it looks at numbers only.
func (c *child) finishLocked(r frame.Report) {
	r.Printed = c.items > 0
	r.CPU = uint64(max(cpuTime()-c.began, 0))
	if c.vm != nil {
		r.Peak = uint64(len(c.vm.memory()))
	}
	body := r.Append(nil)
	c.out.add(frame.Head{Type: frame.Done, A: uint32(len(body))}.Append(nil))
	c.out.add(body)
	c.out.flush()
	exit(0)
}

// fail ends the program for err.
func (c *child) fail(err error) {
	if c.exited {
		c.finish(frame.Report{})
	}
	e, ok := err.(*exception) //nolint:errorlint // never wrapped, and package errors is not the child's
	if !ok {
		c.finish(frame.Report{Kind: frame.Memory, Name: "InternalError", Message: "out of memory"})
	}
	expired := c.expired.Load()
	c.rejections.dropSame(c.vm, e.value)
	r, raw := c.describe(e.value)
	switch {
	case expired && e.uncatchable:
		r.Kind, r.Name, r.Message = frame.Timeout, "", timeoutMessage
		r.Stack, r.Line, r.Column = authorFrames(interrupted(raw))
	case e.uncatchable:
		r.Kind = frame.Memory
		if r.Message == "" {
			r.Name, r.Message = "InternalError", "out of memory"
		}
	case stackOverflow(r):
		r.Kind = frame.StackOverflow
	}
	c.finish(r)
}

func stackOverflow(r frame.Report) bool {
	return r.Name == "RangeError" && r.Message == "Maximum call stack size exceeded"
}

const timeoutMessage = "the program used up its CPU time"

// describe tells what was thrown, without failing itself. The stack of the
// report has the author's frames only.
func (c *child) describe(thrown int32) (r frame.Report, rawStack string) {
	c.describing = true // a used-up budget does not stop it; the watch still does
	r = c.vm.describe(thrown)
	c.describing = false
	rawStack = r.Stack
	r.Stack, r.Line, r.Column = authorFrames(rawStack)
	return r, rawStack
}

// interrupted is the stack of an interrupted program without its first frame,
// when that is not native: the engine keeps the position of a frame's last call
// only, not of its loop.
func interrupted(stack string) string {
	for i := range stack {
		if stack[i] != '\n' {
			continue
		}
		const native = "(native)"
		if i >= len(native) && stack[i-len(native):i] == native {
			return stack
		}
		return stack[i+1:]
	}
	return ""
}

// describe is describe with the stack as the engine has it.
func (v *vm) describe(thrown int32) frame.Report {
	r := frame.Report{Kind: frame.Exception}
	parts, err := v.call(v.Describe, thrown)
	if err != nil {
		return r
	}
	field := func(i int32, limit int) string {
		h, err := v.check(v.Xqjs_get_prop_uint32(parts, i))
		if err != nil {
			return ""
		}
		return v.str(h, limit)
	}
	r.Name, r.Message = field(0, maxName), field(1, maxMessage)
	r.Stack = field(2, maxStack)
	r.Code, r.Tool, r.CallID = field(3, maxName), field(4, maxName), field(5, maxName)
	return r
}

// interrupt is asked by the engine now and then whether to stop.
func (c *child) interrupt() bool { return (c.expired.Load() || c.exited) && !c.describing }

// grace is the CPU time that the engine has to stop by itself.
const grace = 100 * time.Millisecond

// tick is how often the watch passes on what was printed and looks whether the
// parent is still there, while the program computes.
const tick = 250 * time.Millisecond

// watch ends the program when its CPU time is used up: first by the interrupt
// hook, and when that is not reached, because a native function loops, by
// reporting and ending the process over the interpreter's head. It also passes
// on what a program prints while it computes, and ends one whose parent has
// gone; a program that waits does both itself.
func (c *child) watch() {
	deadline := c.began + time.Duration(c.settings.CPU)
	pause, last := tick, c.began
	for {
		used := cpuTime()
		switch {
		case used < deadline:
			if used-last < pause/8 { // it waits for a tool
				pause = min(2*pause, time.Minute)
			} else {
				pause = tick
			}
			last = used
			nap(min(max(deadline-used, time.Millisecond), pause))
		case !c.expired.Load():
			c.expired.Store(true)
			deadline += grace
		default:
			c.out.mu.Lock()
			c.finishLocked(frame.Report{Kind: frame.Timeout, Message: timeoutMessage + " in a native function"})
		}
		if parentGone() {
			exit(0)
		}
		c.out.mu.Lock() // what was printed does not wait for the end of a long turn
		c.out.flush()
		c.out.mu.Unlock()
	}
}
