//go:build amd64 || arm64

package shell

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"capstan/internal/shell/keeper"
)

// cookieName is the variable that marks the processes of one command, so that
// they can be found without their keeper.
const cookieName = "CAPSTAN_COMMAND"

// keeperEnviron keeps the keeper from collecting garbage, for which it would
// need threads that a fork bomb may have used up, until it holds 64 MiB, and
// from reading the limits of its cgroup when it starts.
var keeperEnviron = []string{"GOMAXPROCS=1", "GODEBUG=containermaxprocs=0,updatemaxprocs=0", "GOGC=off", "GOMEMLIMIT=64MiB", "GOTRACEBACK=none"}

// startLimit bounds the start of a keeper and its command.
const startLimit = 30 * time.Second

// A keeperClient is the agent's end of a keeper.
type keeperClient struct {
	process *os.Process
	control *os.File // closed by run at the end, or by the end of this process
	status  *os.File
	cookie  string
	program int // the command's process id, its group and its session
	end     chan ending

	mu        sync.Mutex
	closed    bool
	abandoned bool
}

func startKeeper(binary string, req keeper.Request, stdio [3]*os.File) (_ supervisor, err error) {
	// The link, not what it points to: an upgrade on disk must not put another
	// version at the other end of the pipes.
	binary = cmp.Or(binary, "/proc/self/exe")
	controlRead, control, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making the control pipe: %w", err)
	}
	defer controlRead.Close()
	status, statusWrite, err := os.Pipe()
	if err != nil {
		control.Close()
		return nil, fmt.Errorf("making the status pipe: %w", err)
	}
	defer statusWrite.Close()

	k := &keeperClient{control: control, status: status, end: make(chan ending, 1), cookie: newCookie()}
	k.process, err = os.StartProcess(binary, []string{"capstan-keeper", keeper.Marker}, &os.ProcAttr{
		Dir: "/", Env: keeperEnviron,
		Files: []*os.File{stdio[0], stdio[1], stdio[2], controlRead, statusWrite},
		Sys:   &syscall.SysProcAttr{Setsid: true}, // Ctrl-C at the agent's terminal is not for it
	})
	if err != nil {
		control.Close()
		status.Close()
		return nil, fmt.Errorf("starting the keeper %s: %w", binary, err)
	}
	statusWrite.Close() // the keeper's copy is the only one: its end is seen
	controlRead.Close()
	if err := k.handshake(req); err != nil {
		control.Close()
		k.process.Kill()
		k.process.Wait()
		status.Close()
		return nil, err
	}
	go k.run()
	return k, nil
}

func newCookie() string {
	var b [12]byte
	rand.Read(b[:])
	return cookieName + "=" + hex.EncodeToString(b[:])
}

// handshake sends the request and waits until the command runs.
func (k *keeperClient) handshake(req keeper.Request) error {
	req.Env = append(req.Env[:len(req.Env):len(req.Env)], k.cookie)
	deadline := time.Now().Add(startLimit)
	k.control.SetWriteDeadline(deadline)
	k.status.SetReadDeadline(deadline)
	if _, err := k.control.Write(req.Append(nil)); err != nil {
		return fmt.Errorf("%w: sending it the command: %w", ErrKeeper, err)
	}
	rep, err := k.read()
	if err != nil {
		return fmt.Errorf("%w before the command ran: %w", ErrKeeper, err)
	}
	switch rep.Kind {
	case keeper.Started:
		k.program = int(rep.Pid)
		k.control.SetWriteDeadline(time.Time{})
		k.status.SetReadDeadline(time.Time{})
		return nil
	case keeper.Failed:
		return startError(req, syscall.Errno(rep.Errno))
	}
	return fmt.Errorf("%w: it sent a report of kind %q first", ErrKeeper, rep.Kind)
}

// startError says why the program did not start.
func startError(req keeper.Request, errno syscall.Errno) error {
	switch errno {
	case syscall.E2BIG:
		return &CommandError{"the command and its environment are longer than the system takes: write the command to a script file and run that"}
	case syscall.ENOENT, syscall.EACCES, syscall.ENOEXEC, syscall.ENOTDIR:
		return &CommandError{fmt.Sprintf("starting %s in %s: %v", req.Path, req.Dir, errno)}
	}
	return fmt.Errorf("starting %s in %s: %w", req.Path, req.Dir, errno)
}

