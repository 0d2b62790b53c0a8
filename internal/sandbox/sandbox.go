// Package sandbox says what running one Code Mode program means: a Program, the
// Host that answers its calls, and the Runner that is an engine.
//
// A program is JavaScript that reaches the outside only through its Host. This
// package holds the contract and the limits; it runs nothing, it knows no tool
// and it decides no policy. Package quickjs is the engine.
package sandbox

import (
	"context"
	"fmt"
	"time"
)

// Runner runs programs. Implementations are safe for concurrent use.
type Runner interface {
	// Run runs p to its end and returns what it used. The error is nil when
	// the program ended by itself, an *Error when it failed, and wraps the
	// context's cause when ctx ended first. What was printed before the end
	// has reached h in every case. When Run returns, no process and no
	// goroutine of it is left.
	Run(ctx context.Context, p Program, h Host) (Usage, error)
}

// Program is one program and its limits.
type Program struct {
	Source string   // JavaScript as the author wrote it, the body of an async function
	Names  []string // the callable JavaScript names, sorted; Object.keys(tools) and `in` know only these
	Limits Limits   // a zero field means its default
}

// Host answers a program. The engine never judges a name: every call reaches
// the Host, and the Host refuses what may not be called.
type Host interface {
	// Call starts the calls that a program submitted in one turn of its job
	// queue, in submission order, and returns at once. reply(i, r) answers
	// batch[i], exactly once, from any goroutine; a second answer and one
	// that comes after ctx has ended are dropped. ctx ends when the program
	// has settled or the run is cancelled.
	Call(ctx context.Context, batch []Call, reply func(i int, r Reply))
	// Output takes one printed item. Items come in order, one at a time.
	Output(Output)
	// AllTools gives the JSON array that is ALL_TOOLS. It is asked for once,
	// when a program first reads it, and the program waits for it.
	AllTools() []byte
}

// Call is one nested call, as the guest made it.
type Call struct {
	ID   uint32 // counts from 1 in each program, in submission order
	Name string // the JavaScript name as the guest spelled it: any string at all
	Args []byte // JSON text of the argument; "{}" when none was passed
}

// Reply answers a call.
type Reply struct {
	OK bool
	// Value is a JSON object: callId, name, status, structuredContent,
	// content, truncated, file when OK; message, tool, callId, code when not.
	// Integers that a double cannot hold reach the guest as BigInt.
	Value []byte
	// Text is the result's output. It crosses as it is and is never parsed.
	// When Value has no content, the guest makes one text block of it.
	Text string
}

// OutputKind says what a printed item is.
type OutputKind string

// The kinds of output.
const (
	Text  OutputKind = "text"
	Image OutputKind = "image"
	Audio OutputKind = "audio"
	File  OutputKind = "file" // a document that is neither, a PDF say
)

// Output is one printed item.
type Output struct {
	Kind     OutputKind
	MIMEType string // of what is no text, given by the guest and checked for form only
	Data     []byte // text in UTF-8 without a final newline of its own, or decoded media
}

// Usage is what a run used. It is filled in for failed runs too, as far as it
// is known.
type Usage struct {
	CPU         time.Duration // of the program, without the start of its process
	Calls       int           // nested calls that reached the Host
	OutputBytes int64         // text and media that reached the Host
	Printed     int           // items that reached the Host; 0 is a program that said nothing
	PeakBytes   int64         // largest guest memory, as the child reported it
	Prespawned  bool          // the process had been started ahead of the run

	// Unawaited names the calls that were cut off because the program settled
	// without awaiting them: first those with the Host, then those not sent.
	// It is cut at 20; UnawaitedCount counts all.
	Unawaited      []Unawaited
	UnawaitedCount int

	// Unhandled says what the failures were that nothing had handled when the
	// program ended: promises that were rejected without await or catch, less
	// the failure that Run returns. It is cut at 20 of about 1 KiB each;
	// UnhandledCount counts all. The texts are the guest's. After a failure of
	// the engine, such as a timeout, it is empty.
	Unhandled      []string
	UnhandledCount int

	// Missing names the hardening layers that were not in force.
	Missing []string
}

// Unawaited is a call that a program did not wait for.
type Unawaited struct {
	ID   uint32 // 0 when it was never sent to the Host
	Name string
}

// Kind says how a program failed.
type Kind string

// The kinds of failure.
const (
	KindSyntax    Kind = "syntax"    // the source does not parse, or is too long
	KindException Kind = "exception" // an uncaught exception
	KindTimeout   Kind = "timeout"   // the CPU budget, or silence beyond the watchdog
	KindMemory    Kind = "memory"    // the memory limit
	KindStack     Kind = "stack"     // the stack limit
	KindStalled   Kind = "stalled"   // it awaits what nothing can settle
	KindCrash     Kind = "crash"     // the interpreter died
	KindProtocol  Kind = "protocol"  // the child broke the protocol
	KindStartup   Kind = "startup"   // the child could not be started
	KindTeardown  Kind = "teardown"  // the child did not end by itself
)

// Error is a program's failure. Line and Column are the author's own, from 1;
// 0 means unknown.
type Error struct {
	Kind    Kind
	Name    string // of the exception, such as TypeError; empty when a non-error was thrown
	Message string
	Line    int
	Column  int
	Stack   string // frames of the author's own code, one a line

	// Of an uncaught ToolCallError, so that a caller sees that, say, a denial
	// was not caught. Code is also OUTPUT_LIMIT for the engine's own limit.
	Code   string
	Tool   string
	CallID string

	Err error // what the system said, for startup and crash
}

func (e *Error) Error() string {
	s := "running the program: " + string(e.Kind)
	if e.Name != "" {
		s += ": " + e.Name
	}
	s += ": " + e.Message
	if e.Line > 0 {
		s += fmt.Sprintf(" at line %d, column %d", e.Line, e.Column)
	}
	return s
}

// Unwrap gives the system's error, if there was one.
func (e *Error) Unwrap() error { return e.Err }
