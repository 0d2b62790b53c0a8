package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"capstan/internal/agent"
	"capstan/internal/codemode"
	"capstan/internal/config"
	"capstan/internal/mcp"
	"capstan/internal/tool"
)

// servers are the MCP servers of a session: what is configured, and what runs.
type servers struct {
	configs []mcp.Config
	names   []string // of configs, sorted
	// broken says of each server that cannot be used as it is configured why.
	broken  map[string]string
	denied  map[string]bool // those of broken that a rule forbids
	manager *mcp.Manager    // nil when there are none

	mu   sync.Mutex
	told map[string]bool // what the user was told already
}

// readServers reads the servers of all layers. What is wrong with one costs that
// one, and is a warning; in a file that the command line names it is an error.
func (s *Session) readServers(set config.Settings) error {
	var layers [][]mcp.Config
	var faults []error
	s.servers.broken, s.servers.denied, s.servers.told = map[string]string{}, map[string]bool{}, map[string]bool{}
	for _, section := range set.Sections {
		if section.Key != "mcpServers" {
			continue
		}
		value, off := without(section.Value)
		for i := range layers {
			layers[i] = slices.DeleteFunc(layers[i], func(c mcp.Config) bool { return slices.Contains(off, c.Name) })
		}
		list, found := mcp.Parse(value, section.From.String())
		for i := range list {
			list[i].From = section.At(list[i].Name).String()
		}
		layers = append(layers, list)
		s.openSecrets(section, list)
		for _, f := range found {
			f.Where = section.At(placeOf(f)...).String()
			switch {
			case f.Warning:
				s.warn("%v", f)
			case slices.Contains(s.opt.MCPConfig, section.From.File):
				faults = append(faults, f)
			default:
				s.warn("%v", f)
				if f.Server != "" {
					s.servers.broken[f.Server] = f.Error()
				}
			}
		}
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("reading the MCP servers: %w", err)
	}
	all, hidden := mcp.Merge(layers...)
	for _, f := range hidden {
		s.warn("%v", f)
	}
	for _, c := range all {
		delete(s.servers.broken, c.Name) // another layer has it right
		s.servers.configs, s.servers.names = append(s.servers.configs, c), append(s.servers.names, c.Name)
	}
	return nil
}

// openSecrets warns of secrets among the arguments of a program: everybody on the
// machine can see those.
func (s *Session) openSecrets(section config.Section, list []mcp.Config) {
	for _, c := range list {
		for _, ref := range variable.FindAllStringSubmatch(strings.Join(c.Args, " "), -1) {
			if name, _, _ := strings.Cut(ref[1], ":-"); secretName.MatchString(name) {
				s.warn("%s: mcpServers.%s.args: the value of ${%s} can be seen in the machine's list of processes; if the server takes it from its environment, put it into env", section.At(c.Name, "args"), c.Name, name)
			}
		}
	}
}

// without takes the servers out of a section that it turns off, with null or
// disabled, and names them: those of farther layers are meant too.
func without(section json.RawMessage) (rest json.RawMessage, off []string) {
	var entries map[string]json.RawMessage
	if json.Unmarshal(section, &entries) != nil {
		return section, nil // which is reported where it is parsed
	}
	for name, raw := range entries {
		var state struct {
			Disabled bool `json:"disabled"`
		}
		if string(raw) == "null" || json.Unmarshal(raw, &state) == nil && state.Disabled {
			off = append(off, name)
			delete(entries, name)
		}
	}
	rest, err := json.Marshal(entries)
	if err != nil || off == nil {
		return section, nil
	}
	return rest, off
}

// placeOf is the path of a fault's value in its section.
func placeOf(f mcp.Fault) []string {
	if f.Server == "" {
		return nil
	}
	if key, ok := strings.CutPrefix(f.Path, "mcpServers."+f.Server+"."); ok {
		return []string{f.Server, key}
	}
	return []string{f.Server}
}

