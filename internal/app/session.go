// Package app puts the parts together: settings, tools, policy, the executor
// and the sandbox become one session. It decides nothing by itself, and it is
// the only package that knows all the others.
package app

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"capstan/internal/agent"
	"capstan/internal/builtin"
	"capstan/internal/codemode"
	"capstan/internal/config"
	"capstan/internal/hook"
	"capstan/internal/mcp"
	"capstan/internal/msg"
	"capstan/internal/policy"
	"capstan/internal/sandbox/quickjs"
	"capstan/internal/sched"
	"capstan/internal/shell"
	"capstan/internal/telemetry"
	"capstan/internal/tool"
)

// Options say what session to open. Everything of the machine comes in here:
// no package below reads the environment or the home directory by itself.
type Options struct {
	Dir          string              // working directory, absolute
	Env          func(string) string // the environment
	ApprovalMode string              // empty means default; no setting chooses it
	Environ      []string            // all of it: what MCP servers inherit of it is chosen there
	Settings     []string            // further settings files
	MCPConfig    []string            // files of MCP servers, the user's own
	Managed      string              // settings of whoever runs the machine; empty means config.ManagedFile
	AddDirs      []string            // further workspace roots
	Trust        bool                // this run trusts the folder
	Sandbox      bool                // shell commands run in the system's sandbox
	// Mode overrides the settings' mode. Program is for one program run by a
	// person: a code view of its own, and output uncut.
	Mode    tool.Mode
	Program bool
	// Allow are further rules of permissions.allow, of --allowed-tools. Exclude
	// takes tools away, by name or pattern, of --exclude-tools.
	Allow, Exclude []string
	// Agent is the definition that the session's own agent follows; empty: none.
	Agent string
	// Structured is the JSON Schema of the answer that a run has to end with; nil
	// when its text is the answer.
	Structured json.RawMessage
	// Observe gets the events of every call.
	Observe func(sched.Event)
	// Hooks and Guards are an embedder's own. Its hooks come before the user's, and
	// its guards have the last word, after the person.
	Hooks  []sched.Hook
	Guards []sched.Guard
	// HookNotice gets what the user's hooks have to say, and what is wrong with
	// them, from any goroutine; nil means Notice.
	HookNotice func(text string)
	// Approver asks a person; nil when nobody can be asked.
	Approver sched.Approver
	// Consult puts a question of the model's own to a person; nil when nobody can be
	// asked, and then the model has no tool for it.
	Consult Consult
	// Ask asks a person what a server wants to know; nil when nobody can be asked.
	Ask Ask
	// Notice gets what the user should know and what turns out only while the
	// session runs, from any goroutine; nil drops it.
	Notice  func(text string)
	Version string // of Capstan, for servers
}

// A Session is everything that lives as long as one run of an agent.
type Session struct {
	Registry *tool.Registry
	Warnings []string // what the user should know before anything runs

	opt     Options
	home    string   // the user's; empty when there is none
	project string   // the workspace's root
	added   []string // further roots, of --add-dir
	trusted bool     // what the folder itself wants is used
	set     config.Settings
	secrets []string // that must not be shown, the longest first

	mode     tool.Mode
	scope    tool.Scope
	excluded []string // what --exclude-tools takes away
	rules    *policy.Policy
	// beforePlan is the approval mode in which the model entered plan mode; nil: it
	// did not.
	beforePlan atomic.Pointer[policy.Mode]
	desk       *desk // where a person is asked; nil when nobody can be
	shell      *shell.Runner
	box        *shell.Sandbox // that commands run in; nil: none
	jobs       *shell.Jobs
	place      *builtin.Place // of the tools
	trees      worktrees
	seen       builtin.Seen  // the files that it has read
	calls      sched.Options // of the runtime
	rt         *sched.Runtime
	runner     *quickjs.Runner
	search     *codemode.Search

	userHooks  *hook.Hooks
	hooks      *hook.Dispatcher    // nil when there are none
	agentHooks map[string]ownHooks // of definitions, by name
	talk       hook.Session        // the conversation that hooks are told of

	agents *agent.Definitions
	self   *agent.Definition   // what the session's own agent is, if it is one of them
	team   *agent.Team         // nil in a session for one program
	told   agent.PromptOptions // what its prompt is made of, and that of its subagents

	servers    servers
	skills     *builtin.Skills
	structured *builtin.Structured // nil when the answer has no schema
	spill      *spill

	requireLayers bool // a layer of the sandbox that is missing is an error
}

