package mcp

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"capstan/internal/tool"
)

// BUG-MC-03: the SDK's own errors have codes that a server may use as well. Such
// an answer is an answer: the call is not made again, and the connection stays.
func TestAnswersWithTheCodesOfTheSDK(t *testing.T) {
	r := newRig(t, Options{}, stdioServer("s", "code"))
	r.ready()
	for i, code := range []int{-32001, -32003, -32004, -32005, -32003} {
		res := r.call("mcp__s__t", fmt.Sprint(code))
		if want := fmt.Sprintf("MCP server s: call %d", i+1); res.Code != tool.CodeFailed || !strings.HasPrefix(res.Text(), want) {
			t.Errorf("%d: %s, want %s", code, res.Text(), want)
		}
	}
	if _, err := r.Ping(r.ctx, "s"); err == nil || err.Error() != "pinging MCP server s: no pong" {
		t.Errorf("%v", err)
	}
	if got := r.Status()[0]; got.Restarts != 0 || got.State != Ready {
		t.Errorf("%+v", got)
	}
}

// The same of HTTP, whether the status says that it is an error or not, and of
// other requests than calls.
func TestHTTPAnswersWithTheCodesOfTheSDK(t *testing.T) {
	var begun, calls atomic.Int64
	fail := func(status int) func(http.ResponseWriter, *http.Request, json.RawMessage) {
		return func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32003,"message":"call %d"}}`, id, calls.Add(1))
		}
	}
	var status atomic.Int64
	url := serve(t, rawHTTP(map[string]func(http.ResponseWriter, *http.Request, json.RawMessage){
		"initialize": func(w http.ResponseWriter, r *http.Request, id json.RawMessage) {
			begun.Add(1)
			answerJSON(w, id, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`)
		},
		"tools/call": func(w http.ResponseWriter, r *http.Request, id json.RawMessage) {
			fail(int(status.Load()))(w, r, id)
		},
		"resources/list": fail(200),
	}))
	r := newRig(t, Options{}, httpServer("web", url))
	r.ready()
	status.Store(200)
	if diff := cmp.Diff(tool.Fail(tool.CodeFailed, "MCP server web: call 1"), *r.call("mcp__web__t", `{}`)); diff != "" {
		t.Error(diff)
	}
	status.Store(400)
	if res := r.call("mcp__web__t", `{}`); !strings.Contains(res.Text(), "HTTP 400") || !strings.Contains(res.Text(), "call 2") {
		t.Errorf("%+v", res)
	}
	if _, err := r.Resources(r.ctx, "web"); err == nil || !strings.Contains(err.Error(), "call 3") {
		t.Errorf("%v", err)
	}
	if begun.Load() != 1 || calls.Load() != 3 || r.Status()[0].Restarts != 0 {
		t.Errorf("%d connections, %d requests, %+v", begun.Load(), calls.Load(), r.Status())
	}
}

// BUG-MC-03, BUG-MC-05: a session that one call finds forgotten ends every open
// call, but only the one that was told so is made again.
func TestAForgottenSessionDoesNotRepeatOtherCalls(t *testing.T) {
	var first, lost atomic.Int64
	open, end := make(chan struct{}), make(chan struct{})
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m request
		_ = json.Unmarshal(body, &m)
		w.Header().Set("Mcp-Session-Id", "session")
		switch {
		case m.Method == "tools/call" && string(m.Params.Args) == `{"x":1}`:
			if first.Add(1) == 1 {
				w.Header().Set("Content-Type", "text/event-stream")
				w.(http.Flusher).Flush()
				close(open)
				<-end
				return
			}
			answerJSON(w, m.ID, `{"content":[{"type":"text","text":"again"}]}`)
		case m.Method == "tools/call" && lost.Add(1) == 1:
			w.WriteHeader(http.StatusNotFound)
		default:
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			rawHTTP(nil).ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() { close(end) })
	r := newRig(t, Options{}, httpServer("web", url))
	r.ready()
	ended := make(chan *tool.Result)
	go func() { ended <- r.call("mcp__web__t", `{"x":1}`) }()
	<-open
	if got := r.call("mcp__web__t", `{}`).Text(); got != "ok" || lost.Load() != 2 {
		t.Errorf("the call that was told: %q, sent %d times", got, lost.Load())
	}
	if res := <-ended; res.Code != tool.CodeFailed || !strings.Contains(res.Text(), "Whether the call had an effect is not known") || first.Load() != 1 {
		t.Errorf("the other: %+v, sent %d times", res, first.Load())
	}
}

// What HTTP refuses is told of the request that it refused and of no other.
func TestRefusalsAreNotMixedUp(t *testing.T) {
	url := serve(t, rawHTTP(map[string]func(http.ResponseWriter, *http.Request, json.RawMessage){
		// Nobody explains how this one ended.
		"resources/read": func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
			w.WriteHeader(http.StatusServiceUnavailable)
		},
		"resources/list": func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"not today"}}`, id)
		},
	}))
	r := newRig(t, Options{}, httpServer("web", url))
	r.ready()
	s, err := r.server("web")
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.acquire(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sdk.CallCustomMethod[*params, *answer](r.ctx, c.session, readResource, &params{URI: "x"}); err == nil {
		t.Error("no error")
	}
	if _, err := r.Resources(r.ctx, "web"); err == nil || !strings.HasSuffix(err.Error(), "not today (code -32000)") {
		t.Errorf("%v", err)
	}
}
