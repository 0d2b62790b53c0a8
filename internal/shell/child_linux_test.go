package shell

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func spawn(t *testing.T, o Options, c Command) *Child {
	t.Helper()
	ch, err := New(o).Spawn(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ch.Close(0) })
	return ch
}

// S0-148: what is talked to over pipes leaves nothing behind either.
func TestChildTalksAndEnds(t *testing.T) {
	supervisors(t, func(t *testing.T, o Options) {
		before := openFiles(t)
		var mu sync.Mutex
		var stderr strings.Builder
		ch := spawn(t, o, Command{
			Argv: []string{"/bin/sh", "-c", `echo "$SECRET_API_KEY $OPENAI_API_KEY $TERM" >&2; exec cat`},
			Env:  []string{"SECRET_API_KEY=a", "OPENAI_API_KEY=b"},
			Stderr: func(b []byte) {
				mu.Lock()
				defer mu.Unlock()
				stderr.Write(b)
			},
		})
		// Bytes pass as they are, also those that are no text.
		if _, err := io.WriteString(ch.In, "one\xff\x00two\n"); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(ch.Out).ReadString('\n')
		if err != nil || line != "one\xff\x00two\n" {
			t.Fatalf("echo gave %q, %v", line, err)
		}
		if err := ch.Close(deadline); err != nil {
			t.Fatal(err)
		}
		res, err := ch.End()
		res.Duration = 0
		if diff := cmp.Diff(Result{}, res); diff != "" || err != nil {
			t.Errorf("the end (-want +got):\n%s%v", diff, err)
		}
		// The environment is what was given: dash makes no TERM of its own.
		if got := stderr.String(); got != "a b \n" {
			t.Errorf("stderr %q", got)
		}
		if after := openFiles(t); after != before {
			t.Errorf("%d files are open, before %d", after, before)
		}
	})
}

func TestChildThatIgnoresItsEndIsKilledWithItsChildren(t *testing.T) {
	mark := newMark()
	ch := spawn(t, Options{Term: 20 * time.Millisecond}, Command{
		Argv: []string{"/bin/sh", "-c", `trap '' TERM; setsid sleep 1000 & echo up; while :; do sleep 1000; done`},
		Env:  []string{"MARK=" + mark, "PATH=" + os.Getenv("PATH")},
	})
	if line, err := bufio.NewReader(ch.Out).ReadString('\n'); err != nil || line != "up\n" {
		t.Fatalf("%q, %v", line, err)
	}
	ch.Close(time.Millisecond)
	res, err := ch.End()
	if err != nil || res.Signal != "SIGKILL" || !res.Cancelled {
		t.Errorf("end %+v, %v", res, err)
	}
	if left := marked(mark); len(left) > 0 {
		t.Errorf("still running: %q", left)
	}
}

func TestChildThatIsKilledSaysSo(t *testing.T) {
	supervisors(t, func(t *testing.T, o Options) {
		ch := spawn(t, o, Command{Argv: []string{"/bin/sh", "-c", "kill -9 $$"}})
		if b, err := io.ReadAll(ch.Out); err != nil || len(b) > 0 {
			t.Errorf("read %q, %v", b, err)
		}
		res, err := ch.End()
		if err != nil || res.Signal != "SIGKILL" || res.ExitCode != -1 || res.Cancelled {
			t.Errorf("end %+v, %v", res, err)
		}
	})
}

func TestChildThatDoesNotReadCanBeClosed(t *testing.T) {
	ch := spawn(t, Options{Term: 20 * time.Millisecond}, Command{Argv: []string{"/bin/sh", "-c", "exec sleep 1000"}, Env: []string{"PATH=" + os.Getenv("PATH")}})
	wrote := make(chan error)
	go func() {
		_, err := ch.In.Write(make([]byte, 1<<20))
		wrote <- err
	}()
	ch.In.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	if err := <-wrote; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write: %v", err)
	}
	ch.Close(0)
}

func TestChildThatCannotStart(t *testing.T) {
	before := openFiles(t)
	for _, argv := range [][]string{{"/no/such/program"}, {"no-such-program"}, {"/bin/sh\x00"}} {
		var ce *CommandError
		if _, err := New(Options{}).Spawn(Command{Argv: argv}); !errors.As(err, &ce) {
			t.Errorf("%q: %v", argv, err)
		}
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d files are open, before %d", after, before)
	}
}

// A server must not outlive an agent that is killed.
func TestChildDiesWithItsAgent(t *testing.T) {
	mark := newMark()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), agentLine+"=trap '' TERM; setsid sleep 1000 & echo up; while :; do sleep 1000; done", agentChild+"=1", "MARK="+mark)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "up\n" {
		t.Fatalf("%q, %v", line, err)
	}
	cmd.Process.Kill()
	eventuallyGone(t, mark)
}
