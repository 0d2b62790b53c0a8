// Package shell runs commands so that nothing of them survives their end.
//
// A [Runner] starts each command under a keeper process of its own (package
// keeper), which kills the whole tree of processes on cancel, on a deadline, on
// the death of the agent, and for what a command leaves behind. Output is
// decoded to UTF-8, streamed and kept within bounds; commands that wait for a
// person are recognised and ended. [Jobs] are commands that outlive the call
// that started them.
//
// The package decides nothing about what may run, and it is no sandbox: a
// command has all rights of the user. It imports nothing else of Capstan.
package shell

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"capstan/internal/shell/keeper"
)

// The times that a command is given around its end.
const (
	DefaultGrace = time.Second            // for children to end after the command did (ruling 9)
	DefaultTerm  = 200 * time.Millisecond // between SIGTERM and SIGKILL
	DefaultKeep  = 16 << 20               // bytes of output that a Result holds
)

// maxArgument is what Linux takes in one argument, the NUL included.
const maxArgument = 128 << 10

// Options configure a [Runner]. The zero value is right for the product.
type Options struct {
	// Binary is re-executed as the keeper; empty means the running executable.
	// It must link package keeper, as everything does that links this package.
	Binary string
	// Portable switches the keeper off, as on systems that have none: then a
	// command's process group is killed, and what left the group survives.
	Portable bool
	// Shell is the program and arguments that a command line is appended to;
	// empty means bash -c, sh -c where there is no bash, cmd /c on Windows.
	Shell []string
	// Secrets are names of environment variables that commands do not get; a
	// leading or trailing * matches any text. Nil means DefaultSecrets.
	Secrets []string
	// Grace and Term replace DefaultGrace and DefaultTerm when positive.
	Grace, Term time.Duration
	// Idle is how long a command must do nothing but wait at a terminal until
	// it counts as waiting for a person; 0 means 10 s.
	Idle time.Duration
	// Sandbox confines the commands that say so. Nil, or without a keeper: none is.
	Sandbox *Sandbox
	// Patience is how long a keeper may be silent after it was due; then it is
	// killed and the command is swept up from outside. 0 means 10 s.
	Patience time.Duration
}

// A Runner runs commands. Its methods may be called from any goroutine. It
// holds nothing that needs closing.
type Runner struct {
	o   Options
	box atomic.Pointer[Sandbox]
}

// New makes a Runner.
func New(o Options) *Runner {
	o.Grace = cmp.Or(o.Grace, DefaultGrace)
	o.Term = cmp.Or(o.Term, DefaultTerm)
	o.Idle = cmp.Or(o.Idle, 10*time.Second)
	o.Patience = cmp.Or(o.Patience, 10*time.Second)
	if o.Secrets == nil {
		o.Secrets = DefaultSecrets()
	}
	if o.Portable = o.Portable || !keeper.Supported; o.Portable {
		o.Sandbox = nil
	}
	r := &Runner{o: o}
	r.box.Store(o.Sandbox)
	return r
}

// Confine changes the Sandbox, for the commands that are started later. Without a
// keeper none is confined, as ever. The caller does not change s any more.
func (r *Runner) Confine(s *Sandbox) {
	if !r.o.Portable {
		r.box.Store(s)
	}
}

// A Command is what to run. Line or Argv is required.
type Command struct {
	Line string   // for the shell
	Argv []string // run as it is, without a shell, when set
	Dir  string   // working directory; empty means the process's own

	// Env is the environment before secrets are removed and the settings of
	// Environ are added; nil means the process's own.
	Env []string
	// Timeout ends the command; 0 means never.
	Timeout time.Duration
	// Stdin is what the command reads; nil means that it reads end of file at
	// once. Run does not wait for a Read that never returns.
	Stdin io.Reader

	// Output is called with each piece of output, as valid UTF-8 and in order,
	// from one goroutine. It must not keep the slice. While it does not return,
	// the command waits as soon as its pipe is full.
	Output func([]byte)
	// Stderr, when set, gets what the command writes to stderr, which then is
	// not part of Output or the Result; at most one call of both at a time.
	Stderr func([]byte)
	// Keep bounds Result.Output in bytes; 0 means DefaultKeep.
	Keep int
	// Spill is called once when the output passes Keep. Everything, from the
	// first byte on, is then written to what it returns.
	Spill func() (io.Writer, error)

	// Confined runs the command in the Runner's Sandbox, if it has one. It is for
	// what a model asks for; what the user has configured runs as the user.
	Confined bool

	// lingers makes the command last until its last child has ended (jobs).
	lingers bool
	// exact keeps the environment as it is given (Spawn).
	exact bool
}

// A Process is a process id and its command line.
type Process = keeper.Process

// A Result is how a command ended.
type Result struct {
	// Output is stdout and stderr as they came. When they are longer than Keep
	// it holds a head and a tail, with a line between that says how much is
	// left out.
	Output  string
	Total   int64 // bytes of the whole output
	Omitted int64 // bytes that Output leaves out
	// Spilled says that the whole output went to what Spill returned. SpillErr
	// says why it did not although it should have.
	Spilled  bool
	SpillErr error

	ExitCode  int    // -1 when a signal ended the command
	Signal    string // its name, such as SIGSEGV, or empty
	TimedOut  bool
	Cancelled bool // the context was done
	// Leftovers are processes that had to be killed because the command had
	// ended, or was ended, without them. At most 32 are named of LeftoverCount.
	Leftovers     []Process
	LeftoverCount int
	// Alive are processes that could not be ended: another user's (sudo), or
	// stuck in the kernel.
	Alive []Process
	// HeldOpen says that a process outside the command still held the output
	// open at the end, so more may have been written to it.
	HeldOpen bool
	// Waiting says why the command was seen as wanting a person, and what to do
	// instead; empty otherwise. Interrupted says that it was ended for that and
	// did not end by itself.
	Waiting     string
	Interrupted bool
	// Confined says what the sandbox may have had to do with a failure; empty
	// otherwise.
	Confined string
	Duration time.Duration
}

