package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// authLimit bounds each request to an authorization server.
const authLimit = 30 * time.Second

// authClient talks to authorization servers, which may be other hosts.
func authClient() *http.Client {
	return &http.Client{Timeout: authLimit, Transport: bounded{http.DefaultTransport}}
}

// bounded reads no more of an answer than any real one has.
type bounded struct{ next http.RoundTripper }

// RoundTrip sends one request.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, 1<<20), resp.Body}
	}
	return resp, err
}

// oauth gives a connection the login that was saved for its server, if any. It
// never begins one: that needs a person (see Login).
func (m *Manager) oauth(c *Config) *savedLogin {
	if m.o.Logins == nil || hasAuthorization(c) {
		return nil
	}
	return &savedLogin{logins: m.o.Logins, server: c.Name, url: c.URL}
}

func hasAuthorization(c *Config) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(c.Headers)), func(name string) bool { return strings.EqualFold(name, "Authorization") })
}

// A savedLogin uses and refreshes what a login has brought.
type savedLogin struct {
	logins      *Logins
	server, url string
}

// TokenSource gives none: the SDK would wait for a new token without end, holding
// up the whole connection. See sign.
func (s *savedLogin) TokenSource(context.Context) (oauth2.TokenSource, error) { return nil, nil }

// sign adds the saved token to a request, refreshed when it has expired. It waits
// no longer than the request does; the refresh ends with life. A login that is of
// no use any more is left out: then the server says so (see Authorize).
func (s *savedLogin) sign(life context.Context, req *http.Request) error {
	token, err := s.logins.fresh(req.Context(), life, s.server, s.url)
	var no *oauth2.RetrieveError
	switch {
	case errors.As(err, &no) && no.ErrorCode == "invalid_grant":
	case err != nil:
		return fmt.Errorf("refreshing its login: %w", err)
	case token != nil:
		req.Header.Set("Authorization", "Bearer "+token.AccessToken)
	}
	return nil
}

// Authorize is called when the server refuses the token, or wants one.
func (s *savedLogin) Authorize(_ context.Context, _ *http.Request, resp *http.Response) error {
	resp.Body.Close()
	_, ok, err := s.logins.get(s.server, s.url)
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusForbidden:
		why := "its login may not do this (HTTP 403)"
		if scopes := wantedScopes(resp); ok && len(scopes) > 0 {
			if err := s.logins.want(s.server, s.url, scopes); err != nil {
				return err
			}
			why = "its login may not do this (HTTP 403): that takes the scope " + strings.Join(scopes, " ")
		}
		return loginError(why + "; log in again with `capstan mcp login " + s.server + "`")
	case ok:
		return loginError("its login has expired or was revoked (HTTP 401); log in again with `capstan mcp login " + s.server + "`")
	}
	return loginError("it wants a login (HTTP 401): run `capstan mcp login " + s.server + "`, or set headers")
}

// wantedScopes are what a refusal says that a login needs. They are the server's
// words: tokens as RFC 6749 has them, and few.
func wantedScopes(resp *http.Response) []string {
	challenges, err := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	if err != nil {
		return nil
	}
	for _, c := range challenges {
		if c.Scheme != "bearer" || c.Params["error"] != "insufficient_scope" {
			continue
		}
		scopes := strings.Fields(c.Params["scope"])
		odd := func(s string) bool {
			return len(s) > 200 || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == '"' || r == '\\' || r > '~' })
		}
		if len(scopes) > 50 || slices.ContainsFunc(scopes, odd) {
			return nil
		}
		return scopes
	}
	return nil
}

// A loginError says that a person has to log in.
type loginError string

func (e loginError) Error() string { return string(e) }

