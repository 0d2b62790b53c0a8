package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	strict "github.com/go-json-experiment/json"
	"github.com/tailscale/hujson"

	"capstan/internal/msg"
)

// The ways to reach a server.
const (
	Stdio = "stdio" // a process that is started and talked to over its pipes
	HTTP  = "http"  // streamable HTTP
	SSE   = "sse"   // the older HTTP transport with server-sent events
)

// A Config is one configured server. Its texts may hold ${VAR} and
// ${VAR:-default}; they are replaced when the server is started.
type Config struct {
	Name string
	Type string // Stdio, HTTP or SSE
	From string // where it is configured, for people

	Command string
	Args    []string
	Env     map[string]string // beside the minimal environment (see environ)
	Cwd     string            // relative to Options.Dir

	URL     string
	Headers map[string]string // sent to the URL's own host only
	// guessed says that Type follows from URL alone, so that the older
	// transport is tried when the server does not know the newer one.
	guessed bool

	// Include, when not nil, names the tools that are taken, Exclude those that
	// are not; a `*` at the end stands for any text (BUG-PC-08).
	Include, Exclude []string
	// Trust makes what the server says of itself count: its read-only tools
	// need no approval.
	Trust          bool
	Timeout        time.Duration // of a call without progress; 0 means DefaultTimeout
	StartupTimeout time.Duration // 0 means DefaultStartup
	AlwaysLoad     bool          // its tools are not deferred
	Description    string        // of the server, in the user's words
}

func (c *Config) timeout() time.Duration { return cmp.Or(c.Timeout, DefaultTimeout) }
func (c *Config) startup() time.Duration { return cmp.Or(c.StartupTimeout, DefaultStartup) }

// A Fault is something wrong in a configuration. With Server set, it costs that
// server only; with Warning, nothing.
type Fault struct {
	Where   string // the file or layer
	Path    string // of the value, such as mcpServers.github.args
	Server  string
	Message string
	Warning bool
}

func (f Fault) Error() string {
	s := f.Where
	if f.Path != "" {
		s += ": " + f.Path
	}
	return s + ": " + f.Message
}

// ParseFile reads a file in the form of `.mcp.json`: an object with mcpServers.
// Comments and trailing commas are allowed. Servers without faults are returned
// whatever is wrong with others, by name.
func ParseFile(src []byte, where string) ([]Config, []Fault) {
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(src)) == 0 {
		return nil, nil
	}
	std, err := standard(src)
	if err != nil {
		return nil, []Fault{{Where: where, Message: err.Error()}}
	}
	var top map[string]json.RawMessage
	if err := strict.Unmarshal(std, &top); err != nil {
		return nil, []Fault{{Where: where, Message: "expected an object with mcpServers: " + plain(err)}}
	}
	raw, ok := top["mcpServers"]
	if !ok {
		return nil, []Fault{{Where: where, Message: `there is no "mcpServers" in it; the file looks like {"mcpServers": {"name": {"command": "…"}}}`}}
	}
	return Parse(raw, where)
}

// Parse reads the value of mcpServers, as [ParseFile] does.
func Parse(raw json.RawMessage, where string) ([]Config, []Fault) {
	std, err := standard(raw)
	if err != nil {
		return nil, []Fault{{Where: where, Path: "mcpServers", Message: err.Error()}}
	}
	var entries map[string]json.RawMessage
	if err := strict.Unmarshal(std, &entries); err != nil {
		return nil, []Fault{{Where: where, Path: "mcpServers", Message: "expected an object of servers: " + plain(err)}}
	}
	var list []Config
	var faults []Fault
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		p := parser{where: where, name: name}
		c, ok := p.server(entries[name])
		faults = append(faults, p.faults...)
		if ok {
			list = append(list, c)
		}
	}
	return list, faults
}

// Merge puts the servers of several layers together, the nearest layer last: of
// two with one name the nearest stands alone, so that no server gets another's
// environment. It says which are hidden.
func Merge(layers ...[]Config) ([]Config, []Fault) {
	byName := map[string]Config{}
	var faults []Fault
	for _, layer := range layers {
		for _, c := range layer {
			if old, ok := byName[c.Name]; ok {
				faults = append(faults, Fault{Where: c.From, Path: "mcpServers." + c.Name, Server: c.Name, Warning: true,
					Message: "hides the server of the same name in " + old.From})
			}
			byName[c.Name] = c
		}
	}
	list := make([]Config, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list = append(list, byName[name])
	}
	return list, faults
}

