package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"capstan/internal/agent"
	"capstan/internal/llm"
	"capstan/internal/msg"
	"capstan/internal/sched"
	"capstan/internal/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A collector keeps what it is sent.
type collector struct {
	*httptest.Server
	bodies chan []byte
	header chan http.Header
}

func newCollector(t *testing.T, code int) *collector {
	t.Helper()
	c := &collector{bodies: make(chan []byte, 100), header: make(chan http.Header, 100)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		c.bodies <- b
		c.header <- r.Header
		if code == http.StatusTemporaryRedirect {
			w.Header().Set("Location", "http://"+r.Host+"/elsewhere")
		}
		w.WriteHeader(code)
	}))
	t.Cleanup(c.Close)
	return c
}

// plain is a value as Go has it.
func (v value) plain() any {
	switch {
	case v.Text != nil:
		return *v.Text
	case v.Number != nil:
		return "#" + *v.Number
	case v.Truth != nil:
		return *v.Truth
	}
	var all []any
	for _, x := range v.List.Values {
		all = append(all, x.plain())
	}
	return all
}

// seen is a span as a test compares it: ids are replaced by names.
type seen struct {
	Name, Parent string
	Kind         int
	Fault        string
	Attributes   map[string]any
}

// TestSpans is a run with a request, a program with a nested call that a person
// allowed and one that was refused: the spans, their parents and attributes.
//
// S0-256
func TestSpans(t *testing.T) {
	c := newCollector(t, http.StatusOK)
	x := New(Options{URL: c.URL, Headers: http.Header{"Authorization": {"Bearer k"}}, Resource: map[string]string{"service.name": "capstan", "a": "b"},
		Version: "v1", Session: "s-1", Provider: "openai", Model: "m", Failed: func(err error) { t.Error(err) }})
	exec := &tool.Call{ID: "c1", Name: "exec", Source: tool.FromModel}
	nested := &tool.Call{ID: "c1/1", ParentID: "c1", Name: "edit", Source: tool.FromProgram, Agent: "agent_1"}
	refused := &tool.Call{ID: "c1/2", ParentID: "c1", Name: "nope", Source: tool.FromProgram}
	now := time.Now()
	call := func(e sched.Event) agent.Event {
		e.Time = now
		return agent.Called{Event: e}
	}
	for _, e := range []agent.Event{
		agent.Asked{PromptID: "p1", Turn: 1},
		agent.Answered{PromptID: "p1", Finish: llm.FinishCalls, Usage: msg.Usage{Input: 7, Output: 3}},
		call(sched.Event{Kind: sched.Started, Call: exec}),
		call(sched.Event{Kind: sched.Decided, Call: exec, Decided: &sched.Judgement{Allowed: true, Stage: sched.StageRules, Rules: sched.Verdict{By: "mode"}}}),
		call(sched.Event{Kind: sched.Started, Call: nested}),
		call(sched.Event{Kind: sched.Decided, Call: nested, Decided: &sched.Judgement{Allowed: true, Stage: sched.StagePerson, Rules: sched.Verdict{By: "mode"}, Asked: &sched.Question{}, Answer: &sched.Answer{By: "the user"}, Waited: time.Second}}),
		call(sched.Event{Kind: sched.Settled, Call: refused, Result: &tool.Result{Status: tool.Failed, Code: tool.CodeUnknownTool}}),
		call(sched.Event{Kind: sched.Settled, Call: nested, Result: &tool.Result{Status: tool.Success, Parts: []msg.Part{msg.TextPart("secret")}}}),
		call(sched.Event{Kind: sched.Settled, Call: exec, Result: &tool.Result{Status: tool.Success}}),
		agent.Asked{PromptID: "p2", Turn: 2},
		agent.Ended{Outcome: &agent.Outcome{Reason: agent.Failed, Err: errors.New("no"), Usage: msg.Usage{Input: 7, Output: 3}}},
	} {
		x.Event(e)
	}
	x.Close(t.Context())
	var sent traces
	body := <-c.bodies
	if err := json.Unmarshal(body, &sent); err != nil || strings.Contains(string(body), "secret") {
		t.Fatalf("%v: %s", err, body)
	}
	if h := <-c.header; h.Get("Authorization") != "Bearer k" || h.Get("Content-Type") != "application/json" {
		t.Error(h)
	}
	r := sent.ResourceSpans[0]
	if diff := cmp.Diff(scope{"capstan", "v1"}, r.ScopeSpans[0].Scope); diff != "" || len(r.Resource.Attributes) != 2 {
		t.Error(diff, r.Resource)
	}
	names := map[string]string{}
	for _, s := range r.ScopeSpans[0].Spans {
		names[s.SpanID] = s.Name
		if len(s.TraceID) != 32 || len(s.SpanID) != 16 || s.Start == "" || s.End < s.Start {
			t.Errorf("%+v", s)
		}
	}
	var got []seen
	for _, s := range r.ScopeSpans[0].Spans {
		one := seen{s.Name, names[s.ParentID], s.Kind, s.Status.Message, map[string]any{}}
		for _, a := range s.Attributes {
			one.Attributes[a.Key] = a.Value.plain()
		}
		got = append(got, one)
	}
	base := func(op string, more map[string]any) map[string]any {
		m := map[string]any{"gen_ai.operation.name": op, "gen_ai.conversation.id": "s-1"}
		for k, v := range more {
			m[k] = v
		}
		return m
	}
	used := func(name, id, source string, more map[string]any) map[string]any {
		m := base("execute_tool", more)
		m["gen_ai.tool.name"], m["gen_ai.tool.type"], m["gen_ai.tool.call.id"], m["capstan.call.source"] = name, "function", id, source
		return m
	}
	want := []seen{
		{"chat m", "invoke_agent capstan", 3, "", base("chat", map[string]any{"gen_ai.provider.name": "openai", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": "#7", "gen_ai.usage.output_tokens": "#3", "gen_ai.response.finish_reasons": []any{string(llm.FinishCalls)}})},
		{"execute_tool nope", "execute_tool exec", 1, "UNKNOWN_TOOL", used("nope", "c1/2", "code_mode", map[string]any{"capstan.call.parent_id": "c1", "capstan.call.status": "error", "error.type": "UNKNOWN_TOOL"})},
		{"execute_tool edit", "execute_tool exec", 1, "", used("edit", "c1/1", "code_mode", map[string]any{"capstan.call.parent_id": "c1", "capstan.call.agent": "agent_1", "capstan.call.status": "success",
			"capstan.decision.allowed": true, "capstan.decision.stage": "person", "capstan.decision.by": "the user", "capstan.decision.answered_by": "the user", "capstan.decision.wait_ms": "#1000"})},
		{"execute_tool exec", "invoke_agent capstan", 1, "", used("exec", "c1", "model", map[string]any{"capstan.call.status": "success",
			"capstan.decision.allowed": true, "capstan.decision.stage": "rules", "capstan.decision.by": "mode"})},
		{"chat m", "invoke_agent capstan", 3, "failed", base("chat", map[string]any{"gen_ai.provider.name": "openai", "gen_ai.request.model": "m", "error.type": "failed"})},
		{"invoke_agent capstan", "", 1, "failed", base("invoke_agent", map[string]any{"gen_ai.agent.name": "capstan", "gen_ai.usage.input_tokens": "#7", "gen_ai.usage.output_tokens": "#3", "capstan.run.reason": "failed", "error.type": "failed"})},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

// settle makes n spans.
func settle(x *Exporter, n int) {
	for range n {
		x.Event(agent.Called{Event: sched.Event{Kind: sched.Settled, Time: time.Now(), Call: &tool.Call{ID: "c", Name: "t"}, Result: &tool.Result{Status: tool.Success}}})
	}
}

// A collector that refuses, redirects or is away costs its spans only: it is told
// of once, with how many were lost in the end, and nothing waits.
func TestCollectorFails(t *testing.T) {
	away := httptest.NewServer(nil)
	away.Close()
	for name, url := range map[string]string{"refuses": newCollector(t, http.StatusServiceUnavailable).URL, "redirects": newCollector(t, http.StatusTemporaryRedirect).URL, "is away": away.URL} {
		var told []string
		x := New(Options{URL: url, Failed: func(err error) { told = append(told, err.Error()) }})
		settle(x, batch+1)
		x.Close(t.Context())
		if len(told) != 2 || !strings.Contains(told[0], url) || !strings.HasPrefix(told[1], "257 spans were not sent") {
			t.Errorf("%s: %q", name, told)
		}
	}
}

// A collector that never answers does not hold up the end, and what waits for it
// is bounded.
func TestCollectorHangs(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	defer close(release)
	var told []string
	x := New(Options{URL: s.URL, Failed: func(err error) { told = append(told, err.Error()) }})
	settle(x, maxQueue+2*batch)
	x.mu.Lock()
	if len(x.queue) > maxQueue {
		t.Errorf("%d spans wait", len(x.queue))
	}
	x.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x.Close(ctx)
	if len(told) != 1 || !strings.Contains(told[0], "4608 spans were not sent") {
		t.Errorf("%q", told)
	}
}

// A request that is under way at the end is let finish: a collector that is well
// loses nothing, also not what comes after that request.
func TestCloseWaits(t *testing.T) {
	arrived, release := make(chan struct{}, 10), make(chan struct{})
	var got atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		arrived <- struct{}{}
		<-release
		got.Add(int64(strings.Count(string(b), `"spanId"`)))
	}))
	defer s.Close()
	x := New(Options{URL: s.URL, Failed: func(err error) { t.Error(err) }})
	settle(x, batch)
	<-arrived
	settle(x, 3)
	done := make(chan struct{})
	go func() {
		defer close(done)
		x.Close(t.Context())
	}()
	<-x.stop
	close(release)
	<-done
	if got.Load() != batch+3 {
		t.Errorf("%d spans came", got.Load())
	}
}

// Of the collector's address an error shows the host only: the rest can hold a key.
func TestAddressUnshown(t *testing.T) {
	away := httptest.NewServer(nil)
	away.Close()
	refuses := newCollector(t, http.StatusForbidden).URL
	for _, base := range []string{away.URL, refuses} {
		var told []string
		x := New(Options{URL: strings.Replace(base, "://", "://u:hunter1@", 1) + "/hunter2?api_key=hunter3", Failed: func(err error) { told = append(told, err.Error()) }})
		settle(x, batch)
		x.Close(t.Context())
		if all := strings.Join(told, "\n"); strings.Contains(all, "hunter") || strings.Contains(all, "api_key") || !strings.HasPrefix(all, "sending spans to "+base+": ") {
			t.Errorf("%q", all)
		}
	}
	for _, address := range []string{"ftp://u:hunter2@c/hunter2?k=hunter2", "hunter2", "http://c:hunter2/%zz", "http://[hunter2", "//c?hunter2"} {
		for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
			_, _, err := FromEnv(func(k string) string { return map[string]string{name: address}[k] })
			if err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v", address, err)
			}
		}
	}
}

