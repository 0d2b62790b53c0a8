package llmtest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// A format is one API. To add one, write its check and its encoder in a file
// of its own and put it into formats.
type format struct {
	name string
	// serves reports whether a request is for this API.
	serves func(r *http.Request) bool
	// key is the key that a request carries.
	key func(r *http.Request) string
	// headers, when not nil, applies the API's rules to the headers.
	headers func(h http.Header) *refusal
	// check applies the API's rules to the body.
	check func(body []byte, s *Script) *refusal
	// model is the model in the path, for an API that has it there; else nil.
	model func(path string) string
	// refuse writes an error as the API does.
	refuse func(w http.ResponseWriter, r *refusal)
	// answer streams a turn.
	answer func(out *stream, t *Turn, r *http.Request)
	// models is the answer to a question for the models; nil when path is none.
	models func(path string, names []string) []byte
}

var formats = []format{gemini3, gemini2, anthropic, chat, responses}

// refusal is why an API does not answer.
type refusal struct {
	status  int
	code    string
	message string
}

func bad(format string, a ...any) *refusal {
	return &refusal{status: http.StatusBadRequest, code: "invalid_request_error", message: fmt.Sprintf(format, a...)}
}

// A Request is what the server was asked.
type Request struct {
	Format string
	Path   string
	Header http.Header
	Body   string
	// Gone is closed when the client has gone or the answer is written.
	Gone chan struct{}
}

// A Server answers from a script. It is safe for concurrent use; requests are
// answered in the order in which they come.
type Server struct {
	script *Script

	mu       sync.Mutex
	next     int
	requests []*Request
	told     bool // that descriptions are too long
	faults   []error

	http *http.Server
	URL  string // http://127.0.0.1:PORT, without a version
	done chan struct{}
}

// Listen starts a server on a port of the loopback interface.
func Listen(script *Script) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the scripted server: %w", err)
	}
	s := &Server{script: script, URL: "http://" + l.Addr().String(), done: make(chan struct{})}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l) // ends with Close
	}()
	return s, nil
}

// Close ends the server and its connections.
func (s *Server) Close() {
	_ = s.http.Close()
	<-s.done
}

// Requests returns what was asked so far.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Err says what did not go as the script has it: requests that broke a rule or
// a want, that came after the end, and turns that were not asked for.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	faults := slices.Clone(s.faults)
	if n := len(s.script.Turns) - s.next; n > 0 {
		faults = append(faults, fmt.Errorf("the last %d turns of the script were not asked for, from %q on", n, s.script.Turns[s.next].Name))
	}
	return errors.Join(faults...)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := find(r)
	if f == nil {
		s.fault(fmt.Errorf("no API at %s %s", r.Method, r.URL.Path))
		http.NotFound(w, r)
		return
	}
	if s.script.Key != "" && f.key(r) != s.script.Key {
		f.refuse(w, &refusal{http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided."})
		return
	}
	if r.Method == http.MethodGet {
		if list := f.models(r.URL.Path, s.script.Models); list != nil {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(list)
			return
		}
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.fault(fmt.Errorf("reading a request: %w", err))
		return
	}
	req := &Request{Format: f.name, Path: r.URL.Path, Header: r.Header.Clone(), Body: string(body), Gone: make(chan struct{})}
	defer close(req.Gone)
	t, no := s.take(f, req)
	if no != nil {
		f.refuse(w, no)
		return
	}
	s.answer(w, r, f, t)
}

func find(r *http.Request) *format {
	for i := range formats {
		if formats[i].serves(r) {
			return &formats[i]
		}
	}
	return nil
}

func (s *Server) fault(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, err)
}

// take checks a request and returns the turn that answers it.
func (s *Server) take(f *format, r *Request) (*Turn, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	n := len(s.requests)
	if s.script.Limit > 0 && len(r.Body) > s.script.Limit {
		return nil, &refusal{http.StatusRequestEntityTooLarge, "request_too_large", "Request exceeds the maximum size"}
	}
	if f.model != nil && len(s.script.Models) > 0 && !slices.Contains(s.script.Models, f.model(r.Path)) {
		return nil, &refusal{http.StatusNotFound, "NOT_FOUND", fmt.Sprintf("models/%s is not found for API version v1beta, or is not supported for generateContent.", f.model(r.Path))}
	}
	no := f.check([]byte(r.Body), s.script)
	if f.headers != nil && no == nil {
		no = f.headers(r.Header)
	}
	if no != nil {
		once := no.code == tooLong && !s.told
		s.told = s.told || once
		if no.status != http.StatusNotFound && !once { // an unknown model breaks no rule
			s.faults = append(s.faults, fmt.Errorf("request %d: %s", n, no.message))
		}
		return nil, no
	}
	if s.next >= len(s.script.Turns) {
		s.faults = append(s.faults, fmt.Errorf("request %d: the script has no more turns", n))
		return nil, bad("the script has no more turns")
	}
	t := &s.script.Turns[s.next]
	s.next++
	for _, re := range t.Want {
		if !re.MatchString(r.Body) {
			s.faults = append(s.faults, fmt.Errorf("request %d (%s): the body does not match %s", n, t.Name, re))
			return nil, bad("the script wants %s", re)
		}
	}
	for _, re := range t.WantNot {
		if re.MatchString(r.Body) {
			s.faults = append(s.faults, fmt.Errorf("request %d (%s): the body matches %s", n, t.Name, re))
			return nil, bad("the script does not want %s", re)
		}
	}
	return t, nil
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, f *format, t *Turn) {
	w.Header().Set("Content-Type", "text/event-stream")
	if t.HasBody {
		w.Header().Set("Content-Type", "application/json")
	}
	for _, h := range t.Header {
		w.Header().Set(h[0], h[1])
	}
	if t.Status != 0 {
		w.WriteHeader(t.Status)
	}
	switch {
	case t.HasBody:
		_, _ = io.WriteString(w, t.Body)
	case t.HasRaw:
		out := newStream(w)
		out.write(t.Raw)
		for _, step := range t.Steps {
			out.pause(step, r)
		}
	default:
		f.answer(newStream(w), t, r)
	}
}

// A stream writes events and flushes each.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func newStream(w http.ResponseWriter) *stream {
	return &stream{w, http.NewResponseController(w)}
}

func (o *stream) write(s string) {
	_, _ = io.WriteString(o.w, s) // the client may have gone
	_ = o.control.Flush()
}

// event writes one event; without a name only its data.
func (o *stream) event(name, data string) {
	if name != "" {
		name = "event: " + name + "\n"
	}
	o.write(name + "data: " + data + "\n\n")
}

// pause does what cut and hang say.
func (o *stream) pause(s Step, r *http.Request) {
	switch {
	case s.Cut:
		panic(http.ErrAbortHandler) // closes the connection without an end
	case s.Hang:
		<-r.Context().Done()
	}
}

// bearer is the key of an Authorization header.
func bearer(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

// Check applies the rules of a format to the body of a request, without a
// server.
func (s *Script) Check(formatName string, body []byte) error {
	for _, f := range formats {
		if f.name != formatName {
			continue
		}
		if no := f.check(body, s); no != nil {
			return fmt.Errorf("HTTP %d: %s", no.status, no.message)
		}
		return nil
	}
	return fmt.Errorf("no format %q", formatName)
}
