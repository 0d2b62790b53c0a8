package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/oauth2"
)

// expired saves a login whose token has to be refreshed at address first.
func expired(t *testing.T, l *Logins, server, address string) {
	t.Helper()
	if err := l.put(server, login{URL: "http://" + server, ClientID: "c", TokenURL: address, AuthStyle: oauth2.AuthStyleInParams,
		Token: &oauth2.Token{AccessToken: "old", RefreshToken: "r", Expiry: time.Now().Add(-time.Hour)}}); err != nil {
		t.Fatal(err)
	}
}

// tokens answers every request for a token once meanwhile has returned.
func tokens(t *testing.T, meanwhile func(n int)) string {
	var n atomic.Int64
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		i := int(n.Add(1))
		meanwhile(i)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"new-%d","token_type":"Bearer","expires_in":3600,"refresh_token":"r"}`, i)
	}))
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	return url
}

// A server whose login cannot be refreshed because nobody answers keeps no other
// server waiting, nor the file, and whoever waits for it can give up.
func TestAHangingRefreshKeepsNobodyElseWaiting(t *testing.T) {
	asked := make(chan struct{})
	hanging := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(asked)
		<-r.Context().Done()
	}))
	l := NewLogins(filepath.Join(t.TempDir(), "logins.json"))
	expired(t, l, "hangs", hanging)
	expired(t, l, "good", tokens(t, func(int) {}))
	ctx := testContext(t)
	life, end := context.WithCancel(ctx)
	ended := make(chan error)
	go func() {
		_, err := l.fresh(ctx, life, "hangs", "http://hangs")
		ended <- err
	}()
	<-asked
	if token, err := l.fresh(ctx, ctx, "good", "http://good"); err != nil || token.AccessToken != "new-1" {
		t.Errorf("the other server: %v, %v", token, err)
	}
	if was, err := NewLogins(l.file).Remove("good"); !was || err != nil {
		t.Errorf("another process: %v, %v", was, err)
	}
	call, giveUp := context.WithCancel(ctx)
	giveUp()
	if _, err := l.fresh(call, life, "hangs", "http://hangs"); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that was given up: %v", err)
	}
	end() // the connection's
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the end of the connection: %v", err)
	}
}

// The end of the program does not wait for it either.
func TestAHangingRefreshDoesNotHoldTheEnd(t *testing.T) {
	asked := make(chan struct{}, 10)
	hanging := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	l := NewLogins(filepath.Join(t.TempDir(), "logins.json"))
	c := httpServer("web", serve(t, rawHTTP(nil)))
	expired(t, l, "web", hanging)
	if err := l.change(func(all map[string]login) bool {
		e := all["web"]
		e.URL = c.URL
		all["web"] = e
		return true
	}); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, Options{Logins: l}, c)
	<-asked
	begun := time.Now()
	r.Close()
	if took := time.Since(begun); took > authLimit*2/3 {
		t.Errorf("it took %v", took)
	}
}

// Whoever needs the same token waits for one request, and does not lose it when
// the one who began it gives up.
func TestARefreshIsShared(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	url := tokens(t, func(int) { close(asked); <-answer })
	l := NewLogins(filepath.Join(t.TempDir(), "logins.json"))
	expired(t, l, "s", url)
	ctx := testContext(t)
	first, giveUp := context.WithCancel(ctx)
	ended := make(chan error)
	go func() {
		_, err := l.fresh(first, ctx, "s", "http://s")
		ended <- err
	}()
	<-asked
	giveUp()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if token, err := l.fresh(ctx, ctx, "s", "http://s"); err != nil || token.AccessToken != "new-1" {
				t.Errorf("%v, %v", token, err)
			}
		})
	}
	close(answer)
	wg.Wait()
}

// What others do to the file while a token is asked for stays: other logins, one
// that was made anew, one that was removed.
func TestARefreshReplacesNothingElse(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(*Logins) error
		want      map[string]string // the access tokens in the file
	}{
		"nothing":        {func(*Logins) error { return nil }, map[string]string{"s": "new-1"}},
		"another server": {func(l *Logins) error { return l.put("other", login{URL: "o", Token: &oauth2.Token{AccessToken: "o"}}) }, map[string]string{"s": "new-1", "other": "o"}},
		"a new login": {func(l *Logins) error {
			return l.put("s", login{URL: "http://s", Token: &oauth2.Token{AccessToken: "mine"}})
		}, map[string]string{"s": "mine"}},
		"removed": {func(l *Logins) error { _, err := l.Remove("s"); return err }, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "logins.json")
			url := tokens(t, func(int) {
				if err := test.meanwhile(NewLogins(file)); err != nil { // as another process
					t.Error(err)
				}
			})
			l := NewLogins(file)
			expired(t, l, "s", url)
			ctx := testContext(t)
			if token, err := l.fresh(ctx, ctx, "s", "http://s"); err != nil || token.AccessToken != "new-1" {
				t.Errorf("%v, %v", token, err)
			}
			all, err := l.load()
			got := map[string]string{}
			for server, entry := range all {
				got[server] = entry.Token.AccessToken
			}
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("saved (-want +got):\n%s%v", diff, err)
			}
		})
	}
}

// Of two processes that refresh at once one is refused. It uses what the other
// has got.
func TestARefreshThatAnotherProcessHasDone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "logins.json")
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := NewLogins(file).put("s", login{URL: "http://s", Token: &oauth2.Token{AccessToken: "theirs", Expiry: time.Now().Add(time.Hour)}}); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"error":"invalid_grant"}`)
	}))
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	l := NewLogins(file)
	expired(t, l, "s", url)
	ctx := testContext(t)
	if token, err := l.fresh(ctx, ctx, "s", "http://s"); err != nil || token.AccessToken != "theirs" {
		t.Errorf("%v, %v", token, err)
	}
}

// Many processes save their logins at once, and each is there.
func TestLoginsOfManyProcesses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "logins.json")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() { // a lock of its own, as of another process
			if err := NewLogins(file).put(fmt.Sprint("s", i), login{URL: "u", Token: &oauth2.Token{AccessToken: "a"}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	all, err := NewLogins(file).load()
	if _, locks := os.Stat("/proc"); len(all) != 20 && locks == nil || err != nil {
		t.Errorf("%d logins, %v", len(all), err)
	}
	left, _ := os.ReadDir(dir)
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if strings.Join(names, " ") != "logins.json" {
		t.Errorf("files: %v", names)
	}
}
