package mcp

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"capstan/internal/tool"
)

const (
	// stable is how long a server must have been ready for its earlier crashes
	// to be forgotten.
	stable = time.Minute
	// maxRestarts is how often in a row a server is restarted unasked.
	maxRestarts = 5
	maxBackoff  = time.Minute
	// settleTime gathers a burst of changes of the list of tools. A server that
	// goes on is listed ever more seldom, down to every maxSettle.
	settleTime = 50 * time.Millisecond
	maxSettle  = 5 * time.Second
)

// A server is one configured server and what keeps it going: a single goroutine
// (run) that connects, lists, waits for the end, and connects again.
type server struct {
	m      *Manager
	cfg    Config
	demand chan struct{} // somebody needs a server that has failed

	mu       sync.Mutex
	begun    time.Time // when it was started
	state    State
	why      error
	since    time.Time
	retryAt  time.Time // of a failed server: not before
	attempts int
	conn     *conn     // when ready
	tools    []*remote // as registered
	stderr   *tail
	said     string        // name and version
	advice   string        // instructions
	moved    chan struct{} // closed and replaced when the state changes
	warnings []string
}

func newServer(m *Manager, c Config) *server {
	now := time.Now()
	return &server{m: m, cfg: c, since: now, state: Idle, demand: make(chan struct{}, 1),
		moved: make(chan struct{}), stderr: &tail{redact: m.redact}}
}

// launch starts the server unless that was done, or the manager has ended.
func (s *server) launch() {
	s.m.mu.Lock() // so that Close waits for what is started before it
	defer s.m.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.state != Idle:
	case s.m.closed:
		s.set(Stopped, errors.New("the session has ended"), nil)
	default:
		s.begun = time.Now()
		s.set(Starting, nil, nil)
		s.m.wg.Go(s.run)
	}
}

// run keeps the server until the manager ends.
func (s *server) run() {
	ctx := s.m.ctx
	crashes, everReady := 0, false
	for ctx.Err() == nil {
		c, err := s.connect(ctx)
		if err == nil {
			everReady = true
			readyAt := time.Now()
			err = s.serve(ctx, c)
			c.close(err)
			if time.Since(readyAt) > stable {
				crashes = 0
			}
		}
		if ctx.Err() != nil {
			break
		}
		crashes++
		pause := min(s.m.o.Backoff<<min(crashes-1, 20), maxBackoff)
		if everReady && crashes <= maxRestarts {
			s.become(Restarting, err, nil)
			sleep(ctx, pause)
			continue
		}
		s.fail(err, pause)
		s.awaitDemand(ctx)
	}
	s.become(Stopped, errors.New("the session has ended"), nil)
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// connect dials and lists, within the start-up timeout.
func (s *server) connect(ctx context.Context) (*conn, error) {
	limit := s.cfg.startup()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not start within %v (startupTimeout)", limit))
	defer cancel()
	s.mu.Lock()
	s.attempts++
	s.mu.Unlock()
	c, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.stderr = c.stderr
	if r := c.session.InitializeResult(); r != nil {
		s.advice = cut(shown(r.Instructions), maxDescription)
		if r.ServerInfo != nil {
			s.said = excerpt(r.ServerInfo.Name+" "+r.ServerInfo.Version, 200)
		}
	}
	s.mu.Unlock()
	if err := s.refresh(ctx, c); err != nil {
		c.close(err)
		return nil, err
	}
	s.become(Ready, nil, c)
	return c, nil
}

// refresh lists the server's tools and puts them in the registry in the place
// of those that it had. When that fails they stay.
func (s *server) refresh(ctx context.Context, c *conn) error {
	tools, err := s.listTools(ctx, c)
	if err != nil {
		return fmt.Errorf("listing its tools: %w", c.explain(ctx, err))
	}
	if s.same(tools) {
		return nil
	}
	mine := func(sp *tool.Spec) bool { return sp.Server == s.cfg.Name }
	if err := s.m.o.Registry.Replace(mine, asTools(tools)...); err != nil {
		return err
	}
	s.mu.Lock()
	s.tools = tools
	s.mu.Unlock()
	return nil
}

func asTools(list []*remote) []tool.Tool {
	tools := make([]tool.Tool, len(list))
	for i, t := range list {
		tools[i] = t
	}
	return tools
}

// same says whether a server lists what it listed before, as most do after a
// restart: then the registry need not change, nor all that is made from it.
func (s *server) same(tools []*remote) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools != nil && slices.EqualFunc(s.tools, tools, func(a, b *remote) bool {
		return a.real == b.real && a.readOnly == b.readOnly && a.again == b.again && reflect.DeepEqual(a.spec, b.spec)
	})
}