func standard(src []byte) ([]byte, error) {
	if !utf8.Valid(src) {
		return nil, errors.New("it is not UTF-8: save it in that encoding")
	}
	std, err := hujson.Standardize(bytes.Clone(src))
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %s", strings.TrimPrefix(err.Error(), "hujson: "))
	}
	return std, nil
}

// plain takes the library's name off an error.
func plain(err error) string { return strings.TrimPrefix(err.Error(), "json: ") }

// A parser reads one server.
type parser struct {
	where, name string
	faults      []Fault
	bad         bool
}

func (p *parser) fault(key, format string, a ...any) {
	p.bad = true
	p.report(key, false, format, a...)
}

func (p *parser) report(key string, warning bool, format string, a ...any) {
	path := "mcpServers." + p.name
	if key != "" {
		path += "." + key
	}
	p.faults = append(p.faults, Fault{Where: p.where, Path: path, Server: p.name, Message: fmt.Sprintf(format, a...), Warning: warning})
}

// keys are all that a server may say, with what reads it.
var keys = map[string]func(p *parser, key string, raw json.RawMessage, c *Config){
	"type":      func(p *parser, k string, r json.RawMessage, c *Config) { p.value(k, r, &c.Type, "a string") },
	"transport": func(p *parser, k string, r json.RawMessage, c *Config) { p.value(k, r, &c.Type, "a string") },
	"command":   func(p *parser, k string, r json.RawMessage, c *Config) { p.value(k, r, &c.Command, "a string") },
	"args":      func(p *parser, k string, r json.RawMessage, c *Config) { p.value(k, r, &c.Args, "a list of strings") },
	"env": func(p *parser, k string, r json.RawMessage, c *Config) {
		p.value(k, r, &c.Env, "an object of strings")
	},
	"cwd": func(p *parser, k string, r json.RawMessage, c *Config) { p.value(k, r, &c.Cwd, "a string") },
	"url": func(p *parser, k string, r json.RawMessage, c *Config) { p.value(k, r, &c.URL, "a string") },
	"httpUrl": func(p *parser, k string, r json.RawMessage, c *Config) {
		p.value(k, r, &c.URL, "a string")
		c.Type = cmp.Or(c.Type, HTTP)
	},
	"headers": func(p *parser, k string, r json.RawMessage, c *Config) {
		p.value(k, r, &c.Headers, "an object of strings")
	},
	"includeTools": func(p *parser, k string, r json.RawMessage, c *Config) {
		p.value(k, r, &c.Include, "a list of strings")
	},
	"excludeTools": func(p *parser, k string, r json.RawMessage, c *Config) {
		p.value(k, r, &c.Exclude, "a list of strings")
	},
	"trust":          func(p *parser, k string, r json.RawMessage, c *Config) { p.value(k, r, &c.Trust, "true or false") },
	"timeout":        func(p *parser, k string, r json.RawMessage, c *Config) { p.milliseconds(k, r, &c.Timeout) },
	"startupTimeout": func(p *parser, k string, r json.RawMessage, c *Config) { p.milliseconds(k, r, &c.StartupTimeout) },
	"alwaysLoad": func(p *parser, k string, r json.RawMessage, c *Config) {
		p.value(k, r, &c.AlwaysLoad, "true or false")
	},
	"description": func(p *parser, k string, r json.RawMessage, c *Config) {
		p.value(k, r, &c.Description, "a string")
	},
	"disabled": nil, // read by server
}

func (p *parser) server(raw json.RawMessage) (Config, bool) {
	c := Config{Name: p.name, From: p.where}
	if msg := badName(p.name); msg != "" {
		p.fault("", "%s", msg)
	}
	var fields map[string]json.RawMessage
	if err := strict.Unmarshal(raw, &fields); err != nil {
		p.fault("", `expected an object such as {"command": "…"} or {"url": "…"}: %s`, plain(err))
		return c, false
	}
	var disabled bool
	if raw, ok := fields["disabled"]; ok {
		p.value("disabled", raw, &disabled, "true or false")
	}
	if disabled && !p.bad {
		return c, false
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		read, known := keys[key]
		if !known {
			p.report(key, true, "is not known and has no effect%s", nearest(key))
		} else if read != nil {
			read(p, key, fields[key], &c)
		}
	}
	p.transport(&c)
	return c, !p.bad
}

