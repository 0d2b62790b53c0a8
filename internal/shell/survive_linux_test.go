package shell

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// escapes are ways for a process to outlive its shell. $MARK is set, and the
// processes that lose their environment carry it in their arguments. Each says
// ready when it has started all.
var escapes = []struct{ name, line string }{
	{"background", "sleep 300 & echo ready; wait"}, // BUG-CX-01
	{"setsid", "setsid sleep 300 & echo ready; wait"},
	{"setsid without output", "setsid sleep 300 >/dev/null 2>&1 & echo ready; wait"},
	{"nohup", "nohup sleep 300 >/dev/null 2>&1 & echo ready; wait"},
	{"double fork", "(setsid sh -c 'sleep 300 & sleep 300 &' &); echo ready; sleep 300"},
	{"tree", "sh -c 'sh -c \"sleep 300 & sleep 300\" & setsid sleep 300' & echo ready; wait"},
	{"no environment", "env -i setsid sh -c ': '$MARK'; sleep 300; :' & echo ready; wait"},
	{"deaf", "setsid sh -c \"trap '' TERM HUP INT; while :; do sleep 300; done\" & echo ready; wait"},
	{"stopped", "sleep 300 & kill -STOP $!; echo ready; wait"},
	{"pipeline", "yes | (while read x; do :; done) & echo ready; wait"}, // BUG-CX-08
	{"always another", "h() { h & }; h; echo ready; sleep 300"},
	{"always another, fast", "python3 -c 'import os\nwhile True:\n if os.fork(): os._exit(0)' & echo ready; sleep 300"},
}

// watcher gives an Output function and a channel that closes on the first
// "ready".
func watcher() (func([]byte), <-chan struct{}) {
	ready := make(chan struct{})
	var once sync.Once
	var seen strings.Builder
	return func(b []byte) {
		if seen.Write(b); strings.Contains(seen.String(), "ready") {
			once.Do(func() { close(ready) })
		}
	}, ready
}

// S0-145, S0-148: nothing of a command survives that is cancelled.
func TestNothingSurvivesCancel(t *testing.T) {
	t.Parallel()
	for _, e := range escapes {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(testContext(t))
			output, ready := watcher()
			go func() {
				<-ready
				cancel()
			}()
			mark := newMark()
			res, err := New(Options{}).Run(ctx, Command{Line: e.line, Env: append(os.Environ(), "MARK="+mark), Output: output})
			if err != nil || !res.Cancelled || res.TimedOut || len(res.Alive) > 0 {
				t.Errorf("got %+v, %v, want a cancelled command", res, err)
			}
			if left := marked(mark); len(left) > 0 {
				t.Errorf("still running after Run: %q", left)
			}
		})
	}
}

// S0-148: nor of one whose time is up.
func TestNothingSurvivesDeadline(t *testing.T) {
	t.Parallel()
	for _, e := range escapes {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			mark := newMark()
			res, err := New(Options{}).Run(testContext(t), Command{Line: e.line, Env: append(os.Environ(), "MARK="+mark), Timeout: 500 * time.Millisecond})
			if err != nil || !res.TimedOut || res.Cancelled || len(res.Alive) > 0 {
				t.Errorf("got %+v, %v, want a command that timed out", res, err)
			}
			if left := marked(mark); len(left) > 0 {
				t.Errorf("still running after Run: %q", left)
			}
		})
	}
}

// Ruling 9, BUG-CX-05: what a command leaves behind is killed after the grace
// and named.
func TestNothingSurvivesTheCommand(t *testing.T) {
	t.Parallel()
	for _, e := range escapes {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			mark := newMark()
			line, _, _ := strings.Cut(e.line, "echo ready")
			ctx := testContext(t)
			res, err := New(Options{Grace: 300 * time.Millisecond}).Run(ctx, Command{Line: line + "echo ready; exit 4", Env: append(os.Environ(), "MARK="+mark)})
			if err != nil || res.ExitCode != 4 || res.TimedOut || res.Cancelled || len(res.Alive) > 0 || ctx.Err() != nil {
				t.Errorf("got %+v, %v, want exit code 4 before the test's time is up", res, err)
			}
			// A process that is gone before it can be looked at has no name.
			named := strings.HasPrefix(e.name, "always another")
			for _, p := range res.Leftovers {
				named = named || strings.Contains(p.Command, "sleep 300") || strings.Contains(p.Command, "yes")
			}
			if !named || res.LeftoverCount < len(res.Leftovers) {
				t.Errorf("the leftovers are named as %+v (%d)", res.Leftovers, res.LeftoverCount)
			}
			if left := marked(mark); len(left) > 0 {
				t.Errorf("still running after Run: %q", left)
			}
		})
	}
}

// S0-148: nor of one whose agent is killed, be it a command or a job.
func TestNothingSurvivesTheAgent(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"command", "job"} {
		for _, e := range escapes {
			t.Run(kind+"/"+e.name, func(t *testing.T) {
				t.Parallel()
				mark := newMark()
				agent := exec.Command("/proc/self/exe")
				agent.Env = append(os.Environ(), agentLine+"="+e.line, "MARK="+mark)
				if kind == "job" {
					agent.Env = append(agent.Env, agentJob+"=1")
				}
				stdout, err := agent.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := agent.Start(); err != nil {
					t.Fatal(err)
				}
				line, err := bufio.NewReader(stdout).ReadString('\n')
				if line != "ready\n" {
					t.Errorf("the agent said %q (%v)", line, err)
				}
				agent.Process.Kill()
				agent.Wait()
				eventuallyGone(t, mark)
			})
		}
	}
}

