package shell

import (
	"errors"
	"os"
	"sync"
	"time"

	"capstan/internal/shell/keeper"
)

// A group is the supervisor without a keeper: it kills the command's process
// group. What has left the group, and what runs when the agent is killed,
// survives.
type group struct {
	req      keeper.Request
	process  *os.Process
	end      chan ending
	stopOnce sync.Once
	stopping chan struct{}
}

func startGroup(req keeper.Request, stdio [3]*os.File) (supervisor, error) {
	process, err := os.StartProcess(req.Path, req.Argv, &os.ProcAttr{
		Dir: req.Dir, Env: req.Env, Files: stdio[:], Sys: groupAttr(req),
	})
	if err != nil {
		var path *os.PathError
		if errors.As(err, &path) {
			return nil, &CommandError{"starting " + req.Path + " in " + req.Dir + ": " + path.Err.Error()}
		}
		return nil, err
	}
	g := &group{req: req, process: process, end: make(chan ending, 1), stopping: make(chan struct{})}
	go g.run()
	return g, nil
}

func (g *group) stop()                { g.stopOnce.Do(func() { close(g.stopping) }) }
func (g *group) abandon()             { signalGroup(g.process.Pid, true) }
func (g *group) ended() <-chan ending { return g.end }
func (g *group) root() int            { return 0 }

func (g *group) run() {
	exited := make(chan *os.ProcessState, 1)
	go func() {
		state, _ := g.process.Wait()
		exited <- state
	}()
	var timeout <-chan time.Time
	if g.req.TimeoutMS > 0 {
		timer := time.NewTimer(time.Duration(g.req.TimeoutMS) * time.Millisecond)
		defer timer.Stop()
		timeout = timer.C
	}
	var rep keeper.Report
	rep.Kind, rep.Pid = keeper.Finished, uint32(g.process.Pid)
	var state *os.ProcessState
	select {
	case state = <-exited:
		rep.TimedOut, rep.Stopped = g.outlive(timeout)
	case <-timeout:
		rep.TimedOut = true
	case <-g.stopping:
		rep.Stopped = true
	}
	if members := groupMembers(g.process.Pid); state == nil || len(members) > 0 {
		for _, p := range members {
			if p.PID != g.process.Pid {
				rep.Killed = append(rep.Killed, p)
			}
		}
		rep.KilledCount = uint32(len(rep.Killed))
		rep.Killed = rep.Killed[:min(len(rep.Killed), keeper.MaxNamed)]
		state = g.kill(state, exited)
	}
	rep.ExitCode, rep.Signal = exitStatus(state)
	g.end <- ending{Report: rep}
}

// outlive gives the group its time after the command has ended.
func (g *group) outlive(timeout <-chan time.Time) (timedOut, stopped bool) {
	var grace <-chan time.Time
	forever := g.req.GraceMS == keeper.Forever
	if !forever {
		grace, timeout = time.After(time.Duration(g.req.GraceMS)*time.Millisecond), nil
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for groupAlive(g.process.Pid) {
		select {
		case <-tick.C:
		case <-grace:
			return false, false
		case <-timeout:
			return true, false
		case <-g.stopping:
			return false, forever
		}
	}
	return false, false
}

// kill sends SIGTERM, and SIGKILL after the time for that, until nothing of
// the group is left. state is nil while the command itself has not ended.
func (g *group) kill(state *os.ProcessState, exited <-chan *os.ProcessState) *os.ProcessState {
	signalGroup(g.process.Pid, false)
	force := time.After(time.Duration(g.req.TermMS) * time.Millisecond)
	limit := time.After(time.Duration(g.req.TermMS)*time.Millisecond + 5*time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ticks := 0; state == nil || groupAlive(g.process.Pid); {
		select {
		case state = <-exited:
		case <-tick.C:
			// A group of nothing but zombies, which their parent or init has not
			// reaped yet, counts as alive for kill.
			if ticks++; ticks%20 == 0 && state != nil && len(groupMembers(g.process.Pid)) == 0 {
				return state
			}
		case <-force:
			signalGroup(g.process.Pid, true)
		case <-limit:
			return state
		}
	}
	return state
}