// read reads one report.
func (k *keeperClient) read() (rep keeper.Report, err error) {
	var head [4]byte
	if _, err := io.ReadFull(k.status, head[:]); err != nil {
		return rep, err
	}
	n := keeper.FrameSize(head)
	if n < 0 {
		return rep, errors.New("it sent a report of impossible length")
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(k.status, body); err != nil {
		return rep, err
	}
	rep, ok := keeper.ParseReport(body)
	if !ok {
		return rep, errors.New("it sent a report that cannot be read")
	}
	return rep, nil
}

// run waits for the last report, or for the end of a keeper that was killed.
func (k *keeperClient) run() {
	rep, err := k.read()
	if err == nil && rep.Kind != keeper.Finished {
		err = fmt.Errorf("it sent a report of kind %q last", rep.Kind)
	}
	if err != nil {
		k.process.Kill()
	}
	k.process.Wait()
	k.mu.Lock()
	k.closed = true
	k.control.Close()
	k.mu.Unlock()
	k.status.Close()
	if err != nil {
		k.end <- k.lost()
		return
	}
	k.end <- ending{Report: rep}
}

func (k *keeperClient) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed {
		k.control.SetWriteDeadline(time.Now().Add(time.Second)) // a stopped keeper reads nothing
		k.control.Write([]byte{keeper.Stop})
	}
}

func (k *keeperClient) abandon() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed {
		k.abandoned = true
		k.process.Kill()
	}
}

func (k *keeperClient) ended() <-chan ending { return k.end }
func (k *keeperClient) root() int            { return k.process.Pid }

// lost ends what can still be found of a command whose keeper is gone: its
// session and group, everything that carries its cookie, and what is below
// those. The kernel has killed the command itself already (PDEATHSIG).
func (k *keeperClient) lost() ending {
	killed := map[int]bool{}
	var rep keeper.Report
	rep.Signal = uint32(syscall.SIGKILL)
	pause := time.Millisecond
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until); {
		found := k.search()
		if len(found) == 0 {
			break
		}
		for _, p := range found {
			if !killed[p.PID()] && p.PID() != k.program {
				killed[p.PID()] = true
				rep.KilledCount++
				if len(rep.Killed) < keeper.MaxNamed {
					rep.Killed = append(rep.Killed, keeper.Process{PID: p.PID(), Command: p.Command()})
				}
			}
			p.Signal(syscall.SIGKILL)
		}
		time.Sleep(pause)
		pause = min(2*pause, 50*time.Millisecond)
	}
	for _, p := range k.search() {
		rep.Alive = append(rep.Alive, keeper.Process{PID: p.PID(), Command: p.Command()})
	}
	how := "it was killed from outside"
	if k.abandoned {
		how = "it did not answer in time and was killed"
	}
	return ending{rep, fmt.Errorf("%w: %s; the command was ended and so were %d processes that belonged to it, "+
		"but some that left its session and cleared their environment may be left", ErrKeeper, how, rep.KilledCount)}
}

// search gives the living processes of the command.
func (k *keeperClient) search() (list []keeper.Proc) {
	all := keeper.Scan()
	seen := map[int]bool{}
	add := func(p keeper.Proc) {
		if !seen[p.PID()] && !p.Zombie() && p.PID() != os.Getpid() {
			seen[p.PID()] = true
			list = append(list, p)
		}
	}
	for _, p := range all {
		if k.program > 1 && (p.Session() == k.program || p.Group() == k.program) || k.marked(p.PID()) {
			add(p)
			for _, c := range keeper.Descendants(all, p.PID()) {
				add(c)
			}
		}
	}
	return list
}

// marked reports whether a process was started with the command's cookie.
func (k *keeperClient) marked(pid int) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && bytes.Contains(append(env, 0), append([]byte(k.cookie), 0))
}
