package app

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"capstan/internal/config"
	"capstan/internal/llm"
	"capstan/internal/llm/openai"
)

// An endpoint is where a model may be asked: a family as the environment and
// the settings have it, or a provider that the settings name.
type endpoint struct {
	name   string
	family *family
	base   string
	entry  *config.Provider // nil when no settings speak of it
	// foreign: the address comes from a folder's own settings, so no key of
	// the user goes there.
	foreign bool
}

// endpoint returns the endpoint of a name; nil when there is none. What the
// environment says of an address goes before the settings, because it is
// nearer to the run.
func (s *Session) endpoint(name string) (*endpoint, error) {
	e := &endpoint{name: name, family: familyNamed(name)}
	for i := range s.set.Providers {
		if s.set.Providers[i].Name == name {
			e.entry = &s.set.Providers[i]
		}
	}
	if e.entry == nil && e.family == nil {
		return nil, nil
	}
	if e.entry != nil && e.entry.Family != "" {
		if f := familyNamed(e.entry.Family); f == nil || e.family != nil && e.family.name != f.name {
			return nil, e.fault("family: %q is none of %s", e.entry.Family, strings.Join(familyNames(), ", "))
		} else {
			e.family = f
		}
	}
	if e.family == nil {
		return nil, e.fault(`it has no "family": it is one of %s`, strings.Join(familyNames(), ", "))
	}
	e.base = e.family.base
	env := ""
	if e.name == e.family.name {
		env = strings.TrimSpace(s.opt.Env(e.family.baseVar))
	}
	switch {
	case env != "":
		e.base = env
	case e.entry != nil && e.entry.BaseURL != "":
		e.base, e.foreign = e.entry.BaseURL, e.entry.From.OfFolder()
	}
	u, err := url.Parse(e.base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		if env != "" {
			return nil, fmt.Errorf("%s is no http or https address: give it as https://host/v1", e.family.baseVar)
		}
		return nil, e.fault("baseUrl is no http or https address: give it as https://host/v1")
	}
	return e, nil
}

// fault is an error about the settings' entry.
func (e *endpoint) fault(format string, a ...any) error {
	return fmt.Errorf("%s: providers.%s: %w", e.entry.From, e.name, fmt.Errorf(format, a...))
}

