package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"capstan/internal/tool"
)

// serve serves h until the end of the test.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func streamable(t *testing.T) http.Handler {
	s := goodServer()
	t.Cleanup(func() {
		for session := range s.Sessions() {
			session.Close()
		}
	})
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
}

func httpServer(name, url string) Config {
	return Config{Name: name, Type: HTTP, From: "test", URL: url}
}

// rawHTTP answers initialize, and everything else by method as answers say.
func rawHTTP(answers map[string]func(w http.ResponseWriter, r *http.Request, id json.RawMessage)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m request
		if r.Method != http.MethodPost {
			if f := answers[r.Method]; f != nil {
				f(w, r, nil)
				return
			}
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		switch f := answers[m.Method]; {
		case f != nil:
			f(w, r, m.ID)
		case m.Method == "initialize":
			answerJSON(w, m.ID, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`)
		case m.Method == "tools/list":
			answerJSON(w, m.ID, `{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`)
		case m.Method == "tools/call":
			answerJSON(w, m.ID, `{"content":[{"type":"text","text":"ok"}]}`)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	})
}

func answerJSON(w http.ResponseWriter, id json.RawMessage, result string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// BUG-MC-06: the stream for what nobody asked for is opened.
func TestStreamableHTTP(t *testing.T) {
	r := newRig(t, Options{}, httpServer("web", serve(t, streamable(t))))
	r.ready()
	if diff := cmp.Diff(tool.Text("hi"), *r.call("mcp__web__echo", `{"text":"hi"}`)); diff != "" {
		t.Error(diff)
	}
	r.call("mcp__web__grow", `{"text":"fresh"}`)
	r.until("the new tool", func() bool { return slices.Contains(r.names(), "mcp__web__fresh") })
}

func TestOldSSE(t *testing.T) {
	s := goodServer()
	url := serve(t, sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return s }, nil))
	typed, guessed := httpServer("typed", url), httpServer("guessed", url)
	typed.Type, guessed.guessed = SSE, true
	r := newRig(t, Options{}, typed, guessed)
	r.ready()
	for _, name := range []string{"mcp__typed__echo", "mcp__guessed__echo"} {
		if got := r.call(name, `{"text":"hi"}`).Text(); got != "hi" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestRefusalsOfHTTPServers(t *testing.T) {
	refuse := func(status int, text string) string {
		return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, text)
		}))
	}
	r := newRig(t, Options{}, httpServer("s401", refuse(401, "")), httpServer("s403", refuse(403, "no such right")),
		httpServer("s404", refuse(404, "<html>lost</html>")), httpServer("s503", refuse(503, "busy")), httpServer("scheme", "ftp://x/"))
	got := map[string]string{}
	for _, m := range r.Wait(r.ctx) {
		got[m.Server] = m.Why
	}
	want := map[string]string{
		"s401":   "it answers HTTP 401 Unauthorized; log in with `capstan mcp login s401`, or set headers",
		"s403":   "it answers HTTP 403 Forbidden: no such right; the key or login that it was given may not do this",
		"s404":   "it answers HTTP 404 Not Found; check its url",
		"s503":   "it answers HTTP 503 Service Unavailable: busy",
		"scheme": `url: "ftp://x/" is no http or https address`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

// BUG-MC-05: a server that was restarted has forgotten the session; the call
// was not run, so it is sent again, once.
func TestForgottenSession(t *testing.T) {
	var h atomic.Pointer[http.Handler]
	restart := func() {
		s := streamable(t)
		h.Store(&s)
	}
	restart()
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*h.Load()).ServeHTTP(w, r) }))
	r := newRig(t, Options{}, httpServer("web", url))
	r.ready()
	for range 2 {
		restart()
		if got := r.call("mcp__web__echo", `{"text":"hi"}`).Text(); got != "hi" {
			t.Errorf("%q", got)
		}
	}
}

// A call is never repeated by itself.
func TestAFailingCallIsSentOnce(t *testing.T) {
	var calls atomic.Int64
	url := serve(t, rawHTTP(map[string]func(http.ResponseWriter, *http.Request, json.RawMessage){
		"tools/call": func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
			if calls.Add(1) == 1 {
				w.WriteHeader(http.StatusInternalServerError)
				io.WriteString(w, "out of luck")
				return
			}
			answerJSON(w, id, `{"content":[]}`)
		},
	}))
	r := newRig(t, Options{}, httpServer("web", url))
	r.ready()
	want := tool.Fail(tool.CodeFailed, "MCP server web: it answers HTTP 500 Internal Server Error: out of luck")
	if diff := cmp.Diff(want, *r.call("mcp__web__t", `{}`)); diff != "" {
		t.Error(diff)
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
	if res := r.call("mcp__web__t", `{}`); res.Status != tool.Success {
		t.Errorf("the next: %+v", res)
	}
}

func TestRedirects(t *testing.T) {
	var leaked atomic.Int64
	other := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { leaked.Add(1) }))
	away := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other+"/x?key=1", http.StatusTemporaryRedirect)
	}))
	mux := http.NewServeMux()
	mux.Handle("/new", streamable(t))
	mux.HandleFunc("/old", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/new", http.StatusPermanentRedirect)
	})
	mux.HandleFunc("/lossy", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/new", http.StatusFound) })
	mux.HandleFunc("/sse", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: %s/messages\n\n", other)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	home := serve(t, mux)
	sse := httpServer("sse", home+"/sse")
	sse.Type = SSE
	r := newRig(t, Options{}, httpServer("away", away), httpServer("home", home+"/old"), httpServer("lossy", home+"/lossy"), sse)
	got := map[string]string{}
	for _, m := range r.Wait(r.ctx) {
		got[m.Server] = m.Why
	}
	for server, want := range map[string]string{
		"away":  "it redirects to " + other + "/x?…, which is another host: it is not followed; if it is right, set url to it",
		"lossy": "in a way that loses the request: set url to that",
		"sse":   "it wants requests sent to " + other + "/messages, which is another host",
	} {
		if !strings.Contains(got[server], want) {
			t.Errorf("%s: %q, want %q", server, got[server], want)
		}
	}
	if got["home"] != "" {
		t.Errorf("home: %s", got["home"])
	}
	if n := leaked.Load(); n > 0 {
		t.Errorf("the other host got %d requests", n)
	}
}

// BUG-MC-18: a server that accepts and never replies keeps nobody waiting.
func TestSilentHTTPServer(t *testing.T) {
	url := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // only then the end of the client is seen
		<-r.Context().Done()
	}))
	c := httpServer("silent", url)
	c.StartupTimeout = 100 * time.Millisecond
	r := newRig(t, Options{}, c, stdioServer("good", "sdk"))
	r.ready("good")
	m := r.Wait(r.ctx)
	if len(m) != 1 || !strings.Contains(m[0].Why, "start") || !strings.Contains(m[0].Why, "100ms") {
		t.Errorf("%v", m)
	}
}

// A server whose optional stream hangs is of use without it.
func TestSilentStream(t *testing.T) {
	url := serve(t, rawHTTP(map[string]func(http.ResponseWriter, *http.Request, json.RawMessage){
		"GET": func(_ http.ResponseWriter, r *http.Request, _ json.RawMessage) { <-r.Context().Done() },
	}))
	r := newRig(t, Options{listen: 50 * time.Millisecond}, httpServer("web", url))
	r.ready()
	if got := r.call("mcp__web__t", `{}`).Text(); got != "ok" {
		t.Errorf("%q", got)
	}
}

func TestAnswersOfHTTPServersThatAreWrong(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	for name, test := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request, json.RawMessage)
		want   string
	}{
		"cut": {func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "event: message\ndata: {\"jsonrpc\"")
		}, "tool t of MCP server web: the connection broke before the answer was there\nWhether the call had an effect is not known. The next call connects anew."},
		"html": {func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "<html>")
		}, "text/html"},
		"huge": {func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, id)
			for range 34 {
				io.WriteString(w, huge)
			}
			io.WriteString(w, `"}]}}`)
		}, "larger than 32 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			r := newRig(t, Options{}, httpServer("web", serve(t, rawHTTP(map[string]func(http.ResponseWriter, *http.Request, json.RawMessage){
				"tools/call": func(w http.ResponseWriter, r *http.Request, id json.RawMessage) {
					if calls.Add(1) == 1 {
						test.answer(w, r, id)
						return
					}
					answerJSON(w, id, `{"content":[{"type":"text","text":"ok"}]}`)
				},
			}))))
			r.ready()
			if res := r.call("mcp__web__t", `{}`); res.Code != tool.CodeFailed || !strings.Contains(res.Text(), test.want) {
				t.Errorf("%+v", res)
			}
			if got := r.call("mcp__web__t", `{}`).Text(); got != "ok" {
				t.Errorf("the next call says %q", got)
			}
		})
	}
}

