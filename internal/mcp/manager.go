package mcp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"capstan/internal/shell"
	"capstan/internal/tool"
)

// Options say what a Manager works with. Registry and Shell are required.
type Options struct {
	Registry *tool.Registry
	Shell    *shell.Runner // keeps the stdio servers
	Dir      string        // where they run: the workspace, absolute
	Roots    []string      // directories told to servers that ask; absolute
	Env      []string      // for ${VAR} and what servers inherit; nil means the process's own
	Version  string        // of this program

	// Elicit answers a server that asks the person something. Nil refuses, and
	// servers are told at the start that they need not ask. A model's completion
	// (sampling) is refused always: what a server says is data, and a model that
	// it can talk to would spend the user's money on it.
	Elicit Elicit

	// Withheld returns the rule because of which a tool of ours that reads many
	// servers at once leaves this one out; empty when there is none. Nil: none is.
	Withheld func(server, tool string) string

	// Redact takes the secrets out of what is said of a server: definitions of
	// tools, errors, remarks. Nil: there are none.
	Redact func(string) string

	// Logins holds what logging in has brought; nil means that servers which
	// want a login cannot be used.
	Logins *Logins
	// Changed is called after a server's state or tools have changed, from any
	// goroutine; it must not wait for the Manager.
	Changed func(server string)
	// Backoff is the first pause before a restart, doubled each time up to a
	// minute; 0 means 250 ms.
	Backoff time.Duration

	// Of tests.
	dial   func(Config) (sdk.Transport, error)
	listen time.Duration
	stall  time.Duration
}

// Elicit puts a question of a server to a person.
type Elicit func(ctx context.Context, server string, q *sdk.ElicitParams) (*sdk.ElicitResult, error)

// A State is how a server is.
type State string

// The states.
const (
	Idle       State = "idle"       // nobody has needed it yet
	Starting   State = "starting"   // for the first time
	Ready      State = "ready"      // connected; its tools are in the registry
	Restarting State = "restarting" // it was ready once; its tools stay
	Failed     State = "failed"     // it will be tried again when it is needed
	Stopped    State = "stopped"
)

// A Status is a look at one server.
type Status struct {
	Name, Type, From string
	State            State
	Why              string // when it is not ready
	Tools            int    // in the registry
	Server           string // name and version, as it says
	Instructions     string // as it says: text for people, never obeyed
	Restarts         int
	Stderr           string   // the end of it
	Warnings         []string // what is wrong with it but did no harm beyond
	Since            time.Time
}

// Missing is a server that could not be used, and why.
type Missing struct{ Server, Why string }

// String is a sentence for a model or a person (BUG-MC-30).
func (m Missing) String() string { return fmt.Sprintf("MCP server %s is missing: %s", m.Server, m.Why) }

// A Manager owns the MCP servers of one session. Its methods may be called from
// any goroutine.
type Manager struct {
	o      Options
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	servers []*server // by name
	closed  bool
}

// New makes a Manager without servers.
func New(o Options) *Manager {
	if o.Env == nil {
		o.Env = os.Environ()
	}
	if o.Backoff <= 0 {
		o.Backoff = 250 * time.Millisecond
	}
	m := &Manager{o: o}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

func (m *Manager) getenv(name string) (string, bool) { return lookup(m.o.Env)(name) }

// Add takes servers in without starting them. Each is started when it is first
// needed, by [Manager.Wait] or a call, or by [Manager.StartAll]. With the first
// servers come the tools that read their resources. Two servers with one name
// are an error; see [Merge].
func (m *Manager) Add(configs ...Config) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return errors.New("adding MCP servers: the manager is closed")
	}
	seen := map[string]bool{}
	for _, s := range m.servers {
		seen[s.cfg.Name] = true
	}
	for _, c := range configs {
		if seen[c.Name] {
			return fmt.Errorf("adding MCP servers: there are two servers with the name %q", c.Name)
		}
		seen[c.Name] = true
	}
	if len(m.servers) == 0 && len(configs) > 0 {
		if err := m.o.Registry.Add(m.resourceTools()...); err != nil {
			return fmt.Errorf("adding MCP servers: %w", err)
		}
	}
	for _, c := range configs {
		m.servers = append(m.servers, newServer(m, c))
	}
	slices.SortFunc(m.servers, func(a, b *server) int { return strings.Compare(a.cfg.Name, b.cfg.Name) })
	return nil
}

