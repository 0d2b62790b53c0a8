package mcp

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"capstan/internal/msg"
	"capstan/internal/shell"
	"capstan/internal/tool"
)

func TestToolsOfAServerAreTools(t *testing.T) {
	r := newRig(t, Options{Roots: []string{"/tmp/a b"}}, stdioServer("good", "sdk"))
	r.ready()
	// Three pages of two (BUG-MC-08).
	want := []string{"mcp__good__ask", "mcp__good__echo", "mcp__good__echo2", "mcp__good__echo3", "mcp__good__grow", "mcp__good__roots"}
	if diff := cmp.Diff(want, r.names()); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	spec := *r.tool("mcp__good__echo").Spec()
	spec.Input = nil
	if diff := cmp.Diff(tool.Spec{Name: "mcp__good__echo", Short: "echo", Title: "Echo", Description: "Says it again.", Server: "good", Deferred: true, Claims: []string{"it only reads"}}, spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	res := r.call("mcp__good__echo", `{"text":"hi"}`)
	if diff := cmp.Diff(tool.Text("hi"), *res); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	// isError is a failure with the server's words.
	res = r.call("mcp__good__echo", `{"txt":"hi"}`)
	if res.Status != tool.Failed || res.Code != tool.CodeFailed || !strings.Contains(res.Text(), "txt") {
		t.Errorf("wrong arguments gave %+v", res)
	}
	if got := r.call("mcp__good__roots", `{}`).Text(); got != "file:///tmp/a%20b" {
		t.Errorf("roots %q", got)
	}
	st := r.Status()[0]
	if st.State != Ready || st.Tools != 6 || st.Server != "good 1.2" || st.Instructions != "be nice" || st.Restarts != 0 || len(st.Warnings) > 0 {
		t.Errorf("status %+v", st)
	}
	if _, err := r.Ping(r.ctx, "good"); err != nil {
		t.Error(err)
	}
	r.Close()
	if left := r.reg.Tools(); len(left) > 0 {
		t.Errorf("%d tools are left after Close", len(left))
	}
}

// Where there is no keeper, servers are ended with their process group.
func TestServersWithoutAKeeper(t *testing.T) {
	m := New(Options{Registry: &tool.Registry{}, Shell: shell.New(shell.Options{Portable: true}), Dir: t.TempDir(), Backoff: time.Millisecond})
	r := &rig{m, t, m.o.Registry, testContext(t)}
	defer m.Close()
	if err := m.Start(stdioServer("s", "crash"), stdioServer("silent", "silent")); err != nil {
		t.Fatal(err)
	}
	r.ready("s")
	if res := r.call("mcp__s__t", `{}`); !strings.Contains(res.Text(), "it ended with exit status 7") {
		t.Errorf("%+v", res)
	}
	if got := r.call("mcp__s__t", `{"x":1}`).Text(); got != "alive" {
		t.Errorf("%q", got)
	}
}

// BUG-MC-06, BUG-MC-08
func TestListChangedReplacesTheToolsOfThatServer(t *testing.T) {
	r := newRig(t, Options{}, stdioServer("a", "sdk"), stdioServer("b", "sdk"))
	r.ready()
	before := r.tool("mcp__b__echo")
	r.call("mcp__a__grow", `{"text":"fresh"}`)
	r.until("the new tool", func() bool { return slices.Contains(r.names(), "mcp__a__fresh") })
	if got := r.call("mcp__a__fresh", `{}`).Text(); got != "new" {
		t.Errorf("the new tool says %q", got)
	}
	if slices.Contains(r.names(), "mcp__b__fresh") || r.tool("mcp__b__echo") != before {
		t.Error("the other server's tools were touched")
	}
}

func TestElicitationIsRefusedWithoutAHandler(t *testing.T) {
	r := newRig(t, Options{}, stdioServer("good", "sdk"))
	r.ready()
	if res := r.call("mcp__good__ask", `{}`); res.Status != tool.Failed || !strings.Contains(res.Text(), "elicitation") {
		t.Errorf("%+v", res)
	}
}

func TestElicitationIsAnsweredByTheHandler(t *testing.T) {
	r := newRig(t, Options{Elicit: func(_ context.Context, server string, q *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		return &sdk.ElicitResult{Action: server + " " + q.Message}, nil
	}}, stdioServer("good", "sdk"))
	r.ready()
	if got := r.call("mcp__good__ask", `{}`).Text(); got != "good who?" {
		t.Errorf("%q", got)
	}
}

func TestAServerOfTheNewestProtocolOnly(t *testing.T) {
	r := newRig(t, Options{}, stdioServer("s", "modern"))
	r.ready()
	if got := r.call("mcp__s__t", `{}`).Text(); got != "modern" {
		t.Errorf("%q", got)
	}
}

// A server of the newest protocol says what it wants instead of a result, and gets
// it with the call sent anew; whatever it may not have ends the call.
func TestAServerThatWantsInputFirst(t *testing.T) {
	ask := func(_ context.Context, server string, q *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"said": server + " " + q.Message}}, nil
	}
	const who = `"a":{"method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}}}}`
	for _, test := range []struct {
		wants string
		ask   Elicit
		text  string
	}{
		{`{` + who + `,"b":{"method":"roots/list"}}`, ask,
			`modernst{"a":{"action":"accept","content":{"said":"s who?"}},"b":{"roots":[{"name":"r","uri":"file:///r"}]}}`},
		{`{` + who + `}`, nil, "MCP server s: elicitation is refused: nobody can be asked in this session"},
		{`{"a":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}}`, ask, "MCP server s: sampling is refused: servers are given no model here; use one of your own"},
		{`{}`, ask, "MCP server s: it is too busy now and wants the call later"},
		{`{"again":{"method":"roots/list"}}`, ask, "MCP server s: it asked for input 10 times without coming to a result"},
		{`{"a":{"method":"mind/read"}}`, ask, "MCP server s: it wants mind/read, which there is not"},
		{`{"a":{"method":"elicitation/create","params":7}}`, ask, "MCP server s: it asks what cannot be understood: "},
		{`"a"`, ask, "MCP server s: it wants input that cannot be understood: "},
	} {
		r := newRig(t, Options{Elicit: test.ask, Roots: []string{"/r"}}, stdioServer("s", "modern:"+test.wants))
		r.ready()
		if got := r.call("mcp__s__t", `{}`).Text(); got != test.text && !(strings.HasSuffix(test.text, ": ") && strings.HasPrefix(got, test.text)) {
			t.Errorf("%s: %s", test.wants, got)
		}
		r.Close()
	}
}