// A stream that is cut is taken up where it was, when the server can.
func TestResume(t *testing.T) {
	var id atomic.Value
	url := serve(t, rawHTTP(map[string]func(http.ResponseWriter, *http.Request, json.RawMessage){
		"tools/call": func(w http.ResponseWriter, _ *http.Request, of json.RawMessage) {
			id.Store(string(of))
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "id: e1\nretry: 10\ndata: \n\n")
		},
		"GET": func(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
			if r.Header.Get("Last-Event-ID") != "e1" {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"resumed\"}]}}\n\n", id.Load())
		},
	}))
	r := newRig(t, Options{}, httpServer("web", url))
	r.ready()
	if got := r.call("mcp__web__t", `{}`).Text(); got != "resumed" {
		t.Errorf("%q", got)
	}
}

func TestAnAnswerThatIsNotUTF8(t *testing.T) {
	url := serve(t, rawHTTP(map[string]func(http.ResponseWriter, *http.Request, json.RawMessage){
		"tools/call": func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
			answerJSON(w, id, `{"content":[{"type":"text","text":"caf`+"\xe9"+`"}]}`)
		},
	}))
	r := newRig(t, Options{}, httpServer("web", url))
	r.ready()
	if got := r.call("mcp__web__t", `{}`).Text(); got != "caf\uFFFD" {
		t.Errorf("%q", got)
	}
}