// configured returns the endpoints that the user has set up, those of families
// first.
func (s *Session) configured() ([]*endpoint, error) {
	var names []string
	for _, f := range families() {
		if !f.second && (s.opt.Env(f.keyVar) != "" || s.opt.Env(f.baseVar) != "") {
			names = append(names, f.name)
		}
	}
	for _, p := range s.set.Providers {
		if !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	var out []*endpoint
	for _, n := range names {
		e, err := s.endpoint(n)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// client opens the endpoint: it reads the key, and sends nothing yet.
func (s *Session) client(e *endpoint) (client, error) {
	key, err := s.key(e)
	if err != nil {
		return nil, err
	}
	header, err := s.header(e)
	if err != nil {
		return nil, err
	}
	if key == "" && len(header) == 0 && e.wantsKey() {
		return nil, e.noKey()
	}
	u, _ := url.Parse(e.base) // endpoint has tried it
	if key != "" && u.Scheme == "http" && !local(u.Hostname()) {
		s.warn("the key for %s travels unencrypted: its address begins with http://", e.name)
	}
	profile, end := "", &llm.Endpoint{Name: e.name, BaseURL: e.base, Key: key, Header: header}
	if e.entry != nil {
		profile, end.Idle = e.entry.Profile, e.entry.IdleTimeout
		if n := e.entry.Retries; n != nil {
			end.Retries = cmp.Or(*n, -1) // there 0 means the usual number
		}
	}
	c, err := e.family.open(end, profile)
	if err != nil {
		return nil, e.fault("%v", err)
	}
	return c, nil
}

// key finds the key of an endpoint. It goes only where whoever set it could
// know of: never to an address that a folder's own settings give.
func (s *Session) key(e *endpoint) (string, error) {
	name, key := "", ""
	switch {
	case e.foreign:
		return "", nil
	case e.entry != nil && e.entry.KeyFile != "":
		var err error
		if key, err = s.keyFile(e.entry); err != nil {
			return "", e.fault("keyFile: %w", err)
		}
		name = e.entry.KeyFile
	case e.entry != nil && e.entry.KeyEnv != "":
		name = e.entry.KeyEnv
		if key = s.opt.Env(name); key == "" {
			return "", e.fault("keyEnv: the variable %s is not set", name)
		}
	case e.name == e.family.name:
		name = e.family.keyVar
		key = s.opt.Env(name)
	}
	key = strings.TrimSpace(key)
	if strings.ContainsFunc(key, func(r rune) bool { return r > unicode.MaxASCII || unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return "", fmt.Errorf("the key in %s is none: it has spaces, line breaks or letters that no key has", name)
	}
	s.secret(key)
	return key, nil
}

// keyPath is where the key file of an entry lies.
func (s *Session) keyPath(p *config.Provider) string {
	if rest, ok := strings.CutPrefix(p.KeyFile, "~/"); ok {
		return filepath.Join(s.home, rest)
	}
	if !filepath.IsAbs(p.KeyFile) {
		return filepath.Join(filepath.Dir(p.From.File), p.KeyFile)
	}
	return p.KeyFile
}

// maxKey bounds a key file, in bytes.
const maxKey = 16 << 10

// keyFile reads a key. Only its owner may be able to.
func (s *Session) keyFile(p *config.Provider) (string, error) {
	path := s.keyPath(p)
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a named pipe does not make it wait
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()            // of what was opened, whatever the path leads to by now
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is no regular file", path)
	case !ours(info):
		return "", fmt.Errorf("%s belongs to somebody else", path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("others can read or write %s: run chmod 600 on it", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKey+1))
	if err != nil {
		return "", err
	}
	if len(data) > maxKey {
		return "", fmt.Errorf("%s is larger than %d KiB, which no key is", path, maxKey>>10)
	}
	if len(strings.TrimSpace(string(data))) == 0 {
		return "", fmt.Errorf("%s is empty", path)
	}
	return string(data), nil
}

var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

// header makes the headers of an entry, with the variables that they name. A
// folder's own headers do not go along with a key of the user's: a gateway can
// be told by one to send both on to somebody else.
func (s *Session) header(e *endpoint) (http.Header, error) {
	if e.entry == nil {
		return nil, nil
	}
	if e.entry.From.OfFolder() && !e.foreign && e.name == e.family.name {
		if len(e.entry.Headers) > 0 {
			s.warn("%s: providers.%s.headers are not sent, since your own address and key are used: put them into ~/.capstan/settings.json", e.entry.From, e.name)
		}
		return nil, nil
	}
	var fault error
	h := http.Header{}
	for _, own := range e.entry.Headers {
		value := variable.ReplaceAllStringFunc(own.Value, func(ref string) string {
			name := ref[2 : len(ref)-1]
			v := s.opt.Env(name)
			if v == "" && fault == nil {
				fault = e.fault("headers.%s: the variable %s is not set", own.Name, name)
			}
			return v
		})
		if !headerName(own.Name) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return nil, e.fault("headers.%s is no header that can be sent: a name has letters, digits and -, a value is one line", own.Name)
		}
		h.Set(own.Name, value)
	}
	return h, fault
}

func headerName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

// wantsKey reports whether the address is known to want a key. Of a server that
// nobody knows, the server itself says.
func (e *endpoint) wantsKey() bool {
	u, _ := url.Parse(e.base)
	if local(u.Hostname()) {
		return false
	}
	return e.base == e.family.base || openai.Profiles().For(e.base).Name != "compatible"
}

var errNoKey = errors.New("there is no key")

func (e *endpoint) noKey() error {
	switch {
	case e.foreign:
		return e.fault("%w: none is sent to an address that a folder's own settings give: put this provider into ~/.capstan/settings.json", errNoKey)
	case e.name == e.family.name:
		return fmt.Errorf("%w for %s: set %s, or providers.%s.keyFile in ~/.capstan/settings.json; for a server of your own, which needs none, set %s", errNoKey, e.name, e.family.keyVar, e.name, e.family.baseVar)
	}
	return e.fault("%w: add keyEnv or keyFile", errNoKey)
}

// local reports whether a host is this machine or in the same private network,
// where a server needs no key and TLS is rare.
func local(host string) bool {
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, end := range []string{"localhost", ".localhost", ".local", ".lan", ".internal", ".home.arpa"} {
		if strings.HasSuffix(host, end) && (strings.HasPrefix(end, ".") || host == end) {
			return true
		}
	}
	return !strings.Contains(host, ".")
}
