// Package hook runs the user's hooks: commands and web addresses that are told
// what happens in a session and may steer it. Their events, JSON and exit codes
// are those of Claude Code and qwen-code, so that a hook written for one of them
// works as it is. docs/hooks.md says what each event gives and takes.
//
// A [Dispatcher] is one session's hooks. It is a sched.Hook and a sched.Answerer;
// the other events are methods of its own, for whoever leads the conversation.
//
// The package is no policy: what a hook allows is not asked about, and that is
// all; deny rules and guards do not hear of it (ruling 11). It reads no settings
// file, no environment and asks nobody.
package hook

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"capstan/internal/sched"
	"capstan/internal/shell"
)

// An Event is something that hooks are told of.
type Event string

// The events.
const (
	SessionStart       Event = "SessionStart"
	UserPromptSubmit   Event = "UserPromptSubmit"
	PreToolUse         Event = "PreToolUse"
	PermissionRequest  Event = "PermissionRequest"
	PostToolUse        Event = "PostToolUse"
	PostToolUseFailure Event = "PostToolUseFailure"
	PostToolBatch      Event = "PostToolBatch"
	Notification       Event = "Notification"
	SubagentStart      Event = "SubagentStart"
	SubagentStop       Event = "SubagentStop"
	PreCompact         Event = "PreCompact" // Capstan does not compact yet
	Stop               Event = "Stop"
	SessionEnd         Event = "SessionEnd"
)

// The bounds of a hook.
const (
	maxOutput  = 1 << 20  // bytes of an answer
	maxFlood   = 64 << 20 // bytes of output after which a command is ended
	maxStderr  = 64 << 10 // bytes of stderr that are looked at
	maxText    = 10_000   // characters of a reason, a message or a context
	maxRunning = 16       // hooks that run at once
	maxWarned  = 5        // how often the faults of one hook are told

	defaultTimeout = 600 * time.Second // Claude Code's
	promptTimeout  = 30 * time.Second  // of UserPromptSubmit, which a person waits for
	endTimeout     = 5 * time.Second   // of SessionEnd
)

// Options configure a Dispatcher.
type Options struct {
	Dir string // where hooks run: the session's working directory, absolute
	// Where, when not nil, returns the working directory of now instead of Dir.
	Where   func() string
	Project string   // the workspace's root; hooks get it as CAPSTAN_PROJECT_DIR and CLAUDE_PROJECT_DIR
	Environ []string // of commands; the Runner takes the keys out
	Env     func(name string) string
	Shell   *shell.Runner
	// Notice gets what the user should know, one line or more, from any
	// goroutine.
	Notice func(text string)
	// Mode returns the approval mode, as --approval-mode spells it.
	Mode func() string
}

// A Dispatcher runs the hooks of one session. Its methods may be called from
// any goroutine.
type Dispatcher struct {
	opt   Options
	hooks *Hooks
	web   *web

	slots chan struct{}
	picks picks

	// The hooks that nobody waits for. They have slots of their own, so that one of
	// them which hangs keeps no call waiting.
	background chan struct{}
	life       context.Context
	end        context.CancelFunc
	running    sync.WaitGroup

	mu        sync.Mutex
	session   Session
	halted    string              // why a hook has ended the run; empty when none has
	subagents map[string]Subagent // that work, by id
}

// A Session is what hooks are told of the conversation.
type Session struct {
	ID         string
	Transcript string // the path of its record; empty when there is none
}

// A Subagent is one of the session's subagents.
type Subagent struct {
	ID     string
	Type   string // the name of its definition
	CallID string // of the call that it works for: the ParentID of its model's calls
}

// New returns a Dispatcher for the hooks. Close ends it.
func New(h *Hooks, o Options) *Dispatcher {
	d := &Dispatcher{opt: o, hooks: h, web: newWeb(), slots: make(chan struct{}, maxRunning), background: make(chan struct{}, maxRunning),
		subagents: map[string]Subagent{}}
	d.life, d.end = context.WithCancel(context.Background())
	return d
}

// Begin says which conversation the hooks are told of.
func (d *Dispatcher) Begin(s Session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.session = s
}

// Close ends the hooks that nobody waits for, and waits until they have ended.
func (d *Dispatcher) Close() {
	d.end()
	d.running.Wait()
	d.web.close()
}

// Halted returns why a hook has ended the run, with "continue": false or what
// means the same; empty when none has. Until Resume no call is run.
func (d *Dispatcher) Halted() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.halted
}

// Resume begins a new run.
func (d *Dispatcher) Resume() { d.halt("") }

func (d *Dispatcher) halt(why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if why == "" || d.halted == "" {
		d.halted = why
	}
}

func (d *Dispatcher) notice(format string, a ...any) {
	if d.opt.Notice != nil {
		d.opt.Notice(fmt.Sprintf(format, a...))
	}
}

// fault tells of what is wrong with one hook, the first few times.
func (d *Dispatcher) fault(h *handler, format string, a ...any) {
	n := h.faults.Add(1)
	switch {
	case n > maxWarned:
		return
	case n == maxWarned:
		format += " (further faults of this hook are not told)"
	}
	d.notice("the hook %s: "+format, append([]any{h}, a...)...)
}

// clean makes what a hook wrote fit to be shown: valid UTF-8 without control
// characters, and no longer than maxText characters.
func clean(s string) string {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || !unicode.IsControl(r) && r != '\u2028' && r != '\u2029' && !(r >= '\u202a' && r <= '\u202e') && !(r >= '\u2066' && r <= '\u2069') {
			return r
		}
		return -1
	}, strings.ToValidUTF8(s, "\ufffd")))
	if len(s) <= maxText {
		return s
	}
	if r := []rune(s); len(r) > maxText {
		const head = maxText - 64 // with the notice it is no longer than it may be
		return fmt.Sprintf("%s\n[%d more characters were left out]", string(r[:head]), len(r)-head)
	}
	return s
}

var (
	_ sched.Hook     = (*Dispatcher)(nil)
	_ sched.Answerer = (*Dispatcher)(nil)
)

// dir is where the session works.
func (d *Dispatcher) dir() string {
	if d.opt.Where != nil {
		return d.opt.Where()
	}
	return d.opt.Dir
}
