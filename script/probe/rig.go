package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// patience is what a model gets for one probe.
const patience = 5 * time.Minute

// A rig runs probes against one endpoint.
type rig struct {
	dir, bin         string // for what is written; the binary
	base, key, model string
}

// A seen is everything that was seen of one probe.
type seen struct {
	requests []request
	calls    []called // that reached the server
	answer   string
	err      error  // of the run
	said     string // on stderr

	input, cached int // tokens, as the endpoint counts them
}

// A request is the body of a request to the Responses API, as far as it is
// looked at.
type request struct {
	Tools json.RawMessage `json:"tools"`
	Input []item          `json:"input"`
}

// An item is one entry of a conversation.
type item struct {
	Type      string          `json:"type"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
}

// ask runs the real binary on the task of a probe.
func (r *rig) ask(ctx context.Context, p probe) (*seen, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	tape, err := record(r.base)
	if err != nil {
		return nil, err
	}
	defer tape.server.Close()
	work, err := os.MkdirTemp(r.dir, p.name+"-")
	if err != nil {
		return nil, err
	}
	notes := filepath.Join(work, "calls")
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"parcels": map[string]any{
		"command": self, "env": map[string]string{serverVariable: notes}, "description": "the parcels of our customers"}}})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(work, "servers.json"), config, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, r.bin, "-p", p.task, "--model", "responses/"+r.model, "--mode", "code",
		"--mcp-config", "servers.json", "--allowed-tools", "mcp__parcels", "--max-turns", "20")
	cmd.Dir = work
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + work, "OPENAI_BASE_URL=" + tape.url, "OPENAI_API_KEY=" + r.key}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // so that it ends its servers
	cmd.WaitDelay = 10 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	s := &seen{err: cmd.Run(), answer: out.String(), said: errs.String()}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("it did not end within %v", patience)
	}
	s.requests, s.input, s.cached, err = tape.read()
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(notes)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(b)); ; {
		var c called
		if err := d.Decode(&c); err == io.EOF {
			return s, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading the notes of the server: %w", err)
		}
		s.calls = append(s.calls, c)
	}
}

// A tape is a proxy that keeps what is asked and what is answered.
type tape struct {
	url    string
	server *http.Server

	mu       sync.Mutex
	asked    [][]byte
	answered []*bytes.Buffer
}

func record(base string) (*tape, error) {
	to, err := url.Parse(base)
	if err != nil || to.Host == "" {
		return nil, fmt.Errorf("OPENAI_BASE_URL %q is no address", base)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t := &tape{url: "http://" + l.Addr().String() + "/v1"}
	prefix := to.Path
	to.Path = ""
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.URL.Path = prefix + r.In.URL.Path[len("/v1"):]
			r.Out.Header.Del("Accept-Encoding") // answers are read
		},
		ModifyResponse: func(resp *http.Response) error {
			t.mu.Lock()
			defer t.mu.Unlock()
			b := &bytes.Buffer{}
			t.answered = append(t.answered, b)
			resp.Body = struct {
				io.Reader
				io.Closer
			}{io.TeeReader(resp.Body, locked{&t.mu, b}), resp.Body}
			return nil
		},
	}
	t.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || len(r.URL.Path) < len("/v1") {
			http.Error(w, "bad request", http.StatusBadRequest)
			return
		}
		if r.Method == http.MethodPost {
			t.mu.Lock()
			t.asked = append(t.asked, body)
			t.mu.Unlock()
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	})}
	go func() { _ = t.server.Serve(l) }() // ends with Close
	return t, nil
}

// locked writes under a lock.
type locked struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

var (
	inputTokens  = regexp.MustCompile(`"input_tokens"\s*:\s*(\d+)`)
	cachedTokens = regexp.MustCompile(`"cached_tokens"\s*:\s*(\d+)`)
)

// read returns what was recorded.
func (t *tape) read() (requests []request, input, cached int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range t.asked {
		var r request
		if err := json.Unmarshal(b, &r); err != nil {
			return nil, 0, 0, fmt.Errorf("reading a request: %w", err)
		}
		requests = append(requests, r)
	}
	for _, b := range t.answered {
		input += last(inputTokens, b.Bytes())
		cached += last(cachedTokens, b.Bytes())
	}
	return requests, input, cached, nil
}

// last is the number that an answer gives last, which counts.
func last(what *regexp.Regexp, b []byte) int {
	all := what.FindAllSubmatch(b, -1)
	if len(all) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(string(all[len(all)-1][1]))
	return n
}
