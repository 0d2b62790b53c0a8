package policy

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/sched"
)

var words = map[sched.Decision]string{sched.Allow: "allow", sched.Ask: "ask", sched.Deny: "deny"}

// What rules protect in the workspace they protect in a copy of it that the
// session has moved to, however they name it, and in the workspace itself; what
// they allow moves along. S0-061
func TestMove(t *testing.T) {
	w := newWorld(t)
	tree := filepath.Join(w.base, "trees", "one")
	for _, d := range []string{"src", "sub/deep", "secret"} {
		if err := os.MkdirAll(filepath.Join(tree, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("src/h", filepath.Join(tree, "hidden")); err != nil { // which it is not in the workspace
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tree, "sub/deep/key"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := w.options(Yolo)
	o.Dir, o.HidesDenied = filepath.Join(w.ws, "sub"), true
	o.Rules = w.rules("deny Edit(/src/gen/**); deny Read(./deep/key); deny Read(.env); deny Read(/hidden); deny Read(/$WS/secret); deny Edit(//$BASE/w?/vendor/**); ask Edit(~/../ws/a.txt); allow Edit(/src/**)")
	p, warnings, err := New(o)
	if err != nil || warnings != nil {
		t.Fatal(warnings, err)
	}
	if err := p.Move(filepath.Join(tree, "sub"), []string{tree}); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []Mode{Yolo, Default} {
		check := func(when string, table map[string]string) {
			t.Helper()
			if err := p.SetMode(mode); err != nil {
				t.Fatal(err)
			}
			for line, want := range table {
				verb := map[string]string{"r": "read_file ", "w": "write_file "}[line[:1]]
				if got := p.Explain(w.request(t, verb+line[2:])); words[got.Decision] != want {
					t.Errorf("%s, %s, %s: %s, want %s (%s)", when, mode, line, words[got.Decision], want, got.Reason)
				}
			}
		}
		check("in the copy", map[string]string{
			"w $BASE/trees/one/src/gen/x": "deny", "w $WS/src/gen/x": "deny",
			"r $BASE/trees/one/sub/deep/key": "deny", "r $WS/sub/deep/key": "deny",
			"r $BASE/trees/one/.env": "deny", "r $WS/.env": "deny",
			"r $BASE/trees/one/src/h": "deny", "r $WS/hidden": "deny", "r $BASE/trees/one/hidden": "deny",
			"r $BASE/trees/one/secret": "deny", "r $BASE/trees/one/secret/x": "deny", "r $WS/secret": "deny",
			"w $BASE/trees/one/vendor/x": "deny", "w $WS/vendor/x": "deny",
			"w $BASE/trees/one/a.txt": "ask", "w $WS/a.txt": "ask",
			"w $BASE/trees/one/src/x": "allow", "r $BASE/trees/one/b.txt": "allow",
		})
		if mode == Default {
			check("in the copy", map[string]string{"r $WS/b.txt": "ask", "w $WS/src/x": "ask", "w $BASE/trees/one/c": "ask"})
		}
	}
	if !p.Hidden(filepath.Join(tree, "sub/deep/key")) || !p.Hidden(filepath.Join(tree, "secret")) || p.Hidden(filepath.Join(tree, "sub/deep")) {
		t.Error("what a search leaves out is wrong")
	}
	// A rule that comes there protects both, and still does afterwards.
	if err := p.Add(Rule{List: "deny", Text: "Edit(/late)"}); err != nil {
		t.Fatal(err)
	}
	if err := p.Move(o.Dir, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{w.ws}, p.Roots()); diff != "" {
		t.Error(diff)
	}
	for path, want := range map[string]string{"late": "deny", "src/gen/x": "deny", "src/x": "allow"} {
		for _, root := range []string{w.ws, tree} {
			if root == tree && want == "allow" {
				want = "ask"
			}
			if got := p.Explain(w.request(t, "write_file "+filepath.Join(root, path))); words[got.Decision] != want {
				t.Errorf("back again: %s in %s: %s, want %s (%s)", path, root, words[got.Decision], want, got.Reason)
			}
		}
	}
	if err := p.Move(filepath.Join(w.base, "nowhere"), nil); err == nil || p.Roots()[0] != w.ws {
		t.Errorf("moving to nowhere: %v, now in %v", err, p.Roots())
	}
}

// A command runs, and is judged, where its session was when it was made.
func TestCommandAfterMove(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash")
	}
	w := newWorld(t)
	p, _, err := New(w.options(Default))
	if err != nil {
		t.Fatal(err)
	}
	req := w.request(t, "sh cat a.txt")
	req.Access.Dir = w.ws
	if got := p.Explain(req); got.Decision != sched.Allow {
		t.Errorf("before: %v: %s", got.Decision, got.Reason)
	}
	if err := p.Move(w.outside, []string{w.outside}); err != nil {
		t.Fatal(err)
	}
	if got := p.Explain(req); got.Decision != sched.Ask {
		t.Errorf("after, for the old place: %v: %s", got.Decision, got.Reason)
	}
	req.Access.Dir = w.outside
	if got := p.Explain(req); got.Decision != sched.Allow {
		t.Errorf("after, for the new one: %v: %s", got.Decision, got.Reason)
	}
}
