// Package telemetry sends what a session does to an OpenTelemetry collector, as
// spans with the GenAI attributes: a run of the agent (invoke_agent), each request
// to the model (chat) and each call (execute_tool), with who made it, its true
// name, and how it was decided that it may run.
//
// It speaks OTLP over HTTP with JSON by itself: the SDK would cost megabytes and
// work at each start for the three kinds of spans there are. It is no log: what is
// said, and what calls are given and return, is never sent; a session's record has
// that (package session). Nothing here runs unless New is called.
package telemetry

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"capstan/internal/agent"
	"capstan/internal/sched"
	"capstan/internal/tool"
)

// Options say where spans go and what they all have in common.
type Options struct {
	URL      string // of the collector's traces: http://localhost:4318/v1/traces
	Headers  http.Header
	Timeout  time.Duration     // of one request; 0 means 10 s
	Resource map[string]string // attributes of this process, service.name among them
	Version  string            // of Capstan
	Session  string            // the session's id
	Provider string            // the model's family
	Model    string
	// Failed is told of the first request that fails, and how many spans were lost
	// in the end. It may be called from any goroutine. Nil drops that.
	Failed func(error)
}

// Bounds of what waits for the collector.
const (
	maxQueue = 4096            // spans; more are dropped and counted
	batch    = 256             // spans in one request
	every    = 2 * time.Second // the longest that a span waits when few come
)

// An Exporter makes spans of an agent's events and sends them, from a goroutine of
// its own that Close ends. A collector that is slow or away holds up nothing.
type Exporter struct {
	opt    Options
	client *http.Client
	trace  string // one trace for each session that is held

	mu    sync.Mutex
	run   *span            // the run under way
	chats map[string]*span // the requests under way, by the subagent; "" is the session's own agent
	calls map[string]*span // that have not settled, by id
	queue []*span
	lost  int
	told  bool // of a failure

	wake chan struct{}
	stop chan struct{}      // closed when nothing more is to be begun
	quit context.CancelFunc // ends the request under way
	done chan struct{}
}

// New returns an Exporter and starts it.
func New(o Options) *Exporter {
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	ctx, quit := context.WithCancel(context.Background())
	x := &Exporter{opt: o, trace: id(16), chats: map[string]*span{}, calls: map[string]*span{}, wake: make(chan struct{}, 1), stop: make(chan struct{}), quit: quit, done: make(chan struct{}),
		client: &http.Client{Timeout: o.Timeout, Transport: http.DefaultTransport.(*http.Transport).Clone(), CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // the headers may hold a key: it goes to nobody else
		}}}
	go x.send(ctx)
	return x
}

// Close sends what is left, for as long as ctx lasts, and ends the Exporter. A request
// under way is let finish as long.
func (x *Exporter) Close(ctx context.Context) {
	x.mu.Lock()
	now := time.Now() // of what the process ends in the middle of
	for _, of := range slices.Sorted(maps.Keys(x.chats)) {
		x.unanswered(of, "no answer", now)
	}
	if x.run != nil {
		x.end(x.run, now)
	}
	x.mu.Unlock()
	close(x.stop)
	select {
	case <-x.done:
	case <-ctx.Done():
	}
	x.quit()
	<-x.done
	for ctx.Err() == nil && x.flush(ctx) {
	}
	x.client.CloseIdleConnections()
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := x.lost + len(x.queue); n > 0 && x.opt.Failed != nil {
		x.opt.Failed(errLost(n))
	}
}

// A span is one piece of work.
type span struct {
	id, parent, name string
	client           bool // of a request to another service
	start, finish    time.Time
	attributes       []attribute
	fault            string // why it failed; empty when it did not
}

// Event takes an event of the agent. It returns at once.
func (x *Exporter) Event(e agent.Event) {
	now := time.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	var by agent.Delegated
	if d, ok := e.(agent.Delegated); ok {
		by, e = d, d.Event
	}
	switch e := e.(type) {
	case agent.Asked:
		x.asked(&by, now)
	case agent.Answered:
		x.answered(by.Agent, e, now)
	case agent.Called:
		x.called(&e.Event)
	case agent.Ended:
		if x.unanswered(by.Agent, string(e.Outcome.Reason), now); by.Agent == "" {
			x.ended(e.Outcome, now)
		}
	}
}