// Open returns a new session. Close ends it. A settings file that cannot be
// read, or a rule that forbids something and cannot be understood, is an error:
// going on would run what it forbids.
func Open(o Options) (*Session, error) {
	home, err := homeDirectory()
	if err != nil {
		return nil, err
	}
	s := &Session{Registry: &tool.Registry{}, opt: o, home: home, talk: hook.Session{ID: rand.Text()}} // until a conversation has one
	s.spill = newSpill(filepath.Join(stateDir(o.Env, home), "spill"), time.Now)
	s.spill.secrets = func() []string { return s.secrets }
	project, err := policy.Workspace(o.Dir)
	if err != nil {
		return nil, err
	}
	set, err := s.settings(home, project)
	if err != nil {
		return nil, err
	}
	s.project, s.set = project, set
	if err := s.loadAgents(); err != nil {
		return nil, err
	}
	if err := s.readHooks(set.Sections); err != nil {
		return nil, err
	}
	s.readAgentHooks()
	s.collectSecrets()
	spares := 1 // for the next program of a conversation; a person's own is the only one
	if o.Program {
		spares = 0
	}
	s.runner = quickjs.New(quickjs.Options{Require: set.SandboxRequire, Spares: spares})
	s.requireLayers = set.SandboxRequire
	roots, err := s.roots(project)
	if err != nil {
		return nil, err
	}
	s.box, err = s.sandbox(roots)
	if err != nil {
		return nil, err
	}
	s.shell = shell.New(shell.Options{Secrets: append(append(shell.DefaultSecrets(), telemetry.Secrets...), s.keyVariables()...), Sandbox: s.box})
	s.jobs = shell.NewJobs(s.shell)
	s.added = roots[1:]
	if err := s.addWorktrees(); err != nil {
		return nil, err
	}
	if err := s.register(roots); err != nil {
		return nil, err
	}
	if s.rules, err = s.policy(set, home, roots); err != nil {
		return nil, err
	}
	s.withdraw()
	s.agentWarnings()
	if err := s.addServers(roots); err != nil {
		return nil, err
	}
	if w := codemode.Overflow(s.View()); w != "" {
		s.warn("%s", w)
	}
	so := sched.Options{Policy: s.rules, Observe: o.Observe, Spill: s.spill.keep, Hooks: o.Hooks, Guards: o.Guards}
	s.addHooks(&so)
	if o.Approver != nil && (s.self == nil || !s.self.Silent) {
		s.desk = newDesk(s, s.announced(o.Approver))
		so.Approver = s.desk
	}
	if o.Program {
		so.ModelChars = 16 << 20 // what a person's own program prints is not cut
	}
	s.calls, s.rt = so, sched.New(so)
	return s, nil
}

// settings reads the layers. A folder's own settings count once it is trusted.
func (s *Session) settings(home, project string) (config.Settings, error) {
	trusted := s.opt.Trust
	if !trusted {
		var err error
		if trusted, err = config.NewTrustStore(home).Trusted(project); err != nil {
			s.warn("%v; this folder's settings are not used", err)
		}
	}
	s.trusted = trusted
	for _, f := range s.opt.Settings {
		if _, err := os.Stat(f); err != nil {
			return config.Settings{}, &UsageError{fmt.Errorf("--settings: %w", err)}
		}
	}
	for _, f := range s.opt.MCPConfig {
		if _, err := os.Stat(f); err != nil {
			return config.Settings{}, &UsageError{fmt.Errorf("--mcp-config: %w", err)}
		}
	}
	set, warnings, err := config.Load(config.Options{
		Home: home, Project: project, Files: s.opt.Settings, Servers: s.opt.MCPConfig, Trusted: trusted, Mode: string(s.opt.Mode), Managed: s.managed()})
	for _, w := range warnings {
		s.warn("%v", w)
	}
	if err != nil {
		return set, fmt.Errorf("reading the settings: %w", err)
	}
	s.unused(set.Sections)
	s.mode = tool.ModeFor(tool.Mode(set.Mode))
	if s.opt.Program {
		s.mode = tool.Code
	}
	if err := s.readServers(set); err != nil {
		return set, err
	}
	s.scope = tool.Scope{Eager: set.Eager, Visible: set.Visible, Servers: len(s.servers.names) > 0}
	for _, name := range s.opt.Exclude {
		s.excluded = append(s.excluded, meant(name)...)
	}
	s.scope.Disallow = s.excluded
	return set, nil
}

// managed is the settings file of whoever runs the machine.
func (s *Session) managed() string {
	if s.opt.Managed != "" {
		return s.opt.Managed
	}
	return config.ManagedFile()
}