// serve follows a live connection until it ends, and says why it did.
func (s *server) serve(ctx context.Context, c *conn) error {
	pause, listed := settleTime, time.Now()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.ended:
			return s.ending(c)
		case <-c.changed:
		}
		select { // a burst is one change
		case <-ctx.Done():
			return ctx.Err()
		case <-c.ended:
			return s.ending(c)
		case <-time.After(pause):
		case <-c.hurry:
		}
		if pause = min(2*pause, maxSettle); time.Since(listed) > 2*maxSettle {
			pause = settleTime
		}
		listed = time.Now()
		select {
		case <-c.changed:
		default:
		}
		heard := c.heard.Load()
		lctx, cancel := context.WithTimeoutCause(ctx, s.cfg.startup(), fmt.Errorf("it did not answer within %v", s.cfg.startup()))
		err := s.refresh(lctx, c)
		cancel()
		if err != nil && ctx.Err() == nil {
			s.warn("its tools have changed, but the new ones could not be taken, so the old ones stay: %v", err)
		}
		c.taken.Store(heard)
		select { // of those who waited: who still does asks again when woken
		case <-c.hurry:
		default:
		}
		s.mu.Lock()
		s.wake()
		s.mu.Unlock()
		s.m.notify(s.cfg.Name)
	}
}

// ending says why a connection ended.
func (s *server) ending(c *conn) error {
	err := c.session.Wait()
	if err == nil {
		err = errors.New("it closed the connection")
	}
	if why, ok := c.why.Load().(error); ok {
		err = why
	} else if c.child != nil {
		err = errors.New(c.howItEnded())
		if said := c.stderr.text(); said != "" {
			err = fmt.Errorf("%w; its stderr ends with:\n%s", err, said)
		}
	}
	return c.scrub(err)
}

// become sets the state and wakes whoever waits for it.
func (s *server) become(st State, why error, c *conn) {
	s.mu.Lock()
	s.set(st, why, c)
	s.mu.Unlock()
	s.m.notify(s.cfg.Name)
}

func (s *server) set(st State, why error, c *conn) {
	s.state, s.why, s.conn, s.since = st, why, c, time.Now()
	s.wake()
}

// wake wakes whoever waits for the server, with s.mu held.
func (s *server) wake() {
	close(s.moved)
	s.moved = make(chan struct{})
}

// changing says whether the server has said that its tools are others now and the
// registry still has those of before.
func (s *server) changing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn != nil && s.conn.heard.Load() > s.conn.taken.Load()
}

// catchUp waits until the registry has what the server had said of its tools when
// it was called. Listing them ends within the start-up timeout, and so does this.
func (s *server) catchUp(ctx context.Context, c *conn) {
	for heard := c.heard.Load(); ; {
		s.mu.Lock()
		current, moved := s.conn, s.moved
		s.mu.Unlock()
		if current != c || c.taken.Load() >= heard {
			return
		}
		select {
		case c.hurry <- struct{}{}:
		default:
		}
		select {
		case <-moved:
		case <-c.ended:
			return
		case <-ctx.Done():
			return
		}
	}
}

// fail gives up until somebody needs the server, and for pause in any case.
func (s *server) fail(why error, pause time.Duration) {
	s.mu.Lock()
	select {
	case <-s.demand: // of before
	default:
	}
	s.retryAt = time.Now().Add(pause)
	s.set(Failed, why, nil)
	s.mu.Unlock()
	s.m.notify(s.cfg.Name)
}

