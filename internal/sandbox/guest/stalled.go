package guest

import "capstan/internal/sandbox/frame"

// Where a program waits is known to the engine only: it keeps the frame of a
// suspended async function, and tells its line to an error that is thrown
// there. So the function that resumes the program's frame is found once, in the
// engine's own memory, while the program waits at the await 0 that its wrapper
// begins with, and is kept: keeping it keeps the frame, which else goes with
// the promise that it awaits. When the program has stalled, that function is
// made its twin, which throws, and is called with an error that nothing can
// catch: no statement of the program runs, the stack of the error is the
// answer, and the process ends.
//
// This costs nothing for each await. The layout below is that of the one
// pinned build of the engine; TestStalled holds it.
const (
	gcList     = 596 // in the runtime: the list of all objects, newest at its end
	objectPrev = 0   // in an object, and in the list's head: the one before
	objectType = 5   // before an object: its type, below the mark bit
	typeMask   = 0x7f
	typeObject = 0 // a JavaScript object
	typeAsync  = 4 // a running async function

	objectClass  = 10 // of a JavaScript object: 16 bits
	objectOpaque = 24 // of a JavaScript object: its class's own data

	asyncResolve = 8 // of an async function: the function that settles its promise

	classResume = 56 // of a function that resumes an async function with a value
	classThrow  = 57 // of its twin, which resumes it by throwing
)

// newest is how many objects are looked at: those that the call of the
// program's function has just made are among them.
const newest = 64

// tagObject is the upper half of a JSValue that is an object.
const tagObject = -1 << 32

// findResume finds the function that resumes the suspended async function that
// settles promise, and answers a handle of it, or 0.
func (v *vm) findResume(promise int32) int32 {
	mem := v.memory()
	word := func(at uint32) uint32 {
		if uint64(at)+4 > uint64(len(mem)) {
			return 0
		}
		return uint32(v.load32(int32(at)))
	}
	list := uint32(v.Xqjs_get_runtime_ptr()) + gcList
	find := func(kind uint32, match func(o uint32) bool) uint32 {
		o := word(list + objectPrev)
		for i := 0; i < newest && o != list && o != 0; i++ {
			if word(o-objectType)&typeMask == kind && match(o) {
				return o
			}
			o = word(o + objectPrev)
		}
		return 0
	}
	async := find(typeAsync, func(o uint32) bool {
		// The settling function's data begins with the promise that it settles.
		return word(word(word(o+asyncResolve)+objectOpaque)) == uint32(v.raw(promise))
	})
	if async == 0 {
		return 0
	}
	resume := find(typeObject, func(o uint32) bool {
		return word(o+objectOpaque) == async && word(o+objectClass)&0xffff == classResume
	})
	if resume == 0 {
		return 0
	}
	borrowed, err := v.cell(int64(resume) | tagObject)
	if err != nil {
		return 0
	}
	return v.Xqjs_dup_value(borrowed)
}

// stalled ends a program that waits for what nothing can settle, and says where.
func (c *child) stalled() {
	r := frame.Report{Kind: frame.Stalled, Message: "the program awaits a promise that nothing can settle"}
	c.exited = true // should any of the program run after all, it reaches nothing
	if e, err := c.vm.blankError(); err == nil && c.resume != 0 {
		class := c.vm.memory()[uint32(c.vm.raw(c.resume))+objectClass:]
		class[0], class[1] = classThrow&0xff, classThrow>>8
		c.vm.XJS_SetUncatchableError(c.vm.Context, c.vm.raw(e))
		_, _ = c.vm.call(c.resume, e)
		where, _ := c.describe(e)
		r.Stack, r.Line, r.Column = where.Stack, where.Line, where.Column
	}
	c.finish(r)
}