// unused says which settings have no effect because this version has nothing that
// reads them.
func (s *Session) unused(sections []config.Section) {
	what := map[string]string{"acp": "does not speak ACP"}
	for _, x := range sections {
		if what[x.Key] != "" && string(x.Value) != "{}" {
			s.warn("%s: %s has no effect yet: this version %s", x.From, x.Key, what[x.Key])
		}
	}
}

// roots are the directories of the workspace, the project's first.
func (s *Session) roots(project string) ([]string, error) {
	roots := []string{project}
	for _, d := range s.opt.AddDirs {
		if !filepath.IsAbs(d) {
			d = filepath.Join(s.opt.Dir, d)
		}
		info, err := os.Stat(d)
		if err != nil {
			return nil, &UsageError{fmt.Errorf("--add-dir: %w", err)}
		}
		if !info.IsDir() {
			return nil, &UsageError{fmt.Errorf("--add-dir: %s is not a directory", d)}
		}
		roots = append(roots, d)
	}
	return roots, nil
}

func (s *Session) policy(set config.Settings, home string, roots []string) (*policy.Policy, error) {
	o := policy.Options{Dir: s.opt.Dir, Roots: roots, Home: home, Readable: append([]string{s.spill.dir}, s.skills.Folders()...), HidesDenied: true, ToolOf: mcp.ToolName}
	if !s.opt.Program { // for one program there is no such flag
		o.AllowFlag = "--allowed-tools"
	}
	if s.opt.ApprovalMode != "" {
		mode, err := policy.ParseMode(s.opt.ApprovalMode)
		if err != nil {
			return nil, &UsageError{fmt.Errorf("--approval-mode: %w", err)}
		}
		o.Mode = mode
	}
	if s.self != nil && s.self.Approval != "" {
		o.Mode = policy.Mode(agent.Stricter(s.self.Approval, cmp.Or(string(o.Mode), string(policy.Default))))
	}
	for _, r := range set.Rules {
		o.Rules = append(o.Rules, policy.Rule{List: r.List, Text: r.Text, Origin: r.From.String()})
	}
	o.Environ = []string{}
	for _, v := range s.opt.Environ {
		name, _, _ := strings.Cut(v, "=")
		o.Environ = append(o.Environ, name)
	}
	if s.opt.Environ == nil {
		o.Environ = nil // nobody knows what commands get
	}
	if o.ManagedOnly = set.AllowManagedOnly; o.ManagedOnly && len(s.opt.Allow) > 0 {
		return nil, &UsageError{errors.New("--allowed-tools: the managed settings let only their own rules allow something")}
	}
	if set.NoYolo != (config.Origin{}) {
		o.NoYolo = set.NoYolo.String()
	}
	for _, text := range s.opt.Allow {
		o.Rules = append(o.Rules, policy.Rule{List: "allow", Text: text, Origin: "--allowed-tools"})
	}
	for _, e := range s.Registry.Tools() {
		o.Tools = append(o.Tools, e.Spec().Name)
	}
	p, warnings, err := policy.New(o)
	for _, w := range warnings {
		s.warn("%s", w)
	}
	return p, err
}

func (s *Session) warn(format string, a ...any) {
	s.Warnings = append(s.Warnings, fmt.Sprintf(format, a...))
}

// A UsageError is a fault in how capstan was called.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the fault itself.
func (e *UsageError) Unwrap() error { return e.Err }

func (s *Session) register(roots []string) error {
	hidden := func(path string) bool { return s.rules.Hidden(path) } // the rules come after the tools that they name
	s.place = builtin.NewPlace(s.opt.Dir, roots)
	tools := builtin.All(builtin.Options{Place: s.place, Hidden: hidden, Seen: &s.seen})
	tools = append(tools, builtin.Shell(builtin.ShellOptions{Place: s.place, Runner: s.shell, Jobs: s.jobs, Spill: s.spill.stream})...)
	var err error
	if s.opt.Structured != nil {
		if s.structured, err = builtin.NewStructured(s.opt.Structured); err != nil {
			return &UsageError{fmt.Errorf("--json-schema: %w", err)}
		}
	}
	tools = append(tools, s.loop(builtin.TodoOptions{})...)
	s.skills = builtin.LoadSkills(builtin.SkillDirs(s.home, s.project, s.trusted))
	s.Warnings = append(s.Warnings, s.skills.Warnings...)
	if !s.trusted {
		if unused := s.skills.Unused(s.project); unused != nil {
			s.warn("%s: not used, because this folder is not trusted: skills (--trust uses them for one run)", strings.Join(unused, ", "))
		}
	}
	if t := s.skills.Tool(hidden); t != nil {
		tools = append(tools, t)
	}
	if s.wantsExec() { // S0-039 to S0-041
		tools = append(tools, s.newExec())
	}
	if s.team != nil {
		tools = append(tools, s.team.Tools()...)
	}
	tools = append(tools, s.searching()...)
	if err = s.Registry.Add(tools...); err != nil {
		return err
	}
	for _, w := range s.View().Warnings() {
		s.warn("%s", w)
	}
	return s.checkExcluded()
}