func (s *server) awaitDemand(ctx context.Context) {
	select {
	case <-s.demand:
		s.become(Restarting, nil, nil)
	case <-ctx.Done():
	}
}

// settle waits for the first attempt, and for tools that the server says have
// changed. It returns why the server is not ready.
func (s *server) settle(ctx context.Context) string {
	s.mu.Lock()
	begun := s.begun // launch has been called
	s.mu.Unlock()
	limit := time.NewTimer(time.Until(begun.Add(s.cfg.startup())))
	defer limit.Stop()
	for {
		s.mu.Lock()
		state, why, c, moved := s.state, s.why, s.conn, s.moved
		s.mu.Unlock()
		switch {
		case state == Ready:
			s.catchUp(ctx, c)
			return ""
		case state != Starting:
			return s.explain(state, why)
		}
		select {
		case <-moved:
		case <-limit.C:
			return fmt.Sprintf("it has not started within %v (startupTimeout)", s.cfg.startup())
		case <-ctx.Done():
			return "it is still starting"
		}
	}
}

// revive has a server that failed tried again, unless that was just tried, waits
// for one that is being restarted, whoever wanted that, and returns why it is not
// ready; known is why it was not.
func (s *server) revive(ctx context.Context, known string) string {
	s.mu.Lock()
	again := s.state == Ready || s.state == Restarting || s.state == Failed && !time.Now().Before(s.retryAt)
	s.mu.Unlock()
	if !again {
		return known
	}
	if _, err := s.acquire(ctx); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.explain(s.state, s.why)
	}
	return ""
}

func (s *server) explain(state State, why error) string {
	switch {
	case why != nil && state == Restarting:
		return "it is being restarted: " + why.Error()
	case why != nil:
		return why.Error()
	}
	return "it is " + string(state)
}

// acquire returns a live connection. It waits for a server that starts or
// restarts up to its start-up timeout, and has one that failed tried again,
// unless that was just tried.
func (s *server) acquire(ctx context.Context) (*conn, error) {
	s.launch()
	limit := time.NewTimer(s.cfg.startup())
	defer limit.Stop()
	asked := false
	for {
		s.mu.Lock()
		state, why, c, moved := s.state, s.why, s.conn, s.moved
		switch {
		case state == Ready:
			if !c.over() { // else its end is about to be noticed
				s.mu.Unlock()
				return c, nil
			}
		case state == Stopped, state == Failed && (asked || time.Now().Before(s.retryAt)):
			s.mu.Unlock()
			return nil, fmt.Errorf("MCP server %s cannot be used: %s", s.cfg.Name, s.explain(state, why))
		case state == Failed:
			asked = true
			select {
			case s.demand <- struct{}{}:
			default:
			}
		}
		s.mu.Unlock()
		select {
		case <-moved:
		case <-limit.C:
			return nil, fmt.Errorf("MCP server %s cannot be used: it was not ready within %v (startupTimeout): %s", s.cfg.Name, s.cfg.startup(), s.explain(state, why))
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// warn remembers what is wrong with a server, each thing once.
func (s *server) warn(format string, a ...any) {
	text := excerpt(s.m.redact(fmt.Sprintf(format, a...)), 1000)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.warnings) >= maxWarnings {
		return
	}
	for _, w := range s.warnings {
		if w == text {
			return
		}
	}
	if s.warnings = append(s.warnings, text); len(s.warnings) == maxWarnings {
		s.warnings = append(s.warnings[:maxWarnings-1], "more of this kind")
	}
}

func (s *server) status() Status {
	s.mu.Lock()
	st := Status{Name: s.cfg.Name, Type: s.cfg.Type, From: s.cfg.From, State: s.state, Tools: len(s.tools), Server: s.said, Instructions: s.advice,
		Restarts: max(0, s.attempts-1), Warnings: append([]string{}, s.warnings...), Since: s.since}
	if s.state != Ready {
		st.Why = s.explain(s.state, s.why)
	}
	stderr := s.stderr
	s.mu.Unlock()
	st.Stderr = stderr.text()
	return st
}
