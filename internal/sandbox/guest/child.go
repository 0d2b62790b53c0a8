package guest

import (
	"runtime"
	"sync/atomic"
	"time"

	"capstan/internal/sandbox/bin"
	"capstan/internal/sandbox/frame"
)

// child runs one program.
type child struct {
	vm       *vm
	in       input
	out      output
	settings frame.Settings
	source   int32 // the program in the linear memory, set by execute
	sourceN  int
	names    int32 // JSON array of the callable names, in the linear memory
	namesN   int

	began      time.Duration // CPU time when the program was handed over
	expired    atomic.Bool   // the CPU budget is used up
	exited     bool          // exit() was called
	describing bool          // the engine tells about an error, after the program's end
	resume     int32         // handle of the function that resumes the program, see stalled

	rejections rejections

	queue       []queued // calls that wait for the end of the turn, or for room
	made        uint32   // calls made so far, and so the last id
	outstanding uint64   // calls with the parent
	early       []answer // answers that came while the program waited for ALL_TOOLS
	printed     uint64   // bytes of text
	items       int      // printed items of any kind
	media       uint64
	mediaBytes  uint64
}

// queued is a call that has not been sent. Its texts are C strings in the
// linear memory, so that they count as the guest's memory.
type queued struct {
	id          uint32
	name, args  int32
	nameN, argN int
}

// main is the life of a child.
func main(args []string) {
	start, err := frame.ParseStart(args)
	if err != nil {
		_, _ = writeError([]byte(err.Error()))
		exit(2)
	}
	prepare()
	// One processor is quicker to start, and a fixed number keeps the runtime
	// from looking for a new one in files that it may not read.
	runtime.GOMAXPROCS(1)
	closeInherited()
	c := &child{}
	defer c.recover()
	c.start(start)
	c.execute()
	c.run()
}

// recover turns a trap of the translated engine into a report.
func (c *child) recover() {
	switch e := recover().(type) {
	case nil:
	case ended:
		exit(0)
	case error:
		c.finish(frame.Report{Kind: frame.Crash, Message: "the interpreter trapped: " + e.Error()})
	case string:
		c.finish(frame.Report{Kind: frame.Crash, Message: "the interpreter trapped: " + e})
	default:
		c.finish(frame.Report{Kind: frame.Crash, Message: "the interpreter trapped"})
	}
}

// start restores the vm, hardens the process, and says so. When a layer that is
// required is missing, it ends there.
func (c *child) start(start frame.Start) {
	c.vm = restore(&imports{now: time.Now, interrupt: c.interrupt, call: c.hostCall, rejected: c.rejected}, reserve(linearMax))
	c.in.buf = make([]byte, inputSize)
	c.out.buf = make([]byte, 0, outputSize)
	var missing frame.Missing
	switch {
	case Cgo:
		missing = frame.Missing{Layers: frame.AllLayers | frame.CgoChild}
	case start.Probe == frame.ProbeLimits:
		_ = harden(start.Off | frame.Seccomp)
		missing = probe()
	default:
		missing = harden(start.Off)
	}
	attempt(start.Probe)
	c.out.frame(missing.Head())
	c.out.mu.Lock()
	c.out.flush()
	c.out.mu.Unlock()
	if Cgo || start.Probe != frame.NoProbe || missing.Layers&start.Require != 0 {
		exit(0)
	}
}

// execute reads the program and its limits.
func (c *child) execute() {
	c.in.bounds = frame.Bounds{Source: 128 << 10, Control: 1 << 20, Body: 16 << 20}
	h := c.in.head()
	if h.Type != frame.Execute {
		panic(ended{})
	}
	c.source, c.sourceN = c.take(h.A), int(h.A)
	c.names, c.namesN = c.take(h.B), int(h.B)
	raw := make([]byte, h.C)
	c.in.body(raw)
	s, err := frame.ParseSettings(raw)
	if err != nil {
		panic(ended{})
	}
	c.settings = s
	c.in.bounds = frame.Bounds{Source: uint32(s.Source), Control: uint32(s.Control), Body: uint32(s.Body)}
	c.vm.Xqjs_set_memory_limit(int32(s.Memory))
	c.vm.Xqjs_set_max_stack_size(int32(s.Stack))
	bin.LittleEndian.PutUint64(c.vm.memory()[uint32(c.vm.Random):], s.Seed)
	c.began = cpuTime()
	go c.watch()
}

// take reads the next n bytes into the linear memory.
func (c *child) take(n uint32) int32 {
	p, err := c.vm.alloc(int(n))
	if err != nil {
		c.fail(err)
	}
	c.in.body(c.vm.memory()[uint32(p) : uint32(p)+n])
	return p
}

