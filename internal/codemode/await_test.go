package codemode_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/tool"
)

// gates are servers that answer when a test says so.
type gates struct {
	mu     sync.Mutex
	open   map[string]chan struct{}
	why    map[string]string // of those that never come up
	waited []string
	// waiting, when not nil, is called when a wait begins.
	waiting func()
}

func (g *gates) serversOf(js string) []string {
	server, _, ok := strings.Cut(strings.TrimPrefix(js, "mcp__"), "__")
	if _, known := g.open[server]; !ok || !known || !strings.HasPrefix(js, "mcp__") {
		return nil
	}
	return []string{server}
}

func (g *gates) await(ctx context.Context, servers ...string) (missing []string) {
	g.mu.Lock()
	g.waited = append(g.waited, servers...)
	g.mu.Unlock()
	if g.waiting != nil {
		g.waiting()
	}
	for name, c := range g.open {
		if len(servers) > 0 && !slices.Contains(servers, name) {
			continue
		}
		select {
		case <-c:
		case <-ctx.Done():
		}
		if why := g.why[name]; why != "" {
			missing = append(missing, "MCP server "+name+" is missing: "+why)
		}
	}
	return missing
}

// A call of a server's tool waits for that server, and nothing else does; the tool
// is found though it came after the program had begun.
func TestCallAwaitsItsServer(t *testing.T) {
	w := newWorld(t, echo("near"))
	g := &gates{open: map[string]chan struct{}{"slow": make(chan struct{}), "never": make(chan struct{})}}
	w.exec.Registry, w.exec.ServersOf, w.exec.Await = &w.reg, g.serversOf, g.await
	err := w.reg.Add(&fake{spec: tool.Spec{Name: "come", Description: "d"}, run: func(context.Context, *tool.Invocation) (tool.Result, error) {
		late := echo("mcp__slow__echo")
		late.spec.Server = "slow"
		err := w.reg.Add(late)
		close(g.open["slow"])
		return tool.Text("come"), err
	}})
	if err != nil {
		t.Fatal(err)
	}
	// The first call is made before its server is there, and settles last.
	w.want(`const order = [];
		const late = tools.mcp__slow__echo({n: 1}).then(r => { order.push(r.name); return r.output; });
		await tools.near({n: 2}).then(r => order.push(r.name));
		await tools.come({}).then(r => order.push(r.name));
		text(await late, order[0], order.length);
		text((await tools.mcp__slow__echo({n: 3})).output);
		await tools.mcp__other__x({}).catch(e => text(e.code));`, "{\"n\":1} near 3\n{\"n\":3}\nUNKNOWN_TOOL")
	if got := strings.Join(g.waited, " "); got != "slow" {
		t.Errorf("waited for %q, want slow, once", got)
	}
}

// Of two servers whose names are written alike both are waited for, and one that is
// missing takes nothing from the other.
func TestCallAwaitsServersWrittenAlike(t *testing.T) {
	w := newWorld(t)
	g := &gates{open: map[string]chan struct{}{"my-db": make(chan struct{}), "my_db": make(chan struct{})}, why: map[string]string{"my-db": "it ended"}}
	close(g.open["my-db"])
	w.exec.Registry, w.exec.Await = &w.reg, g.await
	w.exec.ServersOf = func(string) []string { return []string{"my-db", "my_db"} }
	g.waiting = func() {
		late := echo("mcp__my_db__echo")
		late.spec.Server = "my_db"
		if err := w.reg.Add(late); err != nil {
			t.Error(err)
		}
		close(g.open["my_db"])
	}
	w.want(`text((await tools.mcp__my_db__echo({n: 1})).output)`, `{"n":1}`)
	if diff := cmp.Diff([]string{"my-db", "my_db"}, g.waited); diff != "" {
		t.Error(diff)
	}
}

// What is missing is said where it was asked for. A program that ends, or is
// ended, waits for nothing.
func TestMissingServers(t *testing.T) {
	w := newWorld(t)
	g := &gates{open: map[string]chan struct{}{"dead": make(chan struct{}), "never": make(chan struct{})}, why: map[string]string{"dead": "it ended"}}
	w.exec.Registry, w.exec.ServersOf, w.exec.Await = &w.reg, g.serversOf, g.await
	close(g.open["dead"])
	w.want(`await tools.mcp__dead__x({}).catch(e => text(e.message, e.code))`,
		"there is no tool \"mcp__dead__x\" here\nMCP server dead is missing: it ended UNKNOWN_TOOL")
	if r := w.run(t.Context(), `tools.mcp__never__x({}); text("done")`); r.Status != tool.Success || !strings.Contains(r.Text(), "1 call(s) were not awaited and have been cancelled: mcp__never__x") {
		t.Errorf("%s: %s", r.Status, r.Text())
	}
	ctx, cancel := context.WithCancel(t.Context())
	g.waiting = cancel
	if r := w.run(ctx, `await tools.mcp__never__x({})`); r.Status != tool.Cancelled {
		t.Errorf("%s: %s", r.Status, r.Text())
	}
	g.waiting = nil
	close(g.open["never"])
	// ALL_TOOLS waits for all, and tells without which it is.
	if r := w.run(t.Context(), `text(ALL_TOOLS.length)`); !strings.Contains(r.Text(), "[Not in ALL_TOOLS: MCP server dead is missing: it ended]") {
		t.Error(r.Text())
	}
}

// A call of a tool whose server has said that its tools are others now waits for
// those, and is made as they are then; a call of another server's does not.
func TestCallAwaitsWhatChanged(t *testing.T) {
	of := func(server, says string) *fake {
		return &fake{spec: tool.Spec{Name: "mcp__" + server + "__echo", Description: says, Server: server}, run: func(context.Context, *tool.Invocation) (tool.Result, error) {
			return tool.Text(says), nil
		}}
	}
	w := newWorld(t, of("shift", "old"), of("calm", "calm"))
	g := &gates{open: map[string]chan struct{}{"shift": make(chan struct{}), "calm": make(chan struct{})}}
	var changing atomic.Bool
	changing.Store(true)
	g.waiting = func() {
		mine := func(sp *tool.Spec) bool { return sp.Server == "shift" }
		if err := w.reg.Replace(mine, of("shift", "new"), &fake{spec: tool.Spec{Name: "mcp__shift__fresh", Description: "d", Server: "shift"}, run: func(context.Context, *tool.Invocation) (tool.Result, error) {
			return tool.Text("fresh"), nil
		}}); err != nil {
			t.Error(err)
		}
		changing.Store(false)
		close(g.open["shift"])
	}
	w.exec.Registry, w.exec.ServersOf, w.exec.Await = &w.reg, g.serversOf, g.await
	w.exec.Changing = func(server string) bool { return server == "shift" && changing.Load() }
	w.want(`text((await tools.mcp__calm__echo({})).output, (await tools.mcp__shift__echo({})).output);
		text((await tools.mcp__shift__fresh({})).output, (await tools.mcp__shift__echo({})).output)`, "calm new\nfresh new")
	if got := strings.Join(g.waited, " "); got != "shift" {
		t.Errorf("waited for %q, want shift, once", got)
	}
}
