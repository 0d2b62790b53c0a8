package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"capstan/internal/shell"
)

// protocol is the version that is offered first: every server of today knows
// it, while asking for a newer one costs the older servers a failed request.
const protocol = "2025-11-25"

// patience is what a process gets to end by itself once its stdin is closed.
const patience = 500 * time.Millisecond

// A conn is one live connection to a server.
type conn struct {
	s       *server
	cfg     Config // with its variables replaced
	session *sdk.ClientSession
	flights *flights
	web     *web         // of HTTP servers
	child   *shell.Child // of stdio servers
	stderr  *tail

	ctx     context.Context // ends with the connection
	cancel  context.CancelCauseFunc
	changed chan struct{} // its tools may be others now
	// heard counts what the server said of that, taken how much of it the registry
	// has; hurry ends the gathering of a burst, for somebody waits.
	heard, taken atomic.Uint64
	hurry        chan struct{}
	ended        chan struct{} // closed when the session is over
	lost         atomic.Bool   // somebody has seen that it is about to be
	why          atomic.Value  // the error for which we end it; nothing when it ends by itself
}

// dial connects and initialises within ctx. The connection lasts beyond it.
func (s *server) dial(ctx context.Context) (*conn, error) {
	cfg, err := s.cfg.expanded(s.m.getenv)
	if err != nil {
		return nil, err
	}
	c, err := s.open(ctx, cfg, protocol)
	var version *jsonrpc.Error
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.As(err, &version) && (version.Code == sdk.CodeUnsupportedProtocolVersion || version.Code == jsonrpc.CodeMethodNotFound):
		// It knows the newer protocol only, which begins differently.
		c, err = s.open(ctx, cfg, "")
	case cfg.guessed && cfg.Type == HTTP && olderHTTP(err):
		cfg.Type = SSE
		var fallback error
		if c, fallback = s.open(ctx, cfg, protocol); fallback == nil {
			err = nil
		}
	}
	return c, err
}

// olderHTTP says whether a failure is what a server of the older transport
// answers to a POST.
func olderHTTP(err error) bool {
	var f *httpFault
	return errors.As(err, &f) && (f.status == http.StatusNotFound || f.status == http.StatusMethodNotAllowed || f.status == http.StatusBadRequest)
}

// open makes one attempt with one transport and protocol version.
func (s *server) open(ctx context.Context, cfg Config, version string) (_ *conn, err error) {
	c := &conn{s: s, cfg: cfg, flights: newFlights(), stderr: &tail{redact: s.m.redact}, changed: make(chan struct{}, 1), hurry: make(chan struct{}, 1), ended: make(chan struct{})}
	// Values only: the connection outlives the attempt.
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	transport, err := c.transport()
	if err != nil {
		c.cancel(err)
		return nil, err
	}
	client := c.client()
	carried, trip := withTrip(c.ctx)
	attempt, stop := context.WithCancelCause(carried)
	giveUp := context.AfterFunc(ctx, func() { stop(context.Cause(ctx)); c.abort() })
	session, err := client.Connect(attempt, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if session != nil {
		c.session = session
		go func() {
			session.Wait()
			close(c.ended)
		}()
	}
	if err = trip.judge(err); !giveUp() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		err = c.explain(ctx, err)
		c.close(err)
		return nil, err
	}
	return c, nil
}

func (c *conn) transport() (sdk.Transport, error) {
	if c.s.m.o.dial != nil {
		return c.s.m.o.dial(c.cfg)
	}
	if c.cfg.Type == Stdio {
		return c.process()
	}
	w, err := newWeb(c.ctx, &c.cfg, cmp.Or(c.s.m.o.listen, listenLimit))
	if err != nil {
		return nil, err
	}
	c.web = w
	if c.cfg.Type == SSE {
		return &sdk.SSEClientTransport{Endpoint: c.cfg.URL, HTTPClient: w.client(), MaxEventSize: maxMessage}, nil
	}
	t := &sdk.StreamableClientTransport{Endpoint: c.cfg.URL, HTTPClient: w.client(), MaxEventSize: maxMessage}
	if h := c.s.m.oauth(&c.cfg); h != nil {
		w.sign = h.sign
		t.OAuthHandler = h
	}
	return t, nil
}