// run compiles the program, runs it and its jobs, and answers its calls.
func (c *child) run() {
	f, err := c.compile()
	if err != nil {
		c.fail(err)
	}
	promise, err := c.vm.call(f)
	if err != nil {
		c.fail(err)
	}
	c.rejections.program = uint32(c.vm.raw(promise))
	c.resume = c.vm.findResume(promise)
	for {
		c.jobs(promise)
		if len(c.early) == 0 && !c.in.ready() {
			c.send()
			if c.outstanding == 0 {
				c.stalled()
			}
		}
		c.answer()
	}
}

// maxDrained is how many jobs may run after the program's own promise has been
// fulfilled: what it started and did not await gets a chance to finish, or to
// say why not, but cannot keep the program alive.
const maxDrained = 10_000

// jobs runs the job queue until it is empty. It does not return when the
// program has settled.
func (c *child) jobs(promise int32) {
	for drained := 0; ; {
		pending := c.vm.Xqjs_is_job_pending() != 0
		switch c.vm.Xqjs_promise_state(promise) {
		case 1:
			if drained++; !pending || drained > maxDrained {
				c.settled(promise, true)
			}
		case 2:
			c.settled(promise, false)
		default:
			if !pending {
				return
			}
		}
		if c.vm.Xqjs_execute_pending_job() < 0 {
			c.fail(c.vm.pendingException())
		}
	}
}

// settled ends a program whose promise has been fulfilled or rejected.
func (c *child) settled(promise int32, fulfilled bool) {
	v, err := c.vm.check(c.vm.Xqjs_promise_result(promise))
	if err != nil {
		c.fail(err)
	}
	if !fulfilled {
		c.fail(&exception{value: v})
	}
	if c.items == 0 && c.vm.Xqjs_is_undefined(v) == 0 {
		if _, err := c.vm.call(c.vm.Text, v); err != nil {
			c.fail(err)
		}
	}
	c.finish(frame.Report{})
}

// answer is a Result frame whose bodies are in the linear memory.
type answer struct {
	head        frame.Head
	value, text int32
}

// answer takes the next answer to a call and settles it.
func (c *child) answer() {
	var a answer
	if len(c.early) > 0 {
		a, c.early = c.early[0], c.early[1:]
	} else {
		a = c.readAnswer(c.in.head())
	}
	if err := c.settle(a); err != nil {
		c.fail(err)
	}
}

func (c *child) readAnswer(h frame.Head) answer {
	if h.Type != frame.Result || c.outstanding == 0 {
		panic(ended{})
	}
	c.outstanding--
	return answer{head: h, value: c.take(h.A), text: c.take(h.B)}
}

func (c *child) settle(a answer) error {
	v := c.vm
	value, long, err := c.takeString(a.value, a.head.A)
	if err != nil {
		return err
	}
	text, _, err := c.takeString(a.text, a.head.B)
	if err != nil {
		return err
	}
	id := v.Xqjs_new_number(float64(a.head.ID))
	ok, blank := v.One, v.Undefined
	if a.head.Flags&frame.FlagOK == 0 {
		ok = v.Zero
		if blank, err = v.blankError(); err != nil {
			return err
		}
	}
	isLong := v.Zero
	if long {
		isLong = v.One
	}
	r, err := v.call(v.Settle, id, ok, value, text, isLong, blank)
	v.Xqjs_free_value(id)
	v.Xqjs_free_value(value)
	v.Xqjs_free_value(text)
	if blank != v.Undefined {
		v.Xqjs_free_value(blank)
	}
	if err == nil {
		v.Xqjs_free_value(r)
	}
	return err
}

// takeString makes a string of n bytes of the linear memory, which it frees,
// and tells whether they, as JSON, may hold a number that a double cannot.
func (c *child) takeString(p int32, n uint32) (h int32, long bool, err error) {
	long = longNumber(c.vm.memory()[uint32(p) : uint32(p)+n])
	h, err = c.vm.newString(p, int(n))
	c.vm.Xwasm_free(p)
	return h, long, err
}

// longNumber tells whether JSON text has a run of 16 digits, a point not
// counted, or a long exponent. It looks inside strings too: a false yes costs
// time only.
func longNumber(b []byte) bool {
	run := 0
	for i, ch := range b {
		switch {
		case ch >= '0' && ch <= '9':
			if run++; run >= 16 {
				return true
			}
		case ch == '.':
		case (ch == 'e' || ch == 'E') && run > 0 && longExponent(b[i+1:]):
			return true
		default:
			run = 0
		}
	}
	return false
}

func longExponent(b []byte) bool {
	if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
		b = b[1:]
	}
	n := 0
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	return n >= 3
}