// The requests of subagents are spans of their own, below the call that each works
// for, also when two are under way at once; what ends in a subagent is not the run.
//
// S0-256
func TestDelegatedSpans(t *testing.T) {
	c := newCollector(t, http.StatusOK)
	x := New(Options{URL: c.URL, Session: "s-1", Provider: "openai", Model: "m", Failed: func(err error) { t.Error(err) }})
	call := &tool.Call{ID: "c1", Name: "agent", Source: tool.FromModel}
	of := func(id string, e agent.Event) agent.Event {
		return agent.Delegated{Agent: id, Kind: "reviewer", Call: "c1", Event: e}
	}
	finished := &agent.Outcome{Reason: agent.Finished}
	for _, e := range []agent.Event{
		agent.Asked{}, agent.Answered{Finish: llm.FinishCalls, Usage: msg.Usage{Input: 1}},
		agent.Called{Event: sched.Event{Kind: sched.Started, Time: time.Now(), Call: call}},
		of("a1", agent.Asked{}), of("a2", agent.Asked{}),
		of("a1", agent.Answered{Finish: llm.FinishStop, Usage: msg.Usage{Input: 2}}),
		of("a2", agent.Answered{Finish: llm.FinishStop, Usage: msg.Usage{Input: 3}}),
		of("a1", agent.Ended{Outcome: finished}),
		of("a2", agent.Asked{}), of("a2", agent.Ended{Outcome: &agent.Outcome{Reason: agent.Failed}}),
		agent.Called{Event: sched.Event{Kind: sched.Settled, Time: time.Now(), Call: call, Result: &tool.Result{Status: tool.Success}}},
		agent.Asked{}, agent.Answered{Finish: llm.FinishStop, Usage: msg.Usage{Input: 4}},
		agent.Ended{Outcome: finished},
	} {
		x.Event(e)
	}
	x.Close(t.Context())
	var sent traces
	if err := json.Unmarshal(<-c.bodies, &sent); err != nil {
		t.Fatal(err)
	}
	spans := sent.ResourceSpans[0].ScopeSpans[0].Spans
	names := map[string]string{}
	for _, s := range spans {
		names[s.SpanID] = s.Name
	}
	var got []string
	for _, s := range spans {
		line := s.Name + " < " + names[s.ParentID]
		for _, a := range s.Attributes {
			if a.Key == "capstan.call.agent" || a.Key == "gen_ai.usage.input_tokens" || a.Key == "error.type" {
				line += fmt.Sprint(" ", a.Value.plain())
			}
		}
		got = append(got, line)
	}
	want := []string{
		"chat m < invoke_agent capstan #1", "chat < execute_tool agent a1 #2", "chat < execute_tool agent a2 #3", "chat < execute_tool agent a2 failed",
		"execute_tool agent < invoke_agent capstan", "chat m < invoke_agent capstan #4", "invoke_agent capstan <  #0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

// TestFromEnv is the standard variables, and what is wrong with some.
func TestFromEnv(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for _, tc := range []struct {
		env   map[string]string
		want  Options
		ok    bool
		fault string
	}{
		{env: nil},
		{env: map[string]string{endpoint: "http://c:4318/", "OTEL_SDK_DISABLED": "true"}},
		{env: map[string]string{endpoint: "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}},
		{env: map[string]string{endpoint: "http://c:4318/x/"}, ok: true,
			want: Options{URL: "http://c:4318/x/v1/traces", Headers: http.Header{}, Resource: map[string]string{"service.name": "capstan"}}},
		{env: map[string]string{endpoint: "http://c:4318", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://t/traces", "OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b, x=", "OTEL_EXPORTER_OTLP_TIMEOUT": "250",
			"OTEL_SERVICE_NAME": "mine", "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=ci,service.name=other"}, ok: true,
			want: Options{URL: "https://t/traces", Timeout: 250 * time.Millisecond, Headers: http.Header{"Api-Key": {"a b"}, "X": {""}}, Resource: map[string]string{"service.name": "mine", "deployment.environment": "ci"}}},
		{env: map[string]string{endpoint: "localhost:4318"}, fault: "no address such as"},
		{env: map[string]string{endpoint: "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, fault: "only http/json"},
		{env: map[string]string{endpoint: "http://c", "OTEL_EXPORTER_OTLP_TIMEOUT": "10s"}, fault: "want milliseconds"},
		{env: map[string]string{endpoint: "http://c", "OTEL_EXPORTER_OTLP_HEADERS": "a=b,hunter2"}, fault: "entry 2 is not name=value"},
		{env: map[string]string{endpoint: "http://c", "OTEL_EXPORTER_OTLP_HEADERS": "a=b%0d%0ac: d"}, fault: "entry 1"},
		{env: map[string]string{endpoint: "http://c", "OTEL_RESOURCE_ATTRIBUTES": "a"}, fault: "OTEL_RESOURCE_ATTRIBUTES"},
	} {
		got, ok, err := FromEnv(func(k string) string { return tc.env[k] })
		if tc.fault != "" {
			if err == nil || ok || !strings.Contains(err.Error(), tc.fault) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v: %v", tc.env, err)
			}
			continue
		}
		if err != nil || ok != tc.ok {
			t.Errorf("%v: %t %v", tc.env, ok, err)
		}
		if !ok {
			got = Options{}
		}
		if diff := cmp.Diff(tc.want, got, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Failed" }, cmp.Ignore())); diff != "" {
			t.Errorf("%v: %s", tc.env, diff)
		}
	}
}