// A server that is lost between its question and the answer to it: the person is
// not asked all over again by a call that is made anew.
func TestLostWhileThePersonAnswers(t *testing.T) {
	var r *rig
	var asked atomic.Int64
	r = newRig(t, Options{Elicit: func(ctx context.Context, server string, _ *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		if asked.Add(1) == 1 {
			c, err := r.acquire(ctx, server)
			if err != nil {
				return nil, err
			}
			c.drop()
			<-c.ended
		}
		return &sdk.ElicitResult{Action: "accept"}, nil
	}}, stdioServer("s", `modern:{"a":{"method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}}}}}`))
	r.ready()
	if res := r.call("mcp__s__t", `{}`); !strings.Contains(res.Text(), "MCP server s ended during the call") || asked.Load() != 1 {
		t.Errorf("%+v, asked %d times", res, asked.Load())
	}
}

// A server that asks for what it was told not to ask for gets the reason.
func TestQuestionsThatAreRefused(t *testing.T) {
	for method, want := range map[string]string{
		"sampling/createMessage": `"message":"sampling is refused: servers are given no model here; use one of your own"`,
		"elicitation/create":     `"message":"elicitation is refused: nobody can be asked in this session"`,
	} {
		r := newRig(t, Options{}, stdioServer("s", "question:"+method))
		r.ready()
		if got := r.call("mcp__s__t", `{}`).Text(); !strings.Contains(got, want) || !strings.Contains(got, `"id":"q1"`) {
			t.Errorf("%s: %s", method, got)
		}
		r.Close()
	}
}