// asked begins a request, and with the first one of the session's own agent the run.
func (x *Exporter) asked(by *agent.Delegated, now time.Time) {
	if x.run == nil && by.Agent == "" {
		x.run = &span{id: id(8), name: "invoke_agent capstan", start: now}
		x.run.text("gen_ai.operation.name", "invoke_agent")
		x.run.text("gen_ai.agent.name", "capstan")
		x.common(x.run)
	}
	x.unanswered(by.Agent, "no answer", now)
	if len(x.chats) >= maxQueue {
		return
	}
	s := &span{id: id(8), parent: x.parent(by.Call), name: "chat", client: true, start: now}
	s.text("gen_ai.operation.name", "chat")
	if by.Agent == "" { // a subagent can have another model, and events do not name it
		s.name += " " + x.opt.Model
		s.text("gen_ai.provider.name", x.opt.Provider)
		s.text("gen_ai.request.model", x.opt.Model)
	}
	s.text("capstan.call.agent", by.Agent)
	s.text("gen_ai.agent.name", by.Kind)
	x.common(s)
	x.chats[by.Agent] = s
}

// parent is the span of a call, else that of the run.
func (x *Exporter) parent(call string) string {
	switch s := x.calls[call]; {
	case s != nil:
		return s.id
	case x.run != nil:
		return x.run.id
	}
	return ""
}

// unanswered ends the request of an agent that is under way, if one is.
func (x *Exporter) unanswered(of, fault string, now time.Time) {
	if s := x.chats[of]; s != nil {
		s.fault = fault
		x.end(s, now)
		delete(x.chats, of)
	}
}

func (x *Exporter) common(s *span) { s.text("gen_ai.conversation.id", x.opt.Session) }

func (x *Exporter) answered(of string, e agent.Answered, now time.Time) {
	s := x.chats[of]
	if s == nil {
		return
	}
	delete(x.chats, of)
	s.number("gen_ai.usage.input_tokens", int64(e.Usage.Input))
	s.number("gen_ai.usage.output_tokens", int64(e.Usage.Output))
	if e.Finish == "" {
		s.fault = "the answer is not whole"
	} else {
		s.list("gen_ai.response.finish_reasons", string(e.Finish))
	}
	x.end(s, now)
}

// ended ends the run.
func (x *Exporter) ended(o *agent.Outcome, now time.Time) {
	if x.run == nil {
		return
	}
	x.run.number("gen_ai.usage.input_tokens", int64(o.Usage.Input))
	x.run.number("gen_ai.usage.output_tokens", int64(o.Usage.Output))
	x.run.text("capstan.run.reason", string(o.Reason))
	if o.Reason != agent.Finished {
		x.run.fault = string(o.Reason)
	}
	x.end(x.run, now)
	x.run = nil
}

// called follows a call. Of one that was refused before it was admitted only its
// end comes.
func (x *Exporter) called(e *sched.Event) {
	s := x.calls[e.Call.ID]
	if s == nil {
		if len(x.calls) >= maxQueue {
			return
		}
		s = x.call(e)
		x.calls[e.Call.ID] = s
	}
	switch e.Kind {
	case sched.Decided:
		s.decided(e.Decided)
	case sched.Settled:
		s.text("capstan.call.status", string(e.Result.Status))
		if e.Result.Status != tool.Success {
			s.fault = e.Result.Code
		}
		delete(x.calls, e.Call.ID)
		x.end(s, e.Time)
	}
}

func (x *Exporter) call(e *sched.Event) *span {
	c := e.Call
	s := &span{id: id(8), parent: x.parent(c.ParentID), name: "execute_tool " + c.Name, start: e.Time}
	s.text("gen_ai.operation.name", "execute_tool")
	s.text("gen_ai.tool.name", c.Name)
	s.text("gen_ai.tool.type", "function")
	s.text("gen_ai.tool.call.id", c.ID)
	s.text("capstan.call.source", string(c.Source))
	s.text("capstan.call.parent_id", c.ParentID)
	s.text("capstan.call.agent", c.Agent)
	x.common(s)
	return s
}

func (s *span) decided(j *sched.Judgement) {
	s.truth("capstan.decision.allowed", j.Allowed)
	s.text("capstan.decision.stage", j.Stage)
	s.text("capstan.decision.by", j.By())
	s.text("capstan.decision.answered_by", j.AnsweredBy())
	if j.Asked != nil {
		s.number("capstan.decision.wait_ms", j.Waited.Milliseconds())
	}
}

// end queues a span that is over. The caller holds mu.
func (x *Exporter) end(s *span, at time.Time) {
	s.finish = at
	if len(x.queue) >= maxQueue {
		x.lost++
		return
	}
	x.queue = append(x.queue, s)
	if len(x.queue) >= batch {
		select {
		case x.wake <- struct{}{}:
		default:
		}
	}
}

// id returns a random id of n bytes, in hexadecimal.
func id(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

var errDropped = errors.New("the collector did not take them")
