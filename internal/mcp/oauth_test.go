package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"capstan/internal/tool"
)

// authority is an authorization server and the MCP server that it guards.
type authority struct {
	url string

	mu        sync.Mutex
	refuse    bool   // the person says no
	expires   int    // seconds that tokens live
	revoked   bool   // refresh tokens are of no use
	challenge string // of the login that is going on
	valid     string // the access token that counts
	issued    int
	refreshed int
	page      string // where logins are done, instead of our own
	greets    bool   // anybody may say hello
	calling   string // the scope that a call of a tool takes
	asked     string // the scopes that the last login asked for
}

func newAuthority(t *testing.T) *authority {
	a := &authority{expires: 3600}
	mux := http.NewServeMux()
	reply := func(w http.ResponseWriter, status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, r *http.Request) {
		reply(w, 200, map[string]any{"resource": a.url + "/mcp", "authorization_servers": []string{a.url}})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, r *http.Request) {
		page := a.url + "/authorize"
		if a.page != "" {
			page = a.page
		}
		reply(w, 200, map[string]any{"issuer": a.url, "authorization_endpoint": page, "token_endpoint": a.url + "/token", "registration_endpoint": a.url + "/register",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"}})
	})
	mux.HandleFunc("/register", func(w http.ResponseWriter, r *http.Request) {
		var m map[string]any
		json.NewDecoder(r.Body).Decode(&m)
		m["client_id"] = "client-1"
		reply(w, 201, m)
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		a.mu.Lock()
		defer a.mu.Unlock()
		a.challenge, a.asked = q.Get("code_challenge"), q.Get("scope")
		back := url.Values{"state": {q.Get("state")}, "code": {"code-1"}}
		if a.refuse {
			back = url.Values{"state": {q.Get("state")}, "error": {"access_denied"}, "error_description": {"not today"}}
		}
		if q.Get("client_id") != "client-1" || q.Get("code_challenge_method") != "S256" {
			reply(w, 400, "bad request")
			return
		}
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		switch r.FormValue("grant_type") {
		case "authorization_code":
			sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
			if base64.RawURLEncoding.EncodeToString(sum[:]) != a.challenge || r.FormValue("code") != "code-1" {
				reply(w, 400, map[string]string{"error": "invalid_grant"})
				return
			}
		case "refresh_token":
			if a.revoked || r.FormValue("refresh_token") != fmt.Sprintf("refresh-%d", a.issued) {
				reply(w, 400, map[string]string{"error": "invalid_grant"})
				return
			}
			a.refreshed++
		}
		a.issued++
		a.valid = fmt.Sprintf("access-%d", a.issued)
		reply(w, 200, map[string]any{"access_token": a.valid, "token_type": "Bearer", "expires_in": a.expires, "refresh_token": fmt.Sprintf("refresh-%d", a.issued)})
	})
	guarded := streamable(t)
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		var m struct{ Method string }
		_ = json.Unmarshal(body, &m)
		a.mu.Lock()
		ok := a.valid != "" && r.Header.Get("Authorization") == "Bearer "+a.valid || a.greets && (m.Method == "initialize" || m.Method == "notifications/initialized")
		scoped := m.Method != "tools/call" || a.calling == "" || strings.Contains(a.asked, a.calling)
		a.mu.Unlock()
		if ok && !scoped {
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+a.calling+`"`)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if !ok {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+a.url+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		guarded.ServeHTTP(w, r)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	a.url = s.URL
	return a
}

// browse is a browser that does what it is told.
func browse(address string) error {
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Get(address)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		return errors.New(resp.Status)
	}
	return nil
}

func TestLogin(t *testing.T) {
	a := newAuthority(t)
	file := filepath.Join(t.TempDir(), "state", "logins.json")
	logins := NewLogins(file)
	c := httpServer("web", a.url+"/mcp")

	// Without a login the server is missing, and says what to do.
	r := newRig(t, Options{Logins: logins}, c)
	if m := r.Wait(r.ctx); len(m) != 1 || !strings.Contains(m[0].Why, "run `capstan mcp login web`") {
		t.Errorf("%v", m)
	}
	r.Close()

	a.expires = 1 // so that it is refreshed for the first request
	if err := logins.Login(testContext(t), c, os.LookupEnv, browse); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	r = newRig(t, Options{Logins: NewLogins(file)}, c)
	r.ready()
	if got := r.call("mcp__web__echo", `{"text":"hi"}`).Text(); got != "hi" {
		t.Errorf("%q", got)
	}
	if a.refreshed == 0 {
		t.Error("the token was never refreshed")
	}
	// The token is for this address only.
	if _, ok, err := logins.get("web", "http://elsewhere/mcp"); ok || err != nil {
		t.Errorf("another address got the token (%v)", err)
	}

	// Revoked: the call says so, and what to do.
	a.mu.Lock()
	a.revoked, a.valid = true, "none"
	a.mu.Unlock()
	res := r.call("mcp__web__echo", `{"text":"hi"}`)
	if res.Code != tool.CodeFailed || !strings.Contains(res.Text(), "its login has expired or was revoked (HTTP 401); log in again with `capstan mcp login web`") {
		t.Errorf("%+v", res)
	}
	if was, err := logins.Remove("web"); !was || err != nil {
		t.Errorf("remove: %v, %v", was, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); len(left) != 1 {
		t.Errorf("files are left: %v", left)
	}
}

// A server that lets anybody say hello, and that wants more of a login for a
// call than for a list.
func TestLoginStepsUp(t *testing.T) {
	a := newAuthority(t)
	a.greets, a.calling = true, "write"
	file := filepath.Join(t.TempDir(), "logins.json")
	c := httpServer("web", a.url+"/mcp")
	if err := NewLogins(file).Login(testContext(t), c, os.LookupEnv, browse); err != nil {
		t.Fatal(err)
	}
	call := func() *tool.Result {
		r := newRig(t, Options{Logins: NewLogins(file)}, c)
		defer r.Close()
		r.ready()
		return r.call("mcp__web__echo", `{"text":"hi"}`)
	}
	if res := call(); res.Code != tool.CodeFailed || !strings.Contains(res.Text(), "its login may not do this (HTTP 403): that takes the scope write; log in again with `capstan mcp login web`") {
		t.Errorf("%+v", res)
	}
	if err := NewLogins(file).Login(testContext(t), c, os.LookupEnv, browse); err != nil {
		t.Fatal(err)
	}
	if a.asked != "write" {
		t.Errorf("the second login asked for %q", a.asked)
	}
	if got := call().Text(); got != "hi" {
		t.Errorf("%q", got)
	}
}

// What a server says that a login needs is put into an address.
func TestWantedScopes(t *testing.T) {
	for header, want := range map[string][]string{
		`Bearer error="insufficient_scope", scope="a b:c"`:                            {"a", "b:c"},
		`Bearer error="insufficient_scope"`:                                           {},
		`Bearer error="invalid_token", scope="a"`:                                     nil,
		`Basic realm="x"`:                                                             nil,
		`Bearer error="insufficient_scope", scope="aé"`:                               nil,
		`Bearer error="insufficient_scope", scope="` + strings.Repeat("x", 201) + `"`: nil,
		`Bearer error="insufficient_scope", scope="` + strings.Repeat("x ", 51) + `"`: nil,
		`Bearer error="insufficient_scope", scope="a` + "\x01" + `"`:                  nil,
		`Bearer error="insufficient_scope`:                                            nil,
	} {
		got := wantedScopes(&http.Response{Header: http.Header{"Www-Authenticate": {header}}})
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", header, diff)
		}
	}
}

func TestLoginsThatFail(t *testing.T) {
	login := func(t *testing.T, c Config, open func(string) error) error {
		l := NewLogins(filepath.Join(t.TempDir(), "logins.json"))
		ctx, cancel := context.WithTimeoutCause(testContext(t), 10*time.Second, errors.New("time is up"))
		defer cancel()
		err := l.Login(ctx, c, os.LookupEnv, open)
		if _, ok, _ := l.get(c.Name, c.URL); ok {
			t.Error("a token was saved")
		}
		return err
	}
	a := newAuthority(t)
	web := httpServer("web", a.url+"/mcp")
	t.Run("refused", func(t *testing.T) {
		a.refuse = true
		if err := login(t, web, browse); err == nil || !strings.Contains(err.Error(), "the login was refused: access_denied not today") {
			t.Errorf("%v", err)
		}
		a.refuse = false
	})
	t.Run("no browser", func(t *testing.T) {
		if err := login(t, web, func(string) error { return errors.New("no display") }); err == nil || !strings.Contains(err.Error(), "opening the browser: no display") {
			t.Errorf("%v", err)
		}
	})
	t.Run("a forged answer", func(t *testing.T) {
		forge := func(address string) error {
			u, _ := url.Parse(address)
			back := u.Query().Get("redirect_uri")
			if err := browse(back + "?code=evil&state=made-up"); err == nil || err.Error() != "404 Not Found" {
				t.Errorf("the forged answer: %v", err)
			}
			return browse(address)
		}
		a.refuse = true
		if err := login(t, web, forge); err == nil || !strings.Contains(err.Error(), "access_denied") {
			t.Errorf("%v", err)
		}
		a.refuse = false
	})
	t.Run("a page that is none", func(t *testing.T) {
		a.page = "file:///etc/passwd"
		defer func() { a.page = "" }()
		if err := login(t, web, func(string) error { t.Error("it was opened"); return nil }); err == nil {
			t.Error("no error")
		}
	})
	t.Run("no login wanted", func(t *testing.T) {
		if err := login(t, httpServer("open", serve(t, streamable(t))), browse); err == nil || !strings.Contains(err.Error(), "it does not ask for a login") {
			t.Errorf("%v", err)
		}
	})
	t.Run("stdio", func(t *testing.T) {
		if err := login(t, stdioServer("s", "ok"), browse); err == nil || !strings.Contains(err.Error(), "only servers of type http") {
			t.Errorf("%v", err)
		}
	})
}

func TestLoginsFileOfOthers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "logins.json")
	os.WriteFile(file, []byte(`{}`), 0o644)
	if _, _, err := NewLogins(file).get("a", "b"); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("%v", err)
	}
	os.Chmod(file, 0o600)
	os.WriteFile(file, []byte(`{`), 0o600)
	if _, _, err := NewLogins(file).get("a", "b"); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("%v", err)
	}
}