// A command that kills or stops its own keeper does not get away: what can be
// found is ended, and the error says that something may be left.
func TestKeeperKilled(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, line, want string }{
		{"killed", "sleep 300 & (setsid sleep 300 &); echo ready; sleep 0.3; kill -KILL $PPID; sleep 300", "it was killed from outside"},
		{"stopped", "sleep 300 & (setsid sleep 300 &); echo ready; sleep 0.3; kill -STOP $PPID; sleep 300", "it did not answer in time and was killed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			mark := newMark()
			r := New(Options{Patience: 100 * time.Millisecond, Grace: 100 * time.Millisecond})
			res, err := r.Run(testContext(t), Command{Line: tt.line, Timeout: 2 * time.Second, Env: append(os.Environ(), "MARK="+mark)})
			if !errors.Is(err, ErrKeeper) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if res.Output != "ready\n" || res.ExitCode != -1 {
				t.Errorf("got %+v, want the output until then", res)
			}
			if left := marked(mark); len(left) > 0 {
				t.Errorf("still running after Run: %q", left)
			}
		})
	}
}

// Should the keeper and the agent fail both, the kernel still ends the command.
func TestCommandDiesWithKeeper(t *testing.T) {
	mark := newMark()
	agent := exec.Command("/proc/self/exe")
	agent.Env = append(os.Environ(), agentLine+"=echo ready $PPID; exec sleep 300", "MARK="+mark)
	stdout, err := agent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	defer agent.Wait()
	defer agent.Process.Kill()
	var keeper int
	if _, err := fmt.Fscanf(stdout, "ready %d\n", &keeper); err != nil || keeper <= 1 {
		t.Fatalf("keeper %d: %v", keeper, err)
	}
	agent.Process.Signal(syscall.SIGSTOP) // so that it cannot clean up
	syscall.Kill(keeper, syscall.SIGKILL)
	for until := time.Now().Add(deadline); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		if !strings.Contains(strings.Join(marked(mark), "\n"), "sleep 300") {
			return
		}
	}
	t.Errorf("still running: %q", marked(mark))
}

// Signals that a command sends to its parent do not reach the agent's end of
// the bargain.
func TestKeeperIsDeafToSignals(t *testing.T) {
	res, err := New(Options{}).Run(testContext(t), Command{Line: "for s in HUP INT QUIT USR1 USR2 PIPE ALRM TERM; do kill -$s $PPID; done; sleep 0.5; exit 7"})
	if err != nil || res.ExitCode != 7 {
		t.Errorf("got %+v, %v, want exit code 7", res, err)
	}
}

// A tree that grows to many processes, in groups of their own too, is ended
// whole.
func TestManyProcesses(t *testing.T) {
	mark := newMark()
	line := "b() { [ $1 -le 0 ] && exec sleep 300; b $(($1-1)) & b $(($1-1)) & wait; }; set -m; b 5 & set +m; b 5 & setsid bash -c \"$(declare -f b); b 5\" & wait"
	res, err := New(Options{}).Run(testContext(t), Command{Line: line, Timeout: time.Second, Env: append(os.Environ(), "MARK="+mark)})
	if err != nil || !res.TimedOut || len(res.Alive) > 0 || len(res.Leftovers) > 32 {
		t.Errorf("got %+v, %v", res, err)
	}
	if left := marked(mark); len(left) > 0 {
		t.Errorf("%d still running after Run", len(left))
	}
}

// A fork bomb under a process limit. It needs a user of its own.
func TestForkBomb(t *testing.T) {
	if _, err := exec.LookPath("setpriv"); err != nil || os.Getuid() != 0 {
		t.Skip("needs root and setpriv, to give the bomb a user with a process limit")
	}
	for name, again := range map[string]string{"group": "b &", "sessions": `setsid bash -c "$(declare -f b); b" &`} {
		t.Run(name, func(t *testing.T) {
			mark := newMark()
			line := `exec setpriv --reuid=65534 --clear-groups bash -c 'ulimit -u 300; trap "" TERM; b() { while :; do ` + again + ` sleep 0.01; done; }; b' 2>/dev/null`
			res, err := New(Options{}).Run(testContext(t), Command{Line: line, Timeout: 700 * time.Millisecond, Env: append(os.Environ(), "MARK="+mark)})
			if err != nil || !res.TimedOut || len(res.Alive) > 0 {
				t.Errorf("got %+v, %v", res, err)
			}
			if left := marked(mark); len(left) > 0 {
				t.Errorf("%d still running after Run", len(left))
			}
		})
	}
}

// Where there is no keeper, the group at least is ended on every way out.
func TestGroupEnds(t *testing.T) {
	r := New(Options{Portable: true, Grace: 200 * time.Millisecond})
	line := "sleep 300 & sh -c 'sleep 300' & echo ready; "
	for _, tt := range []struct {
		name, line string
		timeout    time.Duration
		cancel     bool
	}{
		{"cancel", line + "wait", 0, true},
		{"deadline", line + "wait", 300 * time.Millisecond, false},
		{"end", line + "exit 4", 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(testContext(t))
			defer cancel()
			output, ready := watcher()
			if tt.cancel {
				go func() {
					<-ready
					cancel()
				}()
			}
			mark := newMark()
			res, err := r.Run(ctx, Command{Line: tt.line, Timeout: tt.timeout, Output: output, Env: append(os.Environ(), "MARK="+mark)})
			if err != nil || res.Cancelled != tt.cancel || res.TimedOut != (tt.timeout > 0) || res.LeftoverCount < 2 {
				t.Errorf("got %+v, %v", res, err)
			}
			eventuallyGone(t, mark)
		})
	}
}
