package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// The messages of OTLP in their JSON form: the ids are hexadecimal, 64-bit numbers
// are strings.

type traces struct {
	ResourceSpans []resourceSpans `json:"resourceSpans"`
}

type resourceSpans struct {
	Resource   resource     `json:"resource"`
	ScopeSpans []scopeSpans `json:"scopeSpans"`
}

type resource struct {
	Attributes []attribute `json:"attributes"`
}

type scopeSpans struct {
	Scope scope      `json:"scope"`
	Spans []wireSpan `json:"spans"`
}

type scope struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

type wireSpan struct {
	TraceID    string      `json:"traceId"`
	SpanID     string      `json:"spanId"`
	ParentID   string      `json:"parentSpanId,omitempty"`
	Name       string      `json:"name"`
	Kind       int         `json:"kind"`
	Start      string      `json:"startTimeUnixNano"`
	End        string      `json:"endTimeUnixNano"`
	Attributes []attribute `json:"attributes"`
	Status     status      `json:"status"`
}

type status struct {
	Code    int    `json:"code,omitempty"` // 2: error
	Message string `json:"message,omitempty"`
}

type attribute struct {
	Key   string `json:"key"`
	Value value  `json:"value"`
}

type value struct {
	Text   *string `json:"stringValue,omitempty"`
	Number *string `json:"intValue,omitempty"`
	Truth  *bool   `json:"boolValue,omitempty"`
	List   *list   `json:"arrayValue,omitempty"`
}

type list struct {
	Values []value `json:"values"`
}

const (
	kindInternal = 1
	kindClient   = 3
	statusError  = 2
)

// maxText bounds the text of an attribute, in bytes.
const maxText = 1024

func (s *span) add(key string, v value) { s.attributes = append(s.attributes, attribute{key, v}) }

// text adds an attribute; an empty one is left out.
func (s *span) text(key, v string) {
	if v == "" {
		return
	}
	if len(v) > maxText {
		v = v[:maxText]
	}
	v = string(bytes.ToValidUTF8([]byte(v), nil))
	s.add(key, value{Text: &v})
}

func (s *span) number(key string, v int64) {
	text := strconv.FormatInt(v, 10)
	s.add(key, value{Number: &text})
}

func (s *span) truth(key string, v bool) { s.add(key, value{Truth: &v}) }

func (s *span) list(key, v string) { s.add(key, value{List: &list{[]value{{Text: &v}}}}) }

// wire is the span as it is sent.
func (s *span) wire(trace string) wireSpan {
	w := wireSpan{TraceID: trace, SpanID: s.id, ParentID: s.parent, Name: s.name, Kind: kindInternal, Attributes: s.attributes,
		Start: strconv.FormatInt(s.start.UnixNano(), 10), End: strconv.FormatInt(s.finish.UnixNano(), 10)}
	if s.client {
		w.Kind = kindClient
	}
	if s.fault != "" {
		w.Status = status{statusError, s.fault}
		w.Attributes = append(slices.Clip(w.Attributes), attribute{"error.type", value{Text: &s.fault}})
	}
	return w
}

// send sends what is queued until the Exporter stops. Then the request under way
// goes on; what ends that is ctx.
func (x *Exporter) send(ctx context.Context) {
	defer close(x.done)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-x.stop:
			return
		case <-tick.C:
		case <-x.wake:
		}
		for !x.stopping() && x.flush(ctx) {
		}
	}
}

func (x *Exporter) stopping() bool {
	select {
	case <-x.stop:
		return true
	default:
		return false
	}
}

// flush sends one batch and reports whether there may be another one to send. A
// batch that is not taken is lost: a collector that is away must not fill the
// memory.
func (x *Exporter) flush(ctx context.Context) (more bool) {
	x.mu.Lock()
	n := min(len(x.queue), batch)
	spans := x.queue[:n:n]
	x.queue = x.queue[n:]
	more = len(x.queue) > 0
	x.mu.Unlock()
	if n == 0 {
		return false
	}
	err := x.post(ctx, spans)
	if err == nil {
		return more
	}
	x.mu.Lock()
	x.lost += n
	tell := !x.told && ctx.Err() == nil
	x.told = x.told || tell
	x.mu.Unlock()
	if tell && x.opt.Failed != nil {
		x.opt.Failed(fmt.Errorf("sending spans to %s: %w", where(x.opt.URL), unaddressed(err)))
	}
	return more
}

func (x *Exporter) post(ctx context.Context, spans []*span) error {
	s := scopeSpans{Scope: scope{"capstan", x.opt.Version}}
	for _, sp := range spans {
		s.Spans = append(s.Spans, sp.wire(x.trace))
	}
	var of span
	for _, key := range slices.Sorted(maps.Keys(x.opt.Resource)) {
		of.text(key, x.opt.Resource[key])
	}
	body, err := json.Marshal(traces{[]resourceSpans{{resource{of.attributes}, []scopeSpans{s}}}})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.opt.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for k, v := range x.opt.Headers {
		req.Header[k] = v
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := x.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answered %s", res.Status)
	}
	return nil
}

// unaddressed takes the address out of the error of a request: it can hold a key.
func unaddressed(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

func errLost(n int) error { return fmt.Errorf("%d spans were not sent: %w", n, errDropped) }
