package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"capstan/internal/msg"
	"capstan/internal/tool"
)

// A list of all servers' resources takes no longer than the slowest server, says
// which are missing, and leaves out those that a rule speaks of; a call that names
// one of these was judged by the rule itself.
func TestListOfAllResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := goodServer()
		m := New(Options{Registry: &tool.Registry{}, Backoff: time.Hour,
			Withheld: func(server, tool string) string {
				if server == "kept" && tool == "list_mcp_resources" {
					return `permissions.ask "mcp__kept"`
				}
				return ""
			},
			dial: func(c Config) (sdk.Transport, error) {
				if c.Name != "good" && c.Name != "kept" {
					nothing, _ := io.Pipe()
					return &sdk.IOTransport{Reader: nothing, Writer: deaf{}}, nil
				}
				here, there := sdk.NewInMemoryTransports()
				_, err := good.Connect(context.Background(), here, nil)
				return renaming{there}, err
			}})
		configs := []Config{{Name: "good"}, {Name: "kept"}}
		for i := range 6 {
			configs = append(configs, Config{Name: fmt.Sprint("silent", i), StartupTimeout: time.Second})
		}
		if err := m.Add(configs...); err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		begun := time.Now()
		res, err := m.listAll(t.Context(), nil, "")
		if took := time.Since(begun); took > 2*time.Second || err != nil {
			t.Errorf("it took %v: %v", took, err)
		}
		if got := string(res.Data); !strings.Contains(got, `{"server":"good","uri":"note://1"`) || strings.Contains(got, "kept") {
			t.Errorf("listed: %s", got)
		}
		note := res.Parts[1].Text
		if !strings.HasPrefix(note, `Not listed: MCP server kept, which permissions.ask "mcp__kept" speaks of; a call with its name in server is judged by that; MCP server silent0 `) || strings.Count(note, "startupTimeout") != 6 {
			t.Errorf("%s", note)
		}
		for _, st := range m.Status() {
			if st.Name == "kept" && st.State != Idle {
				t.Errorf("a server that a rule speaks of is %s", st.State)
			}
		}
		named, err := m.listAll(t.Context(), nil, "kept")
		if diff := cmp.Diff(1, len(named.Parts)); diff != "" || err != nil || !strings.Contains(string(named.Data), `{"server":"kept","uri":"note://1"`) {
			t.Errorf("named: %+v, %v", named, err)
		}
	})
}

// The scope of an agent holds for the resources of servers as it does for their
// tools: a server outside of it is not even started for them.
func TestResourcesOutsideOfTheScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := &tool.Registry{}
		m := New(Options{Registry: reg, Backoff: time.Hour, dial: func(Config) (sdk.Transport, error) {
			here, there := sdk.NewInMemoryTransports()
			_, err := goodServer().Connect(context.Background(), here, nil)
			return renaming{there}, err
		}})
		if err := m.Add(Config{Name: "docs"}, Config{Name: "prod"}); err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		view := reg.View(tool.Code, tool.Scope{Disallow: []string{"mcp__prod"}})
		run := func(name, args string) string {
			for _, e := range reg.Tools() {
				if e.Spec().Name == name {
					res, err := e.Tool().Run(t.Context(), &tool.Invocation{View: view, Yield: unlent,
						Call: &tool.Call{ID: "c1", Name: name, Args: json.RawMessage(args)}, Progress: func(msg.Part) {}})
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
					return fmt.Sprintf("%s %s", res.Code, res.Text())
				}
			}
			return "no such tool"
		}
		const refusal = `DENIED MCP server "prod" is outside of this agent's scope: its list of tools has to name mcp__prod, or a tool of it`
		for _, tc := range []struct{ name, args, want, not string }{
			{"list_mcp_resources", `{"server":"prod"}`, refusal, "note:"},
			{"read_mcp_resource", `{"server":"prod","uri":"note://1"}`, refusal, "a note"},
			{"list_mcp_resources", `{"server":"docs"}`, `{"server":"docs","uri":"note://1"`, "prod"},
			{"read_mcp_resource", `{"server":"docs","uri":"note://1"}`, "a note", "scope"},
			{"list_mcp_resources", `{}`, "Not listed: MCP server prod, which is outside of this agent's scope", `"server":"prod"`},
			{"list_mcp_resources", `{}`, `{"server":"docs","uri":"note://1"`, `"server":"prod"`},
		} {
			if got := run(tc.name, tc.args); !strings.Contains(got, tc.want) || strings.Contains(got, tc.not) {
				t.Errorf("%s %s: %s", tc.name, tc.args, got)
			}
		}
		for _, st := range m.Status() {
			if st.Name == "prod" && st.State != Idle {
				t.Errorf("a server outside of the scope is %s", st.State)
			}
		}
	})
}
