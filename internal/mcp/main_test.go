package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"capstan/internal/msg"
	"capstan/internal/sandbox/sandboxtest"
	"capstan/internal/shell"
	"capstan/internal/tool"
)

// serverMode makes the test binary a server of that kind, on stdio.
const serverMode = "MCP_TEST_SERVER"

func TestMain(m *testing.M) {
	if mode := os.Getenv(serverMode); mode != "" {
		serveStdio(mode)
		return
	}
	sandboxtest.Main(m)
}

// deadline is for what must happen but may be slow: it decides nothing.
const deadline = 60 * time.Second

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	t.Cleanup(cancel)
	return ctx
}

// A rig is a manager with its registry.
type rig struct {
	*Manager
	t   *testing.T
	reg *tool.Registry
	ctx context.Context
}

func newRig(t *testing.T, o Options, configs ...Config) *rig {
	t.Helper()
	if o.Registry == nil {
		o.Registry = &tool.Registry{}
	}
	o.Shell = shell.New(shell.Options{Term: 50 * time.Millisecond})
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.Backoff == 0 {
		o.Backoff = time.Millisecond
	}
	r := &rig{New(o), t, o.Registry, testContext(t)}
	t.Cleanup(r.Close)
	if err := r.Start(configs...); err != nil {
		t.Fatal(err)
	}
	return r
}

// stdioServer is the configuration of the test binary as a server.
func stdioServer(name, mode string) Config {
	return Config{Name: name, Type: Stdio, From: "test", Command: os.Args[0], Env: map[string]string{serverMode: mode}}
}

// ready waits for all servers.
func (r *rig) ready(names ...string) {
	r.t.Helper()
	for _, m := range r.Wait(r.ctx, names...) {
		r.t.Fatalf("%v; %+v", m, r.Status())
	}
}

// names are the registered tools of servers.
func (r *rig) names() []string {
	list := []string{}
	for _, e := range r.reg.Tools() {
		if e.Spec().Server != "" {
			list = append(list, e.Spec().Name)
		}
	}
	return list
}

func (r *rig) tool(name string) tool.Tool {
	r.t.Helper()
	for _, e := range r.reg.Tools() {
		if e.Spec().Name == name {
			return e.Tool()
		}
	}
	r.t.Fatalf("there is no tool %s among %v; %+v", name, r.names(), r.Status())
	return nil
}

// call runs a tool as sched would.
func (r *rig) call(name, args string) *tool.Result {
	r.t.Helper()
	return r.callWith(r.ctx, name, args, func(msg.Part) {})
}

func (r *rig) callWith(ctx context.Context, name, args string, progress func(msg.Part)) *tool.Result {
	r.t.Helper()
	res, err := r.tool(name).Run(ctx, &tool.Invocation{Call: &tool.Call{ID: "c1", Name: name, Args: json.RawMessage(args)}, Progress: progress, Yield: unlent})
	if err != nil {
		res = tool.Fail(tool.CodeAborted, "%v", err)
	}
	return &res
}

// unlent is the Yield of a call that has no slot.
func unlent() func() { return func() {} }

// until polls for what must come true.
func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	for r.ctx.Err() == nil {
		if ok() {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
	r.t.Fatalf("%s did not come true; %+v", what, r.Status())
}

// A raw server is spoken by hand, so that it can be wrong in any way.
type raw struct {
	in  *bufio.Scanner
	out *bufio.Writer
}

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name   string          `json:"name"`
		Cursor string          `json:"cursor"`
		Args   json.RawMessage `json:"arguments"`
		Meta   struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
		Request   json.RawMessage `json:"requestId"`
		Responses json.RawMessage `json:"inputResponses"`
		State     string          `json:"requestState"`
	} `json:"params"`
}

func newRaw() *raw {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	return &raw{in, bufio.NewWriter(os.Stdout)}
}

func (s *raw) print(format string, a ...any) {
	fmt.Fprintf(s.out, format, a...)
	s.out.Flush()
}

// result answers a request.
func (s *raw) result(id json.RawMessage, format string, a ...any) {
	s.print(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, fmt.Sprintf(format, a...))
}

func (s *raw) text(id json.RawMessage, text string) {
	b, _ := json.Marshal(text)
	s.result(id, `{"content":[{"type":"text","text":%s}]}`, b)
}

// next is the next request or notification; initialize is answered already.
func (s *raw) next() (request, bool) {
	for s.in.Scan() {
		var r request
		if json.Unmarshal(s.in.Bytes(), &r) != nil {
			continue
		}
		if r.Method == "initialize" {
			s.result(r.ID, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"raw","version":"1"}}`)
			continue
		}
		return r, true
	}
	return request{}, false
}
