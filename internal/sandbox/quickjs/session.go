package quickjs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"capstan/internal/sandbox"
	"capstan/internal/sandbox/frame"
)

// session is one run of one program in one process.
type session struct {
	proc    *process
	p       sandbox.Program
	host    sandbox.Host
	limits  sandbox.Limits
	require bool // no program without every hardening layer
	bounds  frame.Bounds
	w       *writer

	calls  context.Context // ends when the program has settled
	cancel context.CancelFunc

	mu       sync.Mutex
	open     map[uint32]string // calls with the Host, by id
	sealed   bool              // no answer is taken any more
	silence  *time.Timer       // the watchdog
	watching bool              // it runs, beyond the start
	silent   bool              // it has fired
	started  bool
	asked    bool // ALL_TOOLS has been asked for
	usage    sandbox.Usage
	media    int
	mediaLen int
}

func newSession(proc *process, p sandbox.Program, h sandbox.Host, require bool) *session {
	l := p.Limits
	return &session{
		proc: proc, p: p, host: h, limits: l, require: require,
		bounds: frame.Bounds{Source: uint32(l.Source), Control: uint32(l.ControlFrame), Body: uint32(l.Body)},
		open:   make(map[uint32]string),
	}
}

// run hands the program over and serves the child until it is done or dead.
func (s *session) run(ctx context.Context) (sandbox.Usage, error) {
	s.calls, s.cancel = context.WithCancel(ctx)
	defer s.cancel()
	s.silence = time.AfterFunc(s.limits.Startup, s.onSilence)
	s.w = newWriter(s.proc.stdin, s.onDrained)
	stop := context.AfterFunc(ctx, s.proc.kill)

	s.sendExecute()
	report, err := s.serve()
	if err != nil {
		s.proc.kill()
	}
	s.seal()
	s.silence.Stop()
	s.proc.stdin.Close() // ends a write that the child does not read
	s.w.close()
	alone := s.proc.release(s.limits.Teardown)
	stop()
	if cause := context.Cause(ctx); cause != nil {
		return s.usage, cancelled(cause)
	}
	if err != nil {
		return s.usage, s.explain(err)
	}
	s.usage.CPU = time.Duration(report.CPU)
	s.usage.PeakBytes = int64(report.Peak)
	if !alone || s.wasSilent() {
		return s.usage, &sandbox.Error{Kind: sandbox.KindTeardown, Message: "the interpreter did not end with its program and was killed"}
	}
	return s.usage, programError(report)
}

func (s *session) sendExecute() {
	set := settings(s.limits)
	set.Seed = rand.Uint64() | 1 // Math.random's state is never zero
	names := namesJSON(s.p.Names)
	body := set.Append(nil)
	s.w.put(frame.Head{Type: frame.Execute, A: uint32(len(s.p.Source)), B: uint32(len(names)), C: uint32(len(body))},
		[]byte(s.p.Source), names, body)
}

// settings are the limits as they cross to the child.
func settings(l sandbox.Limits) frame.Settings {
	return frame.Settings{
		Source: uint64(l.Source), Control: uint64(l.ControlFrame), Body: uint64(l.Body),
		Media: uint64(l.Media), MediaBytes: uint64(l.MediaBytes),
		Memory: uint64(l.Memory), Stack: uint64(l.Stack), CPU: uint64(l.CPU),
		Calls: uint64(l.Calls), Outstanding: uint64(l.Outstanding), Output: uint64(l.Output),
	}
}

// serve reads frames until the child is done. An error is a broken child.
func (s *session) serve() (frame.Report, error) {
	in := bufio.NewReaderSize(s.proc.stdout, 64<<10)
	for {
		f, err := frame.Read(in, s.bounds.FromChild)
		if err != nil {
			return frame.Report{}, err
		}
		s.handling()
		if !s.started && f.Type != frame.Started {
			return frame.Report{}, frame.Error("the child did not say first that it has started")
		}
		switch f.Type {
		case frame.Started:
			err = s.onStarted(f)
		case frame.Calls:
			err = s.onCalls(f)
		case frame.Output:
			err = s.onOutput(f)
		case frame.AskTools:
			err = s.onAskTools()
		case frame.Done:
			return s.onDone(f, in)
		}
		if err != nil {
			return frame.Report{}, err
		}
		s.heard()
	}
}