// addServers hands the servers to a manager. None is started.
func (s *Session) addServers(roots []string) error {
	s.dropDenied()
	if len(s.servers.configs) == 0 {
		return nil
	}
	o := mcp.Options{Registry: s.Registry, Shell: s.shell, Dir: s.project, Roots: roots, Env: s.opt.Environ, Version: s.opt.Version, Elicit: s.elicit()}
	o.Redact = s.Redact
	o.Withheld = func(server, name string) string { return s.rules.Guards(mcp.ToolName(server, name)) }
	if o.Env == nil {
		o.Env = []string{} // not the process's own: whoever opens the session says what there is
	}
	if s.home != "" {
		o.Logins = mcp.NewLogins(loginsFile(s.home))
	}
	s.servers.manager = mcp.New(o)
	return s.servers.manager.Add(s.servers.configs...)
}

func loginsFile(home string) string { return filepath.Join(home, ".capstan", "mcp-logins.json") }

// dropDenied leaves out the servers that a rule denies as a whole, and those
// outside of the scope: nothing of them could be called, and starting one is
// running a program.
func (s *Session) dropDenied() {
	view := s.View()
	s.servers.configs = slices.DeleteFunc(s.servers.configs, func(c mcp.Config) bool {
		if s.rules.ForbidsAll(serverPattern(c.Name)) {
			s.scope.Disallow = append(slices.Clone(s.scope.Disallow), "mcp__"+c.Name)
			s.servers.denied[c.Name] = true
			s.servers.broken[c.Name] = "a rule of permissions.deny forbids all of its tools"
			return true
		}
		return !view.Serves(c.Name)
	})
}

// serverPattern begins the names of all tools of a server.
func serverPattern(server string) string {
	return tool.ServerPrefix(server)
}

// headStart is what the first request gets before servers are started, for twenty
// of them at once take the machine away from it.
const headStart = 50 * time.Millisecond

// startingServers starts the servers once the first request is on its way, so
// that they have come up when the model wants them and no request waits.
func (s *Session) startingServers(emit func(agent.Event)) func(agent.Event) {
	if s.servers.manager == nil {
		return emit
	}
	var once sync.Once
	return func(e agent.Event) {
		once.Do(func() { time.AfterFunc(headStart, s.StartServers) })
		if emit != nil {
			emit(e)
		}
	}
}

// awaitCalls waits for the servers of tools that a model calls and that are not
// there: of a session that is gone on with, say. What stays missing is said to
// the model.
func (s *Session) awaitCalls(ctx context.Context, calls []tool.Call) {
	view := s.View()
	for i := range calls {
		name := calls[i].Name
		if c, ok, _ := view.Unwrap(calls[i]); ok {
			name = c.Name
		}
		servers := s.serversNamed(name)
		if len(servers) == 0 || view.Visible(name) != nil && !slices.ContainsFunc(servers, s.changing) {
			continue
		}
		missing := s.AwaitServers(ctx, servers...)
		if len(missing) > 0 && calls[i].Fault == "" && s.View().Visible(name) == nil {
			calls[i].Fault = fmt.Sprintf("%s was not run: %s", name, strings.Join(missing, "; "))
		}
	}
}

// changing says whether a server has said that its tools are others now, and they
// are not here yet.
func (s *Session) changing(server string) bool {
	return s.servers.manager != nil && s.servers.manager.Changing(server)
}

// StartServers starts the configured servers that have not been, and waits for
// none of them.
func (s *Session) StartServers() {
	if s.servers.manager != nil {
		s.servers.manager.StartAll()
	}
}

// AwaitServers starts the named servers, all when none is named, and waits until
// each has answered or had its time. It returns a line for each that is missing.
func (s *Session) AwaitServers(ctx context.Context, names ...string) []string {
	var lines []string
	for _, name := range names {
		if why := s.servers.broken[name]; why != "" {
			lines = append(lines, s.Redact(mcp.Missing{Server: name, Why: why}.String()))
		}
	}
	if s.servers.manager == nil || len(names) > 0 && len(lines) == len(names) {
		return lines
	}
	for _, m := range s.servers.manager.Wait(ctx, names...) {
		lines = append(lines, s.Redact(m.String()))
	}
	if ctx.Err() == nil {
		s.tell(lines)
	}
	return lines
}