// A CommandError says that a command could not be started, in words for the one
// who wrote it.
type CommandError struct{ Reason string }

func (e *CommandError) Error() string { return e.Reason }

// ErrKeeper marks the errors of a command whose keeper failed or was killed, so
// that its end is known only as far as the error says.
var ErrKeeper = errors.New("the keeper of the command failed")

// request checks c and gives what the keeper or the group is to run.
func (r *Runner) request(c Command) (keeper.Request, error) {
	argv, err := r.argv(c)
	if err != nil {
		return keeper.Request{}, err
	}
	for _, a := range argv {
		if strings.ContainsRune(a, 0) {
			return keeper.Request{}, &CommandError{"the command contains a NUL byte, which no argument can hold"}
		}
		if runtime.GOOS == "linux" && len(a) >= maxArgument {
			return keeper.Request{}, &CommandError{fmt.Sprintf("the command has %d bytes and the system takes at most %d: "+
				"write it to a script file and run that", len(a), maxArgument-1)}
		}
	}
	dir, err := directory(c.Dir)
	if err != nil {
		return keeper.Request{}, err
	}
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	if c.exact {
		env = c.Env[:len(c.Env):len(c.Env)]
	} else {
		env = Environ(env, r.o.Secrets)
	}
	env = append(env, "PWD="+dir) // not a name of the directory through links, which cd .. would go back by
	path, err := program(argv[0], dir, lookup(env, "PATH"))
	if err != nil {
		return keeper.Request{}, err
	}
	req := keeper.Request{Path: path, Argv: argv, Env: env, Dir: dir,
		TimeoutMS: milliseconds(c.Timeout), GraceMS: milliseconds(r.o.Grace), TermMS: milliseconds(r.o.Term)}
	if c.lingers {
		req.GraceMS = keeper.Forever
	}
	if box := r.box.Load(); c.Confined && box != nil {
		box.confine(&req)
	}
	return req, nil
}

func (r *Runner) argv(c Command) ([]string, error) {
	switch {
	case len(c.Argv) > 0 && c.Argv[0] != "":
		return c.Argv, nil
	case strings.TrimSpace(c.Line) == "":
		return nil, &CommandError{"the command is empty"}
	}
	sh := r.o.Shell
	if len(sh) == 0 {
		sh = defaultShell()
	}
	line := c.Line
	if filepath.Base(sh[0]) == "sh" {
		line = physicalCd + line
	}
	return append(sh[:len(sh):len(sh)], line), nil
}

// physicalCd is for shells that have no option for it. What a command touches is
// judged by where its paths really lead, so cd has to go there too: by default
// `cd link/..` stays where it was, while `cat link/../file` does not.
const physicalCd = `cd() { command cd -P "$@"; }; `

func defaultShell() []string {
	if runtime.GOOS == "windows" {
		return []string{cmp.Or(os.Getenv("COMSPEC"), `C:\Windows\System32\cmd.exe`), "/d", "/s", "/c"}
	}
	if bash, err := exec.LookPath("bash"); err == nil && filepath.IsAbs(bash) {
		return []string{bash, "-P", "-c"} // -P: as physicalCd
	}
	return []string{"/bin/sh", "-c"}
}

// directory makes dir absolute, without links, and sees that it is one.
func directory(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding the working directory: %w", err)
	}
	if strings.ContainsRune(abs, 0) {
		return "", &CommandError{"the directory contains a NUL byte"}
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", &CommandError{fmt.Sprintf("the directory %s does not exist", abs)}
	case err != nil:
		return "", &CommandError{fmt.Sprintf("the directory %s cannot be used: %v", abs, err)}
	case !info.IsDir():
		return "", &CommandError{fmt.Sprintf("%s is not a directory", abs)}
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return "", &CommandError{fmt.Sprintf("the directory cannot be used: %v", err)}
	}
	return abs, nil
}

// program finds name as a shell would: with a separator relative to dir,
// otherwise in path.
func program(name, dir, path string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	if strings.ContainsRune(name, '/') || strings.ContainsRune(name, filepath.Separator) {
		return filepath.Join(dir, name), nil
	}
	if runtime.GOOS == "windows" { // its search needs PATHEXT
		found, err := exec.LookPath(name)
		if err != nil {
			return "", &CommandError{fmt.Sprintf("the program %q was not found: %v", name, err)}
		}
		return found, nil
	}
	for _, d := range filepath.SplitList(path) {
		if !filepath.IsAbs(d) {
			continue // a relative entry would run what lies in the project
		}
		file := filepath.Join(d, name)
		if info, err := os.Stat(file); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", &CommandError{fmt.Sprintf("the program %q was not found in PATH", name)}
}

// milliseconds rounds up, so that a tiny time does not become none.
func milliseconds(d time.Duration) uint32 {
	if d <= 0 {
		return 0
	}
	ms := (d + time.Millisecond - 1) / time.Millisecond
	return uint32(min(ms, time.Duration(keeper.Forever-1)))
}