// BUG-PC-06: one list for each connection and change, and one for a burst.
func TestABurstOfChangesIsOneChange(t *testing.T) {
	r := newRig(t, Options{}, stdioServer("s", "burst"))
	r.ready()
	if got := r.call("mcp__s__t", `{}`).Text(); got != "1" {
		t.Errorf("%s lists before the first change", got)
	}
	for range 3 {
		r.call("mcp__s__t", `{}`)
	}
	// 4,000 changes: by now a list for the first and, at most, one for each
	// doubling of the pause since.
	if n, err := strconv.Atoi(r.call("mcp__s__t", `{}`).Text()); err != nil || n > 20 {
		t.Errorf("%d lists, %v", n, err)
	}
}

func TestResourcesAndPrompts(t *testing.T) {
	r := newRig(t, Options{}, stdioServer("good", "sdk"), stdioServer("plain", "ok"))
	r.ready()
	list, err := r.Resources(r.ctx, "good")
	if diff := cmp.Diff([]Resource{{Server: "good", URI: "note://1", Name: "one", MIMEType: "text/plain"}, {Server: "good", Template: "note://{id}", Name: "any"}}, list); diff != "" || err != nil {
		t.Errorf("resources (-want +got):\n%s%v", diff, err)
	}
	// A server without them has none.
	if list, err := r.Resources(r.ctx, "plain"); err != nil || len(list) > 0 {
		t.Errorf("resources of plain: %v, %v", list, err)
	}
	res := r.call("read_mcp_resource", `{"server":"good","uri":"note://1"}`)
	if diff := cmp.Diff(tool.Result{Status: tool.Success, Parts: []msg.Part{{Kind: msg.Text, Text: "a note", URI: "note://1", MIMEType: "text/plain"}}}, *res); diff != "" {
		t.Errorf("resource (-want +got):\n%s", diff)
	}
	if res := r.call("list_mcp_resources", `{}`); !strings.Contains(res.Text(), `"uri":"note://1"`) {
		t.Errorf("list: %+v", res)
	}
	for _, args := range []string{`{"server":"good","uri":"note://2"}`, `{"server":"nobody","uri":"x"}`} {
		if res := r.call("read_mcp_resource", args); res.Code != tool.CodeFailed {
			t.Errorf("%s: %+v", args, res)
		}
	}
	prompts, err := r.Prompts(r.ctx, "good")
	if diff := cmp.Diff([]Prompt{{Server: "good", Name: "greet", Arguments: []PromptArgument{{Name: "who", Required: true}}}}, prompts); diff != "" || err != nil {
		t.Errorf("prompts (-want +got):\n%s%v", diff, err)
	}
	words, err := r.Prompt(r.ctx, "good", "greet", map[string]string{"who": "world"})
	if diff := cmp.Diff([]msg.Message{{Role: msg.User, Parts: []msg.Part{msg.TextPart("hello world")}}}, words); diff != "" || err != nil {
		t.Errorf("prompt (-want +got):\n%s%v", diff, err)
	}
}

