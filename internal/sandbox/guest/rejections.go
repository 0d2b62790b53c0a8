package guest

import "capstan/internal/sandbox/frame"

// rejections are the promises that were rejected and that nothing handles. The
// engine tells of a promise when it is rejected without a handler, and again
// should it get one. It does not tell when one is freed; that is known when
// another promise has its address.
type rejections struct {
	program uint32              // address of the program's own promise, which the child handles
	first   []rejection         // in order, at most frame.MaxNames
	more    map[uint32]struct{} // addresses of further ones
	further int                 // how many those are, with the freed ones
}

// rejection is a promise that nothing handles.
type rejection struct {
	promise uint32 // its address; 0 when it has been freed
	reason  int32  // handle of what it was rejected with
}

// rejected is told by the engine that promise was rejected with reason and is
// not handled, or that it is handled now. Both handles are owned.
func (c *child) rejected(promise, reason int32, handled bool) {
	if promise == 0 || reason == 0 {
		return // out of memory; the program learns it elsewhere
	}
	at := uint32(c.vm.raw(promise))
	c.vm.Xqjs_free_value(promise)
	r := &c.rejections
	switch {
	case at == r.program:
	case handled:
		r.forget(c.vm, at)
	case r.add(at, reason):
		return
	}
	c.vm.Xqjs_free_value(reason)
}

// add notes a promise and tells whether it has kept the reason.
func (r *rejections) add(promise uint32, reason int32) bool {
	for i := range r.first {
		if r.first[i].promise == promise {
			r.first[i].promise = 0
		}
	}
	if len(r.first) < frame.MaxNames {
		delete(r.more, promise)
		r.first = append(r.first, rejection{promise, reason})
		return true
	}
	if r.more == nil {
		r.more = make(map[uint32]struct{})
	}
	r.more[promise] = struct{}{}
	r.further++
	return false
}

// forget drops a promise that is handled now.
func (r *rejections) forget(v *vm, promise uint32) {
	if _, ok := r.more[promise]; ok {
		delete(r.more, promise)
		r.further--
		return
	}
	for i := range r.first {
		if r.first[i].promise == promise {
			r.drop(v, i)
			return
		}
	}
}

func (r *rejections) drop(v *vm, i int) {
	v.Xqjs_free_value(r.first[i].reason)
	r.first = append(r.first[:i], r.first[i+1:]...)
}

// dropSame drops the promises that were rejected with the object that the
// program failed with: it is reported already.
func (r *rejections) dropSame(v *vm, thrown int32) {
	x := v.raw(thrown)
	if x>>32<<32 != tagObject {
		return
	}
	for i := len(r.first) - 1; i >= 0; i-- {
		if v.raw(r.first[i].reason) == x {
			r.drop(v, i)
		}
	}
}

// maxFailure bounds the text of one unhandled failure, in bytes.
const maxFailure = 1 << 10

// unhandled puts into r the failures that nothing has handled. Telling them runs
// getters of the program's, which by now reach nothing outside.
func (c *child) unhandled(r *frame.Report) {
	r.Unhandled = uint32(len(c.rejections.first) + c.rejections.further)
	if r.Unhandled == 0 {
		return
	}
	c.exited = true
	for _, one := range c.rejections.first {
		e, _ := c.describe(one.reason)
		text := failureText(e)
		r.Failures = append(r.Failures, text[:min(len(text), maxFailure)])
	}
}

// failureText is one line on what was thrown.
func failureText(e frame.Report) string {
	s := e.Message
	switch {
	case e.Name == "" && s == "":
		s = "something that cannot be shown"
	case e.Name != "" && s != "":
		s = e.Name + ": " + s
	case e.Name != "":
		s = e.Name
	}
	if e.Tool != "" {
		s += " (" + e.Tool + ")"
	}
	if e.Line > 0 {
		s += " at line " + decimal(e.Line) + ", column " + decimal(e.Column)
	}
	return s
}

func decimal(n uint32) string {
	if n < 10 {
		return string('0' + rune(n))
	}
	return decimal(n/10) + string('0'+rune(n%10))
}
