package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"capstan/internal/config"
	"capstan/internal/mcp"
	"capstan/internal/policy"
)

// serversFile is where servers are written: the project's .mcp.json, or the
// user's settings.
func serversFile(dir string, project bool) (string, error) {
	if project {
		root, err := policy.Workspace(dir)
		if err != nil {
			return "", err
		}
		return filepath.Join(root, config.ServersFile), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding your settings: %w", err)
	}
	return filepath.Join(home, config.File), nil
}

// ServerWord is a server's name as a shell takes it, for the commands that we tell of.
func ServerWord(name string) string { return mcp.Word(name) }

// AddServer writes a server into the user's settings or, for the project, its
// .mcp.json, and returns which file that is. A configuration that could not be
// used is refused.
func AddServer(dir string, project bool, name string, server json.RawMessage, replace bool) (string, error) {
	raw, err := json.Marshal(map[string]json.RawMessage{name: server})
	if err != nil {
		return "", &UsageError{fmt.Errorf("adding the MCP server %q: the configuration is no JSON: %w", name, err)}
	}
	list, faults := mcp.Parse(raw, "the server as given")
	for _, f := range faults { // a key that is not known would have no effect
		return "", &UsageError{fmt.Errorf("adding the MCP server: %w", f)}
	}
	if len(list) == 0 {
		return "", &UsageError{errors.New("adding the MCP server: it is disabled")}
	}
	file, err := serversFile(dir, project)
	if err != nil {
		return "", err
	}
	perm := os.FileMode(0o600)
	if project {
		perm = 0o644 // it is for others too
	}
	switch err := config.PutServer(file, name, server, replace, perm); {
	case errors.Is(err, config.ErrThere):
		return file, &UsageError{fmt.Errorf("there is an MCP server %q in %s already; --replace puts this one in its place", name, file)}
	case err != nil:
		return file, fmt.Errorf("adding the MCP server %q: %w", name, err)
	}
	return file, nil
}

// RemoveServer takes a server out of the user's settings or, for the project, its
// .mcp.json, and returns which file that is. Its login is forgotten.
func RemoveServer(dir string, project bool, name string) (string, error) {
	file, err := serversFile(dir, project)
	if err != nil {
		return "", err
	}
	switch err := config.DropServer(file, name); {
	case errors.Is(err, config.ErrNotThere):
		return file, fmt.Errorf("there is no MCP server %q in %s; 'capstan mcp list' says where each is configured", name, file)
	case err != nil:
		return file, fmt.Errorf("removing the MCP server %q: %w", name, err)
	}
	home, err := os.UserHomeDir()
	if err == nil {
		_, err = mcp.NewLogins(loginsFile(home)).Remove(name)
	}
	return file, err
}

// A Server is an MCP server as it is configured.
type Server struct {
	Name        string   `json:"name"`
	Type        string   `json:"type"`             // stdio, http or sse
	Target      []string `json:"target,omitempty"` // the command with its arguments, or the URL; variables stand as they are
	From        string   `json:"from,omitempty"`
	Description string   `json:"description,omitempty"`
	Trust       bool     `json:"trust"`
	AlwaysLoad  bool     `json:"alwaysLoad"`
	Fault       string   `json:"fault,omitempty"` // why it cannot be used
}