// StartAll starts the servers that have not been, each on its own, and returns at
// once: nothing waits for a server but [Manager.Wait] and the calls of its tools
// (BUG-MC-18, BUG-MC-20).
func (m *Manager) StartAll() {
	for _, s := range m.list(nil) {
		s.launch()
	}
}

// Start adds servers and starts them.
func (m *Manager) Start(configs ...Config) error {
	if err := m.Add(configs...); err != nil {
		return err
	}
	m.StartAll()
	return nil
}

// Wait starts the named servers, or every server when none is named, and waits
// until each has connected or failed for the first time, but for none longer than
// its start-up timeout since its start. Of one that said that its tools have
// changed it waits for the new ones. A server that is named and has failed is
// tried once more, unless that was just tried, and one that is being restarted is
// waited for. It returns those that are not ready.
func (m *Manager) Wait(ctx context.Context, names ...string) []Missing {
	list := m.list(names)
	for _, s := range list {
		s.launch()
	}
	whys := make([]string, len(list))
	var wg sync.WaitGroup
	for i, s := range list {
		wg.Go(func() {
			why := s.settle(ctx)
			if why != "" && len(names) > 0 {
				why = s.revive(ctx, why)
			}
			whys[i] = why
		})
	}
	wg.Wait()
	var missing []Missing
	for i, why := range whys {
		if why != "" {
			missing = append(missing, Missing{list[i].cfg.Name, why})
		}
	}
	return missing
}

// Changing reports whether a server has said that its tools are others now, and
// the registry still has those of before: a call of one has to Wait first.
func (m *Manager) Changing(server string) bool {
	for _, s := range m.list([]string{server}) {
		return s.changing()
	}
	return false
}

func (m *Manager) list(names []string) []*server {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(names) == 0 {
		return slices.Clone(m.servers)
	}
	var list []*server
	for _, s := range m.servers {
		if slices.Contains(names, s.cfg.Name) {
			list = append(list, s)
		}
	}
	return list
}

// server finds a server by its name.
func (m *Manager) server(name string) (*server, error) {
	if list := m.list([]string{name}); name != "" && len(list) == 1 {
		return list[0], nil
	}
	var names []string
	for _, s := range m.list(nil) {
		names = append(names, s.cfg.Name)
	}
	return nil, fmt.Errorf("there is no MCP server %q; there are: %s", excerpt(name, 100), strings.Join(names, ", "))
}

// Status tells how every server is, by name.
func (m *Manager) Status() []Status {
	var list []Status
	for _, s := range m.list(nil) {
		list = append(list, s.status())
	}
	return list
}

// Ping asks a server for a sign of life, and gives the time that took.
func (m *Manager) Ping(ctx context.Context, name string) (time.Duration, error) {
	s, err := m.server(name)
	if err != nil {
		return 0, err
	}
	c, err := s.acquire(ctx)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.timeout(), fmt.Errorf("it did not answer within %v", c.cfg.timeout()))
	defer cancel()
	begun := time.Now()
	sent, trip := withTrip(ctx)
	if err := trip.judge(c.session.Ping(sent, nil)); err != nil {
		return 0, fmt.Errorf("pinging MCP server %s: %w", name, c.explain(ctx, err))
	}
	return time.Since(begun), nil
}

// Close ends every server, waits until nothing of them is left, and takes their
// tools out of the registry.
func (m *Manager) Close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.cancel()
	m.wg.Wait()
	// It only takes out, so there is nothing to refuse.
	_ = m.o.Registry.Replace(func(sp *tool.Spec) bool { return sp.Server != "" || slices.Contains(resourceNames, sp.Name) })
}

func (m *Manager) notify(server string) {
	if m.o.Changed != nil {
		m.o.Changed(server)
	}
}