// onStarted takes the child's word on its hardening. A child that lacks a
// layer that is required has ended.
func (s *session) onStarted(f frame.Frame) error {
	if s.started {
		return frame.Error("the child started twice")
	}
	missing, err := frame.ParseMissing(f.Head)
	if err != nil {
		return err
	}
	s.started = true
	if missing.Layers&frame.CgoChild != 0 {
		return startupError("starting the interpreter", errCgo)
	}
	for _, l := range frame.Layers() {
		if missing.Layers&l != 0 {
			s.usage.Missing = append(s.usage.Missing, l.String())
		}
	}
	if s.require && len(s.usage.Missing) > 0 {
		return startupError("hardening the interpreter", fmt.Errorf("sandbox.require is set and this system does not give: %s", strings.Join(s.usage.Missing, ", ")))
	}
	return nil
}

// onCalls checks a batch and hands it to the Host.
func (s *session) onCalls(f frame.Frame) error {
	packed, err := frame.ParseCalls(f.Bodies[0], f.ID, uint32(s.limits.Outstanding))
	if err != nil {
		return err
	}
	batch := make([]sandbox.Call, len(packed))
	s.mu.Lock()
	for i, c := range packed {
		if int(c.ID) != s.usage.Calls+1 {
			s.mu.Unlock()
			return frame.Error("a call's id is not the next one")
		}
		s.usage.Calls++
		batch[i] = sandbox.Call{ID: c.ID, Name: validUTF8(c.Name), Args: c.Args}
		s.open[c.ID] = batch[i].Name
	}
	// Frames that the child cannot have read yet count as open calls: it waits
	// for ALL_TOOLS before it makes a call, and for an answer when there is no
	// room. So no more than one frame beyond the limit ever waits: ALL_TOOLS.
	over := len(s.open)+s.w.waiting() > s.limits.Outstanding || s.usage.Calls > s.limits.Calls
	s.mu.Unlock()
	if over {
		return frame.Error("the child made more calls than the limit allows")
	}
	s.host.Call(s.calls, batch, func(i int, r sandbox.Reply) { s.reply(batch[i].ID, r) })
	return nil
}

// reply sends the answer to call id, once.
func (s *session) reply(id uint32, r sandbox.Reply) {
	r = s.fit(r)
	h := frame.Head{Type: frame.Result, ID: id, A: uint32(len(r.Value)), B: uint32(len(r.Text))}
	if r.OK {
		h.Flags = frame.FlagOK
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, open := s.open[id]; !open || s.sealed {
		return
	}
	delete(s.open, id)
	s.w.put(h, r.Value, []byte(r.Text))
	if len(s.open) == 0 || !s.watching {
		s.watch(true)
	}
}

// fit makes a reply valid for the wire.
func (s *session) fit(r sandbox.Reply) sandbox.Reply {
	r.Text = validUTF8(r.Text)
	if len(r.Value) > s.limits.Body || len(r.Text) > s.limits.Body {
		return refit(r, s.limits.Body)
	}
	return r
}

func (s *session) onOutput(f frame.Frame) error {
	o := sandbox.Output{MIMEType: string(f.Bodies[0]), Data: f.Bodies[1]}
	switch f.Flags {
	case frame.Text:
		o.Kind = sandbox.Text
		if !utf8.Valid(o.Data) {
			o.Data = bytes.ToValidUTF8(o.Data, []byte("\uFFFD"))
		}
		s.usage.OutputBytes += int64(len(f.Bodies[1])) + 1
	case frame.Image, frame.Audio, frame.File:
		o.Kind = map[uint16]sandbox.OutputKind{frame.Image: sandbox.Image, frame.Audio: sandbox.Audio, frame.File: sandbox.File}[f.Flags]
		s.media++
		s.mediaLen += len(o.Data)
		s.usage.OutputBytes += int64(len(o.Data))
	}
	if s.media > s.limits.Media || s.mediaLen > s.limits.MediaBytes || s.usage.OutputBytes-int64(s.mediaLen) > s.limits.Output {
		return frame.Error("the child printed more than the limit allows")
	}
	s.usage.Printed++
	s.host.Output(o)
	return nil
}

func (s *session) onAskTools() error {
	if s.asked {
		return frame.Error("the child asked for ALL_TOOLS twice")
	}
	s.asked = true
	all := s.host.AllTools()
	if len(all) > s.limits.Body {
		s.w.put(frame.Head{Type: frame.AllTools})
		return nil
	}
	s.w.put(frame.Head{Type: frame.AllTools, Flags: frame.FlagOK, A: uint32(len(all))}, all)
	return nil
}

// onDone takes the report; nothing may follow it.
func (s *session) onDone(f frame.Frame, in *bufio.Reader) (frame.Report, error) {
	r, err := frame.ParseReport(f.Bodies[0])
	if err != nil {
		return r, err
	}
	s.seal()
	s.unawaited(r)
	s.usage.UnhandledCount = int(r.Unhandled)
	for _, f := range r.Failures {
		s.usage.Unhandled = append(s.usage.Unhandled, validUTF8(f))
	}
	s.silence.Reset(s.limits.Teardown)
	if _, err := in.ReadByte(); err == nil {
		return r, frame.Error("the child went on after its end")
	}
	return r, nil
}

// seal ends the time of answers and cancels the calls that are still open.
func (s *session) seal() {
	s.mu.Lock()
	s.sealed = true
	s.mu.Unlock()
	s.cancel()
}

// maxUnawaited bounds Usage.Unawaited.
const maxUnawaited = 20

// unawaited records the calls that the program did not wait for.
func (s *session) unawaited(r frame.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usage.UnawaitedCount = len(s.open) + int(r.Unsent)
	for id := uint32(1); int(id) <= s.usage.Calls && len(s.usage.Unawaited) < maxUnawaited; id++ {
		if name, open := s.open[id]; open {
			s.usage.Unawaited = append(s.usage.Unawaited, sandbox.Unawaited{ID: id, Name: name})
		}
	}
	for _, name := range r.UnsentNames {
		if len(s.usage.Unawaited) < maxUnawaited {
			s.usage.Unawaited = append(s.usage.Unawaited, sandbox.Unawaited{Name: validUTF8(name)})
		}
	}
}

// patience is how long the child may be silent while it is owed nothing.
func (s *session) patience() time.Duration { return 4*s.limits.CPU + s.limits.Watchdog }

// handling pauses the watchdog while the Host takes a frame: a Host that is slow,
// because nobody reads what it shows, is not a child that is silent.
func (s *session) handling() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch(false)
}