// process starts a stdio server.
func (c *conn) process() (sdk.Transport, error) {
	child, err := c.s.m.o.Shell.Spawn(shell.Command{
		Argv:   append([]string{c.cfg.Command}, c.cfg.Args...),
		Dir:    directory(c.s.m.o.Dir, c.cfg.Cwd),
		Env:    environ(c.s.m.o.Env, c.cfg.Env),
		Stderr: c.stderr.write,
	})
	if err != nil {
		return nil, err
	}
	c.child = child
	// A process that is gone is a connection that is gone, whoever holds its
	// stdout by now; what it wrote last is still read.
	go func() {
		<-child.Done()
		child.Out.SetReadDeadline(time.Now().Add(time.Second))
	}()
	return &stdio{in: child.In, out: child.Out, warn: c.s.warn, passed: c.passed, flooded: c.flooded, stall: c.s.m.o.stall, close: func() { child.Close(patience) }}, nil
}

// client makes the SDK's client with our answers to what servers ask.
func (c *conn) client() *sdk.Client {
	o := &c.s.m.o
	roots := &sdk.RootCapabilities{}
	client := sdk.NewClient(&sdk.Implementation{Name: "capstan", Version: o.Version}, &sdk.ClientOptions{
		Logger:                 slog.New(slog.DiscardHandler),
		Capabilities:           &sdk.ClientCapabilities{RootsV2: roots},
		ElicitationHandler:     c.elicitation(),
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { c.listChanged() },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			c.flights.progressed(r.Params.ProgressToken, progress{r.Params.Progress, r.Params.Total, r.Params.Message})
		},
	})
	client.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			if p, ok := r.GetParams().(*sdk.CancelledParams); ok && p != nil {
				c.flights.cancelled(p.RequestID, p.Reason)
			}
			if err := c.refuse(method); err != nil {
				return nil, err
			}
			return next(ctx, method, r)
		}
	})
	client.AddRoots(c.roots()...)
	register(client)
	return client
}

// listChanged notes that the server has other tools now.
func (c *conn) listChanged() {
	c.heard.Add(1)
	select {
	case c.changed <- struct{}{}:
	default: // one look is coming anyway: a burst is one change
	}
}

// passed handles notifications that nobody else needs to see.
func (c *conn) passed(method string) bool {
	switch method {
	case "notifications/tools/list_changed":
		c.listChanged()
		return true
	case "notifications/message", "notifications/prompts/list_changed", "notifications/resources/list_changed", "notifications/resources/updated":
		return true // lists are read when they are asked for
	}
	return false
}

// ask sends one of our methods within the server's timeout.
func (c *conn) ask(ctx context.Context, method string, p *params) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.timeout(), fmt.Errorf("it did not answer within %v", c.cfg.timeout()))
	defer cancel()
	raw, err := c.rounds(ctx, method, p)
	if err != nil {
		return nil, c.explain(ctx, err)
	}
	return raw, nil
}

// flooded ends a connection whose server asks and does not listen. Answers to it
// may be stuck in its stdin, so only its end frees them.
func (c *conn) flooded(err error) {
	c.why.Store(err)
	c.drop()
}

// over says whether the connection is of no more use.
func (c *conn) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return c.lost.Load()
	}
}

// drop ends a connection that has turned out to be of no use, so that the server
// is connected anew.
func (c *conn) drop() {
	c.lost.Store(true)
	if c.child != nil {
		go c.child.Close(0)
		return
	}
	go c.session.Close()
}

// abort breaks the connection without waiting.
func (c *conn) abort() {
	if c.child != nil {
		go c.child.Close(0)
	}
	c.cancel(nil)
}

// close ends the session and what belongs to it, and waits.
func (c *conn) close(why error) {
	c.cancel(why)
	if c.child != nil {
		c.child.Close(patience)
	}
	if c.session != nil {
		c.session.Close()
		<-c.ended
	}
	if c.web != nil {
		c.web.next.(*http.Transport).CloseIdleConnections()
	}
}
