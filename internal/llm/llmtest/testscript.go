package llmtest

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// Commands returns the testscript command llm, which serves a script to the
// program under test:
//
//	llm start DIR       serve the turns in it and point the *_BASE_URL variables and LLM_URL at it
//	llm done            check that all went as the script has it, and stop
//	llm requests FILE   write the bodies of the requests so far, one a line
//	llm await N         wait until N requests have come
//
// A server that a test leaves running is stopped at its end.
func Commands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	c := &commands{running: map[*testscript.TestScript]*Server{}}
	return map[string]func(*testscript.TestScript, bool, []string){"llm": c.run}
}

type commands struct {
	mu      sync.Mutex
	running map[*testscript.TestScript]*Server
}

func (c *commands) run(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: llm start DIR | llm done | llm requests FILE | llm await N")
	}
	c.mu.Lock()
	s := c.running[ts]
	c.mu.Unlock()
	switch {
	case args[0] == "start" && len(args) == 2 && s == nil:
		c.start(ts, args[1])
	case s == nil:
		ts.Fatalf("llm: nothing is served; llm start DIR first")
	case args[0] == "done" && len(args) == 1:
		c.stop(ts)
		ts.Check(s.Err())
	case args[0] == "requests" && len(args) == 2:
		var b strings.Builder
		for _, r := range s.Requests() {
			b.WriteString(strings.TrimSpace(r.Body) + "\n")
		}
		ts.Check(writeFile(ts.MkAbs(args[1]), b.String()))
	case args[0] == "await" && len(args) == 2:
		n, err := strconv.Atoi(args[1])
		ts.Check(err)
		if !s.await(n) {
			ts.Fatalf("llm: %d requests did not come", n)
		}
	default:
		ts.Fatalf("llm: cannot %s now", strings.Join(args, " "))
	}
}

func (c *commands) start(ts *testscript.TestScript, dir string) {
	script, err := ParseDir(ts.MkAbs(dir))
	ts.Check(err)
	s, err := Listen(script)
	ts.Check(err)
	c.mu.Lock()
	c.running[ts] = s
	c.mu.Unlock()
	ts.Defer(func() { c.stop(ts) })
	ts.Setenv("LLM_URL", s.URL)
	ts.Setenv("OPENAI_BASE_URL", s.URL+"/v1")
	ts.Setenv("ANTHROPIC_BASE_URL", s.URL)
	ts.Setenv("GEMINI_BASE_URL", s.URL+"/v1beta")
}

func (c *commands) stop(ts *testscript.TestScript) {
	c.mu.Lock()
	s := c.running[ts]
	delete(c.running, ts)
	c.mu.Unlock()
	if s != nil {
		s.Close()
	}
}

func writeFile(name, text string) error { return os.WriteFile(name, []byte(text), 0o600) }

// await waits until n requests have come, for a minute.
func (s *Server) await(n int) bool {
	for range 6000 {
		if len(s.Requests()) >= n {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}