// Login logs in to an HTTP server with a browser: open is given the address to
// visit. It finds the authorization server, registers with it, uses PKCE, and
// saves the tokens. getenv is for ${VAR} in the configuration. It ends with ctx
// at the latest.
func (l *Logins) Login(ctx context.Context, c Config, getenv func(string) (string, bool), open func(address string) error) error {
	if c.Type != HTTP {
		return fmt.Errorf("logging in to MCP server %s: only servers of type http have a login, this one is %s", c.Name, c.Type)
	}
	c, err := c.expanded(getenv)
	if err != nil {
		return err
	}
	if hasAuthorization(&c) {
		return fmt.Errorf("logging in to MCP server %s: its headers hold an Authorization already, which would be sent instead", c.Name)
	}
	before, _, err := l.get(c.Name, c.URL)
	if err != nil {
		return fmt.Errorf("logging in to MCP server %s: %w", c.Name, err)
	}
	if before.URL != c.URL {
		before = login{} // of another server
	}
	back, err := newCallback()
	if err != nil {
		return fmt.Errorf("logging in to MCP server %s: %w", c.Name, err)
	}
	defer back.close()
	saved := false
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "Capstan", RedirectURIs: []string{back.url}, GrantTypes: []string{"authorization_code", "refresh_token"},
			ResponseTypes: []string{"code"}, TokenEndpointAuthMethod: "none",
		}},
		RequestRefreshToken:   true,
		AcceptUnadvertisedIss: true,
		ScopeFilter:           func(found []string) []string { return union(found, before.Wanted) },
		Client:                authClient(),
		AuthorizationCodeFetcher: func(ctx context.Context, a *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			return back.fetch(ctx, a.URL, open)
		},
		NewTokenSource: func(_ context.Context, oc *oauth2.Config, token *oauth2.Token) (oauth2.TokenSource, error) {
			entry := login{URL: c.URL, ClientID: oc.ClientID, ClientSecret: oc.ClientSecret, TokenURL: oc.Endpoint.TokenURL,
				AuthStyle: oc.Endpoint.AuthStyle, Scopes: oc.Scopes, Token: token, Wanted: before.Wanted}
			if err := l.put(c.Name, entry); err != nil {
				return nil, err
			}
			saved = true
			return oauth2.StaticTokenSource(token), nil
		},
	})
	if err != nil {
		return fmt.Errorf("logging in to MCP server %s: %w", c.Name, err)
	}
	if err := probe(ctx, &c, handler); err != nil && !saved {
		return fmt.Errorf("logging in to MCP server %s: %w", c.Name, err)
	}
	if !saved {
		return fmt.Errorf("logging in to MCP server %s: it does not ask for a login", c.Name)
	}
	return nil
}

// union is a followed by what of b is not in it.
func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// probe connects and asks for the tools, so that the server asks for the login:
// some let anybody say hello.
func probe(ctx context.Context, c *Config, h auth.OAuthHandler) error {
	live, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := newWeb(live, c, listenLimit)
	if err != nil {
		return err
	}
	defer w.next.(*http.Transport).CloseIdleConnections()
	client := sdk.NewClient(&sdk.Implementation{Name: "capstan"}, nil)
	t := &sdk.StreamableClientTransport{Endpoint: c.URL, HTTPClient: w.client(), OAuthHandler: h, DisableStandaloneSSE: true, MaxEventSize: maxMessage}
	sent, greeting := withTrip(live)
	session, err := client.Connect(sent, t, &sdk.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		return refusal(greeting.refusal(), "initialize", err)
	}
	defer session.Close()
	sent, asking := withTrip(live)
	if _, err := session.ListTools(sent, nil); err != nil {
		if f := asking.refusal(); f != nil {
			return refusal(f, "tools/list", err)
		}
	}
	return nil // what else is wrong with its list is no matter of the login
}

// refusal is why a request failed, without the layers that the SDK puts around
// it. How a login went is said by err, any other refusal by f.
func refusal(f *httpFault, method string, err error) error {
	if f != nil && f.status != http.StatusUnauthorized {
		return errors.New(f.text)
	}
	return errors.New(strings.NewReplacer(`sending "`+method+`": `+rejected+": ", "", `calling "`+method+`": `, "").Replace(err.Error()))
}

// A callback is where the browser comes back to: an address of this machine
// only, for as long as the login lasts.
type callback struct {
	url    string
	server *http.Server
	state  atomic.Value // of the login that is going on
	came   chan url.Values
	served chan struct{}
}

func newCallback() (*callback, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the browser: %w", err)
	}
	b := &callback{url: "http://" + l.Addr().String() + "/callback", came: make(chan url.Values, 1), served: make(chan struct{})}
	b.server = &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(b.serve)}
	go func() {
		defer close(b.served)
		_ = b.server.Serve(l) // ends with close
	}()
	return b, nil
}

func (b *callback) serve(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	want, _ := b.state.Load().(string)
	if r.URL.Path != "/callback" || want == "" || q.Get("state") != want || q.Get("code") == "" && q.Get("error") == "" {
		http.NotFound(w, r) // of another login, or made up
		return
	}
	select {
	case b.came <- q:
	default:
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "Capstan has got the answer. You can close this page.\n")
}

// fetch sends the person to address and waits for the answer.
func (b *callback) fetch(ctx context.Context, address string, open func(string) error) (*auth.AuthorizationResult, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && !(u.Scheme == "http" && loopback(u.Hostname())) {
		return nil, fmt.Errorf("it wants the login done at %s, which is no https address", excerpt(redactURL(address), 200))
	}
	b.state.Store(u.Query().Get("state"))
	if err := open(address); err != nil {
		return nil, fmt.Errorf("opening the browser: %w", err)
	}
	select {
	case q := <-b.came:
		if e := q.Get("error"); e != "" {
			return nil, fmt.Errorf("the login was refused: %s", excerpt(strings.TrimSpace(e+" "+q.Get("error_description")), 300))
		}
		return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("nobody has logged in: %w", context.Cause(ctx))
	}
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (b *callback) close() {
	b.server.Close()
	<-b.served
}