func (s *Session) newExec() *codemode.Exec {
	return codemode.NewExec(codemode.Options{Runner: s.runner, Servers: s.servers.names, Registry: s.Registry, ServersOf: s.serversOf, Await: s.AwaitServers, Changing: s.changing,
		Jobs: func(callID string) []string { return builtin.RunningJobs(s.jobs, callID) }})
}

// loop makes the tools of an agent's loop.
func (s *Session) loop(todo builtin.TodoOptions) []tool.Tool {
	o := builtin.LoopOptions{Todo: todo, Web: builtin.WebOptions{AllowPrivate: s.set.WebAllowPrivate}, Structured: s.structured, Worktree: s.worktreeControls()}
	if s.opt.Consult != nil {
		o.Ask, o.Plan = s.askPerson, &builtin.PlanOptions{Mode: s.ApprovalMode, SetMode: s.changeMode, Approve: s.approvePlan}
	}
	return builtin.Loop(o)
}

// Skills returns the names of the skills that the model can load.
func (s *Session) Skills() []string {
	if s.View().Visible("skill") == nil {
		return nil
	}
	return s.skills.Names()
}

// View returns what the session's model may see and call now.
func (s *Session) View() *tool.View { return s.Registry.View(s.mode, s.scope) }

// An ExecResult is the end of one program.
type ExecResult struct {
	Result  tool.Result
	Outcome *codemode.Outcome // nil when exec itself was refused or cancelled
}

// Printed is what the program printed.
func (r *ExecResult) Printed() []msg.Part {
	if r.Outcome == nil {
		return nil
	}
	return r.Outcome.Printed
}

// Exec runs one program, as a model's call of exec.
func (s *Session) Exec(ctx context.Context, source string) *ExecResult {
	args, err := encode(map[string]string{"source": source})
	if err != nil {
		return &ExecResult{Result: tool.Fail(tool.CodeInvalidArgs, "the program is no text: %v", err)}
	}
	res := s.rt.Run(ctx, s.View, []tool.Call{{Name: tool.ExecName, Args: args}})[0]
	out, _ := res.Display.(*codemode.Outcome)
	return &ExecResult{res, out}
}

// EndJobs ends the background jobs and says which still ran (ruling 9).
func (s *Session) EndJobs() []string {
	var lines []string
	for _, j := range s.jobs.Close() {
		lines = append(lines, builtin.JobLine(j))
	}
	return lines
}

// Keep writes a printed image or sound to a file of the session and returns its
// path.
func (s *Session) Keep(mimeType string, data []byte) (string, error) {
	kind, sub, _ := strings.Cut(mimeType, "/")
	ext := map[string]string{"jpeg": "jpg", "svg+xml": "svg", "mpeg": "mp3", "x-wav": "wav"}[sub]
	if ext == "" {
		ext = strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, strings.ToLower(sub))
	}
	if ext == "" || len(ext) > 8 || kind != "image" && kind != "audio" {
		ext = "bin"
	}
	return s.spill.write(ext, data)
}

// Close ends what the session started.
func (s *Session) Close() {
	s.jobs.Close()
	if s.hooks != nil {
		s.hooks.Close()
	}
	s.runner.Close()
	s.closeServers()
}

// A Description is a tool as `tools show` shows it.
type Description struct {
	Description           string
	Signature             string
	Input, Output         json.RawMessage
	InputText, OutputText string // indented
	Bytes                 int    // of the declaration, as compact JSON
}

// Describe returns what there is to say about one tool.
func (s *Session) Describe(e *tool.Entry, v *tool.View) Description {
	sp := e.Spec()
	d := Description{Description: sp.Description, Input: sp.Input, Output: sp.Output,
		InputText: indent(sp.Input), OutputText: indent(sp.Output), Signature: codemode.Signature(e)}
	if x, ok := e.Tool().(tool.Describer); ok {
		d.Description = x.Describe(v)
	}
	if b, err := encode(msg.Declaration{Name: sp.Name, Description: d.Description, Parameters: sp.Input}); err == nil {
		d.Bytes = len(b)
	}
	return d
}

// Types returns TypeScript declarations of what programs of a view can use.
func (s *Session) Types(v *tool.View) string { return codemode.Types(v) }

func indent(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return fmt.Sprintf("(not JSON: %v)", err)
	}
	return b.String()
}

// encode is compact JSON without HTML escapes, as declarations are measured.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