// BUG-MC-20, BUG-MC-30: one server that cannot start costs itself, and whoever
// asks is told which and why.
func TestServersThatDoNotStart(t *testing.T) {
	missing := stdioServer("missing", "ok")
	missing.Command = "no-such-program-anywhere"
	silent := stdioServer("silent", "silent")
	silent.StartupTimeout = 300 * time.Millisecond
	unset := stdioServer("unset", "ok")
	unset.Args = []string{"--key", "${CAPSTAN_TEST_UNSET}"}
	nowhere := stdioServer("nowhere", "ok")
	nowhere.Cwd = "no/such/folder"
	r := newRig(t, Options{}, missing, silent, unset, nowhere, stdioServer("dies", "dies"), stdioServer("good", "sdk"))
	got := map[string]string{}
	for _, m := range r.Wait(r.ctx) {
		got[m.Server] = m.Why
	}
	for server, want := range map[string]string{
		"missing": `the program "no-such-program-anywhere" was not found in PATH`,
		"silent":  "within 300ms (startupTimeout)",
		"unset":   "mcpServers.unset.args[1] in test: the environment variable CAPSTAN_TEST_UNSET is not set; set it, or give a default as ${CAPSTAN_TEST_UNSET:-default}",
		"nowhere": "the directory " + filepath.Join(r.o.Dir, "no/such/folder") + " does not exist",
		"dies":    "it ended with exit status 3; its stderr ends with:\nno DATABASE_URL",
	} {
		if !strings.Contains(got[server], want) {
			t.Errorf("%s: %q, want %q", server, got[server], want)
		}
		delete(got, server)
	}
	if len(got) > 0 {
		t.Errorf("also missing: %v", got)
	}
	r.until("the end of the silent one", func() bool { return r.Status()[4].Name == "silent" && r.Status()[4].State == Failed })
	if got := r.call("mcp__good__echo", `{"text":"hi"}`).Text(); got != "hi" {
		t.Errorf("the good server says %q", got)
	}
}

// BUG-MC-01, BUG-MC-03: a crash fails the call and only it.
func TestCrashInACall(t *testing.T) {
	r := newRig(t, Options{}, stdioServer("s", "crash"))
	r.ready()
	for range 3 {
		res := r.call("mcp__s__t", `{}`)
		if res.Code != tool.CodeFailed || !strings.Contains(res.Text(), "it ended with exit status 7") || !strings.Contains(res.Text(), "panic: out of luck") ||
			!strings.Contains(res.Text(), "Whether the call had an effect is not known") {
			t.Errorf("the call said %q", res.Text())
		}
		if got := r.names(); len(got) != 1 {
			t.Errorf("tools while it is down: %v", got)
		}
		if got := r.call("mcp__s__t", `{"x":1}`).Text(); got != "alive" {
			t.Errorf("the next call says %q", got)
		}
	}
	if n := r.Status()[0].Restarts; n != 3 {
		t.Errorf("%d restarts", n)
	}
}

// BUG-MC-01
func TestKilledBetweenCalls(t *testing.T) {
	r := newRig(t, Options{}, stdioServer("s", "pid"))
	r.ready()
	pid, err := strconv.Atoi(r.call("mcp__s__t", `{}`).Text())
	if err != nil {
		t.Fatal(err)
	}
	view := r.reg.View(tool.Code, tool.Scope{})
	syscall.Kill(pid, syscall.SIGKILL)
	r.until("the restart", func() bool { return r.Status()[0].Restarts == 1 && r.Status()[0].State == Ready })
	if got := r.call("mcp__s__t", `{}`).Text(); got == strconv.Itoa(pid) || got == "" {
		t.Errorf("the next call was answered by %q", got)
	}
	// It lists the same, so nothing changes for anybody (BUG-PC-03).
	if r.reg.View(tool.Code, tool.Scope{}) != view {
		t.Error("the registry was changed")
	}
}

func TestAFailedServerIsTriedAgainWhenItIsNeeded(t *testing.T) {
	r := newRig(t, Options{}, stdioServer("s", "once:"+filepath.Join(t.TempDir(), "f")))
	if m := r.Wait(r.ctx); len(m) != 1 || !strings.Contains(m[0].String(), "MCP server s is missing: it ended with exit status 1; its stderr ends with:\nnot yet") {
		t.Fatalf("missing: %v", m)
	}
	time.Sleep(2 * time.Millisecond) // the pause
	if _, err := r.Ping(r.ctx, "s"); err != nil && !strings.Contains(err.Error(), "no such method") {
		t.Fatal(err)
	}
	if got := r.call("mcp__s__t", `{}`).Text(); got != "ok" {
		t.Errorf("%q", got)
	}
}

