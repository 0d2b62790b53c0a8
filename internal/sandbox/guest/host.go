package guest

import (
	"capstan/internal/sandbox/frame"
)

// hostCall is the function that the prelude holds. Its arguments are borrowed
// handles; it answers a handle, or 0 when it has thrown.
func (c *child) hostCall(argc, argv int32) int32 {
	v := c.vm
	arg := func(i int32) int32 { return v.load32(argv + 4*i) }
	op := 0
	if argc > 0 {
		op = int(v.Xqjs_get_float64(arg(0)))
	}
	if c.exited || op == opExit {
		return c.throwExit()
	}
	switch {
	case op == opCall && argc == 3:
		return c.hostAsk(arg(1), arg(2))
	case op == opText && argc == 2:
		return c.hostText(arg(1))
	case op == opMedia && argc == 4:
		return c.hostMedia(arg(1), arg(2), arg(3))
	case op == opTools:
		return c.hostTools()
	case op == opNames:
		return c.hostString(c.names, c.namesN)
	}
	return v.Xqjs_dup_value(v.Undefined)
}

// throwExit ends the program by an error that no catch and no finally sees.
func (c *child) throwExit() int32 {
	c.exited = true
	v := c.vm
	e, err := v.blankError()
	if err != nil {
		panic(err)
	}
	v.XJS_SetUncatchableError(v.Context, v.raw(e))
	v.Xqjs_free_value(v.Xqjs_throw(e))
	v.Xqjs_free_value(e)
	return 0
}

// Answers to the prelude.
const (
	accepted  = 0
	overLimit = 1
	tooMany   = 0
	tooLong   = -1
)

// hostAsk queues a call and answers its id, tooMany or tooLong.
func (c *child) hostAsk(name, args int32) int32 {
	v := c.vm
	if uint64(c.made) >= c.settings.Calls {
		return v.Xqjs_new_number(tooMany)
	}
	np := v.Xqjs_get_string_len(name, v.Len)
	nn := int(v.load32(v.Len))
	ap := v.Xqjs_get_string_len(args, v.Len)
	an := int(v.load32(v.Len))
	if np == 0 || ap == 0 {
		return 0 // out of memory has been thrown
	}
	if uint64(frame.CallSize(nn, an)) > c.settings.Body {
		v.Xqjs_free_cstring(np)
		v.Xqjs_free_cstring(ap)
		return v.Xqjs_new_number(tooLong)
	}
	c.made++
	c.queue = append(c.queue, queued{c.made, np, ap, nn, an})
	return v.Xqjs_new_number(float64(c.made))
}

// send sends the queued calls that there is room for, in as few frames as the
// limit of a body allows, and everything printed before them.
func (c *child) send() {
	for len(c.queue) > 0 && c.outstanding < c.settings.Outstanding {
		n, size := 0, 0
		for n < len(c.queue) && c.outstanding+uint64(n) < c.settings.Outstanding {
			s := frame.CallSize(c.queue[n].nameN, c.queue[n].argN)
			if n > 0 && uint64(size+s) > c.settings.Body {
				break
			}
			n, size = n+1, size+s
		}
		c.sendBatch(c.queue[:n], size)
		c.queue = c.queue[n:]
		c.outstanding += uint64(n)
	}
	c.out.mu.Lock()
	c.out.flush()
	c.out.mu.Unlock()
}

func (c *child) sendBatch(batch []queued, size int) {
	c.out.mu.Lock()
	var scratch [frame.HeadSize]byte
	c.out.add(frame.Head{Type: frame.Calls, ID: uint32(len(batch)), A: uint32(size)}.Append(scratch[:0]))
	for _, q := range batch {
		mem := c.vm.memory()
		c.out.add(frame.AppendCallHead(scratch[:0], q.id, q.nameN, q.argN))
		c.out.add(mem[uint32(q.name) : uint32(q.name)+uint32(q.nameN)])
		c.out.add(mem[uint32(q.args) : uint32(q.args)+uint32(q.argN)])
	}
	c.out.mu.Unlock()
	for _, q := range batch {
		c.vm.Xqjs_free_cstring(q.name)
		c.vm.Xqjs_free_cstring(q.args)
	}
}

// hostText prints one item of text.
func (c *child) hostText(s int32) int32 {
	answer := float64(overLimit)
	err := c.vm.withBytes(s, func(b []byte) {
		// Each item becomes a line, so its newline counts.
		n := uint64(len(b)) + 1
		if uint64(len(b)) > c.settings.Body || c.printed+n > c.settings.Output {
			return
		}
		answer = accepted
		c.printed += n
		c.items++
		c.out.frame(frame.Head{Type: frame.Output, Flags: frame.Text, B: uint32(len(b))}, b)
	})
	if err != nil {
		return c.rethrow(err)
	}
	return c.vm.Xqjs_new_number(answer)
}

// hostMedia prints one image, audio or document.
func (c *child) hostMedia(kind, mime, data int32) int32 {
	v := c.vm
	p := v.XJS_GetUint8Array(v.Context, v.Len, v.raw(data))
	if p == 0 {
		return 0
	}
	n := uint32(v.load32(v.Len))
	if c.media >= c.settings.Media || c.mediaBytes+uint64(n) > c.settings.MediaBytes {
		return v.Xqjs_new_number(overLimit)
	}
	c.media++
	c.mediaBytes += uint64(n)
	c.items++
	flags := uint16(v.Xqjs_get_float64(kind))
	typ := []byte(v.str(mime, 256))
	c.out.frame(frame.Head{Type: frame.Output, Flags: flags, A: uint32(len(typ)), B: n}, typ, v.memory()[uint32(p):uint32(p)+n])
	return v.Xqjs_new_number(accepted)
}

// hostTools asks the parent for ALL_TOOLS and waits for it. Answers to calls
// that come first are kept for later. It answers undefined when there is none.
func (c *child) hostTools() int32 {
	c.out.frame(frame.Head{Type: frame.AskTools})
	c.out.mu.Lock()
	c.out.flush()
	c.out.mu.Unlock()
	for {
		h := c.in.head()
		if h.Type != frame.AllTools {
			c.early = append(c.early, c.readAnswer(h))
			continue
		}
		if h.Flags&frame.FlagOK == 0 {
			return c.vm.Xqjs_dup_value(c.vm.Undefined)
		}
		p := c.take(h.A)
		defer c.vm.Xwasm_free(p)
		return c.hostString(p, int(h.A))
	}
}

// hostString answers n bytes of the linear memory as a string.
func (c *child) hostString(p int32, n int) int32 {
	h, err := c.vm.newString(p, n)
	if err != nil {
		return c.rethrow(err)
	}
	return h
}

// rethrow throws the exception that a helper took, in the guest.
func (c *child) rethrow(err error) int32 {
	e, ok := err.(*exception) //nolint:errorlint // never wrapped, and package errors is not the child's
	if !ok {
		panic(err)
	}
	c.vm.Xqjs_free_value(c.vm.Xqjs_throw(e.value))
	c.vm.Xqjs_free_value(e.value)
	return 0
}
