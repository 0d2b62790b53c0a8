package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Error bodies as the APIs and the servers that imitate them send them, and
// what they mean.
func TestRefusal(t *testing.T) {
	const google = `{"error":{"code":429,"message":"You exceeded your current quota.","status":"RESOURCE_EXHAUSTED","details":[`
	tests := []struct {
		name   string
		status int
		header string // NAME: VALUE
		body   string
		kind   Kind
		after  time.Duration
	}{
		{"openai, wrong key", 401, "", `{"error":{"message":"Incorrect API key provided: sk-abc***************xyz.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`, ErrAuth, 0},
		{"openai, region", 403, "", `{"error":{"message":"Country, region, or territory not supported","code":"unsupported_country_region_territory"}}`, ErrAuth, 0},
		{"openai, rate", 429, "Retry-After: 20", `{"error":{"message":"Rate limit reached for gpt-x on tokens per min (TPM): Limit 30000","type":"tokens","code":"rate_limit_exceeded"}}`, ErrRateLimit, 20 * time.Second},
		{"openai, rate in ms", 429, "Retry-After-Ms: 1500", `{"error":{"code":"rate_limit_exceeded"}}`, ErrRateLimit, 1500 * time.Millisecond},
		{"openai, rate without a time", 429, "", `{"error":{"code":"rate_limit_exceeded"}}`, ErrRateLimit, 0},
		{"openai, spent", 429, "", `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}`, ErrQuota, 0},
		{"openai, spent, no code", 429, "", `{"error":{"message":"You exceeded your current quota, please check your plan."}}`, ErrQuota, 0},
		{"openai, context", 400, "", `{"error":{"message":"This model's maximum context length is 128000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`, ErrContext, 0},
		{"openai, model", 404, "", `{"error":{"message":"The model 'x' does not exist","type":"invalid_request_error","code":"model_not_found"}}`, ErrNotFound, 0},
		{"openai, schema", 400, "", `{"error":{"message":"Invalid schema for function 'x'","type":"invalid_request_error","code":"invalid_function_parameters"}}`, ErrBadRequest, 0},
		{"openai, down", 500, "", `{"error":{"message":"The server had an error","type":"server_error"}}`, ErrOverloaded, 0},
		{"anthropic, overloaded", 529, "", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, ErrOverloaded, 0},
		{"anthropic, overloaded in a stream", 0, "", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, ErrOverloaded, 0},
		{"anthropic, rate in a stream", 0, "", `{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`, ErrRateLimit, 0},
		{"anthropic, spent", 400, "", `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`, ErrQuota, 0},
		{"anthropic, context", 400, "", `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, ErrContext, 0},
		{"anthropic, size", 413, "", `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, ErrTooLarge, 0},
		{"gemini, key", 400, "", `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}`, ErrAuth, 0},
		{"gemini, rate", 429, "", google + `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"17s"}]}}`, ErrRateLimit, 17 * time.Second},
		{"gemini, day", 429, "", google + `{"violations":[{"quotaId":"GenerateRequestsPerDayPerProject"}]},{"retryDelay":"17s"}]}}`, ErrQuota, 17 * time.Second},
		{"gemini, rate, no details", 429, "", `[{"error":{"code":429,"message":"You exceeded your current quota.","status":"RESOURCE_EXHAUSTED"}}]`, ErrRateLimit, 0},
		{"gemini, context", 400, "", `{"error":{"code":400,"message":"The input token count exceeds the maximum number of tokens allowed 1048576.","status":"INVALID_ARGUMENT"}}`, ErrContext, 0},
		{"gemini, unavailable", 503, "", `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`, ErrOverloaded, 0},
		{"gemini, size", 400, "", `{"error":{"code":400,"message":"Request payload size exceeds the limit: 20971520 bytes.","status":"INVALID_ARGUMENT"}}`, ErrTooLarge, 0},
		{"gemini, unavailable in a stream", 0, "", `{"error":{"code":503,"message":"Try again.","status":"X"}}`, ErrOverloaded, 0},
		{"gemini, rate in a stream", 0, "", `[{"error":{"code":429,"message":"Slow.","details":[{"retryDelay":"3s"}]}}]`, ErrRateLimit, 3 * time.Second},
		{"deepseek, spent", 402, "", `{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}`, ErrQuota, 0},
		{"dashscope, spent", 400, "", `{"error":{"code":"Arrearage","message":"Access denied, please make sure your account is in good standing."}}`, ErrQuota, 0},
		{"dashscope, arguments", 400, "", `{"error":{"code":"invalid_parameter_error","message":"The \"function.arguments\" parameter must be in JSON format."}}`, ErrBadRequest, 0},
		{"ollama, model", 404, "", `{"error":"model \"x\" not found, try pulling it first"}`, ErrNotFound, 0},
		{"llama.cpp, context", 400, "", `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, ErrContext, 0},
		{"vllm", 400, "", `{"object":"error","message":"This model's maximum context length is 4096 tokens","type":"BadRequestError","code":400}`, ErrContext, 0},
		{"fastapi", 422, "", `{"detail":[{"loc":["body"],"msg":"extra fields not permitted"}]}`, ErrBadRequest, 0},
		{"a proxy's page", 502, "", "<html><head><title>502 Bad Gateway</title></head><body><h1>502</h1></body></html>", ErrOverloaded, 0},
		{"a proxy's size", 413, "", "<html>nginx</html>", ErrTooLarge, 0},
		{"nothing", 500, "", "", ErrOverloaded, 0},
		{"not UTF-8", 400, "", "\xff\xfe\x00", ErrBadRequest, 0},
		{"moved", 301, "Location: https://elsewhere/v1", "", ErrNotFound, 0},
		{"absurd wait", 429, "Retry-After: 1e300", "", ErrRateLimit, 365 * 24 * time.Hour},
		{"negative wait", 429, "Retry-After: -5", "", ErrRateLimit, 0},
		{"an hour ago", 429, "Retry-After: Mon, 02 Jan 2006 15:04:05 GMT", "", ErrRateLimit, 0},
	}
	e := &Endpoint{Name: "test"}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := http.Header{}
			if k, v, ok := strings.Cut(tt.header, ": "); ok {
				h.Set(k, v)
			}
			got := e.Refusal(tt.status, h, []byte(tt.body))
			if got.Kind != tt.kind || got.RetryAfter != tt.after {
				t.Errorf("kind %s after %v, want %s after %v: %v", got.Kind, got.RetryAfter, tt.kind, tt.after, got)
			}
		})
	}
	got := e.Refusal(429, nil, []byte(`{"error":{"message":"Rate limit reached.\nTry\u001b[31m later","code":"rate_limit_exceeded"}}`)).Error()
	if want := "test: rate limit reached (HTTP 429, rate_limit_exceeded): Rate limit reached. Try [31m later\nwait, or send fewer requests at a time"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := e.Refusal(400, nil, []byte(`{"message":"`+strings.Repeat("x", 5000)+`"}`)).Error(); len(got) > 800 || !strings.Contains(got, "4400 characters more") {
		t.Errorf("a long message became %d bytes: %s", len(got), got)
	}
}

// A model or a server that cannot call tools is said to be one, whatever status
// comes with it, and nobody waits for it to learn.
func TestRefusalOfTools(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		advice string
	}{
		{"ollama", 400, `{"error":{"message":"registry.ollama.ai/library/gemma:2b does not support tools","type":"api_error","param":null,"code":null}}`, "choose a model that can call tools"},
		{"openrouter", 404, `{"error":{"message":"No endpoints found that support tool use.","code":404}}`, "choose a model that can call tools"},
		{"llama.cpp", 500, `{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}`, "start llama-server with --jinja"},
		{"vllm", 400, `{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","code":400}`, "start vLLM with --enable-auto-tool-choice"},
		{"something else about tools", 400, `{"error":{"message":"tools.0.name: string does not match pattern"}}`, ""},
	} {
		got := (&Endpoint{Name: "test"}).Refusal(tt.status, nil, []byte(tt.body))
		if got.Kind != ErrBadRequest || got.Temporary() || !strings.HasPrefix(got.Advice, tt.advice) || tt.advice == "" && got.Advice != "" {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// A list of faults is given as its texts, each with its place.
func TestRefusalWithAList(t *testing.T) {
	for body, want := range map[string]string{
		`{"detail":[{"type":"missing","loc":["body","messages",0,"role"],"msg":"Field required","input":{}},{"loc":["body"],"msg":"extra fields not permitted"}]}`: "body.messages.0.role: Field required; body: extra fields not permitted",
		`{"message":{"detail":[]},"detail":[{"msg":"x"}]}`: `{"detail":[]}`,
		`{"detail":[{"msg":"no place"}]}`:                  "no place",
		`{"detail":[{"loc":["body"]}]}`:                    `[{"loc":["body"]}]`,
		`{"detail":["a","b"]}`:                             `["a","b"]`,
		`{"detail":[]}`:                                    "[]",
		`{"detail":"one"}`:                                 "one",
	} {
		got := (&Endpoint{Name: "test"}).Refusal(422, nil, []byte(body))
		if got.Kind != ErrBadRequest || got.Message != want {
			t.Errorf("%s: %s, %q; want %q", body, got.Kind, got.Message, want)
		}
	}
}

func FuzzRefusal(f *testing.F) {
	f.Add(429, `{"error":{"message":"x","details":[{"retryDelay":"1s"}]}}`)
	f.Add(500, "<title>x")
	f.Fuzz(func(t *testing.T, status int, body string) {
		e := &Endpoint{Name: "test", Key: "sk-verysecret"}
		got := e.Refusal(status, nil, []byte(body)).Error()
		if strings.ContainsAny(got, "\x00\x1b\r") || strings.Contains(got, "sk-verysecret") {
			t.Errorf("%q", got)
		}
	})
}

func TestRedact(t *testing.T) {
	e := &Endpoint{Key: "my-own-key", Header: http.Header{"X-Api-Key": {"header-key"}, "Proxy-Authorization": {"Basic dXNlcjpwYXNz"}, "X-Title": {"capstan"}}}
	in := "my-own-key header-key dXNlcjpwYXNz capstan sk-proj-abc123_DEF Bearer abcdefghij AIzaSyA1234567890123456789012345 sk-7 risk-free"
	want := "[redacted] [redacted] [redacted] capstan [redacted] [redacted] [redacted] sk-7 risk-free"
	if got := e.Redact(in); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// No part of a secret stays where a text is cut, and none of the base URL shows.
func TestNoSecretInErrors(t *testing.T) {
	const key = "f0e1d2c3b4a5968778695a4b3c2d1e0f" // looks like no provider's
	e := &Endpoint{Name: "x", Key: key, BaseURL: "https://user:hunter%402secret@host/v1?api_key=abcdef123456&api-version=2026-01-01"}
	leaks := func(text string) bool {
		for _, part := range []string{key[:6], "hunter", "abcdef123456"} {
			if strings.Contains(text, part) {
				return true
			}
		}
		return false
	}
	for before := range 700 {
		filler := strings.Repeat("-", before)
		if got := e.Refusal(401, nil, []byte(filler+key)).Message; leaks(got) {
			t.Fatalf("after %d characters: %s", before, got)
		}
		if got := e.ProtocolError("%s", e.Excerpt([]byte(filler+key))).Message; leaks(got) {
			t.Fatalf("after %d characters: %s", before, got)
		}
	}
	moved := e.Refusal(302, http.Header{"Location": {strings.Replace(e.BaseURL, "host", "other", 1)}}, nil)
	if got := moved.Error(); leaks(got) || !strings.Contains(got, "api-version=2026-01-01") {
		t.Error(got)
	}
	wrong := &Endpoint{Name: "x", BaseURL: "htp://user:hunter2secret@host/v1?api_key=abcdef123456"}
	if _, err := wrong.URL("/models"); err == nil || leaks(err.Error()) {
		t.Error(err)
	}
}

// failing is a transport that fails.
type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// Errors of the network, of whatever platform, are told by what they are and
// not by their words. BUG-SD-16
func TestFailure(t *testing.T) {
	tests := []struct {
		name string
		err  error
		kind Kind
		says string
	}{
		{"reset", &net.OpError{Op: "read", Err: os.NewSyscallError("wsarecv", syscall.ECONNRESET)}, ErrNetwork, "test: the connection broke off: read: wsarecv: connection reset"},
		{"nobody there", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, ErrNetwork, "test: the endpoint could not be reached: dial: connect: connection refused\ncheck the base URL, that the server runs"},
		{"nobody at the proxy", &net.OpError{Op: "proxyconnect", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, ErrNetwork, "test: the endpoint could not be reached: proxyconnect"},
		{"no such host", &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "nope", IsNotFound: true}}, ErrNotFound, "check the host name"},
		{"no answer of DNS", &net.DNSError{Err: "server misbehaving", Name: "x"}, ErrNetwork, "test: the endpoint could not be reached: lookup x"},
		{"closed at once", io.EOF, ErrNetwork, "test: the connection broke off: it was closed without an answer"},
		{"cut", io.ErrUnexpectedEOF, ErrNetwork, "test: the connection broke off: it was closed without an answer"},
		{"deadline of the transport", os.ErrDeadlineExceeded, ErrNetwork, "test: the endpoint could not be reached: i/o timeout"},
		{"no HTTP", errors.New("malformed HTTP response"), ErrNetwork, "test: the connection broke off: malformed"},
		{"says the key", errors.New("cannot send sk-verysecret"), ErrNetwork, "cannot send [redacted]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := &Endpoint{Name: "test", BaseURL: "http://test/v1?key=sk-verysecret", Key: "sk-verysecret", Transport: failing{tt.err}}
			_, err := e.Do(t.Context(), "/x", nil, nil)
			var own *Error
			if !errors.As(err, &own) || own.Kind != tt.kind || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "verysecret") {
				t.Errorf("got %v", err)
			}
		})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("the user"))
	e := &Endpoint{Name: "test", BaseURL: "http://test", Transport: failing{context.Canceled}}
	_, err := e.Do(ctx, "/x", nil, nil)
	var own *Error
	if !errors.As(err, &own) || own.Kind != ErrCancelled || own.Temporary() {
		t.Errorf("cancelled: %v", err)
	}
	for _, base := range []string{"", "localhost:11434", "ftp://x", "http://", ":"} {
		_, err := (&Endpoint{Name: "test", BaseURL: base}).Do(t.Context(), "/x", nil, nil)
		if !errors.As(err, &own) || own.Kind != ErrNotFound || !strings.Contains(err.Error(), "https://host/v1") {
			t.Errorf("base URL %q: %v", base, err)
		}
	}
}

// What breaks in the middle of an answer was reached: the error does not send
// anybody to look for the server. BUG-SD-15, BUG-SD-16
func TestFailureInAnAnswer(t *testing.T) {
	for says, err := range map[string]error{
		"the connection broke off: it was closed in the middle of the answer": io.ErrUnexpectedEOF,
		"the connection broke off: read: connection reset by peer":            &net.OpError{Op: "read", Err: syscall.ECONNRESET},
		"the connection broke off: stream error: INTERNAL_ERROR":              errors.New("stream error: INTERNAL_ERROR"),
		"the endpoint fell silent: nothing came for 2s":                       &reason{"nothing came for 2s", errSilent},
	} {
		got := (&Endpoint{Name: "test"}).Failure(t.Context(), err)
		if got.Kind != ErrNetwork || !got.Temporary() || !strings.HasPrefix(got.Error(), "test: "+says+"\n") || strings.Contains(got.Error(), "base URL") {
			t.Errorf("%v: got %v", err, got)
		}
	}
	if got := (&Endpoint{Name: "test"}).Cut().Error(); !strings.HasPrefix(got, "test: the connection broke off: the stream ended") {
		t.Error(got)
	}
}

// Over a real connection: headers, the key and a query go out; a redirect is
// not followed; a certificate that nobody vouches for and plain HTTP on a TLS
// port are said.
func TestEndpoint(t *testing.T) {
	var got *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		if r.URL.Path == "/v1/moved" {
			http.Redirect(w, r, "https://elsewhere.example/v1", http.StatusPermanentRedirect)
		}
	}))
	defer server.Close()
	e := &Endpoint{Name: "test", BaseURL: server.URL + "/v1/?api-version=1", Header: http.Header{"x-team": {"a"}, "Accept": {"b"}}}
	defer e.Close()
	resp, err := e.Do(t.Context(), "/chat?limit=2", []byte("{}"), http.Header{"Accept": {"a"}, "Authorization": {"Bearer k"}})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got.URL.String() != "/v1/chat?api-version=1&limit=2" || got.Header.Get("X-Team") != "a" || got.Header.Get("Accept") != "b" || got.Header.Get("Authorization") != "Bearer k" || got.Method != "POST" || got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("got %s %s %v", got.Method, got.URL, got.Header)
	}
	var own *Error
	for path, want := range map[string]string{"/chat?alt=sse": "/v1/chat?api-version=1&alt=sse", "/models/m:x": "/v1/models/m:x?api-version=1"} {
		if got, err := e.URL(path); err != nil || got != server.URL+want {
			t.Errorf("%s is at %s, %v; want %s", path, got, err, want)
		}
	}
	if _, err := e.Do(t.Context(), "/moved", []byte("{}"), nil); !errors.As(err, &own) || own.Kind != ErrNotFound || !strings.Contains(err.Error(), "redirects to https://elsewhere.example/v1") {
		t.Errorf("redirect: %v", err)
	}
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = quiet
	secure.StartTLS()
	defer secure.Close()
	e2 := &Endpoint{Name: "test", BaseURL: secure.URL}
	defer e2.Close()
	if _, err := e2.Do(t.Context(), "/x", nil, nil); !errors.As(err, &own) || own.Kind != ErrCertificate {
		t.Errorf("certificate: %v", err)
	}
	e3 := &Endpoint{Name: "test", BaseURL: strings.Replace(server.URL, "http:", "https:", 1)}
	defer e3.Close()
	if _, err := e3.Do(t.Context(), "/x", nil, nil); !errors.As(err, &own) || own.Temporary() || !strings.HasPrefix(err.Error(), "test: the endpoint could not be reached: the server does not speak TLS at this address\nuse http://") {
		t.Errorf("no TLS there: %v", err)
	}
}