// BUG-MC-13
func TestStderrIsDrained(t *testing.T) {
	r := newRig(t, Options{}, stdioServer("s", "stderr"))
	r.ready()
	if got := r.call("mcp__s__t", `{}`).Text(); got != "ok" {
		t.Errorf("%q", got)
	}
	r.until("the end of stderr", func() bool { return strings.HasSuffix(r.Status()[0].Stderr, "last line") })
	if n := len(r.Status()[0].Stderr); n > stderrTail {
		t.Errorf("%d bytes are kept", n)
	}
}

// BUG-MC-15
func TestNoiseOnStdout(t *testing.T) {
	r := newRig(t, Options{}, stdioServer("s", "noise"), stdioServer("good", "sdk"))
	r.ready()
	if got := r.call("mcp__s__t", `{}`).Text(); got != "ok" {
		t.Errorf("%q", got)
	}
	w := strings.Join(r.Status()[1].Warnings, "\n")
	for _, want := range []string{"Listening on stdio", "[1,2]", `{"not":"a message"}`, "{half"} {
		if !strings.Contains(w, want) {
			t.Errorf("nothing about %s in\n%s", want, w)
		}
	}
	if w := r.Status()[0].Warnings; len(w) > 0 {
		t.Errorf("the other server got %v", w)
	}
}

func TestHugeAnswersFailTheirCallOnly(t *testing.T) {
	if testing.Short() {
		t.Skip("moves 100 MB")
	}
	r := newRig(t, Options{}, stdioServer("s", "huge"))
	r.ready()
	for _, args := range []string{`{"id":"first"}`, `{"id":"last"}`} {
		res := r.call("mcp__s__t", args)
		if res.Code != tool.CodeFailed || !strings.Contains(res.Text(), "larger than 32 MiB") {
			t.Errorf("%s: %.200s", args, res.Text())
		}
		if got := r.call("mcp__s__t", `{}`).Text(); got != "small" {
			t.Errorf("the next call says %q", got)
		}
	}
	if n := r.Status()[0].Restarts; n != 0 {
		t.Errorf("%d restarts", n)
	}
}

func TestAnswersThatAreWrong(t *testing.T) {
	for mode, want := range map[string]string{"twice": "first", "latin1": "caf\uFFFD", "storm": "after the storm"} {
		t.Run(mode, func(t *testing.T) {
			r := newRig(t, Options{}, stdioServer("s", mode))
			r.ready()
			for range 2 {
				if got := r.call("mcp__s__t", `{}`).Text(); got != want {
					t.Errorf("%q", got)
				}
			}
		})
	}
}

// A server that asks for ever and takes no answer costs its connection, not our
// memory.
func TestAFloodOfRequests(t *testing.T) {
	r := newRig(t, Options{stall: 100 * time.Millisecond}, stdioServer("s", "flood"))
	r.ready()
	if res := r.call("mcp__s__t", `{}`); res.Code != tool.CodeFailed || !strings.Contains(res.Text(), "it has 256 requests open and takes no answer to them") {
		t.Errorf("%+v", res)
	}
	r.until("the restart", func() bool { return r.Status()[0].Restarts == 1 && r.Status()[0].State == Ready })
}

// BUG-MC-11: a token is always sent, so there is progress to be shown.
func TestProgressIsShown(t *testing.T) {
	r := newRig(t, Options{}, stdioServer("s", "progress"))
	r.ready()
	var shown atomic.Int64
	res := r.callWith(r.ctx, "mcp__s__t", `{}`, func(p msg.Part) {
		if strings.HasSuffix(p.Text, "/20 step") {
			shown.Add(1)
		}
	})
	if res.Text() != "done" || shown.Load() == 0 {
		t.Errorf("%+v, shown %d times", res, shown.Load())
	}
}

func TestACallWithoutProgressTimesOutAndIsCancelled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cancelled")
	c := stdioServer("s", "hang:"+file)
	c.Timeout = 50 * time.Millisecond
	r := newRig(t, Options{}, c)
	r.ready()
	res := r.call("mcp__s__t", `{}`)
	if res.Code != tool.CodeTimeout || !strings.Contains(res.Text(), "no progress for 50ms") {
		t.Errorf("%+v", res)
	}
	r.until("the cancellation", func() bool { _, err := os.Stat(file); return err == nil })
}

func TestACancelledCallIsCancelledAtTheServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cancelled")
	r := newRig(t, Options{}, stdioServer("s", "hang:"+file))
	r.ready()
	ctx, cancel := context.WithCancel(r.ctx)
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := r.tool("mcp__s__t").Run(ctx, &tool.Invocation{Call: &tool.Call{Args: json.RawMessage(`{}`)}, Progress: func(msg.Part) {}, Yield: unlent}); err != context.Canceled {
		t.Errorf("%v", err)
	}
	r.until("the cancellation", func() bool { _, err := os.Stat(file); return err == nil })
	if st := r.Status()[0]; st.Restarts != 0 || st.State != Ready {
		t.Errorf("%+v", st)
	}
}

func TestAnAnswerAfterTheTimeoutDoesNoHarm(t *testing.T) {
	c := stdioServer("s", "late") // which answers what was cancelled
	c.Timeout = 20 * time.Millisecond
	r := newRig(t, Options{}, c)
	r.ready()
	if res := r.call("mcp__s__t", `{}`); res.Code != tool.CodeTimeout {
		t.Errorf("%+v", res)
	}
	if res := r.call("mcp__s__t", `{}`); res.Code != tool.CodeTimeout {
		t.Errorf("the second call got another's answer: %+v", res)
	}
}

// BUG-MC-23
func TestTheServerCancels(t *testing.T) {
	r := newRig(t, Options{}, stdioServer("s", "giveup"))
	r.ready()
	res := r.call("mcp__s__t", `{}`)
	if res.Code != tool.CodeFailed || !strings.Contains(res.Text(), "the server cancelled the call: shutting the database") {
		t.Errorf("%+v", res)
	}
}

func TestAnErrorInsteadOfAResult(t *testing.T) {
	r := newRig(t, Options{}, stdioServer("s", "error"))
	r.ready()
	if diff := cmp.Diff(tool.Fail(tool.CodeFailed, "MCP server s: no such tool (code -32602)"), *r.call("mcp__s__t", `{}`)); diff != "" {
		t.Error(diff)
	}
}

// Each server gets a minimal environment, not the user's secrets.
func TestEnvironmentOfAServer(t *testing.T) {
	c := stdioServer("s", "env")
	c.Cwd = "sub"
	c.Env["TOKEN"] = "${SECRET}-${NONE:-none}"
	dir := t.TempDir()
	os.Mkdir(filepath.Join(dir, "sub"), 0o700)
	env := append(slices.Clone(os.Environ()), "SECRET=s3cret", "OPENAI_API_KEY=k", "HTTPS_PROXY=http://u:p@h", "NO_PROXY=localhost", "LC_ALL=C", "CDPATH=x")
	r := newRig(t, Options{Env: env, Dir: dir}, c)
	r.ready()
	var got struct {
		Env []string `json:"env"`
		Cwd string   `json:"cwd"`
	}
	if err := json.Unmarshal(r.call("mcp__s__t", `{}`).Data, &got); err != nil {
		t.Fatal(err)
	}
	for _, e := range got.Env {
		name, _, _ := strings.Cut(e, "=")
		if !slices.Contains(inherited, name) && !slices.Contains([]string{"TOKEN", serverMode, "NO_PROXY", "LC_ALL", "PWD", "CAPSTAN_COMMAND"}, name) {
			t.Errorf("it has %s", e)
		}
	}
	if !slices.Contains(got.Env, "TOKEN=s3cret-none") {
		t.Errorf("its own variable is missing in %q", got.Env)
	}
	if want, _ := filepath.EvalSymlinks(filepath.Join(dir, "sub")); got.Cwd != want {
		t.Errorf("it runs in %s, want %s", got.Cwd, want)
	}
}
