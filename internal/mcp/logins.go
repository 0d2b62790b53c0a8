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
// processes: the file is replaced as a whole.
type Logins struct {
	file string
	mu   sync.Mutex
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

func (l *Logins) store(all map[string]login) error {
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	dir := filepath.Dir(l.file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("saving the login: %w", err)
	}
	f, err := os.CreateTemp(dir, ".logins-*") // 0600
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

func (l *Logins) put(server string, entry login) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, err := l.load()
	if err != nil {
		return err
	}
	all[server] = entry
	return l.store(all)
}

// want notes scopes for the next login of a server.
func (l *Logins) want(server, url string, scopes []string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, err := l.load()
	if err != nil {
		return err
	}
	entry, ok := all[server]
	if !ok || entry.URL != url || slices.Equal(entry.Wanted, scopes) {
		return nil
	}
	entry.Wanted = scopes
	all[server] = entry
	return l.store(all)
}

// Remove forgets the login of a server, and says whether there was one.
func (l *Logins) Remove(server string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, err := l.load()
	if err != nil {
		return false, err
	}
	if _, ok := all[server]; !ok {
		return false, nil
	}
	delete(all, server)
	return true, l.store(all)
}

// fresh returns the token of a login, refreshed and saved when it has expired.
func (l *Logins) fresh(server string, old login) (*oauth2.Token, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, err := l.load()
	if err != nil {
		return nil, err
	}
	entry, ok := all[server] // another request, or process, may have refreshed it
	if !ok || entry.URL != old.URL || entry.Token == nil {
		entry = old
	}
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient, authClient())
	config := oauth2.Config{ClientID: entry.ClientID, ClientSecret: entry.ClientSecret, Scopes: entry.Scopes,
		Endpoint: oauth2.Endpoint{TokenURL: entry.TokenURL, AuthStyle: entry.AuthStyle}}
	token, err := config.TokenSource(ctx, entry.Token).Token()
	if err != nil {
		return nil, err
	}
	if token.AccessToken != entry.Token.AccessToken {
		entry.Token = token
		all[server] = entry
		if err := l.store(all); err != nil {
			return nil, err
		}
	}
	return token, nil
}
