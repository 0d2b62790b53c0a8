package shell

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The environment that makes the test binary an agent with one command, for the
// tests that kill an agent.
const (
	agentLine = "SHELL_TEST_AGENT_LINE"
	agentJob  = "SHELL_TEST_AGENT_JOB"
	// agentChild makes the line a Child.
	agentChild = "SHELL_TEST_AGENT_CHILD"
)

func TestMain(m *testing.M) {
	if line := os.Getenv(agentLine); line != "" {
		agent(line)
		return
	}
	code := m.Run()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if left := childrenOf(os.Getpid()); len(left) > 0 {
		fmt.Fprintln(os.Stderr, "child processes are left:", left)
		code = 1
	}
	os.Exit(code)
}

// agent runs line as a command, or a job, and passes its output on until it is
// killed.
func agent(line string) {
	r := New(Options{})
	c := Command{Line: line, Output: func(b []byte) { os.Stdout.Write(b) }}
	if os.Getenv(agentJob) != "" {
		if _, err := NewJobs(r).Start(c, ""); err != nil {
			panic(err)
		}
		select {}
	}
	if os.Getenv(agentChild) != "" {
		ch, err := r.Spawn(Command{Line: line, Env: os.Environ()})
		if err != nil {
			panic(err)
		}
		io.Copy(os.Stdout, ch.Out)
		select {}
	}
	r.Run(context.Background(), c)
}

// deadline is for what must happen but may be slow: it decides nothing.
const deadline = 60 * time.Second

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	t.Cleanup(cancel)
	return ctx
}

// newMark gives a string by which the processes of one test are found, in
// their environment or their arguments.
func newMark() string { return "capstan-mark-" + strings.ToLower(rand.Text()) }

// marked gives the command lines of living processes that carry mark.
func marked(mark string) (list []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		if filepath.Base(d) == strconv.Itoa(os.Getpid()) {
			continue
		}
		env, _ := os.ReadFile(d + "/environ")
		args, _ := os.ReadFile(d + "/cmdline")
		stat, _ := os.ReadFile(d + "/stat")
		if i := bytes.LastIndexByte(stat, ')'); i < 0 || bytes.HasPrefix(stat[i:], []byte(") Z")) {
			continue
		}
		if bytes.Contains(env, []byte(mark)) || bytes.Contains(args, []byte(mark)) {
			list = append(list, filepath.Base(d)+" "+string(bytes.ReplaceAll(args, []byte{0}, []byte{' '})))
		}
	}
	return list
}

// eventually polls until the processes with mark are gone.
func eventuallyGone(t *testing.T, mark string) {
	t.Helper()
	var left []string
	for until := time.Now().Add(deadline); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		if left = marked(mark); len(left) == 0 {
			return
		}
	}
	t.Errorf("still running: %q", left)
}

func childrenOf(pid int) (list []string) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, s := range stats {
		b, _ := os.ReadFile(s)
		i := bytes.LastIndexByte(b, ')')
		if i < 0 {
			continue
		}
		if f := strings.Fields(string(b[i+1:])); len(f) > 1 && f[1] == strconv.Itoa(pid) {
			list = append(list, string(b[:i+1]))
		}
	}
	return list
}

// supervisors are the two ways to run a command.
func supervisors(t *testing.T, test func(*testing.T, Options)) {
	for _, portable := range []bool{false, true} {
		name := "keeper"
		if portable {
			name = "group"
		}
		t.Run(name, func(t *testing.T) {
			test(t, Options{Portable: portable})
		})
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc")
	}
	return len(list)
}