// tell tells the user, each thing once, which servers are missing, what is wrong
// with tools of others, and what they did to the description.
func (s *Session) tell(lines []string) {
	if s.opt.Notice == nil {
		return
	}
	lines = slices.Clone(lines)
	for _, st := range s.ServerStatus() {
		if n := len(st.Warnings); n > 0 && st.State == mcp.Ready {
			lines = append(lines, fmt.Sprintf("MCP server %s: %s%s", st.Name, st.Warnings[0], more(n-1, st.Name)))
		}
	}
	view := s.View()
	lines = append(lines, view.Warnings()...)
	if w := codemode.Overflow(view); w != "" {
		lines = append(lines, w)
	}
	s.servers.mu.Lock()
	defer s.servers.mu.Unlock()
	for _, l := range lines {
		if !s.servers.told[l] {
			s.servers.told[l] = true
			s.opt.Notice(l)
		}
	}
}

func more(n int, server string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more: capstan mcp get %s)", n, mcp.Word(server))
}

// awaitForSearch waits for whatever a search could find.
func (s *Session) awaitForSearch(ctx context.Context) []string { return s.AwaitServers(ctx) }

// serversOf names the configured servers that a property of `tools` may belong to.
// There is more than one when their names are written alike in JavaScript.
func (s *Session) serversOf(js string) []string {
	return s.serversWith(func(pattern string) bool { return strings.HasPrefix(js, tool.JSName(pattern)) })
}

// serversNamed names the configured servers that a tool may belong to: by its own
// name, which means one of them, or else as a program would write it.
func (s *Session) serversNamed(name string) []string {
	if exact := s.serversWith(func(pattern string) bool { return strings.HasPrefix(name, pattern) }); exact != nil {
		return exact
	}
	return s.serversOf(tool.JSName(name))
}

// serversWith names, sorted, the servers whose pattern fits, with those that cannot
// be used.
func (s *Session) serversWith(fits func(pattern string) bool) []string {
	var names []string
	for _, c := range s.servers.configs {
		if fits(serverPattern(c.Name)) {
			names = append(names, c.Name)
		}
	}
	for name := range s.servers.broken {
		if fits(serverPattern(name)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// aboutServer is what there is to say of a server, for the index alone: the
// user's words and its own.
func (s *Session) aboutServer(name string) string {
	const most = 2000
	about := ""
	for _, c := range s.servers.configs {
		if c.Name == name {
			about = c.Description
		}
	}
	for _, st := range s.ServerStatus() {
		if st.Name == name {
			said := strings.Join(strings.Fields(st.Instructions), " ")
			about = strings.TrimSpace(about + " " + said[:min(len(said), most)])
		}
	}
	return strings.ToValidUTF8(about, "")
}

// A ServerState is a configured server in a word: connected, pending or failed.
type ServerState struct{ Name, State string }

// ServerStates returns how the configured servers are, by name.
func (s *Session) ServerStates() []ServerState {
	var list []ServerState
	for _, st := range s.ServerStatus() {
		word := "pending"
		switch st.State {
		case mcp.Ready:
			word = "connected"
		case mcp.Failed, mcp.Stopped:
			word = "failed"
		}
		list = append(list, ServerState{st.Name, word})
	}
	for name := range s.servers.broken {
		list = append(list, ServerState{name, "failed"})
	}
	slices.SortFunc(list, func(a, b ServerState) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// ServerStatus tells how every server is, by name. Nothing is started by it. No
// secret is in it, whatever the servers say.
func (s *Session) ServerStatus() []mcp.Status {
	if s.servers.manager == nil {
		return nil
	}
	list := s.servers.manager.Status()
	for i := range list {
		st := &list[i]
		for _, text := range []*string{&st.Why, &st.Server, &st.Instructions, &st.Stderr} {
			*text = s.Redact(*text)
		}
		for j := range st.Warnings {
			st.Warnings[j] = s.Redact(st.Warnings[j])
		}
	}
	return list
}

func (s *Session) closeServers() {
	if s.servers.manager != nil {
		s.servers.manager.Close()
	}
}
