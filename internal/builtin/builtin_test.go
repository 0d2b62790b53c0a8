package builtin

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capstan/internal/msg"
	"capstan/internal/tool"
)

type obj = map[string]any

// A session is the file tools of one session in a directory of their own.
type session struct {
	*testing.T
	f     *files
	dir   string
	tools map[string]tool.Tool
	src   tool.Source
}

func newSession(t *testing.T) *session {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &session{T: t, f: newFiles(Options{Dir: dir}), dir: dir, tools: map[string]tool.Tool{}, src: tool.FromModel}
	for _, tl := range allOf(s.f) {
		s.tools[tl.Spec().Name] = tl
	}
	return s
}

// call runs a tool as sched does, without its pipeline.
func call(t testing.TB, tl tool.Tool, src tool.Source, args any) tool.Result {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	c := &tool.Call{ID: "c1", Name: tl.Spec().Name, Args: raw, Source: src}
	r, err := tl.Run(context.Background(), admitted(tl, c))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// admitted is a call as sched hands it to its tool.
func admitted(tl tool.Tool, c *tool.Call) *tool.Invocation {
	return &tool.Invocation{Call: c, Access: tl.(tool.Accessor).Access(c), Progress: func(msg.Part) {}}
}

func (s *session) call(name string, args obj) tool.Result {
	s.Helper()
	return call(s, s.tools[name], s.src, args)
}

// ok runs a tool that has to succeed, and returns its text.
func (s *session) ok(name string, args obj) string {
	s.Helper()
	r := s.call(name, args)
	if r.Status != tool.Success {
		s.Fatalf("%s %v: %s", name, args, r.Text())
	}
	return r.Text()
}

// fails runs a tool that has to fail with exactly this text.
func (s *session) fails(want, name string, args obj) {
	s.Helper()
	r := s.call(name, args)
	if got := strings.ReplaceAll(r.Text(), s.dir, "$DIR"); r.Status == tool.Success || r.Code == "" || got != want {
		s.Errorf("%s %v: %s %s\n got %s\nwant %s", name, args, r.Status, r.Code, got, want)
	}
}

func (s *session) path(name string) string { return filepath.Join(s.dir, name) }

func (s *session) write(name, content string) { s.Helper(); write(s, s.path(name), content) }

func (s *session) holds(name, want string) {
	s.Helper()
	if got, err := os.ReadFile(s.path(name)); err != nil || string(got) != want {
		s.Errorf("%s holds %q (%v), want %q", name, got, err, want)
	}
}

// clean checks that nothing but these names is in the directory: no temporary
// file, in particular.
func (s *session) clean(dir string, want ...string) {
	s.Helper()
	entries, err := os.ReadDir(s.path(dir))
	if err != nil {
		s.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		s.Errorf("%s holds %q, want %q", dir, got, want)
	}
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

// Every tool has a name, a title, a description that says what it must not be
// used for, and a schema, from one definition that its Go code reads too.
func TestSpecs(t *testing.T) { // S3-018 S3-019 S3-021 S3-022 S3-023 S3-024 S3-025 S3-040 S3-041
	instead := map[string]string{
		"read_file": "list_directory", "list_directory": "glob", "glob": "grep_search",
		"grep_search": "glob", "write_file": "edit", "edit": "write_file",
	}
	titles := map[string]string{
		"read_file": "ReadFile", "list_directory": "ListFiles", "glob": "Glob",
		"grep_search": "Grep", "write_file": "WriteFile", "edit": "Edit",
	}
	weight := 0
	for _, tl := range All(Options{Dir: t.TempDir()}) {
		sp := tl.Spec()
		if sp.Title != titles[sp.Name] || sp.Title == "" {
			t.Errorf("%s has the title %q", sp.Name, sp.Title)
		}
		_, not, found := strings.Cut(sp.Description, "Must not be used ")
		if !found || !strings.Contains(not, instead[sp.Name]) {
			t.Errorf("%s does not say what it must not be used for and that %s is for it: %s", sp.Name, instead[sp.Name], sp.Description)
		}
		var in struct {
			Type       string
			Properties map[string]struct{ Type string }
			Required   []string
			Additional *bool `json:"additionalProperties"`
		}
		if err := json.Unmarshal(sp.Input, &in); err != nil || in.Type != "object" || in.Additional == nil || *in.Additional {
			t.Errorf("%s: schema %s: %v", sp.Name, sp.Input, err)
		}
		if sp.Output != nil && !json.Valid(sp.Output) {
			t.Errorf("%s: output schema %s", sp.Name, sp.Output)
		}
		weight += len(sp.Name) + len(sp.Description) + len(sp.Input)
		delete(titles, sp.Name)
	}
	if len(titles) > 0 {
		t.Errorf("not there: %v", titles)
	}
	if weight > 3000 {
		t.Errorf("the declarations weigh %d bytes, of 3,000", weight)
	}
}

// Access and Preview are asked before anything has been checked.
func FuzzAccess(f *testing.F) {
	for _, s := range []string{`{}`, `null`, `[]`, `{"file_path":5}`, `{"file_path":"\u0000"}`, `{"pattern":"[","path":"a/../.."}`, `{"pattern":"{a/**"}`, `x`, ``} {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	tools := All(Options{Dir: dir})
	f.Fuzz(func(t *testing.T, args []byte) {
		for _, tl := range tools {
			c := &tool.Call{ID: "f", Name: tl.Spec().Name, Args: args}
			a := tl.(tool.Accessor).Access(c)
			for _, p := range append(a.Reads, a.Writes...) {
				if !filepath.IsAbs(p) || filepath.Clean(p) != p {
					t.Errorf("%s %q: path %q", c.Name, args, p)
				}
			}
			if len(a.Reads)+len(a.Writes) == 0 && !a.Outside {
				t.Errorf("%s %q touches nothing", c.Name, args)
			}
			if p, ok := tl.(tool.Previewer); ok {
				_, _ = p.Preview(context.Background(), c, a) // must only come back
			}
		}
	})
}