// heard restarts the watchdog, or pauses it while the child waits for a call.
func (s *session) heard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch(len(s.open) == 0 || !s.w.idle())
}

// onDrained pauses the watchdog when the child has been sent all that there is
// and waits for a call. Until then it is a child that does not read.
func (s *session) onDrained() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watching && !s.sealed && len(s.open) > 0 && s.w.idle() {
		s.watch(false)
	}
}

// watch starts the watchdog anew, or stops it. The caller holds mu.
func (s *session) watch(on bool) {
	if s.watching = on; on {
		s.silence.Reset(s.patience())
	} else {
		s.silence.Stop()
	}
}

func (s *session) onSilence() {
	s.mu.Lock()
	s.silent = true
	s.mu.Unlock()
	s.proc.kill()
}

func (s *session) wasSilent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.silent
}

// explain turns a broken child into the error of the run.
func (s *session) explain(err error) error {
	silent := s.wasSilent()
	var bad frame.Error
	switch {
	case silent && !s.started:
		return &sandbox.Error{Kind: sandbox.KindStartup, Message: fmt.Sprintf("the interpreter did not start within %v", s.limits.Startup)}
	case silent:
		return &sandbox.Error{Kind: sandbox.KindTimeout, Message: fmt.Sprintf("the interpreter was silent for %v and was killed", s.patience())}
	case errors.As(err, &bad):
		return &sandbox.Error{Kind: sandbox.KindProtocol, Message: string(bad), Err: err}
	}
	var known *sandbox.Error
	if errors.As(err, &known) {
		return known
	}
	end := &childError{ending: s.proc.ending(), said: s.proc.stderr.text()}
	e := &sandbox.Error{Kind: sandbox.KindCrash, Message: end.Error(), Err: end}
	if !s.started {
		e.Kind = sandbox.KindStartup
	}
	return e
}

var kinds = [...]sandbox.Kind{
	frame.Syntax: sandbox.KindSyntax, frame.Exception: sandbox.KindException,
	frame.Timeout: sandbox.KindTimeout, frame.Memory: sandbox.KindMemory,
	frame.StackOverflow: sandbox.KindStack, frame.Stalled: sandbox.KindStalled, frame.Crash: sandbox.KindCrash,
}

// programError is the failure that a child reported, rebuilt field by field.
func programError(r frame.Report) error {
	if r.Kind == frame.OK {
		return nil
	}
	return &sandbox.Error{
		Kind: kinds[r.Kind], Name: validUTF8(r.Name), Message: validUTF8(r.Message),
		Line: int(r.Line), Column: int(r.Column), Stack: validUTF8(r.Stack),
		Code: validUTF8(r.Code), Tool: validUTF8(r.Tool), CallID: validUTF8(r.CallID),
	}
}
