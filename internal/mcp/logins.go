package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/oauth2"
)

// Logins keeps what logging in to servers has brought in one file that only the
// user can read (0600). It may be used from any goroutine, and by several
// processes: the file is replaced as a whole, with nothing changed in it but what
// is to change. No lock is held while a server is asked.
type Logins struct {
	file  string
	mu    sync.Mutex
	going map[string]*refresh // by server and address
}

// NewLogins keeps logins in file, which need not exist.
func NewLogins(file string) *Logins { return &Logins{file: file} }

// A login is what is kept of one server. It is used for the address that it was
// made for and no other, so that a server that is configured under the same
// name does not get the token.
type login struct {
	URL          string           `json:"url"`
	ClientID     string           `json:"clientId"`
	ClientSecret string           `json:"clientSecret,omitempty"`
	TokenURL     string           `json:"tokenUrl"`
	AuthStyle    oauth2.AuthStyle `json:"authStyle,omitempty"`
	Scopes       []string         `json:"scopes,omitempty"`
	Token        *oauth2.Token    `json:"token"`
	// Wanted are scopes that the server has refused calls for the lack of. The
	// next login asks for them too.
	Wanted []string `json:"wanted,omitempty"`
}

func (l *Logins) load() (map[string]login, error) {
	all := map[string]login{}
	info, err := os.Stat(l.file)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the saved logins: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("reading the saved logins: others may read %s: run chmod 600 on it", l.file)
	}
	b, err := os.ReadFile(l.file)
	if err != nil {
		return nil, fmt.Errorf("reading the saved logins: %w", err)
	}
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("reading the saved logins: %s is damaged; remove it and log in again: %w", l.file, err)
	}
	return all, nil
}

// store replaces the file. change has made its directory.
func (l *Logins) store(all map[string]login) error {
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(l.file), ".logins-*") // 0600
	if err != nil {
		return fmt.Errorf("saving the login: %w", err)
	}
	defer os.Remove(f.Name()) // fails once it is renamed
	_, err = f.Write(append(b, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), l.file)
	}
	if err != nil {
		return fmt.Errorf("saving the login: %w", err)
	}
	return nil
}

func (l *Logins) get(server, url string) (login, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, err := l.load()
	if err != nil {
		return login{}, false, err
	}
	entry, ok := all[server]
	return entry, ok && entry.URL == url && entry.Token != nil, nil
}

// change reads the logins, has edit change them, and stores them when it says so.
// Nobody else changes them meanwhile, so edit must not wait for anything.
func (l *Logins) change(edit func(all map[string]login) bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	dir := filepath.Dir(l.file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("saving the login: %w", err)
	}
	unlock, err := lockDir(dir)
	if err != nil {
		return fmt.Errorf("saving the login: %w", err)
	}
	defer unlock()
	all, err := l.load()
	if err != nil || !edit(all) {
		return err
	}
	return l.store(all)
}

func (l *Logins) put(server string, entry login) error {
	return l.change(func(all map[string]login) bool {
		all[server] = entry
		return true
	})
}

// want notes scopes for the next login of a server.
func (l *Logins) want(server, url string, scopes []string) error {
	return l.change(func(all map[string]login) bool {
		entry, ok := all[server]
		if !ok || entry.URL != url || slices.Equal(entry.Wanted, scopes) {
			return false
		}
		entry.Wanted = scopes
		all[server] = entry
		return true
	})
}

// Remove forgets the login of a server, and says whether there was one.
func (l *Logins) Remove(server string) (was bool, err error) {
	if _, err := os.Stat(l.file); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	err = l.change(func(all map[string]login) bool {
		_, was = all[server]
		delete(all, server)
		return was
	})
	return was, err
}

// A refresh is one that is going on. Whoever needs its token waits for it.
type refresh struct {
	done  chan struct{}
	token *oauth2.Token
	err   error
}

// fresh returns the token for a server at an address, refreshed and saved when it
// has expired; nil when there is no login. It waits no longer than ctx. The
// request for a new token goes on until life ends, even if nobody waits for it any
// more: one that is broken off may have made the old one invalid. No other server
// waits for it.
func (l *Logins) fresh(ctx, life context.Context, server, url string) (*oauth2.Token, error) {
	for {
		entry, ok, err := l.get(server, url)
		if err != nil || !ok {
			return nil, err
		}
		if entry.Token.Valid() {
			return entry.Token, nil
		}
		r, mine := l.join(life, server, url)
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if mine || r.err == nil || life.Err() != nil || !errors.Is(r.err, context.Canceled) {
			return r.token, r.err
		}
		// It was another connection's, which has ended.
	}
}

// join returns the refresh of a server's login that is going on, or begins one.
func (l *Logins) join(life context.Context, server, url string) (r *refresh, mine bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := server + "\x00" + url
	if r := l.going[key]; r != nil {
		return r, false
	}
	r = &refresh{done: make(chan struct{})}
	if l.going == nil {
		l.going = map[string]*refresh{}
	}
	l.going[key] = r
	go func() {
		defer close(r.done)
		r.token, r.err = l.renew(life, server, url)
		l.mu.Lock()
		delete(l.going, key)
		l.mu.Unlock()
	}()
	return r, true
}

// renew asks for a new token and saves it in the place of the old one, and of no
// other: a login that was made or removed meanwhile stays as it is.
func (l *Logins) renew(life context.Context, server, url string) (*oauth2.Token, error) {
	old, ok, err := l.get(server, url) // it may just have been refreshed
	if err != nil || !ok || old.Token.Valid() || old.Token.RefreshToken == "" {
		return old.Token, err // without a refresh token it is the server that says that it has expired
	}
	ctx := context.WithValue(life, oauth2.HTTPClient, authClient())
	config := oauth2.Config{ClientID: old.ClientID, ClientSecret: old.ClientSecret, Scopes: old.Scopes,
		Endpoint: oauth2.Endpoint{TokenURL: old.TokenURL, AuthStyle: old.AuthStyle}}
	token, err := config.TokenSource(ctx, old.Token).Token()
	if err != nil {
		// Another process may have been first, and the old one be of no use now.
		if now, ok, _ := l.get(server, url); ok && now.Token.AccessToken != old.Token.AccessToken && now.Token.Valid() {
			return now.Token, nil
		}
		return nil, err
	}
	err = l.change(func(all map[string]login) bool {
		entry := all[server]
		if entry.URL != url || entry.Token == nil || entry.Token.AccessToken != old.Token.AccessToken {
			return false
		}
		entry.Token = token
		all[server] = entry
		return true
	})
	return token, err
}
