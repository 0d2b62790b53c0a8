package llm_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"capstan/internal/llm"
	"capstan/internal/llm/anthropic"
	"capstan/internal/llm/gemini"
	"capstan/internal/llm/openai"
	"capstan/internal/llm/responses"
	"capstan/internal/msg"
)

// A family, and an answer in its words.
type family struct {
	provider func(*llm.Endpoint) llm.Provider
	answer   string
}

var families = map[string]family{
	"openai": {func(e *llm.Endpoint) llm.Provider { return openai.New(e, nil) },
		event(`{"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}]}`) + event("[DONE]")},
	"responses": {func(e *llm.Endpoint) llm.Provider { return responses.New(e, nil) },
		event(`{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"ok"}]}]}}`)},
	"anthropic": {func(e *llm.Endpoint) llm.Provider { return anthropic.New(e, nil) },
		event(`{"type":"message_start","message":{"role":"assistant","content":[]}}`) +
			event(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"ok"}}`) + event(`{"type":"content_block_stop","index":0}`) +
			event(`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`) + event(`{"type":"message_stop"}`)},
	"gemini": {func(e *llm.Endpoint) llm.Provider { return gemini.New(e) },
		event(`{"candidates":[{"content":{"role":"model","parts":[{"text":"ok"}]},"finishReason":"STOP"}]}`)},
}

func event(data string) string { return "data: " + data + "\n\n" }

// pipes is a network of which a test's clock knows: a server in memory.
type pipes struct {
	accept chan net.Conn
	dialed int
}

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	p.dialed++
	client, server := net.Pipe()
	p.accept <- server
	return client, nil
}

func (p *pipes) Accept() (net.Conn, error) {
	c, ok := <-p.accept
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

func (p *pipes) Close() error {
	close(p.accept)
	return nil
}

// ask makes two requests, after each of which the server does what after says,
// and returns how many connections they took and how long the second one did.
func ask(t *testing.T, f family, after func(*http.Request, io.Writer)) (connections int, took time.Duration) {
	t.Helper()
	p := &pipes{accept: make(chan net.Conn)}
	var handlers sync.WaitGroup
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handlers.Add(1)
		defer handlers.Done()
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, f.answer)
		_ = http.NewResponseController(w).Flush()
		after(r, w)
	})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(p)
	}()
	transport := &http.Transport{DialContext: p.dial}
	e := &llm.Endpoint{Name: "test", BaseURL: "http://test/v1", Key: "k", Transport: transport, Retries: -1}
	provider := f.provider(e)
	for i := range 2 {
		start := time.Now()
		turn := llm.NewTurn("")
		for event, err := range provider.Stream(t.Context(), &llm.Request{Model: "m", Messages: []msg.Message{{Role: msg.User, Parts: []msg.Part{msg.TextPart("hi")}}}}) {
			if err != nil {
				t.Fatalf("request %d: %v", i+1, err)
			}
			turn.Add(event)
		}
		if m := turn.Message(); m.Text() != "ok" || turn.Finish != llm.FinishStop {
			t.Fatalf("request %d: %q %s", i+1, m.Text(), turn.Finish)
		}
		took = time.Since(start)
	}
	e.Close()
	_ = server.Close()
	<-served
	handlers.Wait()
	return p.dialed, took
}

// Two requests of one client use one connection, though the decoders know the
// end of an answer before its last byte: which may come a moment later, and with
// a comment before it.
func TestOneConnection(t *testing.T) {
	for name, f := range families {
		for what, after := range map[string]func(*http.Request, io.Writer){
			"at once":        func(*http.Request, io.Writer) {},
			"a moment later": func(*http.Request, io.Writer) { time.Sleep(20 * time.Millisecond) },
			"with a comment": func(_ *http.Request, w io.Writer) { fmt.Fprint(w, ": bye\n\n") },
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					if n, _ := ask(t, f, after); n != 1 {
						t.Errorf("%d connections", n)
					}
				})
			})
		}
	}
}

// A server that does not end its answer, or goes on with it, is not waited for.
// (Of Gemini's the end is the end of the connection.)
func TestNoEnd(t *testing.T) {
	for name, f := range families {
		if name == "gemini" {
			continue
		}
		for what, after := range map[string]func(*http.Request, io.Writer){
			"open": func(r *http.Request, _ io.Writer) { <-r.Context().Done() },
			"more": func(r *http.Request, w io.Writer) {
				for r.Context().Err() == nil {
					_, _ = io.WriteString(w, strings.Repeat(": more\n\n", 1000))
				}
			},
			"drops": func(r *http.Request, w io.Writer) {
				for r.Context().Err() == nil {
					time.Sleep(time.Millisecond)
					_, _ = io.WriteString(w, ":\n\n")
					_ = http.NewResponseController(w.(http.ResponseWriter)).Flush()
				}
			},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					if n, took := ask(t, f, after); n != 2 || took > 50*time.Millisecond {
						t.Errorf("%d connections, the second request took %v", n, took)
					}
				})
			})
		}
	}
}
