package builtin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/tool"
)

// eachWay runs a test with the kernel's help and without.
func eachWay(t *testing.T, fn func(t *testing.T, s *session)) {
	for name, portable := range map[string]bool{"native": false, "portable": true} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t)
			s.f.portable = portable
			fn(t, s)
		})
	}
}

func (s *session) link(target, name string) {
	s.Helper()
	if err := os.Symlink(target, s.path(name)); err != nil {
		s.Fatal(err)
	}
}

// What a call is judged by is where it would really go.
func TestAccessPaths(t *testing.T) { // BUG-PP-01 BUG-PP-03
	eachWay(t, func(t *testing.T, s *session) {
		outside, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		s.write("ws/sub/f", "x")
		s.link(outside, "ws/outbox")
		s.link("gone/x", "ws/dangling")
		s.link("sub", "ws/rel")
		s.link("self", "ws/self")
		s.link(s.path("ws"), "other")
		s.f.place.Move(s.path("other"), nil) // the workspace itself is under a link
		for p, want := range map[string]string{
			"sub/f":        "ws/sub/f",
			"./sub//f":     "ws/sub/f",
			"sub/f/":       "ws/sub/f",
			"rel/f":        "ws/sub/f",
			"rel/../sub/f": "ws/sub/f",
			"outbox/x.txt": outside + "/x.txt",
			"outbox/a/b":   outside + "/a/b",
			"outbox/../x":  filepath.Dir(outside) + "/x",
			// Where ws/sub/f exists, and no other link is on the way.
			s.path("ws") + "/outbox/../sub/f": filepath.Dir(outside) + "/sub/f",
			"dangling":                        "ws/gone/x",
			"new/file":                        "ws/new/file",
			"new/../sub/f":                    "ws/sub/f",
			"../ws/sub/f":                     "ws/sub/f",
			s.path("other/rel"):               "ws/sub",
			s.path("ws/sub/f"):                "ws/sub/f",
			"/../../" + outside:               outside,
			"..":                              ".",
			"sub/f/../../outbox":              outside,
		} {
			if !filepath.IsAbs(want) {
				want = s.path(want)
			}
			for name, key := range map[string]string{"read_file": "file_path", "write_file": "file_path", "edit": "file_path", "list_directory": "path", "grep_search": "path"} {
				args, err := json.Marshal(obj{key: p})
				if err != nil {
					t.Fatal(err)
				}
				got := s.tools[name].(tool.Accessor).Access(&tool.Call{Args: args})
				w := tool.Access{Overlap: true, Reads: []string{want}}
				if name == "write_file" || name == "edit" {
					w = tool.Access{Overlap: true, Writes: []string{want}}
				}
				if diff := cmp.Diff(w, got); diff != "" {
					t.Errorf("%s %s (-want +got):\n%s", name, p, diff)
				}
			}
		}
		for _, args := range []string{`{"file_path":"self/x"}`, `{"file_path":""}`, `{"file_path":"a\u0000b"}`, `{}`} {
			if got := s.tools["write_file"].(tool.Accessor).Access(&tool.Call{Args: []byte(args)}); !got.Outside || len(got.Writes) > 0 {
				t.Errorf("%s: %+v", args, got)
			}
		}
		glob := s.tools["glob"].(tool.Accessor).Access(&tool.Call{Args: []byte(`{"pattern":"rel/../outbox/*.go"}`)})
		if diff := cmp.Diff(tool.Access{Overlap: true, Reads: []string{outside}}, glob); diff != "" {
			t.Errorf("glob (-want +got):\n%s", diff)
		}
	})
}

// A link that is swapped in after a call was judged leads nowhere.
func TestSwappedLink(t *testing.T) { // BUG-PP-01
	eachWay(t, func(t *testing.T, s *session) {
		secret := t.TempDir()
		write(t, filepath.Join(secret, "f"), "secret")
		write(t, filepath.Join(secret, "sub/secret"), "")
		for name, args := range map[string]string{
			"read_file":      `{"file_path":"d/f"}`,
			"list_directory": `{"path":"d/sub"}`,
			"glob":           `{"pattern":"d/*"}`,
			"grep_search":    `{"pattern":"s","path":"d/f"}`,
			"write_file":     `{"file_path":"d/new","content":"x"}`,
			"edit":           `{"file_path":"d/f","old_string":"secret","new_string":"x"}`,
		} {
			s.write("d/f", "open")
			s.write("d/sub/x", "")
			c := &tool.Call{ID: name, Name: name, Args: json.RawMessage(args), Source: tool.FromProgram}
			inv := admitted(s.tools[name], c)
			if err := os.RemoveAll(s.path("d")); err != nil {
				t.Fatal(err)
			}
			s.link(secret, "d")
			r, err := s.tools[name].Run(t.Context(), inv)
			if err != nil || r.Status == tool.Success || strings.Contains(r.Text(), "secret") {
				t.Errorf("%s: %v %s %s", name, err, r.Status, r.Text())
			}
			if err := os.Remove(s.path("d")); err != nil {
				t.Fatal(err)
			}
		}
		if b, err := os.ReadFile(filepath.Join(secret, "f")); err != nil || string(b) != "secret" {
			t.Errorf("%q %v", b, err)
		}
		if entries, err := os.ReadDir(secret); err != nil || len(entries) != 2 {
			t.Errorf("%v %v", entries, err)
		}
	})
}

// A path that led nowhere when the call was judged is not tried again, since
// nobody has judged where it leads now.
func TestPathThatHadNoMeaning(t *testing.T) { // BUG-PP-01
	eachWay(t, func(t *testing.T, s *session) {
		for name, args := range map[string]string{
			"read_file":      `{"file_path":"d/f"}`,
			"list_directory": `{"path":"d"}`,
			"glob":           `{"pattern":"d/*"}`,
			"grep_search":    `{"pattern":"s","path":"d/f"}`,
			"write_file":     `{"file_path":"d/new","content":"x"}`,
			"edit":           `{"file_path":"d/new","old_string":"","new_string":"x"}`,
		} {
			s.link("d", "d")
			inv := admitted(s.tools[name], &tool.Call{Name: name, Args: json.RawMessage(args), Source: tool.FromProgram})
			if err := os.Remove(s.path("d")); err != nil {
				t.Fatal(err)
			}
			s.write("d/f", "secret")
			r, err := s.tools[name].Run(t.Context(), inv)
			if err != nil || r.Status != tool.Failed || !strings.Contains(r.Text(), "try again") || strings.Contains(r.Text(), "secret") {
				t.Errorf("%s: %v %s %s", name, err, r.Status, r.Text())
			}
			s.clean("d", "f")
			if err := os.RemoveAll(s.path("d")); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A working directory under a link is shown, and left by `..`, as the real one.
func TestDirUnderLink(t *testing.T) { // BUG-PP-03
	s := newSession(t)
	s.write("real/ws/f", "x")
	s.link("real/ws", "link")
	tools := All(Options{Dir: s.path("link")})
	if got := call(t, tools[2], tool.FromModel, obj{"pattern": s.path("link") + "/*"}); got.Text() != "f\n" {
		t.Errorf("got %q", got.Text())
	}
	if got := call(t, tools[1], tool.FromModel, obj{"path": ".."}); got.Text() != "ws/\n" {
		t.Errorf("got %q", got.Text())
	}
}