// Servers returns the configured servers by name, with those that cannot be used.
func (s *Session) Servers() []Server {
	list := []Server{}
	for _, c := range s.servers.configs {
		v := Server{Name: c.Name, Type: c.Type, From: c.From, Description: c.Description, Trust: c.Trust, AlwaysLoad: c.AlwaysLoad}
		if c.Type == mcp.Stdio {
			v.Target = append([]string{c.Command}, c.Args...)
		} else {
			v.Target = []string{c.URL}
		}
		for i := range v.Target {
			v.Target[i] = s.Redact(v.Target[i])
		}
		list = append(list, v)
	}
	for name, why := range s.servers.broken {
		list = append(list, Server{Name: name, Fault: s.Redact(why)})
	}
	slices.SortFunc(list, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// A Trial is how starting a server went.
type Trial struct {
	Name     string
	Tools    int
	Fault    string // why it cannot be used; empty when it can
	Denied   bool   // because a rule forbids it, which is what the user wants
	Warnings []string
}

// TestServers starts the named servers and says of each how that went.
func (s *Session) TestServers(ctx context.Context, names ...string) []Trial {
	faults := map[string]string{}
	if s.servers.manager != nil && len(names) > 0 {
		for _, m := range s.servers.manager.Wait(ctx, names...) {
			faults[m.Server] = s.Redact(m.Why)
		}
	}
	var list []Trial
	for _, name := range names {
		t := Trial{Name: name, Fault: faults[name]}
		if why := s.servers.broken[name]; why != "" {
			t.Fault, t.Denied = s.Redact(why), s.servers.denied[name]
		}
		for _, st := range s.ServerStatus() {
			if st.Name == name {
				t.Tools, t.Warnings = st.Tools, st.Warnings
			}
		}
		list = append(list, t)
	}
	return list
}

// ServerReport is what a server gives once it is started.
type ServerReport struct {
	mcp.Status
	Offered   []OfferedTool
	Resources []mcp.Resource
	Prompts   []mcp.Prompt
	Faults    []string // lists that could not be read
}

// An OfferedTool is a tool of a server.
type OfferedTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// Inspect starts a server and looks at all that it offers. The error says why it
// is not ready; then the report has what is known of it.
func (s *Session) Inspect(ctx context.Context, name string) (*ServerReport, error) {
	m := s.servers.manager
	i := -1
	if m != nil {
		i = slices.IndexFunc(s.servers.configs, func(c mcp.Config) bool { return c.Name == name })
	}
	if why := s.servers.broken[name]; i < 0 && why != "" {
		return nil, errors.New(s.Redact(why))
	} else if i < 0 {
		return nil, &UsageError{fmt.Errorf("there is no MCP server %q; 'capstan mcp list' names them", name)}
	}
	missing := m.Wait(ctx, name)
	r := &ServerReport{}
	for _, st := range s.ServerStatus() {
		if st.Name == name {
			r.Status = st
		}
	}
	if err := context.Cause(ctx); err != nil {
		return r, err
	}
	if len(missing) > 0 {
		return r, errors.New(s.Redact(missing[0].Why))
	}
	for _, e := range s.Registry.Tools() {
		if sp := e.Spec(); sp.Server == name {
			r.Offered = append(r.Offered, OfferedTool{sp.Name, sp.Description})
		}
	}
	var err error
	if r.Resources, err = m.Resources(ctx, name); err != nil {
		r.Faults = append(r.Faults, s.Redact(err.Error()))
	}
	if r.Prompts, err = m.Prompts(ctx, name); err != nil {
		r.Faults = append(r.Faults, s.Redact(err.Error()))
	}
	s.redactOffers(r)
	return r, context.Cause(ctx)
}

// redactOffers takes the secrets out of what a server offers; its tools have none.
func (s *Session) redactOffers(r *ServerReport) {
	for i := range r.Resources {
		v := &r.Resources[i]
		for _, text := range []*string{&v.URI, &v.Template, &v.Name, &v.Title, &v.Description, &v.MIMEType} {
			*text = s.Redact(*text)
		}
	}
	for i := range r.Prompts {
		p := &r.Prompts[i]
		p.Name, p.Title, p.Description = s.Redact(p.Name), s.Redact(p.Title), s.Redact(p.Description)
		for j := range p.Arguments {
			a := &p.Arguments[j]
			a.Name, a.Description = s.Redact(a.Name), s.Redact(a.Description)
		}
	}
}

// Login logs in to a server over HTTP. open is given the address that the person
// has to visit.
func (s *Session) Login(ctx context.Context, name string, open func(address string) error) error {
	for _, c := range s.servers.configs {
		if c.Name == name {
			if s.home == "" {
				return errors.New("logging in: there is no home directory to keep the login in")
			}
			return mcp.NewLogins(loginsFile(s.home)).Login(ctx, c, s.lookupEnv, open)
		}
	}
	if why := s.servers.broken[name]; why != "" {
		return errors.New(why)
	}
	return &UsageError{fmt.Errorf("there is no MCP server %q; 'capstan mcp list' names them", name)}
}

// Logout forgets the login of a server, and says whether there was one.
func (s *Session) Logout(name string) (bool, error) {
	if s.home == "" {
		return false, nil
	}
	return mcp.NewLogins(loginsFile(s.home)).Remove(name)
}

func (s *Session) lookupEnv(name string) (string, bool) {
	for _, e := range slices.Backward(s.opt.Environ) {
		if k, v, ok := strings.Cut(e, "="); ok && k == name {
			return v, true
		}
	}
	return "", false
}
