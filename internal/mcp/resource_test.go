package mcp

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

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
		res, err := m.listAll(t.Context(), "")
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
		named, err := m.listAll(t.Context(), "kept")
		if diff := cmp.Diff(1, len(named.Parts)); diff != "" || err != nil || !strings.Contains(string(named.Data), `{"server":"kept","uri":"note://1"`) {
			t.Errorf("named: %+v, %v", named, err)
		}
	})
}