// badName says why a server cannot be called so.
func badName(name string) string {
	switch {
	case strings.TrimSpace(name) == "":
		return "a server needs a name"
	case len(name) > 200:
		return "the name is longer than 200 bytes"
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "the name has characters that cannot be shown"
	}
	return ""
}

func (p *parser) value(key string, raw json.RawMessage, to any, want string) {
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		p.fault(key, "expected %s, found null", want)
		return
	}
	if err := strict.Unmarshal(raw, to); err != nil {
		found := excerpt(raw, 60)
		if key == "env" || key == "headers" || key == "args" {
			found = "something else" // which may be a key
		}
		p.fault(key, "expected %s, found %s", want, found)
	}
}

func (p *parser) milliseconds(key string, raw json.RawMessage, to *time.Duration) {
	var ms float64
	if err := strict.Unmarshal(raw, &ms); err != nil || ms != math.Trunc(ms) || ms < 1 || ms > 24*60*60*1000 {
		p.fault(key, "expected whole milliseconds from 1 to 86400000, found %s", excerpt(raw, 60))
		return
	}
	*to = time.Duration(ms) * time.Millisecond
}

// transport checks what belongs together.
func (p *parser) transport(c *Config) {
	switch c.Type {
	case Stdio, HTTP, SSE:
	case "streamable-http", "streamableHttp", "streamable_http":
		c.Type = HTTP
	case "":
		switch {
		case c.Command != "" && c.URL != "":
			p.fault("", `it has both "command" and "url": a server is either started or reached, remove one`)
			return
		case c.Command != "":
			c.Type = Stdio
		case c.URL != "":
			c.Type, c.guessed = HTTP, true
			if u, err := url.Parse(c.URL); err == nil && strings.HasSuffix(u.Path, "/sse") {
				c.Type = SSE
			}
		default:
			if !p.bad {
				p.fault("", `it has neither "command" nor "url", so it cannot be reached`)
			}
			return
		}
	default:
		p.fault("type", "expected stdio, http or sse, found %q", c.Type)
		return
	}
	switch {
	case c.Type == Stdio && c.Command == "":
		p.fault("command", `is missing: type "stdio" needs the program to start`)
	case c.Type != Stdio && c.URL == "":
		p.fault("url", "is missing: type %q needs it", c.Type)
	}
	for name := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			p.fault("env", "%q cannot be the name of a variable", name)
		}
	}
}

// Word is a server's name as an argument of a command that a person can copy into a
// shell.
func Word(name string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.+@:/,", r)
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) {
		name = "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	if strings.HasPrefix(name, "-") || strings.HasPrefix(name, "'-") {
		name = "-- " + name
	}
	return name
}

// nearest names the key that was probably meant.
func nearest(key string) string {
	low := strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(key))
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if l := strings.ToLower(k); l == low || len(l) > 3 && (strings.HasPrefix(l, low) && len(low) > 2 || strings.HasPrefix(low, l)) {
			return fmt.Sprintf("; is %q meant?", k)
		}
	}
	return ""
}

// excerpt is the beginning of a text in one line, fit to be shown.
func excerpt[T ~string | ~[]byte](s T, n int) string {
	return cut(strings.Join(strings.Fields(shown(string(s))), " "), n)
}

// cut shortens s to n bytes and says that it did.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// clean makes a text of a server valid UTF-8 without control characters but
// line ends and tabs, so that it cannot play with a terminal.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if unicode.IsControl(r) || r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069 {
			return -1
		}
		return r
	}, s)
}

// shown is clean for what a server says of itself and its tools: all that shows
// nothing is left out too, for a person who approves it would not see what the
// model reads (S1-031). A result is data, and keeps it.
func shown(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && msg.Invisible(r) {
			return -1
		}
		return r
	}, clean(s))
}
