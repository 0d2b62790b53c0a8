// Package familytest holds what the tests of every family of package llm have in
// common: how a client is asked, transports that misbehave, and what has to come
// of it whatever the wire format. What only one family has is tested there. It
// is for tests alone; the scripted server is in llmtest, which knows nothing of
// package llm.
package familytest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"capstan/internal/llm"
	"capstan/internal/llm/llmtest"
	"capstan/internal/msg"
)

// A Client is what each family makes.
type Client interface {
	llm.Provider
	Models(context.Context) ([]string, error)
	Close()
}

// A Family says how a family is tested. Its methods are the tests.
type Family struct {
	Name  string // the first half of an origin
	Model string // any that it takes
	Base  string // what follows the server's address in the base URL
	Key   string // must have "secret" in it, in any case

	Open  func(e *llm.Endpoint) Client // with the usual profile
	Limit func(c Client, bytes int)    // sets the limit of an answer
	Body  func(r *llm.Request) ([]byte, error)
	Check string // the format of llmtest for Body
}

// Serve starts a scripted server, checks at the end that all went as the script
// has it, and returns an endpoint for it, which makes no second attempt.
func Serve(t *testing.T, script, base, key string) (*llm.Endpoint, *llmtest.Server) {
	t.Helper()
	s, err := llmtest.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	server, err := llmtest.Listen(s)
	if err != nil {
		t.Fatal(err)
	}
	e := &llm.Endpoint{Name: "test", BaseURL: server.URL + base, Key: key, Retries: -1}
	t.Cleanup(func() {
		e.Close()
		server.Close()
		if err := server.Err(); err != nil {
			t.Error(err)
		}
	})
	return e, server
}

// Ask collects an answer of a family.
func Ask(ctx context.Context, family string, p llm.Provider, r *llm.Request) (*llm.Turn, error) {
	turn := llm.NewTurn(family + "/" + r.Model)
	for e, err := range p.Stream(ctx, r) {
		if err != nil {
			return turn, err
		}
		turn.Add(e)
	}
	return turn, nil
}

// Said is a conversation that begins with these words.
func Said(s string) []msg.Message {
	return []msg.Message{{Role: msg.User, Parts: []msg.Part{msg.TextPart(s)}}}
}

// Call is a call of a tool.
func Call(id, name, args string) msg.Part {
	return msg.Part{Kind: msg.CallPart, Call: &msg.Call{ID: id, Name: name, Args: args}}
}

// Result is a result of text.
func Result(id, text string) msg.Result {
	return msg.Result{CallID: id, Status: "success", Parts: []msg.Part{msg.TextPart(text)}}
}

// Results are the results of a turn.
func Results(list ...msg.Result) msg.Message { return msg.Message{Role: msg.Tool, Results: list} }

// Calls returns the calls of an answer.
func Calls(turn *llm.Turn) []msg.Call {
	var out []msg.Call
	m := turn.Message()
	for _, c := range m.Calls() {
		out = append(out, *c)
	}
	return out
}

// Tools that tests declare.
var (
	ReadFile = msg.Declaration{Name: "read_file", Description: "Read.", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)}
	NoArgs   = msg.Declaration{Name: "todo_list", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}
	AllOpt   = msg.Declaration{Name: "delete_records", Parameters: json.RawMessage(`{"type":"object","properties":{"where":{"type":"object"}}}`)}
	Shell    = msg.Declaration{Name: "shell", Parameters: json.RawMessage(`{"type":"object","properties":{"cmd":{"type":"string"}},"required":["cmd"]}`)}
	Tools4   = []msg.Declaration{ReadFile, NoArgs, AllOpt, Shell}
)

// Answers is a transport that gives one answer to everything.
type Answers struct {
	Status int         // 0 is 200
	Header http.Header // nil: the type of a stream
	Body   io.Reader
}

// RoundTrip gives the answer.
func (a Answers) RoundTrip(r *http.Request) (*http.Response, error) {
	h := a.Header
	if h == nil {
		h = http.Header{"Content-Type": {"text/event-stream"}}
	}
	return &http.Response{StatusCode: max(a.Status, 200), Header: h, Body: io.NopCloser(a.Body), Request: r}, nil
}

// Repeating is a transport that answers every request with the same stream.
type Repeating string

// RoundTrip gives the stream.
func (s Repeating) RoundTrip(r *http.Request) (*http.Response, error) {
	return Answers{Body: strings.NewReader(string(s))}.RoundTrip(r)
}

// Endless repeats an event for ever.
type Endless struct {
	Event string
	Sent  int // bytes so far
	rest  string
}

func (e *Endless) Read(p []byte) (int, error) {
	if e.rest == "" {
		e.rest = e.Event
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	e.Sent += n
	return n, nil
}

// Over returns an endpoint with this transport.
func (f *Family) Over(transport http.RoundTripper) *llm.Endpoint {
	return &llm.Endpoint{Name: "test", BaseURL: "http://test" + f.Base, Key: f.Key, Retries: -1, Transport: transport}
}

// ask asks a client of this family something simple.
func (f *Family) ask(t *testing.T, c Client) (*llm.Turn, error) {
	t.Helper()
	return Ask(t.Context(), f.Name, c, &llm.Request{Model: f.Model, Messages: Said("hi")})
}

func (f *Family) serve(t *testing.T, script string) (*llm.Endpoint, *llmtest.Server) {
	t.Helper()
	return Serve(t, script, f.Base, f.Key)
}

// fails checks an error: its kind, what it says, and that no key is in it.
func fails(t *testing.T, err error, kind llm.Kind, says string) *llm.Error {
	t.Helper()
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != kind || !strings.Contains(err.Error(), says) {
		t.Fatalf("got %v\nwant %q with %q", err, kind, says)
	}
	if strings.Contains(strings.ToLower(err.Error()), "secret") {
		t.Errorf("the key shows: %v", err)
	}
	return e
}
