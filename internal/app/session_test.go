package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/tool"
)

// open returns a session in a directory of its own, with a home of its own.
func open(t testing.TB, o Options, files map[string]string) *Session {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_STATE_HOME", "")
	o.Dir, o.Env = t.TempDir(), os.Getenv
	for name, text := range files {
		path := filepath.Join(o.Dir, name)
		if rest, ok := strings.CutPrefix(name, "~/"); ok {
			path = filepath.Join(home, rest)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func declared(s *Session) []string {
	var names []string
	for _, d := range s.View().Declarations() {
		names = append(names, d.Name)
	}
	return names
}

var builtins = []string{"edit", "glob", "grep_search", "job_list", "job_output", "job_stop", "list_directory", "read_file", "run_shell_command", "todo_write", "web_fetch", "write_file"}

// In code mode the model sees exec and the direct controls only; the registry
// still holds every tool, and programs can call it.
// S0-001 S0-002 S0-007 S0-031 S0-037 S0-038 S0-039 S0-040 S0-041 S0-042 S3-026 S3-027
func TestModes(t *testing.T) {
	settings := map[string]string{"~/.capstan/settings.json": `{"tools": {"codeModeOnly": true}}`}
	for _, tc := range []struct {
		name           string
		opt            Options
		files          map[string]string
		declared, bind []string
		registered     []string
	}{
		{"off by default", Options{}, nil, sorted(controls...), nil, sorted(append([]string{"tool_call", "tool_search"}, controls...)...)},
		{"by the setting", Options{}, settings, directControls, builtins, sorted(append([]string{"exec", "tool_call", "tool_search"}, controls...)...)},
		{"for one program", Options{Program: true}, nil, []string{"exec", "tool_search"}, builtins, sorted("exec", "tool_call", "tool_search")},
		{"a flag wins", Options{Mode: tool.Direct}, settings, sorted(controls...), nil, sorted(append([]string{"tool_call", "tool_search"}, controls...)...)},
		{"both", Options{Mode: tool.Both}, nil, sorted(directControls...), builtins, sorted(append([]string{"exec", "tool_call", "tool_search"}, controls...)...)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := open(t, tc.opt, tc.files)
			var bind, registered []string
			for _, b := range s.View().Bindings() {
				bind = append(bind, b.JS)
			}
			for _, e := range s.Registry.Tools() {
				registered = append(registered, e.Spec().Name)
			}
			got := [][]string{declared(s), bind, registered}
			if diff := cmp.Diff([][]string{tc.declared, tc.bind, tc.registered}, got); diff != "" {
				t.Errorf("declared, bound, registered: %s", diff)
			}
			if len(s.Warnings) > 0 {
				t.Error(s.Warnings)
			}
		})
	}
}

// controls are those of subagents, which a session for one program has not;
// directControls are all that a model in code mode is shown.
var (
	controls       = []string{"agent", "list_agents", "send_message", "task_list", "task_output", "task_stop"}
	directControls = []string{"agent", "exec", "list_agents", "send_message", "task_list", "task_output", "task_stop", "tool_search"}
)

func sorted(more ...string) []string {
	all := append(slices.Clone(builtins), more...)
	slices.Sort(all)
	return all
}

// The description of exec is weighed: DESIGN section 3, "The description is
// weighed".
func TestDeclarationsAreSmall(t *testing.T) {
	s := open(t, Options{Mode: tool.Code}, nil)
	b, err := encode(s.View().Declarations())
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > 9216 {
		t.Errorf("%d bytes, want at most 9,216", len(b))
	}
	t.Logf("%d bytes", len(b))
	for _, e := range s.Registry.Tools() {
		if err := e.Compile(); err != nil {
			t.Error(err)
		}
		if sp := e.Spec(); sp.Title == "" || sp.Description == "" && sp.Name != tool.ExecName || len(sp.Input) > 0 && !json.Valid(sp.Input) {
			t.Errorf("%s lacks a title, a description or a schema", sp.Name) // S3-021 S3-022 S3-023 S3-024
		}
	}
}