// What a proxy refuses is said to be the proxy's, for both ways through one, and
// is not tried again. Nothing shows who the user is.
func TestProxyAuthentication(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusProxyAuthRequired)
		fmt.Fprintf(w, "who is %s?", r.Header.Get("Proxy-Authorization"))
	}))
	defer proxy.Close()
	at, err := url.Parse(strings.Replace(proxy.URL, "//", "//someone:hunter2secret@", 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, base := range []string{"http://api.example/v1", "https://api.example/v1"} {
		e := &Endpoint{Name: "test", BaseURL: base}
		e.Client().Transport.(*watched).base.(*http.Transport).Proxy = http.ProxyURL(at)
		_, err := e.Do(t.Context(), "/x", nil, nil)
		e.Close()
		want := &Error{Kind: ErrAuth, Provider: "test", Status: 407, What: "the proxy, not the provider, wants a user and a password"}
		var got *Error
		if !errors.As(err, &got) {
			t.Fatalf("%s: %v", base, err)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Error{}, "Advice")); diff != "" || got.Temporary() || !strings.Contains(got.Advice, "HTTPS_PROXY") {
			t.Errorf("%s: %v (-want +got):\n%s", base, got, diff)
		}
		if strings.Contains(err.Error(), "someone") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", base, err)
		}
	}
}

var quiet = log.New(io.Discard, "", 0)