// What may be a key in an address is not shown.
func TestAddressesAreShownWithoutKeys(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	c := httpServer("web", gone.URL+"/mcp?key=SECRET")
	r := newRig(t, Options{}, c)
	if m := r.Wait(r.ctx); len(m) != 1 || strings.Contains(m[0].Why, "SECRET") || !strings.Contains(m[0].Why, "connection refused") {
		t.Errorf("%v", m)
	}
	live := &conn{cfg: c}
	err := live.scrub(fmt.Errorf("standalone: Get %q: %w", c.URL, io.EOF))
	if want := `standalone: Get "` + gone.URL + `/mcp?…": EOF`; err.Error() != want || !errors.Is(err, io.EOF) {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestHeaders(t *testing.T) {
	var got atomic.Value
	url := serve(t, rawHTTP(map[string]func(http.ResponseWriter, *http.Request, json.RawMessage){
		"tools/list": func(w http.ResponseWriter, r *http.Request, id json.RawMessage) {
			got.Store(r.Header.Get("Authorization"))
			answerJSON(w, id, `{"tools":[]}`)
		},
	}))
	c := httpServer("web", url)
	c.Headers = map[string]string{"Authorization": "Bearer ${KEY}"}
	r := newRig(t, Options{Env: []string{"KEY=k1"}}, c)
	r.ready()
	if got.Load() != "Bearer k1" {
		t.Errorf("%v", got.Load())
	}
}
