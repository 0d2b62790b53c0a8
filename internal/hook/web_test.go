package hook

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"capstan/internal/sched"
)

// What an HTTP hook can answer. Its status alone blocks nothing.
func TestHTTP(t *testing.T) {
	var elsewhere int
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	deny := `{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var in map[string]any
		if r.Method != http.MethodPost || json.Unmarshal(body, &in) != nil || in["tool_name"] != "Bash" || r.Header.Get("Content-Type") != "application/json" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		switch r.URL.Path {
		case "/deny", "/same":
			fmt.Fprint(w, deny)
		case "/header":
			fmt.Fprintf(w, `{"decision": "block", "reason": %q}`, r.Header.Get("Authorization")+"|"+r.Header.Get("X-Other"))
		case "/words":
			fmt.Fprint(w, "fine")
		case "/empty":
		case "/teapot":
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, deny)
		case "/broken":
			fmt.Fprint(w, `{"decision"`)
		case "/invalid":
			fmt.Fprint(w, "{\"decision\": \"block\", \"reason\": \"a\xffb\"}")
		case "/huge":
			fmt.Fprintf(w, `{"reason": "%s"}`, strings.Repeat("x", maxOutput))
		case "/endless":
			for {
				if _, err := w.Write([]byte(strings.Repeat("x", 1<<16))); err != nil {
					return
				}
			}
		case "/hangs":
			<-r.Context().Done()
		case "/cut":
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "{")
		case "/elsewhere":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		case "/here":
			http.Redirect(w, r, "/same", http.StatusPermanentRedirect)
		case "/get":
			http.Redirect(w, r, "/same", http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusTemporaryRedirect)
		}
	}))
	defer server.Close()
	no := sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Deny, Reason: "no"}}
	for _, tc := range []struct {
		path, more string
		want       sched.HookVerdict
		notice     string
	}{
		{path: "/deny", want: no},
		{path: "/header", more: `, "headers": {"Authorization": "Bearer $TOKEN", "X-Other": "a${HOME}b$TOKEN2"}, "allowedEnvVars": ["TOKEN"]`,
			want: sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Deny, Reason: "Bearer t0ken|ab"}}},
		{path: "/header", more: `, "headers": {"Authorization": "$LINES"}, "allowedEnvVars": ["LINES"]`, notice: "the header Authorization has a line break in the value of a variable"},
		{path: "/words"},
		{path: "/words", more: `, "required": true`, want: sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Deny, Reason: "…"}}, notice: "it printed what is not the JSON of a hook"},
		{path: "/empty"},
		{path: "/empty", more: `, "required": true`},
		{path: "/teapot", notice: "it answered with status 418"},
		{path: "/teapot", more: `, "required": true`, want: sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Deny, Reason: "…"}}, notice: "status 418"},
		{path: "/broken", notice: "its output is not the JSON of a hook"},
		{path: "/invalid", want: sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Deny, Reason: "a\ufffdb"}}},
		{path: "/huge", notice: "its answer has more than 1048576 bytes"},
		{path: "/endless", notice: "its answer has more than 1048576 bytes"},
		{path: "/hangs", more: `, "timeout": 0.2`, notice: "it did not answer within 200ms"},
		{path: "/hangs", more: `, "timeout": 0.2, "required": true`, want: sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Deny, Reason: "…"}}, notice: "within 200ms"},
		{path: "/cut", notice: "unexpected EOF"},
		{path: "/elsewhere", notice: "it redirects to another host"},
		{path: "/here", want: no},
		{path: "/get", notice: "it redirects in a way that drops the request"},
		{path: "/round", notice: "it redirects more than three times"},
	} {
		t.Run(tc.path, func(t *testing.T) {
			r := newHTTPRig(t, server.URL+tc.path+"?key=s3cret", tc.more)
			r.env["TOKEN"], r.env["TOKEN2"], r.env["HOME"], r.env["LINES"] = "t0ken", "x", "x", "a\r\nX-Evil: 1"
			got, err := r.Before(t.Context(), request(t, "run_shell_command", `{"command":"x"}`))
			if err != nil {
				t.Fatal(err)
			}
			if tc.want.Reason == "…" {
				got.Reason = "…"
			}
			if d := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(sched.Verdict{}, "By")); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			told := r.notices()
			if tc.notice == "" && told != "" || !strings.Contains(told, tc.notice) || strings.Contains(told, "s3cret") {
				t.Errorf("told %q, want %q", told, tc.notice)
			}
		})
	}
	if elsewhere != 0 {
		t.Error("what the hook was told went to another host")
	}
	server.Close()
	r := newHTTPRig(t, server.URL+"/deny", "")
	got, err := r.Before(t.Context(), request(t, "run_shell_command", `{"command":"x"}`))
	if err != nil || !cmp.Equal(got, sched.HookVerdict{}) || !strings.Contains(r.notices(), "asking it: dial tcp") {
		t.Errorf("%+v %v %q", got, err, r.notices())
	}
}

// newHTTPRig takes warnings of the setting, which another test looks at.
func newHTTPRig(t *testing.T, url, more string) *rig {
	t.Helper()
	r := newRig(t, `{}`)
	setting := fmt.Sprintf(`{"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "http", "url": %q%s}]}]}`, url, more)
	h, _, err := Parse([]Source{{Value: json.RawMessage(setting), Where: where}})
	if err != nil {
		t.Fatal(err)
	}
	r.hooks = h
	return r
}

// FuzzUnderstand: whatever a hook prints is understood or refused, never trusted
// beyond what an event can say, and fit to be shown.
func FuzzUnderstand(f *testing.F) {
	for _, s := range []string{"", "{}", "words", `{"continue": false}`, `{"decision": "block", "reason": "\u001b[2J"}`,
		`{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"a": 1}}}`,
		`{"hookSpecificOutput": {"decision": {"behavior": "deny", "interrupt": true}}}`, "{\"reason\": \"\xff\"}"} {
		f.Add(s, "PreToolUse")
	}
	f.Fuzz(func(t *testing.T, text, event string) {
		ev := Event(event)
		if _, ok := fires[ev]; !ok {
			ev = PreToolUse
		}
		r := understand(ev, text)
		for _, s := range []string{r.reason, r.message, r.context, r.stop} {
			if clean(s) != s {
				t.Errorf("not clean: %q", s)
			}
		}
		if !judges(ev) && (r.decision != sched.Abstain || r.args != nil) || ev != PostToolUse && r.output != nil {
			t.Errorf("%s says what it cannot: %+v", ev, r)
		}
		if r.args != nil && !json.Valid(r.args) || r.output != nil && !json.Valid(r.output) {
			t.Errorf("not JSON: %s %s", r.args, r.output)
		}
	})
}

// FuzzParse: no setting makes the reader panic, and what it takes can be picked.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{}`, `{"Stop": [{"hooks": [{"type": "command", "command": "a"}]}]}`, `{"PreToolUse": [{"matcher": "^(?!x)(a|b", "hooks": []}]}`, `{"PreToolUse": null}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, _, err := Parse([]Source{{Value: raw, Where: where}})
		if err != nil {
			return
		}
		d := New(h, Options{})
		defer d.Close()
		for _, name := range []string{"edit", "run_shell_command", "x"} {
			for _, p := range d.forTool(PreToolUse, name) {
				if p.h.timeout <= 0 || p.h.command == "" && p.h.url == "" {
					t.Errorf("%+v", p.h)
				}
			}
		}
	})
}

// BenchmarkUnmatched is a call that no hook wants: it costs no process.
func BenchmarkUnmatched(b *testing.B) {
	h, _, err := Parse([]Source{{Value: json.RawMessage(`{"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "false"}]}]}`), Where: where}})
	if err != nil {
		b.Fatal(err)
	}
	d := New(h, Options{})
	defer d.Close()
	q := request(b, "read_file", `{}`)
	b.ReportAllocs()
	for b.Loop() {
		if v, err := d.Before(b.Context(), q); err != nil || v.Decision != sched.Abstain {
			b.Fatal(v, err)
		}
	}
}
